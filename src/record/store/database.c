/*
 * See database.h. A killed recorder leaves its log beside the file, and the log may hold all of
 * the recording. SQLite replays it if it may write, and reads it in place if the index file of the
 * log is there, too. If neither is possible (two files copied to a read-only place), both are
 * copied to the temporary folder and replayed there. Only a file without a log is opened as
 * immutable.
 */
#include "record/store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/temp.h"
#include "record/format.h"

int64_t nrg_database_number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s = NULL;
    int64_t value = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        value = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return value;
}

void nrg_database_text(sqlite3_stmt *s, int column, char *dst, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    nrg_copy_clean(dst, size, text ? text : "", text ? (size_t)sqlite3_column_bytes(s, column) : 0);
}

int nrg_database_each(sqlite3 *db, const char *path, const char *sql,
                      int (*each)(void *arg, sqlite3_stmt *row), void *arg, struct nrg_error *err)
{
    sqlite3_stmt *s = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &s, NULL), rc = 0;
    while (!rc && (code == SQLITE_OK || code == SQLITE_ROW)) {
        code = sqlite3_step(s);
        rc = code == SQLITE_ROW ? each(arg, s) : 0;
    }
    if (rc)
        nrg_fail(err, rc, path, "out of memory");
    else if (code != SQLITE_DONE)
        rc = nrg_fail(err, -EBADMSG, path, "the recording is damaged: %s", sqlite3_errmsg(db));
    sqlite3_finalize(s);
    return rc;
}

int nrg_database_copy(sqlite3 *to, sqlite3 *from)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    if (!backup)
        return sqlite3_errcode(to);
    sqlite3_backup_step(backup, -1);
    return sqlite3_backup_finish(backup);
}

/* Opens it and reads the first page: SQLite finds problems only then. */
static int try_open(const char *path, int flags, sqlite3 **db)
{
    int code = sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK && nrg_database_number(*db, "PRAGMA schema_version") < 0)
        code = sqlite3_errcode(*db);
    if (code == SQLITE_OK || code == SQLITE_NOTADB)
        return SQLITE_OK; /* the caller has the better message for a file of another kind */
    sqlite3_close(*db);
    *db = NULL;
    return code;
}

static int copy_file(const char *from, const char *to)
{
    char buf[65536];
    ssize_t n = -1;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = in < 0 ? -1 : open(to, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    while (out >= 0 && (n = read(in, buf, sizeof buf)) > 0)
        if (write(out, buf, (size_t)n) != n) {
            n = -1;
            break;
        }
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out))
        n = -1;
    return n == 0 ? 0 : -EIO;
}

/* The copy's log is folded in and its files unlinked at once: nothing is left behind. */
static int open_copy(const char *path, const char *log, sqlite3 **db)
{
    char dir[512], file[530], file_log[540];
    if (nrg_temp_folder(dir, sizeof dir, "nrg-read"))
        return SQLITE_CANTOPEN;
    snprintf(file, sizeof file, "%s/copy", dir);
    snprintf(file_log, sizeof file_log, "%s-wal", file);
    int code = SQLITE_CANTOPEN;
    if (!copy_file(path, file) && !copy_file(log, file_log))
        code = try_open(file, SQLITE_OPEN_READWRITE, db);
    if (code == SQLITE_OK)
        sqlite3_exec(*db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    unlink(file_log);
    unlink(file);
    rmdir(dir);
    return code;
}

int nrg_database_open(const char *path, sqlite3 **db)
{
    char log[4200], uri[4300];
    struct stat st;
    int code = try_open(path, SQLITE_OPEN_READWRITE, db);
    if (code != SQLITE_OK)
        code = try_open(path, SQLITE_OPEN_READONLY, db);
    if (code == SQLITE_OK)
        return code;
    snprintf(log, sizeof log, "%s-wal", path);
    if (!stat(log, &st) && st.st_size > 0)
        return open_copy(path, log, db);
    if (strpbrk(path, "?#%"))
        return code;
    snprintf(uri, sizeof uri, "file:%s?immutable=1", path);
    return try_open(uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, db);
}

void nrg_database_remove(const char *path)
{
    char side[4200];
    unlink(path);
    snprintf(side, sizeof side, "%s-wal", path);
    unlink(side);
    snprintf(side, sizeof side, "%s-shm", path);
    unlink(side);
}

int nrg_database_open_writable(const char *path, const char *first, sqlite3 **db)
{
    static const char pragmas[] =
        "PRAGMA page_size=1024; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA cache_size=-256;"
        "PRAGMA temp_store=MEMORY;";
    int rc = sqlite3_open_v2(
        path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_busy_timeout(*db, 2000);
        rc = sqlite3_exec(*db, first, NULL, NULL, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(*db, pragmas, NULL, NULL, NULL);
    }
    return rc;
}

/* SQLite answers with the mode that the database is in now. */
bool nrg_database_set_journal(sqlite3 *db, const char *mode)
{
    char text[48];
    sqlite3_stmt *stmt = NULL;
    snprintf(text, sizeof text, "PRAGMA journal_mode=%s", mode);
    bool done = sqlite3_prepare_v2(db, text, -1, &stmt, NULL) == SQLITE_OK &&
                sqlite3_step(stmt) == SQLITE_ROW &&
                !sqlite3_stricmp((const char *)sqlite3_column_text(stmt, 0), mode);
    sqlite3_finalize(stmt);
    return done;
}

/* In other modes than WAL a commit has synced what it wrote. */
int nrg_database_sync(sqlite3 *db)
{
    sqlite3_file *log = NULL;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (code == SQLITE_OK && log && log->pMethods)
        code = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    return code;
}

int nrg_database_create_schema(sqlite3 *db)
{
    char ids[96], revision[64];
    snprintf(revision, sizeof revision, "INSERT INTO meta VALUES('revision', %d)",
             NRG_FORMAT_REVISION);
    snprintf(ids, sizeof ids, "PRAGMA application_id=%d; PRAGMA user_version=%d;",
             NRG_FORMAT_APPLICATION_ID, NRG_FORMAT_VERSION);
    int rc = sqlite3_exec(db, ids, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, nrg_format_schema, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, revision, NULL, NULL, NULL);
    return rc == SQLITE_OK ? sqlite3_exec(db, nrg_format_spans, NULL, NULL, NULL) : rc;
}

/*
 * See database.h. A killed recorder leaves its log beside the file, and the log may hold all of
 * the recording. SQLite replays it when it may write; it can read it in place when the index file
 * of the log is there too. Where neither is so (two files copied to a read-only place), both are
 * copied to the temporary folder and replayed there. Only a file without a log is opened as it
 * is, with no thought of one.
 */
#include "record/database.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int64_t nrg_database_number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s = NULL;
    int64_t value = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        value = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return value;
}

/* Opens and looks at the first page: only then does SQLite tell. */
static int try_open(const char *path, int flags, sqlite3 **db)
{
    int code = sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK && nrg_database_number(*db, "PRAGMA schema_version") < 0)
        code = sqlite3_errcode(*db);
    if (code == SQLITE_OK || code == SQLITE_NOTADB)
        return SQLITE_OK; /* what it is instead, the caller says better */
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
    const char *folder = getenv("TMPDIR");
    char dir[512], file[530], file_log[540];
    snprintf(dir, sizeof dir, "%.480s/nrg-read-XXXXXX", folder && *folder ? folder : "/tmp");
    if (!mkdtemp(dir))
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

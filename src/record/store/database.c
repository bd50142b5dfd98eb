/*
 * See database.h. A killed recorder leaves its log beside the file, and the log may hold all of the
 * recording: source.h reads it in place. A journal, which recorders leave where there is no log,
 * has to be rolled back, and that is done on a copy. Readers never write beside the file.
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
#include "base/read_at.h"
#include "base/temp.h"
#include "record/format.h"
#include "record/store/beside.h"
#include "record/store/guard.h"
#include "record/store/source.h"
#include "record/store/target.h"
#include "record/store/vfs.h"

#define COPY_MOST (INT64_C(4) << 30)

int nrg_database_errno(int code)
{
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_FULL:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EIO;
    default:
        return -EBADMSG;
    }
}

int nrg_database_integer(sqlite3 *db, const char *sql, int64_t *value)
{
    sqlite3_stmt *s = NULL;
    nrg_guard_statement(db);
    int code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(s);
    if (code == SQLITE_ROW)
        *value = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return code == SQLITE_ROW ? 0 : code == SQLITE_DONE ? -ENODATA : nrg_database_errno(code);
}

int64_t nrg_database_number(sqlite3 *db, const char *sql)
{
    int64_t value;
    return nrg_database_integer(db, sql, &value) ? -1 : value;
}

void nrg_database_text(sqlite3_stmt *s, int column, char *dst, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    nrg_copy_clean(dst, size, text ? text : "", text ? (size_t)sqlite3_column_bytes(s, column) : 0);
}

static int query_failed(sqlite3 *db, const char *path, int code, struct nrg_error *err)
{
    int rc = nrg_database_errno(code);
    return rc == -EBADMSG
               ? nrg_fail(err, rc, path, "the recording is damaged: %s", sqlite3_errmsg(db))
               : nrg_fail(err, rc, path, "cannot be read: %s", sqlite3_errmsg(db));
}

int nrg_database_each(sqlite3 *db, const char *path, const char *sql,
                      int (*each)(void *arg, sqlite3_stmt *row), void *arg, struct nrg_error *err)
{
    sqlite3_stmt *s = NULL;
    int64_t rows_left = nrg_guard_statement(db);
    int code = sqlite3_prepare_v2(db, sql, -1, &s, NULL), rc = 0;
    while (!rc && rows_left-- > 0 && (code == SQLITE_OK || code == SQLITE_ROW)) {
        code = sqlite3_step(s);
        rc = code == SQLITE_ROW ? each(arg, s) : 0;
    }
    if (rc)
        nrg_fail(err, rc, path, "out of memory");
    else if (code == SQLITE_ROW)
        rc = nrg_fail(err, -EBADMSG, path, "the recording is damaged: more rows than fit into it");
    else if (code != SQLITE_DONE)
        rc = query_failed(db, path, code, err);
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

static int copy_bytes(int in, const char *to, int64_t bytes)
{
    char buf[65536];
    int64_t at = 0;
    int out = open(to, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    ssize_t n = out < 0 ? -1 : 1;
    while (n > 0 && at < bytes) {
        n = nrg_read_at(in, buf, sizeof buf, at);
        if (n > 0 && write(out, buf, (size_t)n) != n)
            n = -1;
        at += n;
    }
    if (out >= 0 && close(out))
        n = -1;
    return n < 0 ? -EIO : 0;
}

/* SQLite would delete the file that is named at the end of such a journal. */
static bool names_another(const struct nrg_beside *journal)
{
    static const uint8_t magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    uint8_t end[8];
    return journal->bytes < 8 || nrg_read_at(journal->fd, end, 8, journal->bytes - 8) != 8 ||
           !memcmp(end, magic, 8);
}

/* A recorder that holds the file has the journal in use; an empty head means that it is done. */
static bool is_left_behind(int fd, const struct nrg_beside *journal)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = NRG_SQLITE_RESERVED_BYTE, .l_len = 1};
    uint8_t head = 0;
    ssize_t n = nrg_read_at(journal->fd, &head, 1, 0);
    if (n == 0 || (n == 1 && !head))
        return false;
    return fcntl(fd, F_OFD_GETLK, &lock) || lock.l_type == F_UNLCK;
}

/* Rolls back on a copy in a folder of our own, whose files are unlinked at once. */
static int roll_back_copy(const char *path, int fd, int64_t bytes, const struct nrg_beside *journal,
                          int *copy, struct nrg_error *err)
{
    char dir[512], file[530], file_journal[540];
    sqlite3 *db = NULL;
    if (names_another(journal) || bytes > COPY_MOST || journal->bytes > COPY_MOST)
        return nrg_fail(err, -EBADMSG, path,
                        "the journal beside it is none of nrg's: copy the recording alone");
    if (nrg_temp_folder(dir, sizeof dir, "nrg-read"))
        return nrg_fail(err, -EIO, nrg_temp_dir(), "cannot make a folder in it");
    snprintf(file, sizeof file, "%s/copy", dir);
    snprintf(file_journal, sizeof file_journal, "%s" NRG_BESIDE_JOURNAL, file);
    int rc = copy_bytes(fd, file, bytes);
    rc = rc ? rc : copy_bytes(journal->fd, file_journal, journal->bytes);
    if (!rc &&
        sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK)
        nrg_database_number(db, "PRAGMA schema_version");
    sqlite3_close(db);
    *copy = rc ? -1 : open(file, O_RDONLY | O_CLOEXEC);
    unlink(file_journal);
    unlink(file);
    rmdir(dir);
    return *copy < 0 ? nrg_fail(err, -EIO, path, "its journal can't be applied to a copy") : 0;
}

/* Replaces *fd by that of a copy when a killed recorder has left a journal. */
static int settle_journal(const char *path, int *fd, struct nrg_error *err)
{
    struct nrg_beside journal;
    struct stat st;
    int copy = -1;
    if (fstat(*fd, &st))
        return nrg_fail(err, -errno, path, "%s", strerror(errno));
    int rc = nrg_beside_open(path, NRG_BESIDE_JOURNAL, st.st_uid, &journal, err);
    if (rc || journal.fd < 0)
        return rc;
    if (is_left_behind(*fd, &journal))
        rc = roll_back_copy(path, *fd, st.st_size, &journal, &copy, err);
    close(journal.fd);
    if (copy >= 0) {
        close(*fd);
        *fd = copy;
    }
    return rc;
}

static int open_file(const char *path, int *fd, struct nrg_error *err)
{
    struct stat st;
    *fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*fd < 0)
        return nrg_fail(err, -errno, path, "%s", strerror(errno));
    int rc = fstat(*fd, &st) ? nrg_fail(err, -errno, path, "%s", strerror(errno)) : 0;
    if (!rc && !S_ISREG(st.st_mode))
        rc = nrg_fail(err, -EINVAL, path, "is not a regular file");
    if (!rc && !st.st_size)
        rc = nrg_fail(err, -ENODATA, path, "is empty");
    if (rc)
        close(*fd);
    return rc;
}

/* A file and the log of another would make a recording that nobody wrote. */
static bool is_same_file(int fd, const char *path)
{
    struct stat st, at;
    return !fstat(fd, &st) && !stat(path, &at) && st.st_dev == at.st_dev && st.st_ino == at.st_ino;
}

int nrg_database_open(const char *path, sqlite3 **db, struct nrg_error *err)
{
    int fd;
    *db = NULL;
    int rc = open_file(path, &fd, err);
    if (rc)
        return rc;
    char *real = realpath(path, NULL); /* logs lie beside the file, not beside a link to it */
    if (real && !is_same_file(fd, real))
        rc = nrg_fail(err, -EAGAIN, path, "was replaced while it was opened: try again");
    if (!rc)
        rc = settle_journal(real ? real : path, &fd, err);
    if (rc)
        close(fd);
    else
        rc = nrg_source_open(real ? real : path, fd, db, err);
    free(real);
    if (!rc && (rc = nrg_guard_set(*db, path, err))) {
        sqlite3_close(*db);
        *db = NULL;
    }
    return rc;
}

void nrg_database_remove(const char *path)
{
    static const char *const suffixes[] = {"", NRG_BESIDE_LOG, NRG_BESIDE_INDEX,
                                           NRG_BESIDE_JOURNAL};
    char side[4200];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(side, sizeof side, "%s%s", path, suffixes[i]);
        if (nrg_beside_is_own(side))
            unlink(side);
    }
}

int nrg_database_open_writable(const char *path, const char *first, sqlite3 **db)
{
    static const char pragmas[] =
        "PRAGMA page_size=1024; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA cache_size=-256;"
        "PRAGMA temp_store=MEMORY;";
    int rc = nrg_target_open(path, first, db);
    if (rc == SQLITE_OK) {
        sqlite3_busy_timeout(*db, 2000);
        nrg_guard_writer(*db);
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

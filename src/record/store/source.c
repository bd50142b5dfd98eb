/*
 * See source.h. SQLite's files of version 1 have no shared memory; with locking_mode=EXCLUSIVE it
 * then keeps the index of a log on its heap. That is what makes reading a log free of writing.
 *
 * Locks are of open files (F_OFD): they agree with those that SQLite takes in the recorder, and
 * closing another descriptor of the same file does not drop them.
 */
#include "record/store/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/read_at.h"
#include "record/store/beside.h"
#include "record/store/vfs.h"

#define FCNTL_BUDGET 0x4e5247 /* ours: hands out the budget */

/* In SQLite's index of a log, see wal.html there. */
#define INDEX_READER_0 123 /* held: no page goes from the log into the file */
#define INDEX_READERS  2   /* with reader 1 held, the log does not begin anew */

#define LOCK_TRIES 200
#define LOCK_PAUSE (10 * NRG_NS_PER_MS)

struct source {
    struct nrg_vfs vfs; /* first: SQLite hands it back */
    struct nrg_source_budget budget;
    int fd, index_fd;
    struct nrg_beside log;
    bool has_log; /* the file is in the mode of logs, or a log is there */
};

struct source_file {
    sqlite3_file base;
    struct source *source;
    int fd;    /* -1: an empty file */
    bool main; /* the recording itself */
};

static bool set_lock(int fd, short type, off_t start, off_t len)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
    /* File systems without locks are read without. */
    return !fcntl(fd, F_OFD_SETLK, &lock) || (errno != EAGAIN && errno != EACCES);
}

/* As SQLite does it: the pending byte shows whether a writer waits for readers to go. */
static bool try_share(int fd)
{
    bool done = set_lock(fd, F_RDLCK, NRG_SQLITE_PENDING_BYTE, 1) &&
                set_lock(fd, F_RDLCK, NRG_SQLITE_SHARED_FIRST, NRG_SQLITE_SHARED_SIZE);
    set_lock(fd, F_UNLCK, NRG_SQLITE_PENDING_BYTE, 1);
    return done;
}

static bool try_hold_log(int index_fd)
{
    return set_lock(index_fd, F_RDLCK, INDEX_READER_0, INDEX_READERS);
}

static int wait_for(bool (*try)(int fd), int fd)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE};
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (try(fd))
            return 0;
        nanosleep(&pause, NULL);
    }
    return -EBUSY;
}

static int file_close(sqlite3_file *file)
{
    (void)file; /* descriptors are the source's */
    return SQLITE_OK;
}

static int file_read(sqlite3_file *file, void *to, int amount, sqlite3_int64 offset)
{
    const struct source_file *f = (const struct source_file *)file;
    ssize_t n = f->fd >= 0 ? nrg_read_at(f->fd, to, (size_t)amount, offset) : 0;
    if (n < 0)
        return SQLITE_IOERR_READ;
    memset((char *)to + n, 0, (size_t)(amount - n));
    return n < amount ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int file_write(sqlite3_file *file, const void *from, int amount, sqlite3_int64 offset)
{
    (void)file, (void)from, (void)amount, (void)offset;
    return SQLITE_READONLY;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    (void)file, (void)size;
    return SQLITE_READONLY;
}

static int file_sync(sqlite3_file *file, int flags)
{
    (void)file, (void)flags;
    return SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    const struct source_file *f = (const struct source_file *)file;
    struct stat st = {0};
    if (f->fd >= 0 && fstat(f->fd, &st))
        return SQLITE_IOERR_FSTAT;
    *size = st.st_size;
    return SQLITE_OK;
}

/* With a log the file was locked when it was opened; SQLite's wish to have it alone is granted. */
static int file_lock(sqlite3_file *file, int level)
{
    const struct source_file *f = (const struct source_file *)file;
    if (!f->main || f->source->has_log)
        return SQLITE_OK;
    if (level > SQLITE_LOCK_SHARED)
        return SQLITE_READONLY;
    return wait_for(try_share, f->fd) ? SQLITE_BUSY : SQLITE_OK;
}

static int file_unlock(sqlite3_file *file, int level)
{
    const struct source_file *f = (const struct source_file *)file;
    if (f->main && !f->source->has_log && level == SQLITE_LOCK_NONE)
        set_lock(f->fd, F_UNLCK, NRG_SQLITE_SHARED_FIRST, NRG_SQLITE_SHARED_SIZE);
    return SQLITE_OK;
}

static int file_reserved(sqlite3_file *file, int *reserved)
{
    (void)file;
    *reserved = 0;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int op, void *arg)
{
    const struct source_file *f = (const struct source_file *)file;
    if (op != FCNTL_BUDGET)
        return SQLITE_NOTFOUND;
    *(struct nrg_source_budget **)arg = &f->source->budget;
    return SQLITE_OK;
}

static int file_sector(sqlite3_file *file)
{
    (void)file;
    return 0;
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 1,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_sector,
};

/* Journals and temporary files there are none. */
static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *given)
{
    struct source *s = (struct source *)vfs;
    struct source_file *f = (struct source_file *)file;
    (void)name;
    bool main = flags & SQLITE_OPEN_MAIN_DB;
    *f = (struct source_file){.source = s, .main = main, .fd = main ? s->fd : s->log.fd};
    if (!main && !(flags & SQLITE_OPEN_WAL))
        return SQLITE_CANTOPEN;
    f->base.pMethods = &file_methods;
    if (given)
        *given = SQLITE_OPEN_READONLY;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs, (void)name, (void)sync;
    return SQLITE_IOERR_DELETE;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    const struct source *s = (const struct source *)vfs;
    size_t len = strlen(name), end = strlen(NRG_BESIDE_LOG);
    *out = flags == SQLITE_ACCESS_EXISTS && s->log.fd >= 0 && len > end &&
           !strcmp(name + len - end, NRG_BESIDE_LOG);
    return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
    (void)vfs;
    return snprintf(out, (size_t)size, "%s", name) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int vfs_random(sqlite3_vfs *vfs, int n, char *out)
{
    sqlite3_vfs *system = ((struct nrg_vfs *)vfs)->system;
    return system->xRandomness(system, n, out);
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
    sqlite3_vfs *system = ((struct nrg_vfs *)vfs)->system;
    return system->xSleep(system, us);
}

static int vfs_time(sqlite3_vfs *vfs, double *julian)
{
    sqlite3_vfs *system = ((struct nrg_vfs *)vfs)->system;
    return system->xCurrentTime(system, julian);
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void release_source(struct nrg_vfs *vfs)
{
    struct source *s = (struct source *)vfs;
    close_fd(s->fd);
    close_fd(s->index_fd);
    close_fd(s->log.fd);
    free(s);
}

static struct source *new_source(int fd)
{
    struct source *s = calloc(1, sizeof *s);
    if (!s) {
        close(fd);
        return NULL;
    }
    s->fd = fd;
    s->index_fd = s->log.fd = -1;
    s->vfs.vfs = (sqlite3_vfs){.iVersion = 1,
                               .szOsFile = sizeof(struct source_file),
                               .mxPathname = 4200,
                               .xOpen = vfs_open,
                               .xDelete = vfs_delete,
                               .xAccess = vfs_access,
                               .xFullPathname = vfs_full_path,
                               .xRandomness = vfs_random,
                               .xSleep = vfs_sleep,
                               .xCurrentTime = vfs_time};
    nrg_vfs_init(&s->vfs, sqlite3_vfs_find(NULL), release_source);
    return s;
}

/* The log, if there is one, and what keeps it as it is. The file is locked first: then no recorder
 * can end and take its log away. */
static int find_log(struct source *s, const char *path, struct nrg_error *err)
{
    struct stat st;
    struct nrg_beside index = {.fd = -1};
    uint8_t mode = 0;
    if (fstat(s->fd, &st))
        return nrg_fail(err, -errno, path, "%s", strerror(errno));
    if (wait_for(try_share, s->fd))
        return nrg_fail(err, -EBUSY, path, "is locked by another program: try again later");
    int rc = nrg_beside_open(path, NRG_BESIDE_LOG, st.st_uid, &s->log, err);
    s->has_log = s->log.fd >= 0 || (pread(s->fd, &mode, 1, 18) == 1 && mode == 2);
    if (!rc && s->has_log)
        rc = nrg_beside_open(path, NRG_BESIDE_INDEX, st.st_uid, &index, err);
    s->index_fd = index.fd;
    if (!rc && index.fd >= 0 && wait_for(try_hold_log, index.fd))
        rc = nrg_fail(err, -EBUSY, path, "its log is locked by another program: try again later");
    if (!rc && index.fd >= 0 && s->log.fd < 0)
        rc = nrg_beside_open(path, NRG_BESIDE_LOG, st.st_uid, &s->log, err); /* it grew just now */
    if (!s->has_log)
        set_lock(s->fd, F_UNLCK, NRG_SQLITE_SHARED_FIRST, NRG_SQLITE_SHARED_SIZE);
    s->budget.bytes = st.st_size + s->log.bytes;
    return rc;
}

int nrg_source_open(const char *path, int fd, sqlite3 **db, struct nrg_error *err)
{
    struct source *s = new_source(fd);
    *db = NULL;
    if (!s)
        return nrg_fail(err, -ENOMEM, path, "out of memory");
    int rc = find_log(s, path, err);
    if (rc) {
        release_source(&s->vfs);
        return rc;
    }
    int code = nrg_vfs_open(&s->vfs, path, SQLITE_OPEN_READONLY,
                            s->has_log ? "PRAGMA locking_mode=EXCLUSIVE" : "", db);
    if (code == SQLITE_OK)
        return 0;
    return nrg_fail(err, code == SQLITE_NOMEM ? -ENOMEM : -EIO, path, "cannot open: %s",
                    sqlite3_errstr(code));
}

struct nrg_source_budget *nrg_source_budget(sqlite3 *db)
{
    struct nrg_source_budget *budget = NULL;
    return sqlite3_file_control(db, NULL, FCNTL_BUDGET, &budget) == SQLITE_OK ? budget : NULL;
}

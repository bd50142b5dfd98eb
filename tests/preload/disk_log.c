/*
 * LD_PRELOAD for tests: writes down what a program does to the files of one folder, NRG_TEST_DISK,
 * in the order in which it does it, into the file NRG_TEST_DISK_LOG. tests/cli/disk_model.py makes
 * of it what a disk may show after a power cut.
 *
 * A record is a line "t_ns operation arguments\n", after a write with its bytes. One lock is held
 * for the operation and its record, so that the order in the log is the true one. What is written
 * through memory maps (FILE-shm) is not seen. With NRG_TEST_SYNCS syncs fail after that many.
 */
#undef _FILE_OFFSET_BITS /* both names of each call are defined here */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FD = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char known[MAX_FD]; /* descriptors of files in the folder, or of itself */
static int log_fd = -1, n_syncs;

/* The name within the folder, "." for itself, NULL for what is elsewhere. */
static const char *inside(const char *path)
{
    const char *disk = getenv("NRG_TEST_DISK");
    size_t n = disk ? strlen(disk) : 0;
    if (!n || !path || strncmp(path, disk, n))
        return NULL;
    return !path[n] ? "." : path[n] == '/' ? path + n + 1 : NULL;
}

static int is_known(int fd)
{
    return fd >= 0 && fd < MAX_FD && known[fd];
}

/* The caller holds the lock. */
__attribute__((format(printf, 3, 4))) static void put(const void *bytes, size_t size,
                                                      const char *fmt, ...)
{
    char line[5000];
    struct timespec ts;
    int kept = errno;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    int n = snprintf(line, sizeof line, "%lld ", (long long)ts.tv_sec * 1000000000 + ts.tv_nsec);
    va_list ap;
    va_start(ap, fmt);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    line[n++] = '\n';
    if (log_fd < 0)
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, getenv("NRG_TEST_DISK_LOG"),
                              O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
    if (syscall(SYS_write, log_fd, line, (size_t)n) != n ||
        (size && syscall(SYS_write, log_fd, bytes, size) != (long)size))
        abort();
    errno = kept;
}

static int do_open(int dir, const char *path, int flags, mode_t mode)
{
    const char *name = inside(path);
    if (!name) /* without the lock: a child after fork could find it taken */
        return (int)syscall(SYS_openat, dir, path, flags, mode);
    pthread_mutex_lock(&lock);
    int fd = (int)syscall(SYS_openat, dir, path, flags, mode);
    if (fd >= 0 && fd < MAX_FD) {
        known[fd] = 1;
        if ((flags & O_TMPFILE) == O_TMPFILE)
            put(NULL, 0, "anonymous %d", fd);
        else
            put(NULL, 0, "open %d %d %s", fd, flags & O_TRUNC ? 1 : 0, name);
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

static mode_t mode_of(int flags, va_list ap)
{
    return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(ap, int) : 0;
}

/* `...` is what comes before the path. */
#define OPEN(name, dir, ...)                                                                       \
    int name(__VA_ARGS__ const char *path, int flags, ...);                                        \
    int name(__VA_ARGS__ const char *path, int flags, ...)                                         \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        mode_t mode = mode_of(flags, ap);                                                          \
        va_end(ap);                                                                                \
        return do_open(dir, path, flags, mode);                                                    \
    }
#define COMMA ,
OPEN(open, AT_FDCWD, )
OPEN(open64, AT_FDCWD, )
OPEN(openat, dir, int dir COMMA)
OPEN(openat64, dir, int dir COMMA)

int close(int fd)
{
    if (!is_known(fd))
        return (int)syscall(SYS_close, fd);
    pthread_mutex_lock(&lock);
    known[fd] = 0;
    put(NULL, 0, "close %d", fd);
    int rc = (int)syscall(SYS_close, fd);
    pthread_mutex_unlock(&lock);
    return rc;
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    if (!is_known(fd))
        return syscall(SYS_write, fd, bytes, size);
    pthread_mutex_lock(&lock);
    long long at = (long long)lseek(fd, 0, SEEK_CUR);
    ssize_t n = syscall(SYS_write, fd, bytes, size);
    if (n > 0)
        put(bytes, (size_t)n, "write %d %lld %zd", fd, at, n);
    pthread_mutex_unlock(&lock);
    return n;
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at)
{
    if (!is_known(fd))
        return syscall(SYS_pwrite64, fd, bytes, size, at);
    pthread_mutex_lock(&lock);
    ssize_t n = syscall(SYS_pwrite64, fd, bytes, size, at);
    if (n > 0)
        put(bytes, (size_t)n, "write %d %lld %zd", fd, (long long)at, n);
    pthread_mutex_unlock(&lock);
    return n;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at)
{
    return pwrite64(fd, bytes, size, at);
}

int ftruncate64(int fd, off64_t size)
{
    if (!is_known(fd))
        return (int)syscall(SYS_ftruncate, fd, size);
    pthread_mutex_lock(&lock);
    int rc = (int)syscall(SYS_ftruncate, fd, size);
    if (!rc)
        put(NULL, 0, "truncate %d %lld", fd, (long long)size);
    pthread_mutex_unlock(&lock);
    return rc;
}

int ftruncate(int fd, off_t size)
{
    return ftruncate64(fd, size);
}

static int do_sync(int fd, long number)
{
    if (!is_known(fd))
        return (int)syscall(number, fd);
    const char *most = getenv("NRG_TEST_SYNCS");
    pthread_mutex_lock(&lock);
    int rc = (int)syscall(number, fd);
    if (!rc)
        put(NULL, 0, "sync %d", fd);
    if (most && n_syncs++ >= atoi(most)) {
        errno = EIO;
        rc = -1;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int fsync(int fd)
{
    return do_sync(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return do_sync(fd, SYS_fdatasync);
}

int unlink(const char *path)
{
    const char *name = inside(path);
    pthread_mutex_lock(&lock);
    int rc = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (!rc && name)
        put(NULL, 0, "unlink %s", name);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* From a name, or from the descriptor of an anonymous file. */
int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    const char *self = "/proc/self/fd/", *name = inside(to), *old = inside(from);
    pthread_mutex_lock(&lock);
    int rc = (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
    if (!rc && name && !strncmp(from, self, strlen(self)))
        put(NULL, 0, "name %s %s", from + strlen(self), name);
    else if (!rc && name && old)
        put(NULL, 0, "link %s %s", old, name);
    pthread_mutex_unlock(&lock);
    return rc;
}

int link(const char *from, const char *to)
{
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    const char *old = inside(from), *name = inside(to);
    pthread_mutex_lock(&lock);
    int rc = (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
    if (!rc && old && name)
        put(NULL, 0, "rename %s %s", old, name);
    pthread_mutex_unlock(&lock);
    return rc;
}

int rename(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

/*
 * LD_PRELOAD for tests: a disk that fails while it is written to. Once the file NRG_TEST_BROKEN is
 * there, writing and syncing files below NRG_TEST_DISK fails with NRG_TEST_ERRNO, and reading them,
 * too, with NRG_TEST_READS.
 */
#undef _FILE_OFFSET_BITS /* both names of the calls are defined here */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int is_broken(int fd)
{
    char link[64], path[4096];
    const char *disk = getenv("NRG_TEST_DISK"), *broken = getenv("NRG_TEST_BROKEN");
    const char *error = getenv("NRG_TEST_ERRNO");
    int kept = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n =
        disk && broken && !access(broken, F_OK) ? readlink(link, path, sizeof path - 1) : -1;
    errno = kept;
    if (n < 0)
        return 0;
    path[n] = 0;
    if (strncmp(path, disk, strlen(disk)) != 0)
        return 0;
    errno = error ? atoi(error) : EIO;
    return 1;
}

static int is_unreadable(int fd)
{
    return getenv("NRG_TEST_READS") && is_broken(fd);
}

ssize_t write(int fd, const void *from, size_t n)
{
    return is_broken(fd) ? -1 : syscall(SYS_write, fd, from, n);
}

ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at)
{
    return is_broken(fd) ? -1 : syscall(SYS_pwrite64, fd, from, n, at);
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
    return pwrite64(fd, from, n, at);
}

ssize_t read(int fd, void *to, size_t n)
{
    return is_unreadable(fd) ? -1 : syscall(SYS_read, fd, to, n);
}

ssize_t pread64(int fd, void *to, size_t n, off64_t at)
{
    return is_unreadable(fd) ? -1 : syscall(SYS_pread64, fd, to, n, at);
}

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
    return pread64(fd, to, n, at);
}

int fsync(int fd)
{
    return is_broken(fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return is_broken(fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

/*
 * LD_PRELOAD for tests: a file whose reading takes long, as it does on a slow bus or a busy
 * machine. pread of files whose path contains NRG_TEST_SLOW takes NRG_TEST_SLOW_MS, before or after
 * the value is taken, in turn.
 */
#undef _FILE_OFFSET_BITS /* both names of the call are defined here */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static unsigned n_slow;

static int is_slow(int fd)
{
    char link[64], path[4096];
    const char *slow = getenv("NRG_TEST_SLOW");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = slow ? readlink(link, path, sizeof path - 1) : -1;
    if (n < 0)
        return 0;
    path[n] = 0;
    return strstr(path, slow) != NULL;
}

static void wait_ms(int slow)
{
    const char *text = getenv("NRG_TEST_SLOW_MS");
    const struct timespec ts = {.tv_nsec = (text ? atol(text) : 0) * 1000000};
    if (slow)
        nanosleep(&ts, NULL);
}

ssize_t pread64(int fd, void *to, size_t n, off64_t at)
{
    int slow = is_slow(fd), later = slow && __atomic_fetch_add(&n_slow, 1, __ATOMIC_RELAXED) % 2;
    wait_ms(slow && !later);
    ssize_t got = syscall(SYS_pread64, fd, to, n, at);
    wait_ms(later);
    return got;
}

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
    return pread64(fd, to, n, at);
}

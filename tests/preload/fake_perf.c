/*
 * A kernel that lets CAP_PERFMON open perf's counters, and nobody else: preloaded by tests of nrg
 * doctor, in whose machines there is no energy PMU. What it opens has one reading.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PERFMON 38

typedef long function(long number, ...);

static int may_open(function *real)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
    return !real(SYS_capget, &head, sets) && sets[PERFMON / 32].effective >> PERFMON % 32 & 1;
}

long syscall(long number, ...)
{
    static const uint64_t reading[4] = {1000, 1000, 1000, 1000};
    function *real = (function *)(intptr_t)dlsym(RTLD_NEXT, "syscall");
    long a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (number != SYS_perf_event_open)
        return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    int fd = may_open(real) ? memfd_create("perf", MFD_CLOEXEC) : -1;
    if (fd < 0 || write(fd, reading, sizeof reading) < 0)
        errno = EACCES;
    return fd;
}

/* See clock.h. */
#include "base/clock.h"

#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * NRG_NS_PER_S + ts.tv_nsec;
}

int64_t nrg_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t nrg_realtime_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

struct nrg_clock_pair nrg_clock_pair_now(int with_tsc)
{
    struct nrg_clock_pair pair = {0};
    int64_t before = nrg_now_ns();
    pair.real_ns = nrg_realtime_ns();
    pair.boot_ns = read_clock(CLOCK_BOOTTIME);
#if defined(__x86_64__)
    if (with_tsc)
        pair.tsc = __rdtsc();
#endif
    int64_t after = nrg_now_ns();
    pair.mono_ns = before + (after - before) / 2;
    return pair;
}

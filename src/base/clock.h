/*
 * Time. Everything in nrg is CLOCK_MONOTONIC in ns; a pair ties it to the wall clock (and to the
 * TSC where that is the kernel's clock source) so that logs of other programs can be placed. It
 * stands still while the machine is suspended; the time since boot does not.
 */
#ifndef NRG_BASE_CLOCK_H
#define NRG_BASE_CLOCK_H

#include <stdint.h>

#define NRG_NS_PER_S  INT64_C(1000000000)
#define NRG_NS_PER_MS INT64_C(1000000)

struct nrg_clock_pair {
    int64_t mono_ns;
    int64_t real_ns;
    int64_t boot_ns;
    uint64_t tsc; /* 0: not the clock source here */
};

int64_t nrg_now_ns(void);
int64_t nrg_realtime_ns(void);

/* Reads monotonic before and after realtime and keeps the middle. `with_tsc`: where the TSC is the
 * kernel's clock source, reads it, too. */
struct nrg_clock_pair nrg_clock_pair_now(int with_tsc);

#endif

/*
 * How often what was read goes to the writer. Often while a recording is young: a program that is
 * killed in its first second should leave what it read. Later each commit costs more than it saves;
 * where little is read, a commit is most of what a recording costs.
 *
 * Values only: no ownership, no errors. Threads: set before the threads that read it start.
 */
#ifndef NRG_RECORD_PACE_H
#define NRG_RECORD_PACE_H

#include "base/clock.h"

struct nrg_pace {
    int64_t begin_ns;  /* of the recording */
    int64_t period_ns; /* once it is no longer young */
};

#define NRG_PACE_YOUNG_NS        NRG_NS_PER_S
#define NRG_PACE_FIRST_NS        (100 * NRG_NS_PER_MS)
#define NRG_PACE_SLOW_NS         (3 * NRG_NS_PER_S) /* at NRG_PACE_SLOW_HZ, without spans */
#define NRG_PACE_SLOW_HZ         2.0
#define NRG_PACE_STEADY_NS       NRG_NS_PER_S
#define NRG_PACE_DURABLE_NS      (400 * NRG_NS_PER_MS)
#define NRG_PACE_SYNC_NS         (2500 * NRG_NS_PER_MS) /* so every third commit is synced */
#define NRG_PACE_SLOW_SYNC_NS    (900 * NRG_NS_PER_MS)  /* so every one is, from one second on */
#define NRG_PACE_DURABLE_SYNC_NS (200 * NRG_NS_PER_MS)  /* so every one is, but not in a burst */

/* Until the next time, from now_ns on. NULL: a recording that is no longer young. */
static inline int64_t nrg_pace_period(const struct nrg_pace *pace, int64_t now_ns)
{
    if (!pace)
        return NRG_PACE_STEADY_NS;
    return now_ns - pace->begin_ns < NRG_PACE_YOUNG_NS ? NRG_PACE_FIRST_NS : pace->period_ns;
}

#endif

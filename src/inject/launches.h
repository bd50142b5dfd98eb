/*
 * Which thread launched what, and when, by CUPTI's correlation ids, which count up through a
 * process. The last 262,144 calls are kept; work is asked for about half a second after it was
 * done, so that more calls than that would have to be made in between.
 */
#ifndef NRG_INJECT_LAUNCHES_H
#define NRG_INJECT_LAUNCHES_H

#include <stdbool.h>
#include <stdint.h>

#define NRG_LAUNCHES (1u << 18)

struct nrg_launch {
    uint32_t correlation; /* 0: none */
    int32_t tid;
    int64_t t_ns;
};

/* `launches` has NRG_LAUNCHES entries. A call of the runtime wins over the driver's inside of it.
 */
static inline void nrg_launch_keep(struct nrg_launch *launches, struct nrg_launch launch)
{
    launches[launch.correlation & (NRG_LAUNCHES - 1)] = launch;
}

/* NULL: not known (any more). */
static inline const struct nrg_launch *nrg_launch_find(const struct nrg_launch *launches,
                                                       uint32_t correlation)
{
    const struct nrg_launch *at = &launches[correlation & (NRG_LAUNCHES - 1)];
    return correlation && at->correlation == correlation ? at : NULL;
}

/* Which context a call waited for. The last ones are kept; calls that wait are few. */
#define NRG_SYNCS (1u << 16)

struct nrg_sync {
    uint32_t correlation; /* 0: none */
    uint32_t context;
};

/* `syncs` has NRG_SYNCS entries. It may be another call's. */
static inline struct nrg_sync *nrg_sync_at(struct nrg_sync *syncs, uint32_t correlation)
{
    return &syncs[correlation & (NRG_SYNCS - 1)];
}

#endif

/*
 * Energy so far, while a recorder runs: for programs that measure until they know enough. The sum
 * is over the channels that a report's total would add (energy/domains.c decides that for
 * recordings): energy counters, or power where there is no counter of that name, not wide and not
 * contained in another; the widest meter where there is nothing else or nothing with the
 * processors.
 *
 * Counters are unwrapped by their range; power is integrated by trapezoids. No corrections of lag
 * and no checks of odd steps: results come from the recording, this is for deciding when to stop.
 *
 * Rows come from the threads that read sensors; it has a lock of its own.
 */
#ifndef NRG_RECORD_LIVE_H
#define NRG_RECORD_LIVE_H

#include <pthread.h>

#include "sensors/driver.h"

struct nrg_live_channel {
    const struct nrg_found *found;
    const struct nrg_channel *channel;
    unsigned column; /* within its group */
    bool counted;
    int64_t raw, t_ns; /* of the last reading; NRG_MISSING before the first */
    double energy_j;
};

struct nrg_live {
    pthread_mutex_t lock;
    struct nrg_live_channel *channels;
    size_t n, cap;
};

void nrg_live_init(struct nrg_live *live);
void nrg_live_release(struct nrg_live *live);
/* For each sensor that was opened, then choose. 0 or -ENOMEM. */
int nrg_live_add(struct nrg_live *live, const struct nrg_found *found);
void nrg_live_choose(struct nrg_live *live);

void nrg_live_row(struct nrg_live *live, const struct nrg_found *found, unsigned group,
                  int64_t t_ns, const int64_t *raw);

/* Since the first readings. -ENODATA: no channel gives energy, or none has been read. */
struct nrg_live_sum {
    double energy_j;
    int64_t t_ns; /* of the latest reading */
    enum nrg_provenance provenance;
};
int nrg_live_energy(struct nrg_live *live, struct nrg_live_sum *sum);

#endif

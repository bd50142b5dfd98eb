/*
 * Energy so far, while a recorder runs, for programs that measure until they know enough. It is
 * the total of a report if the run ended at the latest reading: the same rules say which channels
 * are added (sensors/total.h), what a counter's step is and where a gauge has a gap
 * (sensors/integrate.h). What a report fills in before the first reading of a slow counter and
 * after its last one (energy/timeline.h) is not in it: the next reading brings it.
 *
 * A run is kept as sums, not as readings, so hours cost no memory. A gauge with an unknown update
 * period is the exception: its first steps are kept until they show the period.
 *
 * Ownership: embedded: init, add for each sensor, begin, release. Errors: a negative errno.
 * Threads: any; rows come from the threads that read sensors, and it has a lock of its own.
 */
#ifndef NRG_RECORD_SAMPLER_LIVE_H
#define NRG_RECORD_SAMPLER_LIVE_H

#include <pthread.h>

#include "sensors/driver.h"

struct nrg_live_step {
    int64_t dt_ns; /* between the readings */
    int64_t covered_ns;
    double energy_j; /* in the run */
};

struct nrg_live_channel {
    const struct nrg_found *found;
    const struct nrg_channel *channel;
    unsigned column;    /* within its group */
    int64_t period_ns;  /* of reading or updating, whichever is slower */
    int64_t raw, t_ns;  /* of the last reading; NRG_MISSING before the first */
    int64_t edge_ns;    /* last reading before the run began, or else the first one */
    double edge_w;      /* its value, of a gauge */
    int64_t covered_ns; /* of the run, between readings */
    double energy_j;
    size_t still, moved; /* steps of a counter */
    double moved_j;
    bool lost;                   /* its register could not be read */
    struct nrg_live_step *steps; /* while the update period is unknown; NULL: it is known */
    size_t n_steps;
};

struct nrg_live {
    pthread_mutex_t lock;
    struct nrg_live_channel *channels;
    size_t n, cap;
    int64_t begin_ns; /* INT64_MAX: no run has begun */
};

void nrg_live_init(struct nrg_live *live);
void nrg_live_release(struct nrg_live *live);
/* For each sensor that was opened and is read every period_ns. 0 or -ENOMEM. */
int nrg_live_add(struct nrg_live *live, const struct nrg_found *found, int64_t period_ns);
/* A run begins: energy counts from then on. */
void nrg_live_begin(struct nrg_live *live, int64_t begin_ns);

void nrg_live_row(struct nrg_live *live, const struct nrg_found *found, unsigned group,
                  int64_t t_ns, const int64_t *raw);

/* In the run. -ENODATA: no channel gives energy, or none has been read. -ENOMEM. */
struct nrg_live_sum {
    double energy_j;
    int64_t t_ns; /* of the latest reading of what was added */
    enum nrg_provenance provenance;
};
int nrg_live_energy(struct nrg_live *live, struct nrg_live_sum *sum);

#endif

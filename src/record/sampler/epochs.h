/*
 * Counters that began anew: nrgd was restarted, a perf event was opened again. The new count has
 * nothing to do with the old one, and what was used between them is not known. A recording says
 * that as it always did, for every reader of every version: by a counter that falls. One that
 * begins anew above its last reading is therefore written lower, by as much as it takes.
 *
 * Ownership: embedded; init, release. 0 or -ENOMEM. One thread.
 */
#ifndef NRG_RECORD_SAMPLER_EPOCHS_H
#define NRG_RECORD_SAMPLER_EPOCHS_H

#include "sensors/driver.h"

struct nrg_count {
    bool seen, anew;
    int64_t last_raw; /* as it was written */
    int64_t moved_by;
};

struct nrg_epochs {
    const struct nrg_found *found;
    bool known; /* the driver says epochs */
    int64_t epoch;
    struct nrg_count *counts; /* of each channel */
    int64_t *row;             /* room for one */
};

int nrg_epochs_init(struct nrg_epochs *epochs, const struct nrg_found *found);
void nrg_epochs_release(struct nrg_epochs *epochs);

/* Before the rows of an epoch. True: counters that were read before begin anew. */
bool nrg_epochs_set(struct nrg_epochs *epochs, int64_t epoch);

/* A row of a group as it is to be written: `raw` itself, or one that stays until the next call. */
const int64_t *nrg_epochs_row(struct nrg_epochs *epochs, unsigned group, const int64_t *raw);

#endif

/*
 * A gauge that is read faster than it updates holds each value for several readings. Where the
 * driver does not say how often it updates (hwmon, other programs' logs), its readings may: values
 * change on a grid. Readings of one value are equal, or scatter by the noise of reading them.
 * Pure but for memory that is needed for a while.
 */
#ifndef NRG_ENERGY_HELD_H
#define NRG_ENERGY_HELD_H

#include "energy/timeline.h"

struct nrg_held {
    int64_t update_ns; /* how long a value is held; 0: none is, or not on a grid */
    double within_w;   /* readings of one value differ by no more from one to the next */
};

/* 0 or -ENOMEM. */
int nrg_held_find(const struct nrg_timeline *timeline, struct nrg_held *held);

#endif

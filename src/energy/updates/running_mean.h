/*
 * A gauge whose values are means of a longer time than there is between two of them: NVML's power
 * since Ampere, of one second, every 100 ms. What such a mean says of a run's two ends.
 *
 * Reads a timeline, keeps nothing.
 */
#ifndef NRG_ENERGY_UPDATES_RUNNING_MEAN_H
#define NRG_ENERGY_UPDATES_RUNNING_MEAN_H

#include "energy/timeline.h"

/* What is to be added to the sum of a gauge's readings in a run, and how far that may be off. */
struct nrg_mean_ends {
    double more_j, doubt_j;
};

/* Of a timeline whose values are means of mean_ns; NAN where readings do not reach the ends. */
struct nrg_mean_ends nrg_running_mean_ends(const struct nrg_timeline *timeline, int64_t begin_ns,
                                           int64_t end_ns);

/* For how long after something ended readings may still show it. */
int64_t nrg_running_mean_reach_ns(const struct nrg_timeline *timeline);

#endif

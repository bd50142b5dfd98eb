/*
 * A channel as single readings of power, for the methods `nearest` and `window`: those of a gauge,
 * or of a counter the mean power between two readings, at the middle between them.
 *
 * Init, release. 0 or -ENOMEM. Thread-safe once made.
 */
#ifndef NRG_ENERGY_READINGS_H
#define NRG_ENERGY_READINGS_H

#include "energy/timeline.h"

struct nrg_readings {
    size_t n;
    int64_t *t_ns;
    double *power_w, *prefix; /* prefix[i]: sum of the first i */
};

int nrg_readings_init(struct nrg_readings *readings, const struct nrg_timeline *timeline);
void nrg_readings_release(struct nrg_readings *readings);
/* How many lie before t_ns, and how many not after it. */
size_t nrg_readings_before(const struct nrg_readings *readings, int64_t t_ns);
size_t nrg_readings_upto(const struct nrg_readings *readings, int64_t t_ns);
/* Mean of readings [from, to); NAN when there is none. */
double nrg_readings_mean(const struct nrg_readings *readings, size_t from, size_t to);
/* The one closest to t_ns, of two equally close the earlier; NAN when there is none. */
double nrg_readings_nearest(const struct nrg_readings *readings, int64_t t_ns);

#endif

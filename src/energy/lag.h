/*
 * Time constant of a sensor that averages, found in its own readings: after a step of the load a
 * first-order sensor shows P(t) = end + (start - end) * exp(-t / tau). Every stretch in which
 * readings only rise or only fall is tried; those that are no clear exponential do not count.
 *
 * The load itself may fade like that, and readings alone can't tell the two apart: the result is a
 * guess that must be named as such ("fitted") and that the user can overrule. Pure.
 */
#ifndef NRG_ENERGY_LAG_H
#define NRG_ENERGY_LAG_H

#include "energy/timeline.h"

struct nrg_lag_fit {
    double lag_s;     /* NAN: none was found */
    size_t stretches; /* that agree */
};

/* Of a gauge, over the readings between two instants; noise_w of a single reading. */
struct nrg_lag_fit nrg_lag_fit(const struct nrg_timeline *timeline, int64_t begin_ns,
                               int64_t end_ns, double noise_w);

#endif

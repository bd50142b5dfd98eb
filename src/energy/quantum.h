/*
 * The quantisation step of a sensor, found in its own readings: a log rarely says that its watts
 * are multiples of 40 mW, and rounding to such steps is most of the noise there is. Pure.
 */
#ifndef NRG_ENERGY_QUANTUM_H
#define NRG_ENERGY_QUANTUM_H

#include "energy/timeline.h"

/* Of a gauge, W; `resolution` where its readings show none; 0 for counters and without readings. */
double nrg_gauge_quantum(const struct nrg_timeline *timeline, double resolution);

/* Standard deviation of a gauge's single reading, from its distance to the line between its
 * neighbours. */
double nrg_gauge_noise_w(const struct nrg_timeline *timeline, double resolution);

#endif

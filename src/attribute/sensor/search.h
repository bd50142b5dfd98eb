/*
 * The sensor's theta, by evidence: many coarse places, the best few refined. What is left unknown
 * of it stays in the posterior, as columns of the rows' derivatives by each parameter.
 *
 * 0 or -ENOMEM.
 */
#ifndef NRG_ATTRIBUTE_SENSOR_SEARCH_H
#define NRG_ATTRIBUTE_SENSOR_SEARCH_H

#include "attribute/sensor/kernel.h"

#define NRG_SENSOR_STARTS 640

/* Places to begin at, and the steps of a first refinement; how many. */
size_t nrg_sensor_starts(const struct nrg_facts *facts, struct nrg_sensor starts[NRG_SENSOR_STARTS],
                         struct nrg_sensor *step);
/* Two of these are the same hill. */
bool nrg_sensor_near(const struct nrg_sensor *a, const struct nrg_sensor *b,
                     const struct nrg_sensor *step);
/* Parameter i (0 delay, 1 slew, 2 width) of a sensor, and how far to go for a derivative; 0: it has
 * no such parameter, or it is known. */
double *nrg_sensor_parameter(struct nrg_sensor *sensor, size_t i);
double nrg_sensor_little(const struct nrg_sensor *sensor, const struct nrg_facts *facts, size_t i);

#endif

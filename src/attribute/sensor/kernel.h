/*
 * How a reading sees the past. A row of the model is a weight over time: of a counter the time
 * between what two readings show, of a gauge a mean of the time before the reading.
 *
 *   grid   a counter that updates at phase + i * period: a reading shows the last one
 *   delay  a counter that shows what was delay_s ago
 *   box    a gauge that shows the mean of width_s, delay_s ago
 *   memory a gauge that forgets with time constant width_s, delay_s ago
 *
 * Plain values; nothing can fail.
 */
#ifndef NRG_ATTRIBUTE_SENSOR_KERNEL_H
#define NRG_ATTRIBUTE_SENSOR_KERNEL_H

#include "attribute/model/facts.h"

#define NRG_SENSOR_PARAMETERS 3 /* delay, slew, width */

enum nrg_sensor_kind { NRG_SENSOR_GRID, NRG_SENSOR_DELAY, NRG_SENSOR_BOX, NRG_SENSOR_MEMORY };

/* theta of the model. */
struct nrg_sensor {
    enum nrg_sensor_kind kind;
    double delay_s; /* of a grid: its phase, from the middle of the readings on */
    double slew;    /* by which part its clock, or the delay, runs away about that middle */
    double width_s;
};

/* What a row sees: from begin_s to end_s, evenly, or less the older it is. */
struct nrg_sight {
    double begin_s, end_s;
    double memory_s; /* 0: evenly */
    double scale;    /* of its weight: 1, or 1 / width */
};

/* Where the energy that reading i shows ends; of counters. */
double nrg_sensor_end_s(const struct nrg_sensor *sensor, const struct nrg_facts *facts, size_t i);
/* Of row i, which ends with reading i + 1 of a counter, and is reading i of a gauge. */
struct nrg_sight nrg_sensor_sight(const struct nrg_sensor *sensor, const struct nrg_facts *facts,
                                  size_t i);
/* The weight of a stretch in it, in seconds times scale, and where its middle is. */
double nrg_sight_weight(const struct nrg_sight *sight, double begin_s, double end_s);

#endif

/*
 * Times of a meter's own clock, as they stand in its text, to CLOCK_MONOTONIC. Plain data; errors
 * are -EINVAL; one thread per struct.
 */
#ifndef NRG_SENSORS_METER_TIME_H
#define NRG_SENSORS_METER_TIME_H

#include <stddef.h>
#include <stdint.h>

struct nrg_meter_times {
    int64_t real_minus_mono_ns; /* of this machine, when the meter was opened */
    int64_t zone_ns;            /* local time minus UTC, for dates without a zone */
    int64_t first_ns; /* monotonic time of 0 on a clock with any start; NRG_MISSING: not known */
};

void nrg_meter_times_init(struct nrg_meter_times *times);
/*
 * Seconds, ms, us or ns since 1970 by their size, a date (ISO, also with a blank for T), or seconds
 * since any start: the arrival of the first such time fixes that start. 0 or -EINVAL.
 */
int nrg_meter_time(struct nrg_meter_times *times, const char *text, size_t len, int64_t arrived_ns,
                   int64_t *t_ns);

#endif

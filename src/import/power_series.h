/*
 * The power of one channel over the time of a recording, for finding out how another clock lies to
 * it (align.h). Energy of counters is divided by the time between readings; readings of gauges
 * stand for the time around them. No more is concluded: integration is energy/timeline.h's.
 *
 * Embedded: load, release.
 */
#ifndef NRG_RECORD_POWER_SERIES_H
#define NRG_RECORD_POWER_SERIES_H

#include "record/read/recording.h"

struct nrg_power_series {
    int64_t *begin_ns, *end_ns; /* that a value stands for */
    double *power_w;
    size_t n, cap;
    int64_t period_ns; /* median */
    int64_t lag_ns;    /* the sensor's own averaging; 0: none, or not known */
    bool gauge;
    char name[48];
};

/*
 * Of the named domain, or the one that says most about a program: the processors, then whatever
 * there is. -ENODATA: no channel of energy or power, or fewer than two readings.
 */
int nrg_power_series_load(struct nrg_power_series *series, struct nrg_recording *recording,
                          const char *domain, struct nrg_error *err);
void nrg_power_series_release(struct nrg_power_series *series);

#endif

/*
 * The power of one channel over the time of a recording, to find the offset of another clock
 * (align.h). The energy of a counter is divided by the time between readings; a reading of a gauge
 * stands for the time around it.
 *
 * Embedded: load, release. Errors are negative errno. Not thread-safe.
 */
#ifndef NRG_IMPORT_POWER_SERIES_H
#define NRG_IMPORT_POWER_SERIES_H

#include "record/read/recording.h"

struct nrg_power_series {
    int64_t *begin_ns, *end_ns; /* of the time that a value stands for */
    double *power_w;
    size_t n;
    int64_t period_ns; /* median */
    int64_t lag_ns;    /* time constant of the sensor's own averaging; 0: none, or not known */
    bool gauge;
    char name[48];
};

/*
 * Loads the domain of that name, or else the one that says most about a program: the processors,
 * then whatever there is. -ENODATA: no channel of energy or power, or fewer than two readings.
 */
int nrg_power_series_load(struct nrg_power_series *series, struct nrg_recording *recording,
                          const char *domain, struct nrg_error *err);
void nrg_power_series_release(struct nrg_power_series *series);

#endif

/*
 * Finds the offset between the clock of a log and that of a recording, from when the program was
 * busy and when power was high.
 *
 * Power is fitted as a + b * activity for every shift of the activity. The activity is low-passed
 * with the sensor's time constant or, where that is not known, with the one that fits best. The
 * shift with the smallest sum of squares wins. Its interval is where the sum does not grow
 * significantly; the autocorrelation of the residuals reduces the number of independent readings.
 *
 * Refused: power that does not follow the activity, and activity for which another shift fits
 * nearly as well (a loop that looks the same one iteration later). Pure but for temporary memory;
 * errors are negative errno. Thread-safe.
 */
#ifndef NRG_IMPORT_ALIGN_H
#define NRG_IMPORT_ALIGN_H

#include "import/power_series.h"

struct nrg_activity {
    int64_t begin_ns, step_ns;
    double *busy; /* 0..1 per step */
    size_t n;
};

struct nrg_alignment {
    int64_t offset_ns;      /* to be added to the activity's times */
    int64_t uncertainty_ns; /* half of the 95 % interval */
    double correlation;     /* of power with the shifted activity */
    int64_t lag_ns;         /* time constant that was used */
    bool lag_fitted;
    int64_t rival_ns; /* a shift that fits nearly as well; NRG_MISSING: none */
};

/* Searches shifts in [low, high]. -EDOM with the reason when none can be found. */
int nrg_align(const struct nrg_power_series *power, const struct nrg_activity *activity,
              int64_t low_ns, int64_t high_ns, struct nrg_alignment *result, struct nrg_error *err);

#endif

/*
 * How much the clock of a log lies behind that of a recording, found out from when the program was
 * busy and when power was high.
 *
 * Power is fitted as a + b * activity for every shift of the activity (low-passed with the sensor's
 * time constant, where that is known; else with that which fits best). The shift with the least
 * squares wins; its interval is where the squares do not grow significantly, counting as many
 * independent readings as the residuals' correlation leaves. Refused: when power does not follow
 * the activity, and when another shift fits nearly as well (a loop that looks the same one round
 * later).
 */
#ifndef NRG_RECORD_ALIGN_H
#define NRG_RECORD_ALIGN_H

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
    int64_t rival_ns; /* the next best shift; NRG_MISSING: none near as good */
};

/* Shifts in [low, high]. -EDOM with the reason: it can't be told. */
int nrg_align(const struct nrg_power_series *power, const struct nrg_activity *activity,
              int64_t low_ns, int64_t high_ns, struct nrg_alignment *result, struct nrg_error *err);

#endif

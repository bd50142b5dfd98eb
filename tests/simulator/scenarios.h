/* The kinds of sensor and program that `regress` is tried on. */
#ifndef TESTS_SIMULATOR_SCENARIOS_H
#define TESTS_SIMULATOR_SCENARIOS_H

#include "attribute/regress/fit.h"
#include "simulator/sim.h"

struct trial_scenario {
    const char *name;
    struct sim_options options;
    enum nrg_lag_mode lag;
    double given_lag_s, driver_lag_s;
    bool idle_known;
};

extern const struct trial_scenario trial_scenarios[];
extern const size_t trial_n_scenarios;

#endif

/*
 * A trial: the simulated machine, its readings and calls handed to nrg_regress, and what comes back
 * compared with the truth. Sums of trials are what tests and the bench judge.
 */
#ifndef TESTS_SIMULATOR_TRIAL_H
#define TESTS_SIMULATOR_TRIAL_H

#include "attribute/regress/fit.h"
#include "simulator/scenarios.h"

/* Readings as the library holds them: unwrapped, summed up. Freed by nrg_timeline_release. */
void trial_timeline(const struct sim_machine *machine, const struct nrg_channel *channel,
                    struct nrg_timeline *timeline);
struct nrg_channel trial_channel(const struct sim_machine *machine);

struct trial_sum {
    size_t runs, failed;
    double *errors, *widths; /* relative, of layers with at least 1 % of the energy */
    size_t n, cap;
    size_t intervals, held, unresolved; /* of all layers */
    size_t clear, clear_held;           /* of those that are resolved */
    size_t idles, idles_held;
    double total_error; /* largest */
    char lag[32];       /* of the last run */
};

struct trial_figures {
    double median_error, p90_error; /* median: of the runs' errors all together */
    double median_width;            /* half width of the interval / power */
    double coverage, clear_coverage, unresolved, idle_coverage, total_error;
};

/* One seed; aborts when the library fails with anything but -ENODATA. */
void trial_run(const struct trial_scenario *scenario, uint64_t seed, struct trial_sum *sum);
struct trial_figures trial_figures(struct trial_sum *sum);
void trial_sum_release(struct trial_sum *sum);

#endif

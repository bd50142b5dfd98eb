/*
 * How good is `regress`? Runs the simulated machine (tests/simulator) over many seeds and prints,
 * per kind of sensor, how far powers are off and how often the 95 % intervals hold the truth.
 *
 *     regress_coverage [SEEDS [FIRST_SEED [NAME]]]      default 20 seeds from 1, all scenarios
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attribute/regress/fit.h"
#include "simulator/scenarios.h"
#include "simulator/trial.h"

int main(int argc, char **argv)
{
    size_t seeds = argc > 1 ? strtoul(argv[1], NULL, 10) : 20;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    printf("%-34s %6s %7s %7s %7s %7s %7s %7s %7s %6s %-8s %7s\n", "scenario", "runs", "error%",
           "p90%", "width%", "cover%", "clear%", "unres%", "idle c%", "total%", "lag", "s/run");
    for (size_t i = 0; i < trial_n_scenarios; i++) {
        const struct trial_scenario *scenario = &trial_scenarios[i];
        if (argc > 3 && !strstr(scenario->name, argv[3]))
            continue;
        struct trial_sum sum = {0};
        clock_t began = clock();
        for (size_t seed = 0; seed < seeds; seed++)
            trial_run(scenario, first + seed, &sum);
        struct trial_figures f = trial_figures(&sum);
        printf("%-34s %6zu %7.3f %7.3f %7.2f %7.2f %7.2f %7.1f %7.1f %6.3f %-8s %7.2f\n",
               scenario->name, sum.runs, f.median_error * 100, f.p90_error * 100,
               f.median_width * 100, f.coverage * 100, f.clear_coverage * 100, f.unresolved * 100,
               f.idle_coverage * 100, f.total_error * 100, sum.lag,
               (double)(clock() - began) / CLOCKS_PER_SEC / (double)seeds);
        fflush(stdout);
        trial_sum_release(&sum);
    }
    return 0;
}

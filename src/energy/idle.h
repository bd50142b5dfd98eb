/*
 * Idle power from power over busy CPUs: the intercept of a straight line by least squares, where
 * utilisation varied enough. Fed cell by cell. Plain data without memory of its own; nothing can
 * fail.
 */
#ifndef NRG_ENERGY_IDLE_H
#define NRG_ENERGY_IDLE_H

#include <stdbool.h>
#include <stddef.h>

#define NRG_IDLE_DRIFT 0.15 /* of idle power, that it may change in a run */
#define NRG_BASELINE_ERROR                                                                         \
    1e-3 /* of its power: what one measurement of it differs from the next                         \
          */

struct nrg_idle_fit {
    double n, sx, sy, sxx, sxy, syy; /* sums over cells: x busy CPUs, y watts */
    double min_x, max_x, min_y;
};

void nrg_idle_init(struct nrg_idle_fit *fit);
void nrg_idle_add(struct nrg_idle_fit *fit, double busy_cpus, double power_w);

/*
 * Needs at least 20 cells whose utilisation spreads over a quarter of a CPU or more, else NAN.
 * Never above the least power seen.
 */
double nrg_idle_solve(const struct nrg_idle_fit *fit);
/* Standard error of the intercept, NAN where there is none. */
double nrg_idle_error(const struct nrg_idle_fit *fit);
/* Utilisation varied enough, and power did not follow it. */
bool nrg_idle_flat(const struct nrg_idle_fit *fit);

#endif

/*
 * Idle power from power over busy CPUs: the intercept of a straight line by least squares, where
 * utilisation varied enough to tell. Fed cell by cell; plain data, no memory of its own.
 */
#ifndef NRG_ATTRIBUTE_IDLE_H
#define NRG_ATTRIBUTE_IDLE_H

#include <stdbool.h>
#include <stddef.h>

struct nrg_idle_fit {
    double n, sx, sy, sxx, sxy, syy; /* sums over cells: x busy CPUs, y watts */
    double min_x, max_x, min_y;
};

void nrg_idle_init(struct nrg_idle_fit *fit);
void nrg_idle_add(struct nrg_idle_fit *fit, double busy_cpus, double power_w);

/*
 * At least 20 cells whose utilisation spreads over a quarter of a CPU or more; never above the
 * least power seen. NAN: can't be told.
 */
double nrg_idle_solve(const struct nrg_idle_fit *fit);
/* Standard error of the intercept, NAN where there is none. */
double nrg_idle_error(const struct nrg_idle_fit *fit);
/* Utilisation varied enough to tell, and power did not follow it. */
bool nrg_idle_flat(const struct nrg_idle_fit *fit);

#endif

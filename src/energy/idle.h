/*
 * Idle power from power over busy CPUs: the intercept of a straight line by least squares, where
 * utilisation varied enough. Fed cell by cell. And what a run says of a baseline: idle power is not
 * more than the least that it drew. Plain data without memory of its own; nothing can fail.
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
    double least_s, length_s, busy_s, energy_j; /* of the cell that is being put together */
};

/* What a gauge that resolves so much time may average over: what is said (0: nothing), else what
 * none exceeds. An average longer than the load takes to change looks constant, whatever that
 * draws. */
double nrg_idle_memory_s(double width_s, double said_s);
/* Of a gauge that averages over so much time: it shows what a shorter cell drew in the next ones,
 * so some are taken together. 0: of a counter, which does not. */
void nrg_idle_init(struct nrg_idle_fit *fit, double width_s);
/* A cell after the one before. Those below 50 ms say little, and are left out, as are those of
 * which busy time or energy is not known (NAN): cells go together that are next to each other. */
void nrg_idle_add(struct nrg_idle_fit *fit, double length_s, double busy_s, double energy_j);

/* There are at least 20 cells, and their utilisation spreads over a quarter of a CPU or more. */
bool nrg_idle_can_tell(const struct nrg_idle_fit *fit);
/* NAN where it can't be told. Never above the least power seen. */
double nrg_idle_solve(const struct nrg_idle_fit *fit);
/* The part of the mean load that was there in every cell. */
double nrg_idle_always(const struct nrg_idle_fit *fit);
/* Standard error of the intercept, and half of how far it may be off for what the line was carried
 * on to 0, past a load of which so much was `always` there; NAN where there is none. */
double nrg_idle_error(const struct nrg_idle_fit *fit, double always);
/* Utilisation varied enough, and power did not follow it. */
bool nrg_idle_flat(const struct nrg_idle_fit *fit);

/* The least power of a run's cells, which are in order, but for outliers; NAN: there are none. */
double nrg_idle_least_w(const double *sorted_w, size_t n);
/* A baseline that drew more than the run did for a while was not idle: by more than idle power may
 * change and the baseline's own error. least_w NAN: not known. */
bool nrg_idle_was_busy(double baseline_w, double least_w, double error_w);

#endif

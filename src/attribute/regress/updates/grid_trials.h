/*
 * Trials of grids on which a device may have published what it shows (grid.c): what is left of
 * readings with one, with all of a region, and with whatever is best about one.
 *
 * A trial moves the times of r->published.timeline and sets r->kernel. 0, or a negative errno of
 * the regression. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_UPDATES_GRID_TRIALS_H
#define NRG_ATTRIBUTE_REGRESS_UPDATES_GRID_TRIALS_H

#include "attribute/regress/internal.h"

#define NRG_GRID_TRIALS 7 /* of each, phase and period, in a round */

struct nrg_grid_trial {
    double phase_s, period_s;
    size_t part; /* of each update that is seen: a number of those in grid_trials.c */
    double rest; /* what is left with it, per row */
    double rows;
    bool rival; /* another one, with windows elsewhere, explains as much */
};

/* A part of what brackets allow, in which grids are tried. */
struct nrg_grid_region {
    struct nrg_grid_trial middle;
    double half_period_s, half_phase_s, turn; /* a change of the period turns the grid about turn */
    int trials;                               /* of each, phase and period */
};

/* Updates at the times of a grid whose first one is at first_ns + phase_s. */
void nrg_grid_set_times(struct nrg_regress *r, double phase_s, double period_s, double first_ns);

/* Rows of a trial, which costs them and the slices that they hold. */
size_t nrg_grid_rows(const struct nrg_regress *r);

/* What such a grid shows of each update. */
struct nrg_kernel nrg_grid_kernel(const struct nrg_regress *r, const struct nrg_grid_trial *grid);

/* Every so many rows; 0: all. */
int nrg_grid_try(struct nrg_regress *r, double first_ns, size_t stride,
                 struct nrg_grid_trial *grid);

/* The same with whatever part of an update explains most. One that leaves more than another one, if
 * there is one, need not be known: its rest is INFINITY. */
int nrg_grid_try_parts(struct nrg_regress *r, double first_ns, size_t stride,
                       const struct nrg_grid_trial *other, struct nrg_grid_trial *grid);

/* How many rows are one, where the first trials do not need all to tell grids apart. */
size_t nrg_grid_thinned(const struct nrg_regress *r);

/* All of a region, or the best of them, and what is better than `best`; the others may be INFINITY.
 */
int nrg_grid_try_region(struct nrg_regress *r, double first_ns,
                        const struct nrg_grid_region *region, size_t stride,
                        struct nrg_grid_trial *best, struct nrg_grid_trial *trials);

/* The lowest of the trials that are lower than those beside them, in order; how many there are. */
size_t nrg_grid_take_lowest(const struct nrg_grid_region *region,
                            const struct nrg_grid_trial *trials, struct nrg_grid_trial *lowest,
                            size_t most);

/* Steps to whatever is better, from half of those between a region's trials on, halved so many
 * times. About the lowest of them, what is left is a parabola: then steps become short at once. */
int nrg_grid_refine(struct nrg_regress *r, double first_ns, struct nrg_grid_region region,
                    int halvings, struct nrg_grid_trial *best);

/* The best of the grids about one, up to its neighbours in a region, and again about that: valleys
 * of a window are narrow, and steps from one grid to the next may miss them. */
int nrg_grid_look_around(struct nrg_regress *r, double first_ns, struct nrg_grid_region *region,
                         struct nrg_grid_trial *best);

#endif

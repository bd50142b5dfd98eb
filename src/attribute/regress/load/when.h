/*
 * When processes run whose CPU time is known per cell alone: how many CPUs they have while a class
 * of spans is open, from all cells together. Cells hold other mixtures of classes, and if a worker
 * runs at the begin of each step, it has more CPU time in cells that hold more of that.
 *
 * The arrays are the arena's. 0 or -ENOMEM. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_LOAD_WHEN_H
#define NRG_ATTRIBUTE_REGRESS_LOAD_WHEN_H

#include "base/arena.h"
#include "base/linalg.h"

/* What cells have: CPU time as y, and as columns how long each class was open. */
struct nrg_when_cells {
    const struct nrg_gram *gram;
    const double *open_s; /* per column, in sum */
    const double *next;   /* packed: how often one column follows another */
    double most2; /* how far CPUs can scatter inside of cells, a square, in the mean of cells */
};

struct nrg_when {
    double *rate; /* per column: CPUs while it is open; NULL: nothing is known */
    bool differs; /* else it is the same in all */
    /* What is not known of that: a covariance (packed) of parts, and the part of each column. */
    double *covariance;
    uint32_t *part;
};

/* Columns that are next to each other have one rate, unless cells tell that they differ. */
int nrg_when_fit(struct nrg_when *when, const struct nrg_when_cells *cells,
                 struct nrg_arena *memory);

#endif

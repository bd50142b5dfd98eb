/*
 * From the blocks' normal equations to powers with intervals, in three files: the solution and its
 * groups (regress_solve.c), how uncertain it is (regress_spread.c), and the figures that callers
 * get (regress_result.c).
 *
 * Columns that are solved for are in this order: classes, idle (when it is fitted), then those of
 * no interest (bends and drift), which may be negative. They are scaled so that the diagonal is 1.
 *
 * Embedded; init, solve, release. -ENOMEM, and -ENODATA when rows do not suffice.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_SOLVER_H
#define NRG_ATTRIBUTE_REGRESS_SOLVER_H

#include "attribute/regress/internal.h"

struct nrg_solver {
    const struct nrg_regress *r;
    struct nrg_gram sum;
    size_t m, n_classes, n_bound; /* n_bound: classes and idle */
    bool idle;
    size_t *index; /* to columns of the sum */
    double *scale, *floor;
    double *beta;                          /* not negative, scaled */
    double *free_beta;                     /* without that condition: intervals are around it */
    double *ratio;                         /* variance / plain variance */
    double *work;                          /* two columns wide */
    double *factor, *inverse, *covariance; /* packed, scaled; 0 for dependent columns */
    bool *dependent;
    size_t *root, *next; /* of groups: the first column, and the one after (SIZE_MAX) */
    double edge;         /* see edge_noise */
    double left;         /* mean square of what is left */
    double freedom;
};

int nrg_solver_init(struct nrg_solver *s, const struct nrg_regress *r);
void nrg_solver_release(struct nrg_solver *s);
int nrg_solver_solve(struct nrg_solver *s, bool idle);
/* Matrix of the solved columns, of the sum or of a block, without what rounded stamps add. */
void nrg_solver_fill(const struct nrg_solver *s, const struct nrg_gram *from, double *a, double *b);

/* After solve: ratio, freedom and covariance. */
int nrg_solver_spread(struct nrg_solver *s);
/* Covariance of two columns, W^2. */
double nrg_solver_covariance(const struct nrg_solver *s, size_t p, size_t q);

#endif

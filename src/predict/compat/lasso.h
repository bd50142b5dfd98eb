/*
 * Least squares with an L1 penalty (Lasso) by coordinate descent, the penalty chosen by
 * cross-validation: (1 / 2n) |y - Xb - c|^2 + alpha |b|_1, over a path of alphas from the one where
 * all coefficients are 0 down to a thousandth of it.
 *
 * X is row-major with columns that the caller has standardised; the intercept is not penalised.
 *
 * Ownership: the caller releases the fit. Errors: 0 or -errno. Threads: nothing is shared.
 */
#ifndef NRG_PREDICT_COMPAT_LASSO_H
#define NRG_PREDICT_COMPAT_LASSO_H

#include <stdbool.h>
#include <stddef.h>

struct nrg_lasso_options {
    size_t alphas; /* on the path */
    size_t folds;  /* contiguous; at most as many as rows */
    bool positive; /* no negative coefficients */
};

struct nrg_lasso {
    double *coefficients; /* n */
    double intercept;
    double alpha;
    double *held_out; /* per row: predicted by the fold that did not see it */
    size_t n;
};

/* 0, -ENOMEM, or -ENODATA for fewer than 2 rows. */
int nrg_lasso_fit(struct nrg_lasso *out, const double *x, const double *y, size_t rows, size_t n,
                  const struct nrg_lasso_options *options);
void nrg_lasso_release(struct nrg_lasso *lasso);

#endif

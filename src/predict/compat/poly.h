/*
 * Products of features up to a degree, as the earlier systems' polynomial regressions use them: 1,
 * the features, all products of two, of three… in the order of combinations with repetition. And
 * standardising columns.
 *
 * Ownership: the caller releases a scaler. Errors: -ENOMEM. Threads: nothing is shared.
 */
#ifndef NRG_PREDICT_COMPAT_POLY_H
#define NRG_PREDICT_COMPAT_POLY_H

#include <stddef.h>

/* The number of products of n features, the 1 included. */
size_t nrg_poly_count(size_t n, unsigned degree);
/* Fills nrg_poly_count numbers. */
void nrg_poly_expand(const double *x, size_t n, unsigned degree, double *out);

/* Mean and deviation per column; a constant column has deviation 1. */
struct nrg_scaler {
    double *mean, *deviation; /* n of each */
    size_t n;
};
/* Of `rows` rows of n, each counted weights[i] times (NULL: once). 0 or -ENOMEM. */
int nrg_scaler_fit(struct nrg_scaler *scaler, const double *x, const double *weights, size_t rows,
                   size_t n);
void nrg_scaler_apply(const struct nrg_scaler *scaler, double *x);
void nrg_scaler_release(struct nrg_scaler *scaler);

#endif

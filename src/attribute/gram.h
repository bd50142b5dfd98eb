/*
 * Normal equations of least squares, and what is done with them: sums of rows, Cholesky, inverse,
 * solutions that are not negative. Symmetric matrices are lower triangles, row by row, because such
 * a matrix gets another column by growing at its end.
 *
 * Embedded by the owner, who releases. -ENOMEM is the only error. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_GRAM_H
#define NRG_ATTRIBUTE_GRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nrg_gram {
    size_t n, cap;
    double *a; /* X'WX, packed */
    double *b; /* X'Wy */
    double yy; /* y'Wy */
    double weight;
    size_t rows;
};

static inline size_t nrg_packed(size_t row, size_t column)
{
    return row >= column ? row * (row + 1) / 2 + column : column * (column + 1) / 2 + row;
}

/* Room for n columns; those that are new are 0. */
int nrg_gram_grow(struct nrg_gram *gram, size_t n);
void nrg_gram_clear(struct nrg_gram *gram);
void nrg_gram_release(struct nrg_gram *gram);

/* One row. `touched` names the columns that are not 0, in any order; NULL: any may be. */
void nrg_gram_add(struct nrg_gram *gram, const double *x, const uint32_t *touched, size_t n_touched,
                  double y, double weight);
/* sum += other; sum has as many columns or more. */
void nrg_gram_join(struct nrg_gram *sum, const struct nrg_gram *other);
/* y'y of what the solution leaves. */
double nrg_gram_residual(const struct nrg_gram *gram, const double *beta);

/*
 * Cholesky in place. A column whose pivot falls to `floor[i]` or below (of a diagonal that was
 * scaled to 1) depends on those before it: it is marked and takes no part. `dependent` may be
 * NULL, then such pivots are lifted instead. Returns the rank.
 */
size_t nrg_gram_factor(double *a, size_t n, const double *floor, bool *dependent);
/* Solves L L' x = b in place; columns marked as dependent get 0. */
void nrg_gram_solve(const double *l, size_t n, double *x);
/* What dependent column j is made of: column j = sum of parts[i] * column i, i < j. */
void nrg_gram_parts(const double *l, size_t j, double *parts);
/* Inverse of L L', into `inverse` (packed, n*(n+1)/2); `l` is overwritten by L^-1. */
void nrg_gram_invert(double *l, size_t n, double *inverse);

/*
 * beta >= 0 that minimises beta'A beta - 2 b'beta. `a` has a diagonal of ones (scale it first).
 * Exchanges whole blocks of variables, with one at a time as the way out of a cycle, so that two
 * thousand columns cost a dozen factorisations and not two thousand. Those from `n_bound` on
 * may be negative all the same.
 */
int nrg_gram_nonnegative(const double *a, const double *b, size_t n, size_t n_bound, double *beta);

#endif

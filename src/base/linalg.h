/*
 * Normal equations of least squares, and what is done with them: sums of rows, Cholesky, solution,
 * inverse; nnls.h has solutions that are not negative. For tens to thousands of unknowns and any
 * number of rows. Symmetric matrices are lower triangles, row by row, because such
 * a matrix gets another column by growing at its end.
 *
 * Embedded by the owner, who releases. -ENOMEM is the only error. One thread at a time.
 */
#ifndef NRG_BASE_LINALG_H
#define NRG_BASE_LINALG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Relative to the diagonal: with it, dependent columns share what they explain. */
#define NRG_RIDGE 1e-12
/* Without a ridge: a pivot below this, of a diagonal of 1, is a column that others explain. */
#define NRG_PIVOT_TOLERANCE 1e-11

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

/* to[i] += factor * from[i]. */
void nrg_add_scaled(double *to, const double *from, double factor, size_t n);
/* values[i] *= factor. */
void nrg_scale(double *values, double factor, size_t n);

/* Room for n columns; those that are new are 0. */
int nrg_gram_grow(struct nrg_gram *gram, size_t n);
void nrg_gram_clear(struct nrg_gram *gram);
void nrg_gram_release(struct nrg_gram *gram);

/* One row. `touched` names the columns that are not 0, in any order; NULL: any may be. */
void nrg_gram_add(struct nrg_gram *gram, const double *x, const uint32_t *touched, size_t n_touched,
                  double y, double weight);
/* sum += other; sum has as many columns or more. */
void nrg_gram_join(struct nrg_gram *sum, const struct nrg_gram *other);
/* Sum of squared residuals of the solution `beta`. */
double nrg_gram_residual(const struct nrg_gram *gram, const double *beta);

/*
 * Cholesky in place. A column whose pivot falls to `floor[i]` or below (of a diagonal that was
 * scaled to 1) depends on those before it: it is marked and takes no part. `dependent` may be
 * NULL, then such pivots are lifted instead. Returns the rank.
 *
 * `in_order`: sums go from the first column to the last. That is slower, but where columns nearly
 * depend on others, the sums of pairs that are faster give other digits.
 */
size_t nrg_gram_factor(double *a, size_t n, const double *floor, bool *dependent, bool in_order);
/* Solves L L' x = b in place; columns marked as dependent get 0. */
void nrg_gram_solve(const double *l, size_t n, double *x, bool in_order);
/* What dependent column j is made of: column j = sum of parts[i] * column i, i < j. */
void nrg_gram_parts(const double *l, size_t j, double *parts);
/* Inverse of L L', into `inverse` (packed, n*(n+1)/2); `l` is overwritten by L^-1. */
void nrg_gram_invert(double *l, size_t n, double *inverse);

/*
 * Least squares. Columns that others explain (rank deficiency) get 0 instead of a huge number.
 */
int nrg_gram_least_squares(const struct nrg_gram *gram, double *x, size_t *rank);

/* Adds the columns from..to-1 that are not 0 to the m of `index`; returns how many it has then. */
size_t nrg_gram_pick(const struct nrg_gram *gram, size_t from, size_t to, size_t *index, size_t m);

/* Some columns of a system, scaled to a diagonal of ones. x is room for the solution. */
struct nrg_scaled {
    size_t n, m; /* columns of the system, and of this */
    size_t *index;
    double *a, *b, *x, *scale;
};

/* `index` names m columns that are not 0; NULL: all of those. */
int nrg_scaled_init(struct nrg_scaled *scaled, const struct nrg_gram *gram, const size_t *index,
                    size_t m);
/* s->x in the units of the system; other columns are 0. */
void nrg_scaled_solution(const struct nrg_scaled *scaled, double *x);
void nrg_scaled_release(struct nrg_scaled *scaled);

#endif

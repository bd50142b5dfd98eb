/*
 * Small dense linear algebra on normal equations: what the regressions of attribution and of
 * prediction need, for tens to hundreds of unknowns. Matrices are row-major and square; systems are
 * given as gram = AᵀA and rhs = Aᵀb, so that a caller can stream rows of any number.
 *
 * Columns that others explain (rank deficiency) get 0 instead of a huge number. No globals,
 * thread-safe.
 */
#ifndef NRG_BASE_LINALG_H
#define NRG_BASE_LINALG_H

#include <stddef.h>

/* A pivot below this part of its own diagonal element is a column that others explain. */
#define NRG_PIVOT_TOLERANCE 1e-11

/* Adds one equation: row * x = value, counted `weight` times. */
void nrg_normal_add(double *gram, double *rhs, size_t n, const double *row, double value,
                    double weight);

/*
 * Factor of a symmetric matrix without negative eigenvalues, in place: the lower triangle becomes
 * L with LLᵀ = A; the upper one is not touched. Returns the rank; dependent columns have a pivot
 * of 0.
 */
size_t nrg_cholesky(double *a, size_t n, double tolerance);
/* Solves LLᵀx = b in place; unknowns of dependent columns are 0. */
void nrg_cholesky_solve(const double *l, size_t n, double *b);

/* Least squares; `rank` may be NULL. 0 or -ENOMEM. */
int nrg_least_squares(const double *gram, const double *rhs, size_t n, double *x, size_t *rank);

/* Least squares with x >= 0 (Lawson and Hanson's active set on the Gram matrix). 0 or -ENOMEM. */
int nrg_nnls(const double *gram, const double *rhs, size_t n, double *x);

#endif

/*
 * Least squares whose solutions are not negative, on normal equations (linalg.h).
 *
 * Nothing is kept. 0 or -ENOMEM. Thread-safe.
 */
#ifndef NRG_BASE_NNLS_H
#define NRG_BASE_NNLS_H

#include "base/linalg.h"

/*
 * beta >= 0 that minimises beta'A beta - 2 b'beta. `a` is packed and has a diagonal of ones or
 * more (scale it first). Exchanges whole blocks of variables, with one at a time as the way out of
 * a cycle, so that two thousand columns cost a dozen factorisations and not two thousand. Those
 * from `n_bound` on may be negative all the same.
 *
 * Columns that depend on others: with a ridge (NRG_RIDGE, of the diagonal) they share what they
 * explain together; without one, 0, the first of them takes it and the others get 0.
 */
int nrg_nnls(const double *a, const double *b, size_t n, size_t n_bound, double ridge,
             double *beta);

/*
 * The same for columns of a system that are not 0, which it scales: `index` names m of them, of
 * which the first n_bound are bound. NULL: all columns, all bound. The others of x become 0.
 */
int nrg_gram_nonnegative(const struct nrg_gram *gram, const size_t *index, size_t m, size_t n_bound,
                         double ridge, double *x);

#endif

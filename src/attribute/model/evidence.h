/*
 * The numbers of the one model: y = X b + e, b ~ N(0, diag(prior)), e ~ N(0, V), V tridiagonal.
 *
 * Rows are whitened by the Cholesky factor of V as they come, and summed up: the Gram sums of
 * whitened rows and log|V| are all that evidence and posterior need. So another prior costs one
 * factorisation of the columns and no look at the rows.
 *
 *   log Z = -1/2 [ log|V| + log|I + S G S| + y'V^-1 y - z'(G + prior^-1)^-1 z ],  S = sqrt(prior)
 *
 * Constants that no parameter changes (n/2 log 2 pi) are left out. A prior of 0 takes a column out.
 *
 * Embedded by the owner, who releases. -ENOMEM is the only error. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_MODEL_EVIDENCE_H
#define NRG_ATTRIBUTE_MODEL_EVIDENCE_H

#include "base/arena.h"
#include "base/linalg.h"

/* Whitened rows, summed up. */
struct nrg_model_sums {
    struct nrg_gram gram;
    double log_v; /* log|V| */
    size_t n;     /* rows */
    double *last; /* the last row, whitened: y, then columns */
    double pivot; /* its diagonal in the factor; 0: there is no row before */
};

/* For k columns. */
int nrg_model_sums_init(struct nrg_model_sums *sums, size_t k);
/*
 * One row: its columns (k of them, overwritten), its value, its variance, and the covariance with
 * the row before; 0 where they share nothing.
 */
void nrg_model_sums_add(struct nrg_model_sums *sums, double *x, double y, double variance,
                        double with_last);
void nrg_model_sums_release(struct nrg_model_sums *sums);

/* Room for what follows, of k columns. */
struct nrg_model_room {
    size_t k;
    double *factor, *x, *scale;
};

/* The arrays are the arena's. */
int nrg_model_room_init(struct nrg_model_room *room, struct nrg_arena *arena, size_t k);

/* log Z. `profiled`: the size of V is not known, and its best value is taken: V stands for shape.
 */
double nrg_model_evidence(const struct nrg_model_sums *sums, const double *prior, bool profiled,
                          struct nrg_model_room *room);

/* Mean (k) and covariance (packed). */
void nrg_model_posterior(const struct nrg_model_sums *sums, const double *prior, double *mean,
                         double *covariance, struct nrg_model_room *room);

#endif

/*
 * Half widths of intervals from errors on what was held out: conformal quantiles, conditional on a
 * kind, with a prior that keeps few folds from saying nothing or anything.
 *
 * Every error is divided by the spread that the folds show for its kind. The half width of a kind
 * is its spread times the quantile of these scores. Spread and scores of a kind with few folds
 * lean on those of all kinds, and these on a spread known from public data.
 *
 * Ownership: init, use, release. Errors: 0 or -ENOMEM. Threads: nothing is shared.
 */
#ifndef NRG_PREDICT_PHYSICAL_CONFORMAL_H
#define NRG_PREDICT_PHYSICAL_CONFORMAL_H

#include <stddef.h>
#include <stdint.h>

struct nrg_residual {
    double error;  /* |ln(measured / predicted)| of a row that was held out */
    double weight; /* rows that it stands for */
    uint64_t kind;
    uint32_t fold; /* errors of one fold are correlated */
};

struct nrg_conformal {
    const struct nrg_residual *items; /* the caller's */
    size_t n;
    double prior;    /* the usual root mean square of such errors */
    uint64_t *kinds; /* of the items */
    size_t n_kinds, cap_kinds, n_folds;
    uint32_t *kind_of;              /* per item */
    double *square, *weight, *here; /* per kind and fold, the last line for all kinds */
    double *score, *any_score;      /* per item, by its kind's spread and by that of all kinds */
};

int nrg_conformal_init(struct nrg_conformal *c, const struct nrg_residual *items, size_t n,
                       double prior);
void nrg_conformal_release(struct nrg_conformal *c);

/* In ln(energy), by the kind's place in `kinds`; -1: what holds for all kinds together. */
double nrg_conformal_half(const struct nrg_conformal *c, int kind, double confidence);
/* The place of a kind; -1: no item has it. */
int nrg_conformal_kind(const struct nrg_conformal *c, uint64_t kind);

#endif

/*
 * Trials of kernels: how much readings leave if a sensor sees the past in some way. choose.c says
 * which are tried.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_TRIALS_H
#define NRG_ATTRIBUTE_REGRESS_TRIALS_H

#include "attribute/regress/internal.h"

#define NRG_TRIAL_CLEARLY   25.0 /* rows * log of the ratio of what is left; odds of 1 to 10^5 */
#define NRG_TRIAL_LONGEST_S 8.0  /* memory of a kernel */

struct nrg_trial {
    struct nrg_kernel kernel;
    double phi;  /* noise that lasts: see struct nrg_noise */
    double rest; /* mean square of what is left */
    double rows;
};

struct nrg_trials {
    const struct nrg_regress *r;
    struct nrg_arena memory; /* of map, is_calls and beta */
    uint32_t *map;
    bool *is_calls;                   /* per column of the trial */
    size_t n_columns, rows, max_rows; /* rows: of a trial that is not coarse */
    size_t observed;                  /* no trial has more rows than that */
    struct nrg_gram sum;
    double *beta;
    struct nrg_prefix prefix;
};

int nrg_trials_make(struct nrg_trials *t, const struct nrg_regress *r);
void nrg_trials_release(struct nrg_trials *t);

/* It need not be told by how much it is worse than the best one: then trial->rest is INFINITY. */
int nrg_try_kernel(struct nrg_trials *t, struct nrg_trial *trial, double best_rest);

/* Keeps the trial where it leaves less than the best so far. */
int nrg_try_with_phi(struct nrg_trials *t, struct nrg_trial *best, struct nrg_kernel kernel,
                     double phi);
int nrg_try_better(struct nrg_trials *t, struct nrg_trial *best, struct nrg_kernel kernel);

/* 2 log of how much likelier the one is than the other; 0 where a trial was not told. */
double nrg_trial_gain(const struct nrg_trial *trial, const struct nrg_trial *base);

/* By NRG_TRIAL_CLEARLY, and by this part of what is left. */
bool nrg_clearly_better(const struct nrg_trial *trial, const struct nrg_trial *base, double part);

/* The kernel with another width about the same middle; of an average, another time constant. */
struct nrg_kernel nrg_kernel_widened(struct nrg_kernel kernel, double width_s);

/* Steps to both sides of a delay and of a width (factor), made smaller whenever none of them helps,
 * as long as readings tell them apart. */
int nrg_refine_kernel(struct nrg_trials *t, struct nrg_trial *best, double shift_s, double factor);

#endif

/*
 * Scores of an evaluation: how far predictions are from measurements, by level, by model and by
 * kind.
 *
 * Ownership: the caller releases the scores. Names belong to the data set. Errors: -ENOMEM.
 * Threads: nothing is shared.
 */
#ifndef NRG_PREDICT_SCORE_H
#define NRG_PREDICT_SCORE_H

#include "predict/physical/estimate.h"

struct nrg_score {
    const char *name; /* model or kind; NULL: all */
    double rows;      /* with multiplicity */
    size_t distinct, unpredicted;
    double error, macro, distinct_error, worst; /* percent; macro: mean over models */
    double median;                              /* of the distinct rows' errors, percent */
    double covered, distinct_covered;           /* percent within the interval; NAN: no interval */
    double median_half; /* of half the interval over the predicted energy, percent; distinct rows */
    double width;       /* mean of (high - low) / measured, percent */
};

struct nrg_level_scores {
    struct nrg_score all;
    struct nrg_score *by_model, *by_kind;
    size_t n_models, n_kinds;
};

/* Scores the rows of all levels for which `which` is set. */
int nrg_score_levels(struct nrg_level_scores out[NRG_NODE_LEVELS], const struct nrg_dataset *set,
                     const struct nrg_estimate *estimates, const bool *which);

/* Scores of the rows that a test chooses, which get its name; rows 0: none was predicted. */
int nrg_score_where(struct nrg_score *out, const char *name, const struct nrg_dataset *set,
                    const struct nrg_estimate *estimates,
                    bool (*test)(const struct nrg_dataset *set, size_t row, const void *arg),
                    const void *arg);
void nrg_level_scores_release(struct nrg_level_scores *scores);

#endif

/*
 * How good a model is on what it was not trained on. A protocol cuts the data into folds; for each,
 * an energy model is made from the training rows alone (scalers, ranges and intervals included)
 * and the rest is predicted. Scores are |error| in percent of the measured energy, over all rows
 * (a measurement counts as often as its multiplicity), as the mean over models, and over distinct
 * measurements.
 *
 * Models most of whose operators lie outside of all others' sizes are not what a protocol asks
 * about: they are tested apart, with a model of all others, and not trained on.
 */
#ifndef NRG_PREDICT_EVALUATE_H
#define NRG_PREDICT_EVALUATE_H

#include "predict/physical/fit.h"

enum nrg_protocol {
    NRG_LEAVE_ONE_MODEL_OUT,
    NRG_LEAVE_ONE_FAMILY_OUT,
    NRG_SIZE_EXTRAPOLATION,
    NRG_PROTOCOLS
};
extern const char *const nrg_protocol_names[NRG_PROTOCOLS];

/* What is evaluated: trains on rows with mask, then predicts any row. */
struct nrg_predictor {
    const char *name;
    /* 0 or -errno with err; the state is the predictor's own. */
    int (*train)(void *state, const struct nrg_dataset *set, const bool *mask,
                 struct nrg_error *err);
    /* Before the next train, and at the end. */
    void (*forget)(void *state);
    /* Predicts all rows with `test` set; energies left NAN are counted as not predictable. */
    int (*predict)(void *state, const struct nrg_dataset *set, const bool *test,
                   struct nrg_estimate *out, struct nrg_error *err);
    void *state;
};

struct nrg_evaluate_options {
    enum nrg_protocol protocol;
    double largest_size;         /* batch x sequence that size extrapolation trains on; 2048 */
    bool all_models;             /* no model is tested apart */
    const char *const *exclude;  /* models that are not used at all; NULL-terminated, or NULL */
    const char *const *families; /* "NAME=MODEL,MODEL"…; NULL: by their dearest kind of operator */
};

struct nrg_score {
    const char *name; /* model or kind; NULL: all */
    double rows;      /* with multiplicity */
    size_t distinct, unpredicted;
    double error, macro, distinct_error, worst; /* percent; macro: mean over models */
    double covered, distinct_covered;           /* percent within the interval; NAN: no interval */
    double width;                               /* mean of (high - low) / measured, percent */
};

struct nrg_level_scores {
    struct nrg_score all;
    struct nrg_score *by_model, *by_kind;
    size_t n_models, n_kinds;
};

struct nrg_fold_name {
    const char *name;
    size_t train_rows, test_rows; /* distinct */
};

struct nrg_evaluation {
    struct nrg_level_scores levels[NRG_NODE_LEVELS];
    struct nrg_level_scores apart[NRG_NODE_LEVELS]; /* of the models tested apart */
    struct nrg_fold_name *folds;
    size_t n_folds, cap_folds;
    const char **apart_models;
    size_t n_apart, cap_apart;
    struct nrg_estimate *estimates; /* one per row; energy NAN: not tested */
};

int nrg_evaluate(struct nrg_evaluation *out, const struct nrg_dataset *set,
                 const struct nrg_predictor *predictor, const struct nrg_evaluate_options *options,
                 struct nrg_error *err);
void nrg_evaluation_release(struct nrg_evaluation *evaluation);

/* The physical model as a predictor. */
struct nrg_physical_state {
    enum nrg_feature_set features;
    double confidence;
    struct nrg_physical model;
};
struct nrg_predictor nrg_physical_predictor(struct nrg_physical_state *state);

/* Fills scores of a level from estimates; internal to evaluate.c and its tests. */
int nrg_score_level(struct nrg_level_scores *out, const struct nrg_dataset *set,
                    const struct nrg_estimate *estimates, const bool *which,
                    enum nrg_node_level level);

#endif

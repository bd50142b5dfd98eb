/*
 * How well a predictor works on data that it was not trained on. A protocol splits the data into
 * folds. For each fold, an energy model is made from the training rows alone (scalers, ranges and
 * intervals included), and the rest is predicted. Scores are |error| in percent of the measured
 * energy: over all rows (a measurement counts as often as its multiplicity), as the mean over
 * models, and over distinct measurements.
 *
 * A model most of whose operators lie outside of the other models' sizes is an outlier. It is
 * tested separately, with a predictor trained on all others, and not trained on.
 *
 * Ownership: the caller releases the evaluation; names belong to the data set. Errors: 0, or -errno
 * with err. Threads: nothing is shared.
 */
#ifndef NRG_PREDICT_EVALUATE_H
#define NRG_PREDICT_EVALUATE_H

#include "predict/score.h"

enum nrg_protocol {
    NRG_LEAVE_ONE_MODEL_OUT,
    NRG_LEAVE_ONE_FAMILY_OUT,
    NRG_SIZE_EXTRAPOLATION,
    NRG_PROTOCOLS
};
extern const char *const nrg_protocol_names[NRG_PROTOCOLS];

/* A predictor trains on the rows of a mask, then predicts any row. */
struct nrg_predictor {
    const char *name;
    /* 0 or -errno with err; the state is the predictor's own. */
    int (*train)(void *state, const struct nrg_dataset *set, const bool *mask,
                 struct nrg_error *err);
    /* Frees what train made; called before the next train and at the end. */
    void (*forget)(void *state);
    /* Predicts one row. An energy of NAN counts as not predictable. */
    void (*predict)(void *state, const struct nrg_dataset *set, size_t row,
                    struct nrg_estimate *out);
    void *state;
};

struct nrg_evaluate_options {
    enum nrg_protocol protocol;
    double largest_size;         /* batch x sequence that size extrapolation trains on; 2048 */
    bool trained;                /* the predictor is: all rows are tested, in one fold */
    bool all_models;             /* no model is tested separately */
    const char *const *families; /* "NAME=MODEL,MODEL"…; NULL: by the kind with most MACs */
};

struct nrg_fold_name {
    const char *name;
    size_t train_rows, test_rows; /* distinct */
};

struct nrg_evaluation {
    struct nrg_level_scores levels[NRG_NODE_LEVELS];
    struct nrg_level_scores apart[NRG_NODE_LEVELS]; /* of the models tested separately */
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

#endif

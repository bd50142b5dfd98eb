/*
 * What a model will cost on a device, before running it: every operator of the reduced graph by the
 * profile's coefficients, summed up the module tree. Operators of kinds that the profile has not
 * measured are the rest (element-wise ones and copies, by their traffic) or are taken by a
 * stand-in; both are said.
 *
 * Refused (-ENODATA): profiles that need to run the model, and graphs with operators of unknown
 * cost, because the sum would be too small without anybody seeing it.
 */
#ifndef NRG_PREDICT_PREDICT_H
#define NRG_PREDICT_PREDICT_H

#include "graph/module_tree.h"
#include "predict/profile.h"

/* What an operator costs beside its own energy, and how it is counted. */
struct nrg_work {
    double x[NRG_OPERATOR_UNITS];    /* 1, MACs, bytes */
    double beside[NRG_MODULE_UNITS]; /* 1 operator, or rest, copied and score bytes */
    const char *kind;                /* as it is looked up in the profile */
    bool is_rest, is_known;
    double times; /* executions */
};

/*
 * The work of one operator. `convention`: whose counts rest bytes are. False: its cost or how often
 * it runs is unknown.
 */
bool nrg_work_of(const struct nrg_reduced *reduced, const struct nrg_operator *op,
                 const struct nrg_physical *model, const char *convention, struct nrg_work *work);

/*
 * The same as features of one execution, for a data set's row of that operator: `kind` as it is
 * looked up, and what is known of the rest; others are left alone. False: its cost is unknown.
 */
bool nrg_work_features(const struct nrg_reduced *reduced, const struct nrg_operator *op,
                       const char **kind, double features[NRG_FEATURES]);

struct nrg_node_estimate {
    struct nrg_estimate estimate;
    double self_j;    /* without the modules below */
    size_t operators; /* inclusive */
};

/* One coefficient times what it applies to, over the whole model. */
struct nrg_term {
    const char *group, *unit;
    double coefficient, amount, energy_j;
};

struct nrg_op_estimate {
    struct nrg_estimate estimate; /* of all its executions, with what it causes beside itself */
    const char *group;            /* "rest" when it has no group of its own */
    double time_s;                /* of the layer model; 0: unknown */
};

struct nrg_prediction {
    struct nrg_node_estimate *nodes; /* one per node of the tree */
    size_t n;
    struct nrg_op_estimate *operators; /* one per operator of the reduced graph */
    size_t n_operators;
    struct nrg_term *terms; /* dearest first */
    size_t n_terms, cap_terms;
    char **reasons; /* why the interval is wider than usual, and what was taken as what */
    size_t n_reasons, cap_reasons;
};

int nrg_predict(struct nrg_prediction *out, const struct nrg_profile *profile,
                const struct nrg_reduced *reduced, const struct nrg_module_tree *tree,
                struct nrg_error *err);
void nrg_prediction_release(struct nrg_prediction *prediction);

#endif

/*
 * What a model will cost on a device, before it runs: every operator of the reduced graph by the
 * profile's coefficients, summed up the module tree. Operators of kinds that were not measured
 * count as the rest (element-wise ones and copies, by their traffic) or by a stand-in. The reasons
 * name both.
 *
 * Ownership: make, use while profile, graph and tree live, release.
 * Errors: 0, or -errno with err. -ENODATA: the profile needs a run of the model, or the cost of an
 * operator is unknown, so that the sum would be too small.
 * Threads: nothing is shared.
 */
#ifndef NRG_PREDICT_PREDICTION_H
#define NRG_PREDICT_PREDICTION_H

#include "graph/module_tree.h"
#include "predict/physical/estimate.h"
#include "predict/profile.h"

struct nrg_node_estimate {
    struct nrg_estimate estimate;
    double self_j;                  /* without the modules below */
    double self_low_j, self_high_j; /* with those of the modules below these bound the estimate */
    size_t operators;               /* inclusive */
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
    char **reasons; /* why the interval is wider than usual, and which stand-ins were used */
    size_t n_reasons, cap_reasons;
};

int nrg_predict(struct nrg_prediction *out, const struct nrg_profile *profile,
                const struct nrg_reduced *reduced, const struct nrg_module_tree *tree,
                struct nrg_error *err);
void nrg_prediction_release(struct nrg_prediction *prediction);

#endif

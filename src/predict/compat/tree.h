/*
 * The earlier system (IrEne, ACL 2021), so that its results can be reproduced and compared:
 *
 *   operators    ordinary least squares per kind on standardised features
 *   modules      E(p) = sum over children of w(c) E(c), w(c) = 1 + tanh(W . phi(c) + b) / 10, where
 *                phi are all products up to degree three of the child's standardised features, and
 *                W, b are learnt end to end: Adam, one tree a step, eight epochs, loss the squared
 *                relative error of every node that is not a leaf
 *
 * Variants: stepwise (children's measured energies in training), unstructured (W . phi + b is the
 * energy itself, no tree) and sum (all weights 1). Unlike the published code, scalers and operators
 * are fitted on training rows alone. Results depend on the initial weights: `seed`.
 *
 * Ownership: `forget` of the predictor frees the model. Errors: 0, or -errno with err. Threads: one
 * per state.
 */
#ifndef NRG_PREDICT_COMPAT_TREE_H
#define NRG_PREDICT_COMPAT_TREE_H

#include "predict/evaluate.h"

enum nrg_tree_variant {
    NRG_TREE_END_TO_END,
    NRG_TREE_STEPWISE,
    NRG_TREE_UNSTRUCTURED,
    NRG_TREE_SUM
};

struct nrg_tree_state {
    enum nrg_feature_set features;
    enum nrg_tree_variant variant;
    uint64_t seed;
    struct nrg_tree_model *model; /* the predictor's own */
};

struct nrg_predictor nrg_tree_predictor(struct nrg_tree_state *state);

#endif

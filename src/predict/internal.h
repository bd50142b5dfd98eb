/*
 * Building a prediction, shared by the physical model (prediction.c) and the layer model
 * (compat/layer_predict.c). Private to predict/.
 *
 * Ownership: nrg_prediction_release frees everything, also after an error. Errors: 0 or -ENOMEM.
 * Threads: nothing is shared.
 */
#ifndef NRG_PREDICT_INTERNAL_H
#define NRG_PREDICT_INTERNAL_H

#include "predict/prediction.h"

/* Room for the nodes of the tree and the operators of the graph, all zero. */
int nrg_prediction_init(struct nrg_prediction *out, const struct nrg_reduced *reduced,
                        const struct nrg_module_tree *tree);
/* Adds to the term of that group and unit, which it makes where there is none. */
int nrg_prediction_term(struct nrg_prediction *out, const char *group, const char *unit,
                        double coefficient, double amount);
int nrg_prediction_reason(struct nrg_prediction *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The layer model's part of nrg_predict. 0, or -errno with err. */
int nrg_predict_layers(struct nrg_prediction *out, const struct nrg_layer_model *model,
                       const struct nrg_reduced *reduced, const struct nrg_module_tree *tree,
                       struct nrg_error *err);

#endif

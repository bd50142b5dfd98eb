/* The layer model's part of nrg_predict: fills nodes, operators, terms and reasons. */
#ifndef NRG_PREDICT_PREDICT_LAYER_H
#define NRG_PREDICT_PREDICT_LAYER_H

#include "predict/prediction.h"

int nrg_predict_layers(struct nrg_prediction *out, const struct nrg_layer_model *model,
                       const struct nrg_reduced *reduced, const struct nrg_module_tree *tree,
                       struct nrg_error *err);

#endif

/*
 * The layer model, as the Jetson study made it: run time and power of convolutions, pools and dense
 * layers, each a polynomial of degree three in the layer's sizes plus a few products with a
 * meaning, standardised, with a Lasso whose penalty is cross-validated; energy is power times
 * time. Layers of other types have no model: a network's sum leaves them out, and the output says
 * so.
 *
 * `original` takes the study's own products. Otherwise the product of a convolution is its
 * multiply-accumulates, and that of a pool the elements that its windows read.
 *
 * Ownership: fit or parse, use, release. Errors: 0, or -errno with err. Threads: a model is
 * constant after the fit.
 */
#ifndef NRG_PREDICT_COMPAT_LAYER_H
#define NRG_PREDICT_COMPAT_LAYER_H

#include "predict/compat/lasso.h"
#include "predict/compat/poly.h"
#include "predict/dataset/layer_features.h"
#include "predict/evaluate.h"

enum nrg_layer_target { NRG_LAYER_TIME, NRG_LAYER_POWER, NRG_LAYER_TARGETS };

struct nrg_layer_fit {
    size_t n; /* columns; 0: not fitted */
    struct nrg_scaler scaler;
    double *coefficients;
    double intercept, alpha;
};

struct nrg_layer_model {
    bool original;
    size_t rows[NRG_LAYER_TYPES];
    struct nrg_layer_fit fits[NRG_LAYER_TYPES][NRG_LAYER_TARGETS];
    double q[NRG_LAYER_TYPES];              /* half width in ln(energy), on held-out rows */
    double expected_error[NRG_LAYER_TYPES]; /* of energy, on held-out rows */
    struct nrg_range range[NRG_LAYER_TYPES][NRG_FEATURES];
};

int nrg_layer_fit(struct nrg_layer_model *model, const struct nrg_dataset *set, const bool *mask,
                  bool original, double confidence, struct nrg_error *err);
void nrg_layer_release(struct nrg_layer_model *model);

struct nrg_layer_estimate {
    struct nrg_estimate energy;
    double time_s, power_w;
};
/* -ENODATA: no layer of that type was trained on, or a feature is missing. */
int nrg_layer_predict(const struct nrg_layer_model *model, int type, const double *features,
                      struct nrg_layer_estimate *out);

/* The features of a type, in the order of its polynomial. Returns how many. */
size_t nrg_layer_inputs(int type, const enum nrg_feature **inputs);
/* Columns of a type's regression: the polynomial, then the products with a meaning. */
size_t nrg_layer_columns(int type);

struct nrg_layer_state {
    bool original;
    double confidence;
    struct nrg_layer_model model;
};
struct nrg_predictor nrg_layer_predictor(struct nrg_layer_state *state);

#endif

/*
 * A profile: the trained energy model of one device, as a small JSON file (docs/predict.md) with
 * what it was made from, the ranges that were measured, and the errors to expect. Training is
 * deterministic: the same data give the same bytes.
 *
 * Ownership: train or read, use, release; texts live in the profile's arena. Errors: 0, or -errno
 * with err. Threads: a profile is constant after training and may be shared.
 */
#ifndef NRG_PREDICT_PROFILE_H
#define NRG_PREDICT_PROFILE_H

#include "predict/compat/layer.h"
#include "predict/llm/law.h"
#include "predict/physical/fit.h"

struct nrg_profile {
    struct nrg_arena arena;
    const char *device;
    const char *provenance; /* the worst of the rows': measured, derived or estimated */
    const char *convention; /* whose counts rest bytes are */
    const char **sources, **models;
    size_t n_sources, n_models;
    double rows;          /* with multiplicity */
    double confidence;    /* of the intervals */
    uint64_t fingerprint; /* of the training data */
    bool is_layer, is_llm;
    struct nrg_physical physical; /* empty in those two */
    struct nrg_layer_model layer; /* is_layer only */
    struct nrg_llm_law llm;       /* is_llm only */
    double memory_bytes;          /* of one GPU; 0: not known. Of is_llm only */
};

struct nrg_train_options {
    bool layer;          /* the layer model instead of the physical one */
    double memory_bytes; /* of language models' GPUs; 0: not known */
    bool original_layers;
    enum nrg_feature_set features;
    double confidence;
    const struct nrg_profile
        *from;                  /* of language models: the rows recalibrate it; NULL: fit anew */
    const char *const *sources; /* names of the data; NULL-terminated, or NULL */
};

/* 0, or -errno with err. */
int nrg_profile_train(struct nrg_profile *profile, const struct nrg_dataset *set,
                      const struct nrg_train_options *options, struct nrg_error *err);
void nrg_profile_release(struct nrg_profile *profile);

#endif

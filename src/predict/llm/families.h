/* The families of config.json: what each leaves unsaid. Private to llm/. */
#ifndef NRG_PREDICT_LLM_FAMILIES_H
#define NRG_PREDICT_LLM_FAMILIES_H

#include "predict/llm/config.h"

/* A config.json that is being read; the first error stays in rc. */
struct nrg_llm_reading {
    struct nrg_llm_config *config;
    const json_t *root; /* the text model's part of the file */
    const char *name;
    struct nrg_error *err;
    int rc;
};

/* What a file may leave out, because transformers fills it in. */
enum nrg_llm_default {
    NRG_LLM_HIDDEN,
    NRG_LLM_LAYERS,
    NRG_LLM_HEADS,
    NRG_LLM_KV_HEADS,
    NRG_LLM_INTERMEDIATE,
    NRG_LLM_VOCAB,
    NRG_LLM_DEFAULTS
};

struct nrg_llm_family {
    const char *type; /* model_type of the file */
    void (*finish)(struct nrg_llm_reading *r);
    bool tied;         /* unless the file says otherwise */
    bool no_attention; /* heads of the file are not of attention */
    /* Used where the file does not say it; 0: it must. */
    double vocab, head_dim, heads;
    double kv_heads; /* 0: as many as there are heads */
    /* Of a text_config inside of another model's config, which often leaves out defaults. */
    double inside[NRG_LLM_DEFAULTS];
};

/* NULL: not known; then `near` is the type that was probably meant, or NULL. */
const struct nrg_llm_family *nrg_llm_family_find(const char *type, const char **near);
/* All types, separated by spaces. Returns buf. */
const char *nrg_llm_family_names(char *buf, size_t size);

/* Parts that families share: norms and matrices, windows, experts. */
void nrg_llm_gated_rms(struct nrg_llm_reading *r);
void nrg_llm_plain_layer_norm(struct nrg_llm_reading *r);
/* A window on all layers but every `period`-th, unless layer_types lists them; 0: on all. */
void nrg_llm_set_window(struct nrg_llm_reading *r, const char *key, double otherwise,
                        double period);
/* Experts in every layer; `intermediate` is the key of their width. */
void nrg_llm_set_experts(struct nrg_llm_reading *r, const char *intermediate);
/* Every decoder_sparse_step-th layer has experts, except those that mlp_only_layers names. */
void nrg_llm_qwen_experts(struct nrg_llm_reading *r);

/* A number of the file that is not negative; `otherwise` when it is absent or null. */
double nrg_llm_number(struct nrg_llm_reading *r, const char *key, double otherwise);
/* The first of several names of one size, which must be there. */
double nrg_llm_size(struct nrg_llm_reading *r, const char *const *keys);
bool nrg_llm_flag(struct nrg_llm_reading *r, const char *key, bool otherwise);
/* "Every n-th layer": a whole number from 1 on. */
double nrg_llm_step(struct nrg_llm_reading *r, const char *key, double otherwise);
/* The file is refused: one line of file, key and reason. */
void nrg_llm_refuse(struct nrg_llm_reading *r, const char *key, const char *why);

#endif

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

struct nrg_llm_family {
    const char *type; /* model_type of the file */
    /* Used where the file does not say it; 0: it must. */
    double vocab, head_dim;
    bool tied; /* unless the file says otherwise */
    void (*finish)(struct nrg_llm_reading *r);
    double heads, kv_heads; /* as vocab; key/value heads: 0: as many as there are heads */
};

/* NULL: not known. */
const struct nrg_llm_family *nrg_llm_family_find(const char *type);

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

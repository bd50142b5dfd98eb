/*
 * What would fit into a GPU's memory in place of a load that does not: more GPUs, a smaller batch,
 * or, where a single sequence is too long, a shorter prompt.
 *
 * Ownership: plain values. Nothing fails. Threads: pure.
 */
#ifndef NRG_PREDICT_LLM_MEMORY_H
#define NRG_PREDICT_LLM_MEMORY_H

#include "predict/llm/work.h"

/* Each member alone, the rest of the load unchanged; 0: no size of it fits. */
struct nrg_llm_fit {
    double gpus, tp;
    double batch;
    double prompt; /* looked for where no batch fits */
};

void nrg_llm_fit_find(struct nrg_llm_fit *fit, const struct nrg_llm_config *config,
                      const struct nrg_llm_load *load, double memory_bytes);

/* "4 GPUs (--gpus 4 --tp 4), or a batch of 12 (--batch 12)"; returns buf. */
const char *nrg_llm_fit_text(const struct nrg_llm_fit *fit, char *buf, size_t size);

#endif

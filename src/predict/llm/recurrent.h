/*
 * Layers that keep a state of fixed size: Mamba 1 and 2, gated delta rules (Qwen3-Next), and the
 * families that are made of them or mix them with attention. Private to llm/. Threads: pure.
 */
#ifndef NRG_PREDICT_LLM_RECURRENT_H
#define NRG_PREDICT_LLM_RECURRENT_H

#include "predict/llm/families.h"

/* Sizes of one Mamba layer; rank is of the first version, heads and groups of the second. */
struct nrg_llm_mamba {
    double hidden, inner, size, kernel;
    double rank, heads, groups;
    bool bias, kernel_bias;
};

/* What one layer has; `layers` is left to the caller. */
struct nrg_llm_recurrence nrg_llm_mamba1(const struct nrg_llm_mamba *state);
struct nrg_llm_recurrence nrg_llm_mamba2(const struct nrg_llm_mamba *state);

void nrg_llm_finish_mamba(struct nrg_llm_reading *r);
void nrg_llm_finish_mamba2(struct nrg_llm_reading *r);
void nrg_llm_finish_jamba(struct nrg_llm_reading *r);
void nrg_llm_finish_nemotron_h(struct nrg_llm_reading *r);
void nrg_llm_finish_qwen3_next(struct nrg_llm_reading *r);

#endif

/* Families with an encoder: alone (BERT), or before a decoder (T5, Whisper). Private to llm/. */
#ifndef NRG_PREDICT_LLM_ENCODERS_H
#define NRG_PREDICT_LLM_ENCODERS_H

#include "predict/llm/families.h"

/* Layers of one kind, each attention with four projections and a block of two or three matrices. */
struct nrg_llm_stack {
    double layers, hidden, heads, head_dim, intermediate;
    double mlp_matrices;
    double norm_params; /* per element of each of two norms a layer; 1 scale, 2 with an offset */
    double biases;      /* of one layer */
};

double nrg_llm_stack_matrices(const struct nrg_llm_stack *stack);
/* Matrices, norms and biases of all layers. */
double nrg_llm_stack_params(const struct nrg_llm_stack *stack);
/* All biases that a plain layer can have. */
double nrg_llm_stack_biases(const struct nrg_llm_stack *stack);

void nrg_llm_finish_bert(struct nrg_llm_reading *r);
void nrg_llm_finish_distilbert(struct nrg_llm_reading *r);
void nrg_llm_finish_t5(struct nrg_llm_reading *r);
void nrg_llm_finish_mt5(struct nrg_llm_reading *r);
void nrg_llm_finish_umt5(struct nrg_llm_reading *r);
void nrg_llm_finish_whisper(struct nrg_llm_reading *r);

#endif

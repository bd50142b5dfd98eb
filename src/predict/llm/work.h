/*
 * What a serving step does, in numbers: one output token of each of `batch` sequences, on all GPUs
 * together, with the share of the prompts that falls on it (a request's prompt over its output
 * tokens). Prompt and output are counted separately too, and what lies in memory.
 *
 * Weights of matrices are read once per step by each copy of them. Of n experts a batch of B tokens
 * with k each touches n (1 - (1 - k/n)^B), if each token's choice is independent of the others'.
 *
 * Nothing is owned and nothing fails. Threads: pure.
 */
#ifndef NRG_PREDICT_LLM_WORK_H
#define NRG_PREDICT_LLM_WORK_H

#include "predict/llm/shape.h"

/* The terms that time and energy are made of. */
enum nrg_llm_term {
    NRG_LLM_LAUNCHES,    /* layers times GPUs: kernels are started, GPUs wait for each other */
    NRG_LLM_DENSE_BYTES, /* weights that every step reads */
    NRG_LLM_EXPERT_BYTES,
    NRG_LLM_CACHE_BYTES,
    NRG_LLM_MACS,
    NRG_LLM_PROMPT_MACS,
    NRG_LLM_ROUTED,   /* tokens times layers with experts times GPUs: each GPU sorts all tokens */
    NRG_LLM_UNPACKED, /* layers with quantised experts times GPUs */
    NRG_LLM_ACTIVATION_BYTES,
    /* The next two follow from the others: see nrg_llm_derive. */
    NRG_LLM_UNPACKED_8BIT, /* those of `unpacked` whose experts have 8 bits and scales of blocks */
    NRG_LLM_EXCHANGED_BYTES, /* activations that go to the other GPUs */
    NRG_LLM_TERMS
};
#define NRG_LLM_COUNTED NRG_LLM_UNPACKED_8BIT /* terms before it are columns of a data set */
extern const char *const nrg_llm_term_names[NRG_LLM_TERMS];

struct nrg_llm_load {
    double batch, prompt, output; /* sequences at a time; tokens of each */
    double gpus, tp;              /* GPUs of one server; over how many a matrix is cut */
    enum nrg_llm_dtype weights;   /* NRG_LLM_AS_STORED: as the config says */
    enum nrg_llm_dtype cache;     /* NRG_LLM_AS_STORED: as activations */
};

struct nrg_llm_work {
    double terms[NRG_LLM_TERMS]; /* of one step */
    double prompt_macs;          /* of one request's prompt */
    double token_macs;           /* of one output token, over the lengths it is made at */
    double attention_macs;       /* of them, those of pairs of tokens */
    double state_macs;           /* of them, those of recurrent states */
    double touched_experts;      /* of each layer with experts */
    double step_bytes;           /* that a step reads: weights and cache */
    double cache_token_bytes;    /* that a token adds to the cache */
    double state_bytes;          /* that a sequence keeps, whatever its length */
    double weight_bytes;         /* stored, all copies */
    double cache_bytes;          /* of full-length sequences, all copies */
    double gpu_bytes;            /* of both, on each GPU */
    double weight_bits;          /* of experts' weights, or of all where there are none */
};

/* -EINVAL with err: a load that no server has (tp that does not divide the GPUs…). */
int nrg_llm_work_make(struct nrg_llm_work *work, const struct nrg_llm_config *config,
                      const struct nrg_llm_load *load, struct nrg_error *err);

/* Sets the terms that follow from the others, the GPUs and the bits of weights. */
void nrg_llm_derive(double *terms, double gpus, double weight_bits);

/*
 * Over how many of the GPUs a matrix is cut unless the user or the row says: models with experts
 * over none (the experts lie on all of them), others over as many as their heads allow. The one
 * default of rows that were measured and of predictions.
 */
double nrg_llm_default_tp(const struct nrg_llm_config *config, double gpus);

/* Tokens that a position sees on average, positions from `first` to `last`; window 0: all. */
double nrg_llm_mean_context(double first, double last, double window);

#endif

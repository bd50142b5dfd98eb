/*
 * A config as numbers of weights: what is stored, what every token multiplies with, what an expert
 * has, what a token keeps in the cache. Exact: parameters equal those of transformers built
 * from the same config (tests/torch2/test_llm_truth.py).
 *
 * Nothing is owned and nothing fails; a checked config gives finite numbers. Threads: pure.
 */
#ifndef NRG_PREDICT_LLM_SHAPE_H
#define NRG_PREDICT_LLM_SHAPE_H

#include "predict/llm/config.h"

struct nrg_llm_shape {
    double params;        /* all of them, tied ones once */
    double active_params; /* those that one token uses: all but the experts it is not sent to */
    /* Weights of matrix products. */
    double attention;     /* projections of all layers, recurrent ones included */
    double dense;         /* feed-forward blocks, shared experts and routers of all layers */
    double expert;        /* one expert of one layer */
    double head;          /* output over the vocabulary; 0 for encoders */
    double embedding;     /* tables that are looked up; a tied head counts here */
    double small;         /* norms, biases and the like */
    double cross;         /* cross attention, used by each token of the decoder */
    double cross_source;  /* the same, by each position of the encoder */
    double part_params;   /* of parts for pictures or sound */
    double state_weights; /* convolutions and the like of recurrent layers */

    double pair_macs;    /* per pair of tokens and attention layer: scores and their sum */
    double cache_values; /* that a token adds to the cache in one attention layer */
    double state_values; /* of one sequence, all recurrent layers, whatever its length */
    double step_macs;    /* of one token in recurrent layers beside their projections */
};

void nrg_llm_shape_make(struct nrg_llm_shape *shape, const struct nrg_llm_config *config);

#endif

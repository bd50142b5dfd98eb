/*
 * What a language model is made of, as far as energy depends on it: sizes of its layers, how it
 * attends, which experts it has, how its weights are stored. It comes from a Hugging Face
 * config.json, from the header of a GGUF or safetensors file, or from a table of public models.
 *
 * Counts are doubles: whole numbers below 2^53 are exact in them, and a config whose parameters
 * would be more than 1e15 is refused, so that no product overflows.
 *
 * A file is not trusted: every size has a range, and what is outside gets one line that names file,
 * key and value. Ownership: plain values. Errors: 0, or -errno with err. Threads: pure.
 */
#ifndef NRG_PREDICT_LLM_CONFIG_H
#define NRG_PREDICT_LLM_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* How weights are stored. */
enum nrg_llm_dtype {
    NRG_LLM_AS_STORED, /* whatever the file says */
    NRG_LLM_F32,
    NRG_LLM_F16,
    NRG_LLM_BF16,
    NRG_LLM_FP8,
    NRG_LLM_INT8,
    NRG_LLM_INT4,
    NRG_LLM_MXFP4,
    NRG_LLM_NVFP4,
    NRG_LLM_DTYPES
};

/* By any of its usual names ("bf16", "bfloat16", "torch.bfloat16", "float8_e4m3fn"…); -1: none. */
int nrg_llm_dtype_find(const char *name);
const char *nrg_llm_dtype_name(enum nrg_llm_dtype dtype);
/* Bits of one weight, with the scales that blocks of weights share. */
double nrg_llm_dtype_bits(enum nrg_llm_dtype dtype);

/* Layers that keep a state of fixed size in place of a cache: what one of them has. */
struct nrg_llm_recurrence {
    double layers;
    double matrices; /* weights of its projections */
    double kernels;  /* weights of its convolution */
    double small;    /* decays, norms and biases */
    double values;   /* of the state of one sequence */
    double macs;     /* of one token, beside the projections */
};

/* An encoder whose result the decoder looks at in `cross_layers` of its layers. */
struct nrg_llm_source {
    double params;    /* all that it has, tables excepted that it shares with the decoder */
    double matrices;  /* weights that each of its positions multiplies with */
    double pair_macs; /* of each pair of its positions, all layers together */
    double once_macs; /* of a sequence, at its input */
    double positions; /* of a sequence, whatever is asked; 0: the tokens of the prompt */
};

/* A part for pictures or sound, which a prompt of text does not use. */
struct nrg_llm_tower {
    char what[24]; /* "vision", "audio"; "": none */
    double params; /* 0: not known, and left out */
};
#define NRG_LLM_PARTS 3

struct nrg_llm_config {
    char family[40]; /* "llama", "qwen3_moe", … */
    bool encoder;    /* one pass over the whole input, nothing is generated */
    double layers, hidden, vocab;
    double heads, kv_heads, head_dim;
    double attention_layers; /* of `layers`; the others are recurrent or have no mixer */
    double window;           /* of layers that look back only so far; 0: none does */
    double window_layers;
    double q_rank, kv_rank, rope_dim, nope_dim, v_dim; /* latent attention; kv_rank 0: not */

    double intermediate;  /* of a dense feed-forward block; a model of experts may have none */
    double mlp_matrices;  /* 3: gated, 2: not */
    double dense_layers;  /* layers with a dense block */
    double expert_layers; /* layers with experts */
    double experts, experts_per_token, expert_intermediate;
    double shared_intermediate; /* of the experts that every token uses, together */

    struct nrg_llm_recurrence recurrent;
    struct nrg_llm_source source; /* params 0: there is none */
    double cross_layers;
    struct nrg_llm_tower parts[NRG_LLM_PARTS];

    /* Small parameters: exact counts need them, energy does not. */
    double norm_params;     /* per element of a norm: 1 scale, 2 with an offset */
    double norms_per_layer; /* of `hidden` elements */
    double qk_norm_params;  /* of one attention layer */
    double other_params;    /* that nothing above counts */
    double positions, token_types;
    bool tied, qkv_bias, out_bias, mlp_bias, head_bias, sinks;
    bool attention_gate; /* queries bring a gate for each element of the result */
    bool expert_bias, shared_gate, embedding_norm, pooler, no_final_norm;

    enum nrg_llm_dtype dtype;     /* of all weights but the quantised ones */
    enum nrg_llm_dtype quantised; /* of linear layers; NRG_LLM_AS_STORED: none is */
    double quantised_bits;        /* 0: as the type has it */
    bool unknown_bits;            /* the file names a type or a method that is not known */
    /* Measured from a header instead of counted; 0: not known. */
    double stored_params, stored_bytes;
    bool guessed; /* the shape was made up from the number of parameters */
};

/* From the members of a config.json; `name` is the file, for messages. */
int nrg_llm_config_parse(struct nrg_llm_config *config, const json_t *root, const char *name,
                         struct nrg_error *err);

/* All sizes in range and in agreement; says which is not. */
int nrg_llm_config_check(const struct nrg_llm_config *config, const char *name,
                         struct nrg_error *err);

/*
 * From a path: config.json, a GGUF or safetensors file or the index of its shards, or a folder that
 * has a config.json. A safetensors file has a config.json beside it. Sizes by hand, such as
 * "params=7.6e9,active=1e9,layers=32,hidden=4096", take the place of a path.
 */
int nrg_llm_config_read(struct nrg_llm_config *config, const char *path, struct nrg_error *err);
/* The same from bytes; nothing beside them is looked for unless `beside`. */
int nrg_llm_config_read_bytes(struct nrg_llm_config *config, const uint8_t *bytes, size_t size,
                              const char *name, bool beside, struct nrg_error *err);

#endif

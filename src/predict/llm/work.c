/* See work.h. */
#include "predict/llm/work.h"

#include <errno.h>
#include <math.h>

#define ACTIVATION_BITS 16

const char *const nrg_llm_term_names[NRG_LLM_TERMS] = {
    "launches", "dense_bytes", "expert_bytes",     "cache_bytes",   "macs",           "prompt_macs",
    "routed",   "unpacked",    "activation_bytes", "unpacked_8bit", "exchanged_bytes"};

/* Bits of each group of weights. */
struct bits {
    double linear, expert, rest;
};

static bool is_quantised(enum nrg_llm_dtype dtype)
{
    return nrg_llm_dtype_bits(dtype) > 0 && nrg_llm_dtype_bits(dtype) < ACTIVATION_BITS;
}

/*
 * Quantised models keep tables, norms and the head as they were. MXFP4 is for experts alone where
 * there are any (GPT-OSS).
 */
static struct bits bits_of(const struct nrg_llm_config *c, enum nrg_llm_dtype asked)
{
    enum nrg_llm_dtype dtype = asked ? asked : c->quantised ? c->quantised : c->dtype;
    double rest = is_quantised(dtype) ? ACTIVATION_BITS : nrg_llm_dtype_bits(dtype);
    double linear = nrg_llm_dtype_bits(dtype);
    if (!asked && c->stored_bytes > 0 && c->stored_params > 0)
        linear = rest = 8 * c->stored_bytes / c->stored_params;
    else if (!asked && c->quantised && c->quantised_bits > 0)
        linear = c->quantised_bits;
    bool experts_only = dtype == NRG_LLM_MXFP4 && c->expert_layers > 0;
    return (struct bits){experts_only ? rest : linear, linear, rest};
}

double nrg_llm_mean_context(double first, double last, double window)
{
    double n = last - first + 1;
    if (!(n > 0))
        return 0;
    if (!(window > 0) || last <= window)
        return (first + last) / 2;
    if (first >= window)
        return window;
    double rising = window - first + 1; /* first … window */
    return (rising * (first + window) / 2 + (n - rising) * window) / n;
}

/* Pairs of tokens that positions first to last make, summed over attention layers, per position. */
static double mean_pairs(const struct nrg_llm_config *c, double first, double last)
{
    double full = c->attention_layers - c->window_layers;
    return full * nrg_llm_mean_context(first, last, 0) +
           c->window_layers * nrg_llm_mean_context(first, last, c->window);
}

/* Copies of the cache: heads that are fewer than the GPUs they are cut over lie on several. */
static double cache_copies(const struct nrg_llm_config *c, double tp)
{
    double heads = c->kv_rank > 0 ? 1 : c->kv_heads;
    return heads > 0 ? fmax(1, tp / heads) : 1;
}

/* Positions of the encoder before a decoder; 0: there is none. */
static double source_of(const struct nrg_llm_config *c, const struct nrg_llm_load *load)
{
    return !(c->source.params > 0)   ? 0
           : c->source.positions > 0 ? c->source.positions
                                     : load->prompt;
}

/* Tokens of the prompt that the decoder reads itself. */
static double read_by_decoder(const struct nrg_llm_config *c, const struct nrg_llm_load *load)
{
    return c->source.params > 0 && !(c->source.positions > 0) ? 0 : load->prompt;
}

static void count_macs(struct nrg_llm_work *w, const struct nrg_llm_config *c,
                       const struct nrg_llm_shape *s, const struct nrg_llm_load *load)
{
    double source = source_of(c, load), prompt = read_by_decoder(c, load);
    double crossed = c->cross_layers * s->pair_macs * source;
    double linear = s->attention + s->dense + s->step_macs + s->cross +
                    c->expert_layers * c->experts_per_token * s->expert;
    double first = prompt + 1, last = prompt + load->output;
    double pooler = c->pooler ? c->hidden * c->hidden : 0; /* once per sequence */
    double prompt_pairs =
        c->encoder ? c->attention_layers * prompt : mean_pairs(c, 1, fmax(prompt, 1));
    /* A server needs the output over the vocabulary at the last position only. */
    w->prompt_macs = prompt * (linear - pooler + s->pair_macs * prompt_pairs + crossed) + pooler +
                     (prompt > 0 ? s->head : 0);
    if (source > 0)
        w->prompt_macs += source * (c->source.matrices + s->cross_source) + c->source.once_macs +
                          source * source * c->source.pair_macs;
    w->attention_macs = load->output > 0 ? s->pair_macs * mean_pairs(c, first, last) + crossed : 0;
    w->token_macs = load->output > 0 ? linear + s->head + w->attention_macs : 0;
    w->state_macs = load->output > 0 ? s->step_macs : 0;
}

/* Tokens that a step looks at in the cache, and that a sequence keeps, all layers together. */
struct cached {
    double seen, kept;
};

static struct cached count_cached(const struct nrg_llm_config *c, const struct nrg_llm_load *load)
{
    double prompt = read_by_decoder(c, load), longest = prompt + load->output;
    double crossed = c->cross_layers * source_of(c, load);
    double kept = (c->attention_layers - c->window_layers) * longest +
                  c->window_layers * fmin(longest, c->window > 0 ? c->window : longest);
    double seen = load->output > 0 ? mean_pairs(c, prompt + 1, longest) + crossed : 0;
    return (struct cached){seen, kept + crossed};
}

/* What lies in memory, and what a step reads of it. */
static void count_bytes(struct nrg_llm_work *w, const struct nrg_llm_config *c,
                        const struct nrg_llm_shape *s, const struct nrg_llm_load *load)
{
    struct bits bits = bits_of(c, load->weights);
    struct cached cached = count_cached(c, load);
    double copies = load->gpus / load->tp;
    double cache = (load->cache ? nrg_llm_dtype_bits(load->cache) : ACTIVATION_BITS) / 8;
    double linear = (s->attention + s->dense + s->cross) * bits.linear / 8;
    double rest = (s->small + s->state_weights) * bits.rest / 8;
    double head = (c->encoder ? 0 : s->head) * bits.rest / 8;
    double table = (c->tied && !c->encoder ? s->embedding - s->head : s->embedding) * bits.rest / 8;
    /* Read once by each prompt, and not at all where there are neither pictures nor sound. */
    double source = (c->source.params + s->cross_source) * bits.linear / 8;
    double parts = s->part_params * bits.rest / 8;
    double experts = c->expert_layers * s->expert * bits.expert / 8;
    w->weight_bytes =
        copies * (linear + rest + head + table + source + parts) + experts * c->experts;
    w->touched_experts =
        c->experts > 0 ? c->experts * (1 - pow(1 - c->experts_per_token / c->experts, load->batch))
                       : 0;
    double copied = cache_copies(c, load->tp), state = 4 * s->state_values;
    w->cache_token_bytes = cache * s->cache_values * c->attention_layers;
    w->cache_bytes = load->batch * (copied * cache * s->cache_values * cached.kept + state);
    w->state_bytes = state;
    w->gpu_bytes = (w->weight_bytes + w->cache_bytes) / load->gpus;
    w->terms[NRG_LLM_DENSE_BYTES] =
        copies * (linear + rest + head + source / fmax(load->output, 1));
    w->terms[NRG_LLM_EXPERT_BYTES] = experts * w->touched_experts;
    w->terms[NRG_LLM_CACHE_BYTES] = load->batch * (copied * cache * s->cache_values * cached.seen +
                                                   (load->output > 0 ? 2 * state : 0));
    w->step_bytes = w->terms[NRG_LLM_DENSE_BYTES] + w->terms[NRG_LLM_EXPERT_BYTES] +
                    w->terms[NRG_LLM_CACHE_BYTES];
}

static int check_load(const struct nrg_llm_load *l, const struct nrg_llm_config *c,
                      struct nrg_error *err)
{
    if (!(l->batch > 0 && l->batch <= 1e7) || !(l->gpus >= 1 && l->gpus <= 1e6) ||
        !(l->prompt >= 0 && l->prompt <= 1e9) || !(l->output >= 0 && l->output <= 1e9))
        return nrg_fail(err, -EINVAL, NULL, "batch, prompt, output or GPUs are out of range");
    if (!(l->tp >= 1) || l->tp > l->gpus || fmod(l->gpus, l->tp) != 0)
        return nrg_fail(err, -EINVAL, NULL, "%g GPUs can't be cut into groups of %g (--tp)",
                        l->gpus, l->tp);
    if (c->heads > 0 && fmod(c->heads, l->tp) != 0 && fmod(l->tp, c->heads) != 0)
        return nrg_fail(err, -EINVAL, NULL, "%g attention heads can't be cut into %g parts (--tp)",
                        c->heads, l->tp);
    if (c->unknown_bits && !l->weights)
        return nrg_fail(err, -ENOTSUP, NULL,
                        "is stored in a way whose bits are not known: say them with --dtype");
    return 0;
}

void nrg_llm_derive(double *terms, double gpus, double weight_bits)
{
    bool eight = weight_bits > 6 && weight_bits < ACTIVATION_BITS;
    terms[NRG_LLM_UNPACKED_8BIT] = eight ? terms[NRG_LLM_UNPACKED] : 0;
    terms[NRG_LLM_EXCHANGED_BYTES] = terms[NRG_LLM_ACTIVATION_BYTES] * (gpus - 1);
}

double nrg_llm_default_tp(const struct nrg_llm_config *c, double gpus)
{
    if (c->expert_layers > 0)
        return 1;
    double tp = gpus;
    while (tp > 1 && (fmod(gpus, tp) != 0 || (c->heads > 0 && fmod(c->heads, tp) != 0)))
        tp--;
    return tp;
}

int nrg_llm_work_make(struct nrg_llm_work *w, const struct nrg_llm_config *c,
                      const struct nrg_llm_load *load, struct nrg_error *err)
{
    struct nrg_llm_shape s;
    int rc = check_load(load, c, err);
    *w = (struct nrg_llm_work){0};
    if (rc)
        return rc;
    nrg_llm_shape_make(&s, c);
    count_macs(w, c, &s, load);
    count_bytes(w, c, &s, load);
    struct bits bits = bits_of(c, load->weights);
    double tokens = load->batch,
           share = load->output > 0 ? load->batch / load->output : load->batch;
    if (c->encoder)
        tokens *= load->prompt;
    w->terms[NRG_LLM_LAUNCHES] = load->gpus * c->layers;
    w->terms[NRG_LLM_MACS] = load->batch * w->token_macs;
    w->terms[NRG_LLM_PROMPT_MACS] = share * w->prompt_macs;
    w->terms[NRG_LLM_ROUTED] = tokens * load->gpus * c->expert_layers;
    w->terms[NRG_LLM_UNPACKED] = bits.expert < ACTIVATION_BITS ? load->gpus * c->expert_layers : 0;
    w->terms[NRG_LLM_ACTIVATION_BYTES] = tokens * c->layers * c->hidden * ACTIVATION_BITS / 8;
    w->weight_bits = c->expert_layers > 0 ? bits.expert : bits.linear;
    nrg_llm_derive(w->terms, load->gpus, w->weight_bits);
    return 0;
}

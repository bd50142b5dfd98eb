/*
 * See config.h: types of weights, and what every config must fulfil, whichever reader made it.
 */
#include "predict/llm/config.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "predict/llm/shape.h"

#define MOST_PARAMS 1e15 /* a thousand times the largest model of 2026 */

/* Bits with the scales: a block of 128 x 128 (fp8), of 128 (int4, with its zero point), 32, 16. */
static const struct {
    const char *name;
    double bits;
} dtypes[NRG_LLM_DTYPES] = {
    [NRG_LLM_AS_STORED] = {"as stored", 0},
    [NRG_LLM_F32] = {"float32", 32},
    [NRG_LLM_F16] = {"float16", 16},
    [NRG_LLM_BF16] = {"bfloat16", 16},
    [NRG_LLM_FP8] = {"fp8", 8},
    [NRG_LLM_INT8] = {"int8", 8},
    [NRG_LLM_INT4] = {"int4", 4.15625},
    [NRG_LLM_MXFP4] = {"mxfp4", 4.25},
    [NRG_LLM_NVFP4] = {"nvfp4", 4.5},
};

static const struct {
    const char *name;
    enum nrg_llm_dtype dtype;
} other_names[] = {
    {"f32", NRG_LLM_F32},           {"fp32", NRG_LLM_F32},        {"f16", NRG_LLM_F16},
    {"fp16", NRG_LLM_F16},          {"half", NRG_LLM_F16},        {"bf16", NRG_LLM_BF16},
    {"float8", NRG_LLM_FP8},        {"fp8_e4m3", NRG_LLM_FP8},    {"fp8_e5m2", NRG_LLM_FP8},
    {"float8_e4m3fn", NRG_LLM_FP8}, {"float8_e5m2", NRG_LLM_FP8}, {"fbgemm_fp8", NRG_LLM_FP8},
    {"w8a8", NRG_LLM_INT8},         {"int4_awq", NRG_LLM_INT4},   {"awq", NRG_LLM_INT4},
    {"gptq", NRG_LLM_INT4},         {"fp4", NRG_LLM_NVFP4},
};

int nrg_llm_dtype_find(const char *name)
{
    if (!strncmp(name, "torch.", 6))
        name += 6;
    for (int i = 1; i < NRG_LLM_DTYPES; i++)
        if (!strcasecmp(name, dtypes[i].name))
            return i;
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (!strcasecmp(name, other_names[i].name))
            return (int)other_names[i].dtype;
    return -1;
}

const char *nrg_llm_dtype_name(enum nrg_llm_dtype dtype)
{
    return dtypes[dtype].name;
}

double nrg_llm_dtype_bits(enum nrg_llm_dtype dtype)
{
    return dtypes[dtype].bits;
}

struct rule {
    const char *what;
    double value, least, most;
};

static int check_rules(const struct rule *rules, size_t n, const char *name, struct nrg_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct rule *r = &rules[i];
        if (!(r->value >= r->least && r->value <= r->most) || r->value != floor(r->value))
            return nrg_fail(err, -EBADMSG, name, "%s is %.6g: not a whole number from %g to %g",
                            r->what, r->value, r->least, r->most);
    }
    return 0;
}

/* Sizes that a matrix or a count has; their products are bounded by MOST_PARAMS below. */
static int check_ranges(const struct nrg_llm_config *c, const char *name, struct nrg_error *err)
{
    bool has_heads = c->attention_layers > 0, has_experts = c->expert_layers > 0;
    const struct rule rules[] = {
        {"the number of layers", c->layers, 1, 1e4},
        {"the hidden size", c->hidden, 1, 1e6},
        {"the vocabulary", c->vocab, 1, 1e8},
        {"the number of attention heads", c->heads, has_heads, 1e5},
        {"the number of key/value heads", c->kv_heads, has_heads, fmax(c->heads, 1)},
        {"the head dimension", c->head_dim, has_heads, 1e5},
        {"the number of attention layers", c->attention_layers, 0, c->layers},
        {"the sliding window", c->window, c->window_layers > 0, 1e12},
        {"the number of layers with a window", c->window_layers, 0, c->attention_layers},
        {"q_lora_rank", c->q_rank, 0, 1e6},
        {"kv_lora_rank", c->kv_rank, 0, 1e6},
        {"qk_rope_head_dim", c->rope_dim, 0, 1e5},
        {"qk_nope_head_dim", c->nope_dim, 0, 1e5},
        {"v_head_dim", c->v_dim, c->kv_rank > 0, 1e5},
        {"the intermediate size", c->intermediate, c->dense_layers > 0, 1e8},
        {"the number of dense layers", c->dense_layers, 0, c->layers},
        {"the number of layers with experts", c->expert_layers, 0, c->layers},
        {"the number of experts", c->experts, has_experts, 1e5},
        {"experts per token", c->experts_per_token, has_experts, fmax(c->experts, 1)},
        {"the experts' intermediate size", c->expert_intermediate, has_experts, 1e8},
        {"the shared experts' intermediate size", c->shared_intermediate, 0, 1e8},
        {"the number of recurrent layers", c->recurrent.layers, 0, c->layers},
        {"the weights of a recurrent layer", c->recurrent.matrices, c->recurrent.layers > 0, 1e13},
        {"the convolution of a recurrent layer", c->recurrent.kernels, 0, 1e13},
        {"the state of a recurrent layer", c->recurrent.values, c->recurrent.layers > 0, 1e13},
        {"the encoder's parameters", c->source.params, 0, MOST_PARAMS},
        {"the parameters of vision", c->parts[0].params, 0, MOST_PARAMS},
        {"the encoder's positions", c->source.positions, 0, 1e9},
        {"the number of layers with cross attention", c->cross_layers, 0, c->layers},
        {"the number of positions", c->positions, 0, 1e9},
        {"the number of token types", c->token_types, 0, 1e6},
    };
    return check_rules(rules, sizeof rules / sizeof *rules, name, err);
}

int nrg_llm_config_check(const struct nrg_llm_config *c, const char *name, struct nrg_error *err)
{
    int rc = check_ranges(c, name, err);
    if (rc)
        return rc;
    if (c->heads > 0 && fmod(c->heads, c->kv_heads) != 0)
        return nrg_fail(err, -EBADMSG, name, "%g key/value heads do not divide %g attention heads",
                        c->kv_heads, c->heads);
    struct nrg_llm_shape shape;
    nrg_llm_shape_make(&shape, c);
    if (!(shape.params <= MOST_PARAMS))
        return nrg_fail(err, -EBADMSG, name,
                        "its sizes make %.3g parameters: no model has more than %g", shape.params,
                        MOST_PARAMS);
    return 0;
}

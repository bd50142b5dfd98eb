/*
 * See families.h. A row per model_type; a function per architecture says what transformers builds
 * for it beside the sizes: norms, biases, which layers have experts or a window. Names of keys are
 * those of the published configs.
 */
#include "predict/llm/families.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/words.h"
#include "predict/llm/encoders.h"
#include "predict/llm/recurrent.h"

/* Layers whose name in layer_types is one of those that look back a limited way. */
static double count_window_layers(struct nrg_llm_reading *r)
{
    const json_t *types = json_object_get(r->root, "layer_types");
    double n = 0;
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        n += type && (!strcmp(type, "sliding_attention") || !strcmp(type, "chunked_attention"));
    }
    return n;
}

/* A window on all layers but every `period`-th, unless layer_types lists them; 0: on all. */
void nrg_llm_set_window(struct nrg_llm_reading *r, const char *key, double otherwise, double period)
{
    struct nrg_llm_config *c = r->config;
    const json_t *types = json_object_get(r->root, "layer_types");
    c->window = nrg_llm_number(r, key, otherwise);
    if (json_is_array(types))
        c->window_layers = count_window_layers(r);
    else if (c->window > 0)
        c->window_layers = period > 0 ? c->layers - floor(c->layers / period) : c->layers;
    if (!(c->window > 0))
        c->window_layers = 0;
}

void nrg_llm_gated_rms(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    c->mlp_matrices = 3;
    c->norm_params = 1;
    c->norms_per_layer = 2;
}

/* Experts in every layer but those that the file names. */
void nrg_llm_set_experts(struct nrg_llm_reading *r, const char *intermediate)
{
    static const char *const experts[] = {"num_experts", "num_local_experts", "n_routed_experts",
                                          NULL};
    static const char *const per_token[] = {"num_experts_per_tok", "experts_per_token", NULL};
    struct nrg_llm_config *c = r->config;
    c->experts = nrg_llm_size(r, experts);
    c->experts_per_token = nrg_llm_size(r, per_token);
    c->expert_intermediate = nrg_llm_number(r, intermediate, c->intermediate);
    c->expert_layers = c->layers;
    c->dense_layers = 0;
}

static void finish_llama(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    nrg_llm_gated_rms(r);
    c->qkv_bias = c->out_bias = nrg_llm_flag(r, "attention_bias", false);
    c->mlp_bias = nrg_llm_flag(r, "mlp_bias", false);
}

static void finish_mistral(struct nrg_llm_reading *r)
{
    nrg_llm_gated_rms(r);
    nrg_llm_set_window(r, "sliding_window", 0, 0);
}

static void finish_mixtral(struct nrg_llm_reading *r)
{
    finish_mistral(r);
    nrg_llm_set_experts(r, "moe_intermediate_size");
}

/* Qwen's windows are off unless use_sliding_window; then the layers from max_window_layers on. */
static void set_qwen_window(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    if (!nrg_llm_flag(r, "use_sliding_window", false))
        return;
    nrg_llm_set_window(r, "sliding_window", 4096, 0);
    double first = nrg_llm_number(r, "max_window_layers", 0);
    if (!json_is_array(json_object_get(r->root, "layer_types")))
        c->window_layers = c->window > 0 ? fmax(c->layers - first, 0) : 0;
}

static void finish_qwen2(struct nrg_llm_reading *r)
{
    nrg_llm_gated_rms(r);
    r->config->qkv_bias = true;
    set_qwen_window(r);
}

static void finish_qwen3(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    nrg_llm_gated_rms(r);
    c->qk_norm_params = 2 * c->head_dim;
    c->qkv_bias = c->out_bias = nrg_llm_flag(r, "attention_bias", false);
    set_qwen_window(r);
}

/* Whether entry i of a list is also before it. */
static bool is_named(const json_t *list, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (json_equal(json_array_get(list, k), json_array_get(list, i)))
            return true;
    return false;
}

/* Every sparse_step-th layer has experts, except those that mlp_only_layers names. */
void nrg_llm_qwen_experts(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    double step = nrg_llm_step(r, "decoder_sparse_step", 1);
    const json_t *dense = json_object_get(r->root, "mlp_only_layers");
    nrg_llm_set_experts(r, "moe_intermediate_size");
    c->expert_layers = floor(c->layers / step);
    if (dense && !json_is_array(dense) && !json_is_null(dense))
        nrg_llm_refuse(r, "mlp_only_layers", "is no list");
    for (size_t i = 0; i < json_array_size(dense); i++) {
        double layer = json_number_value(json_array_get(dense, i));
        if (layer >= 0 && layer < c->layers && fmod(layer + 1, step) == 0 && !is_named(dense, i))
            c->expert_layers--;
    }
    c->dense_layers = c->layers - c->expert_layers;
}

static void finish_qwen2_moe(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    finish_qwen2(r);
    c->qkv_bias = nrg_llm_flag(r, "qkv_bias", true);
    nrg_llm_qwen_experts(r);
    c->shared_intermediate = nrg_llm_number(r, "shared_expert_intermediate_size", 0);
    c->shared_gate = true;
}

static void finish_qwen3_moe(struct nrg_llm_reading *r)
{
    finish_qwen3(r);
    nrg_llm_qwen_experts(r);
}

static void finish_gemma(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    nrg_llm_gated_rms(r);
    c->qkv_bias = c->out_bias = nrg_llm_flag(r, "attention_bias", false);
}

static void finish_gemma2(struct nrg_llm_reading *r)
{
    finish_gemma(r);
    r->config->norms_per_layer = 4;
    nrg_llm_set_window(r, "sliding_window", 4096, 2);
}

static void finish_gemma3(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    finish_gemma(r);
    c->norms_per_layer = 4;
    c->qk_norm_params = 2 * c->head_dim;
    nrg_llm_set_window(r, "sliding_window", 4096, nrg_llm_step(r, "sliding_window_pattern", 6));
}

/* The first layers are dense, all others have experts, and those that every token uses. */
static void set_late_experts(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    double first = nrg_llm_number(r, "first_k_dense_replace", 0);
    nrg_llm_set_experts(r, "moe_intermediate_size");
    c->dense_layers = fmin(first, c->layers);
    c->expert_layers = c->layers - c->dense_layers;
    c->shared_intermediate = nrg_llm_number(r, "n_shared_experts", 0) * c->expert_intermediate;
}

static void finish_deepseek(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    nrg_llm_gated_rms(r);
    c->qkv_bias = nrg_llm_flag(r, "attention_bias", false);
    c->q_rank = nrg_llm_number(r, "q_lora_rank", 0);
    c->head_dim = floor(c->head_dim); /* of no use here, and of any size */
    c->kv_rank = nrg_llm_size(r, (const char *const[]){"kv_lora_rank", NULL});
    c->rope_dim = nrg_llm_size(r, (const char *const[]){"qk_rope_head_dim", NULL});
    c->nope_dim = nrg_llm_size(r, (const char *const[]){"qk_nope_head_dim", NULL});
    c->v_dim = nrg_llm_size(r, (const char *const[]){"v_head_dim", NULL});
    if (!(c->kv_rank > 0))
        nrg_llm_refuse(r, "kv_lora_rank", "is 0");
    set_late_experts(r);
}

static void finish_gpt_oss(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    nrg_llm_gated_rms(r);
    c->qkv_bias = c->out_bias = nrg_llm_flag(r, "attention_bias", true);
    c->sinks = c->expert_bias = true;
    nrg_llm_set_experts(r, "moe_intermediate_size");
    nrg_llm_set_window(r, "sliding_window", 128, 2);
}

/* Every interleave_moe_layer_step-th layer has experts; a shared one is always there. */
static void finish_llama4(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    double step = nrg_llm_step(r, "interleave_moe_layer_step", 1);
    nrg_llm_gated_rms(r);
    c->qkv_bias = c->out_bias = nrg_llm_flag(r, "attention_bias", false);
    nrg_llm_set_experts(r, "moe_intermediate_size");
    c->expert_layers = floor(c->layers / step);
    c->dense_layers = c->layers - c->expert_layers;
    c->shared_intermediate = c->expert_intermediate;
    c->intermediate = nrg_llm_number(r, "intermediate_size_mlp", c->intermediate);
    nrg_llm_set_window(r, "attention_chunk_size", 8192, 4);
}

static void finish_phi(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    c->mlp_matrices = c->norm_params = 2;
    c->norms_per_layer = 1;
    c->qkv_bias = c->out_bias = c->mlp_bias = c->head_bias = true;
}

static void finish_phi3(struct nrg_llm_reading *r)
{
    nrg_llm_gated_rms(r);
    nrg_llm_set_window(r, "sliding_window", 0, 0);
}

void nrg_llm_plain_layer_norm(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    c->mlp_matrices = c->norm_params = c->norms_per_layer = 2;
    c->qkv_bias = c->out_bias = c->mlp_bias = true;
}

static void finish_gpt2(struct nrg_llm_reading *r)
{
    nrg_llm_plain_layer_norm(r);
    r->config->intermediate =
        nrg_llm_number(r, "intermediate_size", nrg_llm_number(r, "n_inner", 4 * r->config->hidden));
    r->config->positions = nrg_llm_size(
        r, (const char *const[]){"n_positions", "max_position_embeddings", "n_ctx", NULL});
}

static void finish_neox(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    nrg_llm_plain_layer_norm(r);
    c->qkv_bias = c->out_bias = nrg_llm_flag(r, "attention_bias", true);
}

static void finish_olmo2(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    nrg_llm_gated_rms(r);
    c->qkv_bias = c->out_bias = nrg_llm_flag(r, "attention_bias", false);
    c->qk_norm_params = (c->heads + c->kv_heads) * c->head_dim;
}

static void finish_olmo3(struct nrg_llm_reading *r)
{
    finish_olmo2(r);
    nrg_llm_set_window(r, "sliding_window", 4096, 4);
}

static void finish_glm4(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    nrg_llm_gated_rms(r);
    c->norms_per_layer = 4;
    c->qkv_bias = nrg_llm_flag(r, "attention_bias", false);
}

static void finish_glm4_moe(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    nrg_llm_gated_rms(r);
    c->head_dim = floor(c->head_dim);
    c->qkv_bias = nrg_llm_flag(r, "attention_bias", false);
    c->qk_norm_params = nrg_llm_flag(r, "use_qk_norm", false) ? 2 * c->head_dim : 0;
    set_late_experts(r);
}

static void finish_minimax_m2(struct nrg_llm_reading *r)
{
    finish_olmo2(r);
    nrg_llm_set_experts(r, "intermediate_size");
}

/* 7B: one key/value head; 40B on: the new architecture; RW: as many as there are heads. */
static void finish_falcon(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    bool new_style = nrg_llm_flag(r, "new_decoder_architecture", false);
    nrg_llm_plain_layer_norm(r);
    c->qkv_bias = c->out_bias = c->mlp_bias = nrg_llm_flag(r, "bias", false);
    c->intermediate = nrg_llm_number(r, "ffn_hidden_size", 4 * c->hidden);
    c->kv_heads = nrg_llm_number(r, "num_kv_heads", nrg_llm_number(r, "n_head_kv", c->heads));
    if (!new_style)
        c->kv_heads = nrg_llm_flag(r, "multi_query", true) ? 1 : c->heads;
    double norms = nrg_llm_number(r, "num_ln_in_parallel_attn", new_style ? 2 : 1);
    if (nrg_llm_flag(r, "parallel_attn", true) && norms != 2)
        c->norms_per_layer = 1;
}

static const struct nrg_llm_family families[] = {
    {.type = "llama", .finish = finish_llama, .inside = {4096, 32, 32, 0, 11008, 32000}},
    {.type = "mistral", .finish = finish_mistral, .inside = {4096, 32, 32, 8, 14336, 32000}},
    {.type = "mixtral", .finish = finish_mixtral},
    {.type = "qwen2", .finish = finish_qwen2, .inside = {4096, 32, 32, 32, 22016, 151936}},
    {.type = "qwen2_moe", .finish = finish_qwen2_moe},
    {.type = "qwen3", .finish = finish_qwen3, .head_dim = 128},
    {.type = "qwen3_moe", .finish = finish_qwen3_moe},
    {.type = "qwen3_next", .finish = nrg_llm_finish_qwen3_next, .head_dim = 256},
    {.type = "gemma", .finish = finish_gemma, .tied = true, .vocab = 256000, .head_dim = 256},
    {.type = "gemma2", .finish = finish_gemma2, .tied = true, .vocab = 256000, .head_dim = 256},
    {.type = "gemma3",
     .finish = finish_gemma3,
     .tied = true,
     .vocab = 262208,
     .head_dim = 256,
     .heads = 8,
     .kv_heads = 4,
     .inside = {2304, 26, 8, 4, 9216, 262208}},
    {.type = "deepseek_v2", .finish = finish_deepseek},
    {.type = "deepseek_v3", .finish = finish_deepseek},
    {.type = "kimi_k2", .finish = finish_deepseek},
    {.type = "gpt_oss", .finish = finish_gpt_oss, .head_dim = 64},
    {.type = "llama4", .finish = finish_llama4, .vocab = 202048, .head_dim = 128},
    {.type = "glm4", .finish = finish_glm4},
    {.type = "glm4_moe", .finish = finish_glm4_moe},
    {.type = "minimax_m2", .finish = finish_minimax_m2, .head_dim = 128},
    {.type = "olmo2", .finish = finish_olmo2},
    {.type = "olmo3", .finish = finish_olmo3},
    {.type = "falcon", .finish = finish_falcon, .tied = true},
    {.type = "mamba", .finish = nrg_llm_finish_mamba, .tied = true, .no_attention = true},
    {.type = "falcon_mamba", .finish = nrg_llm_finish_mamba, .tied = true, .no_attention = true},
    {.type = "mamba2", .finish = nrg_llm_finish_mamba2, .no_attention = true},
    {.type = "jamba", .finish = nrg_llm_finish_jamba},
    {.type = "nemotron_h", .finish = nrg_llm_finish_nemotron_h},
    {.type = "phi", .finish = finish_phi},
    {.type = "phi3", .finish = finish_phi3},
    {.type = "gpt2", .finish = finish_gpt2, .tied = true},
    {.type = "gpt_neox", .finish = finish_neox},
    {.type = "t5", .finish = nrg_llm_finish_t5, .tied = true},
    {.type = "mt5", .finish = nrg_llm_finish_mt5, .tied = true},
    {.type = "umt5", .finish = nrg_llm_finish_umt5, .tied = true},
    {.type = "whisper", .finish = nrg_llm_finish_whisper, .tied = true},
    {.type = "bert", .finish = nrg_llm_finish_bert, .tied = true},
    {.type = "roberta", .finish = nrg_llm_finish_bert, .tied = true},
    {.type = "xlm-roberta", .finish = nrg_llm_finish_bert, .tied = true},
    {.type = "camembert", .finish = nrg_llm_finish_bert, .tied = true},
    {.type = "distilbert", .finish = nrg_llm_finish_distilbert, .tied = true},
};

/* Other names of what the table has: the language models of larger ones. */
static const char *const same[][2] = {
    {"gemma3_text", "gemma3"},
    {"llama4_text", "llama4"},
    {"qwen2_vl", "qwen2"},
    {"qwen2_vl_text", "qwen2"},
    {"qwen2_5_vl", "qwen2"},
    {"qwen2_5_vl_text", "qwen2"},
    {"qwen2_5_omni_text", "qwen2"},
    {"qwen3_vl_text", "qwen3"},
    {"qwen3_vl_moe_text", "qwen3_moe"},
    {"qwen3_omni_moe_text", "qwen3_moe"},
    {"mistral3", "mistral"},
    {"phi4mm", "phi3"},
    {"phi4_multimodal", "phi3"},
    {"ministral", "mistral"},
    {"NemotronH_Nano_VL_V2", "nemotron_h"},
};

const struct nrg_llm_family *nrg_llm_family_find(const char *type, const char **near)
{
    struct nrg_guess guess = {.typed = type};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (!strcmp(type, same[i][0]))
            type = same[i][1];
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (!strcmp(families[i].type, type))
            return &families[i];
        nrg_guess_offer(&guess, families[i].type);
    }
    *near = guess.best;
    return NULL;
}

const char *nrg_llm_family_names(char *buf, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < sizeof families / sizeof *families && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? " " : "", families[i].type);
    return buf;
}

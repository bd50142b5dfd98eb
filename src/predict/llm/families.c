/*
 * See families.h. A row per model_type; a function per architecture says what transformers builds
 * for it beside the sizes: norms, biases, which layers have experts or a window. Names of keys are
 * those of the published configs.
 */
#include "predict/llm/families.h"

#include <math.h>
#include <string.h>

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
static void set_window(struct nrg_llm_reading *r, const char *key, double otherwise, double period)
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

static void gated_rms(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    c->mlp_matrices = 3;
    c->norm_params = 1;
    c->norms_per_layer = 2;
}

/* Experts in every layer but those that the file names. */
static void set_experts(struct nrg_llm_reading *r, const char *const *experts,
                        const char *const *per_token, const char *intermediate)
{
    struct nrg_llm_config *c = r->config;
    c->experts = nrg_llm_size(r, experts);
    c->experts_per_token = nrg_llm_size(r, per_token);
    c->expert_intermediate = nrg_llm_number(r, intermediate, c->intermediate);
    c->expert_layers = c->layers;
    c->dense_layers = 0;
}

static const char *const experts_keys[] = {"num_experts", "num_local_experts", "n_routed_experts",
                                           NULL};
static const char *const per_token_keys[] = {"num_experts_per_tok", "experts_per_token", NULL};

static void finish_llama(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    gated_rms(r);
    c->qkv_bias = c->out_bias = nrg_llm_flag(r, "attention_bias", false);
    c->mlp_bias = nrg_llm_flag(r, "mlp_bias", false);
}

static void finish_mistral(struct nrg_llm_reading *r)
{
    gated_rms(r);
    set_window(r, "sliding_window", 0, 0);
}

static void finish_mixtral(struct nrg_llm_reading *r)
{
    finish_mistral(r);
    set_experts(r, experts_keys, per_token_keys, "moe_intermediate_size");
}

/* Qwen's windows are off unless use_sliding_window; then the layers from max_window_layers on. */
static void set_qwen_window(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    if (!nrg_llm_flag(r, "use_sliding_window", false))
        return;
    set_window(r, "sliding_window", 4096, 0);
    double first = nrg_llm_number(r, "max_window_layers", 0);
    if (!json_is_array(json_object_get(r->root, "layer_types")))
        c->window_layers = c->window > 0 ? fmax(c->layers - first, 0) : 0;
}

static void finish_qwen2(struct nrg_llm_reading *r)
{
    gated_rms(r);
    r->config->qkv_bias = true;
    set_qwen_window(r);
}

static void finish_qwen3(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    gated_rms(r);
    c->qk_norm = true;
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
static void set_qwen_experts(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    double step = nrg_llm_step(r, "decoder_sparse_step", 1);
    const json_t *dense = json_object_get(r->root, "mlp_only_layers");
    set_experts(r, experts_keys, per_token_keys, "moe_intermediate_size");
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
    set_qwen_experts(r);
    c->shared_intermediate = nrg_llm_number(r, "shared_expert_intermediate_size", 0);
    c->shared_gate = true;
}

static void finish_qwen3_moe(struct nrg_llm_reading *r)
{
    finish_qwen3(r);
    set_qwen_experts(r);
}

static void finish_gemma(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    gated_rms(r);
    c->qkv_bias = c->out_bias = nrg_llm_flag(r, "attention_bias", false);
}

static void finish_gemma2(struct nrg_llm_reading *r)
{
    finish_gemma(r);
    r->config->norms_per_layer = 4;
    set_window(r, "sliding_window", 4096, 2);
}

static void finish_gemma3(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    finish_gemma(r);
    c->norms_per_layer = 4;
    c->qk_norm = true;
    set_window(r, "sliding_window", 4096, nrg_llm_step(r, "sliding_window_pattern", 6));
}

static void finish_deepseek(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    double first = nrg_llm_number(r, "first_k_dense_replace", 0);
    gated_rms(r);
    c->qkv_bias = nrg_llm_flag(r, "attention_bias", false);
    c->q_rank = nrg_llm_number(r, "q_lora_rank", 0);
    c->head_dim = floor(c->head_dim); /* of no use here, and of any size */
    c->kv_rank = nrg_llm_size(r, (const char *const[]){"kv_lora_rank", NULL});
    c->rope_dim = nrg_llm_size(r, (const char *const[]){"qk_rope_head_dim", NULL});
    c->nope_dim = nrg_llm_size(r, (const char *const[]){"qk_nope_head_dim", NULL});
    c->v_dim = nrg_llm_size(r, (const char *const[]){"v_head_dim", NULL});
    if (!(c->kv_rank > 0))
        nrg_llm_refuse(r, "kv_lora_rank", "is 0");
    set_experts(r, experts_keys, per_token_keys, "moe_intermediate_size");
    c->dense_layers = fmin(first, c->layers);
    c->expert_layers = c->layers - c->dense_layers;
    c->shared_intermediate = nrg_llm_number(r, "n_shared_experts", 0) * c->expert_intermediate;
}

static void finish_gpt_oss(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    gated_rms(r);
    c->qkv_bias = c->out_bias = nrg_llm_flag(r, "attention_bias", true);
    c->sinks = c->expert_bias = true;
    set_experts(r, experts_keys, per_token_keys, "moe_intermediate_size");
    set_window(r, "sliding_window", 128, 2);
}

/* Every interleave_moe_layer_step-th layer has experts; a shared one is always there. */
static void finish_llama4(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    double step = nrg_llm_step(r, "interleave_moe_layer_step", 1);
    gated_rms(r);
    c->qkv_bias = c->out_bias = nrg_llm_flag(r, "attention_bias", false);
    set_experts(r, experts_keys, per_token_keys, "moe_intermediate_size");
    c->expert_layers = floor(c->layers / step);
    c->dense_layers = c->layers - c->expert_layers;
    c->shared_intermediate = c->expert_intermediate;
    c->intermediate = nrg_llm_number(r, "intermediate_size_mlp", c->intermediate);
    set_window(r, "attention_chunk_size", 8192, 4);
}

/* What a layer of Nemotron is: a letter of hybrid_override_pattern, or a word of the list. */
static void count_block(struct nrg_llm_config *c, char letter, const char *word)
{
    c->attention_layers +=
        letter == '*' || !strcmp(word, "full_attention") || !strcmp(word, "attention");
    c->dense_layers += letter == '-' || !strcmp(word, "mlp");
    c->expert_layers += letter == 'E' || !strcmp(word, "moe");
    c->state_layers += letter == 'M' || !strcmp(word, "linear_attention") || !strcmp(word, "mamba");
}

static void count_blocks(struct nrg_llm_reading *r)
{
    const json_t *list = json_object_get(r->root, "layers_block_type");
    const char *p = json_string_value(json_object_get(r->root, "hybrid_override_pattern"));
    r->config->attention_layers = r->config->dense_layers = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        count_block(r->config, 0, word ? word : "");
    }
    for (; !json_is_array(list) && p && *p; p++)
        count_block(r->config, *p, "");
}

/* One mixer per layer: attention, recurrence, or a feed-forward block with or without experts. */
static void finish_nemotron_h(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    gated_rms(r);
    c->mlp_matrices = 2;
    c->norms_per_layer = 1;
    count_blocks(r);
    c->state_heads = nrg_llm_number(r, "mamba_num_heads", 0);
    c->state_inner = c->state_heads * nrg_llm_number(r, "mamba_head_dim", 0);
    c->state_size = nrg_llm_number(r, "ssm_state_size", 0);
    c->state_groups = nrg_llm_number(r, "n_groups", 1);
    c->state_kernel = nrg_llm_number(r, "conv_kernel", 4);
    if (!(c->expert_layers > 0))
        return;
    c->experts = nrg_llm_size(r, experts_keys);
    c->experts_per_token = nrg_llm_size(r, per_token_keys);
    c->expert_intermediate = nrg_llm_number(r, "moe_intermediate_size", c->intermediate);
    c->shared_intermediate =
        nrg_llm_number(r, "n_shared_experts", 1) *
        nrg_llm_number(r, "moe_shared_expert_intermediate_size", c->expert_intermediate);
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
    gated_rms(r);
    set_window(r, "sliding_window", 0, 0);
}

static void plain_layer_norm(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    c->mlp_matrices = c->norm_params = c->norms_per_layer = 2;
    c->qkv_bias = c->out_bias = c->mlp_bias = true;
}

static void finish_gpt2(struct nrg_llm_reading *r)
{
    plain_layer_norm(r);
    r->config->intermediate =
        nrg_llm_number(r, "intermediate_size", nrg_llm_number(r, "n_inner", 4 * r->config->hidden));
    r->config->positions = nrg_llm_size(
        r, (const char *const[]){"n_positions", "max_position_embeddings", "n_ctx", NULL});
}

static void finish_neox(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    plain_layer_norm(r);
    c->qkv_bias = c->out_bias = nrg_llm_flag(r, "attention_bias", true);
}

/* The encoder alone, as the Model class of transformers has it, with its pooler. */
static void finish_bert(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    plain_layer_norm(r);
    c->encoder = c->embedding_norm = c->no_final_norm = c->pooler = c->tied = true;
    c->positions = nrg_llm_number(r, "max_position_embeddings", 512);
    c->token_types = nrg_llm_number(r, "type_vocab_size", 2);
}

static void finish_distilbert(struct nrg_llm_reading *r)
{
    finish_bert(r);
    r->config->pooler = false;
    r->config->token_types = 0;
}

static const struct nrg_llm_family families[] = {
    {"llama", 0, 0, false, finish_llama, 0, 0},
    {"mistral", 0, 0, false, finish_mistral, 0, 0},
    {"mixtral", 0, 0, false, finish_mixtral, 0, 0},
    {"qwen2", 0, 0, false, finish_qwen2, 0, 0},
    {"qwen2_moe", 0, 0, false, finish_qwen2_moe, 0, 0},
    {"qwen3", 0, 128, false, finish_qwen3, 0, 0},
    {"qwen3_moe", 0, 0, false, finish_qwen3_moe, 0, 0},
    {"gemma", 256000, 256, true, finish_gemma, 0, 0},
    {"gemma2", 256000, 256, true, finish_gemma2, 0, 0},
    {"gemma3", 262208, 256, true, finish_gemma3, 8, 4},
    {"gemma3_text", 262208, 256, true, finish_gemma3, 8, 4},
    {"deepseek_v2", 0, 0, false, finish_deepseek, 0, 0},
    {"deepseek_v3", 0, 0, false, finish_deepseek, 0, 0},
    {"kimi_k2", 0, 0, false, finish_deepseek, 0, 0},
    {"gpt_oss", 0, 64, false, finish_gpt_oss, 0, 0},
    {"llama4", 202048, 128, false, finish_llama4, 0, 0},
    {"llama4_text", 202048, 128, false, finish_llama4, 0, 0},
    {"nemotron_h", 0, 0, false, finish_nemotron_h, 0, 0},
    {"phi", 0, 0, false, finish_phi, 0, 0},
    {"phi3", 0, 0, false, finish_phi3, 0, 0},
    {"gpt2", 0, 0, true, finish_gpt2, 0, 0},
    {"gpt_neox", 0, 0, false, finish_neox, 0, 0},
    {"bert", 0, 0, true, finish_bert, 0, 0},
    {"roberta", 0, 0, true, finish_bert, 0, 0},
    {"xlm-roberta", 0, 0, true, finish_bert, 0, 0},
    {"camembert", 0, 0, true, finish_bert, 0, 0},
    {"distilbert", 0, 0, true, finish_distilbert, 0, 0},
};

const struct nrg_llm_family *nrg_llm_family_find(const char *type)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (!strcmp(families[i].type, type))
            return &families[i];
    return NULL;
}

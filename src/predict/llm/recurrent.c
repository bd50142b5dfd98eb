/*
 * See recurrent.h. A layer's projections are matrix products as any other; beside them a token
 * goes through a short convolution, changes the state and is read from it. The work of that is
 * counted by elements of the state: once for the change, once for the reading, and once more where
 * the state is read before it is changed (delta rule).
 */
#include "predict/llm/recurrent.h"

#include <math.h>
#include <string.h>

struct nrg_llm_recurrence nrg_llm_mamba1(const struct nrg_llm_mamba *m)
{
    double mixed = m->rank + 2 * m->size;
    return (struct nrg_llm_recurrence){
        .matrices = 3 * m->hidden * m->inner + m->inner * mixed + m->rank * m->inner,
        .kernels = m->inner * m->kernel,
        .small = m->inner * m->size + 2 * m->inner + (m->kernel_bias ? m->inner : 0) +
                 (m->bias ? 2 * m->inner + m->hidden : 0),
        .values = m->inner * (m->size + m->kernel),
        .macs = m->inner * (2 * m->size + m->kernel)};
}

struct nrg_llm_recurrence nrg_llm_mamba2(const struct nrg_llm_mamba *m)
{
    double mixed = m->inner + 2 * m->groups * m->size, made = m->inner + mixed + m->heads;
    return (struct nrg_llm_recurrence){.matrices = m->hidden * (made + m->inner),
                                       .kernels = mixed * m->kernel,
                                       .small = 3 * m->heads + m->inner +
                                                (m->kernel_bias ? mixed : 0) +
                                                (m->bias ? made + m->hidden : 0),
                                       .values = m->inner * m->size + mixed * m->kernel,
                                       .macs = 2 * m->inner * m->size + mixed * m->kernel};
}

/* Sizes of the state are whole numbers from 1 on; products of them are checked with the config. */
static double state_size(struct nrg_llm_reading *r, const char *key, double otherwise)
{
    double size = nrg_llm_step(r, key, otherwise);
    if (size > 1e7)
        nrg_llm_refuse(r, key, "is beyond any model's size");
    return size;
}

/* "auto", or left out: a sixteenth of the width. */
static double time_step_rank(struct nrg_llm_reading *r, const char *key)
{
    const char *word = json_string_value(json_object_get(r->root, key));
    double otherwise = ceil(r->config->hidden / 16);
    return word && !strcmp(word, "auto") ? otherwise : state_size(r, key, fmax(otherwise, 1));
}

static double expanded(struct nrg_llm_reading *r, const char *key)
{
    return floor(nrg_llm_number(r, key, 2) * r->config->hidden);
}

/* No attention and no feed-forward block: one norm and one mixer a layer. */
static void only_states(struct nrg_llm_reading *r, struct nrg_llm_recurrence of_a_layer)
{
    struct nrg_llm_config *c = r->config;
    nrg_llm_gated_rms(r);
    c->norms_per_layer = 1;
    c->attention_layers = c->dense_layers = c->intermediate = 0;
    c->recurrent = of_a_layer;
    c->recurrent.layers = c->layers;
}

void nrg_llm_finish_mamba(struct nrg_llm_reading *r)
{
    const struct nrg_llm_mamba m = {.hidden = r->config->hidden,
                                    .inner = expanded(r, "expand"),
                                    .size = state_size(r, "state_size", 16),
                                    .kernel = state_size(r, "conv_kernel", 4),
                                    .rank = time_step_rank(r, "time_step_rank"),
                                    .bias = nrg_llm_flag(r, "use_bias", false),
                                    .kernel_bias = nrg_llm_flag(r, "use_conv_bias", true)};
    only_states(r, nrg_llm_mamba1(&m));
}

void nrg_llm_finish_mamba2(struct nrg_llm_reading *r)
{
    const struct nrg_llm_mamba m = {.hidden = r->config->hidden,
                                    .inner = expanded(r, "expand"),
                                    .size = state_size(r, "state_size", 128),
                                    .kernel = state_size(r, "conv_kernel", 4),
                                    .heads = state_size(r, "num_heads", 128),
                                    .groups = state_size(r, "n_groups", 8),
                                    .bias = nrg_llm_flag(r, "use_bias", false),
                                    .kernel_bias = nrg_llm_flag(r, "use_conv_bias", true)};
    only_states(r, nrg_llm_mamba2(&m));
}

/* Layers i with i % period == offset. */
static double count_every(struct nrg_llm_reading *r, const char *period_key, double period,
                          const char *offset_key, double offset)
{
    period = nrg_llm_step(r, period_key, period);
    offset = nrg_llm_number(r, offset_key, offset);
    if (!(offset < period))
        nrg_llm_refuse(r, offset_key, "is not less than its period");
    return fmax(floor((r->config->layers - 1 - offset) / period) + 1, 0);
}

void nrg_llm_finish_jamba(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    const struct nrg_llm_mamba m = {.hidden = c->hidden,
                                    .inner = expanded(r, "mamba_expand"),
                                    .size = state_size(r, "mamba_d_state", 16),
                                    .kernel = state_size(r, "mamba_d_conv", 4),
                                    .rank = time_step_rank(r, "mamba_dt_rank"),
                                    .bias = nrg_llm_flag(r, "mamba_proj_bias", false),
                                    .kernel_bias = nrg_llm_flag(r, "mamba_conv_bias", true)};
    nrg_llm_gated_rms(r);
    c->attention_layers = count_every(r, "attn_layer_period", 8, "attn_layer_offset", 4);
    c->recurrent = nrg_llm_mamba1(&m);
    c->recurrent.small += m.rank + 2 * m.size; /* norms of what is made from a token */
    c->recurrent.layers = c->layers - c->attention_layers;
    if (!(nrg_llm_number(r, "num_experts", 16) > 1))
        return;
    nrg_llm_set_experts(r, "intermediate_size");
    c->expert_layers = count_every(r, "expert_layer_period", 2, "expert_layer_offset", 1);
    c->dense_layers = c->layers - c->expert_layers;
}

/* ---- Nemotron: one mixer per layer ---- */

/* What a layer is: a letter of hybrid_override_pattern, or a word of the list. */
static void count_block(struct nrg_llm_config *c, char letter, const char *word)
{
    c->attention_layers +=
        letter == '*' || !strcmp(word, "full_attention") || !strcmp(word, "attention");
    c->dense_layers += letter == '-' || !strcmp(word, "mlp");
    c->expert_layers += letter == 'E' || !strcmp(word, "moe");
    c->recurrent.layers +=
        letter == 'M' || !strcmp(word, "linear_attention") || !strcmp(word, "mamba");
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

/* Attention, recurrence, or a feed-forward block with or without experts. */
void nrg_llm_finish_nemotron_h(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    double heads = nrg_llm_number(r, "mamba_num_heads", 0);
    const struct nrg_llm_mamba m = {.hidden = c->hidden,
                                    .inner = heads * nrg_llm_number(r, "mamba_head_dim", 0),
                                    .size = nrg_llm_number(r, "ssm_state_size", 0),
                                    .kernel = state_size(r, "conv_kernel", 4),
                                    .heads = heads,
                                    .groups = state_size(r, "n_groups", 1),
                                    .kernel_bias = true};
    nrg_llm_gated_rms(r);
    c->mlp_matrices = 2;
    c->norms_per_layer = 1;
    c->recurrent = nrg_llm_mamba2(&m);
    count_blocks(r);
    double experts = c->expert_layers, dense = c->dense_layers;
    if (!(experts > 0))
        return;
    nrg_llm_set_experts(r, "moe_intermediate_size");
    c->expert_layers = experts;
    c->dense_layers = dense;
    c->shared_intermediate =
        nrg_llm_number(r, "n_shared_experts", 1) *
        nrg_llm_number(r, "moe_shared_expert_intermediate_size", c->expert_intermediate);
}

/* ---- Qwen3-Next ---- */

/* A gated delta rule: a matrix of keys by values for each head of values. */
static struct nrg_llm_recurrence delta_rule(struct nrg_llm_reading *r)
{
    double hidden = r->config->hidden, key_dim = state_size(r, "linear_key_head_dim", 128);
    double value_dim = state_size(r, "linear_value_head_dim", 128);
    double heads = state_size(r, "linear_num_value_heads", 32), values = heads * value_dim;
    double keys = key_dim * state_size(r, "linear_num_key_heads", 16);
    double mixed = 2 * keys + values, kernel = state_size(r, "linear_conv_kernel_dim", 4);
    return (struct nrg_llm_recurrence){.matrices = hidden * (mixed + 2 * values + 2 * heads),
                                       .kernels = mixed * kernel,
                                       .small = 2 * heads + value_dim,
                                       .values = values * key_dim + mixed * kernel,
                                       .macs = 3 * values * key_dim + mixed * kernel};
}

/* Every fourth layer attends to everything, unless the file lists them. */
static double full_layers(struct nrg_llm_reading *r)
{
    const json_t *types = json_object_get(r->root, "layer_types");
    double n = 0, layers = r->config->layers;
    if (!json_is_array(types))
        return floor(layers / nrg_llm_step(r, "full_attention_interval", 4));
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        n += type && !strcmp(type, "full_attention");
    }
    return n;
}

void nrg_llm_finish_qwen3_next(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    nrg_llm_gated_rms(r);
    c->qkv_bias = c->out_bias = nrg_llm_flag(r, "attention_bias", false);
    c->qk_norm_params = 2 * c->head_dim;
    c->attention_gate = true;
    c->attention_layers = full_layers(r);
    c->recurrent = delta_rule(r);
    c->recurrent.layers = c->layers - c->attention_layers;
    if (nrg_llm_number(r, "num_experts", 0) > 0) {
        nrg_llm_qwen_experts(r);
        c->shared_intermediate = nrg_llm_number(r, "shared_expert_intermediate_size", 0);
        c->shared_gate = true;
    }
}

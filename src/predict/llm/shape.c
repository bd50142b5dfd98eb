/* See shape.h. Each function has the matrices of one part of a layer. */
#include "predict/llm/shape.h"

/* Projections of one attention layer, their biases and norms. */
static void count_attention(const struct nrg_llm_config *c, double *weights, double *small)
{
    double q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    *weights = c->hidden * ((c->attention_gate ? 3 : 2) * q + 2 * kv);
    *small = (c->qkv_bias ? (c->attention_gate ? 2 : 1) * q + 2 * kv : 0) +
             (c->out_bias ? c->hidden : 0) + c->qk_norm_params + (c->sinks ? c->heads : 0);
}

/* Latent attention: keys and values of all heads come from one vector of kv_rank values. */
static void count_latent(const struct nrg_llm_config *c, double *weights, double *small)
{
    double q_dim = c->heads * (c->nope_dim + c->rope_dim);
    *weights = c->q_rank > 0 ? c->hidden * c->q_rank + c->q_rank * q_dim : c->hidden * q_dim;
    *weights += c->hidden * (c->kv_rank + c->rope_dim) +
                c->kv_rank * c->heads * (c->nope_dim + c->v_dim) + c->heads * c->v_dim * c->hidden;
    *small = c->q_rank + c->kv_rank;
    if (c->qkv_bias)
        *small += c->q_rank + c->kv_rank + c->rope_dim + c->hidden;
}

static void count_recurrence(const struct nrg_llm_config *c, struct nrg_llm_shape *s)
{
    const struct nrg_llm_recurrence *r = &c->recurrent;
    s->attention += r->layers * r->matrices;
    s->state_weights = r->layers * r->kernels;
    s->small += r->layers * r->small;
    s->state_values = r->layers * r->values;
    s->step_macs = r->layers * r->macs;
}

/* Queries and results are of the decoder's tokens, keys and values of the encoder's positions. */
static void count_cross(const struct nrg_llm_config *c, struct nrg_llm_shape *s)
{
    double q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    s->cross = c->cross_layers * 2 * c->hidden * q;
    s->cross_source = c->cross_layers * 2 * c->hidden * kv;
}

static void count_feed_forward(const struct nrg_llm_config *c, struct nrg_llm_shape *s)
{
    double block = c->mlp_matrices * c->hidden;
    double wide = (c->mlp_matrices - 1) * c->intermediate; /* outputs before the last matrix */
    s->dense = c->dense_layers * block * c->intermediate;
    s->small += c->mlp_bias ? c->dense_layers * (wide + c->hidden) : 0;
    if (!(c->expert_layers > 0))
        return;
    double expert_small = c->expert_bias ? 2 * c->expert_intermediate + c->hidden : 0;
    s->expert = block * c->expert_intermediate;
    s->dense += c->expert_layers * (c->hidden * c->experts + block * c->shared_intermediate +
                                    (c->shared_gate ? c->hidden : 0));
    s->small += c->expert_layers * c->experts * (expert_small + (c->expert_bias ? 1 : 0));
}

static void count_ends(const struct nrg_llm_config *c, struct nrg_llm_shape *s)
{
    double norm = c->norm_params * c->hidden;
    s->embedding = (c->vocab + c->positions + c->token_types) * c->hidden;
    s->head = c->encoder ? 0 : c->vocab * c->hidden;
    s->small += c->layers * c->norms_per_layer * norm + (c->no_final_norm ? 0 : norm) +
                (c->embedding_norm ? norm : 0) + (c->head_bias ? c->vocab : 0) +
                (c->pooler ? c->hidden : 0) + c->other_params;
    s->dense += c->pooler ? c->hidden * c->hidden : 0;
}

void nrg_llm_shape_make(struct nrg_llm_shape *s, const struct nrg_llm_config *c)
{
    double weights, small;
    bool latent = c->kv_rank > 0;
    *s = (struct nrg_llm_shape){0};
    if (latent)
        count_latent(c, &weights, &small);
    else
        count_attention(c, &weights, &small);
    s->attention = c->attention_layers * weights;
    s->small = c->attention_layers * small;
    count_recurrence(c, s);
    count_cross(c, s);
    count_feed_forward(c, s);
    count_ends(c, s);
    s->pair_macs = c->heads * (latent ? c->nope_dim + c->rope_dim + c->v_dim : 2 * c->head_dim);
    s->cache_values = c->encoder ? 0
                      : latent   ? c->kv_rank + c->rope_dim
                                 : 2 * c->kv_heads * c->head_dim;
    double experts = c->expert_layers * s->expert;
    double rest = s->attention + s->dense + s->state_weights + s->small + s->embedding +
                  (c->tied ? 0 : s->head) + s->cross + s->cross_source + c->source.params;
    for (int i = 0; i < NRG_LLM_PARTS; i++)
        s->part_params += c->parts[i].params;
    s->params = s->part_params + rest + experts * c->experts;
    s->active_params = rest + experts * c->experts_per_token;
}

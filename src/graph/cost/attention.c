/*
 * Attention as one operator. q [..., L, D], k [..., S, D], v [..., S, Dv]: L x S x (D + Dv) MACs
 * per head; a causal mask is not discounted (no counter does), softmax adds 5 FLOPs per score.
 * The fused fast paths of PyTorch 1.12 and later hold the projections too.
 */
#include "graph/cost/internal.h"

void nrg_cost_attention(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *q = nrg_arg_at(op, 0), *k = nrg_arg_at(op, 1), *v = nrg_arg_at(op, 2);
    int64_t width = nrg_cost_add(nrg_arg_dim(q, -1), nrg_arg_dim(v, -1));
    int64_t scores = nrg_cost_mul(nrg_cost_leading(q, 1), nrg_arg_dim(k, -2));
    nrg_cost_set_macs(cost, nrg_cost_mul(scores, width));
    cost->flops = nrg_cost_add(cost->flops, nrg_cost_mul(5, scores));
}

/* Projections of q (T rows), k and v (S rows), scores and their product, output projection. */
static int64_t multi_head_macs(int64_t batch, int64_t t, int64_t s, int64_t e)
{
    int64_t square = nrg_cost_mul(e, e);
    int64_t project = nrg_cost_mul(nrg_cost_add(nrg_cost_mul(2, t), nrg_cost_mul(2, s)), square);
    int64_t attend = nrg_cost_mul(2, nrg_cost_mul(nrg_cost_mul(t, s), e));
    return nrg_cost_mul(batch, nrg_cost_add(project, attend));
}

static void infer_projections(const struct nrg_operator *op, size_t first, int64_t e)
{
    int64_t qkv[2] = {nrg_cost_mul(3, e), e}, out[2] = {e, e};
    if (e < 0)
        return;
    nrg_cost_infer(nrg_arg_at(op, first), 2, qkv);
    nrg_cost_infer(nrg_arg_at(op, first + 1), 1, qkv);
    nrg_cost_infer(nrg_arg_at(op, first + 2), 2, out);
    nrg_cost_infer(nrg_arg_at(op, first + 3), 1, out);
}

static void softmax_flops(const struct nrg_operator *op, struct nrg_cost *cost, int64_t batch,
                          int64_t t, int64_t s, size_t heads_at)
{
    int64_t heads;
    if (!nrg_arg_int(nrg_arg_at(op, heads_at), &heads))
        heads = NRG_COST_UNKNOWN;
    int64_t scores = nrg_cost_mul(nrg_cost_mul(batch, heads), nrg_cost_mul(t, s));
    cost->flops = nrg_cost_add(cost->flops, nrg_cost_mul(5, scores));
}

/* (query, key, value, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias...) */
void nrg_cost_multi_head_attention(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *q = nrg_arg_at(op, 0), *k = nrg_arg_at(op, 1);
    int64_t batch = nrg_arg_dim(q, 0), t = nrg_arg_dim(q, 1), s = nrg_arg_dim(k, 1);
    nrg_cost_set_macs(cost, multi_head_macs(batch, t, s, nrg_arg_dim(q, 2)));
    softmax_flops(op, cost, batch, t, s, 4);
    infer_projections(op, 5, nrg_arg_dim(q, 2));
}

/*
 * (src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first,
 * eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ...): two norms of
 * 7 FLOPs per element, two residual sums, one activation per inner element.
 */
void nrg_cost_encoder_layer(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0);
    int64_t batch = nrg_arg_dim(x, 0), t = nrg_arg_dim(x, 1), e = nrg_arg_dim(x, 2);
    int64_t inner = nrg_arg_dim(nrg_arg_at(op, 14), 0);
    int64_t rows = nrg_cost_mul(batch, t);
    int64_t forward = nrg_cost_mul(2, nrg_cost_mul(rows, nrg_cost_mul(e, inner)));
    nrg_cost_set_macs(cost, nrg_cost_add(multi_head_macs(batch, t, t, e), forward));
    softmax_flops(op, cost, batch, t, t, 2);
    int64_t beside = nrg_cost_mul(rows, nrg_cost_add(nrg_cost_mul(16, e), inner));
    cost->flops = nrg_cost_add(cost->flops, beside);
    infer_projections(op, 3, e);
}

/*
 * Formulas for ONNX operators whose operands stand elsewhere than PyTorch's or whose numbers are
 * attributes; all others share the formulas of cost_rules.h. MACs:
 *   convolution   batch x positions x elements of the weight [Cout, Cin / group, kernel…]
 *   Gemm, MatMul  elements of the result x K
 *   LSTM, GRU…    time x batch x elements of W [dirs, gates x H, I] and R [dirs, gates x H, H]
 *   attention     batch x heads x L x S x (D + Dv), from the widths of query and output
 * A BatchNormalization that the exporter folded into a convolution changes no MACs.
 */
#include <string.h>

#include "graph/cost/internal.h"

static int64_t int_attr(const struct nrg_operator *op, const char *name, int64_t otherwise)
{
    const struct nrg_attr *attr = nrg_op_attr(op->op, name);
    return attr && attr->kind == NRG_A_INT ? attr->i : otherwise;
}

static const char *text_attr(const struct nrg_operator *op, const char *name, const char *otherwise)
{
    const struct nrg_attr *attr = nrg_op_attr(op->op, name);
    return attr && attr->kind == NRG_A_STRING ? attr->s : otherwise;
}

/* Quantised convolutions have scales and zero points between. */
void nrg_cost_onnx_conv(const struct nrg_operator *op, const struct nrg_cost_rule *rule,
                        struct nrg_cost *cost)
{
    const struct nrg_arg *w = nrg_arg_at(op, (size_t)rule->arg);
    const struct nrg_type *out = op->n_outputs ? op->outputs[0]->type : NULL;
    int64_t n = 1;
    for (int i = 0; out && out->rank > 0 && i < out->rank; i++)
        n = i == 1 ? n : nrg_cost_mul(n, out->dims[i]);
    nrg_cost_set_macs(cost, nrg_cost_mul(out && out->rank > 2 ? n : -1, nrg_arg_numel(w)));
}

void nrg_cost_onnx_gemm(const struct nrg_operator *op, const struct nrg_cost_rule *rule,
                        struct nrg_cost *cost)
{
    const struct nrg_arg *a = nrg_arg_at(op, 0);
    int64_t k = nrg_arg_dim(a, int_attr(op, "transA", 0) && nrg_arg_rank(a) > 1 ? -2 : -1);
    nrg_cost_set_macs(cost, nrg_cost_mul(nrg_cost_output_numel(op), k));
}

/* The weight is packed; its extents are attributes. */
void nrg_cost_onnx_nbits(const struct nrg_operator *op, const struct nrg_cost_rule *rule,
                         struct nrg_cost *cost)
{
    int64_t k = int_attr(op, "K", NRG_COST_UNKNOWN);
    nrg_cost_set_macs(cost, nrg_cost_mul(nrg_cost_output_numel(op), k));
}

void nrg_cost_onnx_einsum(const struct nrg_operator *op, const struct nrg_cost_rule *rule,
                          struct nrg_cost *cost)
{
    struct nrg_arg operands = {.kind = NRG_ARG_LIST, .items = op->args, .n_items = op->n_args};
    nrg_cost_einsum_of(text_attr(op, "equation", NULL), &operands, cost);
}

/* Gate arithmetic beside the products: as for PyTorch's (cost_rnn.c). */
void nrg_cost_onnx_rnn(const struct nrg_operator *op, const struct nrg_cost_rule *rule,
                       struct nrg_cost *cost)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0), *w = nrg_arg_at(op, 1), *r = nrg_arg_at(op, 2);
    int64_t steps = nrg_arg_rank(x) == 3 ? nrg_cost_mul(nrg_arg_dim(x, 0), nrg_arg_dim(x, 1)) : -1;
    int64_t weights = nrg_cost_add(nrg_arg_numel(w), nrg_arg_numel(r));
    int64_t units = nrg_cost_mul(nrg_arg_dim(r, 0), nrg_arg_dim(r, 2));
    int per_unit = rule->arg == 4 ? 9 : rule->arg == 3 ? 8 : 2;
    nrg_cost_set_macs(cost, nrg_cost_mul(steps, weights));
    cost->flops = nrg_cost_add(cost->flops, nrg_cost_mul(per_unit, nrg_cost_mul(steps, units)));
}

void nrg_cost_onnx_pool(const struct nrg_operator *op, const struct nrg_cost_rule *rule,
                        struct nrg_cost *cost)
{
    const struct nrg_attr *kernel = nrg_op_attr(op->op, "kernel_shape");
    int64_t k = kernel && kernel->kind == NRG_A_INTS ? 1 : NRG_COST_UNKNOWN;
    for (size_t i = 0; k >= 0 && i < kernel->n; i++)
        k = nrg_cost_mul(k, kernel->is[i]);
    if (!rule->arg && k > 0)
        k--;
    cost->flops = nrg_cost_mul(k, nrg_cost_output_numel(op));
}

/* Nearest copies; linear weighs 2 per resized dimension, cubic 4: 8 and 32 FLOPs in two. */
void nrg_cost_onnx_resize(const struct nrg_operator *op, const struct nrg_cost_rule *rule,
                          struct nrg_cost *cost)
{
    const char *mode = text_attr(op, "mode", "nearest");
    int64_t each = !strcmp(mode, "nearest") ? 0 : !strcmp(mode, "cubic") ? 32 : 8;
    cost->flops = nrg_cost_mul(each, nrg_cost_output_numel(op));
    cost->read_bytes = nrg_arg_bytes(nrg_arg_at(op, 0));
}

/* Slice and Split read what they take. */
void nrg_cost_onnx_take(const struct nrg_operator *op, const struct nrg_cost_rule *rule,
                        struct nrg_cost *cost)
{
    cost->read_bytes = cost->written_bytes;
}

static int64_t but_last(const struct nrg_arg *x)
{
    int rank = nrg_arg_rank(x);
    int64_t n = rank < 2 ? NRG_COST_UNKNOWN : 1;
    for (int i = 0; i < rank - 1; i++)
        n = nrg_cost_mul(n, nrg_arg_dim(x, i));
    return n;
}

/* Rows of scores x their length x (width of q + width of the result); softmax 5 per score. */
static void attend(struct nrg_cost *cost, int64_t rows, int64_t s, int64_t width, int64_t heads)
{
    int64_t scores = nrg_cost_mul(rows, s);
    nrg_cost_set_macs(cost, nrg_cost_add(cost->macs, nrg_cost_mul(scores, width)));
    cost->flops = nrg_cost_add(cost->flops, nrg_cost_mul(5, nrg_cost_mul(scores, heads)));
}

/* Query, key, value apart: [B, L, heads x D] or [B, heads, L, D]. */
void nrg_cost_onnx_attention(const struct nrg_operator *op, const struct nrg_cost_rule *rule,
                             struct nrg_cost *cost)
{
    const struct nrg_arg *q = nrg_arg_at(op, 0), *k = nrg_arg_at(op, 1);
    const struct nrg_arg *past = nrg_arg_at(op, rule->arg ? (size_t)rule->arg : SIZE_MAX);
    const struct nrg_type *out = op->n_outputs ? op->outputs[0]->type : NULL;
    int64_t s = nrg_arg_dim(k, -2), heads = int_attr(op, "num_heads", 1);
    int64_t width = out && out->rank > 0
                        ? nrg_cost_add(nrg_arg_dim(q, -1), out->dims[out->rank - 1])
                        : NRG_COST_UNKNOWN;
    if (past->kind != NRG_ARG_NONE)
        s = nrg_cost_add(s, nrg_arg_dim(past, -2));
    if (nrg_arg_rank(q) == 3)
        heads = int_attr(op, "q_num_heads", heads);
    else
        heads = 1;
    attend(cost, but_last(q), s, width, heads);
}

/* com.microsoft Attention: one weight projects the input to Q, K and V. */
void nrg_cost_onnx_self_attention(const struct nrg_operator *op, const struct nrg_cost_rule *rule,
                                  struct nrg_cost *cost)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0), *w = nrg_arg_at(op, 1);
    const struct nrg_arg *past = nrg_arg_at(op, rule->arg ? (size_t)rule->arg : SIZE_MAX);
    const struct nrg_type *out = op->n_outputs ? op->outputs[0]->type : NULL;
    int64_t rows = but_last(x), s = nrg_arg_dim(x, 1), value = -1, query;
    if (past->kind != NRG_ARG_NONE)
        s = nrg_cost_add(s, nrg_arg_dim(past, -2));
    if (out && out->rank == 3)
        value = out->dims[2];
    query = nrg_arg_dim(w, 1) >= 0 && value >= 0 ? (nrg_arg_dim(w, 1) - value) / 2 : -1;
    nrg_cost_set_macs(cost, nrg_cost_mul(rows, nrg_arg_numel(w)));
    int64_t projected = cost->macs;
    cost->macs = 0;
    attend(cost, rows, s, nrg_cost_add(query, value), int_attr(op, "num_heads", 1));
    cost->macs = nrg_cost_add(cost->macs, projected);
}

/*
 * Formulas for ONNX operators whose operands have another order than PyTorch's or whose numbers are
 * attributes; all others share the formulas of the other files. MACs:
 *   convolution   batch x positions x elements of the weight [Cout, Cin / group, kernel…]
 *   Gemm, MatMul  elements of the result x K
 *   LSTM, GRU…    time x batch x elements of W [dirs, gates x H, I] and R [dirs, gates x H, H]
 *   attention     batch x heads x L x S x (D + Dv), from the widths of query and output
 * A BatchNormalization that the exporter folded into a convolution changes no MACs.
 */
#include <string.h>

#include "graph/cost/internal.h"

/* Quantised convolutions have scales and zero points between input and weight. */
void nrg_cost_onnx_conv(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *w = nrg_arg_at(op, (size_t)op->rule->arg);
    int64_t n = nrg_cost_positions(nrg_cost_output_type(op));
    nrg_cost_set_macs(cost, nrg_cost_mul(n, nrg_arg_numel(w)));
}

void nrg_cost_onnx_gemm(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *a = nrg_arg_at(op, 0);
    int64_t k = nrg_arg_dim(a, nrg_op_int(op->op, "transA", 0) && nrg_arg_rank(a) > 1 ? -2 : -1);
    nrg_cost_set_macs(cost, nrg_cost_mul(nrg_cost_output_numel(op), k));
}

/* The weight is packed; its extents are attributes. */
void nrg_cost_onnx_nbits(const struct nrg_operator *op, struct nrg_cost *cost)
{
    int64_t k = nrg_op_int(op->op, "K", NRG_COST_UNKNOWN);
    nrg_cost_set_macs(cost, nrg_cost_mul(nrg_cost_output_numel(op), k));
}

void nrg_cost_onnx_einsum(const struct nrg_operator *op, struct nrg_cost *cost)
{
    struct nrg_arg operands = {.kind = NRG_ARG_LIST, .items = op->args, .n_items = op->n_args};
    nrg_cost_einsum_of(nrg_op_text(op->op, "equation", NULL), &operands, cost);
}

/* Gate arithmetic beside the products: as for PyTorch's (cost/rnn.c). */
void nrg_cost_onnx_rnn(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0), *w = nrg_arg_at(op, 1), *r = nrg_arg_at(op, 2);
    int64_t steps = nrg_arg_rank(x) == 3 ? nrg_cost_mul(nrg_arg_dim(x, 0), nrg_arg_dim(x, 1)) : -1;
    int64_t weights = nrg_cost_add(nrg_arg_numel(w), nrg_arg_numel(r));
    int64_t units = nrg_cost_mul(nrg_arg_dim(r, 0), nrg_arg_dim(r, 2));
    int64_t gates = nrg_cost_mul(nrg_cost_gate_flops(op->rule->arg), nrg_cost_mul(steps, units));
    nrg_cost_set_macs(cost, nrg_cost_mul(steps, weights));
    cost->flops = nrg_cost_add(cost->flops, gates);
}

void nrg_cost_onnx_pool(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_attr *kernel = nrg_op_attr(op->op, "kernel_shape");
    int64_t k = kernel && kernel->kind == NRG_A_INTS ? 1 : NRG_COST_UNKNOWN;
    for (size_t i = 0; k >= 0 && i < kernel->n; i++)
        k = nrg_cost_mul(k, kernel->is[i]);
    if (!op->rule->arg && k > 0)
        k--;
    cost->flops = nrg_cost_mul(k, nrg_cost_output_numel(op));
}

/* Nearest copies; linear weighs 2 per resized dimension, cubic 4: 8 and 32 FLOPs in two. */
void nrg_cost_onnx_resize(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const char *mode = nrg_op_text(op->op, "mode", "nearest");
    int64_t each = !strcmp(mode, "nearest") ? 0 : !strcmp(mode, "cubic") ? 32 : 8;
    cost->flops = nrg_cost_mul(each, nrg_cost_output_numel(op));
    cost->read_bytes = nrg_arg_bytes(nrg_arg_at(op, 0));
}

/* Slice and Split read what they take. */
void nrg_cost_onnx_take(const struct nrg_operator *op, struct nrg_cost *cost)
{
    cost->read_bytes = cost->written_bytes;
}

/* Keys that each query meets: those of the input and those of the past (argument `arg`). */
static int64_t keys_with_past(const struct nrg_operator *op, int64_t keys)
{
    const struct nrg_arg *past = nrg_arg_at(op, op->rule->arg ? (size_t)op->rule->arg : SIZE_MAX);
    return past->kind == NRG_ARG_NONE ? keys : nrg_cost_add(keys, nrg_arg_dim(past, -2));
}

/* Rows of scores x their length x (width of q + width of the result); softmax 5 per score. */
static void add_attention(struct nrg_cost *cost, const struct nrg_arg *q, int64_t keys,
                          int64_t width, int64_t heads)
{
    int64_t scores = nrg_cost_mul(nrg_cost_leading(q, 1), keys);
    nrg_cost_set_macs(cost, nrg_cost_mul(scores, width));
    cost->flops = nrg_cost_add(cost->flops, nrg_cost_mul(5, nrg_cost_mul(scores, heads)));
}

/* Query, key, value apart: [B, L, heads x D] or [B, heads, L, D]. */
void nrg_cost_onnx_attention(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *q = nrg_arg_at(op, 0), *k = nrg_arg_at(op, 1);
    int64_t width = nrg_cost_add(nrg_arg_dim(q, -1), nrg_cost_output_dim(op, -1)), heads = 1;
    if (nrg_arg_rank(q) == 3)
        heads = nrg_op_int(op->op, "q_num_heads", nrg_op_int(op->op, "num_heads", 1));
    add_attention(cost, q, keys_with_past(op, nrg_arg_dim(k, -2)), width, heads);
}

/* com.microsoft Attention: one weight projects the input to Q, K and V. */
void nrg_cost_onnx_self_attention(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0), *w = nrg_arg_at(op, 1);
    int64_t value = nrg_cost_output_type(op)->rank == 3 ? nrg_cost_output_dim(op, 2) : -1;
    int64_t columns = nrg_arg_dim(w, 1);
    int64_t query = columns >= 0 && value >= 0 ? (columns - value) / 2 : -1;
    int64_t projected = nrg_cost_mul(nrg_cost_leading(x, 1), nrg_arg_numel(w));
    add_attention(cost, x, keys_with_past(op, nrg_arg_dim(x, 1)), nrg_cost_add(query, value),
                  nrg_op_int(op->op, "num_heads", 1));
    cost->macs = nrg_cost_add(cost->macs, projected);
    cost->flops = nrg_cost_add(cost->flops, nrg_cost_mul(2, projected));
}

/*
 * Convolutions. MACs = batch x output positions x elements of the weight (Cout, Cin/groups, k...);
 * a transposed one counts its input positions instead. Traced text does not print weights, and
 * guessing the kernel from sizes fails for strides above 1: without the weight the cost is unknown.
 */
#include "graph/cost/internal.h"

/*
 * How often the weight is applied: once per position of the output, of the input where it is
 * transposed. Both are [N, C, space...] or [C, space...]; the batch is included.
 */
static int64_t times_applied(const struct nrg_operator *op, int space, bool transposed)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0);
    const struct nrg_type *type = transposed ? nrg_arg_type(x) : nrg_cost_output_type(op);
    int rank = transposed ? nrg_arg_rank(x) : type->rank;
    if (space < 1 || rank < space + 1 || rank > space + 2 ||
        (!transposed && nrg_type_numel(type) < 0))
        return NRG_COST_UNKNOWN;
    return nrg_cost_product(type, rank, rank - space - 1);
}

static bool is_transposed(const struct nrg_operator *op, int where)
{
    int64_t flag = 0;
    const struct nrg_attr *attr = nrg_op_attr(op->op, "transposed");
    if (where == -2)
        return true;
    if (where >= 0 && !nrg_arg_int(nrg_arg_at(op, (size_t)where), &flag) && attr)
        flag = attr->i; /* PyTorch 0.4 prints arguments as attributes */
    return flag != 0;
}

void nrg_cost_convolution(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *w = nrg_arg_at(op, 1);
    int space = nrg_arg_rank(w) - 2;
    int64_t n = times_applied(op, space, is_transposed(op, op->rule->arg));
    nrg_cost_set_macs(cost, nrg_cost_mul(n, nrg_arg_numel(w)));
    /* One bias per channel of the output, whose shape graphs print. */
    const struct nrg_type *type = nrg_cost_output_type(op);
    if (space >= 1 && nrg_type_numel(type) >= 0 && type->rank > space)
        nrg_cost_infer(nrg_arg_at(op, 2), 1, &type->dims[type->rank - space - 1]);
}

/* [T, B, Cin] with a weight [k, Cin, Cout]. */
void nrg_cost_conv_tbc(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *w = nrg_arg_at(op, 1);
    int64_t out = nrg_cost_output_numel(op);
    nrg_cost_set_macs(cost, nrg_cost_mul(out, nrg_cost_mul(nrg_arg_dim(w, 0), nrg_arg_dim(w, 1))));
}

/*
 * The weight is inside packed parameters. A parameter file may list it (reduce/params.c then binds
 * it to the object); otherwise the cost is unknown.
 */
void nrg_cost_quantized_conv(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *packed = nrg_arg_at(op, 1);
    struct nrg_arg w = {.kind = NRG_ARG_TENSOR, .data = packed->data, .type = packed->type};
    if (packed->data)
        w.type = packed->data->type;
    int space = packed->data ? nrg_arg_rank(&w) - 2 : -1;
    int64_t n = times_applied(op, space, op->rule->arg);
    int64_t elements = space >= 1 ? nrg_arg_numel(&w) : NRG_COST_UNKNOWN;
    nrg_cost_set_macs(cost, nrg_cost_mul(n, elements));
    cost->read_bytes = nrg_cost_add(cost->read_bytes, space >= 1 ? nrg_arg_bytes(&w) : -1);
}

/*
 * Convolutions. MACs = batch x output positions x elements of the weight (Cout, Cin/groups, k...);
 * a transposed one goes through its input positions instead. Traced text does not print weights,
 * and guessing the kernel from sizes fails for strides above 1: without the weight the cost is
 * unknown.
 */
#include <string.h>

#include "graph/cost/internal.h"

/* Positions of a tensor [N, C, space...] or [C, space...], batch included. */
static int64_t positions(const struct nrg_type *type, int space)
{
    int64_t n = 1;
    if (type->kind != NRG_T_TENSOR || nrg_type_numel(type) < 0 || type->rank < space + 1 ||
        type->rank > space + 2)
        return NRG_COST_UNKNOWN;
    int channel = type->rank - space - 1;
    for (int i = 0; i < type->rank; i++)
        if (i != channel)
            n = nrg_cost_mul(n, type->dims[i]);
    return n;
}

static int64_t arg_positions(const struct nrg_arg *x, int space)
{
    int rank = nrg_arg_rank(x);
    int64_t n = 1;
    if (rank < space + 1 || rank > space + 2)
        return NRG_COST_UNKNOWN;
    for (int i = 0; i < rank; i++)
        if (i != rank - space - 1)
            n = nrg_cost_mul(n, nrg_arg_dim(x, i));
    return n;
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

void nrg_cost_convolution(const struct nrg_operator *op, const struct nrg_cost_rule *rule,
                          struct nrg_cost *cost)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0), *w = nrg_arg_at(op, 1);
    int space = nrg_arg_rank(w) - 2;
    bool transposed = is_transposed(op, rule->arg);
    int64_t n = NRG_COST_UNKNOWN;
    if (space >= 1 && transposed)
        n = arg_positions(x, space);
    else if (space >= 1 && op->n_outputs)
        n = positions(op->outputs[0]->type, space);
    nrg_cost_set_macs(cost, nrg_cost_mul(n, nrg_arg_numel(w)));
    /* One bias per channel of the output, which is printed. */
    if (op->n_outputs) {
        const struct nrg_type *type = op->outputs[0]->type;
        if (space >= 1 && nrg_type_numel(type) >= 0 && type->rank > space)
            nrg_cost_infer(nrg_arg_at(op, 2), 1, &type->dims[type->rank - space - 1]);
    }
}

/* [T, B, Cin] with a weight [k, Cin, Cout]. */
void nrg_cost_conv_tbc(const struct nrg_operator *op, const struct nrg_cost_rule *rule,
                       struct nrg_cost *cost)
{
    const struct nrg_arg *w = nrg_arg_at(op, 1);
    int64_t out = nrg_cost_output_numel(op);
    nrg_cost_set_macs(cost, nrg_cost_mul(out, nrg_cost_mul(nrg_arg_dim(w, 0), nrg_arg_dim(w, 1))));
}

/*
 * The weight is inside packed parameters; a parameters' file may tell it (reduce.c then binds it
 * to the object), else the cost is unknown.
 */
void nrg_cost_quantized_conv(const struct nrg_operator *op, const struct nrg_cost_rule *rule,
                             struct nrg_cost *cost)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0), *packed = nrg_arg_at(op, 1);
    struct nrg_arg w = {.kind = NRG_ARG_TENSOR, .data = packed->data, .type = packed->type};
    if (packed->data)
        w.type = packed->data->type;
    int space = packed->data ? nrg_arg_rank(&w) - 2 : -1;
    int64_t n = NRG_COST_UNKNOWN;
    if (space >= 1 && rule->arg)
        n = arg_positions(x, space);
    else if (space >= 1 && op->n_outputs)
        n = positions(op->outputs[0]->type, space);
    int64_t elements = space >= 1 ? nrg_arg_numel(&w) : NRG_COST_UNKNOWN;
    nrg_cost_set_macs(cost, nrg_cost_mul(n, elements));
    cost->read_bytes = nrg_cost_add(cost->read_bytes, space >= 1 ? nrg_arg_bytes(&w) : -1);
}

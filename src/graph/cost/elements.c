/*
 * Element-wise operators, reductions, and operators that only move memory. FLOPs per element are
 * conventions (docs/graph.md); the bytes are ideal traffic: a gather touches only the rows it
 * takes, and a fill reads nothing.
 */
#include <string.h>

#include "graph/cost/internal.h"

void nrg_cost_elements(const struct nrg_operator *op, struct nrg_cost *cost)
{
    cost->flops = nrg_cost_mul(op->rule->arg, nrg_cost_output_numel(op));
}

void nrg_cost_input(const struct nrg_operator *op, struct nrg_cost *cost)
{
    cost->flops = nrg_cost_mul(op->rule->arg, nrg_arg_numel(nrg_arg_at(op, 0)));
}

/* a + alpha * b: the factor costs a multiplication unless it is 1. */
void nrg_cost_add_sub(const struct nrg_operator *op, struct nrg_cost *cost)
{
    int64_t alpha = 1;
    const struct nrg_arg *arg = nrg_arg_at(op, 2);
    if (arg->constant && arg->constant->kind == NRG_A_FLOAT)
        alpha = arg->constant->f == 1 ? 1 : 2;
    else
        nrg_arg_int(arg, &alpha);
    cost->flops = nrg_cost_mul(alpha == 1 ? 1 : 2, nrg_cost_output_numel(op));
}

/* max and min of two tensors, or of one over a dimension or over all. */
void nrg_cost_extreme(const struct nrg_operator *op, struct nrg_cost *cost)
{
    cost->flops = op->n_inputs > 1 ? nrg_cost_output_numel(op) : nrg_arg_numel(nrg_arg_at(op, 0));
}

void nrg_cost_gelu(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const char *how = nrg_arg_text(nrg_arg_at(op, 1));
    cost->flops = nrg_cost_mul(how && !strcmp(how, "tanh") ? 10 : 8, nrg_cost_output_numel(op));
}

/* In training: a random number, a comparison (mask of one byte each), a scale. */
void nrg_cost_dropout(const struct nrg_operator *op, struct nrg_cost *cost)
{
    int64_t n = nrg_cost_output_numel(op);
    cost->flops = nrg_cost_mul(2, n);
    if (op->n_outputs == 1)
        cost->written_bytes = nrg_cost_add(cost->written_bytes, n);
}

static int64_t log2_above(int64_t n)
{
    int bits = 0;
    for (; bits < 62 && (INT64_C(1) << bits) < n; bits++)
        ;
    return bits;
}

/* Comparisons: N log2 n over the sorted dimension, which is taken to be the last. */
void nrg_cost_sort(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0);
    int64_t n = nrg_arg_rank(x) ? nrg_arg_dim(x, -1) : 1;
    cost->flops = n < 0 ? NRG_COST_UNKNOWN : nrg_cost_mul(nrg_arg_numel(x), log2_above(n));
}

/* copy_(to, from): the old content of `to` is not read. */
void nrg_cost_copy(const struct nrg_operator *op, struct nrg_cost *cost)
{
    cost->read_bytes = nrg_arg_bytes(nrg_arg_at(op, 1));
}

static int64_t index_bytes(const struct nrg_operator *op, size_t from)
{
    int64_t sum = 0;
    for (size_t i = from; i < op->n_args; i++)
        sum = nrg_cost_add(sum, nrg_arg_bytes(op->args[i]));
    return sum;
}

/* Only what is taken is read: as much as is written, and the indices. */
void nrg_cost_index(const struct nrg_operator *op, struct nrg_cost *cost)
{
    cost->read_bytes = nrg_cost_add(cost->written_bytes, index_bytes(op, 1));
}

/* Values and indices are read; as many bytes are written as the values have. */
void nrg_cost_index_put(const struct nrg_operator *op, struct nrg_cost *cost)
{
    size_t values = !strncmp(op->kind, "aten::index_put", 15) ? 2 : 3;
    int64_t touched = nrg_arg_bytes(nrg_arg_at(op, values));
    cost->read_bytes = index_bytes(op, 1);
    if (touched > 0)
        cost->written_bytes = touched;
}

/* (weight, indices, offsets, scale, mode...): rows are summed per bag. */
void nrg_cost_embedding_bag(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *indices = nrg_arg_at(op, 1);
    const struct nrg_type *out = nrg_cost_output_type(op);
    int64_t n = nrg_arg_numel(indices), mode = 0;
    if (nrg_type_numel(out) < 0 || out->rank != 2) {
        cost->flops = cost->read_bytes = NRG_COST_UNKNOWN;
        return;
    }
    int64_t bags = out->dims[0], width = out->dims[1];
    nrg_arg_int(nrg_arg_at(op, 4), &mode);
    int64_t sums = n < 0 ? n : n > bags ? n - bags : 0;
    cost->flops = nrg_cost_mul(nrg_cost_add(sums, mode == 1 ? bags : 0), width);
    int64_t rows = nrg_cost_mul(nrg_cost_mul(n, width), nrg_dtype_bits(out->dtype) / 8);
    cost->read_bytes =
        nrg_cost_add(rows, nrg_cost_add(nrg_arg_bytes(indices), nrg_arg_bytes(nrg_arg_at(op, 2))));
    cost->written_bytes = nrg_type_bytes(out);
}

void nrg_cost_fill(const struct nrg_operator *op, struct nrg_cost *cost)
{
    cost->read_bytes = 0;
    if (!op->rule->arg)
        cost->written_bytes = 0;
}

void nrg_cost_opaque(const struct nrg_operator *op, struct nrg_cost *cost)
{
    cost->macs = NRG_COST_UNKNOWN;
    cost->flops = NRG_COST_UNKNOWN;
}

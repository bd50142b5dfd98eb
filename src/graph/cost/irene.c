/*
 * The counter of IrEne (StonyBrookNLP, ACL 2021), operator by operator, as facts for reading its
 * data and profiles that were trained with it. Its quirks are kept: a weight times a batch of
 * matrices counts once per element of the batch, an embedding writes but does not read,
 * element-wise operators count their result only, and what is not in the table counts nothing.
 *
 * It was written for the traces of PyTorch 1.7, where a linear layer was matmul and add_ (addmm for
 * two dimensions); aten::linear, which later traces have, is counted as these.
 */
#include <string.h>

#include "graph/cost/internal.h"

struct counts {
    int64_t flops, bytes;
};

static int64_t mul3(int64_t a, int64_t b, int64_t c)
{
    return nrg_cost_mul(nrg_cost_mul(a, b), c);
}

static int64_t element_bytes(const struct nrg_type *type)
{
    unsigned bits = nrg_dtype_bits(type->dtype);
    return bits >= 8 && bits <= 64 ? bits / 8 : 0;
}

static int64_t result_bytes(const struct nrg_operator *op)
{
    return element_bytes(nrg_cost_output_type(op));
}

/* `batch` products of [m, n] and [n, p]. */
static struct counts count_products(int64_t batch, int64_t m, int64_t n, int64_t p, int64_t size)
{
    int64_t area =
        nrg_cost_add(nrg_cost_add(nrg_cost_mul(m, n), nrg_cost_mul(m, p)), nrg_cost_mul(n, p));
    return (struct counts){mul3(nrg_cost_mul(2, batch), mul3(m, n, p), 1), mul3(batch, area, size)};
}

/* arg: index of the first factor. */
static struct counts count_matmul(const struct nrg_operator *op, int arg)
{
    const struct nrg_arg *a = nrg_arg_at(op, (size_t)arg), *b = nrg_arg_at(op, (size_t)arg + 1);
    int64_t p = nrg_arg_dim(b, -1);
    return count_products(nrg_cost_leading(a, 2), nrg_arg_dim(a, -2), nrg_arg_dim(a, -1),
                          p < 0 ? nrg_cost_output_dim(op, -1) : p, element_bytes(a->type));
}

static struct counts count_linear(const struct nrg_operator *op, int arg)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0);
    int64_t volume = nrg_cost_output_numel(op), size = element_bytes(x->type);
    struct counts c = count_products(nrg_cost_leading(x, 2), nrg_arg_dim(x, -2), nrg_arg_dim(x, -1),
                                     nrg_cost_output_dim(op, -1), size);
    if (nrg_arg_rank(x) <= 2 || nrg_arg_at(op, 2)->kind == NRG_ARG_NONE)
        return c;
    return (struct counts){nrg_cost_add(c.flops, volume),
                           nrg_cost_add(c.bytes, mul3(2, volume, size))};
}

static struct counts count_einsum(const struct nrg_operator *op, int arg)
{
    int64_t volume = nrg_cost_output_numel(op);
    for (size_t i = 0; i < op->n_inputs; i++)
        volume = nrg_cost_add(volume, nrg_data_numel(op->inputs[i]));
    return (struct counts){nrg_cost_mul(2, op->cost.macs), nrg_cost_mul(volume, result_bytes(op))};
}

static struct counts count_embedding(const struct nrg_operator *op, int arg)
{
    const struct nrg_arg *ids = nrg_arg_at(op, 1);
    return (struct counts){0,
                           nrg_cost_add(nrg_cost_mul(nrg_arg_numel(ids), element_bytes(ids->type)),
                                        nrg_cost_mul(nrg_cost_output_numel(op), result_bytes(op)))};
}

static struct counts count_copy(const struct nrg_operator *op, int arg)
{
    const struct nrg_arg *from = nrg_arg_at(op, 1);
    return (struct counts){
        0, nrg_cost_mul(nrg_cost_add(nrg_arg_numel(from), nrg_cost_output_numel(op)),
                        result_bytes(op))};
}

/* Per element of the first input (16 x FLOPs + traffic), or of the result. */
static struct counts by_input(const struct nrg_operator *op, int arg)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0);
    int64_t n = nrg_arg_numel(x);
    return (struct counts){nrg_cost_mul(arg / 16, n), mul3(arg % 16, n, element_bytes(x->type))};
}

static struct counts by_result(const struct nrg_operator *op, int arg)
{
    int64_t n = nrg_cost_output_numel(op);
    return (struct counts){nrg_cost_mul(arg / 16, n), mul3(arg % 16, n, result_bytes(op))};
}

#define PER(flops, traffic) ((flops)*16 + (traffic))

static const struct {
    const char *kind;
    struct counts (*count)(const struct nrg_operator *op, int arg);
    int arg;
} rules[] = {
    {"abs", by_input, PER(1, 1)},     {"add", by_result, PER(1, 2)},
    {"add_", by_result, PER(1, 2)},   {"addmm", count_matmul, 1},
    {"bmm", count_matmul, 0},         {"clone", by_result, PER(0, 2)},
    {"copy_", count_copy, 0},         {"div", by_result, PER(1, 2)},
    {"einsum", count_einsum, 0},      {"embedding", count_embedding, 0},
    {"gelu", by_input, PER(6, 2)},    {"layer_norm", by_input, PER(8, 4)},
    {"linear", count_linear, 0},      {"matmul", count_matmul, 0},
    {"max", by_input, PER(1, 1)},     {"mean", by_input, PER(1, 1)},
    {"min", by_input, PER(1, 1)},     {"mm", count_matmul, 0},
    {"mul", by_result, PER(1, 3)},    {"mul_", by_result, PER(1, 3)},
    {"pow", by_result, PER(1, 2)},    {"relu", by_input, PER(1, 2)},
    {"rsqrt", by_input, PER(2, 1)},   {"rsub", by_result, PER(1, 3)},
    {"softmax", by_input, PER(5, 3)}, {"sub", by_result, PER(1, 2)},
    {"sum", by_input, PER(1, 1)},     {"tanh", by_input, PER(4, 1)},
};

void nrg_cost_irene(const struct nrg_operator *op, int64_t *flops, int64_t *bytes)
{
    struct counts c = {0, 0};
    if (!strncmp(op->kind, "aten::", 6))
        for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
            if (!strcmp(rules[i].kind, op->kind + 6))
                c = rules[i].count(op, rules[i].arg);
    *flops = c.flops;
    *bytes = c.bytes;
}

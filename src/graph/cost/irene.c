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
    unsigned bits = type ? nrg_dtype_bits(type->dtype) : 0;
    return bits >= 8 && bits <= 64 ? bits / 8 : 0;
}

static const struct nrg_type *result(const struct nrg_operator *op)
{
    return op->n_outputs ? op->outputs[0]->type : NULL;
}

/* `batch` products of [m, n] and [n, p]. */
static struct counts product(int64_t batch, int64_t m, int64_t n, int64_t p, int64_t size)
{
    int64_t area =
        nrg_cost_add(nrg_cost_add(nrg_cost_mul(m, n), nrg_cost_mul(m, p)), nrg_cost_mul(n, p));
    return (struct counts){mul3(nrg_cost_mul(2, batch), mul3(m, n, p), 1), mul3(batch, area, size)};
}

/* Dimensions of `a` before its last two. */
static int64_t batch_of(const struct nrg_arg *a)
{
    int64_t n = nrg_arg_rank(a) < 2 ? NRG_COST_UNKNOWN : 1;
    for (int i = 0; i < nrg_arg_rank(a) - 2; i++)
        n = nrg_cost_mul(n, nrg_arg_dim(a, i));
    return n;
}

/* arg: index of the first factor. */
static struct counts matmul(const struct nrg_operator *op, int arg)
{
    const struct nrg_arg *a = nrg_arg_at(op, (size_t)arg), *b = nrg_arg_at(op, (size_t)arg + 1);
    const struct nrg_type *out = result(op);
    int64_t p = nrg_arg_dim(b, -1);
    if (p < 0 && out && out->rank > 0 && out->dims)
        p = out->dims[out->rank - 1];
    return product(batch_of(a), nrg_arg_dim(a, -2), nrg_arg_dim(a, -1), p, element_bytes(a->type));
}

static struct counts linear(const struct nrg_operator *op, int arg)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0);
    const struct nrg_type *out = result(op);
    int64_t columns = out && out->rank > 0 && out->dims ? out->dims[out->rank - 1] : -1;
    int64_t volume = nrg_cost_output_numel(op), size = element_bytes(x->type);
    struct counts c = product(batch_of(x), nrg_arg_dim(x, -2), nrg_arg_dim(x, -1), columns, size);
    (void)arg;
    if (nrg_arg_rank(x) <= 2 || nrg_arg_at(op, 2)->kind == NRG_ARG_NONE)
        return c;
    return (struct counts){nrg_cost_add(c.flops, volume),
                           nrg_cost_add(c.bytes, mul3(2, volume, size))};
}

static struct counts einsum(const struct nrg_operator *op, int arg)
{
    int64_t volume = nrg_cost_output_numel(op);
    (void)arg;
    for (size_t i = 0; i < op->n_inputs; i++)
        volume = nrg_cost_add(volume, nrg_data_numel(op->inputs[i]));
    return (struct counts){nrg_cost_mul(2, op->cost.macs),
                           nrg_cost_mul(volume, element_bytes(result(op)))};
}

static struct counts embedding(const struct nrg_operator *op, int arg)
{
    const struct nrg_arg *ids = nrg_arg_at(op, 1);
    (void)arg;
    return (struct counts){
        0, nrg_cost_add(nrg_cost_mul(nrg_arg_numel(ids), element_bytes(ids->type)),
                        nrg_cost_mul(nrg_cost_output_numel(op), element_bytes(result(op))))};
}

static struct counts copy(const struct nrg_operator *op, int arg)
{
    const struct nrg_arg *from = nrg_arg_at(op, 1);
    (void)arg;
    return (struct counts){
        0, nrg_cost_mul(nrg_cost_add(nrg_arg_numel(from), nrg_cost_output_numel(op)),
                        element_bytes(result(op)))};
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
    return (struct counts){nrg_cost_mul(arg / 16, n), mul3(arg % 16, n, element_bytes(result(op)))};
}

#define PER(flops, traffic) ((flops)*16 + (traffic))

static const struct {
    const char *kind;
    struct counts (*count)(const struct nrg_operator *op, int arg);
    int arg;
} rules[] = {
    {"abs", by_input, PER(1, 1)},
    {"add", by_result, PER(1, 2)},
    {"add_", by_result, PER(1, 2)},
    {"addmm", matmul, 1},
    {"bmm", matmul, 0},
    {"clone", by_result, PER(0, 2)},
    {"copy_", copy, 0},
    {"div", by_result, PER(1, 2)},
    {"einsum", einsum, 0},
    {"embedding", embedding, 0},
    {"gelu", by_input, PER(6, 2)},
    {"layer_norm", by_input, PER(8, 4)},
    {"linear", linear, 0},
    {"matmul", matmul, 0},
    {"max", by_input, PER(1, 1)},
    {"mean", by_input, PER(1, 1)},
    {"min", by_input, PER(1, 1)},
    {"mm", matmul, 0},
    {"mul", by_result, PER(1, 3)},
    {"mul_", by_result, PER(1, 3)},
    {"pow", by_result, PER(1, 2)},
    {"relu", by_input, PER(1, 2)},
    {"rsqrt", by_input, PER(2, 1)},
    {"rsub", by_result, PER(1, 3)},
    {"softmax", by_input, PER(5, 3)},
    {"sub", by_result, PER(1, 2)},
    {"sum", by_input, PER(1, 1)},
    {"tanh", by_input, PER(4, 1)},
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

/*
 * Norms and pools: no MACs, FLOPs by convention (docs/graph.md): batch norm in eval is one
 * multiplication and one addition per element; the others compute mean and variance (3 per
 * element), normalise (2) and scale (2). Their parameters' shapes follow from the activation.
 */
#include <string.h>

#include "graph/cost/internal.h"

#define MAX_DIMS 16

void nrg_cost_batch_norm(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0);
    int64_t training = 0, channels = nrg_arg_dim(x, 1), n = nrg_cost_output_numel(op);
    if (op->rule->arg >= 0)
        nrg_arg_int(nrg_arg_at(op, (size_t)op->rule->arg), &training);
    if (n < 0)
        n = nrg_arg_numel(x);
    cost->flops = nrg_cost_mul(training ? 7 : 2, n);
    for (size_t i = 1; i <= 4 && channels >= 0; i++)
        nrg_cost_infer(nrg_arg_at(op, i), 1, &channels);
}

void nrg_cost_norm(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0);
    const struct nrg_arg *weight = nrg_arg_at(op, (size_t)op->rule->arg);
    int64_t dims[MAX_DIMS], n = nrg_cost_output_numel(op);
    bool layer = strstr(op->kind, "layer_norm") != NULL;
    int rank = layer ? nrg_arg_ints(nrg_arg_at(op, 1), dims, MAX_DIMS) : 1;
    if (!layer)
        dims[0] = nrg_arg_dim(x, 1);
    if (n < 0)
        n = nrg_arg_numel(x);
    cost->flops = nrg_cost_mul(weight->kind == NRG_ARG_NONE ? 5 : 7, n);
    if (rank > 0 && dims[0] >= 0) {
        nrg_cost_infer(weight, rank, dims);
        nrg_cost_infer(nrg_arg_at(op, (size_t)op->rule->arg + 1), rank, dims);
    }
}

/* Squares, their mean, a scale. */
void nrg_cost_rms_norm(const struct nrg_operator *op, struct nrg_cost *cost)
{
    bool weight = nrg_arg_at(op, (size_t)op->rule->arg)->kind != NRG_ARG_NONE;
    cost->flops = nrg_cost_mul(weight ? 4 : 3, nrg_cost_output_numel(op));
}

/* Elements of a pool's window: a list, or one number for all dimensions of the kind's name. */
static int64_t window_elements(const struct nrg_operator *op)
{
    int64_t k[8], n = 1;
    int have = nrg_arg_ints(nrg_arg_at(op, 1), k, 8);
    const char *digit = strpbrk(op->kind, "123");
    int want = digit ? *digit - '0' : have;
    if (have < 1)
        return NRG_COST_UNKNOWN;
    for (int i = 0; i < want; i++)
        n = nrg_cost_mul(n, k[i < have ? i : have - 1]);
    return n;
}

void nrg_cost_max_pool(const struct nrg_operator *op, struct nrg_cost *cost)
{
    int64_t k = window_elements(op);
    cost->flops = nrg_cost_mul(k > 0 ? k - 1 : k, nrg_cost_output_numel(op));
}

void nrg_cost_avg_pool(const struct nrg_operator *op, struct nrg_cost *cost)
{
    cost->flops = nrg_cost_mul(window_elements(op), nrg_cost_output_numel(op));
}

void nrg_cost_adaptive_pool(const struct nrg_operator *op, struct nrg_cost *cost)
{
    int64_t in = nrg_arg_numel(nrg_arg_at(op, 0)), out = nrg_cost_output_numel(op);
    cost->flops = op->rule->arg ? nrg_cost_add(in, out) : in;
}

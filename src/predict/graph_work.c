/*
 * See graph_work.h. Coefficients that were learnt from measured rows then apply to a graph that has
 * not run.
 *
 * Attention's two products read and write permuted tensors. PyTorch copies those operands and
 * results that are not the scores. The scores are the result of the product before softmax, and the
 * first factor of the product after it.
 */
#include "predict/graph_work.h"

#include <string.h>

#include "predict/kinds.h"

#define STEPS 12 /* operators between a product and its softmax: scale, mask, dropout… */

static bool is_softmax(const struct nrg_operator *op)
{
    return !strcmp(nrg_kind_group(op->kind), "softmax");
}

static bool has_input(const struct nrg_operator *op, const struct nrg_data *data)
{
    for (size_t i = 0; i < op->n_inputs; i++)
        if (op->inputs[i] == data)
            return true;
    return false;
}

/* The first factor comes from a softmax, through operators that keep its shape. */
static bool after_softmax(const struct nrg_reduced *g, const struct nrg_operator *op)
{
    const struct nrg_data *data = op->n_inputs ? op->inputs[0] : NULL;
    for (int step = 0; step < STEPS && data && data->producer >= 0; step++) {
        const struct nrg_operator *from = &g->operators[data->producer];
        if (is_softmax(from))
            return true;
        if (from->cost.macs != 0 || !from->n_inputs)
            return false;
        data = from->inputs[0];
    }
    return false;
}

/* The result goes to a softmax. */
static bool before_softmax(const struct nrg_reduced *g, const struct nrg_operator *op)
{
    size_t at = (size_t)(op - g->operators);
    const struct nrg_data *data = op->n_outputs ? op->outputs[0] : NULL;
    for (size_t i = at + 1; data && i < g->n_operators && i <= at + STEPS; i++) {
        const struct nrg_operator *next = &g->operators[i];
        if (!has_input(next, data))
            continue;
        if (is_softmax(next))
            return true;
        if (next->cost.macs != 0)
            return false;
        data = next->n_outputs ? next->outputs[0] : NULL;
    }
    return false;
}

static double copied_bytes(const struct nrg_reduced *g, const struct nrg_operator *op)
{
    double result = op->n_outputs ? (double)nrg_data_bytes(op->outputs[0]) : 0;
    double first = (double)nrg_arg_bytes(nrg_arg_at(op, 0));
    double second = (double)nrg_arg_bytes(nrg_arg_at(op, 1));
    double copied = after_softmax(g, op)    ? second + result
                    : before_softmax(g, op) ? first + second
                                            : 0;
    return copied > 0 ? copied : 0;
}

/* A product with a parameter, or with one matrix for the whole batch, is a linear layer. */
static bool has_weight(const struct nrg_operator *op)
{
    const struct nrg_arg *b = nrg_arg_at(op, 1);
    return (b->data && b->data->kind == NRG_DATA_PARAM) || nrg_arg_rank(b) == 2;
}

static double rest_bytes(const struct nrg_operator *op, const char *convention)
{
    int64_t flops, bytes;
    if (strcmp(convention, "irene") || strncmp(op->kind, "aten::", 6))
        return (double)op->cost.read_bytes + (double)op->cost.written_bytes;
    nrg_cost_irene(op, &flops, &bytes);
    return bytes > 0 ? (double)bytes : 0;
}

static bool cost_known(const struct nrg_operator *op)
{
    return !nrg_operator_unknown(op) && op->cost.read_bytes >= 0 && op->cost.written_bytes >= 0;
}

/* The kind to look up: a batched product with a weight counts as a linear layer. */
static const char *kind_of(const struct nrg_operator *op)
{
    bool is_linear = !strcmp(nrg_kind_group(op->kind), "bmm") && has_weight(op);
    return is_linear ? "aten::linear" : op->kind;
}

bool nrg_work_features(const struct nrg_reduced *g, const struct nrg_operator *op,
                       const char **kind, double f[NRG_FEATURES])
{
    *kind = kind_of(op);
    if (!cost_known(op))
        return false;
    f[NRG_F_MACS] = (double)op->cost.macs;
    f[NRG_F_READ_BYTES] = (double)op->cost.read_bytes;
    f[NRG_F_WRITTEN_BYTES] = (double)op->cost.written_bytes;
    if (op->cost.params >= 0)
        f[NRG_F_PARAMS] = (double)op->cost.params;
    if (!strcmp(nrg_kind_group(*kind), "bmm"))
        f[NRG_F_COPIED_BYTES] = copied_bytes(g, op);
    if (is_softmax(op) && op->n_outputs)
        f[NRG_F_SCORE_BYTES] = (double)nrg_data_bytes(op->outputs[0]);
    return true;
}

bool nrg_work_of(const struct nrg_reduced *g, const struct nrg_operator *op,
                 const struct nrg_physical *model, const char *convention, struct nrg_work *work)
{
    *work = (struct nrg_work){.kind = op->kind, .times = (double)op->times};
    if (!cost_known(op))
        return !op->times;
    work->kind = kind_of(op);
    bool has_macs = op->cost.macs > 0;
    work->x[NRG_PER_CALL] = 1;
    work->x[NRG_PER_MAC] = (double)op->cost.macs;
    work->x[NRG_PER_BYTE] = (double)op->cost.read_bytes + (double)op->cost.written_bytes;
    nrg_physical_group(model, work->kind, has_macs, &work->is_known);
    /* Modules give the price of the rest. Without modules, the price of memory traffic is used. */
    work->is_rest = !work->is_known && !has_macs && nrg_physical_has_modules(model);
    if (work->is_rest) {
        work->beside[NRG_PER_REST_BYTE] = rest_bytes(op, convention);
        return true;
    }
    work->beside[NRG_PER_OPERATOR] = 1;
    if (!strcmp(nrg_kind_group(work->kind), "bmm"))
        work->beside[NRG_PER_COPIED_BYTE] = copied_bytes(g, op);
    if (is_softmax(op) && op->n_outputs)
        work->beside[NRG_PER_SCORE_BYTE] = (double)nrg_data_bytes(op->outputs[0]);
    return true;
}

uint32_t nrg_work_node(const struct nrg_map *names, const struct nrg_operator *op)
{
    int64_t at = op->module ? nrg_map_number(names, op->module, strlen(op->module)) : 0;
    return at > 0 ? (uint32_t)at : 0;
}

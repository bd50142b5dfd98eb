/*
 * Costs of all operators of a reduced graph, and their sums. Two passes: parameters' shapes that
 * follow from activations are noted in the first, so that traffic and sums in the second know
 * them wherever the parameter is used. Branches: the dearest of those that can be taken counts;
 * loops: times their trips, unknown when those are.
 */
#include "graph/cost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph/cost/internal.h"
#include "graph/param_list.h"
#include "graph/reduce/internal.h"

int64_t nrg_cost_mul(int64_t a, int64_t b)
{
    int64_t product;
    if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product))
        return NRG_COST_UNKNOWN;
    return product;
}

int64_t nrg_cost_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum))
        return NRG_COST_UNKNOWN;
    return sum;
}

#define CEILING (INT64_MAX / 4)

int64_t nrg_cost_sum_of(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) || sum > CEILING ? CEILING : sum;
}

int64_t nrg_cost_times(int64_t n, int64_t times)
{
    int64_t product;
    return __builtin_mul_overflow(n, times, &product) || product > CEILING ? CEILING : product;
}

int64_t nrg_cost_output_numel(const struct nrg_operator *op)
{
    return op->n_outputs ? nrg_data_numel(op->outputs[0]) : NRG_COST_UNKNOWN;
}

void nrg_cost_set_macs(struct nrg_cost *cost, int64_t macs)
{
    cost->macs = macs;
    cost->flops = nrg_cost_add(cost->flops, nrg_cost_mul(2, macs));
}

/* Weights are of the activations' type unless a file says otherwise. */
void nrg_cost_infer(const struct nrg_arg *arg, int rank, const int64_t *dims)
{
    struct nrg_data *data = arg->kind == NRG_ARG_TENSOR && !arg->is_view ? arg->data : NULL;
    if (!data || !data->blank || data->type_inferred || nrg_data_numel(data) >= 0 || rank > 4)
        return;
    const struct nrg_type *old = nrg_type_plain(data->type);
    int64_t *room = (int64_t *)(void *)(data->blank + 1);
    memcpy(room, dims, (size_t)rank * sizeof *room);
    *data->blank =
        (struct nrg_type){.kind = NRG_T_TENSOR,
                          .dtype = old->kind == NRG_T_TENSOR ? old->dtype : NRG_DTYPE_UNKNOWN,
                          .rank = rank,
                          .requires_grad = -1,
                          .dims = room};
    data->type = data->blank;
    data->type_inferred = true;
}

/* A parameter whose shape was inferred has the element type of the first activation beside it. */
static void infer_dtypes(struct nrg_operator *op)
{
    enum nrg_dtype dtype = NRG_DTYPE_UNKNOWN;
    if (op->n_outputs && nrg_type_plain(op->outputs[0]->type)->kind == NRG_T_TENSOR)
        dtype = nrg_type_plain(op->outputs[0]->type)->dtype;
    for (size_t i = 0; i < op->n_inputs; i++)
        if (op->inputs[i]->type_inferred && op->inputs[i]->blank->dtype == NRG_DTYPE_UNKNOWN)
            op->inputs[i]->blank->dtype = dtype;
}

static void count_params(struct nrg_operator *op, struct nrg_cost *cost)
{
    for (size_t i = 0; i < op->n_inputs; i++)
        if (op->inputs[i]->kind == NRG_DATA_PARAM)
            cost->params = nrg_cost_add(cost->params, nrg_data_numel(op->inputs[i]));
}

static void cost_one(struct nrg_operator *op)
{
    struct nrg_cost cost = {0};
    for (size_t i = 0; i < op->n_args; i++)
        cost.read_bytes = nrg_cost_add(cost.read_bytes, nrg_arg_bytes(op->args[i]));
    for (size_t i = 0; i < op->n_outputs; i++)
        cost.written_bytes = nrg_cost_add(cost.written_bytes, nrg_data_bytes(op->outputs[i]));
    count_params(op, &cost);
    if (op->rule->cost)
        op->rule->cost(op, op->rule, &cost);
    else if (op->rule->flags & NRG_OP_OPAQUE)
        nrg_cost_opaque(op, op->rule, &cost);
    op->cost = cost;
}

/* ---- branches and loops ---- */

static int64_t known(int64_t n)
{
    return n < 0 ? 0 : n;
}

/* What decides between branches: MACs, then FLOPs, then traffic. */
static bool dearer(const struct nrg_cost *a, const struct nrg_cost *b)
{
    if (a->macs != b->macs)
        return a->macs > b->macs;
    if (a->flops != b->flops)
        return a->flops > b->flops;
    return nrg_cost_sum_of(a->read_bytes, a->written_bytes) >
           nrg_cost_sum_of(b->read_bytes, b->written_bytes);
}

static void add_known(struct nrg_cost *sum, const struct nrg_cost *more, int64_t times)
{
    sum->macs = nrg_cost_sum_of(sum->macs, known(nrg_cost_mul(times, more->macs)));
    sum->flops = nrg_cost_sum_of(sum->flops, known(nrg_cost_mul(times, more->flops)));
    sum->read_bytes =
        nrg_cost_sum_of(sum->read_bytes, known(nrg_cost_mul(times, more->read_bytes)));
    sum->written_bytes =
        nrg_cost_sum_of(sum->written_bytes, known(nrg_cost_mul(times, more->written_bytes)));
}

/* Inner regions stand behind outer ones: one pass from the end sums each before its parent. */
static void choose_branches(struct nrg_reduced *g, struct nrg_cost *sums, int64_t *best)
{
    for (size_t i = 0; i < g->n_operators; i++)
        add_known(&sums[g->operators[i].region], &g->operators[i].cost, 1);
    for (size_t i = g->n_regions; i-- > 1;) {
        struct nrg_region *region = &g->regions[i];
        uint32_t up = region->parent;
        if (region->kind == NRG_REGION_BRANCH) {
            bool possible = region->chosen != 0;
            if (possible && (best[up] < 0 || !dearer(&sums[best[up]], &sums[i])))
                best[up] = (int64_t)i;
        } else if (region->kind == NRG_REGION_IF) {
            if (best[i] >= 0)
                add_known(&sums[up], &sums[best[i]], 1);
        } else {
            add_known(&sums[up], &sums[i], region->trips < 0 ? 1 : region->trips);
        }
    }
}

static void count_times(struct nrg_reduced *g, const int64_t *best, int64_t *times)
{
    times[0] = 1;
    for (size_t i = 1; i < g->n_regions; i++) {
        struct nrg_region *region = &g->regions[i];
        times[i] = times[region->parent];
        if (region->kind == NRG_REGION_BRANCH) {
            region->chosen = best[region->parent] == (int64_t)i;
            if (!region->chosen)
                times[i] = 0;
        } else if (region->kind == NRG_REGION_LOOP && times[i]) {
            times[i] = region->trips == 0 ? 0 : nrg_cost_mul(times[i], region->trips);
        }
    }
    for (size_t i = 0; i < g->n_operators; i++)
        g->operators[i].times = times[g->operators[i].region];
}

int nrg_cost_all(struct nrg_reduced *g, enum nrg_convention convention)
{
    struct nrg_cost *sums = calloc(g->n_regions + 1, sizeof *sums);
    int64_t *best = calloc(g->n_regions + 1, sizeof *best);
    int64_t *times = calloc(g->n_regions + 1, sizeof *times);
    int rc = sums && best && times ? 0 : -ENOMEM;
    for (int pass = 0; !rc && pass < 2; pass++) {
        for (size_t i = 0; i < g->n_operators; i++) {
            cost_one(&g->operators[i]);
            infer_dtypes(&g->operators[i]);
        }
    }
    for (size_t i = 0; !rc && i < g->n_regions; i++)
        best[i] = -1;
    if (!rc) {
        choose_branches(g, sums, best);
        count_times(g, best, times);
        for (size_t i = 0; i < g->n_operators; i++)
            nrg_cost_convert(&g->operators[i], convention);
    }
    free(sums);
    free(best);
    free(times);
    return rc;
}

/* ---- sums ---- */

bool nrg_operator_unknown(const struct nrg_operator *op)
{
    return op->times && (op->cost.macs < 0 || op->cost.flops < 0 || op->times < 0);
}

void nrg_cost_sum(struct nrg_cost *sum, const struct nrg_operator *op)
{
    add_known(sum, &op->cost, op->times);
}

/* Largest sum of activations that live at once; each lives from its producer to its last use. */
static int peak_activations(const struct nrg_reduced *g, struct nrg_totals *out)
{
    size_t n = g->n_operators + 2;
    int64_t *change = calloc(n + 1, sizeof *change);
    int64_t *last = calloc(g->n_data + 1, sizeof *last);
    int64_t live = 0, peak = 0;
    if (!change || !last) {
        free(change);
        free(last);
        return -ENOMEM;
    }
    for (size_t i = 0; i < g->n_data; i++) {
        const struct nrg_data *d = g->data[i];
        int64_t end = d->last_use > (int64_t)n - 1 ? (int64_t)n - 1 : d->last_use;
        if (end > last[d->storage->id])
            last[d->storage->id] = end;
    }
    for (size_t i = 0; i < g->n_data; i++) {
        const struct nrg_data *d = g->data[i];
        bool own = d->storage == d && (d->kind == NRG_DATA_ACT || d->kind == NRG_DATA_INPUT);
        int64_t bytes = own ? nrg_data_bytes(d) : 0;
        int64_t from = d->producer < 0 ? 0 : d->producer;
        int64_t to = last[i] < from ? from : last[i];
        if (bytes < 0) {
            out->unknown_activations++;
            continue;
        }
        change[from] = nrg_cost_sum_of(change[from], bytes);
        change[to + 1] = nrg_cost_sum_of(change[to + 1], -bytes);
    }
    for (size_t i = 0; i < n; i++) {
        live = nrg_cost_sum_of(live, change[i]);
        peak = live > peak ? live : peak;
    }
    free(change);
    free(last);
    out->peak_activation_bytes = peak;
    return 0;
}

static int sum_params(const struct nrg_model *model, const struct nrg_reduced *g,
                      const struct nrg_model *params, struct nrg_totals *out)
{
    struct nrg_param_list list;
    int rc = nrg_param_list_make(&list, model, g, params);
    for (size_t i = 0; !rc && i < list.n; i++) {
        const struct nrg_param_entry *e = &list.entries[i];
        if (e->same_as >= 0)
            continue;
        if (e->numel < 0) {
            out->unknown_params += !e->is_buffer;
            continue;
        }
        out->params = nrg_cost_sum_of(out->params, e->is_buffer ? 0 : e->numel);
        out->trainable = nrg_cost_sum_of(out->trainable, e->trainable ? e->numel : 0);
        out->buffers = nrg_cost_sum_of(out->buffers, e->is_buffer ? e->numel : 0);
        out->param_bytes = nrg_cost_sum_of(out->param_bytes, known(e->bytes));
    }
    out->n_params = list.n;
    nrg_param_list_release(&list);
    return rc;
}

int nrg_totals_of(const struct nrg_model *model, const struct nrg_reduced *g,
                  const struct nrg_model *params, struct nrg_totals *out)
{
    *out = (struct nrg_totals){0};
    for (size_t i = 0; g && i < g->n_operators; i++) {
        const struct nrg_operator *op = &g->operators[i];
        nrg_cost_sum(&out->cost, op);
        out->operators++;
        out->unknown_operators += nrg_operator_unknown(op);
        out->unknown_bytes +=
            op->times && (op->cost.read_bytes < 0 || op->cost.written_bytes < 0 || op->times < 0);
    }
    int rc = sum_params(model, g, params, out);
    if (!rc && g)
        rc = peak_activations(g, out);
    return rc;
}

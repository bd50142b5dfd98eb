/*
 * Costs of all operators of a reduced graph, and their sums. There are two passes: the first notes
 * the shapes of parameters that follow from activations, so that the second knows them wherever a
 * parameter is used. Of the branches that can be taken, the one that costs most counts. A loop
 * counts times its trips, and is unknown when those are.
 */
#include "graph/cost.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "graph/cost/internal.h"
#include "graph/module_tree.h"

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

const struct nrg_type *nrg_cost_output_type(const struct nrg_operator *op)
{
    return op->n_outputs ? op->outputs[0]->type : &nrg_type_unknown;
}

int64_t nrg_cost_output_numel(const struct nrg_operator *op)
{
    return op->n_outputs ? nrg_data_numel(op->outputs[0]) : NRG_COST_UNKNOWN;
}

int64_t nrg_cost_output_dim(const struct nrg_operator *op, int dim)
{
    const struct nrg_type *type = nrg_cost_output_type(op);
    dim += dim < 0 ? type->rank : 0;
    return dim >= 0 && dim < type->rank && type->dims ? type->dims[dim] : NRG_COST_UNKNOWN;
}

int64_t nrg_cost_product(const struct nrg_type *type, int n, int without)
{
    int64_t product = type->rank > 0 && !type->dims ? NRG_COST_UNKNOWN : 1;
    for (int i = 0; product >= 0 && i < n && i < type->rank; i++)
        product = i == without ? product : nrg_cost_mul(product, type->dims[i]);
    return product;
}

int64_t nrg_cost_leading(const struct nrg_arg *arg, int but)
{
    int rank = nrg_arg_rank(arg);
    return rank < 2 ? NRG_COST_UNKNOWN : nrg_cost_product(nrg_arg_type(arg), rank - but, -1);
}

int64_t nrg_cost_positions(const struct nrg_type *type)
{
    return type->kind == NRG_T_TENSOR && type->rank > 2 ? nrg_cost_product(type, type->rank, 1)
                                                        : NRG_COST_UNKNOWN;
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
    nrg_data_infer(data, old->kind == NRG_T_TENSOR ? old->dtype : NRG_DTYPE_UNKNOWN, rank, dims);
}

/* A parameter whose shape was inferred has the element type of the first activation beside it. */
static void infer_dtypes(struct nrg_operator *op)
{
    const struct nrg_type *out = nrg_type_plain(nrg_cost_output_type(op));
    enum nrg_dtype dtype = out->kind == NRG_T_TENSOR ? out->dtype : NRG_DTYPE_UNKNOWN;
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
        op->rule->cost(op, &cost);
    else if (op->rule->flags & NRG_OP_OPAQUE)
        nrg_cost_opaque(op, &cost);
    op->cost = cost;
}

/* ---- branches and loops ---- */

/* While costs are summed: of everything in a region, its best branch, its executions. */
struct region_sum {
    struct nrg_cost cost;
    int64_t best, times; /* best: -1 none */
};

/* What decides between branches: MACs, then FLOPs, then traffic. */
static bool costs_more(const struct nrg_cost *a, const struct nrg_cost *b)
{
    if (a->macs != b->macs)
        return a->macs > b->macs;
    if (a->flops != b->flops)
        return a->flops > b->flops;
    return nrg_cost_sum_of(a->read_bytes, a->written_bytes) >
           nrg_cost_sum_of(b->read_bytes, b->written_bytes);
}

/* What is unknown adds nothing. */
static void add_times(int64_t *sum, int64_t n, int64_t times)
{
    int64_t product = nrg_cost_mul(times, n);
    *sum = nrg_cost_sum_of(*sum, product < 0 ? 0 : product);
}

static void add_known(struct nrg_cost *sum, const struct nrg_cost *more, int64_t times)
{
    add_times(&sum->macs, more->macs, times);
    add_times(&sum->flops, more->flops, times);
    add_times(&sum->read_bytes, more->read_bytes, times);
    add_times(&sum->written_bytes, more->written_bytes, times);
}

/* Inner regions stand behind outer ones: one pass from the end sums each before its parent. */
static void choose_branches(struct nrg_reduced *g, struct region_sum *sums)
{
    for (size_t i = 0; i < g->n_regions; i++)
        sums[i].best = -1;
    for (size_t i = 0; i < g->n_operators; i++)
        add_known(&sums[g->operators[i].region].cost, &g->operators[i].cost, 1);
    for (size_t i = g->n_regions; i-- > 1;) {
        const struct nrg_region *region = &g->regions[i];
        struct region_sum *up = &sums[region->parent], *own = &sums[i];
        if (region->kind == NRG_REGION_BRANCH) {
            if (region->chosen && (up->best < 0 || !costs_more(&sums[up->best].cost, &own->cost)))
                up->best = (int64_t)i;
        } else if (region->kind == NRG_REGION_IF) {
            if (own->best >= 0)
                add_known(&up->cost, &sums[own->best].cost, 1);
        } else {
            add_known(&up->cost, &own->cost, region->trips < 0 ? 1 : region->trips);
        }
    }
}

static void count_times(struct nrg_reduced *g, struct region_sum *sums)
{
    sums[0].times = 1;
    for (size_t i = 1; i < g->n_regions; i++) {
        struct nrg_region *region = &g->regions[i];
        int64_t times = sums[region->parent].times;
        if (region->kind == NRG_REGION_BRANCH) {
            region->chosen = sums[region->parent].best == (int64_t)i;
            times = region->chosen ? times : 0;
        } else if (region->kind == NRG_REGION_LOOP && times) {
            times = region->trips == 0 ? 0 : nrg_cost_mul(times, region->trips);
        }
        sums[i].times = times;
    }
    for (size_t i = 0; i < g->n_operators; i++)
        g->operators[i].times = sums[g->operators[i].region].times;
}

int nrg_cost_all(struct nrg_reduced *g, enum nrg_convention convention)
{
    struct region_sum *sums = nrg_calloc(g->n_regions + 1, sizeof *sums);
    if (!sums)
        return -ENOMEM;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < g->n_operators; i++) {
            cost_one(&g->operators[i]);
            infer_dtypes(&g->operators[i]);
        }
    }
    choose_branches(g, sums);
    count_times(g, sums);
    for (size_t i = 0; i < g->n_operators; i++)
        nrg_cost_convert(&g->operators[i], convention);
    free(sums);
    return convention == NRG_CONVENTION_TORCHINFO ? nrg_cost_torchinfo(g) : 0;
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
    int64_t *change = nrg_calloc(n + 1 + g->n_data, sizeof *change), *last = change + n + 1;
    int64_t live = 0, peak = 0;
    if (!change)
        return -ENOMEM;
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
    out->peak_activation_bytes = peak;
    return 0;
}

int nrg_totals_of(const struct nrg_module_tree *tree, const struct nrg_reduced *g,
                  struct nrg_totals *out)
{
    const struct nrg_tree_node *root = &tree->nodes[0];
    *out = (struct nrg_totals){.cost = root->cost,
                               .operators = root->operators,
                               .unknown_operators = root->unknown_operators,
                               .params = root->params,
                               .trainable = root->trainable,
                               .buffers = root->buffers,
                               .param_bytes = root->param_bytes,
                               .n_params = tree->n_params,
                               .unknown_params = root->unknown_params,
                               .unsized_params = root->unsized_params};
    for (size_t i = 0; g && i < g->n_operators; i++) {
        const struct nrg_operator *op = &g->operators[i];
        out->unknown_bytes +=
            op->times && (op->cost.read_bytes < 0 || op->cost.written_bytes < 0 || op->times < 0);
    }
    return g ? peak_activations(g, out) : 0;
}

/*
 * See model_join.h. Modules are found by their path (attribute/module_path.h), operators by
 * the module around them and their kind, or by a name of their own.
 */
#include "attribute/model_join.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/module_path.h"
#include "base/map.h"
#include "graph/kind_family.h"

struct join {
    struct nrg_attribution *a;
    const struct nrg_analysis *model;
    const char *root_class; /* "": not known */
    struct nrg_map modules; /* qualified name -> struct nrg_tree_node */
    struct nrg_map labels;  /* the operator's own name -> struct nrg_op */
    bool backward_in_modules;
};

/* ---- costs ---- */

static double per_call(int64_t n, double times)
{
    return n == NRG_COST_UNKNOWN || !(times > 0) ? NAN : (double)n / times;
}

static void fill_costs(struct nrg_attribution_row *row, const struct nrg_cost *cost, double times,
                       bool arithmetic_known)
{
    row->macs = arithmetic_known ? per_call(cost->macs, times) : NAN;
    row->flops = arithmetic_known ? per_call(cost->flops, times) : NAN;
    row->read_bytes = per_call(cost->read_bytes, times);
    row->written_bytes = per_call(cost->written_bytes, times);
}

/* Traffic of a module is known when that of all operators in it is. */
static bool bytes_known(const struct join *j, const char *path)
{
    size_t len = strlen(path);
    for (size_t i = 0; i < j->model->reduced.n_operators; i++) {
        const struct nrg_operator *op = &j->model->reduced.operators[i];
        bool unknown =
            op->cost.read_bytes == NRG_COST_UNKNOWN || op->cost.written_bytes == NRG_COST_UNKNOWN;
        if (!unknown || !op->times)
            continue;
        if (!len || !op->module)
            return false;
        if (!strncmp(op->module, path, len) && (!op->module[len] || op->module[len] == '.'))
            return false;
    }
    return true;
}

static bool join_module(struct join *j, struct nrg_attribution_row *row)
{
    const char *path = j->backward_in_modules ? NULL : nrg_module_path(j->a, row, j->root_class);
    const struct nrg_tree_node *node = path ? nrg_map_get(&j->modules, path) : NULL;
    if (!node || !node->operators)
        return false;
    size_t calls = j->model->tree.calls_known ? node->calls : 1;
    if (!calls && node == j->model->tree.nodes)
        calls = 1; /* no module calls the root */
    if (!calls)
        return false;
    fill_costs(row, &node->cost, (double)calls, !node->unknown_operators);
    if (!bytes_known(j, path))
        row->read_bytes = row->written_bytes = NAN;
    return true;
}

/* All operators of one kind in one module, as one. */
static bool join_operator_of(struct join *j, struct nrg_attribution_row *row, const char *module)
{
    struct nrg_cost sum = {0};
    double times = 0;
    bool unknown = false;
    for (size_t i = 0; i < j->model->reduced.n_operators; i++) {
        const struct nrg_operator *op = &j->model->reduced.operators[i];
        if (!op->module || strcmp(op->module, module) || !nrg_kind_same(op->kind, row->name))
            continue;
        unknown |= nrg_operator_unknown(op) || op->cost.read_bytes == NRG_COST_UNKNOWN ||
                   op->cost.written_bytes == NRG_COST_UNKNOWN;
        times += op->times > 0 ? (double)op->times : 0;
        nrg_cost_sum(&sum, op);
    }
    if (unknown || !(times > 0))
        return false;
    fill_costs(row, &sum, times, true);
    return true;
}

static bool join_label(struct join *j, struct nrg_attribution_row *row)
{
    const struct nrg_op *op = nrg_map_get(&j->labels, row->name);
    const char *colons = op ? strstr(op->kind, "::") : NULL;
    if (!op)
        return false;
    if (colons && colons[2] && !row->detail[0])
        row->detail = colons + 2;
    for (size_t i = 0; i < j->model->reduced.n_operators; i++) {
        const struct nrg_operator *reduced = &j->model->reduced.operators[i];
        if (reduced->op == op && !nrg_operator_unknown(reduced))
            fill_costs(row, &reduced->cost, 1, true);
    }
    return true;
}

static bool join_operator(struct join *j, struct nrg_attribution_row *row)
{
    const struct nrg_attribution_row *up = nrg_row_above(j->a, row);
    while (up && !nrg_row_is(up, NRG_KIND_MODULE) && !nrg_row_is(up, NRG_KIND_BACKWARD))
        up = nrg_row_above(j->a, up);
    if (up && nrg_row_is(up, NRG_KIND_BACKWARD))
        return false;
    const char *path = up ? nrg_module_path(j->a, up, j->root_class) : NULL;
    return (path && join_operator_of(j, row, path)) || join_label(j, row);
}

/* ---- all rows ---- */

static int index_model(struct join *j)
{
    const struct nrg_module_tree *tree = &j->model->tree;
    const struct nrg_block *body =
        j->model->model.n_graphs ? j->model->model.graphs[0]->body : NULL;
    int rc = 0;
    for (size_t i = 0; !rc && i < tree->n; i++)
        rc = nrg_map_set(&j->modules, tree->nodes[i].name, &tree->nodes[i]);
    for (size_t i = 0; !rc && body && i < body->n_ops; i++)
        if (body->ops[i]->label && body->ops[i]->label[0])
            rc = nrg_map_set(&j->labels, body->ops[i]->label, body->ops[i]);
    return rc;
}

struct nrg_join_result nrg_attribution_join(struct nrg_attribution *a,
                                            const struct nrg_analysis *model,
                                            bool backward_in_modules)
{
    struct nrg_join_result result = {0};
    struct join j = {.a = a,
                     .model = model,
                     .root_class = model->tree.n ? model->tree.nodes[0].class_name : "",
                     .backward_in_modules = backward_in_modules};
    int rc = model->has_graph ? index_model(&j) : -ENODATA;
    for (size_t i = 0; !rc && i < a->n_rows; i++) {
        struct nrg_attribution_row *row = &a->rows[i];
        if (!isnan(row->macs))
            continue;
        if (nrg_row_is(row, NRG_KIND_MODULE))
            result.modules += join_module(&j, row);
        else if (nrg_row_is(row, NRG_KIND_OPERATOR))
            result.operators += join_operator(&j, row);
        else if (nrg_row_is(row, NRG_KIND_LAYER))
            result.layers += join_label(&j, row);
    }
    nrg_map_release(&j.modules);
    nrg_map_release(&j.labels);
    return result;
}

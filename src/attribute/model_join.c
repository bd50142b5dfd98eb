/*
 * See attribution_model.h. Modules are found by their path (attribute/module_path.h), operators by
 * the module around them and their kind, or by a name of their own.
 */
#include "attribute/model_join.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/module_path.h"
#include "base/mem.h"
#include "graph/kind_family.h"
#include "graph/path_map.h"
#include "graph/reader.h"

struct join {
    struct nrg_attribution *a;
    const struct nrg_joined_model *joined;
    const char *root_class;      /* "": not known */
    struct nrg_path_map modules; /* qualified name -> struct nrg_tree_node */
    struct nrg_path_map labels;  /* the operator's own name -> struct nrg_op */
    bool backward_in_modules;
};

/* ---- names ---- */

static bool is_kind(const struct nrg_attribution_row *row, const char *kind)
{
    return !strcmp(row->kind, kind);
}

static const struct nrg_attribution_row *above(const struct join *j,
                                               const struct nrg_attribution_row *row)
{
    return row->parent < j->a->n_rows ? &j->a->rows[row->parent] : NULL;
}

/* ---- costs ---- */

static double known(int64_t n, double times)
{
    return n == NRG_COST_UNKNOWN || !(times > 0) ? NAN : (double)n / times;
}

static void fill(struct nrg_attribution_row *row, const struct nrg_cost *cost, double times,
                 bool arithmetic_known)
{
    row->macs = arithmetic_known ? known(cost->macs, times) : NAN;
    row->flops = arithmetic_known ? known(cost->flops, times) : NAN;
    row->read_bytes = known(cost->read_bytes, times);
    row->written_bytes = known(cost->written_bytes, times);
}

/* Traffic of a module is known when that of all operators in it is. */
static bool bytes_known(const struct join *j, const char *path)
{
    size_t len = strlen(path);
    for (size_t i = 0; i < j->joined->reduced.n_operators; i++) {
        const struct nrg_operator *op = &j->joined->reduced.operators[i];
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
    const struct nrg_tree_node *node = path ? nrg_path_map_get(&j->modules, path) : NULL;
    if (!node || !node->operators)
        return false;
    size_t calls = j->joined->tree.calls_known ? node->calls : 1;
    if (!calls && node == j->joined->tree.nodes)
        calls = 1; /* the root is not called by anybody */
    if (!calls)
        return false;
    fill(row, &node->cost, (double)calls, !node->unknown_operators);
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
    for (size_t i = 0; i < j->joined->reduced.n_operators; i++) {
        const struct nrg_operator *op = &j->joined->reduced.operators[i];
        if (!op->module || strcmp(op->module, module) || !nrg_kind_same(op->kind, row->name))
            continue;
        unknown |= nrg_operator_unknown(op) || op->cost.read_bytes == NRG_COST_UNKNOWN ||
                   op->cost.written_bytes == NRG_COST_UNKNOWN;
        times += op->times > 0 ? (double)op->times : 0;
        nrg_cost_sum(&sum, op);
    }
    if (unknown || !(times > 0))
        return false;
    fill(row, &sum, times, true);
    return true;
}

static bool join_label(struct join *j, struct nrg_attribution_row *row)
{
    const struct nrg_op *op = nrg_path_map_get(&j->labels, row->name);
    const char *colons = op ? strstr(op->kind, "::") : NULL;
    if (!op)
        return false;
    if (colons && colons[2] && !row->detail[0])
        row->detail = colons + 2;
    for (size_t i = 0; i < j->joined->reduced.n_operators; i++) {
        const struct nrg_operator *reduced = &j->joined->reduced.operators[i];
        if (reduced->op == op && !nrg_operator_unknown(reduced))
            fill(row, &reduced->cost, 1, true);
    }
    return true;
}

static bool join_operator(struct join *j, struct nrg_attribution_row *row)
{
    const struct nrg_attribution_row *up = above(j, row);
    while (up && !is_kind(up, NRG_KIND_MODULE) && !is_kind(up, NRG_KIND_BACKWARD))
        up = above(j, up);
    if (up && is_kind(up, NRG_KIND_BACKWARD))
        return false;
    const char *path = up ? nrg_module_path(j->a, up, j->root_class) : NULL;
    return (path && join_operator_of(j, row, path)) || join_label(j, row);
}

/* ---- all rows ---- */

static int index_model(struct join *j)
{
    const struct nrg_module_tree *tree = &j->joined->tree;
    const struct nrg_block *body =
        j->joined->model.n_graphs ? j->joined->model.graphs[0]->body : NULL;
    int rc = 0;
    for (size_t i = 0; !rc && i < tree->n; i++)
        rc = nrg_path_map_set(&j->modules, tree->nodes[i].name, &tree->nodes[i]);
    for (size_t i = 0; !rc && body && i < body->n_ops; i++)
        if (body->ops[i]->label && body->ops[i]->label[0])
            rc = nrg_path_map_set(&j->labels, body->ops[i]->label, body->ops[i]);
    return rc;
}

struct nrg_join_result nrg_attribution_join(struct nrg_attribution *a,
                                            const struct nrg_joined_model *joined,
                                            bool backward_in_modules)
{
    struct nrg_join_result result = {0};
    struct join j = {.a = a,
                     .joined = joined,
                     .root_class = joined->tree.n ? joined->tree.nodes[0].class_name : "",
                     .backward_in_modules = backward_in_modules};
    int rc = joined->has_graph ? index_model(&j) : -ENODATA;
    for (size_t i = 0; !rc && i < a->n_rows; i++) {
        struct nrg_attribution_row *row = &a->rows[i];
        if (!isnan(row->macs))
            continue;
        if (is_kind(row, NRG_KIND_MODULE))
            result.modules += join_module(&j, row);
        else if (is_kind(row, NRG_KIND_OPERATOR))
            result.operators += join_operator(&j, row);
        else if (is_kind(row, NRG_KIND_LAYER))
            result.layers += join_label(&j, row);
    }
    nrg_path_map_release(&j.modules);
    nrg_path_map_release(&j.labels);
    return result;
}

/* ---- the model ---- */

static int count(struct nrg_joined_model *j, struct nrg_error *err)
{
    int rc = 0;
    j->read = true;
    j->has_graph = j->model.n_graphs > 0;
    if (!j->has_graph)
        return 0;
    if ((rc = nrg_reduce(&j->model, NULL, &j->reduced, err))) {
        j->has_graph = false;
        return rc;
    }
    rc = nrg_cost_all(&j->reduced, NRG_CONVENTION_NRG);
    if (!rc)
        rc = nrg_module_tree_make(&j->tree, &j->model, &j->reduced, NULL);
    return rc ? nrg_fail(err, rc, j->name, "out of memory") : 0;
}

int nrg_joined_model_open(struct nrg_joined_model *j, const char *path, struct nrg_error *err)
{
    *j = (struct nrg_joined_model){0};
    nrg_copy(j->name, sizeof j->name, path);
    int rc = nrg_model_read(path, NULL, &j->model, err);
    if (!rc)
        rc = count(j, err);
    if (rc)
        nrg_joined_model_close(j);
    return rc;
}

int nrg_joined_model_read(struct nrg_joined_model *j, const char *name, const char *format,
                          const void *bytes, size_t size, struct nrg_error *err)
{
    const struct nrg_source source = {bytes, size, name};
    *j = (struct nrg_joined_model){0};
    nrg_copy(j->name, sizeof j->name, name);
    int rc = nrg_model_read_bytes(&source, format[0] ? format : NULL, &j->model, err);
    if (!rc)
        rc = count(j, err);
    if (rc)
        nrg_joined_model_close(j);
    return rc;
}

void nrg_joined_model_close(struct nrg_joined_model *j)
{
    if (j->read) {
        nrg_module_tree_release(&j->tree);
        nrg_reduced_release(&j->reduced);
        nrg_model_release(&j->model);
    }
    *j = (struct nrg_joined_model){0};
}

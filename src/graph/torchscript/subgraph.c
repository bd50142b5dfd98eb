/*
 * Subgraphs. A node that holds a graph prints as "prim::FusionGroup_0(…)"; after its own graph's
 * end comes "with prim::FusionGroup_0 = graph(…", and such a graph may have `with` graphs of its
 * own, numbered from 0 again, right after it. So a `with` belongs to the innermost graph that
 * still waits for that name: nodes that wait are kept per name, newest first, with the level of
 * their graph. Leaving a graph drops its waiting nodes.
 *
 * Tied, a node's kind loses its number and it gets an attribute "Subgraph". A prim:: node whose
 * graph never comes loses its number too, with a warning; other namespaces may really have
 * operators whose names end in a number.
 */
#include "base/mem.h"
#include "graph/torchscript/lex.h"

#define WARNINGS_MAX 5

int ts_wait_for_graph(struct ts *ts, struct nrg_op *op, const char *kind, size_t len)
{
    struct nrg_map_entry *entry = nrg_map_at(&ts->waiting, kind, len);
    struct ts_reference *reference = nrg_arena_alloc(&ts->model->arena, sizeof *reference);
    if (!entry || !reference ||
        nrg_append(&ts->references, &ts->n_references, &ts->cap_references, &reference,
                   sizeof reference))
        return ts_no_memory(ts);
    *reference = (struct ts_reference){op, kind, len, entry->data, ts->level};
    entry->data = reference;
    return 0;
}

static int drop_number(struct ts *ts, struct nrg_op *op)
{
    const char *number = strrchr(op->kind, '_');
    op->kind = ts_copy(ts, op->kind, (size_t)(number - op->kind));
    return op->kind ? 0 : ts_no_memory(ts);
}

/* Nodes of graphs deeper than `level` wait no longer. */
static int drop_waiting(struct ts *ts, size_t level)
{
    while (ts->n_references && ts->references[ts->n_references - 1]->level > level) {
        struct ts_reference *last = ts->references[--ts->n_references];
        struct nrg_map_entry *entry = nrg_map_at(&ts->waiting, last->kind, last->len);
        if (!entry)
            return ts_no_memory(ts);
        if (entry->data == last)
            entry->data = last->same_before;
        if (!last->op || strncmp(last->op->kind, "prim::", 6))
            continue;
        if (ts->n_missing++ < WARNINGS_MAX &&
            nrg_model_warn(ts->model, "line %u: the graph of %s is not in the text", last->op->line,
                           last->op->kind))
            return ts_no_memory(ts);
        int rc = drop_number(ts, last->op);
        if (rc)
            return rc;
    }
    return 0;
}

int ts_forget_waiting(struct ts *ts)
{
    int rc = drop_waiting(ts, 0);
    nrg_map_clear(&ts->waiting);
    ts->level = 1;
    return rc;
}

int ts_tie_graph(struct ts *ts, const char *kind, size_t len, struct nrg_op **owner)
{
    struct nrg_map_entry *entry = nrg_map_at(&ts->waiting, kind, len);
    if (!entry)
        return ts_no_memory(ts);
    struct ts_reference *found = entry->data;
    *owner = NULL;
    if (!found) {
        if (ts->n_missing++ < WARNINGS_MAX &&
            nrg_model_warn(ts->model, "line %u: no node refers to this `with` graph",
                           ts_line_at(ts, kind)))
            return ts_no_memory(ts);
        return 0;
    }
    int rc = drop_waiting(ts, found->level);
    if (rc)
        return rc;
    *owner = found->op;
    found->op = NULL;
    entry = nrg_map_at(&ts->waiting, kind, len);
    if (entry)
        entry->data = found->same_before;
    ts->level = found->level + 1;
    return drop_number(ts, *owner);
}

int ts_set_subgraph(struct ts *ts, struct nrg_op *op, const struct nrg_graph *graph)
{
    struct nrg_attr *attrs = nrg_arena_array(&ts->model->arena, op->n_attrs + 1, sizeof *attrs);
    if (!attrs)
        return ts_no_memory(ts);
    if (op->n_attrs)
        memcpy(attrs, op->attrs, op->n_attrs * sizeof *attrs);
    attrs[op->n_attrs] = (struct nrg_attr){.name = "Subgraph", .kind = NRG_A_GRAPH, .graph = graph};
    op->attrs = attrs;
    op->n_attrs++;
    return 0;
}

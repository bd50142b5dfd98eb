/*
 * The reader of TorchScript IR text, as str(model.graph), str(model.inlined_graph) and the logs
 * of PyTorch 0.3 to 2.x print it. Every graph of the file is read; the first is the main one. A
 * graph introduced by "with" belongs to a node of the graph before it (subgraph.c);
 * others are named by a heading of one word above them, as dumps of submodules have it. A file of
 * node lines only is read as one graph whose header is missing.
 *
 * Operators without a scope belong to the root module if others of the graph have one (a traced
 * model); without any scope the module is unknown (a scripted model).
 */
#include <errno.h>
#include <stdlib.h>

#include "graph/readers.h"
#include "graph/torchscript/lex.h"

#define LOOK_AT ((size_t)64 * 1024)

static int match_text(const struct nrg_source *source)
{
    const char *text = (const char *)source->bytes;
    size_t len = source->size < LOOK_AT ? source->size : LOOK_AT;
    if (!len)
        return 0;
    if (memchr(text, '\0', len))
        return ts_other_format(text, len) ? 80 : 0;
    if (ts_find_graph(text, text + len) || ts_other_format(text, len))
        return 80;
    return ts_find_node(text, text + len) ? 60 : 0;
}

static void set_root(struct nrg_block *block)
{
    for (size_t i = 0; i < block->n_ops; i++) {
        struct nrg_op *op = block->ops[i];
        if (!op->scope)
            op->module = "";
        for (size_t b = 0; b < op->n_blocks; b++)
            set_root(op->blocks[b]);
    }
}

static int end_family(struct ts *ts)
{
    int rc = ts_forget_waiting(ts);
    if (ts->family_scoped)
        for (size_t i = ts->family; i < ts->model->n_graphs; i++)
            set_root(ts->model->graphs[i]->body);
    ts->family = ts->model->n_graphs;
    ts->family_scoped = false;
    return rc;
}

/* A "graph(" after which nothing can be read is not a graph; the rest of its line is skipped. */
static int add_graph(struct ts *ts, struct nrg_graph *graph)
{
    if (!graph->complete && !graph->n_values && !graph->n_ops) {
        ts->p = ts_line_end(ts);
        return 0;
    }
    ts->family_scoped |= ts->state.scoped;
    return nrg_model_add_graph(ts->model, graph) ? ts_no_memory(ts) : 0;
}

/* The graph at `at`; text before `from` belongs to others. */
static int read_graph(struct ts *ts, const char *from, const char *at)
{
    const char *text, *name = "";
    size_t len;
    struct nrg_op *owner = NULL;
    struct nrg_graph *graph;
    int rc;
    if (ts_with_before(from, at, &text, &len)) {
        rc = ts_tie_graph(ts, text, len, &owner);
        name = ts_copy(ts, text, len);
    } else {
        rc = end_family(ts);
        if (ts_heading_before(from, at, &text, &len))
            name = ts_copy(ts, text, len);
    }
    if (!name)
        return ts_no_memory(ts);
    ts->p = at;
    if (!rc)
        rc = ts_graph(ts, name, &graph);
    if (!rc)
        rc = add_graph(ts, graph);
    return rc || !owner ? rc : ts_set_subgraph(ts, owner, graph);
}

static int read_graphs(struct ts *ts)
{
    const char *from = ts->start, *at;
    int rc = 0;
    while (!rc && (at = ts_find_graph(from, ts->end))) {
        if (ts_is_fx(at, ts->end)) {
            from = at + 5;
            continue;
        }
        rc = read_graph(ts, from, at);
        from = ts->p > at ? ts->p : at + 5;
    }
    if (rc || ts->model->n_graphs)
        return rc;
    const char *other = ts_other_format(ts->start, (size_t)(ts->end - ts->start));
    if (other)
        return nrg_fail(ts->err, -ENOTSUP, ts->source->name, "%s", other);
    struct nrg_graph *graph;
    at = ts_find_node(ts->start, ts->end);
    if (!at)
        return nrg_fail(ts->err, -EBADMSG, ts->source->name, "holds no TorchScript graph");
    ts->p = at;
    rc = ts_fragment(ts, &graph);
    return rc ? rc : add_graph(ts, graph);
}

static int warn_of_sizes(struct ts *ts)
{
    if (!ts->n_huge_dims)
        return 0;
    return nrg_model_warn(ts->model, "%u sizes of tensors are beyond 63 bits and taken as unknown",
                          ts->n_huge_dims)
               ? ts_no_memory(ts)
               : 0;
}

static void release_scratch(struct ts *ts)
{
    struct nrg_map *tables[] = {&ts->texts, &ts->kinds,  &ts->scopes,
                                &ts->types, &ts->values, &ts->waiting};
    struct ts_stack *stacks[] = {&ts->operands, &ts->ops, &ts->blocks, &ts->type_args,
                                 &ts->strings};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        nrg_map_release(tables[i]);
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
        free(stacks[i]->items);
    free(ts->outputs);
    free(ts->attrs);
    free(ts->ints);
    free(ts->floats);
    free(ts->references);
}

static int read_text(const struct nrg_source *source, struct nrg_model *model,
                     struct nrg_error *err)
{
    if (source->size > UINT32_MAX)
        return nrg_fail(err, -EFBIG, source->name, "is larger than 4 GiB");
    const char *text = (const char *)source->bytes;
    struct ts ts = {.source = source,
                    .model = model,
                    .err = err,
                    .start = text,
                    .p = text,
                    .end = text + source->size,
                    .counted = text,
                    .line = 1,
                    .level = 1};
    int rc = read_graphs(&ts);
    if (!rc)
        rc = end_family(&ts);
    if (!rc)
        rc = warn_of_sizes(&ts);
    release_scratch(&ts);
    return rc;
}

const struct nrg_reader nrg_reader_torchscript = {
    .name = "torchscript",
    .summary = "TorchScript IR text: print(model.inlined_graph), PyTorch 0.3 to 2.x",
    .match = match_text,
    .read = read_text,
};

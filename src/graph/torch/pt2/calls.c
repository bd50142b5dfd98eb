/*
 * See internal.h: nodes that call subgraphs. There are three kinds: a branch (cond) becomes
 * prim::If with two blocks, a loop (while_loop, map, scan) prim::Loop whose trip count is not
 * known, and a plain wrapper (no_grad and autocast regions, shared subgraphs) vanishes: its
 * operators are inlined. The subgraph's inputs are the last operands of the call, so inside they
 * are the very same values.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph/torch/pt2/internal.h"

/*
 * A loop's body gets slices of some operands and new versions of others: those are values of
 * their own, with the body's shapes; parameters stay themselves.
 */
static struct nrg_value *loop_input(struct nrg_pt2_scope *inner, const char *name,
                                    struct nrg_value *operand, struct nrg_pt2_list *fresh)
{
    bool is_param = operand->producer && !strcmp(operand->producer->kind, "prim::GetAttr");
    const struct nrg_type *type =
        nrg_pt2_tensor_type(inner->pt2, json_object_get(inner->tensors, name));
    if (!type || is_param || !json_object_get(inner->tensors, name))
        return type ? operand : NULL;
    const char *kept = nrg_pt2_unique(inner->pt2, name);
    struct nrg_value *value = kept ? nrg_pt2_value(inner, kept, type) : NULL;
    return value && !nrg_pt2_push(inner, fresh, value) ? value : NULL;
}

/* Opens a graph's names: its inputs are the last of the operands. `fresh` is NULL but for loops. */
static int open_scope(struct nrg_pt2_scope *inner, const struct nrg_pt2_scope *outer,
                      const json_t *graph, const struct nrg_pt2_list *operands,
                      struct nrg_pt2_list *fresh)
{
    const json_t *inputs = json_object_get(graph, "inputs");
    size_t n = json_array_size(inputs);
    *inner = (struct nrg_pt2_scope){.pt2 = outer->pt2,
                                    .tensors = json_object_get(graph, "tensor_values"),
                                    .block = outer->block,
                                    .ops = outer->ops,
                                    .module = outer->module,
                                    .caller = outer->module};
    if (n > operands->n)
        return nrg_fail(outer->pt2->err, -EBADMSG, outer->pt2->where,
                        "a subgraph has %zu inputs, but is called with %zu", n, operands->n);
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        const char *name = nrg_pt2_arg_name(json_array_get(inputs, i));
        struct nrg_value *value = operands->items[operands->n - n + i];
        if (name)
            rc = nrg_pt2_bind(inner, name, fresh ? loop_input(inner, name, value, fresh) : value);
    }
    return rc;
}

/* Names of a call's outputs, lists flattened, given to the values of `from` or to new ones. */
static int bind_outputs(struct nrg_pt2_scope *scope, const json_t *node,
                        const struct nrg_pt2_list *from, struct nrg_pt2_list *made)
{
    const json_t *outs = json_object_get(node, "outputs");
    size_t k = 0;
    int rc = 0;
    for (size_t i = 0; !rc && i < json_array_size(outs); i++) {
        const json_t *out = json_array_get(outs, i), *list = json_object_get(out, "as_tensors");
        size_t n = list ? json_array_size(list) : 1;
        for (size_t m = 0; !rc && m < n; m++, k++) {
            const char *name =
                list ? json_string_value(json_object_get(json_array_get(list, m), "name"))
                     : nrg_pt2_arg_name(out);
            if (!name)
                continue;
            if (from)
                rc = nrg_pt2_bind(scope, name, k < from->n ? from->items[k] : NULL);
            else
                rc = nrg_pt2_push(
                    scope, made,
                    nrg_pt2_output(scope, name, list || json_object_get(out, "as_tensor")));
        }
    }
    return rc;
}

static int inline_call(struct nrg_pt2_scope *scope, const json_t *node, const json_t *graph,
                       const struct nrg_pt2_list *operands)
{
    struct nrg_pt2_scope inner;
    struct nrg_pt2_list results = {0};
    int rc = open_scope(&inner, scope, graph, operands, NULL);
    if (!rc)
        rc = nrg_pt2_body(&inner, graph, &results);
    if (!rc)
        rc = bind_outputs(scope, node, &results, NULL);
    nrg_pt2_scope_release(&inner);
    free(results.items);
    return rc;
}

static int nested_block(struct nrg_pt2_scope *scope, struct nrg_op *owner, const json_t *graph,
                        const struct nrg_pt2_list *operands, bool is_if, struct nrg_block **made)
{
    struct nrg_block *block = nrg_arena_alloc(&scope->pt2->model->arena, sizeof *block);
    struct nrg_pt2_scope inner;
    struct nrg_pt2_list results = {0}, fresh = {0};
    struct nrg_pt2_ops ops = {0};
    if (!block)
        return nrg_pt2_no_memory(scope->pt2);
    block->owner = owner;
    int rc = open_scope(&inner, scope, graph, operands, is_if ? NULL : &fresh);
    inner.block = block;
    inner.ops = &ops;
    if (!rc)
        rc = nrg_pt2_body(&inner, graph, &results);
    if (!rc)
        rc = nrg_pt2_finish_block(scope->pt2, block, &ops, &results);
    if (!rc && !(block->inputs = nrg_pt2_copy(scope->pt2, fresh.items, fresh.n)))
        rc = nrg_pt2_no_memory(scope->pt2);
    block->n_inputs = fresh.n;
    nrg_pt2_scope_release(&inner);
    free(fresh.items);
    free(results.items);
    free(ops.items);
    *made = block;
    return rc;
}

static int add_branches(struct nrg_pt2_scope *scope, const json_t *node, const json_t **graphs,
                        size_t n_graphs, const struct nrg_pt2_list *operands, bool is_if,
                        struct nrg_op **made)
{
    struct nrg_pt2_list outputs = {0};
    int rc = bind_outputs(scope, node, NULL, &outputs);
    /* An If has its condition alone, as TorchScript writes it: the rest is used inside. */
    size_t n_inputs = is_if && operands->n ? 1 : operands->n;
    struct nrg_op *op = rc ? NULL
                           : nrg_pt2_op(scope, is_if ? "prim::If" : "prim::Loop", operands->items,
                                        n_inputs, outputs.items, outputs.n);
    free(outputs.items);
    if (op)
        op->blocks = nrg_arena_array(&scope->pt2->model->arena, n_graphs, sizeof *op->blocks);
    if (!rc && (!op || !op->blocks))
        rc = nrg_pt2_no_memory(scope->pt2);
    for (size_t i = 0; !rc && i < n_graphs; i++) {
        rc = nested_block(scope, op, graphs[i], operands, is_if, &op->blocks[i]);
        op->n_blocks += !rc;
    }
    *made = op;
    return rc;
}

size_t nrg_pt2_subgraphs(const json_t *inputs, const json_t **graphs)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(inputs) && n < NRG_PT2_GRAPHS; i++) {
        const json_t *arg = json_object_get(json_array_get(inputs, i), "arg");
        const json_t *graph = json_object_get(json_object_get(arg, "as_graph"), "graph");
        if (graph)
            graphs[n++] = graph;
    }
    return n;
}

/* Loops run their body an unknown number of times: max trip count and condition say so. */
static int loop_head(struct nrg_pt2_scope *scope, struct nrg_pt2_list *operands)
{
    json_t *limit = json_pack("{sI}", "as_int", (json_int_t)INT64_MAX);
    json_t *go_on = json_pack("{sb}", "as_bool", 1);
    int rc = nrg_pt2_argument(scope, limit, operands);
    if (!rc)
        rc = nrg_pt2_argument(scope, go_on, operands);
    json_decref(limit);
    json_decref(go_on);
    return rc;
}

int nrg_pt2_call(struct nrg_pt2_scope *scope, const json_t *node, const char *target,
                 const json_t **graphs, size_t n_graphs, struct nrg_op **made)
{
    const json_t *inputs = json_object_get(node, "inputs");
    struct nrg_pt2_list operands = {0};
    bool is_if = n_graphs == 2 && strstr(target, ".cond");
    bool is_loop = strstr(target, "while_loop") || strstr(target, "map") || strstr(target, "scan");
    int rc = is_loop ? loop_head(scope, &operands) : 0;
    for (size_t i = 0; !rc && i < json_array_size(inputs); i++)
        rc = nrg_pt2_operands(scope, json_object_get(json_array_get(inputs, i), "arg"), &operands);
    if (!rc && (is_if || is_loop))
        rc = add_branches(scope, node, graphs, n_graphs, &operands, is_if, made);
    else if (!rc)
        rc = inline_call(scope, node, graphs[0], &operands);
    free(operands.items);
    return rc;
}

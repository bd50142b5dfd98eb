/*
 * See internal.h. Nodes are in order of execution; each becomes one operator, or several when
 * it has constants and lists for arguments, or a list for a result.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/torch/pt2/internal.h"

struct nrg_value *nrg_pt2_value(struct nrg_pt2_scope *scope, const char *name,
                                const struct nrg_type *type)
{
    struct nrg_value *value = nrg_arena_alloc(&scope->pt2->model->arena, sizeof *value);
    if (value)
        *value = (struct nrg_value){
            .name = name, .type = type, .id = (uint32_t)scope->pt2->graph->n_values++};
    return value;
}

struct nrg_value *nrg_pt2_numbered(struct nrg_pt2_scope *scope, const char *prefix,
                                   const struct nrg_type *type)
{
    char name[32];
    snprintf(name, sizeof name, "%s.%zu", prefix, scope->pt2->graph->n_values);
    const char *kept = type ? nrg_pt2_text(scope->pt2, name) : NULL;
    return kept ? nrg_pt2_value(scope, kept, type) : NULL;
}

int nrg_pt2_bind(struct nrg_pt2_scope *scope, const char *name, struct nrg_value *value)
{
    if (!value ||
        nrg_reserve(&scope->values, &scope->cap_values, scope->n_values + 1,
                    sizeof(struct nrg_value *)) ||
        nrg_map_put(&scope->names, name, strlen(name), (int64_t)scope->n_values))
        return nrg_pt2_no_memory(scope->pt2);
    scope->values[scope->n_values++] = value;
    return 0;
}

struct nrg_value **nrg_pt2_copy(struct nrg_pt2 *pt2, struct nrg_value **values, size_t n)
{
    struct nrg_value **copy =
        nrg_arena_array(&pt2->model->arena, n ? n : 1, sizeof(struct nrg_value *));
    if (copy && n)
        memcpy(copy, values, n * sizeof *copy);
    return copy;
}

struct nrg_op *nrg_pt2_op(struct nrg_pt2_scope *scope, const char *kind, struct nrg_value **inputs,
                          size_t n_inputs, struct nrg_value **outputs, size_t n_outputs)
{
    struct nrg_pt2 *pt2 = scope->pt2;
    struct nrg_op *op = nrg_arena_alloc(&pt2->model->arena, sizeof *op);
    if (!op)
        return NULL;
    *op = (struct nrg_op){.kind = kind,
                          .inputs = nrg_pt2_copy(pt2, inputs, n_inputs),
                          .n_inputs = n_inputs,
                          .outputs = nrg_pt2_copy(pt2, outputs, n_outputs),
                          .n_outputs = n_outputs,
                          .module = scope->module,
                          .parent = scope->block,
                          .id = (uint32_t)pt2->graph->n_ops++};
    if (!op->inputs || !op->outputs ||
        nrg_append(&scope->ops->items, &scope->ops->n, &scope->ops->cap, &op, sizeof op))
        return NULL;
    for (size_t i = 0; i < n_outputs; i++)
        outputs[i]->producer = op;
    return op;
}

bool nrg_pt2_set_attr(struct nrg_pt2 *pt2, struct nrg_op *op, const struct nrg_attr *attr)
{
    struct nrg_attr *kept = op ? nrg_arena_alloc(&pt2->model->arena, sizeof *kept) : NULL;
    if (!kept)
        return false;
    *kept = *attr;
    op->attrs = kept;
    op->n_attrs = 1;
    return true;
}

/* "torch.ops.aten.linear.default" is aten::linear; "_operator.add" is aten::add on numbers. */
static const char *kind_of(struct nrg_pt2 *pt2, const char *target)
{
    char kind[200];
    size_t n = 0;
    bool separated = false;
    if (!strncmp(target, "torch.ops.", 10))
        target += 10;
    else if (!strncmp(target, "_operator.", 10) || !strncmp(target, "math.", 5)) {
        memcpy(kind, "aten::", n = 6);
        target = strchr(target, '.') + 1;
        separated = true;
    }
    /* The same operators with symbolic results: aten.sym_size is aten::size. */
    const char *symbolic = !strncmp(target, "aten.sym_", 9) ? target + 9 : NULL;
    if (symbolic && strncmp(symbolic, "constrain", 9) != 0) {
        memcpy(kind, "aten::", n = 6);
        target = symbolic;
        separated = true;
    }
    for (; *target && n + 3 < sizeof kind; target++) {
        if (*target == '.' && separated)
            break;
        if (*target == '.') {
            kind[n++] = ':';
            kind[n++] = ':';
            separated = true;
        } else {
            kind[n++] = *target;
        }
    }
    kind[n] = '\0';
    return nrg_pt2_text(pt2, kind);
}

/* The innermost frame of a Python stack: the last 'File "x", line n'. */
static const char *source_of(struct nrg_pt2 *pt2, const char *trace)
{
    const char *last = NULL, *end;
    char text[300];
    for (const char *p = trace; p && (p = strstr(p, "File \"")); p += 6)
        last = p + 6;
    if (!last || !(end = strchr(last, '"')) || strncmp(end, "\", line ", 8) != 0)
        return NULL;
    int digits = (int)strspn(end + 8, "0123456789");
    int len = (int)(end - last < 200 ? end - last : 200);
    snprintf(text, sizeof text, "%.*s:%.*s", len, last, digits < 10 ? digits : 10, end + 8);
    return nrg_pt2_text(pt2, text);
}

/* Subgraphs have names of their own: where two meet in one graph, the second gets a number. */
const char *nrg_pt2_unique(struct nrg_pt2 *pt2, const char *name)
{
    char text[300];
    bool taken = nrg_map_number(&pt2->used, name, strlen(name)) >= 0;
    if (taken)
        snprintf(text, sizeof text, "%.250s.%zu", name, pt2->graph->n_values);
    const char *kept = nrg_pt2_text(pt2, taken ? text : name);
    return kept && !nrg_map_put(&pt2->used, kept, strlen(kept), 0) ? kept : NULL;
}

struct nrg_value *nrg_pt2_output(struct nrg_pt2_scope *scope, const char *name, bool is_tensor)
{
    struct nrg_pt2 *pt2 = scope->pt2;
    const json_t *meta = json_object_get(scope->tensors, name);
    const struct nrg_type *type =
        is_tensor ? nrg_pt2_tensor_type(pt2, meta) : nrg_pt2_simple_type(pt2, NRG_T_INT, 0);
    const char *kept = nrg_pt2_unique(pt2, name);
    struct nrg_value *value = type && kept ? nrg_pt2_value(scope, kept, type) : NULL;
    return value && !nrg_pt2_bind(scope, name, value) ? value : NULL;
}

/* What follows an operator whose result is a list: its members, unpacked. */
static int unpack_list(struct nrg_pt2_scope *scope, struct nrg_value *list, const json_t *members)
{
    struct nrg_pt2_list outputs = {0};
    int rc = 0;
    for (size_t i = 0; !rc && i < json_array_size(members); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(members, i), "name"));
        rc = nrg_pt2_push(scope, &outputs, nrg_pt2_output(scope, name ? name : "", true));
    }
    if (!rc && !nrg_pt2_op(scope, "prim::ListUnpack", &list, 1, outputs.items, outputs.n))
        rc = nrg_pt2_no_memory(scope->pt2);
    free(outputs.items);
    return rc;
}

static int output_value(struct nrg_pt2_scope *scope, const json_t *out, struct nrg_pt2_list *list)
{
    const char *name = nrg_pt2_arg_name(out);
    if (json_is_array(json_object_get(out, "as_tensors"))) {
        const struct nrg_type *type = nrg_pt2_simple_type(scope->pt2, NRG_T_LIST, NRG_T_TENSOR);
        return nrg_pt2_push(scope, list, nrg_pt2_numbered(scope, "list", type));
    }
    bool is_tensor =
        json_object_get(out, "as_tensor") || json_object_get(out, "as_optional_tensor");
    return nrg_pt2_push(scope, list, nrg_pt2_output(scope, name ? name : "", is_tensor && name));
}

static int plain_node(struct nrg_pt2_scope *scope, const json_t *node, struct nrg_op **made)
{
    const json_t *inputs = json_object_get(node, "inputs"),
                 *outs = json_object_get(node, "outputs");
    struct nrg_pt2_list in = {0}, out = {0};
    int rc = 0;
    for (size_t i = 0; !rc && i < json_array_size(inputs); i++)
        rc = nrg_pt2_argument(scope, json_object_get(json_array_get(inputs, i), "arg"), &in);
    for (size_t i = 0; !rc && i < json_array_size(outs); i++)
        rc = output_value(scope, json_array_get(outs, i), &out);
    const char *kind =
        rc ? NULL : kind_of(scope->pt2, json_string_value(json_object_get(node, "target")));
    *made = kind ? nrg_pt2_op(scope, kind, in.items, in.n, out.items, out.n) : NULL;
    if (!rc && !*made)
        rc = nrg_pt2_no_memory(scope->pt2);
    for (size_t i = 0; !rc && i < json_array_size(outs); i++) {
        const json_t *members = json_object_get(json_array_get(outs, i), "as_tensors");
        if (json_is_array(members))
            rc = unpack_list(scope, out.items[i], members);
    }
    free(in.items);
    free(out.items);
    return rc;
}

void nrg_pt2_scope_release(struct nrg_pt2_scope *scope)
{
    nrg_map_release(&scope->names);
    free(scope->values);
}

/* A block's operators are gathered in growing memory and copied to the arena at its end. */
int nrg_pt2_finish_block(struct nrg_pt2 *pt2, struct nrg_block *block,
                         const struct nrg_pt2_ops *ops, const struct nrg_pt2_list *outputs)
{
    block->ops = nrg_arena_array(&pt2->model->arena, ops->n + !ops->n, sizeof(struct nrg_op *));
    block->outputs = nrg_pt2_copy(pt2, outputs->items, outputs->n);
    if (!block->ops || !block->outputs)
        return nrg_pt2_no_memory(pt2);
    if (ops->n)
        memcpy(block->ops, ops->items, ops->n * sizeof(struct nrg_op *));
    block->n_ops = ops->n;
    block->n_outputs = outputs->n;
    return 0;
}

static int read_node(struct nrg_pt2_scope *scope, const json_t *node)
{
    struct nrg_pt2 *pt2 = scope->pt2;
    const json_t *graphs[NRG_PT2_GRAPHS], *meta = json_object_get(node, "metadata");
    const char *target = json_string_value(json_object_get(node, "target"));
    const char *stack = json_string_value(json_object_get(meta, "nn_module_stack"));
    const char *label = json_string_value(json_object_get(node, "name"));
    struct nrg_op *op = NULL;
    if (!target)
        return nrg_fail(pt2->err, -EBADMSG, pt2->where, "a node has no target");
    int rc = nrg_pt2_module(pt2, stack, &scope->module);
    if (!scope->module)
        scope->module = scope->caller;
    size_t n_graphs = nrg_pt2_subgraphs(json_object_get(node, "inputs"), graphs);
    if (!rc)
        rc = n_graphs ? nrg_pt2_call(scope, node, target, graphs, n_graphs, &op)
                      : plain_node(scope, node, &op);
    if (rc || !op)
        return rc;
    op->label = label ? nrg_pt2_text(pt2, label) : NULL;
    op->scope = stack ? nrg_pt2_text(pt2, stack) : NULL;
    op->source = source_of(pt2, json_string_value(json_object_get(meta, "stack_trace")));
    return 0;
}

int nrg_pt2_body(struct nrg_pt2_scope *scope, const json_t *graph, struct nrg_pt2_list *results)
{
    const json_t *nodes = json_object_get(graph, "nodes"),
                 *outs = json_object_get(graph, "outputs");
    int rc = 0;
    if (++scope->pt2->depth > NRG_PT2_DEPTH)
        return nrg_fail(scope->pt2->err, -ELOOP, scope->pt2->where,
                        "its subgraphs are nested deeper than %d levels", NRG_PT2_DEPTH);
    for (size_t i = 0; !rc && i < json_array_size(nodes); i++)
        rc = read_node(scope, json_array_get(nodes, i));
    for (size_t i = 0; !rc && i < json_array_size(outs); i++)
        rc = nrg_pt2_argument(scope, json_array_get(outs, i), results);
    scope->pt2->depth--;
    return rc;
}

/* A parameter's placeholder becomes prim::GetAttr[name=<path>], an input of the user stays one. */
static int read_input(struct nrg_pt2_scope *scope, const json_t *arg, const json_t *spec,
                      struct nrg_pt2_list *inputs)
{
    struct nrg_pt2 *pt2 = scope->pt2;
    const char *name = nrg_pt2_arg_name(arg), *placeholder = NULL, *path = NULL;
    int rc = nrg_pt2_parameter(pt2, spec, scope->tensors, &placeholder, &path);
    if (rc || !name)
        return rc;
    struct nrg_value *value = nrg_pt2_output(scope, name, json_object_get(arg, "as_tensor"));
    if (!value)
        return nrg_pt2_no_memory(pt2);
    if (!path || strcmp(placeholder, name) != 0)
        return nrg_pt2_push(scope, inputs, value);
    struct nrg_op *op = nrg_pt2_op(scope, "prim::GetAttr", NULL, 0, &value, 1);
    const struct nrg_attr attr = {.name = "name", .kind = NRG_A_STRING, .s = path};
    return nrg_pt2_set_attr(pt2, op, &attr) ? 0 : nrg_pt2_no_memory(pt2);
}

static int read_inputs(struct nrg_pt2_scope *scope, const json_t *graph)
{
    const json_t *inputs = json_object_get(graph, "inputs");
    struct nrg_pt2_list list = {0};
    int rc = 0;
    scope->module = "";
    for (size_t i = 0; !rc && i < json_array_size(inputs); i++)
        rc = read_input(scope, json_array_get(inputs, i), json_array_get(scope->pt2->specs, i),
                        &list);
    scope->block->inputs = rc ? NULL : nrg_pt2_copy(scope->pt2, list.items, list.n);
    scope->block->n_inputs = scope->block->inputs ? list.n : 0;
    free(list.items);
    return rc || scope->block->inputs ? rc : nrg_pt2_no_memory(scope->pt2);
}

int nrg_pt2_graph(struct nrg_pt2 *pt2, const json_t *json, const char *name)
{
    struct nrg_graph *graph = nrg_arena_alloc(&pt2->model->arena, sizeof *graph);
    struct nrg_block *body = nrg_arena_alloc(&pt2->model->arena, sizeof *body);
    struct nrg_pt2_ops ops = {0};
    struct nrg_pt2_list outputs = {0};
    if (!graph || !body)
        return nrg_pt2_no_memory(pt2);
    *graph = (struct nrg_graph){.name = name, .body = body, .complete = true};
    struct nrg_pt2_scope scope = {
        .pt2 = pt2, .tensors = json_object_get(json, "tensor_values"), .block = body, .ops = &ops};
    pt2->graph = graph;
    int rc = read_inputs(&scope, json);
    if (!rc)
        rc = nrg_pt2_body(&scope, json, &outputs);
    if (!rc)
        rc = nrg_pt2_finish_block(pt2, body, &ops, &outputs);
    if (!rc && nrg_model_add_graph(pt2->model, graph))
        rc = nrg_pt2_no_memory(pt2);
    nrg_pt2_scope_release(&scope);
    nrg_map_release(&pt2->used);
    free(outputs.items);
    free(ops.items);
    return rc;
}

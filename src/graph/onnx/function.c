/*
 * See internal.h: functions of the model itself (ModelProto.functions). A call is replaced by
 * the function's body, operator by operator: its inputs are the call's, its outputs are the call's
 * values, names inside are its own, and attributes may refer to the call's. This is what
 * PyTorch's newer exporter relies on, and it leaves nothing special for the passes after us.
 * Functions that call each other in a circle end at the depth limit; ones that double their calls
 * at each level end at the arena's limit.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "graph/onnx/internal.h"

enum { F_NAME = 1, F_INPUT = 4, F_OUTPUT = 5, F_NODE = 7, F_DOMAIN = 10, F_OVERLOAD = 13 };
enum { N_OP_TYPE = 4, N_DOMAIN = 7, N_OVERLOAD = 8 };

static bool same_text(const struct nrg_pb_field *a, const struct nrg_pb_field *b)
{
    return a->size == b->size && (!a->size || !memcmp(a->bytes, b->bytes, a->size));
}

int onnx_add_function(struct onnx *x, struct nrg_pb msg)
{
    struct onnx_function made = {msg, onnx_text_field(msg, F_DOMAIN), onnx_text_field(msg, F_NAME),
                                 onnx_text_field(msg, F_OVERLOAD)};
    int rc = nrg_append(&x->functions, &x->n_functions, &x->cap_functions, &made, sizeof made);
    return rc ? onnx_no_memory(x) : 0;
}

const struct onnx_function *onnx_find_function(const struct onnx *x, struct nrg_pb node)
{
    if (!x->n_functions)
        return NULL;
    struct nrg_pb_field name = onnx_text_field(node, N_OP_TYPE),
                        domain = onnx_text_field(node, N_DOMAIN),
                        overload = onnx_text_field(node, N_OVERLOAD);
    for (size_t i = 0; i < x->n_functions; i++) {
        const struct onnx_function *f = &x->functions[i];
        if (same_text(&f->name, &name) && same_text(&f->domain, &domain) &&
            same_text(&f->overload, &overload))
            return f;
    }
    return NULL;
}

/* Formal inputs and outputs become names for the call's values. */
static int bind_names(struct onnx *x, struct nrg_pb msg, uint32_t number, struct nrg_value **values,
                      size_t n)
{
    struct nrg_pb_field field;
    size_t i = 0;
    while (nrg_pb_next(&msg, &field) > 0) {
        if (field.number != number || field.wire != NRG_PB_BYTES)
            continue;
        struct nrg_value *value = i < n ? values[i] : number == F_INPUT ? x->absent : NULL;
        if (value && !onnx_map_here(&x->values, field.bytes, field.size)) {
            int rc = onnx_map_add(x, &x->values, field.bytes, field.size, value);
            if (rc)
                return rc;
        }
        i++;
    }
    return 0;
}

/* A function may return an input unchanged: the call's output is then a copy of it. */
static int pass_through(struct onnx *x, struct nrg_pb msg, struct nrg_op *call, size_t i,
                        struct onnx_ops *ops)
{
    struct nrg_pb_field field;
    struct nrg_value *from = NULL;
    for (size_t at = 0; nrg_pb_next(&msg, &field) > 0;)
        if (field.number == F_OUTPUT && at++ == i)
            from = onnx_map_get(&x->values, field.bytes, field.size);
    struct nrg_op *op = nrg_arena_alloc(&x->model->arena, sizeof *op);
    struct nrg_value **ends = nrg_arena_array(&x->model->arena, 2, sizeof(struct nrg_value *));
    if (!from || from == call->outputs[i])
        return onnx_fail(x, msg.at, "function of '%s' does not make its output %zu",
                         onnx_op_name(call), i + 1);
    if (!op || !ends)
        return onnx_no_memory(x);
    ends[0] = from;
    ends[1] = call->outputs[i];
    *op = (struct nrg_op){.kind = "onnx::Identity",
                          .label = call->label,
                          .module = call->module,
                          .inputs = ends,
                          .n_inputs = 1,
                          .outputs = ends + 1,
                          .n_outputs = 1,
                          .parent = call->parent};
    ends[1]->producer = op;
    return onnx_add_op(x, ops, op);
}

static int inline_body(struct onnx *x, const struct onnx_function *function, struct nrg_op *call,
                       struct nrg_block *block, struct onnx_ops *ops)
{
    size_t first = ops->n;
    int rc = bind_names(x, function->msg, F_INPUT, call->inputs, call->n_inputs);
    for (size_t i = 0; i < call->n_outputs; i++)
        call->outputs[i]->producer = NULL;
    if (!rc)
        rc = bind_names(x, function->msg, F_OUTPUT, call->outputs, call->n_outputs);
    if (!rc)
        rc = onnx_nodes(x, function->msg, F_NODE, block, ops);
    for (size_t i = 0; !rc && i < call->n_outputs; i++)
        if (!call->outputs[i]->producer && call->outputs[i]->type->kind != NRG_T_NONE)
            rc = pass_through(x, function->msg, call, i, ops);
    for (size_t i = first; !rc && i < ops->n; i++)
        if (!ops->ops[i]->module)
            ops->ops[i]->module = call->module;
    return rc;
}

int onnx_expand(struct onnx *x, const struct onnx_function *function, struct nrg_op *call,
                struct nrg_block *block, struct onnx_ops *ops)
{
    const struct nrg_op *outer = x->call;
    unsigned floor = x->values.floor;
    if (++x->depth > ONNX_MAX_DEPTH)
        return onnx_fail(x, function->msg.at,
                         "functions call each other deeper than %d ('%s'): a circle?",
                         ONNX_MAX_DEPTH, onnx_op_name(call));
    onnx_map_enter(&x->values);
    x->values.floor = x->values.depth;
    x->call = call;
    int rc = inline_body(x, function, call, block, ops);
    x->call = outer;
    x->values.floor = floor;
    onnx_map_leave(&x->values);
    x->depth--;
    return rc;
}

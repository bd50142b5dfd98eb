/*
 * What the reduction makes: arguments, data, kept operators, and the notes about dropped ones.
 * See internal.h.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/reduce/internal.h"

void *nrg_reducer_alloc(struct nrg_reducer *r, size_t n, size_t size)
{
    void *memory = nrg_arena_array(&r->out->arena, n, size);
    if (!memory)
        r->rc = -ENOMEM;
    return memory;
}

const char *nrg_reducer_copy(struct nrg_reducer *r, const char *text, size_t len)
{
    const char *copy = nrg_arena_copy(&r->out->arena, text, len);
    if (!copy)
        r->rc = -ENOMEM;
    return copy;
}

struct nrg_arg *nrg_reducer_arg(struct nrg_reducer *r, enum nrg_arg_kind kind,
                                const struct nrg_type *type)
{
    struct nrg_arg *arg = nrg_reducer_alloc(r, 1, sizeof *arg);
    if (arg)
        *arg = (struct nrg_arg){.kind = kind, .type = type};
    return arg;
}

struct nrg_arg *nrg_reducer_typed(struct nrg_reducer *r, struct nrg_arg *arg,
                                  const struct nrg_type *type)
{
    if (arg->kind != NRG_ARG_TENSOR || nrg_type_better(arg->type, type) == arg->type)
        return arg;
    struct nrg_arg *copy = nrg_reducer_alloc(r, 1, sizeof *copy);
    if (copy) {
        *copy = *arg;
        copy->type = type;
    }
    return copy;
}

struct nrg_arg *nrg_reducer_int(struct nrg_reducer *r, int64_t number, const struct nrg_type *type)
{
    struct nrg_arg *arg = nrg_reducer_arg(r, NRG_ARG_CONST, type);
    struct nrg_attr *attr = nrg_reducer_alloc(r, 1, sizeof *attr);
    if (!arg || !attr)
        return NULL;
    *attr = (struct nrg_attr){.name = "value", .kind = NRG_A_INT, .i = number};
    arg->constant = attr;
    return arg;
}

struct nrg_data *nrg_reducer_data(struct nrg_reducer *r, enum nrg_data_kind kind, const char *name,
                                  const struct nrg_type *type)
{
    struct nrg_reduced *out = r->out;
    struct nrg_data *data = nrg_reducer_alloc(r, 1, sizeof *data);
    if (!data)
        return NULL;
    *data = (struct nrg_data){.name = name,
                              .kind = kind,
                              .type = type,
                              .storage = data,
                              .id = (uint32_t)out->n_data,
                              .producer = -1,
                              .last_use = -1};
    if (!nrg_append(&out->data, &out->n_data, &out->cap_data, &data, sizeof *out->data))
        return data;
    r->rc = -ENOMEM;
    return NULL;
}

struct nrg_arg *nrg_reducer_tensor(struct nrg_reducer *r, struct nrg_data *data,
                                   const struct nrg_type *type)
{
    struct nrg_arg *arg = nrg_reducer_arg(r, NRG_ARG_TENSOR, type);
    if (arg)
        arg->data = data;
    return arg;
}

struct nrg_arg *nrg_reducer_result(struct nrg_reducer *r, struct nrg_data *data,
                                   const struct nrg_type *type)
{
    const struct nrg_type *plain = nrg_type_plain(type);
    if (plain->kind == NRG_T_TENSOR || plain->kind == NRG_T_UNKNOWN)
        return nrg_reducer_tensor(r, data, type);
    struct nrg_arg *arg = nrg_reducer_arg(r, NRG_ARG_LIST, type);
    if (arg) {
        arg->data = data;
        arg->open = true;
    }
    return arg;
}

void nrg_reducer_set(struct nrg_call_frame *f, const struct nrg_value *value, struct nrg_arg *arg)
{
    if (value->id < f->graph->n_values)
        f->facts[value->id] = arg;
}

/* Initializers of ONNX are parameters, except the constants of shape arithmetic. */
static struct nrg_arg *initializer_arg(struct nrg_reducer *r, const struct nrg_value *value,
                                       const struct nrg_param *param)
{
    bool constant = param->is_buffer && nrg_type_plain(param->type)->rank <= 1 &&
                    (param->type->dtype == NRG_I64 || param->type->dtype == NRG_BOOL);
    struct nrg_data *data = constant ? nrg_reducer_data(r, NRG_DATA_CONST, value->name, value->type)
                                     : nrg_reducer_param(r, value->name, value->name, value->type);
    return data ? nrg_reducer_tensor(r, data, nrg_type_better(value->type, data->type)) : NULL;
}

struct nrg_arg *nrg_reducer_fact(struct nrg_reducer *r, struct nrg_call_frame *f,
                                 const struct nrg_value *value)
{
    if (value->id < f->graph->n_values && f->facts[value->id])
        return f->facts[value->id];
    /* Used before it is made (a cut paste): it comes from outside; or an initializer of ONNX. */
    struct nrg_arg *arg;
    const struct nrg_param *param = value->producer ? NULL : nrg_map_get(&r->told, value->name);
    if (value->type->kind == NRG_T_NONE) {
        arg = r->none;
    } else if (param && nrg_type_has_tensor(value->type)) {
        arg = initializer_arg(r, value, param);
    } else if (nrg_type_has_tensor(value->type)) {
        struct nrg_data *data = nrg_reducer_data(r, NRG_DATA_INPUT, value->name, value->type);
        arg = data ? nrg_reducer_result(r, data, value->type) : NULL;
    } else {
        arg = nrg_reducer_arg(r, NRG_ARG_UNKNOWN, value->type);
    }
    nrg_reducer_set(f, value, arg);
    return arg ? arg : r->none;
}

void nrg_reducer_warn(struct nrg_reducer *r, const char *fmt, ...)
{
    struct nrg_reduced *out = r->out;
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const char *copy = nrg_reducer_copy(r, text, strlen(text));
    if (copy && nrg_append(&out->warnings, &out->n_warnings, &out->cap_warnings, &copy,
                           sizeof *out->warnings))
        r->rc = -ENOMEM;
}

static void note_operator(struct nrg_reducer *r, struct nrg_dropped entry)
{
    struct nrg_reduced *out = r->out;
    if (nrg_append(&out->dropped, &out->n_dropped, &out->cap_dropped, &entry, sizeof entry))
        r->rc = -ENOMEM;
}

void nrg_reducer_drop(struct nrg_reducer *r, const struct nrg_op *op, enum nrg_drop_rule rule,
                      const struct nrg_data *data)
{
    note_operator(r, (struct nrg_dropped){.op = op, .rule = rule, .data = data, .kept = -1});
}

static size_t count_tensors(const struct nrg_arg *arg)
{
    size_t n = 0;
    if (arg->kind == NRG_ARG_TENSOR)
        return 1;
    if (arg->kind != NRG_ARG_LIST)
        return 0;
    for (size_t i = 0; i < arg->n_items; i++)
        n += count_tensors(arg->items[i]);
    return n + (arg->data != NULL);
}

static void list_tensors(const struct nrg_arg *arg, struct nrg_operator *op)
{
    if (arg->kind == NRG_ARG_LIST)
        for (size_t i = 0; i < arg->n_items; i++)
            list_tensors(arg->items[i], op);
    if ((arg->kind == NRG_ARG_TENSOR || arg->kind == NRG_ARG_LIST) && arg->data)
        op->inputs[op->n_inputs++] = arg->data;
}

bool nrg_reducer_carries_tensor(const struct nrg_value *value, const struct nrg_cost_rule *rule,
                                bool tensor_in)
{
    if (value->type->kind != NRG_T_UNKNOWN)
        return nrg_type_has_tensor(value->type);
    switch (rule->class) {
    case NRG_CLASS_MOVE:
        return true;
    case NRG_CLASS_COMPUTE:
    case NRG_CLASS_VIEW:
    case NRG_CLASS_NOOP:
        return tensor_in;
    default:
        return false;
    }
}

/* The module that a parameter belongs to, for graphs that print no scopes. */
static const char *module_of(struct nrg_reducer *r, const struct nrg_call_frame *f,
                             const struct nrg_op *op, struct nrg_arg *const *args)
{
    if (op->module)
        return op->module;
    for (size_t i = 0; i < op->n_inputs; i++) {
        const char *path = args[i]->kind == NRG_ARG_TENSOR && args[i]->data ? args[i]->data->path
                           : args[i]->kind == NRG_ARG_OBJECT                ? args[i]->path
                                                                            : NULL;
        const char *dot = path ? strrchr(path, '.') : NULL;
        if (!path)
            continue;
        return dot ? nrg_reducer_copy(r, path, (size_t)(dot - path)) : "";
    }
    return f->caller ? f->path : NULL;
}

static const char *id_of(struct nrg_reducer *r, const struct nrg_op *op)
{
    char text[32];
    if (op->n_outputs && op->outputs[0]->name)
        return op->outputs[0]->name;
    snprintf(text, sizeof text, "#%zu", r->out->n_operators);
    const char *copy = nrg_reducer_copy(r, text, strlen(text));
    return copy ? copy : "#";
}

static void make_outputs(struct nrg_reducer *r, struct nrg_call_frame *f, struct nrg_operator *made,
                         struct nrg_arg *const *args)
{
    const struct nrg_op *op = made->op;
    for (size_t i = 0; i < op->n_outputs && !r->rc; i++) {
        const struct nrg_value *value = op->outputs[i];
        struct nrg_arg *arg;
        if (!nrg_reducer_carries_tensor(value, made->rule, made->n_inputs > 0)) {
            nrg_reducer_set(f, value, nrg_reducer_arg(r, NRG_ARG_UNKNOWN, value->type));
            continue;
        }
        struct nrg_data *data = nrg_reducer_data(r, NRG_DATA_ACT, value->name, value->type);
        if (!data || !(arg = nrg_reducer_result(r, data, value->type)))
            return;
        data->producer = (int64_t)r->out->n_operators;
        if ((made->rule->flags & NRG_OP_IN_PLACE) && op->n_inputs &&
            args[0]->kind == NRG_ARG_TENSOR && !made->n_outputs) {
            data->storage = args[0]->data->storage;
            data->type = nrg_type_better(value->type, args[0]->type);
            arg->type = data->type;
        }
        made->outputs[made->n_outputs++] = data;
        nrg_reducer_set(f, value, arg);
    }
}

void nrg_reducer_keep(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                      const struct nrg_cost_rule *rule, struct nrg_arg **args)
{
    struct nrg_reduced *out = r->out;
    size_t n = 0;
    struct nrg_operator made = {.op = op,
                                .kind = op->kind,
                                .id = id_of(r, op),
                                .module = module_of(r, f, op, args),
                                .class =
                                    rule->class == NRG_CLASS_VIEW ? NRG_CLASS_MOVE : rule->class,
                                .rule = rule,
                                .args = args,
                                .n_args = nrg_reducer_n_args(op),
                                .region = r->region,
                                .times = 1};
    for (size_t i = 0; i < op->n_inputs; i++)
        n += count_tensors(args[i]);
    made.inputs = nrg_reducer_alloc(r, n + 1, sizeof(struct nrg_data *));
    made.outputs = nrg_reducer_alloc(r, op->n_outputs + 1, sizeof(struct nrg_data *));
    if (!made.inputs || !made.outputs)
        return;
    for (size_t i = 0; i < op->n_inputs; i++)
        list_tensors(args[i], &made);
    for (size_t i = 0; i < made.n_inputs; i++)
        made.inputs[i]->last_use = (int64_t)out->n_operators;
    make_outputs(r, f, &made, args);
    note_operator(
        r, (struct nrg_dropped){.op = op, .rule = NRG_KEPT, .kept = (int64_t)out->n_operators});
    if (nrg_append(&out->operators, &out->n_operators, &out->cap_operators, &made, sizeof made))
        r->rc = -ENOMEM;
}

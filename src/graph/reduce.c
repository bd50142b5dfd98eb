/*
 * The reduction: one walk over the main graph's operators in order, with a table of what each
 * value is (a fact). An operator is kept when a tensor goes in or comes out and it computes or
 * moves memory; everything else only changes the facts, and the rule that dropped it is written
 * down. Order of the questions, because each decides for the next:
 *   constant, attribute, container, control          by class
 *   no tensor in or out, shape arithmetic, property  by the values' types, not the kind's name:
 *                                                    aten::add of two ints is not an operator
 *   no-op, view                                      by the arguments, strides included
 * Calls and subgraphs are walked in the place of the call (reduce_control.c); their number is
 * bounded, because nested calls can grow without limit from a small file.
 */
#include "graph/reduce.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/reducer.h"

#define MAX_VISITED ((size_t)20 * 1000 * 1000)
#define BLANK_RANK  4

struct nrg_arg *nrg_reducer_arg(struct nrg_reducer *r, enum nrg_arg_kind kind,
                                const struct nrg_type *type)
{
    struct nrg_arg *arg = nrg_arena_alloc(&r->out->arena, sizeof *arg);
    if (!arg) {
        r->rc = -ENOMEM;
        return NULL;
    }
    arg->kind = kind;
    arg->type = type;
    return arg;
}

struct nrg_arg *nrg_reducer_int(struct nrg_reducer *r, int64_t number, const struct nrg_type *type)
{
    struct nrg_arg *arg = nrg_reducer_arg(r, NRG_ARG_CONST, type);
    struct nrg_attr *attr = nrg_arena_alloc(&r->out->arena, sizeof *attr);
    if (!arg || !attr) {
        r->rc = -ENOMEM;
        return NULL;
    }
    *attr = (struct nrg_attr){.name = "value", .kind = NRG_A_INT, .i = number};
    arg->constant = attr;
    return arg;
}

struct nrg_data *nrg_reducer_data(struct nrg_reducer *r, enum nrg_data_kind kind, const char *name,
                                  const struct nrg_type *type)
{
    struct nrg_reduced *out = r->out;
    struct nrg_data *data = nrg_arena_alloc(&out->arena, sizeof *data);
    if (!data || nrg_reserve(&out->data, &out->cap_data, out->n_data + 1, sizeof *out->data)) {
        r->rc = -ENOMEM;
        return NULL;
    }
    *data = (struct nrg_data){.name = name,
                              .kind = kind,
                              .type = type,
                              .storage = data,
                              .id = (uint32_t)out->n_data,
                              .producer = -1,
                              .last_use = -1};
    out->data[out->n_data++] = data;
    return data;
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

void nrg_reducer_set(struct nrg_frame *f, const struct nrg_value *value, struct nrg_arg *arg)
{
    if (value->id < f->graph->n_values)
        f->facts[value->id] = arg;
}

/* Constants of shape arithmetic are initializers too: those are no parameters. */
static struct nrg_arg *initializer(struct nrg_reducer *r, const struct nrg_value *value,
                                   const struct nrg_param *param)
{
    bool constant = param->is_buffer && nrg_type_plain(param->type)->rank <= 1 &&
                    (param->type->dtype == NRG_I64 || param->type->dtype == NRG_BOOL);
    struct nrg_data *data = constant ? nrg_reducer_data(r, NRG_DATA_CONST, value->name, value->type)
                                     : nrg_reducer_param(r, value->name, value->name, value->type);
    return data ? nrg_reducer_tensor(r, data, nrg_type_better(value->type, data->type)) : NULL;
}

struct nrg_arg *nrg_reducer_fact(struct nrg_reducer *r, struct nrg_frame *f,
                                 const struct nrg_value *value)
{
    if (value->id < f->graph->n_values && f->facts[value->id])
        return f->facts[value->id];
    /* Used before it is made (a cut paste): it comes from outside; or an initializer of ONNX. */
    struct nrg_arg *arg;
    const struct nrg_param *param =
        value->producer ? NULL : nrg_path_map_get(&r->told, value->name);
    if (value->type->kind == NRG_T_NONE) {
        arg = r->none;
    } else if (param && nrg_type_has_tensor(value->type)) {
        arg = initializer(r, value, param);
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
    char *copy = nrg_arena_copy(&out->arena, text, strlen(text));
    if (!copy ||
        nrg_reserve(&out->warnings, &out->cap_warnings, out->n_warnings + 1, sizeof *out->warnings))
        r->rc = -ENOMEM;
    else
        out->warnings[out->n_warnings++] = copy;
}

static void note(struct nrg_reducer *r, struct nrg_dropped entry)
{
    struct nrg_reduced *out = r->out;
    if (nrg_reserve(&out->dropped, &out->cap_dropped, out->n_dropped + 1, sizeof *out->dropped))
        r->rc = -ENOMEM;
    else
        out->dropped[out->n_dropped++] = entry;
}

void nrg_reducer_drop(struct nrg_reducer *r, const struct nrg_op *op, enum nrg_drop_rule rule,
                      const struct nrg_data *data)
{
    note(r, (struct nrg_dropped){.op = op, .rule = rule, .data = data, .kept = -1});
}

/* ---- parameters ---- */

/* Last part of "__torch__.torch.nn.modules.linear.___torch_mangle_3.Linear". */
static const char *short_class(const struct nrg_type *type)
{
    const char *dot = type->kind == NRG_T_CLASS && type->name ? strrchr(type->name, '.') : NULL;
    return dot ? dot + 1 : type->kind == NRG_T_CLASS && type->name ? type->name : "";
}

void nrg_reducer_saw_module(struct nrg_reducer *r, const char *path, const struct nrg_type *type,
                            bool called)
{
    struct nrg_reduced *out = r->out;
    size_t at = (size_t)(uintptr_t)nrg_path_map_get(&r->seen, path);
    if (!at) {
        if (nrg_reserve(&out->modules, &out->cap_modules, out->n_modules + 1,
                        sizeof *out->modules) ||
            nrg_path_map_set(&r->seen, path, (void *)(uintptr_t)(out->n_modules + 1))) {
            r->rc = -ENOMEM;
            return;
        }
        out->modules[out->n_modules++] = (struct nrg_seen_module){path, short_class(type), 0};
        at = out->n_modules;
    }
    out->modules[at - 1].calls += called;
}

/* The type that the parameters' file tells. */
static const struct nrg_type *told_type(struct nrg_reducer *r, const char *path,
                                        const struct nrg_type *type)
{
    const struct nrg_param *param = nrg_path_map_get(&r->told, path);
    return param ? nrg_type_better(type, param->type) : type;
}

/* Optional and not in the parameters' file: it is None there. */
static bool told_absent(struct nrg_reducer *r, const char *path, const struct nrg_type *type)
{
    return type->kind == NRG_T_OPTIONAL && r->told.n && !nrg_path_map_get(&r->told, path);
}

struct nrg_data *nrg_reducer_param(struct nrg_reducer *r, const char *path, const char *name,
                                   const struct nrg_type *type)
{
    struct nrg_data *data = nrg_path_map_get(&r->used, path);
    if (data) {
        data->type = nrg_type_better(data->type, type);
        return data;
    }
    data = nrg_reducer_data(r, NRG_DATA_PARAM, name, told_type(r, path, type));
    if (!data)
        return NULL;
    data->path = path;
    if (nrg_data_numel(data) < 0) {
        char *room =
            nrg_arena_alloc(&r->out->arena, sizeof(struct nrg_type) + BLANK_RANK * sizeof(int64_t));
        if (!room)
            r->rc = -ENOMEM;
        else
            data->blank = (struct nrg_type *)(void *)room;
    }
    if (nrg_path_map_set(&r->used, path, data))
        r->rc = -ENOMEM;
    return data;
}

static const char *join_path(struct nrg_reducer *r, const char *base, const char *name)
{
    char *path;
    size_t n = strlen(base), len = strlen(name);
    if (!n)
        return name;
    path = nrg_arena_alloc(&r->out->arena, n + len + 2);
    if (!path) {
        r->rc = -ENOMEM;
        return name;
    }
    memcpy(path, base, n);
    path[n] = '.';
    memcpy(path + n + 1, name, len + 1);
    return path;
}

static void visit_getattr(struct nrg_reducer *r, struct nrg_frame *f, const struct nrg_op *op,
                          struct nrg_arg **args)
{
    const struct nrg_attr *name = nrg_op_attr(op, "name");
    const struct nrg_value *value = op->n_outputs ? op->outputs[0] : NULL;
    const char *base = op->n_inputs && args[0]->path ? args[0]->path : "";
    struct nrg_data *data = NULL;
    struct nrg_arg *arg;
    if (!value)
        return;
    const char *path = join_path(r, base, name && name->s ? name->s : value->name);
    const struct nrg_type *plain = nrg_type_plain(value->type);
    if (op->n_inputs && args[0]->kind == NRG_ARG_OBJECT && !args[0]->path) {
        nrg_reducer_set(f, value, nrg_reduce_attribute(r, op, args[0]));
        nrg_reducer_drop(r, op, NRG_DROP_GETATTR, NULL);
        return;
    }
    if (told_absent(r, path, value->type)) {
        arg = r->none;
    } else if (plain->kind == NRG_T_TENSOR) {
        data = nrg_reducer_param(r, path, value->name, value->type);
        arg = data ? nrg_reducer_tensor(r, data, nrg_type_better(value->type, data->type)) : NULL;
    } else if (plain->kind == NRG_T_CLASS || plain->kind == NRG_T_UNKNOWN) {
        arg = nrg_reducer_arg(r, NRG_ARG_OBJECT, value->type);
        if (plain->kind == NRG_T_CLASS)
            nrg_reducer_saw_module(r, path, plain, false);
    } else {
        arg = nrg_reducer_arg(r, NRG_ARG_UNKNOWN, value->type);
    }
    if (arg && arg != r->none)
        arg->path = path;
    nrg_reducer_set(f, value, arg);
    nrg_reducer_drop(r, op, NRG_DROP_GETATTR, data);
}

/* Without printed types an attribute shows only by its use whether it is a tensor. */
static void settle_object(struct nrg_reducer *r, struct nrg_arg *arg)
{
    for (size_t i = 0; arg->kind == NRG_ARG_LIST && i < arg->n_items; i++)
        settle_object(r, arg->items[i]);
    if (arg->kind != NRG_ARG_OBJECT || arg->type->kind != NRG_T_UNKNOWN || !arg->path)
        return;
    const char *dot = strrchr(arg->path, '.');
    struct nrg_data *data = nrg_reducer_param(r, arg->path, dot ? dot + 1 : arg->path, arg->type);
    if (!data)
        return;
    arg->kind = NRG_ARG_TENSOR;
    arg->data = data;
    arg->type = data->type;
}

/* ---- operators that stay ---- */

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

static bool carries_tensor(const struct nrg_value *value, const struct nrg_cost_rule *rule,
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
static const char *module_of(struct nrg_reducer *r, const struct nrg_frame *f,
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
        const char *copy = dot ? nrg_arena_copy(&r->out->arena, path, (size_t)(dot - path)) : "";
        if (!copy)
            r->rc = -ENOMEM;
        return copy;
    }
    return f->caller ? f->path : NULL;
}

static const char *id_of(struct nrg_reducer *r, const struct nrg_op *op)
{
    char text[32];
    if (op->n_outputs && op->outputs[0]->name)
        return op->outputs[0]->name;
    snprintf(text, sizeof text, "#%zu", r->out->n_operators);
    const char *copy = nrg_arena_copy(&r->out->arena, text, strlen(text));
    if (!copy)
        r->rc = -ENOMEM;
    return copy ? copy : "#";
}

static void make_outputs(struct nrg_reducer *r, struct nrg_frame *f, struct nrg_operator *made,
                         struct nrg_arg *const *args)
{
    const struct nrg_op *op = made->op;
    for (size_t i = 0; i < op->n_outputs && !r->rc; i++) {
        const struct nrg_value *value = op->outputs[i];
        struct nrg_arg *arg;
        if (!carries_tensor(value, made->rule, made->n_inputs > 0)) {
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

void nrg_reducer_keep(struct nrg_reducer *r, struct nrg_frame *f, const struct nrg_op *op,
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
                                .n_args = op->n_inputs,
                                .region = r->region,
                                .times = 1};
    for (size_t i = 0; i < op->n_inputs; i++)
        n += count_tensors(args[i]);
    made.inputs = nrg_arena_array(&out->arena, n + 1, sizeof(struct nrg_data *));
    made.outputs = nrg_arena_array(&out->arena, op->n_outputs + 1, sizeof(struct nrg_data *));
    if (!made.inputs || !made.outputs ||
        nrg_reserve(&out->operators, &out->cap_operators, out->n_operators + 1,
                    sizeof *out->operators)) {
        r->rc = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < op->n_inputs; i++)
        list_tensors(args[i], &made);
    for (size_t i = 0; i < made.n_inputs; i++)
        made.inputs[i]->last_use = (int64_t)out->n_operators;
    make_outputs(r, f, &made, args);
    note(r, (struct nrg_dropped){.op = op, .rule = NRG_KEPT, .kept = (int64_t)out->n_operators});
    out->operators[out->n_operators++] = made;
}

/* ---- operators that go ---- */

static void drop_outputs(struct nrg_reducer *r, struct nrg_frame *f, const struct nrg_op *op,
                         struct nrg_arg **args, enum nrg_drop_rule rule)
{
    for (size_t i = 0; i < op->n_outputs; i++) {
        struct nrg_arg *arg = nrg_reduce_property(r, op, args, op->outputs[i]->type);
        if (arg && rule == NRG_DROP_SHAPE)
            arg->is_shape = true;
        nrg_reducer_set(f, op->outputs[i], arg);
    }
    nrg_reducer_drop(r, op, rule, NULL);
}

/* A transposed weight tells the weight's own shape. */
static void infer_from_view(const struct nrg_op *op, struct nrg_data *data)
{
    const struct nrg_type *type = nrg_type_plain(op->outputs[0]->type);
    if (!data->blank || data->type_inferred || nrg_type_numel(type) < 0 || type->rank != 2 ||
        (strcmp(op->kind, "aten::t") && strcmp(op->kind, "aten::transpose")))
        return;
    int64_t *dims = (int64_t *)(void *)(data->blank + 1);
    dims[0] = type->dims[1];
    dims[1] = type->dims[0];
    *data->blank = (struct nrg_type){
        .kind = NRG_T_TENSOR, .dtype = type->dtype, .rank = 2, .requires_grad = -1, .dims = dims};
    data->type = data->blank;
    data->type_inferred = true;
}

static void alias_outputs(struct nrg_reducer *r, struct nrg_frame *f, const struct nrg_op *op,
                          struct nrg_arg **args, enum nrg_drop_rule rule)
{
    struct nrg_arg *base = op->n_inputs ? args[0] : r->none;
    for (size_t i = 0; i < op->n_outputs; i++) {
        const struct nrg_value *value = op->outputs[i];
        struct nrg_arg *arg = base;
        if (base->kind == NRG_ARG_TENSOR) {
            const struct nrg_type *type =
                rule == NRG_DROP_NOOP ? nrg_type_better(value->type, base->type) : value->type;
            arg = nrg_reducer_result(r, base->data, type);
            if (arg)
                arg->is_view = base->is_view || rule == NRG_DROP_VIEW;
            if (arg && !i && rule == NRG_DROP_VIEW && !base->is_view)
                infer_from_view(op, base->data);
        }
        nrg_reducer_set(f, value, arg);
    }
    nrg_reducer_drop(r, op, rule, base->data);
}

/* Shape arithmetic: a shape goes in, and beside it only shapes and single constants. */
static bool is_shape_arithmetic(const struct nrg_op *op, struct nrg_arg *const *args)
{
    int max_rank = !strncmp(op->kind, "onnx::", 6);
    bool any = false;
    for (size_t i = 0; i < op->n_inputs; i++) {
        const struct nrg_arg *arg = args[i];
        const struct nrg_arg *const *items = (const struct nrg_arg *const *)&arg;
        size_t n = 1;
        if (arg->kind == NRG_ARG_LIST) {
            if (arg->data)
                return false;
            items = (const struct nrg_arg *const *)arg->items;
            n = arg->n_items;
        }
        for (size_t k = 0; k < n; k++) {
            any |= items[k]->is_shape;
            if (items[k]->kind == NRG_ARG_LIST ||
                (items[k]->kind == NRG_ARG_TENSOR &&
                 (items[k]->data->kind != NRG_DATA_CONST || nrg_arg_rank(items[k]) < 0 ||
                  nrg_arg_rank(items[k]) > max_rank)))
                return false;
        }
    }
    return any;
}

static void visit_general(struct nrg_reducer *r, struct nrg_frame *f, const struct nrg_op *op,
                          const struct nrg_cost_rule *rule, struct nrg_arg **args)
{
    bool in = false, out = false;
    for (size_t i = 0; i < op->n_inputs; i++) {
        if (rule->class != NRG_CLASS_ACCESS)
            nrg_reduce_settle(r, args[i]);
        in |= nrg_arg_has_tensor(args[i]);
    }
    for (size_t i = 0; i < op->n_outputs; i++)
        out |= nrg_reducer_carries_tensor(op->outputs[i], rule, in);
    if (rule->flags & NRG_OP_SHAPE_SOURCE)
        drop_outputs(r, f, op, args, NRG_DROP_SHAPE);
    else if (!in && !out)
        drop_outputs(r, f, op, args, NRG_DROP_NO_TENSOR);
    else if (out && is_shape_arithmetic(op, args))
        drop_outputs(r, f, op, args, NRG_DROP_SHAPE);
    else if (!out || rule->class == NRG_CLASS_ACCESS)
        drop_outputs(r, f, op, args, NRG_DROP_PROPERTY);
    else if (rule->class == NRG_CLASS_NOOP || nrg_reduce_is_noop(op, rule, args))
        alias_outputs(r, f, op, args, NRG_DROP_NOOP);
    else if (rule->class == NRG_CLASS_VIEW && op->n_inputs && nrg_arg_has_tensor(args[0]) &&
             (!(rule->flags & NRG_OP_MAYBE_VIEW) ||
              nrg_reduce_viewable(args[0]->type, op->outputs[0]->type)))
        alias_outputs(r, f, op, args, NRG_DROP_VIEW);
    else
        nrg_reducer_keep(r, f, op, rule, args);
}

static void visit(struct nrg_reducer *r, struct nrg_frame *f, const struct nrg_op *op)
{
    struct nrg_cost_rule scratch;
    const struct nrg_cost_rule *rule = nrg_cost_rule_find(op->kind, &scratch);
    struct nrg_arg **args = nrg_arena_array(&r->out->arena, op->n_inputs + 1, sizeof *args);
    if (rule == &scratch) {
        struct nrg_cost_rule *copy = nrg_arena_alloc(&r->out->arena, sizeof *copy);
        if (copy)
            *copy = scratch;
        rule = copy;
    }
    if (!args || !rule) {
        r->rc = -ENOMEM;
        return;
    }
    if (++r->visited > MAX_VISITED) {
        r->rc = -E2BIG;
        return;
    }
    for (size_t i = 0; i < op->n_inputs; i++)
        args[i] = nrg_reducer_fact(r, f, op->inputs[i]);
    if (rule->flags & NRG_OP_GETS_PARAM)
        nrg_reduce_getattr(r, f, op, args);
    else if (rule->class == NRG_CLASS_CONSTANT)
        nrg_reduce_constant(r, f, op);
    else if (rule->class == NRG_CLASS_CONTAINER)
        nrg_reduce_container(r, f, op, args);
    else if (rule->class == NRG_CLASS_CONTROL || op->n_blocks)
        nrg_reduce_control(r, f, op, rule, args);
    else
        visit_general(r, f, op, rule, args);
}

void nrg_reducer_block(struct nrg_reducer *r, struct nrg_frame *f, const struct nrg_block *block)
{
    for (size_t i = 0; i < block->n_ops && !r->rc; i++)
        visit(r, f, block->ops[i]);
}

/* ---- the whole ---- */

static const char *stripped(const char *name)
{
    return !strncmp(name, "self.", 5) ? name + 5 : name;
}

/* Inputs of the main graph: the module itself, parameters that a reader lists, data. */
static void bind_inputs(struct nrg_reducer *r, struct nrg_frame *f)
{
    const struct nrg_block *body = f->graph->body;
    for (size_t i = 0; i < body->n_inputs && !r->rc; i++) {
        const struct nrg_value *value = body->inputs[i];
        const struct nrg_type *plain = nrg_type_plain(value->type);
        bool module = plain->kind == NRG_T_CLASS || (plain->kind == NRG_T_UNKNOWN && !i);
        struct nrg_arg *arg;
        struct nrg_data *data;
        if (module) {
            arg = nrg_reducer_arg(r, NRG_ARG_OBJECT, value->type);
            if (arg)
                arg->path = "";
            if (arg && plain->kind == NRG_T_CLASS)
                nrg_reducer_saw_module(r, "", plain, false);
        } else if (nrg_path_map_get(&r->told, stripped(value->name))) {
            data = nrg_reducer_param(r, stripped(value->name), value->name, value->type);
            arg = data ? nrg_reducer_tensor(r, data, data->type) : NULL;
        } else if (nrg_type_has_tensor(value->type) || plain->kind == NRG_T_UNKNOWN) {
            data = nrg_reducer_data(r, NRG_DATA_INPUT, value->name, value->type);
            arg = data ? nrg_reducer_result(r, data, value->type) : NULL;
            if (data)
                r->out->inputs[r->out->n_inputs++] = data;
        } else {
            arg = nrg_reducer_arg(r, NRG_ARG_UNKNOWN, value->type);
        }
        nrg_reducer_set(f, value, arg);
    }
}

static void mark_outputs(struct nrg_reducer *r, const struct nrg_arg *arg)
{
    struct nrg_reduced *out = r->out;
    for (size_t i = 0; arg->kind == NRG_ARG_LIST && i < arg->n_items; i++)
        mark_outputs(r, arg->items[i]);
    if ((arg->kind != NRG_ARG_TENSOR && arg->kind != NRG_ARG_LIST) || !arg->data)
        return;
    arg->data->last_use = INT64_MAX;
    if (nrg_reserve(&out->outputs, &out->cap_outputs, out->n_outputs + 1, sizeof *out->outputs))
        r->rc = -ENOMEM;
    else
        out->outputs[out->n_outputs++] = arg->data;
}

static void reduce_graph(struct nrg_reducer *r, const struct nrg_graph *graph)
{
    struct nrg_reduced *out = r->out;
    struct nrg_frame f = {.graph = graph, .path = ""};
    f.facts = nrg_arena_array(&out->arena, graph->n_values + 1, sizeof *f.facts);
    out->inputs = nrg_arena_array(&out->arena, graph->body->n_inputs + 1, sizeof *out->inputs);
    r->none = nrg_reducer_arg(r, NRG_ARG_NONE, &nrg_type_unknown);
    if (!f.facts || !out->inputs || !r->none ||
        nrg_reserve(&out->regions, &out->cap_regions, 1, sizeof *out->regions)) {
        r->rc = -ENOMEM;
        return;
    }
    out->regions[out->n_regions++] = (struct nrg_region){.kind = NRG_REGION_ROOT, .chosen = 1};
    bind_inputs(r, &f);
    nrg_reducer_block(r, &f, graph->body);
    for (size_t i = 0; i < graph->body->n_outputs && !r->rc; i++)
        mark_outputs(r, nrg_reducer_fact(r, &f, graph->body->outputs[i]));
}

static int index_params(struct nrg_path_map *told, const struct nrg_model *model)
{
    for (size_t i = 0; model && i < model->n_params; i++)
        if (nrg_path_map_set(told, model->params[i].name, &model->params[i]))
            return -ENOMEM;
    return 0;
}

int nrg_reduce(const struct nrg_model *model, const struct nrg_model *params,
               struct nrg_reduced *out, struct nrg_error *err)
{
    *out = (struct nrg_reduced){.model = model};
    if (!model->n_graphs)
        return nrg_fail(err, -ENODATA, NULL, "the file has parameters but no graph");
    struct nrg_reducer r = {.out = out, .model = model, .params = params};
    r.rc = index_params(&r.told, model);
    if (!r.rc)
        r.rc = index_params(&r.told, params);
    if (!r.rc)
        reduce_graph(&r, model->graphs[0]);
    nrg_path_map_release(&r.told);
    nrg_path_map_release(&r.used);
    nrg_path_map_release(&r.seen);
    if (!r.rc)
        return 0;
    nrg_reduced_release(out);
    return r.rc == -E2BIG ? nrg_fail(err, r.rc, NULL, "its calls expand to more than %zu operators",
                                     MAX_VISITED)
                          : nrg_fail(err, r.rc, NULL, "out of memory while reducing the graph");
}

void nrg_reduced_release(struct nrg_reduced *reduced)
{
    free(reduced->data);
    free(reduced->operators);
    free(reduced->regions);
    free(reduced->dropped);
    free(reduced->outputs);
    free(reduced->modules);
    free(reduced->warnings);
    nrg_arena_release(&reduced->arena);
    *reduced = (struct nrg_reduced){0};
}

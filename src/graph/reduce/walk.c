/*
 * The reduction: one walk over the main graph's operators in order, with a table of what each
 * value is (a fact). An operator is kept when a tensor goes in or comes out and it computes or
 * moves memory; everything else only changes the facts, and the rule that dropped it is recorded.
 * The questions are asked in this order, because each depends on the ones before:
 *   constant, attribute, container, control          by class
 *   no tensor in or out, shape arithmetic, property  by the values' types, not the kind's name:
 *                                                    aten::add of two ints is not an operator
 *   no-op, view                                      by the arguments, strides included
 * Calls and subgraphs are walked in the place of the call (reduce/control.c); their number is
 * bounded, because nested calls can grow without limit from a small file.
 */
#include "graph/reduce.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/reduce/internal.h"

#define MAX_VISITED ((size_t)5 * 1000 * 1000)
#define MAX_DEPTH   2000
/* Memory that the result may take: ten times what any real graph needs. */
#define ARENA_BASE   ((size_t)64 * 1024 * 1024)
#define ARENA_PER_OP ((size_t)8192)

static void drop_outputs(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
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

/* The shape of a transposed weight gives the weight's own. */
static void infer_from_view(const struct nrg_op *op, struct nrg_data *data)
{
    const struct nrg_type *type = nrg_type_plain(op->outputs[0]->type);
    if (!data->blank || data->type_inferred || nrg_type_numel(type) < 0 || type->rank != 2 ||
        (strcmp(op->kind, "aten::t") && strcmp(op->kind, "aten::transpose")))
        return;
    nrg_data_infer(data, type->dtype, 2, (const int64_t[]){type->dims[1], type->dims[0]});
}

static void alias_outputs(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
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

static void visit_general(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
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

size_t nrg_reducer_n_args(const struct nrg_op *op)
{
    return op->n_inputs + (strncmp(op->kind, "aten::", 6) ? 0 : op->n_attrs);
}

static struct nrg_arg *attribute_arg(struct nrg_reducer *r, const struct nrg_attr *attr)
{
    struct nrg_arg *arg = nrg_reducer_arg(r, NRG_ARG_CONST, &nrg_type_unknown);
    if (arg)
        arg->constant = attr;
    return arg;
}

static void visit_operator(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op)
{
    struct nrg_cost_rule scratch;
    const struct nrg_cost_rule *rule = nrg_cost_rule_find(op->kind, &scratch);
    size_t n_args = nrg_reducer_n_args(op);
    struct nrg_arg **args = nrg_reducer_alloc(r, n_args + 1, sizeof *args);
    if (rule == &scratch) {
        struct nrg_cost_rule *copy = nrg_reducer_alloc(r, 1, sizeof *copy);
        if (copy)
            *copy = scratch;
        rule = copy;
    }
    if (!r->rc && ++r->visited > MAX_VISITED)
        r->rc = -E2BIG;
    if (r->rc)
        return;
    for (size_t i = 0; i < op->n_inputs; i++)
        args[i] = nrg_reducer_fact(r, f, op->inputs[i]);
    for (size_t i = op->n_inputs; i < n_args && !r->rc; i++)
        args[i] = attribute_arg(r, &op->attrs[i - op->n_inputs]);
    if (r->rc)
        return;
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

void nrg_reducer_block(struct nrg_reducer *r, struct nrg_call_frame *f,
                       const struct nrg_block *block)
{
    if (r->depth >= MAX_DEPTH) {
        r->rc = -E2BIG;
        return;
    }
    r->depth++;
    for (size_t i = 0; i < block->n_ops && !r->rc; i++)
        visit_operator(r, f, block->ops[i]);
    r->depth--;
}

/* ---- the whole ---- */

static const char *without_self(const char *name)
{
    return !strncmp(name, "self.", 5) ? name + 5 : name;
}

/* Inputs of the main graph: the module itself, parameters that a reader lists, data. */
static void bind_inputs(struct nrg_reducer *r, struct nrg_call_frame *f)
{
    const struct nrg_block *body = f->graph->body;
    const char **weights = nrg_reduce_weights(r, f->graph);
    for (size_t i = 0; i < body->n_inputs && !r->rc; i++) {
        const struct nrg_value *value = body->inputs[i];
        const char *path =
            weights && weights[value->id] ? weights[value->id] : without_self(value->name);
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
        } else if ((weights && weights[value->id]) || nrg_map_get(&r->told, path)) {
            data = nrg_reducer_param(r, path, value->name, value->type);
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

/* `name` is the returned value's own; members of a tuple have only their data's. */
static void mark_outputs(struct nrg_reducer *r, const struct nrg_arg *arg, const char *name)
{
    struct nrg_reduced *out = r->out;
    for (size_t i = 0; arg->kind == NRG_ARG_LIST && i < arg->n_items; i++)
        mark_outputs(r, arg->items[i], NULL);
    bool data = (arg->kind == NRG_ARG_TENSOR || arg->kind == NRG_ARG_LIST) && arg->data;
    bool shape = name && arg->is_shape && nrg_type_has_tensor(arg->type);
    if (!data && !shape)
        return;
    bool single = arg->kind != NRG_ARG_LIST;
    struct nrg_output output = {.name = single && name ? name : arg->data->name,
                                .type = single ? nrg_arg_type(arg) : arg->data->type,
                                .data = data ? arg->data : NULL};
    if (data)
        arg->data->last_use = INT64_MAX;
    if (nrg_append(&out->outputs, &out->n_outputs, &out->cap_outputs, &output, sizeof output))
        r->rc = -ENOMEM;
}

static void reduce_graph(struct nrg_reducer *r, const struct nrg_graph *graph)
{
    struct nrg_reduced *out = r->out;
    struct nrg_call_frame f = {.graph = graph, .path = ""};
    struct nrg_region root = {.kind = NRG_REGION_ROOT, .chosen = 1};
    f.facts = nrg_reducer_alloc(r, graph->n_values + 1, sizeof *f.facts);
    out->inputs = nrg_reducer_alloc(r, graph->body->n_inputs + 1, sizeof *out->inputs);
    r->none = nrg_reducer_arg(r, NRG_ARG_NONE, &nrg_type_unknown);
    if (nrg_append(&out->regions, &out->n_regions, &out->cap_regions, &root, sizeof root))
        r->rc = -ENOMEM;
    if (r->rc)
        return;
    bind_inputs(r, &f);
    nrg_reducer_block(r, &f, graph->body);
    for (size_t i = 0; i < graph->body->n_outputs && !r->rc; i++)
        mark_outputs(r, nrg_reducer_fact(r, &f, graph->body->outputs[i]),
                     graph->body->outputs[i]->name);
}

static const char *name_of(const struct nrg_graph *graph)
{
    return graph->name ? graph->name : "";
}

/* A dump of submodules names its graphs, and some of them are called; a log has many of one model.
 */
static bool is_left_out(const struct nrg_reducer *r, size_t i, bool calls)
{
    const char *name = name_of(r->model->graphs[i]);
    return i && !r->called[i] && !strstr(name, "::") && (!calls || !*name);
}

static void warn_of_others(struct nrg_reducer *r)
{
    char list[200] = "";
    size_t n = 0, len = 0;
    bool calls = false;
    for (size_t i = 1; i < r->model->n_graphs; i++)
        calls |= r->called[i] && !strstr(name_of(r->model->graphs[i]), "::");
    for (size_t i = 1; i < r->model->n_graphs; i++) {
        const struct nrg_graph *g = r->model->graphs[i];
        if (!is_left_out(r, i, calls))
            continue;
        n++;
        if (len < sizeof list - 80)
            len += (size_t)(*name_of(g) ? snprintf(list + len, sizeof list - len, "%s'%.40s'",
                                                   len ? ", " : "", name_of(g))
                                        : snprintf(list + len, sizeof list - len, "%sline %u",
                                                   len ? ", " : "", g->line));
        else if (list[len - 1] != '.')
            len += (size_t)snprintf(list + len, sizeof list - len, ", ...");
    }
    if (n)
        nrg_reducer_warn(r, "only the first graph is counted, not the other %zu: %s", n, list);
}

static int index_params(struct nrg_map *told, const struct nrg_model *model)
{
    for (size_t i = 0; model && i < model->n_params; i++)
        if (nrg_map_set(told, model->params[i].name, &model->params[i]))
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
    if (index_params(&r.told, model) || index_params(&r.told, params))
        r.rc = -ENOMEM;
    out->arena.limit = ARENA_BASE;
    for (size_t i = 0; i < model->n_graphs; i++)
        out->arena.limit += (model->graphs[i]->n_ops + model->graphs[i]->n_values) * ARENA_PER_OP;
    r.called = nrg_reducer_alloc(&r, model->n_graphs + 1, sizeof *r.called);
    if (!r.rc)
        reduce_graph(&r, model->graphs[0]);
    if (!r.rc)
        warn_of_others(&r);
    /* A limit this large is reached by nested calls only, not by the graph itself. */
    if (r.rc == -ENOMEM && out->arena.used > out->arena.limit / 10 * 9)
        r.rc = -E2BIG;
    nrg_map_release(&r.told);
    nrg_map_release(&r.used);
    nrg_map_release(&r.seen);
    if (!r.rc)
        return 0;
    nrg_reduced_release(out);
    return r.rc == -E2BIG ? nrg_fail(err, r.rc, NULL, "its calls or blocks expand too far to count")
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

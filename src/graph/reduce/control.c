/*
 * Control flow. Branches and bodies become regions of the flat list of operators; their results
 * become joins (phi). A branch is known to be taken when its condition is a constant, and known
 * not to be when it raises an exception; otherwise the one that costs most counts.
 *
 * Calls are replaced by the callee's operators: subgraphs of fused groups, forks, and
 * prim::CallMethod when the file (or the parameter file) also has the callee's graph, found by
 * the class of its first input. Optimised graphs keep a fallback for other shapes: it is the same
 * work again and is not walked. A callee that is missing is an operator of unknown cost, with
 * advice to print the inlined graph.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/reduce/internal.h"

#define MAX_CALL_DEPTH    200
#define MAX_CALL_WARNINGS 3

static uint32_t add_region(struct nrg_reducer *r, struct nrg_region region)
{
    struct nrg_reduced *out = r->out;
    region.parent = r->region;
    if (!nrg_append(&out->regions, &out->n_regions, &out->cap_regions, &region, sizeof region))
        return (uint32_t)out->n_regions - 1;
    r->rc = -ENOMEM;
    return 0;
}

static bool has_kind(const struct nrg_block *block, const char *kind)
{
    for (size_t i = 0; i < block->n_ops; i++)
        if (!strcmp(block->ops[i]->kind, kind))
            return true;
    return false;
}

/* Optimised graphs guard a group by a type check and keep the plain operators in the else. */
static bool is_guard(const struct nrg_op *op)
{
    const struct nrg_op *cond = op->n_inputs ? op->inputs[0]->producer : NULL;
    if (op->n_blocks != 2 || !cond)
        return false;
    return !strcmp(cond->kind, "prim::RequiresGradCheck") ||
           !strncmp(cond->kind, "prim::TypeCheck", 15) ||
           !strcmp(cond->kind, "prim::CudaFusionGuard") ||
           !strcmp(cond->kind, "prim::oneDNNFusionGuard");
}

static void drop_block(struct nrg_reducer *r, const struct nrg_block *block)
{
    for (size_t i = 0; i < block->n_ops && !r->rc; i++) {
        nrg_reducer_drop(r, block->ops[i], NRG_DROP_FALLBACK, NULL);
        for (size_t b = 0; b < block->ops[i]->n_blocks; b++)
            drop_block(r, block->ops[i]->blocks[b]);
    }
}

/* A result of control flow: a new tensor that is one of several. */
static struct nrg_arg *join_arg(struct nrg_reducer *r, const struct nrg_value *value,
                                const struct nrg_arg *from)
{
    bool tensor = value->type->kind == NRG_T_UNKNOWN ? from && nrg_arg_has_tensor(from)
                                                     : nrg_type_has_tensor(value->type);
    if (!tensor)
        return nrg_reducer_arg(r, NRG_ARG_UNKNOWN, value->type);
    const struct nrg_type *type = from && from->kind == NRG_ARG_TENSOR
                                      ? nrg_type_better(value->type, from->type)
                                      : value->type;
    struct nrg_data *data = nrg_reducer_data(r, NRG_DATA_PHI, value->name, type);
    return data ? nrg_reducer_result(r, data, type) : NULL;
}

static void use_in_join(const struct nrg_reducer *r, struct nrg_arg *arg)
{
    if (arg->kind == NRG_ARG_TENSOR && arg->data->last_use < (int64_t)r->out->n_operators)
        arg->data->last_use = (int64_t)r->out->n_operators;
}

static void visit_guarded(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op)
{
    const struct nrg_block *fast = op->blocks[0];
    nrg_reducer_drop(r, op, NRG_DROP_CONTROL, NULL);
    nrg_reducer_block(r, f, fast);
    drop_block(r, op->blocks[1]);
    for (size_t i = 0; i < op->n_outputs && !r->rc; i++)
        nrg_reducer_set(f, op->outputs[i],
                        i < fast->n_outputs ? nrg_reducer_fact(r, f, fast->outputs[i]) : r->none);
}

static int chosen_branch(const struct nrg_op *op, struct nrg_arg *const *args, size_t b)
{
    int64_t cond;
    const struct nrg_attr *known = nrg_op_attr(op, "condition"); /* the ONNX reader knew it */
    if (op->n_blocks == 2 && known && known->kind == NRG_A_INT)
        return (known->i ? 0 : 1) == (int)b;
    if (op->n_inputs && nrg_arg_int(args[0], &cond) && op->n_blocks == 2)
        return (cond ? 0 : 1) == (int)b;
    if (has_kind(op->blocks[b], "prim::RaiseException"))
        return 0;
    return -1;
}

static void visit_if(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                     struct nrg_arg **args)
{
    uint32_t outer = r->region;
    struct nrg_arg **from = nrg_reducer_alloc(r, op->n_outputs + 1, sizeof *from);
    if (!from)
        return;
    nrg_reducer_drop(r, op, NRG_DROP_CONTROL, NULL);
    uint32_t whole = add_region(r, (struct nrg_region){.kind = NRG_REGION_IF, .op = op});
    for (size_t b = 0; b < op->n_blocks && !r->rc; b++) {
        int chosen = chosen_branch(op, args, b);
        const struct nrg_block *block = op->blocks[b];
        r->region = whole;
        r->region = add_region(
            r, (struct nrg_region){.kind = NRG_REGION_BRANCH, .chosen = chosen, .op = op});
        nrg_reducer_block(r, f, block);
        for (size_t i = 0; i < op->n_outputs && i < block->n_outputs && !r->rc; i++) {
            struct nrg_arg *arg = nrg_reducer_fact(r, f, block->outputs[i]);
            use_in_join(r, arg);
            if (!from[i] || chosen > 0)
                from[i] = arg;
        }
    }
    r->region = outer;
    for (size_t i = 0; i < op->n_outputs && !r->rc; i++)
        nrg_reducer_set(f, op->outputs[i], join_arg(r, op->outputs[i], from[i]));
}

static int64_t trips_of(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                        struct nrg_arg *const *args)
{
    int64_t most, go, again;
    const struct nrg_block *body = op->blocks[0];
    const struct nrg_attr *known = nrg_op_attr(op, "trip_count"); /* the ONNX reader knew it */
    if (known && known->kind == NRG_A_INT)
        return known->i;
    if (op->n_inputs < 2 || !body->n_outputs || !nrg_arg_int(args[0], &most) ||
        !nrg_arg_int(args[1], &go) || most < 0)
        return NRG_COST_UNKNOWN;
    if (!go)
        return 0;
    /* The condition for the next round is known before the walk only when it is a constant. */
    const struct nrg_op *next = body->outputs[0]->producer;
    const struct nrg_attr *value =
        next && !strcmp(next->kind, "prim::Constant") ? nrg_op_attr(next, "value") : NULL;
    again = value && (value->kind == NRG_A_INT || value->kind == NRG_A_BOOL) ? value->i : 0;
    return again && most < INT64_MAX ? most : NRG_COST_UNKNOWN;
}

/*
 * Which argument an input of the body starts from. prim::Loop has trips and condition before the
 * state, its body only the number of the round; the body of onnx::Loop has the condition too, that
 * of onnx::Scan begins with the state.
 */
static size_t fed_by(const struct nrg_op *op, size_t input)
{
    if (!strcmp(op->kind, "onnx::Scan"))
        return input;
    if (!input)
        return SIZE_MAX;
    return strcmp(op->kind, "onnx::Loop") ? input + 1 : input;
}

static void visit_loop(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                       struct nrg_arg **args)
{
    uint32_t outer = r->region;
    const struct nrg_block *body = op->blocks[0];
    size_t ahead = strcmp(op->kind, "onnx::Scan") ? 1 : 0; /* the condition comes first */
    nrg_reducer_drop(r, op, NRG_DROP_CONTROL, NULL);
    r->region = add_region(
        r, (struct nrg_region){
               .kind = NRG_REGION_LOOP, .trips = trips_of(r, f, op, args), .chosen = 1, .op = op});
    for (size_t i = 0; i < body->n_inputs && !r->rc; i++) {
        const struct nrg_value *value = body->inputs[i];
        size_t at = fed_by(op, i);
        struct nrg_arg *from = at < op->n_inputs ? args[at] : NULL;
        bool by_reference = from && (from->kind == NRG_ARG_LIST || from->kind == NRG_ARG_OBJECT);
        nrg_reducer_set(f, value, by_reference ? from : join_arg(r, value, from));
    }
    nrg_reducer_block(r, f, body);
    r->region = outer;
    for (size_t i = 0; i < op->n_outputs && !r->rc; i++) {
        struct nrg_arg *from =
            i + ahead < body->n_outputs ? nrg_reducer_fact(r, f, body->outputs[i + ahead]) : NULL;
        if (from)
            use_in_join(r, from);
        nrg_reducer_set(f, op->outputs[i], join_arg(r, op->outputs[i], from));
    }
}

/* ---- calls ---- */

static const struct nrg_graph *by_class(const struct nrg_model *model, const char *class_name,
                                        const char *path)
{
    const struct nrg_graph *found = NULL;
    for (size_t i = 0; model && i < model->n_graphs; i++) {
        const struct nrg_graph *g = model->graphs[i];
        if (!g->body->n_inputs || g->body->inputs[0]->type->kind != NRG_T_CLASS ||
            !g->body->inputs[0]->type->name ||
            strcmp(g->body->inputs[0]->type->name, class_name) != 0)
            continue;
        if (g->name && !strcmp(g->name, path))
            return g;
        if (!found)
            found = g;
    }
    return found;
}

static const struct nrg_graph *by_name(const struct nrg_model *model, const char *name)
{
    for (size_t i = 1; model && name && i < model->n_graphs; i++)
        if (model->graphs[i]->name && !strcmp(model->graphs[i]->name, name))
            return model->graphs[i];
    return NULL;
}

static const struct nrg_graph *callee_of(struct nrg_reducer *r, const struct nrg_op *op,
                                         struct nrg_arg *const *args)
{
    for (size_t i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].kind == NRG_A_GRAPH && op->attrs[i].graph)
            return op->attrs[i].graph;
    if (strcmp(op->kind, "prim::CallMethod") != 0) {
        const struct nrg_graph *g = by_name(r->model, op->label);
        return g ? g : by_name(r->model, op->kind);
    }
    const struct nrg_attr *name = nrg_op_attr(op, "name");
    if (!op->n_inputs || args[0]->kind != NRG_ARG_OBJECT || !name || !name->s ||
        strcmp(name->s, "forward") != 0)
        return NULL;
    const char *class_name = args[0]->type->kind == NRG_T_CLASS ? args[0]->type->name : NULL;
    const struct nrg_graph *g = class_name ? by_class(r->model, class_name, args[0]->path)
                                           : by_name(r->model, args[0]->path);
    return g || !class_name ? g : by_class(r->params, class_name, args[0]->path);
}

/* Shapes may be known only inside the callee, or only at the call. */
static void visit_callee(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                         struct nrg_arg **args, const struct nrg_graph *callee)
{
    struct nrg_call_frame inner = {
        .graph = callee, .path = f->path, .caller = f, .depth = f->depth + 1};
    const struct nrg_block *body = callee->body;
    if (op->n_inputs && args[0]->kind == NRG_ARG_OBJECT && args[0]->path) {
        inner.path = args[0]->path;
        nrg_reducer_saw_module(r, args[0]->path, nrg_type_plain(args[0]->type), true);
    }
    nrg_reducer_drop(r, op, NRG_DROP_CALL, NULL);
    inner.facts = calloc(callee->n_values + 1, sizeof *inner.facts);
    if (!inner.facts) {
        r->rc = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < body->n_inputs && i < op->n_inputs; i++)
        nrg_reducer_set(&inner, body->inputs[i],
                        nrg_reducer_typed(r, args[i], body->inputs[i]->type));
    nrg_reducer_block(r, &inner, body);
    for (size_t i = 0; i < op->n_outputs && !r->rc; i++)
        nrg_reducer_set(f, op->outputs[i],
                        i < body->n_outputs
                            ? nrg_reducer_typed(r, nrg_reducer_fact(r, &inner, body->outputs[i]),
                                                op->outputs[i]->type)
                            : r->none);
    free(inner.facts);
}

static void visit_unknown_call(struct nrg_reducer *r, struct nrg_call_frame *f,
                               const struct nrg_op *op, struct nrg_arg **args)
{
    static const struct nrg_cost_rule rule = {.kind = "prim::CallMethod",
                                              .class = NRG_CLASS_COMPUTE,
                                              .flags = NRG_OP_OPAQUE,
                                              .code = "O"};
    bool tensor = false;
    for (size_t i = 0; i < op->n_outputs; i++)
        tensor |= nrg_type_has_tensor(op->outputs[i]->type) ||
                  op->outputs[i]->type->kind == NRG_T_UNKNOWN;
    if (tensor && r->call_warnings++ < MAX_CALL_WARNINGS)
        nrg_reducer_warn(r,
                         "%%%s: %s of '%s' is not in this file, its cost is unknown: print "
                         "inlined_graph instead of graph, or add the submodules' graphs",
                         op->n_outputs ? op->outputs[0]->name : "?", op->kind,
                         op->n_inputs && args[0]->path ? args[0]->path : "?");
    nrg_reducer_keep(r, f, op, &rule, args);
}

void nrg_reduce_control(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                        const struct nrg_cost_rule *rule, struct nrg_arg **args)
{
    const struct nrg_graph *callee;
    if (op->n_blocks && is_guard(op)) {
        visit_guarded(r, f, op);
    } else if (op->n_blocks &&
               (!strcmp(op->kind, "prim::Loop") || !strcmp(op->kind, "onnx::Loop") ||
                !strcmp(op->kind, "onnx::Scan"))) {
        visit_loop(r, f, op, args);
    } else if (op->n_blocks) {
        visit_if(r, f, op, args);
    } else if (!op->n_outputs || !strcmp(op->kind, "prim::Print") ||
               !strcmp(op->kind, "prim::RaiseException")) {
        nrg_reducer_drop(r, op, NRG_DROP_CONTROL, NULL);
    } else if (f->depth < MAX_CALL_DEPTH && (callee = callee_of(r, op, args))) {
        visit_callee(r, f, op, args, callee);
    } else if (rule->class == NRG_CLASS_CONTROL) {
        visit_unknown_call(r, f, op, args);
    }
}

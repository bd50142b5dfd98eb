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

/* What two tensors that may stand in one place have in common; NULL: nothing is known of one. */
static const struct nrg_type *common_type(struct nrg_reducer *r, const struct nrg_arg *a,
                                          const struct nrg_arg *b)
{
    if (a->kind != NRG_ARG_TENSOR || b->kind != NRG_ARG_TENSOR)
        return NULL;
    const struct nrg_type *one = nrg_arg_type(a), *two = nrg_arg_type(b);
    if (one == two)
        return one;
    if (one->kind != NRG_T_TENSOR || two->kind != NRG_T_TENSOR)
        return NULL;
    bool known =
        one->rank >= 0 && one->rank == two->rank && (!one->rank || (one->dims && two->dims));
    int64_t *dims = known ? nrg_reducer_alloc(r, (size_t)one->rank + 1, sizeof *dims) : NULL;
    for (int i = 0; dims && i < one->rank; i++)
        dims[i] = one->dims[i] == two->dims[i] ? one->dims[i] : NRG_DIM_UNKNOWN;
    const struct nrg_type *type =
        nrg_type_tensor(&r->out->arena, one->dtype == two->dtype ? one->dtype : NRG_DTYPE_UNKNOWN,
                        dims ? one->rank : -1, dims);
    if (!type)
        r->rc = -ENOMEM;
    return type;
}

/* A result of control flow: a new tensor that is one of several, of what `type` (or NULL) says. */
static struct nrg_arg *join_arg(struct nrg_reducer *r, const struct nrg_value *value,
                                const struct nrg_arg *from, const struct nrg_type *type)
{
    bool tensor = value->type->kind == NRG_T_UNKNOWN ? from && nrg_arg_has_tensor(from)
                                                     : nrg_type_has_tensor(value->type);
    if (!tensor)
        return nrg_reducer_arg(r, NRG_ARG_UNKNOWN, value->type);
    type = type ? nrg_type_better(value->type, type) : value->type;
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

/* An output of If so far: the branches that may be taken, and what their tensors have in common. */
struct join {
    struct nrg_arg *from;
    const struct nrg_type *type;
    bool may_run;
};

static void join_branch(struct nrg_reducer *r, struct join *join, struct nrg_arg *arg, int chosen)
{
    bool first = chosen > 0 || !join->may_run;
    use_in_join(r, arg);
    if (!chosen && join->from)
        return;
    if (chosen)
        join->type = common_type(r, first ? arg : join->from, arg);
    if (first)
        join->from = arg;
    join->may_run |= chosen != 0;
}

static void visit_if(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                     struct nrg_arg **args)
{
    uint32_t outer = r->region;
    struct join *joins = nrg_reducer_alloc(r, op->n_outputs + 1, sizeof *joins);
    if (!joins)
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
        for (size_t i = 0; i < op->n_outputs && i < block->n_outputs && !r->rc; i++)
            join_branch(r, &joins[i], nrg_reducer_fact(r, f, block->outputs[i]), chosen);
    }
    r->region = outer;
    for (size_t i = 0; i < op->n_outputs && !r->rc; i++)
        nrg_reducer_set(f, op->outputs[i],
                        join_arg(r, op->outputs[i], joins[i].from, joins[i].type));
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

/* All of ONNX that has a body and is no If repeats it: Loop, Scan, SequenceMap. */
static bool is_loop(const struct nrg_op *op)
{
    return !strcmp(op->kind, "prim::Loop") ||
           (!strncmp(op->kind, "onnx::", 6) && strcmp(op->kind, "onnx::If"));
}

/* State that goes from round to round: the first outputs of all; the others are stacked slices. */
static size_t state_of(const struct nrg_op *op)
{
    if (!strcmp(op->kind, "prim::Loop"))
        return op->n_outputs;
    if (!strcmp(op->kind, "onnx::Loop"))
        return op->n_inputs > 2 ? op->n_inputs - 2 : 0;
    return 0; /* the reader has the types of Scan's */
}

/*
 * The type of a body's input that starts as `from`: the initial one only where the body hands on
 * the same, because it holds for all rounds. The reader of ONNX has looked already.
 */
static const struct nrg_type *round_type(const struct nrg_op *op, size_t input,
                                         const struct nrg_arg *from)
{
    const struct nrg_block *body = op->blocks[0];
    if (strcmp(op->kind, "prim::Loop") || !from || from->kind != NRG_ARG_TENSOR ||
        input >= body->n_outputs)
        return NULL;
    const struct nrg_type *type = nrg_arg_type(from), *next = body->outputs[input]->type;
    bool same =
        body->outputs[input] == body->inputs[input] ||
        (next->kind == NRG_T_TENSOR && next->rank == type->rank && nrg_type_numel(next) >= 0 &&
         (!next->rank || !memcmp(next->dims, type->dims, (size_t)next->rank * sizeof *next->dims)));
    return same ? type : NULL;
}

static void bind_body(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                      struct nrg_arg **args)
{
    const struct nrg_block *body = op->blocks[0];
    for (size_t i = 0; i < body->n_inputs && !r->rc; i++) {
        size_t at = fed_by(op, i);
        struct nrg_arg *from = at < op->n_inputs ? args[at] : NULL;
        bool by_reference = from && (from->kind == NRG_ARG_LIST || from->kind == NRG_ARG_OBJECT);
        nrg_reducer_set(f, body->inputs[i],
                        by_reference ? from
                                     : join_arg(r, body->inputs[i], from, round_type(op, i, from)));
    }
}

static void visit_loop(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                       struct nrg_arg **args)
{
    uint32_t outer = r->region;
    const struct nrg_block *body = op->blocks[0];
    bool scan = !strcmp(op->kind, "onnx::Scan");
    size_t ahead = scan ? 0 : 1, state = state_of(op); /* the condition comes first */
    nrg_reducer_drop(r, op, NRG_DROP_CONTROL, NULL);
    r->region = add_region(
        r, (struct nrg_region){
               .kind = NRG_REGION_LOOP, .trips = trips_of(r, f, op, args), .chosen = 1, .op = op});
    bind_body(r, f, op, args);
    nrg_reducer_block(r, f, body);
    r->region = outer;
    for (size_t i = 0; i < op->n_outputs && !r->rc; i++) {
        struct nrg_arg *from =
            i + ahead < body->n_outputs ? nrg_reducer_fact(r, f, body->outputs[i + ahead]) : NULL;
        size_t start = scan ? i : i + 2; /* without a round, the initial value comes out */
        const struct nrg_type *type =
            from && i < state && start < op->n_inputs ? common_type(r, args[start], from) : NULL;
        if (from)
            use_in_join(r, from);
        nrg_reducer_set(f, op->outputs[i], join_arg(r, op->outputs[i], from, type));
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
    for (size_t i = 0; i < r->model->n_graphs; i++)
        if (r->model->graphs[i] == callee)
            r->called[i] = callee;
    inner.facts = nrg_calloc(callee->n_values + 1, sizeof *inner.facts);
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
    } else if (op->n_blocks && is_loop(op)) {
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

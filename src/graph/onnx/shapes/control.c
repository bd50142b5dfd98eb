/*
 * Types through control flow and sequences (see shapes/internal.h). If: an output is what both
 * branches agree on, or what the taken branch has. Loop: the body's state has the type of its
 * initial value, whatever the file declares, as far as the body hands on the same. What it changes
 * is another one in each round: the body is inferred again with these dimensions unknown.
 * Scan: the body sees one slice. The trip count of a Loop or Scan, when it is known, is added as
 * attribute "trip_count", because it often follows from shapes alone and the passes after us have
 * no contents of tensors.
 */
#include <string.h>

#include "graph/onnx/shapes/internal.h"

/* What two shapes have in common. */
static struct onnx_shape common_shape(const struct nrg_value *a, const struct nrg_value *b)
{
    struct onnx_shape one, two;
    onnx_shape_of(a, &one);
    onnx_shape_of(b, &two);
    if (one.rank != two.rank)
        one.rank = -1;
    for (int i = 0; i < one.rank; i++)
        if (one.d[i] != two.d[i])
            one.d[i] = NRG_DIM_UNKNOWN;
    return one;
}

/* The type of `from` with the dimensions of `shape`; a sequence or optional type as it is. */
static int pass_type(struct onnx *x, struct nrg_value *to, const struct nrg_value *from,
                     struct onnx_shape shape)
{
    if (from->type->kind != NRG_T_TENSOR) {
        to->type = from->type;
        return 0;
    }
    shape.dtype = from->type->dtype;
    return onnx_set_shape(x, to, &shape);
}

/* A stacked output: one slice for each trip, along `along` of the result. */
static void stack_slices(struct onnx_shape *shape, int64_t trips, int64_t along)
{
    int axis;
    if (shape->rank < 0 || shape->rank == ONNX_MAX_RANK ||
        !onnx_axis(along, shape->rank + 1, &axis)) {
        shape->rank = -1;
        return;
    }
    memmove(shape->d + axis + 1, shape->d + axis, (size_t)(shape->rank - axis) * sizeof *shape->d);
    shape->d[axis] = trips;
    shape->rank++;
}

static int add_int_attr(struct onnx *x, struct nrg_op *op, const char *name, int64_t number)
{
    struct nrg_attr *attrs = nrg_arena_array(&x->model->arena, op->n_attrs + 1, sizeof *attrs);
    if (!attrs)
        return onnx_no_memory(x);
    if (op->n_attrs)
        memcpy(attrs, op->attrs, op->n_attrs * sizeof *attrs);
    attrs[op->n_attrs] = (struct nrg_attr){.name = name, .kind = NRG_A_INT, .n = 1, .i = number};
    op->attrs = attrs;
    op->n_attrs++;
    return 0;
}

static bool is_one_int(const struct onnx_known *known)
{
    return known && known->i && known->n == 1;
}

int onnx_rule_if(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    const struct onnx_known *cond = onnx_in_known(x, op, 0);
    bool known = is_one_int(cond) && onnx_element_known(cond->i[0]);
    int rc = 0;
    for (size_t b = 0; b < op->n_blocks && !rc; b++)
        rc = onnx_shapes(x, op->blocks[b]);
    for (size_t i = 0; i < op->n_outputs && !rc; i++) {
        if (op->n_blocks != 2 || i >= op->blocks[0]->n_outputs || i >= op->blocks[1]->n_outputs)
            return onnx_contradiction(x, op);
        const struct nrg_value *a = op->blocks[0]->outputs[i], *b = op->blocks[1]->outputs[i];
        *out = common_shape(a, b);
        if (known)
            onnx_shape_of(cond->i[0] ? a : b, out);
        rc = pass_type(x, op->outputs[i], a, *out);
    }
    if (!rc && known)
        rc = add_int_attr(x, op, "condition", cond->i[0] != 0);
    return rc ? rc : ONNX_DONE;
}

/* True when the loop ends by its count only: its condition is absent or constantly true. */
static bool runs_all(const struct onnx *x, const struct nrg_op *op, const struct nrg_block *body)
{
    const struct onnx_known *first = onnx_in_known(x, op, 1);
    const struct nrg_value *next = body->n_outputs ? body->outputs[0] : NULL;
    while (next && next->producer && next->producer->n_inputs == 1 &&
           (onnx_is(next->producer, "Identity") || onnx_is(next->producer, "Cast")))
        next = next->producer->inputs[0]; /* exporters copy the condition */
    const struct onnx_known *again = next ? onnx_get_known(x, next) : NULL;
    bool same = body->n_inputs > 1 && next == body->inputs[1];
    return (!onnx_has(op, 1) || (is_one_int(first) && first->i[0] == 1)) &&
           (same || (is_one_int(again) && again->i[0] == 1));
}

static int64_t loop_trips(const struct onnx *x, const struct nrg_op *op,
                          const struct nrg_block *body)
{
    const struct onnx_known *count = onnx_in_known(x, op, 0);
    return is_one_int(count) && runs_all(x, op, body) ? onnx_dim(count->i[0]) : NRG_DIM_UNKNOWN;
}

/* The body's inputs: iteration number, condition, then the state, of shapes state[i]. */
static int loop_state(struct onnx *x, const struct nrg_op *op, struct nrg_block *body,
                      const struct onnx_shape *state)
{
    int rc = 0;
    for (size_t i = 0; i < body->n_inputs && !rc; i++) {
        struct onnx_shape number = {0, i ? NRG_BOOL : NRG_I64, {0}};
        if (i < 2)
            rc = onnx_set_shape(x, body->inputs[i], &number);
        else if (i < op->n_inputs)
            rc = pass_type(x, body->inputs[i], op->inputs[i], state[i]);
    }
    return rc;
}

/* Does the body hand on another shape than it was given? Then state[i] is what both share. */
static bool weaken_state(const struct nrg_op *op, const struct nrg_block *body,
                         struct onnx_shape *state, bool rank_too)
{
    bool changed = false;
    for (size_t i = 2; i < op->n_inputs && i < body->n_inputs && i - 1 < body->n_outputs; i++) {
        struct onnx_shape in, common = common_shape(body->inputs[i], body->outputs[i - 1]);
        if (!onnx_shape_of(body->inputs[i], &in) || op->inputs[i]->type->kind != NRG_T_TENSOR ||
            (common.rank == in.rank && !memcmp(common.d, in.d, (size_t)in.rank * sizeof *in.d)))
            continue;
        changed = true;
        state[i] = common;
        if (rank_too)
            state[i].rank = -1;
    }
    return changed;
}

#define LOOP_PASSES    3 /* as at first; without the dimensions that change; without their rank */
#define MAX_LOOP_DEPTH 2 /* of loops in loops whose bodies are inferred more than once */

/* Infers the body until its state holds for every round. */
static int infer_rounds(struct onnx *x, struct nrg_op *op, struct nrg_block *body)
{
    struct onnx_shape *state = nrg_arena_array(&x->model->arena, op->n_inputs + 1, sizeof *state);
    bool deep = x->loop_depth >= MAX_LOOP_DEPTH, again = true;
    struct onnx_undo undo;
    if (!state)
        return onnx_no_memory(x);
    for (size_t i = 0; i < op->n_inputs; i++) {
        onnx_in(op, i, &state[i]);
        state[i].rank = deep ? -1 : state[i].rank;
    }
    int rc = onnx_undo_begin(x, body, &undo);
    x->loop_depth++;
    for (int pass = 0; pass < LOOP_PASSES && again && !rc; pass++) {
        rc = pass ? onnx_undo(x, body, &undo) : 0;
        if (!rc)
            rc = loop_state(x, op, body, state);
        if (!rc)
            rc = onnx_shapes(x, body);
        again = !rc && weaken_state(op, body, state, pass > 0);
    }
    x->loop_depth--;
    return rc;
}

static int set_trips(struct onnx *x, struct nrg_op *op, int64_t trips)
{
    int rc = trips < 0 ? 0 : add_int_attr(x, op, "trip_count", trips);
    return rc ? rc : ONNX_DONE;
}

/* Body outputs: condition, the new state, then one slice of every stacked output. */
int onnx_rule_loop(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct nrg_block *body = op->n_blocks == 1 ? op->blocks[0] : NULL;
    size_t state = op->n_inputs > 2 ? op->n_inputs - 2 : 0;
    if (!body || body->n_inputs < 2)
        return onnx_contradiction(x, op);
    int rc = infer_rounds(x, op, body);
    int64_t trips = loop_trips(x, op, body);
    for (size_t i = 0; i < op->n_outputs && i + 1 < body->n_outputs && !rc; i++) {
        const struct nrg_value *from = body->outputs[i + 1];
        onnx_shape_of(from, out);
        if (i < state && i + 2 < body->n_inputs)
            *out = common_shape(from, body->inputs[i + 2]);
        else
            stack_slices(out, trips, 0);
        rc = pass_type(x, op->outputs[i], from, *out);
    }
    return rc ? rc : set_trips(x, op, trips);
}

/* A member of scan_input_axes or scan_output_axes; by default the first axis. */
static int64_t scan_axis(const struct nrg_op *op, const char *name, size_t i)
{
    const struct nrg_attr *axes = nrg_op_attr(op, name);
    return axes && axes->kind == NRG_A_INTS && i < axes->n ? axes->is[i] : 0;
}

/* Scanned inputs are cut along scan_input_axes, by default the first. */
static int scan_inputs(struct onnx *x, struct nrg_op *op, struct nrg_block *body, size_t state,
                       int64_t *trips)
{
    struct onnx_shape shape;
    int axis, rc = 0;
    for (size_t i = 0; i < op->n_inputs && !rc; i++) {
        onnx_in(op, i, &shape);
        if (i >= state &&
            onnx_axis(scan_axis(op, "scan_input_axes", i - state), shape.rank, &axis)) {
            *trips = *trips < 0 ? shape.d[axis] : *trips;
            shape.rank--;
            memmove(shape.d + axis, shape.d + axis + 1,
                    (size_t)(shape.rank - axis) * sizeof *shape.d);
        }
        rc = pass_type(x, body->inputs[i], op->inputs[i], shape);
    }
    return rc;
}

/* Opset 9+: state, then scanned inputs. */
int onnx_rule_scan(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct nrg_block *body = op->n_blocks == 1 ? op->blocks[0] : NULL;
    int64_t scans = nrg_op_int(op, "num_scan_inputs", 0), trips = NRG_DIM_UNKNOWN;
    int rc;
    if (!body)
        return onnx_contradiction(x, op);
    if (x->opset < 9 || scans < 1 || (size_t)scans > op->n_inputs || body->n_inputs != op->n_inputs)
        return (rc = onnx_shapes(x, body)) ? rc : ONNX_DONE;
    size_t state = op->n_inputs - (size_t)scans;
    rc = scan_inputs(x, op, body, state, &trips);
    if (!rc)
        rc = onnx_shapes(x, body);
    for (size_t i = 0; i < op->n_outputs && i < body->n_outputs && !rc; i++) {
        onnx_shape_of(body->outputs[i], out);
        if (i >= state)
            stack_slices(out, trips, scan_axis(op, "scan_output_axes", i - state));
        rc = pass_type(x, op->outputs[i], body->outputs[i], *out);
    }
    return rc ? rc : set_trips(x, op, trips);
}

/* Sequences: a list of tensors; members are not followed. */
int onnx_rule_sequence(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    static const struct nrg_type list = {.kind = NRG_T_LIST, .rank = -1, .requires_grad = -1};
    const struct nrg_type **args = nrg_arena_alloc(&x->model->arena, sizeof(struct nrg_type *));
    struct nrg_type *type = nrg_arena_alloc(&x->model->arena, sizeof *type);
    if (!args || !type)
        return onnx_no_memory(x);
    args[0] = x->unknown;
    *type = list;
    type->args = args;
    type->n_args = 1;
    if (op->n_outputs && op->outputs[0]->type->kind == NRG_T_TENSOR)
        op->outputs[0]->type =
            op->n_inputs && op->inputs[0]->type->kind == NRG_T_LIST ? op->inputs[0]->type : type;
    return ONNX_DONE;
}

/* SequenceAt, OptionalGetElement: the element's declared type. */
int onnx_rule_at(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    const struct nrg_type *type = op->n_inputs ? op->inputs[0]->type : x->unknown;
    if (op->n_outputs && type->n_args == 1 && op->outputs[0]->type == x->unknown)
        op->outputs[0]->type = type->args[0];
    return ONNX_DONE;
}

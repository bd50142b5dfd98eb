/*
 * Types through control flow and sequences (see onnx_shapes.h). If: an output is what both branches
 * agree on, or what the taken branch has. Loop: the body's state has the type of what goes in
 * first, in the declared type's place; dimensions that the body changes become unknown outside.
 * Scan: the body sees one slice. The trip count of a Loop or Scan, when it is known, is added as
 * attribute "trip_count", because it often follows from shapes alone and the passes after us have
 * no contents of tensors.
 */
#include <string.h>

#include "graph/onnx/shapes/internal.h"

static int set_type(struct onnx *x, struct nrg_value *value, enum nrg_dtype dtype,
                    const struct onnx_shape *shape)
{
    struct nrg_value *values[1] = {value};
    struct nrg_op op = {.outputs = values, .n_outputs = 1};
    return onnx_out(x, &op, 0, dtype, shape);
}

static void shape_of(const struct nrg_value *value, struct onnx_shape *shape)
{
    struct nrg_value *values[1] = {(struct nrg_value *)(uintptr_t)value};
    struct nrg_op op = {.inputs = values, .n_inputs = 1};
    onnx_in(&op, 0, shape);
}

/* What two shapes have in common. */
static struct onnx_shape common(const struct nrg_value *a, const struct nrg_value *b)
{
    struct onnx_shape one, two;
    shape_of(a, &one);
    shape_of(b, &two);
    if (one.rank != two.rank)
        one.rank = -1;
    for (int i = 0; i < one.rank; i++)
        if (one.d[i] != two.d[i])
            one.d[i] = NRG_DIM_UNKNOWN;
    return one;
}

/* A sequence or optional type goes through as it is. */
static int hand_on(struct onnx *x, struct nrg_value *to, const struct nrg_value *from,
                   const struct onnx_shape *shape)
{
    if (from->type->kind != NRG_T_TENSOR) {
        to->type = from->type;
        return 0;
    }
    return set_type(x, to, from->type->dtype, shape);
}

static int add_attr(struct onnx *x, struct nrg_op *op, const char *name, int64_t number)
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

int onnx_rule_if(struct onnx *x, struct nrg_op *op, int arg)
{
    const struct onnx_known *cond = onnx_in_known(x, op, 0);
    bool known = cond && cond->i && cond->n == 1 && onnx_element_known(cond->i[0]);
    int rc = 0;
    (void)arg;
    for (size_t b = 0; b < op->n_blocks && !rc; b++)
        rc = onnx_shapes(x, op->blocks[b]);
    for (size_t i = 0; i < op->n_outputs && !rc; i++) {
        if (op->n_blocks != 2 || i >= op->blocks[0]->n_outputs || i >= op->blocks[1]->n_outputs)
            return onnx_contradiction(x, op);
        const struct nrg_value *a = op->blocks[0]->outputs[i], *b = op->blocks[1]->outputs[i];
        struct onnx_shape shape = common(a, b);
        if (known)
            shape_of(cond->i[0] ? a : b, &shape);
        rc = hand_on(x, op->outputs[i], a, &shape);
    }
    return rc || !known ? rc : add_attr(x, op, "condition", cond->i[0] != 0);
}

/* The condition goes on unless the body's is not constantly true. */
static bool runs_all(const struct onnx *x, const struct nrg_op *op, const struct nrg_block *body)
{
    const struct onnx_known *first = onnx_in_known(x, op, 1);
    const struct nrg_value *next = body->n_outputs ? body->outputs[0] : NULL;
    const struct onnx_known *again = next ? onnx_get_known(x, next) : NULL;
    bool same = body->n_inputs > 1 && next == body->inputs[1];
    return (!onnx_has(op, 1) || (first && first->i && first->n == 1 && first->i[0] == 1)) &&
           (same || (again && again->i && again->n == 1 && again->i[0] == 1));
}

static int64_t loop_trips(const struct onnx *x, const struct nrg_op *op,
                          const struct nrg_block *body)
{
    const struct onnx_known *count = onnx_in_known(x, op, 0);
    if (!count || !count->i || count->n != 1 || !runs_all(x, op, body))
        return NRG_DIM_UNKNOWN;
    return onnx_dim(count->i[0]);
}

/* iteration number, condition, then the state. */
static int loop_state(struct onnx *x, const struct nrg_op *op, struct nrg_block *body)
{
    static const struct onnx_shape scalar = {.rank = 0};
    int rc = 0;
    for (size_t i = 0; i < body->n_inputs && !rc; i++) {
        struct onnx_shape shape = scalar;
        if (i < 2) {
            rc = set_type(x, body->inputs[i], i ? NRG_BOOL : NRG_I64, &scalar);
        } else if (i < op->n_inputs) {
            shape_of(op->inputs[i], &shape);
            rc = hand_on(x, body->inputs[i], op->inputs[i], &shape);
        }
    }
    return rc;
}

/* Body outputs: condition, the new state, then one slice of every stacked output. */
int onnx_rule_loop(struct onnx *x, struct nrg_op *op, int arg)
{
    struct nrg_block *body = op->n_blocks == 1 ? op->blocks[0] : NULL;
    size_t state = op->n_inputs > 2 ? op->n_inputs - 2 : 0;
    (void)arg;
    if (!body || body->n_inputs < 2)
        return onnx_contradiction(x, op);
    int rc = loop_state(x, op, body);
    if (!rc)
        rc = onnx_shapes(x, body);
    int64_t trips = loop_trips(x, op, body);
    for (size_t i = 0; i < op->n_outputs && i + 1 < body->n_outputs && !rc; i++) {
        const struct nrg_value *from = body->outputs[i + 1];
        struct onnx_shape shape;
        shape_of(from, &shape);
        if (i < state && i + 2 < body->n_inputs) {
            shape = common(from, body->inputs[i + 2]);
        } else if (shape.rank >= 0 && shape.rank < ONNX_MAX_RANK) {
            memmove(shape.d + 1, shape.d, (size_t)shape.rank * sizeof *shape.d);
            shape.d[0] = trips;
            shape.rank++;
        }
        rc = hand_on(x, op->outputs[i], from, &shape);
    }
    return rc || trips < 0 ? rc : add_attr(x, op, "trip_count", trips);
}

/* Opset 9+: state, then scanned inputs (sliced along scan_input_axes, by default the first). */
int onnx_rule_scan(struct onnx *x, struct nrg_op *op, int arg)
{
    struct nrg_block *body = op->n_blocks == 1 ? op->blocks[0] : NULL;
    int64_t scans = onnx_int(op, "num_scan_inputs", 0), trips = NRG_DIM_UNKNOWN;
    const struct nrg_attr *axes = nrg_op_attr(op, "scan_input_axes");
    int rc = 0;
    (void)arg;
    if (!body || x->opset < 9 || scans < 1 || (size_t)scans > op->n_inputs ||
        body->n_inputs != op->n_inputs)
        return body ? onnx_shapes(x, body) : onnx_contradiction(x, op);
    size_t state = op->n_inputs - (size_t)scans;
    for (size_t i = 0; i < op->n_inputs && !rc; i++) {
        struct onnx_shape shape;
        int axis;
        shape_of(op->inputs[i], &shape);
        int64_t along = axes && axes->kind == NRG_A_INTS && i >= state && i - state < axes->n
                            ? axes->is[i - state]
                            : 0;
        if (i >= state && onnx_axis(along, shape.rank, &axis)) {
            trips = shape.d[axis];
            memmove(shape.d + axis, shape.d + axis + 1,
                    (size_t)(shape.rank - axis - 1) * sizeof *shape.d);
            shape.rank--;
        }
        rc = hand_on(x, body->inputs[i], op->inputs[i], &shape);
    }
    if (!rc)
        rc = onnx_shapes(x, body);
    for (size_t i = 0; i < op->n_outputs && i < body->n_outputs && !rc; i++) {
        struct onnx_shape shape;
        shape_of(body->outputs[i], &shape);
        if (i >= state && shape.rank >= 0 && shape.rank < ONNX_MAX_RANK) {
            memmove(shape.d + 1, shape.d, (size_t)shape.rank * sizeof *shape.d);
            shape.d[0] = nrg_op_attr(op, "scan_output_axes") ? NRG_DIM_UNKNOWN : trips;
            shape.rank++;
        }
        rc = hand_on(x, op->outputs[i], body->outputs[i], &shape);
    }
    return rc || trips < 0 ? rc : add_attr(x, op, "trip_count", trips);
}

/* Sequences: a list of tensors; members are not followed. */
int onnx_rule_sequence(struct onnx *x, struct nrg_op *op, int arg)
{
    static const struct nrg_type list = {.kind = NRG_T_LIST, .rank = -1, .requires_grad = -1};
    const struct nrg_type **args = nrg_arena_alloc(&x->model->arena, sizeof(struct nrg_type *));
    struct nrg_type *type = nrg_arena_alloc(&x->model->arena, sizeof *type);
    (void)arg;
    if (!args || !type)
        return onnx_no_memory(x);
    args[0] = x->unknown;
    *type = list;
    type->args = args;
    type->n_args = 1;
    if (op->n_outputs && op->outputs[0]->type->kind == NRG_T_TENSOR)
        op->outputs[0]->type =
            op->n_inputs && op->inputs[0]->type->kind == NRG_T_LIST ? op->inputs[0]->type : type;
    return 0;
}

/* SequenceAt, OptionalGetElement: the element's declared type. */
int onnx_rule_at(struct onnx *x, struct nrg_op *op, int arg)
{
    const struct nrg_type *type = op->n_inputs ? op->inputs[0]->type : x->unknown;
    (void)arg;
    if (op->n_outputs && type->n_args == 1 && op->outputs[0]->type == x->unknown)
        op->outputs[0]->type = type->args[0];
    return 0;
}

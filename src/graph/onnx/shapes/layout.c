/*
 * Shape rules of operators that lay the same elements out differently, repeat or pad them (see
 * onnx_shapes.h). Lists that are attributes in old opsets are inputs in new ones: onnx_list takes
 * either. Reshape's -1 is solved also when some dimensions are symbolic, by cancelling the symbols
 * that stand on both sides: that is what a dynamic batch needs.
 */
#include <string.h>

#include "graph/onnx/shapes/internal.h"

/* Product of the known dimensions; unknown ones go to `rest`. */
static int64_t known_product(const struct onnx_shape *shape, int skip, struct onnx_shape *rest)
{
    int64_t product = 1;
    rest->rank = 0;
    for (int i = 0; i < shape->rank; i++) {
        if (i == skip)
            continue;
        if (shape->d[i] < 0)
            rest->d[rest->rank++] = shape->d[i];
        else
            product = onnx_dim_mul(product, shape->d[i]);
    }
    return product;
}

/* Takes symbols that both sides have away; true when nothing is left on either. */
static bool cancel(struct onnx_shape *a, struct onnx_shape *b)
{
    for (int i = 0; i < a->rank; i++)
        for (int j = 0; j < b->rank; j++)
            if (a->d[i] <= -2 && a->d[i] == b->d[j]) {
                a->d[i--] = a->d[--a->rank];
                b->d[j] = b->d[--b->rank];
                break;
            }
    return !a->rank && !b->rank;
}

/* What the -1 at `hole` must be; false: it cannot be. */
static bool solve(const struct onnx_shape *in, struct onnx_shape *out, int hole)
{
    struct onnx_shape rest_in, rest_out;
    int64_t have = known_product(in, -1, &rest_in), need = known_product(out, hole, &rest_out);
    if (have < 0 || need < 0)
        return true;
    bool clear = cancel(&rest_in, &rest_out);
    if (!clear && rest_in.rank == 1 && !rest_out.rank && have == need && rest_in.d[0] <= -2) {
        out->d[hole] = rest_in.d[0]; /* the one symbol that remains is the answer */
        return true;
    }
    if (!clear || !need)
        return true;
    out->d[hole] = have / need;
    return have % need == 0;
}

int onnx_rule_reshape(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in, out, target;
    int64_t list[ONNX_MAX_RANK];
    int n = onnx_list(x, op, "shape", 1, list, ONNX_MAX_RANK), hole = -1;
    bool known = onnx_in(op, 0, &in), zero_is_zero = onnx_int(op, "allowzero", 0) != 0;
    (void)arg;
    if (n < 0) { /* the target's own length is the rank */
        bool has = onnx_in(op, 1, &target) && target.rank == 1 && target.d[0] >= 0 &&
                   target.d[0] <= ONNX_MAX_RANK;
        out = onnx_unknown_dims(has ? (int)target.d[0] : -1);
        return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &out);
    }
    out.rank = n;
    for (int i = 0; i < n; i++) {
        out.d[i] = onnx_dim(list[i]);
        if (list[i] == 0 && !zero_is_zero)
            out.d[i] = known && i < in.rank ? in.d[i] : NRG_DIM_UNKNOWN;
        if (list[i] == -1)
            hole = i;
    }
    if (known && hole >= 0 && !solve(&in, &out, hole))
        return onnx_contradiction(x, op);
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &out);
}

int onnx_rule_flatten(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in, out = {2, {1, 1}};
    int64_t axis = onnx_int(op, "axis", 1);
    (void)arg;
    if (!onnx_in(op, 0, &in))
        out = onnx_unknown_dims(2);
    else if (axis < -in.rank || axis > in.rank)
        return onnx_contradiction(x, op);
    if (axis < 0)
        axis += in.rank;
    for (int i = 0; i < in.rank; i++)
        out.d[i >= axis] = onnx_dim_mul(out.d[i >= axis], in.d[i]);
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &out);
}

int onnx_rule_transpose(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in, out;
    const struct nrg_attr *perm = nrg_op_attr(op, "perm");
    int from;
    (void)arg;
    onnx_in(op, 0, &in);
    out.rank = in.rank;
    if (perm && (perm->kind != NRG_A_INTS || (in.rank >= 0 && perm->n != (size_t)in.rank)))
        return onnx_contradiction(x, op);
    for (int i = 0; i < in.rank; i++) {
        if (!onnx_axis(perm ? perm->is[i] : in.rank - 1 - i, in.rank, &from))
            return onnx_contradiction(x, op);
        out.d[i] = in.d[from];
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &out);
}

int onnx_rule_squeeze(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in, out = {.rank = 0};
    int64_t axes[ONNX_MAX_RANK];
    int n = onnx_list(x, op, "axes", 1, axes, ONNX_MAX_RANK), axis;
    bool gone[ONNX_MAX_RANK] = {false};
    (void)arg;
    if (!onnx_in(op, 0, &in) || n == -2) {
        out.rank = -1;
        return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &out);
    }
    for (int i = 0; i < n; i++) {
        if (!onnx_axis(axes[i], in.rank, &axis) || (in.d[axis] >= 0 && in.d[axis] != 1))
            return onnx_contradiction(x, op);
        gone[axis] = true;
    }
    for (int i = 0; i < in.rank; i++) {
        if (n == -1 && in.d[i] < 0) { /* all ones go: which are they? */
            out.rank = -1;
            break;
        }
        if (n == -1 ? in.d[i] != 1 : !gone[i])
            out.d[out.rank++] = in.d[i];
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &out);
}

int onnx_rule_unsqueeze(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in, out = {.rank = -1};
    int64_t axes[ONNX_MAX_RANK];
    int n = onnx_list(x, op, "axes", 1, axes, ONNX_MAX_RANK), axis, from = 0;
    bool fresh[ONNX_MAX_RANK] = {false};
    (void)arg;
    if (!onnx_in(op, 0, &in) || n < 0 || in.rank + n > ONNX_MAX_RANK)
        return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &out);
    out.rank = in.rank + n;
    for (int i = 0; i < n; i++) {
        if (!onnx_axis(axes[i], out.rank, &axis) || fresh[axis])
            return onnx_contradiction(x, op);
        fresh[axis] = true;
    }
    for (int i = 0; i < out.rank; i++)
        out.d[i] = fresh[i] ? 1 : in.d[from++];
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &out);
}

int onnx_rule_expand(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in, target, length;
    int64_t list[ONNX_MAX_RANK];
    int n = onnx_list(x, op, "shape", 1, list, ONNX_MAX_RANK);
    (void)arg;
    bool known = onnx_in(op, 0, &in);
    if (n < 0 && onnx_in(op, 1, &length) && length.rank == 1 && length.d[0] >= 0 &&
        length.d[0] <= ONNX_MAX_RANK) {
        int rank = (int)length.d[0];
        target = onnx_unknown_dims(known && in.rank > rank ? in.rank : rank);
        return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &target);
    }
    target.rank = n;
    for (int i = 0; i < n; i++)
        target.d[i] = onnx_dim(list[i]);
    if (!known || n < 0)
        target.rank = -1;
    else if (!onnx_broadcast(&target, &in))
        return onnx_contradiction(x, op);
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &target);
}

/* Opset 1 had one tile count and one axis; both are rare enough to stay unknown. */
int onnx_rule_tile(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    int64_t repeats[ONNX_MAX_RANK];
    int n = onnx_list(x, op, NULL, 1, repeats, ONNX_MAX_RANK);
    (void)arg;
    if (onnx_in(op, 0, &shape)) {
        if (n >= 0 && n != shape.rank)
            return onnx_contradiction(x, op);
        for (int i = 0; i < shape.rank; i++)
            shape.d[i] = n < 0 ? NRG_DIM_UNKNOWN : onnx_dim_mul(shape.d[i], onnx_dim(repeats[i]));
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

static int64_t padded(int64_t dim, int64_t before, int64_t after)
{
    int64_t out;
    if (!before && !after)
        return dim;
    if (dim < 0 || !onnx_element_known(before) || !onnx_element_known(after) ||
        __builtin_add_overflow(before, after, &out) || __builtin_add_overflow(out, dim, &out))
        return NRG_DIM_UNKNOWN;
    return out < 0 ? 0 : out;
}

int onnx_rule_pad(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    int64_t pads[2 * ONNX_MAX_RANK], axes[ONNX_MAX_RANK];
    int n = onnx_list(x, op, nrg_op_attr(op, "paddings") ? "paddings" : "pads", 1, pads,
                      2 * ONNX_MAX_RANK);
    int n_axes = onnx_list(x, op, NULL, 3, axes, ONNX_MAX_RANK), axis;
    (void)arg;
    if (onnx_in(op, 0, &shape)) {
        int count = n_axes >= 0 ? n_axes : shape.rank;
        if (n >= 0 && n != 2 * count)
            return onnx_contradiction(x, op);
        if (n < 0 || n_axes == -2)
            shape = onnx_unknown_dims(shape.rank);
        for (int i = 0; i < count && n >= 0; i++)
            if (onnx_axis(n_axes >= 0 ? axes[i] : i, shape.rank, &axis))
                shape.d[axis] = padded(shape.d[axis], pads[i], pads[count + i]);
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

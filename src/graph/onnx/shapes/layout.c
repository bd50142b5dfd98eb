/*
 * Shape rules of operators that lay the same elements out differently, repeat or pad them (see
 * shapes/internal.h). Lists that are attributes in old opsets are inputs in new ones: onnx_list
 * takes either. Reshape's -1 is solved also when some dimensions are symbolic, by cancelling the
 * symbols that are on both sides: a dynamic batch needs that.
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
static bool cancel_symbols(struct onnx_shape *a, struct onnx_shape *b)
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
static bool solve_hole(const struct onnx_shape *in, struct onnx_shape *out, int hole)
{
    struct onnx_shape rest_in, rest_out;
    int64_t have = known_product(in, -1, &rest_in), need = known_product(out, hole, &rest_out);
    if (have < 0 || need < 0)
        return true;
    bool clear = cancel_symbols(&rest_in, &rest_out);
    if (!clear && rest_in.rank == 1 && !rest_out.rank && have == need && rest_in.d[0] <= -2) {
        out->d[hole] = rest_in.d[0]; /* the one symbol that remains is the answer */
        return true;
    }
    if (!clear || !need)
        return true;
    out->d[hole] = have / need;
    return have % need == 0;
}

int onnx_rule_reshape(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape in = *out;
    int64_t list[ONNX_MAX_RANK];
    int n = onnx_list(x, op, "shape", 1, list, ONNX_MAX_RANK), hole = -1;
    bool zero_is_zero = nrg_op_int(op, "allowzero", 0) != 0;
    if (!onnx_list_dims(x, op, "shape", 1, out))
        return 0;
    for (int i = 0; i < n; i++) {
        if (list[i] == 0 && !zero_is_zero)
            out->d[i] = i < in.rank ? in.d[i] : NRG_DIM_UNKNOWN;
        if (list[i] == -1)
            hole = i;
    }
    return in.rank >= 0 && hole >= 0 && !solve_hole(&in, out, hole) ? onnx_contradiction(x, op) : 0;
}

int onnx_rule_flatten(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape in = *out;
    int64_t axis = nrg_op_int(op, "axis", 1);
    onnx_unknown_dims(out, 2);
    if (in.rank < 0)
        return 0;
    if (axis < -in.rank || axis > in.rank)
        return onnx_contradiction(x, op);
    if (axis < 0)
        axis += in.rank;
    out->d[0] = out->d[1] = 1;
    for (int i = 0; i < in.rank; i++)
        out->d[i >= axis] = onnx_dim_mul(out->d[i >= axis], in.d[i]);
    return 0;
}

int onnx_rule_transpose(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape in = *out;
    const struct nrg_attr *perm = nrg_op_attr(op, "perm");
    int from;
    if (perm && (perm->kind != NRG_A_INTS || (in.rank >= 0 && perm->n != (size_t)in.rank)))
        return onnx_contradiction(x, op);
    for (int i = 0; i < in.rank; i++) {
        if (!onnx_axis(perm ? perm->is[i] : in.rank - 1 - i, in.rank, &from))
            return onnx_contradiction(x, op);
        out->d[i] = in.d[from];
    }
    return 0;
}

int onnx_rule_squeeze(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape in = *out;
    int64_t axes[ONNX_MAX_RANK];
    int n = onnx_list(x, op, "axes", 1, axes, ONNX_MAX_RANK), axis;
    bool gone[ONNX_MAX_RANK] = {false};
    out->rank = in.rank < 0 || n == -2 ? -1 : 0;
    if (out->rank < 0)
        return 0;
    for (int i = 0; i < n; i++) {
        if (!onnx_axis(axes[i], in.rank, &axis) || (in.d[axis] >= 0 && in.d[axis] != 1))
            return onnx_contradiction(x, op);
        gone[axis] = true;
    }
    for (int i = 0; i < in.rank; i++) {
        if (n == -1 && in.d[i] < 0) { /* all ones go, and this one may be 1 */
            out->rank = -1;
            break;
        }
        if (n == -1 ? in.d[i] != 1 : !gone[i])
            out->d[out->rank++] = in.d[i];
    }
    return 0;
}

int onnx_rule_unsqueeze(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape in = *out;
    int64_t axes[ONNX_MAX_RANK];
    int n = onnx_list(x, op, "axes", 1, axes, ONNX_MAX_RANK), axis, from = 0;
    bool fresh[ONNX_MAX_RANK] = {false};
    out->rank = in.rank < 0 || n < 0 || in.rank + n > ONNX_MAX_RANK ? -1 : in.rank + n;
    for (int i = 0; out->rank >= 0 && i < n; i++) {
        if (!onnx_axis(axes[i], out->rank, &axis) || fresh[axis])
            return onnx_contradiction(x, op);
        fresh[axis] = true;
    }
    for (int i = 0; i < out->rank; i++)
        out->d[i] = fresh[i] ? 1 : in.d[from++];
    return 0;
}

int onnx_rule_expand(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape in = *out;
    if (!onnx_list_dims(x, op, "shape", 1, out)) {
        if (out->rank >= 0 && in.rank > out->rank)
            onnx_unknown_dims(out, in.rank);
        return 0;
    }
    if (in.rank < 0)
        out->rank = -1;
    else if (!onnx_broadcast(out, &in))
        return onnx_contradiction(x, op);
    return 0;
}

/* Opset 1 had one tile count and one axis; both are rare enough to stay unknown. */
int onnx_rule_tile(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    int64_t repeats[ONNX_MAX_RANK];
    int n = onnx_list(x, op, NULL, 1, repeats, ONNX_MAX_RANK);
    if (out->rank >= 0 && n >= 0 && n != out->rank)
        return onnx_contradiction(x, op);
    for (int i = 0; i < out->rank; i++)
        out->d[i] = n < 0 ? NRG_DIM_UNKNOWN : onnx_dim_mul(out->d[i], onnx_dim(repeats[i]));
    return 0;
}

static int64_t padded_dim(int64_t dim, int64_t before, int64_t after)
{
    int64_t out;
    if (!before && !after)
        return dim;
    if (dim < 0 || !onnx_element_known(before) || !onnx_element_known(after) ||
        __builtin_add_overflow(before, after, &out) || __builtin_add_overflow(out, dim, &out))
        return NRG_DIM_UNKNOWN;
    return out < 0 ? 0 : out;
}

int onnx_rule_pad(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    int64_t pads[2 * ONNX_MAX_RANK], axes[ONNX_MAX_RANK];
    int n = onnx_list(x, op, nrg_op_attr(op, "paddings") ? "paddings" : "pads", 1, pads,
                      2 * ONNX_MAX_RANK);
    int n_axes = onnx_list(x, op, NULL, 3, axes, ONNX_MAX_RANK), axis;
    int count = n_axes >= 0 ? n_axes : out->rank;
    if (out->rank < 0)
        return 0;
    if (n >= 0 && n != 2 * count)
        return onnx_contradiction(x, op);
    if (n < 0 || n_axes == -2)
        onnx_unknown_dims(out, out->rank);
    for (int i = 0; i < count && n >= 0; i++)
        if (onnx_axis(n_axes >= 0 ? axes[i] : i, out->rank, &axis))
            out->d[axis] = padded_dim(out->d[axis], pads[i], pads[count + i]);
    return 0;
}

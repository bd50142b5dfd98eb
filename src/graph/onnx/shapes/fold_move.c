/*
 * Contents of small tensors through operators that only move elements (see shapes/fold.c). Slice,
 * Transpose and Expand are all one walk over the output with a base and a stride per dimension;
 * exporters turn padding around with exactly these (Reshape to pairs, Slice backwards, Transpose).
 */
#include <math.h>
#include <string.h>

#include "graph/onnx/shapes/internal.h"

/* Output dimension d moves `stride[d]` elements in the input, from `base` on. */
struct walk {
    int64_t base, stride[ONNX_MAX_RANK];
};

static int64_t source_of(const struct onnx_shape *out, const struct walk *walk, int64_t e)
{
    int64_t at = walk->base;
    for (int d = out->rank - 1; d >= 0; d--) {
        at += e % out->d[d] * walk->stride[d];
        e /= out->d[d];
    }
    return at;
}

/* The output has elements at[0 .. n - 1] of the input. */
static int pick_elements(struct onnx *x, struct nrg_op *op, const int64_t *at, size_t n)
{
    const struct onnx_known *k = onnx_in_known(x, op, 0);
    int64_t i[ONNX_MAX_KNOWN];
    double f[ONNX_MAX_KNOWN];
    for (size_t e = 0; e < n; e++) {
        if (at[e] < 0 || at[e] >= (int64_t)k->n)
            return 0;
        if (k->i)
            i[e] = k->i[at[e]];
        else
            f[e] = k->f[at[e]];
    }
    return k->i ? onnx_know_ints(x, op, 0, i, n) : onnx_know_floats(x, op, 0, f, n);
}

static int move_elements(struct onnx *x, struct nrg_op *op, const struct onnx_shape *out,
                         const struct walk *walk)
{
    int64_t at[ONNX_MAX_KNOWN], n = onnx_elements(out);
    if (n < 0 || n > ONNX_MAX_KNOWN)
        return 0;
    for (int64_t e = 0; e < n; e++)
        at[e] = source_of(out, walk, e);
    return pick_elements(x, op, at, (size_t)n);
}

/* Shapes and contents are known and agree; stride[d] of the input, row-major. */
static bool known_shapes(const struct onnx *x, const struct nrg_op *op, struct onnx_shape *in,
                         struct onnx_shape *out, int64_t *stride)
{
    const struct onnx_known *k = onnx_in_known(x, op, 0);
    int64_t n = 1;
    if (!k || !op->n_outputs || !onnx_in(op, 0, in) || !onnx_shape_of(op->outputs[0], out))
        return false;
    for (int d = in->rank - 1; d >= 0; d--) {
        stride[d] = n;
        n = onnx_dim_mul(n, in->d[d]);
    }
    return n == (int64_t)k->n;
}

int onnx_fold_transpose(struct onnx *x, struct nrg_op *op, int what)
{
    const struct nrg_attr *perm = nrg_op_attr(op, "perm");
    struct onnx_shape in, out;
    struct walk walk = {0};
    int64_t stride[ONNX_MAX_RANK];
    if (!known_shapes(x, op, &in, &out, stride) || out.rank != in.rank)
        return 0;
    for (int d = 0; d < out.rank; d++) {
        int from;
        if (!onnx_axis(perm && perm->kind == NRG_A_INTS && (size_t)d < perm->n ? perm->is[d]
                                                                               : in.rank - 1 - d,
                       in.rank, &from))
            return 0;
        walk.stride[d] = stride[from];
    }
    return move_elements(x, op, &out, &walk);
}

/* Expand, and Tile of what has one element in a dimension. */
int onnx_fold_expand(struct onnx *x, struct nrg_op *op, int what)
{
    struct onnx_shape in, out;
    struct walk walk = {0};
    int64_t stride[ONNX_MAX_RANK];
    if (!known_shapes(x, op, &in, &out, stride) || out.rank < in.rank)
        return 0;
    for (int d = 0; d < in.rank; d++) {
        int at = d + out.rank - in.rank;
        if (in.d[d] != 1 && in.d[d] != out.d[at])
            return 0;
        walk.stride[at] = in.d[d] == 1 ? 0 : stride[d];
    }
    return move_elements(x, op, &out, &walk);
}

/* Where a slice of `dim` starts; the rule of the shape has clamped the length already. */
static int64_t start_in(int64_t start, int64_t dim, int64_t step)
{
    int64_t at = start < 0 ? (start < -dim ? 0 : start + dim) : start;
    return step < 0 && at > dim - 1 ? dim - 1 : at;
}

int onnx_fold_slice(struct onnx *x, struct nrg_op *op, int what)
{
    struct onnx_shape in, out;
    struct walk walk = {0};
    int64_t starts[ONNX_MAX_RANK], axes[ONNX_MAX_RANK], steps[ONNX_MAX_RANK];
    if (!known_shapes(x, op, &in, &out, walk.stride) || out.rank != in.rank)
        return 0;
    int n = onnx_list(x, op, "starts", 1, starts, ONNX_MAX_RANK), axis;
    int n_axes = onnx_list(x, op, "axes", 3, axes, ONNX_MAX_RANK);
    int n_steps = onnx_list(x, op, NULL, 4, steps, ONNX_MAX_RANK);
    if (n < 0 || n_axes == -2 || n_steps == -2)
        return 0;
    for (int i = 0; i < n; i++) {
        int64_t step = i < n_steps ? steps[i] : 1;
        if (!onnx_element_known(starts[i]) || !onnx_element_known(step) ||
            !onnx_axis(i < n_axes ? axes[i] : i, in.rank, &axis) || step > ONNX_MAX_KNOWN ||
            step < -ONNX_MAX_KNOWN || starts[i] > ONNX_MAX_KNOWN)
            return 0;
        walk.base += start_in(starts[i], in.d[axis], step) * walk.stride[axis];
        walk.stride[axis] *= step;
    }
    return move_elements(x, op, &out, &walk);
}

/* The same elements in the same order under another shape. */
int onnx_fold_same(struct onnx *x, struct nrg_op *op, int what)
{
    const struct onnx_known *k = onnx_in_known(x, op, 0);
    return k && op->n_outputs ? onnx_set_known(x, op->outputs[0], (struct onnx_known *)(uintptr_t)k)
                              : 0;
}

/* Of lists; members that are not known make that many elements not known. */
int onnx_fold_concat(struct onnx *x, struct nrg_op *op, int what)
{
    int64_t i[ONNX_MAX_KNOWN];
    double f[ONNX_MAX_KNOWN];
    size_t n = 0, floats = 0;
    struct onnx_shape in;
    for (size_t m = 0; m < op->n_inputs; m++) {
        const struct onnx_known *k = onnx_in_known(x, op, m);
        if (!onnx_in(op, m, &in) || in.rank != 1 || in.d[0] < 0 ||
            n + (size_t)in.d[0] > ONNX_MAX_KNOWN || (k && k->n != (size_t)in.d[0]))
            return 0;
        floats += k && k->f;
        for (size_t e = 0; e < (size_t)in.d[0]; e++, n++) {
            i[n] = k && k->i ? k->i[e] : ONNX_NOT_KNOWN;
            f[n] = k && k->f ? k->f[e] : NAN;
        }
    }
    if (floats && floats != op->n_inputs)
        return 0;
    return floats ? onnx_know_floats(x, op, 0, f, n) : onnx_know_ints(x, op, 0, i, n);
}

int onnx_fold_gather(struct onnx *x, struct nrg_op *op, int what)
{
    const struct onnx_known *data = onnx_in_known(x, op, 0), *index = onnx_in_known(x, op, 1);
    int64_t at[ONNX_MAX_KNOWN];
    struct onnx_shape in;
    if (!data || !index || !index->i || !onnx_in(op, 0, &in) || in.rank != 1)
        return 0;
    for (size_t e = 0; e < index->n; e++) {
        int place;
        if (!onnx_element_known(index->i[e]) || !onnx_axis(index->i[e], (int)data->n, &place))
            return 0;
        at[e] = place;
    }
    return pick_elements(x, op, at, index->n);
}

int onnx_fold_split(struct onnx *x, struct nrg_op *op, int what)
{
    const struct onnx_known *k = onnx_in_known(x, op, 0);
    size_t at = 0;
    int rc = 0;
    for (size_t i = 0; k && k->i && i < op->n_outputs && !rc; i++) {
        const struct nrg_type *type = op->outputs[i]->type;
        if (type->rank != 1 || type->dims[0] < 0 || (size_t)type->dims[0] > k->n - at)
            return 0;
        rc = onnx_know_ints(x, op, i, k->i + at, (size_t)type->dims[0]);
        at += (size_t)type->dims[0];
    }
    return rc;
}

/* Positions in a list; this is how old exporters spelled a range. */
int onnx_fold_nonzero(struct onnx *x, struct nrg_op *op, int what)
{
    const struct onnx_known *k = onnx_in_known(x, op, 0);
    int64_t i[ONNX_MAX_KNOWN];
    struct onnx_shape in, out = {2, NRG_I64, {1, 0}};
    if (!k || !k->i || !onnx_in(op, 0, &in) || in.rank != 1)
        return 0;
    for (size_t e = 0; e < k->n; e++) {
        if (!onnx_element_known(k->i[e]))
            return 0;
        if (k->i[e])
            i[out.d[1]++] = (int64_t)e;
    }
    int rc = onnx_out(x, op, 0, &out);
    return rc ? rc : onnx_know_ints(x, op, 0, i, (size_t)out.d[1]);
}

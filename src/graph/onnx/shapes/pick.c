/*
 * Shape rules of operators that join, cut or pick (see onnx_shapes.h). Slices follow numpy's rules
 * of clamping; exporters write INT64_MAX (or INT32_MAX) for "to the end", which then holds for a
 * dimension that nobody knows too.
 */
#include <string.h>

#include "graph/onnx/shapes/internal.h"

int onnx_rule_concat(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape out, next;
    int axis;
    (void)arg;
    if (!onnx_in(op, 0, &out))
        return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &out);
    if (!onnx_axis(onnx_int(op, "axis", 1), out.rank, &axis))
        return onnx_contradiction(x, op);
    for (size_t i = 1; i < op->n_inputs; i++) {
        if (!onnx_in(op, i, &next)) {
            next = onnx_unknown_dims(out.rank);
        } else if (next.rank != out.rank) {
            return onnx_contradiction(x, op);
        }
        for (int d = 0; d < out.rank; d++)
            if (d == axis)
                out.d[d] = onnx_dim_add(out.d[d], next.d[d]);
            else if (out.d[d] < 0 && next.d[d] != NRG_DIM_UNKNOWN)
                out.d[d] = next.d[d];
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &out);
}

/* Equal parts, the last one smaller when it does not divide. */
static int64_t part(int64_t dim, size_t i, size_t n)
{
    if (dim < 0 || !n)
        return NRG_DIM_UNKNOWN;
    int64_t each = dim / (int64_t)n + (dim % (int64_t)n != 0), left = dim - each * (int64_t)i;
    return left < 0 ? 0 : left < each ? left : each;
}

int onnx_rule_split(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in, out;
    int64_t sizes[ONNX_MAX_KNOWN];
    int n = onnx_list(x, op, "split", 1, sizes, ONNX_MAX_KNOWN), axis = 0, rc = 0;
    (void)arg;
    if (onnx_in(op, 0, &in) && !onnx_axis(onnx_int(op, "axis", 0), in.rank, &axis))
        return onnx_contradiction(x, op);
    for (size_t i = 0; i < op->n_outputs && !rc; i++) {
        out = in;
        if (in.rank >= 0)
            out.d[axis] = n == -1               ? part(in.d[axis], i, op->n_outputs)
                          : n > 0 && (int)i < n ? onnx_dim(sizes[i])
                                                : NRG_DIM_UNKNOWN;
        rc = onnx_out(x, op, i, onnx_in_dtype(op, 0), &out);
    }
    return rc;
}

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* Elements from start to end by step of a dimension; unknown when it cannot be told. */
static int64_t sliced(int64_t dim, int64_t start, int64_t end, int64_t step)
{
    if (!onnx_element_known(start) || !onnx_element_known(step) || !step)
        return NRG_DIM_UNKNOWN;
    if (start == 0 && step == 1 && (end >= INT32_MAX - 1 || onnx_dim(end) == dim))
        return dim;
    if (dim < 0 || !onnx_element_known(end))
        return NRG_DIM_UNKNOWN;
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? dim - 1 : dim;
    start = clamp(start < 0 ? (start < -dim ? low : start + dim) : start, low < 0 ? 0 : low, high);
    end = clamp(end < 0 ? (end < -dim ? low : end + dim) : end, low, high);
    if (step == INT64_MIN || (step > 0 ? end <= start : end >= start))
        return step == INT64_MIN && start > end ? 1 : 0;
    int64_t span = step > 0 ? end - start : start - end, by = step > 0 ? step : -step;
    return span / by + (span % by != 0);
}

int onnx_rule_slice(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    int64_t starts[ONNX_MAX_RANK], ends[ONNX_MAX_RANK], axes[ONNX_MAX_RANK], steps[ONNX_MAX_RANK];
    int n = onnx_list(x, op, "starts", 1, starts, ONNX_MAX_RANK);
    int n_ends = onnx_list(x, op, "ends", 2, ends, ONNX_MAX_RANK);
    int n_axes = onnx_list(x, op, "axes", 3, axes, ONNX_MAX_RANK);
    int n_steps = onnx_list(x, op, NULL, 4, steps, ONNX_MAX_RANK), axis;
    (void)arg;
    if (onnx_in(op, 0, &shape)) {
        int count = n_axes >= 0 ? n_axes : n >= 0 ? n : n_ends;
        if (n_axes == -2 || count < 0)
            shape = onnx_unknown_dims(shape.rank);
        for (int i = 0; i < count && n_axes != -2; i++) {
            if (!onnx_axis(n_axes >= 0 ? axes[i] : i, shape.rank, &axis))
                return onnx_contradiction(x, op);
            bool told = i < n && i < n_ends && (n_steps == -1 || i < n_steps);
            shape.d[axis] =
                told ? sliced(shape.d[axis], starts[i], ends[i], n_steps == -1 ? 1 : steps[i])
                     : NRG_DIM_UNKNOWN;
        }
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

/* The axis of the data is replaced by all dimensions of the indices. */
int onnx_rule_gather(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape data, index, out = {.rank = -1};
    int axis;
    (void)arg;
    if (onnx_in(op, 0, &data) && onnx_in(op, 1, &index)) {
        if (!onnx_axis(onnx_int(op, "axis", 0), data.rank, &axis))
            return onnx_contradiction(x, op);
        if (data.rank - 1 + index.rank <= ONNX_MAX_RANK) {
            out.rank = 0;
            for (int i = 0; i < data.rank; i++) {
                if (i != axis)
                    out.d[out.rank++] = data.d[i];
                for (int k = 0; i == axis && k < index.rank; k++)
                    out.d[out.rank++] = index.d[k];
            }
        }
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &out);
}

/* indices[..., last] pick from data's first `last` dimensions behind the batch ones. */
int onnx_rule_gather_nd(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape data, index, out = {.rank = -1};
    int64_t batch = onnx_int(op, "batch_dims", 0);
    (void)arg;
    if (onnx_in(op, 0, &data) && onnx_in(op, 1, &index) && index.rank > 0 && batch >= 0 &&
        index.d[index.rank - 1] >= 0 && index.d[index.rank - 1] <= data.rank - batch) {
        int rest = (int)(batch + index.d[index.rank - 1]);
        if (index.rank - 1 + data.rank - rest <= ONNX_MAX_RANK) {
            out = index;
            out.rank--;
            for (int i = rest; i < data.rank; i++)
                out.d[out.rank++] = data.d[i];
        }
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &out);
}

int onnx_rule_gather_elements(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    (void)arg;
    onnx_in(op, 1, &shape);
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

/* [rank, how many]: only the data tell how many. */
int onnx_rule_nonzero(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in, out = onnx_unknown_dims(2);
    (void)arg;
    if (onnx_in(op, 0, &in))
        out.d[0] = in.rank;
    return onnx_out(x, op, 0, NRG_I64, &out);
}

int onnx_rule_compress(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    const struct nrg_attr *attr = nrg_op_attr(op, "axis");
    int axis;
    (void)arg;
    if (!attr)
        shape = onnx_unknown_dims(1);
    else if (onnx_in(op, 0, &shape) && onnx_axis(attr->i, shape.rank, &axis))
        shape.d[axis] = NRG_DIM_UNKNOWN;
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

int onnx_rule_crop(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    int64_t sizes[ONNX_MAX_RANK], axes[ONNX_MAX_RANK];
    int n = onnx_list(x, op, NULL, 1, sizes, ONNX_MAX_RANK), axis;
    int n_axes = onnx_list(x, op, "axes", SIZE_MAX, axes, ONNX_MAX_RANK);
    (void)arg;
    if (onnx_in(op, 0, &shape)) {
        if (n < 0)
            shape = onnx_unknown_dims(shape.rank);
        for (int i = 0; i < n && (n_axes < 0 || i < n_axes); i++)
            if (onnx_axis(n_axes >= 0 ? axes[i] : i, shape.rank, &axis))
                shape.d[axis] = onnx_dim(sizes[i]);
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

/*
 * Shape rules of operators that join, cut or pick (see shapes/internal.h). Slices follow numpy's
 * rules of clamping; exporters write INT64_MAX (or INT32_MAX) for "to the end", which also
 * works for an unknown dimension.
 */
#include <string.h>

#include "graph/onnx/shapes/internal.h"

int onnx_rule_concat(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape next;
    int axis;
    if (out->rank < 0)
        return 0;
    if (!onnx_axis(nrg_op_int(op, "axis", 1), out->rank, &axis))
        return onnx_contradiction(x, op);
    for (size_t i = 1; i < op->n_inputs; i++) {
        if (!onnx_in(op, i, &next))
            onnx_unknown_dims(&next, out->rank);
        if (next.rank != out->rank)
            return onnx_contradiction(x, op);
        for (int d = 0; d < out->rank; d++)
            if (d == axis)
                out->d[d] = onnx_dim_add(out->d[d], next.d[d]);
            else if (out->d[d] < 0 && next.d[d] != NRG_DIM_UNKNOWN)
                out->d[d] = next.d[d];
    }
    return 0;
}

/* Equal parts, the last one smaller when it does not divide. */
static int64_t split_part(int64_t dim, size_t i, size_t n)
{
    if (dim < 0 || !n)
        return NRG_DIM_UNKNOWN;
    int64_t each = dim / (int64_t)n + (dim % (int64_t)n != 0), left = dim - each * (int64_t)i;
    return left < 0 ? 0 : left < each ? left : each;
}

/* Sets the outputs itself: there may be any number of them. */
int onnx_rule_split(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    int64_t sizes[ONNX_MAX_KNOWN];
    int n = onnx_list(x, op, "split", 1, sizes, ONNX_MAX_KNOWN), axis = 0, rc = 0;
    if (out->rank >= 0 && !onnx_axis(nrg_op_int(op, "axis", 0), out->rank, &axis))
        return onnx_contradiction(x, op);
    int64_t whole = out->d[axis];
    for (size_t i = 0; i < op->n_outputs && !rc; i++) {
        out->d[axis] = n == -1               ? split_part(whole, i, op->n_outputs)
                       : n > 0 && (int)i < n ? onnx_dim(sizes[i])
                                             : NRG_DIM_UNKNOWN;
        rc = onnx_out(x, op, i, out);
    }
    return rc ? rc : ONNX_DONE;
}

static int64_t clamp_index(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* Elements from start to end by step of a dimension; unknown when they cannot be counted. */
static int64_t sliced_dim(int64_t dim, int64_t start, int64_t end, int64_t step)
{
    if (!onnx_element_known(start) || !onnx_element_known(step) || !step)
        return NRG_DIM_UNKNOWN;
    if (start == 0 && step == 1 && (end >= INT32_MAX - 1 || onnx_dim(end) == dim))
        return dim;
    if (dim <= 0 || !onnx_element_known(end))
        return dim ? NRG_DIM_UNKNOWN : 0;
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? dim - 1 : dim;
    start = clamp_index(start < 0 ? (start < -dim ? low : start + dim) : start, low < 0 ? 0 : low,
                        high);
    end = clamp_index(end < 0 ? (end < -dim ? low : end + dim) : end, low, high);
    if (step == INT64_MIN || (step > 0 ? end <= start : end >= start))
        return step == INT64_MIN && start > end ? 1 : 0;
    int64_t span = step > 0 ? end - start : start - end, by = step > 0 ? step : -step;
    return span / by + (span % by != 0);
}

int onnx_rule_slice(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    int64_t starts[ONNX_MAX_RANK], ends[ONNX_MAX_RANK], axes[ONNX_MAX_RANK], steps[ONNX_MAX_RANK];
    int n = onnx_list(x, op, "starts", 1, starts, ONNX_MAX_RANK);
    int n_ends = onnx_list(x, op, "ends", 2, ends, ONNX_MAX_RANK);
    int n_axes = onnx_list(x, op, "axes", 3, axes, ONNX_MAX_RANK);
    int n_steps = onnx_list(x, op, NULL, 4, steps, ONNX_MAX_RANK), axis;
    int count = n_axes >= 0 ? n_axes : n >= 0 ? n : n_ends;
    if (out->rank < 0)
        return 0;
    if (n_axes == -2 || count < 0) {
        onnx_unknown_dims(out, out->rank);
        return 0;
    }
    for (int i = 0; i < count; i++) {
        if (!onnx_axis(n_axes >= 0 ? axes[i] : i, out->rank, &axis))
            return onnx_contradiction(x, op);
        bool told = i < n && i < n_ends && (n_steps == -1 || i < n_steps);
        out->d[axis] =
            told ? sliced_dim(out->d[axis], starts[i], ends[i], n_steps == -1 ? 1 : steps[i])
                 : NRG_DIM_UNKNOWN;
    }
    return 0;
}

/* The axis of the data is replaced by all dimensions of the indices. */
int onnx_rule_gather(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape data = *out, index;
    int axis;
    out->rank = -1;
    if (data.rank < 0 || !onnx_in(op, 1, &index))
        return 0;
    if (!onnx_axis(nrg_op_int(op, "axis", 0), data.rank, &axis))
        return onnx_contradiction(x, op);
    if (data.rank - 1 + index.rank > ONNX_MAX_RANK)
        return 0;
    out->rank = data.rank - 1 + index.rank;
    for (int i = 0; i < index.rank; i++)
        out->d[axis + i] = index.d[i];
    for (int i = axis + 1; i < data.rank; i++)
        out->d[i - 1 + index.rank] = data.d[i];
    return 0;
}

/* indices[..., last] pick from data's first `last` dimensions behind the batch ones. */
int onnx_rule_gather_nd(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape data = *out, index;
    int64_t batch = nrg_op_int(op, "batch_dims", 0);
    out->rank = -1;
    if (data.rank < 0 || !onnx_in(op, 1, &index) || index.rank < 1 || batch < 0 ||
        index.d[index.rank - 1] < 0 || index.d[index.rank - 1] > data.rank - batch)
        return 0;
    int rest = (int)(batch + index.d[index.rank - 1]);
    if (index.rank - 1 + data.rank - rest > ONNX_MAX_RANK)
        return 0;
    index.dtype = data.dtype;
    *out = index;
    out->rank--;
    for (int i = rest; i < data.rank; i++)
        out->d[out->rank++] = data.d[i];
    return 0;
}

int onnx_rule_gather_elements(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    enum nrg_dtype dtype = out->dtype;
    onnx_in(op, 1, out);
    out->dtype = dtype;
    return 0;
}

/* [rank, count]: the count depends on the data. */
int onnx_rule_nonzero(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    int rank = out->rank;
    onnx_unknown_dims(out, 2);
    out->d[0] = rank < 0 ? NRG_DIM_UNKNOWN : rank;
    return 0;
}

/* Compress, Unique: how many remain along the axis, or of all elements, the data decide. */
int onnx_rule_compress(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    const struct nrg_attr *attr = nrg_op_attr(op, "axis");
    int axis;
    if (!attr)
        onnx_unknown_dims(out, 1);
    else if (onnx_axis(attr->i, out->rank, &axis))
        out->d[axis] = NRG_DIM_UNKNOWN;
    return 0;
}

int onnx_rule_crop(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    int64_t sizes[ONNX_MAX_RANK], axes[ONNX_MAX_RANK];
    int n = onnx_list(x, op, NULL, 1, sizes, ONNX_MAX_RANK), axis;
    int n_axes = onnx_list(x, op, "axes", SIZE_MAX, axes, ONNX_MAX_RANK);
    if (n < 0)
        onnx_unknown_dims(out, out->rank);
    for (int i = 0; i < n && (n_axes < 0 || i < n_axes); i++)
        if (onnx_axis(n_axes >= 0 ? axes[i] : i, out->rank, &axis))
            out->d[axis] = onnx_dim(sizes[i]);
    return 0;
}

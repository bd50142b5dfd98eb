/*
 * Shape rules of windows over spatial dimensions (see onnx_shapes.h): convolutions, pools, resizing
 * and the space-depth exchanges. Layout is N, C, spatial…
 *   out = (in + pads - (dilation * (kernel - 1) + 1)) / stride + 1
 * rounded down, or up with ceil_mode; a last window that would start in the padding behind the
 * input does not count (PyTorch and ONNX Runtime agree on it). auto_pad SAME makes out = in /
 * stride rounded up, VALID means no padding.
 */
#include <math.h>
#include <string.h>

#include "graph/onnx/shapes/internal.h"

#define MAX_SPATIAL  (ONNX_MAX_RANK - 2)
#define DOES_NOT_FIT INT64_MIN

struct window {
    int n; /* spatial dimensions */
    int64_t kernel[MAX_SPATIAL], stride[MAX_SPATIAL], dilation[MAX_SPATIAL];
    int64_t before[MAX_SPATIAL], after[MAX_SPATIAL];
    bool same, up;
};

/* A list attribute of n numbers, all `otherwise` when it is absent; false: wrong length or sign. */
static bool numbers(const struct nrg_op *op, const char *name, int n, int64_t otherwise,
                    int64_t *out)
{
    const struct nrg_attr *attr = nrg_op_attr(op, name);
    bool given = attr && attr->kind == NRG_A_INTS && attr->n;
    if (given && attr->n != (size_t)n)
        return false;
    for (int i = 0; i < n; i++) {
        out[i] = given ? attr->is[i] : otherwise;
        if (out[i] < 0 || out[i] > INT32_MAX)
            return false;
    }
    return true;
}

static bool pads(const struct nrg_op *op, struct window *w)
{
    const char *mode = onnx_str(op, "auto_pad", "NOTSET");
    int64_t both[2 * MAX_SPATIAL];
    w->same = !strncmp(mode, "SAME", 4);
    if (!numbers(op, "pads", 2 * w->n, 0, both))
        return false;
    for (int i = 0; i < w->n; i++) {
        bool none = !strcmp(mode, "VALID");
        w->before[i] = none ? 0 : both[i];
        w->after[i] = none ? 0 : both[w->n + i];
    }
    return true;
}

/* kernel_shape, or the weight's own dimensions (NULL: pools, which must have the attribute). */
static bool window_of(const struct nrg_op *op, int n, const struct onnx_shape *weight,
                      struct window *w)
{
    w->n = n;
    w->up = onnx_int(op, "ceil_mode", 0) != 0;
    if (n < 0 || n > MAX_SPATIAL || !numbers(op, "kernel_shape", n, 0, w->kernel) ||
        !numbers(op, "strides", n, 1, w->stride) || !numbers(op, "dilations", n, 1, w->dilation))
        return false;
    for (int i = 0; i < n; i++) {
        if (!w->kernel[i] && weight && weight->rank == n + 2)
            w->kernel[i] = weight->d[i + 2];
        if (!w->stride[i] || !w->dilation[i])
            return false;
    }
    return pads(op, w);
}

/* A symbol stays where the window keeps the size; DOES_NOT_FIT when it is larger than the input. */
static int64_t slide(const struct window *w, int i, int64_t in)
{
    int64_t reach, padded;
    if (w->kernel[i] <= 0 || __builtin_mul_overflow(w->dilation[i], w->kernel[i] - 1, &reach) ||
        __builtin_add_overflow(in, w->before[i] + w->after[i], &padded))
        return NRG_DIM_UNKNOWN;
    if (w->stride[i] == 1 && (w->same || reach == w->before[i] + w->after[i]))
        return in;
    if (in < 0)
        return NRG_DIM_UNKNOWN;
    if (w->same)
        return in / w->stride[i] + (in % w->stride[i] != 0);
    int64_t room = padded - reach - 1;
    if (room < 0)
        return DOES_NOT_FIT;
    int64_t out = room / w->stride[i] + 1;
    if (w->up && room % w->stride[i] && out * w->stride[i] < in + w->before[i])
        out++;
    return out;
}

static int slide_all(struct onnx *x, struct nrg_op *op, const struct window *w,
                     struct onnx_shape *shape)
{
    for (int i = 0; i < w->n; i++) {
        int64_t out = slide(w, i, shape->d[i + 2]);
        if (out == DOES_NOT_FIT)
            return onnx_contradiction(x, op), -1;
        shape->d[i + 2] = out;
    }
    return 0;
}

static enum nrg_dtype conv_dtype(const struct nrg_op *op)
{
    return onnx_is(op, "ConvInteger")   ? NRG_I32
           : onnx_is(op, "QLinearConv") ? onnx_in_dtype(op, 7)
                                        : onnx_in_dtype(op, 0);
}

/* `arg`: where the weight stands. */
int onnx_rule_conv(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape, weight;
    struct window w;
    bool known = onnx_in(op, 0, &shape), has_weight = onnx_in(op, (size_t)arg, &weight);
    if (!known)
        return onnx_out(x, op, 0, conv_dtype(op), &shape);
    if (shape.rank < 3 || (has_weight && weight.rank != shape.rank) ||
        !window_of(op, shape.rank - 2, has_weight ? &weight : NULL, &w))
        return onnx_contradiction(x, op);
    int64_t in_per_group =
        onnx_dim_mul(has_weight ? weight.d[1] : -1, onnx_dim(onnx_int(op, "group", 1)));
    if (in_per_group >= 0 && shape.d[1] >= 0 && in_per_group != shape.d[1])
        return onnx_contradiction(x, op);
    shape.d[1] = has_weight ? weight.d[0] : NRG_DIM_UNKNOWN;
    return slide_all(x, op, &w, &shape) ? 0 : onnx_out(x, op, 0, conv_dtype(op), &shape);
}

static int64_t unslide(const struct window *w, int i, int64_t in, int64_t extra)
{
    int64_t reach, out;
    if (in < 0 || w->kernel[i] <= 0)
        return NRG_DIM_UNKNOWN;
    if (__builtin_mul_overflow(in - (w->same ? 0 : 1), w->stride[i], &out))
        return NRG_DIM_UNKNOWN;
    if (w->same)
        return out;
    if (__builtin_mul_overflow(w->dilation[i], w->kernel[i] - 1, &reach) ||
        __builtin_add_overflow(out, reach + 1 + extra - w->before[i] - w->after[i], &out))
        return NRG_DIM_UNKNOWN;
    return out < 0 ? DOES_NOT_FIT : out;
}

/* Weight is [C_in, C_out / group, kernel…]; output_shape, when given, is final. */
int onnx_rule_conv_transpose(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape, weight;
    struct window w;
    int64_t extra[MAX_SPATIAL], final[MAX_SPATIAL];
    bool known = onnx_in(op, 0, &shape), has_weight = onnx_in(op, (size_t)arg, &weight);
    const struct nrg_attr *fixed = nrg_op_attr(op, "output_shape");
    if (!known)
        return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
    int n = shape.rank - 2;
    if (n < 1 || !window_of(op, n, has_weight ? &weight : NULL, &w) ||
        !numbers(op, "output_padding", n, 0, extra))
        return onnx_contradiction(x, op);
    bool is_final = fixed && numbers(op, "output_shape", n, 0, final);
    shape.d[1] = onnx_dim_mul(has_weight && weight.rank == n + 2 ? weight.d[1] : -1,
                              onnx_dim(onnx_int(op, "group", 1)));
    for (int i = 0; i < n; i++) {
        int64_t out = is_final ? final[i] : unslide(&w, i, shape.d[i + 2], extra[i]);
        if (out == DOES_NOT_FIT)
            return onnx_contradiction(x, op);
        shape.d[i + 2] = out;
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

int onnx_rule_pool(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    struct window w;
    (void)arg;
    if (onnx_in(op, 0, &shape)) {
        if (shape.rank < 3 || !window_of(op, shape.rank - 2, NULL, &w))
            return onnx_contradiction(x, op);
        if (slide_all(x, op, &w, &shape))
            return 0;
    }
    int rc = onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
    return rc ? rc : onnx_out(x, op, 1, NRG_I64, &shape);
}

int onnx_rule_global_pool(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    (void)arg;
    bool last = onnx_int(op, "channels_last", 0) != 0;
    if (onnx_in(op, 0, &shape))
        for (int i = last ? 1 : 2; i < shape.rank - last; i++)
            shape.d[i] = 1;
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

int onnx_rule_unpool(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    struct window w;
    int64_t given[ONNX_MAX_RANK];
    (void)arg;
    if (onnx_in(op, 0, &shape)) {
        int n = onnx_list(x, op, NULL, 2, given, ONNX_MAX_RANK);
        if (shape.rank < 3 || !window_of(op, shape.rank - 2, NULL, &w))
            return onnx_contradiction(x, op);
        for (int i = 2; i < shape.rank; i++)
            shape.d[i] = n == shape.rank ? onnx_dim(given[i]) : unslide(&w, i - 2, shape.d[i], 0);
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

/* Scales are floats: attribute of Upsample 7, input 1 (Upsample 9, Resize 10) or 2 (Resize 11+). */
static size_t scales_of(const struct onnx *x, const struct nrg_op *op, const double **scales)
{
    const struct nrg_attr *attr = nrg_op_attr(op, "scales");
    const struct onnx_known *known = onnx_in_known(x, op, op->n_inputs > 2 ? 2 : 1);
    if (attr && attr->kind == NRG_A_FLOATS) {
        *scales = attr->fs;
        return attr->n;
    }
    *scales = known ? known->f : NULL;
    return *scales ? known->n : 0;
}

/* In single precision, as runtimes do: 7 x float(11 / 7) must be 11. */
static int64_t scaled(int64_t dim, double scale)
{
    double out = (double)floorf((float)dim * (float)scale);
    if (scale == 1)
        return dim;
    return dim < 0 || !(out >= 0 && out < 1e15) ? NRG_DIM_UNKNOWN : (int64_t)out;
}

int onnx_rule_resize(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    int64_t sizes[ONNX_MAX_RANK], axes[ONNX_MAX_RANK];
    const double *scales;
    (void)arg;
    if (onnx_in(op, 0, &shape)) {
        int n_axes = onnx_list(x, op, "axes", SIZE_MAX, axes, ONNX_MAX_RANK);
        int n = onnx_list(x, op, NULL, 3, sizes, ONNX_MAX_RANK);
        int n_scales = (int)scales_of(x, op, &scales), count = n >= 0 ? n : n_scales, axis;
        if (count != (n_axes >= 0 ? n_axes : shape.rank))
            shape = onnx_unknown_dims(shape.rank);
        else
            for (int i = 0; i < count; i++)
                if (onnx_axis(n_axes >= 0 ? axes[i] : i, shape.rank, &axis))
                    shape.d[axis] = n >= 0 ? onnx_dim(sizes[i]) : scaled(shape.d[axis], scales[i]);
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

/* `arg` 1: DepthToSpace, 0: SpaceToDepth. */
int onnx_rule_depth(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    int64_t block = onnx_int(op, "blocksize", 0);
    if (onnx_in(op, 0, &shape)) {
        if (shape.rank != 4 || block < 1 || block > INT32_MAX)
            return onnx_contradiction(x, op);
        int64_t square = block * block;
        shape.d[1] = !arg             ? onnx_dim_mul(shape.d[1], square)
                     : shape.d[1] < 0 ? NRG_DIM_UNKNOWN
                                      : shape.d[1] / square;
        for (int i = 2; i < 4; i++)
            shape.d[i] = arg              ? onnx_dim_mul(shape.d[i], block)
                         : shape.d[i] < 0 ? NRG_DIM_UNKNOWN
                                          : shape.d[i] / block;
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

/* Regions of interest: [regions, C, height, width]. */
int onnx_rule_roi(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in, regions, shape = onnx_unknown_dims(4);
    int64_t pooled[2];
    (void)arg;
    shape.d[2] = onnx_dim(onnx_int(op, "output_height", 1));
    shape.d[3] = onnx_dim(onnx_int(op, "output_width", 1));
    if (onnx_list(x, op, "pooled_shape", SIZE_MAX, pooled, 2) == 2)
        shape.d[2] = onnx_dim(pooled[0]), shape.d[3] = onnx_dim(pooled[1]);
    if (onnx_in(op, 0, &in) && in.rank == 4)
        shape.d[1] = in.d[1];
    if (onnx_in(op, 1, &regions) && regions.rank == 2)
        shape.d[0] = regions.d[0];
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

/* [N, C, in…] seen through a grid [N, out…, dims]. */
int onnx_rule_grid_sample(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape, grid;
    (void)arg;
    if (onnx_in(op, 0, &shape) && onnx_in(op, 1, &grid) && grid.rank == shape.rank)
        for (int i = 2; i < shape.rank; i++)
            shape.d[i] = grid.d[i - 1];
    else
        shape.rank = -1;
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

int onnx_rule_col2im(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in, shape = {.rank = -1};
    int64_t image[MAX_SPATIAL], block[MAX_SPATIAL], area = 1;
    int n = onnx_list(x, op, NULL, 1, image, MAX_SPATIAL);
    (void)arg;
    if (onnx_in(op, 0, &in) && in.rank == 3 && n > 0 &&
        onnx_list(x, op, NULL, 2, block, MAX_SPATIAL) == n) {
        shape = onnx_unknown_dims(n + 2);
        shape.d[0] = in.d[0];
        for (int i = 0; i < n; i++) {
            shape.d[i + 2] = onnx_dim(image[i]);
            area = onnx_dim_mul(area, onnx_dim(block[i]));
        }
        shape.d[1] = in.d[1] >= 0 && area > 0 ? in.d[1] / area : NRG_DIM_UNKNOWN;
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

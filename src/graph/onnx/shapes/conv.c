/*
 * Shape rules of windows over spatial dimensions (see shapes/internal.h): convolutions, pools,
 * resizing and the space-depth exchanges. Layout is N, C, spatial… out = (in + pads - (dilation *
 * (kernel - 1) + 1)) / stride + 1 rounded down, or up with ceil_mode; a last window that would
 * start in the padding behind the input does not count (PyTorch and ONNX Runtime agree on it).
 * auto_pad SAME makes out = in / stride rounded up, VALID means no padding.
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
static bool read_numbers(const struct nrg_op *op, const char *name, int n, int64_t otherwise,
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

static bool read_pads(const struct nrg_op *op, struct window *w)
{
    const char *mode = nrg_op_text(op, "auto_pad", "NOTSET");
    int64_t both[2 * MAX_SPATIAL];
    w->same = !strncmp(mode, "SAME", 4);
    if (!read_numbers(op, "pads", 2 * w->n, 0, both))
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
    w->up = nrg_op_int(op, "ceil_mode", 0) != 0;
    if (n < 0 || n > MAX_SPATIAL || !read_numbers(op, "kernel_shape", n, 0, w->kernel) ||
        !read_numbers(op, "strides", n, 1, w->stride) ||
        !read_numbers(op, "dilations", n, 1, w->dilation))
        return false;
    for (int i = 0; i < n; i++) {
        if (!w->kernel[i] && weight && weight->rank == n + 2)
            w->kernel[i] = weight->d[i + 2];
        if (!w->stride[i] || !w->dilation[i])
            return false;
    }
    return read_pads(op, w);
}

/* A symbol stays where the window keeps the size; DOES_NOT_FIT when it is larger than the input. */
static int64_t slide_window(const struct window *w, int i, int64_t in)
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

static int slide_windows(struct onnx *x, struct nrg_op *op, const struct window *w,
                         struct onnx_shape *out)
{
    for (int i = 0; i < w->n; i++) {
        int64_t dim = slide_window(w, i, out->d[i + 2]);
        if (dim == DOES_NOT_FIT)
            return onnx_contradiction(x, op);
        out->d[i + 2] = dim;
    }
    return 0;
}

/* `arg`: the position of the weight. */
int onnx_rule_conv(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape weight;
    struct window w;
    bool has_weight = onnx_in(op, (size_t)arg, &weight);
    if (out->rank < 0)
        return 0;
    if (out->rank < 3 || (has_weight && weight.rank != out->rank) ||
        !window_of(op, out->rank - 2, has_weight ? &weight : NULL, &w))
        return onnx_contradiction(x, op);
    int64_t in_per_group =
        onnx_dim_mul(has_weight ? weight.d[1] : -1, onnx_dim(nrg_op_int(op, "group", 1)));
    if (in_per_group >= 0 && out->d[1] >= 0 && in_per_group != out->d[1])
        return onnx_contradiction(x, op);
    out->d[1] = has_weight ? weight.d[0] : NRG_DIM_UNKNOWN;
    return slide_windows(x, op, &w, out);
}

static int64_t unslide_window(const struct window *w, int i, int64_t in, int64_t extra)
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

/* output_shape has the spatial dimensions; some exporters write the batch and channels before. */
static bool read_final(const struct nrg_op *op, int n, int64_t *final)
{
    int64_t all[ONNX_MAX_RANK];
    if (read_numbers(op, "output_shape", n, 0, final))
        return true;
    if (!read_numbers(op, "output_shape", n + 2, 0, all))
        return false;
    memcpy(final, all + 2, (size_t)n * sizeof *final);
    return true;
}

/* Weight is [C_in, C_out / group, kernel…]; output_shape, when given, is final. */
int onnx_rule_conv_transpose(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape weight;
    struct window w;
    int64_t extra[MAX_SPATIAL], final[MAX_SPATIAL];
    bool has_weight = onnx_in(op, (size_t)arg, &weight);
    int n = out->rank - 2;
    if (out->rank < 0)
        return 0;
    if (n < 1 || !window_of(op, n, has_weight ? &weight : NULL, &w) ||
        !read_numbers(op, "output_padding", n, 0, extra))
        return onnx_contradiction(x, op);
    bool is_final = nrg_op_attr(op, "output_shape") != NULL;
    if (is_final && !read_final(op, n, final))
        return onnx_contradiction(x, op);
    out->d[1] = onnx_dim_mul(has_weight && weight.rank == n + 2 ? weight.d[1] : -1,
                             onnx_dim(nrg_op_int(op, "group", 1)));
    for (int i = 0; i < n; i++) {
        int64_t dim = is_final ? final[i] : unslide_window(&w, i, out->d[i + 2], extra[i]);
        if (dim == DOES_NOT_FIT)
            return onnx_contradiction(x, op);
        out->d[i + 2] = dim;
    }
    return 0;
}

int onnx_rule_pool(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct window w;
    int rc = 0;
    if (nrg_op_int(op, "channels_last", 0)) { /* of ONNX Runtime's quantised pools */
        onnx_unknown_dims(out, out->rank);
    } else if (out->rank >= 0) {
        if (out->rank < 3 || !window_of(op, out->rank - 2, NULL, &w))
            return onnx_contradiction(x, op);
        rc = slide_windows(x, op, &w, out);
    }
    out[1] = out[0];
    out[1].dtype = NRG_I64;
    return rc;
}

int onnx_rule_global_pool(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    bool last = nrg_op_int(op, "channels_last", 0) != 0;
    for (int i = last ? 1 : 2; i < out->rank - last; i++)
        out->d[i] = 1;
    return 0;
}

/* Input 2, when it is given, is the output's whole shape. */
int onnx_rule_unpool(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct window w;
    int64_t given[ONNX_MAX_RANK];
    int n = onnx_list(x, op, NULL, 2, given, ONNX_MAX_RANK);
    if (out->rank < 0)
        return 0;
    if (out->rank < 3 || !window_of(op, out->rank - 2, NULL, &w))
        return onnx_contradiction(x, op);
    for (int i = 2; i < out->rank; i++)
        out->d[i] = n == out->rank ? onnx_dim(given[i])
                    : n == -1      ? unslide_window(&w, i - 2, out->d[i], 0)
                                   : NRG_DIM_UNKNOWN;
    return 0;
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
static int64_t scaled_dim(int64_t dim, double scale)
{
    double out = (double)floorf((float)dim * (float)scale);
    if (scale == 1)
        return dim;
    return dim < 0 || !(out >= 0 && out < 1e15) ? NRG_DIM_UNKNOWN : (int64_t)out;
}

/* One axis of Resize: which dimension, its extent, and the size that is asked for. */
struct resized {
    int axis;
    int64_t dim, size;
};

/* size of one axis / its extent as the scale of all: is it smaller (larger) than another's? */
static bool scales_beyond(const struct resized *a, const struct resized *b, bool larger)
{
    double one = (double)a->size * (double)b->dim, two = (double)b->size * (double)a->dim;
    return larger ? one > two : one < two;
}

/*
 * dim x scale, rounded half up. Exactly between two numbers, runtimes round the scale itself first:
 * only a scale that is a float for sure has a sure result.
 */
static int64_t kept_aspect(int64_t dim, const struct resized *by)
{
    int64_t twice;
    if (__builtin_mul_overflow(dim * 2, by->size, &twice) || twice > INT64_MAX - by->dim)
        return NRG_DIM_UNKNOWN;
    bool tie = twice % by->dim == 0 && twice / by->dim % 2;
    if (tie && (by->dim & (by->dim - 1)) && by->size % by->dim)
        return NRG_DIM_UNKNOWN;
    return (twice + by->dim) / (2 * by->dim);
}

/* keep_aspect_ratio_policy: one scale for all axes, so that no size is exceeded (or missed). */
static void keep_aspect(struct resized *axes, int n, bool larger)
{
    const struct resized *by = axes;
    bool known = true;
    for (int i = 0; i < n; i++) {
        known &= axes[i].dim > 0 && axes[i].dim < INT32_MAX && axes[i].size >= 0;
        if (scales_beyond(&axes[i], by, larger))
            by = &axes[i];
    }
    struct resized scale = *by;
    for (int i = 0; i < n; i++)
        axes[i].size = known ? kept_aspect(axes[i].dim, &scale) : NRG_DIM_UNKNOWN;
}

/* Which axes, and what is asked of each; their number, or -1 when it is not known. */
static int resized_axes(const struct onnx *x, const struct nrg_op *op, const struct onnx_shape *in,
                        struct resized *out)
{
    int64_t sizes[ONNX_MAX_RANK], axes[ONNX_MAX_RANK];
    const double *scales;
    int n_axes = onnx_list(x, op, "axes", SIZE_MAX, axes, ONNX_MAX_RANK);
    int n = onnx_list(x, op, NULL, 3, sizes, ONNX_MAX_RANK);
    int n_scales = (int)scales_of(x, op, &scales), count = n >= 0 ? n : n_scales;
    /* A crop scales the region of interest, not the input; runtimes differ. */
    bool crops =
        !strcmp(nrg_op_text(op, "coordinate_transformation_mode", ""), "tf_crop_and_resize");
    if (count != (n_axes >= 0 ? n_axes : in->rank) || (n < 0 && crops))
        return -1;
    for (int i = 0; i < count; i++) {
        if (!onnx_axis(n_axes >= 0 ? axes[i] : i, in->rank, &out[i].axis))
            return -1;
        out[i].dim = in->d[out[i].axis];
        out[i].size = n >= 0 ? onnx_dim(sizes[i]) : scaled_dim(out[i].dim, scales[i]);
    }
    const char *policy =
        n >= 0 ? nrg_op_text(op, "keep_aspect_ratio_policy", "stretch") : "stretch";
    if (count > 0 && strcmp(policy, "stretch"))
        keep_aspect(out, count, !strcmp(policy, "not_smaller"));
    return count;
}

int onnx_rule_resize(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct resized axes[ONNX_MAX_RANK];
    if (out->rank < 0)
        return 0;
    int n = resized_axes(x, op, out, axes);
    if (n < 0)
        onnx_unknown_dims(out, out->rank);
    for (int i = 0; i < n; i++)
        out->d[axes[i].axis] = axes[i].size;
    return 0;
}

/* `arg` 1: DepthToSpace, 0: SpaceToDepth. */
int onnx_rule_depth(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    int64_t block = nrg_op_int(op, "blocksize", 0);
    if (out->rank < 0)
        return 0;
    if (out->rank != 4 || block < 1 || block > INT32_MAX)
        return onnx_contradiction(x, op);
    for (int i = 1; i < 4; i++) {
        int64_t by = i == 1 ? block * block : block;
        bool grows = (i == 1) == !arg;
        out->d[i] = grows ? onnx_dim_mul(out->d[i], by) : onnx_dim_div(out->d[i], by);
    }
    return 0;
}

/* Regions of interest: [regions, C, height, width]. */
int onnx_rule_roi(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape regions;
    int64_t channels = out->rank == 4 ? out->d[1] : NRG_DIM_UNKNOWN;
    int64_t size[2];
    bool pooled = onnx_list(x, op, "pooled_shape", SIZE_MAX, size, 2) == 2;
    onnx_unknown_dims(out, 4);
    out->d[1] = channels;
    out->d[2] = onnx_dim(pooled ? size[0] : nrg_op_int(op, "output_height", 1));
    out->d[3] = onnx_dim(pooled ? size[1] : nrg_op_int(op, "output_width", 1));
    if (onnx_in(op, 1, &regions) && regions.rank == 2)
        out->d[0] = regions.d[0];
    return 0;
}

/* [N, C, in…] seen through a grid [N, out…, dims]. */
int onnx_rule_grid_sample(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape grid;
    if (!onnx_in(op, 1, &grid) || grid.rank != out->rank)
        out->rank = -1;
    for (int i = 2; i < out->rank; i++)
        out->d[i] = grid.d[i - 1];
    return 0;
}

int onnx_rule_col2im(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    int64_t image[MAX_SPATIAL], block[MAX_SPATIAL], area = 1;
    int n = onnx_list(x, op, NULL, 1, image, MAX_SPATIAL);
    if (out->rank != 3 || n <= 0 || onnx_list(x, op, NULL, 2, block, MAX_SPATIAL) != n) {
        out->rank = -1;
        return 0;
    }
    out->rank = n + 2;
    for (int i = 0; i < n; i++) {
        out->d[i + 2] = onnx_dim(image[i]);
        area = onnx_dim_mul(area, onnx_dim(block[i]));
    }
    out->d[1] = onnx_dim_div(out->d[1], area);
    return 0;
}

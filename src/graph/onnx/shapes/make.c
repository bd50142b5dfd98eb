/*
 * Shape rules of operators that make tensors from attributes or from shapes, and of quantisation
 * (see onnx_shapes.h). Constant and Shape are where known contents come from.
 */
#include <math.h>
#include <string.h>

#include "graph/onnx/shapes/internal.h"

static const struct onnx_shape scalar = {.rank = 0};

static int constant_tensor(struct onnx *x, struct nrg_op *op, const struct nrg_attr *attr)
{
    struct nrg_value *out = op->outputs[0];
    out->type = attr->tensor;
    return attr->is   ? onnx_know_ints(x, op, 0, attr->is, attr->n)
           : attr->fs ? onnx_know_floats(x, op, 0, attr->fs, attr->n)
                      : 0;
}

/* One of value, value_int, value_ints, value_float, value_floats, value_string(s). */
int onnx_rule_constant(struct onnx *x, struct nrg_op *op, int arg)
{
    const struct nrg_attr *attr = op->n_attrs ? &op->attrs[0] : NULL;
    struct onnx_shape list = {1, {attr ? (int64_t)attr->n : 0}};
    int rc = 0;
    (void)arg;
    if (!attr || !op->n_outputs)
        return 0;
    if (attr->n > ONNX_MAX_KNOWN && attr->kind != NRG_A_TENSOR)
        return onnx_out(x, op, 0, attr->is ? NRG_I64 : NRG_F32, &list);
    switch (attr->kind) {
    case NRG_A_TENSOR:
        return constant_tensor(x, op, attr);
    case NRG_A_INT:
        rc = onnx_out(x, op, 0, NRG_I64, &scalar);
        return rc ? rc : onnx_know_ints(x, op, 0, &attr->i, 1);
    case NRG_A_INTS:
        rc = onnx_out(x, op, 0, NRG_I64, &list);
        return rc ? rc : onnx_know_ints(x, op, 0, attr->is, attr->n);
    case NRG_A_FLOAT:
        rc = onnx_out(x, op, 0, NRG_F32, &scalar);
        return rc ? rc : onnx_know_floats(x, op, 0, &attr->f, 1);
    case NRG_A_FLOATS:
        rc = onnx_out(x, op, 0, NRG_F32, &list);
        return rc ? rc : onnx_know_floats(x, op, 0, attr->fs, attr->n);
    default:
        return onnx_out(x, op, 0, NRG_STRING_DTYPE, attr->kind == NRG_A_STRING ? &scalar : &list);
    }
}

/* With start and end (opset 15), counted like a slice. */
int onnx_rule_shape(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in, out = onnx_unknown_dims(1);
    int64_t elements[ONNX_MAX_RANK];
    (void)arg;
    if (!onnx_in(op, 0, &in))
        return onnx_out(x, op, 0, NRG_I64, &out);
    int64_t start = onnx_int(op, "start", 0), end = onnx_int(op, "end", in.rank);
    start += start < 0 ? in.rank : 0;
    end += end < 0 ? in.rank : 0;
    start = start < 0 ? 0 : start;
    end = end > in.rank ? in.rank : end;
    out.d[0] = end > start ? end - start : 0;
    for (int64_t i = 0; i < out.d[0]; i++)
        elements[i] = onnx_element(in.d[start + i]);
    int rc = onnx_out(x, op, 0, NRG_I64, &out);
    return rc || !op->n_outputs ? rc : onnx_know_ints(x, op, 0, elements, (size_t)out.d[0]);
}

int onnx_rule_size(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in;
    int64_t product = 1;
    (void)arg;
    int rc = onnx_out(x, op, 0, NRG_I64, &scalar);
    if (rc || !onnx_in(op, 0, &in) || !op->n_outputs)
        return rc;
    for (int i = 0; i < in.rank; i++)
        product = onnx_dim_mul(product, in.d[i]);
    product = onnx_element(product);
    return onnx_know_ints(x, op, 0, &product, 1);
}

static struct onnx_shape from_elements(const struct onnx *x, const struct nrg_op *op, size_t i)
{
    int64_t list[ONNX_MAX_RANK];
    struct onnx_shape length, shape = {.rank = onnx_list(x, op, NULL, i, list, ONNX_MAX_RANK)};
    for (int k = 0; k < shape.rank; k++)
        shape.d[k] = onnx_dim(list[k]);
    if (shape.rank < 0)
        shape = onnx_unknown_dims(onnx_in(op, i, &length) && length.rank == 1 && length.d[0] >= 0 &&
                                          length.d[0] <= ONNX_MAX_RANK
                                      ? (int)length.d[0]
                                      : -1);
    return shape;
}

int onnx_rule_constant_of_shape(struct onnx *x, struct nrg_op *op, int arg)
{
    const struct nrg_attr *value = nrg_op_attr(op, "value");
    struct onnx_shape shape = from_elements(x, op, 0);
    int64_t v[ONNX_MAX_KNOWN], n = 1;
    (void)arg;
    bool typed = value && value->kind == NRG_A_TENSOR && value->tensor;
    int rc = onnx_out(x, op, 0, typed ? value->tensor->dtype : NRG_F32, &shape);
    if (rc || !op->n_outputs || !typed || !value->is || value->n != 1 || shape.rank < 0)
        return rc;
    for (int i = 0; i < shape.rank; i++)
        n = onnx_dim_mul(n, shape.d[i]);
    if (n < 0 || n > ONNX_MAX_KNOWN)
        return 0;
    for (int64_t i = 0; i < n; i++)
        v[i] = value->is[0];
    return onnx_know_ints(x, op, 0, v, (size_t)n);
}

static bool first_int(const struct onnx_known *known, int64_t *out)
{
    if (!known || !known->i || known->n != 1 || !onnx_element_known(known->i[0]))
        return false;
    *out = known->i[0];
    return true;
}

static int64_t range_length(int64_t start, int64_t end, int64_t step)
{
    int64_t span;
    if (!step || step == INT64_MIN || __builtin_sub_overflow(end, start, &span) ||
        span == INT64_MIN)
        return NRG_DIM_UNKNOWN;
    int64_t by = step < 0 ? -step : step;
    if ((span > 0) != (step > 0))
        return 0;
    span = span < 0 ? -span : span;
    return span / by + (span % by != 0);
}

int onnx_rule_range(struct onnx *x, struct nrg_op *op, int arg)
{
    const struct onnx_known *k[3];
    struct onnx_shape shape = onnx_unknown_dims(1);
    int64_t start, end, step, v[ONNX_MAX_KNOWN];
    (void)arg;
    for (size_t i = 0; i < 3; i++)
        k[i] = onnx_in_known(x, op, i);
    bool whole = first_int(k[0], &start) && first_int(k[1], &end) && first_int(k[2], &step);
    if (whole)
        shape.d[0] = range_length(start, end, step);
    else if (k[0] && k[1] && k[2] && k[0]->f && k[1]->f && k[2]->f && k[0]->n && k[1]->n &&
             k[2]->n) {
        double n = ceil((k[1]->f[0] - k[0]->f[0]) / k[2]->f[0]);
        shape.d[0] = n >= 0 && n < 1e15 ? (int64_t)n : n < 0 ? 0 : NRG_DIM_UNKNOWN;
    } else if (first_int(k[0], &start) && first_int(k[2], &step) && !start && step == 1 && k[1] &&
               k[1]->i && k[1]->n == 1) {
        shape.d[0] = onnx_dim(k[1]->i[0]); /* as long as a symbol says */
    }
    int rc = onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
    if (rc || !whole || shape.d[0] < 0 || shape.d[0] > ONNX_MAX_KNOWN || !op->n_outputs)
        return rc;
    for (int64_t i = 0; i < shape.d[0]; i++)
        v[i] = start + i * step;
    return onnx_know_ints(x, op, 0, v, (size_t)shape.d[0]);
}

int onnx_rule_one_hot(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in, out = {.rank = -1};
    int64_t depth[1];
    int axis;
    (void)arg;
    bool known = onnx_list(x, op, NULL, 1, depth, 1) == 1;
    if (onnx_in(op, 0, &in) && in.rank < ONNX_MAX_RANK) {
        if (!onnx_axis(onnx_int(op, "axis", -1), in.rank + 1, &axis))
            return onnx_contradiction(x, op);
        out.rank = in.rank + 1;
        for (int i = 0; i < out.rank; i++)
            out.d[i] =
                i == axis ? (known ? onnx_dim(depth[0]) : NRG_DIM_UNKNOWN) : in.d[i - (i > axis)];
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 2), &out);
}

/* EyeLike, Bernoulli and the Random…Like: input's shape, `dtype` if given. */
int onnx_rule_random_like(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    int64_t code = onnx_int(op, "dtype", 0);
    (void)arg;
    onnx_in(op, 0, &shape);
    return onnx_out(x, op, 0, code ? onnx_dtype((uint64_t)code) : onnx_in_dtype(op, 0), &shape);
}

int onnx_rule_random(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    shape.rank = onnx_list(x, op, "shape", SIZE_MAX, shape.d, ONNX_MAX_RANK);
    for (int i = 0; i < shape.rank; i++)
        shape.d[i] = onnx_dim(shape.d[i]);
    if (shape.rank < 0)
        shape.rank = -1;
    return onnx_out(x, op, 0, onnx_dtype((uint64_t)onnx_int(op, "dtype", arg)), &shape);
}

int onnx_rule_multinomial(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in, shape = onnx_unknown_dims(2);
    if (onnx_in(op, 0, &in) && in.rank == 2)
        shape.d[0] = in.d[0];
    shape.d[1] = onnx_dim(onnx_int(op, "sample_size", 1));
    return onnx_out(x, op, 0, onnx_dtype((uint64_t)onnx_int(op, "dtype", arg)), &shape);
}

int onnx_rule_window(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape = onnx_unknown_dims(1);
    int64_t size[1];
    if (onnx_list(x, op, NULL, 0, size, 1) == 1)
        shape.d[0] = onnx_dim(size[0]);
    return onnx_out(x, op, 0, onnx_dtype((uint64_t)onnx_int(op, "output_datatype", arg)), &shape);
}

/* The zero point has the quantised type; without one it is uint8, unless output_dtype says. */
int onnx_rule_quantize(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    onnx_in(op, 0, &shape);
    enum nrg_dtype dtype = onnx_has(op, 2)
                               ? onnx_in_dtype(op, 2)
                               : onnx_dtype((uint64_t)onnx_int(op, "output_dtype", arg));
    return onnx_out(x, op, 0, dtype, &shape);
}

int onnx_rule_dequantize(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    (void)arg;
    onnx_in(op, 0, &shape);
    enum nrg_dtype scale = onnx_in_dtype(op, 1);
    return onnx_out(x, op, 0, scale ? scale : NRG_F32, &shape);
}

int onnx_rule_dynamic_quantize(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    (void)arg;
    onnx_in(op, 0, &shape);
    int rc = onnx_out(x, op, 0, NRG_U8, &shape);
    if (!rc)
        rc = onnx_out(x, op, 1, NRG_F32, &scalar);
    return rc ? rc : onnx_out(x, op, 2, NRG_U8, &scalar);
}

/* Two quantised operands with scale and zero point each: operands 0 and 3. */
int onnx_rule_qlinear(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape a, b;
    (void)arg;
    if (!onnx_in(op, 0, &a) || !onnx_in(op, 3, &b))
        a.rank = -1;
    else if (!onnx_broadcast(&a, &b))
        return onnx_contradiction(x, op);
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &a);
}

int onnx_rule_unique(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape = onnx_unknown_dims(1), flat = onnx_unknown_dims(1);
    const struct nrg_attr *attr = nrg_op_attr(op, "axis");
    int axis, rc;
    (void)arg;
    if (attr && onnx_in(op, 0, &shape) && onnx_axis(attr->i, shape.rank, &axis))
        shape.d[axis] = NRG_DIM_UNKNOWN;
    rc = onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
    for (size_t i = 1; i < 4 && !rc; i++)
        rc = onnx_out(x, op, i, NRG_I64, &flat);
    return rc;
}

int onnx_rule_nms(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape = {2, {NRG_DIM_UNKNOWN, 3}};
    (void)arg;
    return onnx_out(x, op, 0, NRG_I64, &shape);
}

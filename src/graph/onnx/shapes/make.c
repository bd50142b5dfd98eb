/*
 * Shape rules of operators that make tensors from attributes or from shapes, and of quantisation
 * (see shapes/internal.h). Constant and Shape are where known contents come from.
 */
#include <math.h>
#include <string.h>

#include "graph/onnx/shapes/internal.h"

static int constant_tensor(struct onnx *x, struct nrg_op *op, const struct nrg_attr *attr)
{
    int rc = attr->is   ? onnx_know_ints(x, op, 0, attr->is, attr->n)
             : attr->fs ? onnx_know_floats(x, op, 0, attr->fs, attr->n)
                        : 0;
    op->outputs[0]->type = attr->tensor;
    return rc ? rc : ONNX_DONE;
}

/* One of value, value_int, value_ints, value_float, value_floats, value_string(s). */
int onnx_rule_constant(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    const struct nrg_attr *attr = op->n_attrs ? &op->attrs[0] : NULL;
    if (!attr || !op->n_outputs)
        return ONNX_DONE;
    if (attr->kind == NRG_A_TENSOR)
        return constant_tensor(x, op, attr);
    bool real = attr->kind == NRG_A_FLOAT || attr->kind == NRG_A_FLOATS;
    bool one = attr->kind == NRG_A_INT || attr->kind == NRG_A_FLOAT;
    bool text = !real && !one && attr->kind != NRG_A_INTS;
    size_t n = one ? 1 : attr->n;
    out->dtype = text ? NRG_STRING_DTYPE : real ? NRG_F32 : NRG_I64;
    out->rank = one || attr->kind == NRG_A_STRING ? 0 : 1;
    out->d[0] = (int64_t)attr->n;
    if (text || n > ONNX_MAX_KNOWN)
        return 0;
    return real ? onnx_know_floats(x, op, 0, one ? &attr->f : attr->fs, n)
                : onnx_know_ints(x, op, 0, one ? &attr->i : attr->is, n);
}

/* With start and end (opset 15), counted like a slice. */
int onnx_rule_shape(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape in = *out;
    int64_t elements[ONNX_MAX_RANK];
    onnx_unknown_dims(out, 1);
    if (in.rank < 0)
        return 0;
    int64_t start = nrg_op_int(op, "start", 0), end = nrg_op_int(op, "end", in.rank);
    start += start < 0 ? in.rank : 0;
    end += end < 0 ? in.rank : 0;
    start = start < 0 ? 0 : start;
    end = end > in.rank ? in.rank : end;
    out->d[0] = end > start ? end - start : 0;
    for (int64_t i = 0; i < out->d[0]; i++)
        elements[i] = onnx_element(in.d[start + i]);
    return onnx_know_ints(x, op, 0, elements, (size_t)out->d[0]);
}

int onnx_rule_size(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    int64_t product = onnx_element(onnx_elements(out));
    bool known = out->rank >= 0;
    out->rank = 0;
    return known ? onnx_know_ints(x, op, 0, &product, 1) : 0;
}

int onnx_rule_constant_of_shape(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    const struct nrg_attr *value = nrg_op_attr(op, "value");
    bool typed = value && value->kind == NRG_A_TENSOR && value->tensor;
    int64_t v[ONNX_MAX_KNOWN];
    double f[ONNX_MAX_KNOWN];
    onnx_list_dims(x, op, NULL, 0, out);
    out->dtype = typed ? value->tensor->dtype : NRG_F32;
    int64_t n = onnx_elements(out);
    bool whole = typed && value->is, real = !value || (typed && value->fs);
    if ((!whole && !real) || (value && value->n != 1) || n < 0 || n > ONNX_MAX_KNOWN)
        return 0;
    for (int64_t i = 0; i < n; i++) {
        v[i] = whole ? value->is[0] : 0;
        f[i] = real && value ? value->fs[0] : 0;
    }
    return whole ? onnx_know_ints(x, op, 0, v, (size_t)n)
                 : onnx_know_floats(x, op, 0, f, (size_t)n);
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

int onnx_rule_range(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    const struct onnx_known *k[3];
    int64_t start, end, step, v[ONNX_MAX_KNOWN];
    for (size_t i = 0; i < 3; i++)
        k[i] = onnx_in_known(x, op, i);
    bool whole = first_int(k[0], &start) && first_int(k[1], &end) && first_int(k[2], &step);
    onnx_unknown_dims(out, 1);
    if (whole)
        out->d[0] = range_length(start, end, step);
    else if (k[0] && k[1] && k[2] && k[0]->f && k[1]->f && k[2]->f && k[0]->n && k[1]->n &&
             k[2]->n) {
        double n = ceil((k[1]->f[0] - k[0]->f[0]) / k[2]->f[0]);
        out->d[0] = n >= 0 && n < 1e15 ? (int64_t)n : n < 0 ? 0 : NRG_DIM_UNKNOWN;
    } else if (first_int(k[0], &start) && first_int(k[2], &step) && !start && step == 1 && k[1] &&
               k[1]->i && k[1]->n == 1) {
        out->d[0] = onnx_dim(k[1]->i[0]); /* a symbol, perhaps */
    }
    if (!whole || out->d[0] < 0 || out->d[0] > ONNX_MAX_KNOWN)
        return 0;
    for (int64_t i = 0; i < out->d[0]; i++)
        v[i] = start + i * step;
    return onnx_know_ints(x, op, 0, v, (size_t)out->d[0]);
}

int onnx_rule_one_hot(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    int axis;
    if (out->rank < 0 || out->rank == ONNX_MAX_RANK) {
        out->rank = -1;
        return 0;
    }
    if (!onnx_axis(nrg_op_int(op, "axis", -1), ++out->rank, &axis))
        return onnx_contradiction(x, op);
    for (int i = out->rank - 1; i > axis; i--)
        out->d[i] = out->d[i - 1];
    out->d[axis] = onnx_one_dim(x, op, NULL, 1);
    return 0;
}

/* EyeLike, Bernoulli and the Random…Like: input's shape, `dtype` if given. */
int onnx_rule_random_like(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    if (nrg_op_int(op, "dtype", 0))
        out->dtype = onnx_attr_dtype(op, "dtype", 0);
    return 0;
}

int onnx_rule_random(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    onnx_list_dims(x, op, "shape", SIZE_MAX, out);
    out->dtype = onnx_attr_dtype(op, "dtype", arg);
    return 0;
}

int onnx_rule_multinomial(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    int64_t batch = out->rank == 2 ? out->d[0] : NRG_DIM_UNKNOWN;
    *out = (struct onnx_shape){2, onnx_attr_dtype(op, "dtype", arg), {batch}};
    out->d[1] = onnx_dim(nrg_op_int(op, "sample_size", 1));
    return 0;
}

int onnx_rule_window(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    out->rank = 1;
    out->d[0] = onnx_one_dim(x, op, NULL, 0);
    out->dtype = onnx_attr_dtype(op, "output_datatype", arg);
    return 0;
}

/* The zero point has the quantised type; without one it is uint8, unless output_dtype says. */
int onnx_rule_quantize(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    out->dtype = onnx_has(op, 2) ? onnx_in_dtype(op, 2) : onnx_attr_dtype(op, "output_dtype", arg);
    return 0;
}

int onnx_rule_dequantize(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    enum nrg_dtype scale = onnx_in_dtype(op, 1);
    out->dtype = scale ? scale : NRG_F32;
    return 0;
}

/* The quantised tensor, its scale and its zero point. */
int onnx_rule_dynamic_quantize(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    out[1] = (struct onnx_shape){0, NRG_F32, {0}};
    out[2] = (struct onnx_shape){0, NRG_U8, {0}};
    return 0;
}

/* Two quantised operands with scale and zero point each: operands 0 and 3. */
int onnx_rule_qlinear(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape b;
    if (out->rank < 0 || !onnx_in(op, 3, &b))
        out->rank = -1;
    else if (!onnx_broadcast(out, &b))
        return onnx_contradiction(x, op);
    return 0;
}

int onnx_rule_unique(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    for (size_t i = 1; i < 4; i++)
        out[i] = (struct onnx_shape){1, NRG_I64, {NRG_DIM_UNKNOWN}};
    return onnx_rule_compress(x, op, arg, out);
}

int onnx_rule_nms(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    *out = (struct onnx_shape){2, NRG_I64, {NRG_DIM_UNKNOWN, 3}};
    return 0;
}

/*
 * Shape rules of arithmetic (see onnx_shapes.h): elementwise operators with broadcasting, matrix
 * products, reductions, and what picks or sorts along an axis. Quantised forms have the same
 * shapes with other operand positions, which stand in the table as `arg`.
 */
#include <string.h>

#include "graph/onnx/shapes/internal.h"

/* The output is like input `arg`; further outputs (masks, statistics) are left unknown. */
int onnx_rule_same(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    onnx_in(op, (size_t)arg, &shape);
    return onnx_out(x, op, 0, onnx_in_dtype(op, (size_t)arg), &shape);
}

/* The same shape in another dtype: `to` of Cast, of input 1 for CastLike. */
int onnx_rule_cast(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    onnx_in(op, 0, &shape);
    enum nrg_dtype dtype = onnx_is(op, "CastLike") ? onnx_in_dtype(op, 1)
                                                   : onnx_dtype((uint64_t)onnx_int(op, "to", arg));
    return onnx_out(x, op, 0, dtype, &shape);
}

int onnx_rule_predicate(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    (void)arg;
    onnx_in(op, 0, &shape);
    return onnx_out(x, op, 0, NRG_BOOL, &shape);
}

/* Inputs from `first` on, broadcast; rank -1 when one is unknown. false: contradiction. */
static bool all_inputs(const struct nrg_op *op, size_t first, struct onnx_shape *out)
{
    struct onnx_shape next;
    onnx_in(op, first, out);
    for (size_t i = first + 1; i < op->n_inputs && out->rank >= 0; i++) {
        if (!onnx_in(op, i, &next))
            out->rank = -1;
        else if (!onnx_broadcast(out, &next))
            return false;
    }
    return true;
}

static int broadcast_as(struct onnx *x, struct nrg_op *op, enum nrg_dtype dtype)
{
    struct onnx_shape shape;
    if (onnx_int(op, "broadcast", 0)) /* before opset 7: only the second operand is stretched */
        onnx_in(op, 0, &shape);
    else if (!all_inputs(op, 0, &shape))
        return onnx_contradiction(x, op);
    return onnx_out(x, op, 0, dtype, &shape);
}

int onnx_rule_broadcast(struct onnx *x, struct nrg_op *op, int arg)
{
    (void)arg;
    return broadcast_as(x, op, onnx_in_dtype(op, 0));
}

int onnx_rule_compare(struct onnx *x, struct nrg_op *op, int arg)
{
    (void)arg;
    return broadcast_as(x, op, NRG_BOOL);
}

int onnx_rule_where(struct onnx *x, struct nrg_op *op, int arg)
{
    (void)arg;
    return broadcast_as(x, op, onnx_in_dtype(op, 1));
}

/* [.., M, K] x [.., K, N]; a vector is a row on the left and a column on the right. */
static bool multiply(struct onnx_shape a, struct onnx_shape b, struct onnx_shape *out)
{
    bool row = a.rank == 1, column = b.rank == 1, bad = false;
    if (a.rank < 1 || b.rank < 1 || a.rank == ONNX_MAX_RANK || b.rank == ONNX_MAX_RANK)
        return false;
    if (row)
        a = (struct onnx_shape){2, {1, a.d[0]}};
    if (column)
        b = (struct onnx_shape){2, {b.d[0], 1}};
    int64_t m = a.d[a.rank - 2], k = a.d[a.rank - 1], n = b.d[b.rank - 1];
    if (k >= 0 && b.d[b.rank - 2] >= 0 && k != b.d[b.rank - 2])
        return false;
    a.rank -= 2;
    b.rank -= 2;
    bad = !onnx_broadcast(&a, &b);
    if (!row)
        a.d[a.rank++] = m;
    if (!column)
        a.d[a.rank++] = n;
    *out = a;
    return !bad;
}

static void swap_last(struct onnx_shape *s, bool yes)
{
    if (!yes || s->rank < 2)
        return;
    int64_t last = s->d[s->rank - 1];
    s->d[s->rank - 1] = s->d[s->rank - 2];
    s->d[s->rank - 2] = last;
}

/* `arg`: where the second operand stands. Integer products sum up in int32. */
int onnx_rule_matmul(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape a, b, out = {.rank = -1};
    enum nrg_dtype dtype = onnx_is(op, "MatMulInteger")          ? NRG_I32
                           : onnx_is(op, "QLinearMatMul")        ? onnx_in_dtype(op, 7)
                           : onnx_is(op, "MatMulIntegerToFloat") ? NRG_F32
                                                                 : onnx_in_dtype(op, 0);
    bool known_a = onnx_in(op, 0, &a), known = onnx_in(op, (size_t)arg, &b) && known_a;
    swap_last(&a, onnx_int(op, "transA", 0));
    swap_last(&b, onnx_int(op, "transB", 0));
    if (known && !multiply(a, b, &out))
        return onnx_contradiction(x, op);
    return onnx_out(x, op, 0, dtype, &out);
}

/* `arg`: where B stands (QGemm has scales between). */
int onnx_rule_gemm(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape a, b, out = onnx_unknown_dims(2);
    bool known_a = onnx_in(op, 0, &a), known_b = onnx_in(op, (size_t)arg, &b);
    if ((known_a && a.rank != 2) || (known_b && b.rank != 2))
        return onnx_contradiction(x, op);
    swap_last(&a, onnx_int(op, "transA", 0));
    swap_last(&b, onnx_int(op, "transB", 0));
    if (known_a && known_b && a.d[1] >= 0 && b.d[0] >= 0 && a.d[1] != b.d[0])
        return onnx_contradiction(x, op);
    if (known_a)
        out.d[0] = a.d[0];
    if (known_b)
        out.d[1] = b.d[1];
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &out);
}

/* Weights packed in 4 bits and the like: their real extents are attributes. */
int onnx_rule_matmul_nbits(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    (void)arg;
    if (onnx_in(op, 0, &shape) && shape.rank > 0)
        shape.d[shape.rank - 1] = onnx_dim(onnx_int(op, "N", NRG_DIM_UNKNOWN));
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

/* Which axes a reduction takes; false: not known. None given means all. */
static bool reduced_axes(const struct onnx *x, const struct nrg_op *op, int rank, bool *gone)
{
    int64_t axes[ONNX_MAX_RANK];
    int n = onnx_list(x, op, "axes", 1, axes, ONNX_MAX_RANK), axis;
    bool all = n == -1 || n == 0;
    if (n == -2)
        return false;
    if (all && onnx_int(op, "noop_with_empty_axes", 0))
        all = false;
    for (int i = 0; i < rank; i++)
        gone[i] = all;
    for (int i = 0; i < n; i++)
        if (onnx_axis(axes[i], rank, &axis))
            gone[axis] = true;
    return true;
}

static void remove_axes(struct onnx_shape *shape, const bool *gone, bool keep)
{
    int kept = 0;
    for (int i = 0; i < shape->rank; i++)
        if (!gone[i] || keep)
            shape->d[kept++] = gone[i] ? 1 : shape->d[i];
    shape->rank = kept;
}

int onnx_rule_reduce(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    bool gone[ONNX_MAX_RANK], keep = onnx_int(op, "keepdims", 1) != 0;
    (void)arg;
    if (onnx_in(op, 0, &shape)) {
        if (reduced_axes(x, op, shape.rank, gone))
            remove_axes(&shape, gone, keep);
        else
            shape = onnx_unknown_dims(keep ? shape.rank : -1);
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

int onnx_rule_arg(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    bool gone[ONNX_MAX_RANK] = {false};
    int axis;
    (void)arg;
    if (onnx_in(op, 0, &shape)) {
        if (!onnx_axis(onnx_int(op, "axis", 0), shape.rank, &axis))
            return onnx_contradiction(x, op);
        gone[axis] = true;
        remove_axes(&shape, gone, onnx_int(op, "keepdims", 1) != 0);
    }
    return onnx_out(x, op, 0, NRG_I64, &shape);
}

/* k is an attribute before opset 10, then an input. */
int onnx_rule_topk(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    int64_t k[1];
    int axis;
    (void)arg;
    if (onnx_in(op, 0, &shape)) {
        if (!onnx_axis(onnx_int(op, "axis", -1), shape.rank, &axis))
            return onnx_contradiction(x, op);
        shape.d[axis] = onnx_list(x, op, "k", 1, k, 1) == 1 ? onnx_dim(k[0]) : NRG_DIM_UNKNOWN;
    }
    int rc = onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
    return rc ? rc : onnx_out(x, op, 1, NRG_I64, &shape);
}

int onnx_rule_einsum(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in[8], out = {.rank = -1};
    int64_t product;
    bool known = op->n_inputs <= 8;
    (void)arg;
    for (size_t i = 0; known && i < op->n_inputs; i++)
        known = onnx_in(op, i, &in[i]);
    if (known && !onnx_einsum_shape(onnx_str(op, "equation", ""), in, op->n_inputs, &out, &product))
        return onnx_contradiction(x, op);
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &out);
}

/* The last two dimensions go. */
int onnx_rule_det(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    (void)arg;
    if (onnx_in(op, 0, &shape))
        shape.rank = shape.rank >= 2 ? shape.rank - 2 : -1;
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
}

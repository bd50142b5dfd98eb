/*
 * Shape rules of arithmetic (see shapes/internal.h): elementwise operators with broadcasting,
 * matrix products, reductions, and what picks or sorts along an axis. Quantised forms have the same
 * shapes with other operand positions, which the table has as `arg`.
 */
#include <string.h>

#include "graph/onnx/shapes/internal.h"

/* The same shape in another dtype: `to` of Cast (the table says for CastLike). */
int onnx_rule_cast(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    out->dtype = onnx_attr_dtype(op, "to", arg);
    return 0;
}

int onnx_rule_broadcast(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape next;
    if (nrg_op_int(op, "broadcast", 0)) /* before opset 7: only the second operand is stretched */
        return 0;
    for (size_t i = 1; i < op->n_inputs && out->rank >= 0; i++) {
        if (!onnx_in(op, i, &next))
            out->rank = -1;
        else if (!onnx_broadcast(out, &next))
            return onnx_contradiction(x, op);
    }
    return 0;
}

/* [.., M, K] x [.., K, N]; a vector is a row on the left and a column on the right. */
static bool multiply_shapes(struct onnx_shape a, struct onnx_shape b, struct onnx_shape *out)
{
    bool row = a.rank == 1, column = b.rank == 1, bad = false;
    if (a.rank < 1 || b.rank < 1 || a.rank == ONNX_MAX_RANK || b.rank == ONNX_MAX_RANK)
        return false;
    if (row)
        a = (struct onnx_shape){2, a.dtype, {1, a.d[0]}};
    if (column)
        b = (struct onnx_shape){2, b.dtype, {b.d[0], 1}};
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

/* `arg`: the position of the second operand. */
int onnx_rule_matmul(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape b;
    bool known = onnx_in(op, (size_t)arg, &b) && out->rank >= 0 &&
                 !nrg_op_int(op, "transBatchA", 0) && !nrg_op_int(op, "transBatchB", 0);
    swap_last(out, nrg_op_int(op, "transA", 0));
    swap_last(&b, nrg_op_int(op, "transB", 0));
    if (known && !multiply_shapes(*out, b, out))
        return onnx_contradiction(x, op);
    if (!known)
        out->rank = -1;
    return 0;
}

/* `arg`: the position of B (QGemm has scales between). */
int onnx_rule_gemm(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape a = *out, b;
    bool known_a = a.rank >= 0, known_b = onnx_in(op, (size_t)arg, &b);
    if ((known_a && a.rank != 2) || (known_b && b.rank != 2))
        return onnx_contradiction(x, op);
    swap_last(&a, nrg_op_int(op, "transA", 0));
    swap_last(&b, nrg_op_int(op, "transB", 0));
    if (known_a && known_b && a.d[1] >= 0 && b.d[0] >= 0 && a.d[1] != b.d[0])
        return onnx_contradiction(x, op);
    onnx_unknown_dims(out, 2);
    if (known_a)
        out->d[0] = a.d[0];
    if (known_b)
        out->d[1] = b.d[1];
    return 0;
}

/* Weights packed in 4 bits and the like: their real extents are attributes. */
int onnx_rule_matmul_nbits(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    if (out->rank > 0)
        out->d[out->rank - 1] = onnx_dim(nrg_op_int(op, "N", NRG_DIM_UNKNOWN));
    return 0;
}

/* Which axes a reduction takes; false: not known. None given means all. */
static bool reduced_axes(const struct onnx *x, const struct nrg_op *op, int rank, bool *gone)
{
    int64_t axes[ONNX_MAX_RANK];
    int n = onnx_list(x, op, "axes", 1, axes, ONNX_MAX_RANK), axis;
    bool all = (n == -1 || n == 0) && !nrg_op_int(op, "noop_with_empty_axes", 0);
    if (n == -2)
        return false;
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

int onnx_rule_reduce(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    bool gone[ONNX_MAX_RANK], keep = nrg_op_int(op, "keepdims", 1) != 0;
    if (out->rank < 0)
        return 0;
    if (reduced_axes(x, op, out->rank, gone))
        remove_axes(out, gone, keep);
    else
        onnx_unknown_dims(out, keep ? out->rank : -1);
    return 0;
}

int onnx_rule_arg(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    bool gone[ONNX_MAX_RANK] = {false};
    int axis;
    if (out->rank < 0)
        return 0;
    if (!onnx_axis(nrg_op_int(op, "axis", 0), out->rank, &axis))
        return onnx_contradiction(x, op);
    gone[axis] = true;
    remove_axes(out, gone, nrg_op_int(op, "keepdims", 1) != 0);
    return 0;
}

/* k is an attribute before opset 10, then an input. */
int onnx_rule_topk(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    int axis;
    if (out->rank >= 0) {
        if (!onnx_axis(nrg_op_int(op, "axis", -1), out->rank, &axis))
            return onnx_contradiction(x, op);
        out->d[axis] = onnx_one_dim(x, op, "k", 1);
    }
    out[1] = out[0];
    out[1].dtype = NRG_I64;
    return 0;
}

int onnx_rule_einsum(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape in[8];
    bool known = op->n_inputs <= 8;
    for (size_t i = 0; known && i < op->n_inputs; i++)
        known = onnx_in(op, i, &in[i]);
    if (!known)
        out->rank = -1;
    else if (!onnx_einsum_shape(nrg_op_text(op, "equation", ""), in, op->n_inputs, out))
        return onnx_contradiction(x, op);
    return 0;
}

/* The last two dimensions go. */
int onnx_rule_det(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    out->rank = out->rank >= 2 ? out->rank - 2 : -1;
    return 0;
}

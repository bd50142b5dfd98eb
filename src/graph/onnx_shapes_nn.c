/*
 * Shape rules of whole layers (see onnx_shapes.h): normalisations, recurrent layers, attention of
 * the standard (opset 23) and of ONNX Runtime's com.microsoft domain.
 */
#include <string.h>

#include "graph/onnx/shapes/internal.h"

/* Y like X; mean and deviation have 1 where the axes from `axis` on were taken together. */
int onnx_rule_norm(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape, statistics;
    int axis, rc;
    (void)arg;
    onnx_in(op, 0, &shape);
    statistics = shape;
    if (shape.rank > 0 && onnx_axis(onnx_int(op, "axis", -1), shape.rank, &axis))
        for (int i = axis; i < shape.rank; i++)
            statistics.d[i] = 1;
    rc = onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
    for (size_t i = 1; i < 3 && !rc; i++)
        rc = onnx_out(x, op, i, NRG_F32, &statistics);
    /* SkipLayerNormalization hands on the sum of its inputs as fourth. */
    return rc ? rc : onnx_out(x, op, 3, onnx_in_dtype(op, 0), &shape);
}

int onnx_rule_batch_norm(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape, channels;
    (void)arg;
    onnx_in(op, 0, &shape);
    onnx_in(op, 3, &channels);
    int rc = onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
    for (size_t i = 1; i < op->n_outputs && !rc; i++)
        rc = onnx_out(x, op, i, onnx_in_dtype(op, 3), &channels);
    return rc;
}

int onnx_rule_dropout(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape;
    (void)arg;
    onnx_in(op, 0, &shape);
    int rc = onnx_out(x, op, 0, onnx_in_dtype(op, 0), &shape);
    return rc ? rc : onnx_out(x, op, 1, x->opset < 12 ? onnx_in_dtype(op, 0) : NRG_BOOL, &shape);
}

/* Hidden size: the attribute, or the last dimension of the recurrent weight. */
static int64_t hidden(const struct nrg_op *op)
{
    struct onnx_shape recurrent;
    int64_t size = onnx_dim(onnx_int(op, "hidden_size", NRG_DIM_UNKNOWN));
    if (size < 0 && onnx_in(op, 2, &recurrent) && recurrent.rank == 3)
        size = recurrent.d[2];
    return size;
}

/* X [T, B, I]; Y [T, dirs, B, H], Y_h and Y_c [dirs, B, H]; layout 1 puts the batch first. */
int onnx_rule_rnn(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape in, all = onnx_unknown_dims(4), last = onnx_unknown_dims(3);
    int64_t dirs = strcmp(onnx_str(op, "direction", "forward"), "bidirectional") ? 1 : 2;
    bool batch_first = onnx_int(op, "layout", 0) != 0;
    (void)arg;
    if (!onnx_in(op, 0, &in))
        in = onnx_unknown_dims(3);
    if (in.rank != 3)
        return onnx_contradiction(x, op);
    all.d[0] = in.d[0];
    all.d[1] = batch_first ? in.d[1] : dirs;
    all.d[2] = batch_first ? dirs : in.d[1];
    last.d[0] = batch_first ? in.d[0] : dirs;
    last.d[1] = batch_first ? dirs : in.d[1];
    all.d[3] = last.d[2] = hidden(op);
    int rc = onnx_out(x, op, 0, onnx_in_dtype(op, 0), &all);
    for (size_t i = 1; i < 3 && !rc; i++)
        rc = onnx_out(x, op, i, onnx_in_dtype(op, 0), &last);
    return rc;
}

/* Opset 23: Q [B, H, L, D] or [B, L, H*D], K, V alike; past keys make the present longer. */
int onnx_rule_attention(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape q, v = {.rank = -1}, past;
    (void)arg;
    if (onnx_in(op, 0, &q) && onnx_in(op, 2, &v) && v.rank == q.rank && q.rank == 4) {
        q.d[3] = v.d[3];
    } else if (q.rank == 3 && v.rank == 3) {
        int64_t heads = onnx_int(op, "q_num_heads", 0), kv = onnx_int(op, "kv_num_heads", 0);
        q.d[2] =
            heads > 0 && kv > 0 && v.d[2] >= 0 ? onnx_dim_mul(v.d[2] / kv, heads) : NRG_DIM_UNKNOWN;
    } else {
        q.rank = -1;
    }
    int rc = onnx_out(x, op, 0, onnx_in_dtype(op, 0), &q);
    for (size_t i = 1; i < 3 && !rc; i++) { /* present key and value */
        if (!onnx_in(op, 3 + i, &past) || past.rank != 4 || !onnx_in(op, i, &v) || v.rank != 4)
            past.rank = -1;
        else
            past.d[2] = onnx_dim_add(past.d[2], v.d[2]);
        rc = onnx_out(x, op, i, onnx_in_dtype(op, i), &past);
    }
    return rc;
}

/* com.microsoft Attention: X [B, L, I], one weight [I, 3*E] for Q, K, V. */
int onnx_rule_ms_attention(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape shape, weight;
    int64_t sizes[3];
    if (onnx_in(op, 0, &shape) && shape.rank == 3) {
        bool known = onnx_in(op, (size_t)arg, &weight) && weight.rank == 2;
        int n = onnx_list(x, op, "qkv_hidden_sizes", SIZE_MAX, sizes, 3);
        shape.d[2] = n == 3                      ? onnx_dim(sizes[2])
                     : known && weight.d[1] >= 0 ? weight.d[1] / 3
                                                 : NRG_DIM_UNKNOWN;
    } else {
        shape.rank = -1;
    }
    return onnx_out(x, op, 0, onnx_is(op, "QAttention") ? NRG_F32 : onnx_in_dtype(op, 0), &shape);
}

/* MultiHeadAttention and its kin: like the query, as wide as the value. */
int onnx_rule_ms_mha(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape q, v;
    (void)arg;
    if (onnx_in(op, 0, &q) && q.rank == 3) {
        if (onnx_is(op, "MultiHeadAttention") && onnx_in(op, 2, &v) && v.rank == 3)
            q.d[2] = v.d[2];
        else if (!onnx_has(op, 1))
            q.d[2] = NRG_DIM_UNKNOWN; /* Q, K and V packed in one */
    } else {
        q.rank = -1;
    }
    return onnx_out(x, op, 0, onnx_in_dtype(op, 0), &q);
}

/* EmbedLayerNormalization: ids [B, L], word embedding [V, E]. */
int onnx_rule_embed_norm(struct onnx *x, struct nrg_op *op, int arg)
{
    struct onnx_shape ids, table, shape = onnx_unknown_dims(3), mask = onnx_unknown_dims(1);
    (void)arg;
    if (onnx_in(op, 0, &ids) && ids.rank == 2) {
        shape.d[0] = mask.d[0] = ids.d[0];
        shape.d[1] = ids.d[1];
    }
    if (onnx_in(op, 2, &table) && table.rank == 2)
        shape.d[2] = table.d[1];
    int rc = onnx_out(x, op, 0, onnx_in_dtype(op, 2), &shape);
    return rc ? rc : onnx_out(x, op, 1, NRG_I32, &mask);
}

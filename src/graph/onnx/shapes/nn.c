/*
 * Shape rules of whole layers (see shapes/internal.h): normalisations, recurrent layers, attention
 * of the standard (opset 23) and of ONNX Runtime's com.microsoft domain.
 */
#include <string.h>

#include "graph/onnx/shapes/internal.h"

/* Mean and deviation have 1 in the axes from `axis` on, which are normalised together. */
int onnx_rule_norm(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape statistics = out[0];
    int axis;
    if (out->rank > 0 && onnx_axis(nrg_op_int(op, "axis", -1), out->rank, &axis))
        for (int i = axis; i < out->rank; i++)
            statistics.d[i] = 1;
    statistics.dtype = NRG_F32;
    out[1] = out[2] = statistics;
    out[3] = out[0]; /* SkipLayerNormalization: the sum of its inputs */
    return 0;
}

int onnx_rule_batch_norm(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    for (size_t i = 1; i < ONNX_RULE_OUTPUTS; i++)
        onnx_in(op, 3, &out[i]);
    return 0;
}

int onnx_rule_dropout(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    out[1] = out[0];
    if (x->opset >= 12)
        out[1].dtype = NRG_BOOL;
    return 0;
}

/* Hidden size: the attribute, or the last dimension of the recurrent weight. */
static int64_t hidden_size(const struct nrg_op *op)
{
    struct onnx_shape recurrent;
    int64_t size = onnx_dim(nrg_op_int(op, "hidden_size", NRG_DIM_UNKNOWN));
    if (size < 0 && onnx_in(op, 2, &recurrent) && recurrent.rank == 3)
        size = recurrent.d[2];
    return size;
}

/* X [T, B, I]; Y [T, dirs, B, H], Y_h and Y_c [dirs, B, H]; layout 1 puts the batch first. */
int onnx_rule_rnn(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape in = out[0];
    int64_t dirs = strcmp(nrg_op_text(op, "direction", "forward"), "bidirectional") ? 1 : 2;
    bool batch_first = nrg_op_int(op, "layout", 0) != 0;
    if (in.rank < 0)
        onnx_unknown_dims(&in, 3);
    if (in.rank != 3)
        return onnx_contradiction(x, op);
    out[0] = out[1] = in;
    out[0].rank = 4;
    out[0].d[1] = batch_first ? in.d[1] : dirs;
    out[0].d[2] = batch_first ? dirs : in.d[1];
    out[1].d[0] = batch_first ? in.d[0] : dirs;
    out[1].d[1] = batch_first ? dirs : in.d[1];
    out[0].d[3] = out[1].d[2] = hidden_size(op);
    out[2] = out[1];
    return 0;
}

/* Opset 23: Q [B, H, L, D] or [B, L, H*D], K, V alike; past keys make the present longer. */
int onnx_rule_attention(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape v;
    onnx_in(op, 2, &v);
    if (out->rank == 4 && v.rank == 4) {
        out->d[3] = v.d[3];
    } else if (out->rank == 3 && v.rank == 3) {
        int64_t heads = nrg_op_int(op, "q_num_heads", 0), kv = nrg_op_int(op, "kv_num_heads", 0);
        out->d[2] = heads > 0 ? onnx_dim_mul(onnx_dim_div(v.d[2], kv), heads) : NRG_DIM_UNKNOWN;
    } else {
        out->rank = -1;
    }
    for (size_t i = 1; i < 3; i++) { /* present key and value */
        bool known = onnx_in(op, 3 + i, &out[i]) && onnx_in(op, i, &v);
        if (!known || out[i].rank != 4 || v.rank != 4)
            out[i].rank = -1;
        else
            out[i].d[2] = onnx_dim_add(out[i].d[2], v.d[2]);
        out[i].dtype = onnx_in_dtype(op, i);
    }
    return 0;
}

/* com.microsoft Attention: X [B, L, I], one weight [I, 3*E] for Q, K, V. */
int onnx_rule_ms_attention(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape weight;
    int64_t sizes[3];
    if (out->rank != 3) {
        out->rank = -1;
        return 0;
    }
    if (onnx_list(x, op, "qkv_hidden_sizes", SIZE_MAX, sizes, 3) == 3)
        out->d[2] = onnx_dim(sizes[2]);
    else if (onnx_in(op, 1, &weight) && weight.rank == 2)
        out->d[2] = onnx_dim_div(weight.d[1], 3);
    else
        out->d[2] = NRG_DIM_UNKNOWN;
    return 0;
}

/* MultiHeadAttention and its variants: like the query, as wide as the value. */
int onnx_rule_ms_mha(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape v;
    if (out->rank != 3)
        out->rank = -1;
    else if (onnx_is(op, "MultiHeadAttention") && onnx_in(op, 2, &v) && v.rank == 3)
        out->d[2] = v.d[2];
    else if (!onnx_has(op, 1))
        out->d[2] = NRG_DIM_UNKNOWN; /* Q, K and V packed in one */
    return 0;
}

/* EmbedLayerNormalization: ids [B, L], word embedding [V, E]. */
int onnx_rule_embed_norm(struct onnx *x, struct nrg_op *op, int arg, struct onnx_shape *out)
{
    struct onnx_shape ids = out[0], table;
    onnx_unknown_dims(&out[0], 3);
    onnx_unknown_dims(&out[1], 1);
    if (ids.rank == 2) {
        out[0].d[0] = out[1].d[0] = ids.d[0];
        out[0].d[1] = ids.d[1];
    }
    if (onnx_in(op, 2, &table) && table.rank == 2)
        out[0].d[2] = table.d[1];
    out[1].dtype = NRG_I32;
    return 0;
}

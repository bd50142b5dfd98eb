/*
 * Which rule gives the types of which operator's outputs (see shapes/internal.h), and the walk over
 * a block. `rules` is sorted for a binary search. An operator that has no rule keeps what the
 * file declares, and what depends on it stays unknown. One pass in the order of data is enough,
 * because a rule only looks at inputs; loops see their state's types before the body is walked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/cost.h"
#include "graph/onnx/shapes/internal.h"

#define LIKE(i) (-(i))

/*
 * A row of both tables. `arg` is explained at the rule. `dtype` is the first output's: 0 that of
 * input 0, LIKE(i) that of input i; rules that find it in an attribute set it themselves. Without a
 * function the shape is that of input 0.
 */
struct rule {
    const char *kind;
    onnx_rule_fn *infer;
    int arg, dtype;
};

/* Rules that serve many operators: `kind` lists them, with a space before and after each. */
static const struct rule families[] = {
    {" com.microsoft::BiasAdd com.microsoft::BiasGelu com.microsoft::BiasSoftmax "
     "com.microsoft::FastGelu com.microsoft::Gelu com.microsoft::GroupNorm "
     "com.microsoft::Inverse com.microsoft::QLinearLeakyRelu com.microsoft::QLinearSigmoid "
     "com.microsoft::QLinearSoftmax com.microsoft::QuickGelu com.microsoft::RotaryEmbedding "
     "com.microsoft::SkipGroupNorm onnx::Abs onnx::Acos onnx::Acosh onnx::Affine onnx::Asin "
     "onnx::Asinh onnx::Atan onnx::Atanh onnx::BitwiseNot onnx::Ceil onnx::Celu onnx::Clip "
     "onnx::Cos onnx::Cosh onnx::CumProd onnx::CumSum onnx::Elu onnx::Erf onnx::Exp onnx::Floor "
     "onnx::Gelu onnx::GroupNormalization onnx::HardSigmoid onnx::HardSwish onnx::Hardmax "
     "onnx::Identity onnx::ImageScaler onnx::InstanceNormalization onnx::LRN onnx::LeakyRelu "
     "onnx::Log onnx::LogSoftmax onnx::LpNormalization onnx::MeanVarianceNormalization "
     "onnx::Mish onnx::Neg onnx::PRelu onnx::ParametricSoftplus onnx::Reciprocal onnx::Relu "
     "onnx::ReverseSequence onnx::RotaryEmbedding onnx::Round onnx::ScaledTanh onnx::Scatter "
     "onnx::ScatterElements onnx::ScatterND onnx::Selu onnx::Shrink onnx::Sigmoid onnx::Sign "
     "onnx::Sin onnx::Sinh onnx::Softmax onnx::Softplus onnx::Softsign onnx::Sqrt onnx::Swish "
     "onnx::Tan onnx::Tanh onnx::TensorScatter onnx::ThresholdedRelu onnx::Trilu ",
     NULL, 0, 0},
    {" onnx::Add onnx::And onnx::BitShift onnx::BitwiseAnd onnx::BitwiseOr onnx::BitwiseXor "
     "onnx::Div onnx::Max onnx::Mean onnx::Min onnx::Mod onnx::Mul onnx::Or "
     "onnx::Pow onnx::Sub onnx::Sum onnx::Xor ",
     onnx_rule_broadcast, 0, 0},
    {" onnx::Equal onnx::Greater onnx::GreaterOrEqual onnx::Less onnx::LessOrEqual ",
     onnx_rule_broadcast, 0, NRG_BOOL},
    {" onnx::ReduceL1 onnx::ReduceL2 onnx::ReduceLogSum onnx::ReduceLogSumExp onnx::ReduceMax "
     "onnx::ReduceMean onnx::ReduceMin onnx::ReduceProd onnx::ReduceSum onnx::ReduceSumSquare ",
     onnx_rule_reduce, 0, 0},
    {" com.microsoft::DecoderMaskedMultiHeadAttention com.microsoft::GroupQueryAttention "
     "com.microsoft::MultiHeadAttention ",
     onnx_rule_ms_mha, 0, 0},
    {" com.microsoft::DynamicQuantizeMatMul com.microsoft::FusedMatMul "
     "com.microsoft::TransposeMatMul onnx::MatMul ",
     onnx_rule_matmul, 1, 0},
    {" com.microsoft::FusedConv onnx::Conv onnx::DeformConv ", onnx_rule_conv, 1, 0},
    {" com.microsoft::QLinearAveragePool onnx::AveragePool onnx::LpPool onnx::MaxPool ",
     onnx_rule_pool, 0, 0},
    {" com.microsoft::QLinearGlobalAveragePool onnx::GlobalAveragePool onnx::GlobalLpPool "
     "onnx::GlobalMaxPool ",
     onnx_rule_global_pool, 0, 0},
    {" com.microsoft::SkipLayerNormalization com.microsoft::SkipSimplifiedLayerNormalization "
     "onnx::LayerNormalization onnx::RMSNormalization onnx::SimplifiedLayerNormalization ",
     onnx_rule_norm, 0, 0},
    {" onnx::Bernoulli onnx::EyeLike onnx::RandomNormalLike onnx::RandomUniformLike ",
     onnx_rule_random_like, 0, 0},
    {" onnx::BlackmanWindow onnx::HammingWindow onnx::HannWindow ", onnx_rule_window, 1, 0},
    {" onnx::GRU onnx::LSTM onnx::RNN ", onnx_rule_rnn, 0, 0},
    {" onnx::IsInf onnx::IsNaN onnx::Not ", NULL, 0, NRG_BOOL},
    {" onnx::SequenceConstruct onnx::SequenceEmpty onnx::SequenceErase onnx::SequenceInsert "
     "onnx::SplitToSequence ",
     onnx_rule_sequence, 0, 0},
};

static const struct rule rules[] = {
    {"com.microsoft::Attention", onnx_rule_ms_attention, 0, 0},
    {"com.microsoft::DequantizeLinear", onnx_rule_dequantize, 0, 0},
    {"com.microsoft::EmbedLayerNormalization", onnx_rule_embed_norm, 0, LIKE(2)},
    {"com.microsoft::FusedGemm", onnx_rule_gemm, 1, 0},
    {"com.microsoft::MatMulBnb4", onnx_rule_matmul_nbits, 0, 0},
    {"com.microsoft::MatMulIntegerToFloat", onnx_rule_matmul, 1, NRG_F32},
    {"com.microsoft::MatMulNBits", onnx_rule_matmul_nbits, 0, 0},
    {"com.microsoft::QAttention", onnx_rule_ms_attention, 0, NRG_F32},
    {"com.microsoft::QEmbedLayerNormalization", onnx_rule_embed_norm, 0, LIKE(2)},
    {"com.microsoft::QGemm", onnx_rule_gemm, 3, 0},
    {"com.microsoft::QLinearAdd", onnx_rule_qlinear, 0, 0},
    {"com.microsoft::QLinearMul", onnx_rule_qlinear, 0, 0},
    {"com.microsoft::QuantizeLinear", onnx_rule_quantize, 2, 0},
    {"onnx::ArgMax", onnx_rule_arg, 0, NRG_I64},
    {"onnx::ArgMin", onnx_rule_arg, 0, NRG_I64},
    {"onnx::Attention", onnx_rule_attention, 0, 0},
    {"onnx::BatchNormalization", onnx_rule_batch_norm, 0, 0},
    {"onnx::Cast", onnx_rule_cast, 1, 0},
    {"onnx::CastLike", NULL, 0, LIKE(1)},
    {"onnx::CenterCropPad", onnx_rule_crop, 0, 0},
    {"onnx::Col2Im", onnx_rule_col2im, 0, 0},
    {"onnx::Compress", onnx_rule_compress, 0, 0},
    {"onnx::Concat", onnx_rule_concat, 0, 0},
    {"onnx::Constant", onnx_rule_constant, 0, 0},
    {"onnx::ConstantOfShape", onnx_rule_constant_of_shape, 0, 0},
    {"onnx::ConvInteger", onnx_rule_conv, 1, NRG_I32},
    {"onnx::ConvTranspose", onnx_rule_conv_transpose, 1, 0},
    {"onnx::DepthToSpace", onnx_rule_depth, 1, 0},
    {"onnx::DequantizeLinear", onnx_rule_dequantize, 0, 0},
    {"onnx::Det", onnx_rule_det, 0, 0},
    {"onnx::Dropout", onnx_rule_dropout, 0, 0},
    {"onnx::DynamicQuantizeLinear", onnx_rule_dynamic_quantize, 0, NRG_U8},
    {"onnx::Einsum", onnx_rule_einsum, 0, 0},
    {"onnx::Expand", onnx_rule_expand, 0, 0},
    {"onnx::Flatten", onnx_rule_flatten, 0, 0},
    {"onnx::Gather", onnx_rule_gather, 0, 0},
    {"onnx::GatherElements", onnx_rule_gather_elements, 0, 0},
    {"onnx::GatherND", onnx_rule_gather_nd, 0, 0},
    {"onnx::Gemm", onnx_rule_gemm, 1, 0},
    {"onnx::GridSample", onnx_rule_grid_sample, 0, 0},
    {"onnx::If", onnx_rule_if, 0, 0},
    {"onnx::Loop", onnx_rule_loop, 0, 0},
    {"onnx::MatMulInteger", onnx_rule_matmul, 1, NRG_I32},
    {"onnx::MaxRoiPool", onnx_rule_roi, 0, 0},
    {"onnx::MaxUnpool", onnx_rule_unpool, 0, 0},
    {"onnx::Multinomial", onnx_rule_multinomial, 6, 0},
    {"onnx::NonMaxSuppression", onnx_rule_nms, 0, NRG_I64},
    {"onnx::NonZero", onnx_rule_nonzero, 0, NRG_I64},
    {"onnx::OneHot", onnx_rule_one_hot, 0, LIKE(2)},
    {"onnx::OptionalGetElement", onnx_rule_at, 0, 0},
    {"onnx::Pad", onnx_rule_pad, 0, 0},
    {"onnx::QLinearConv", onnx_rule_conv, 3, LIKE(7)},
    {"onnx::QLinearMatMul", onnx_rule_matmul, 3, LIKE(7)},
    {"onnx::QuantizeLinear", onnx_rule_quantize, 2, 0},
    {"onnx::RandomNormal", onnx_rule_random, 1, 0},
    {"onnx::RandomUniform", onnx_rule_random, 1, 0},
    {"onnx::Range", onnx_rule_range, 0, 0},
    {"onnx::Reshape", onnx_rule_reshape, 0, 0},
    {"onnx::Resize", onnx_rule_resize, 0, 0},
    {"onnx::RoiAlign", onnx_rule_roi, 0, 0},
    {"onnx::Scan", onnx_rule_scan, 0, 0},
    {"onnx::SequenceAt", onnx_rule_at, 0, 0},
    {"onnx::Shape", onnx_rule_shape, 0, NRG_I64},
    {"onnx::Size", onnx_rule_size, 0, NRG_I64},
    {"onnx::Slice", onnx_rule_slice, 0, 0},
    {"onnx::SpaceToDepth", onnx_rule_depth, 0, 0},
    {"onnx::Split", onnx_rule_split, 0, 0},
    {"onnx::Squeeze", onnx_rule_squeeze, 0, 0},
    {"onnx::Tile", onnx_rule_tile, 0, 0},
    {"onnx::TopK", onnx_rule_topk, 0, 0},
    {"onnx::Transpose", onnx_rule_transpose, 0, 0},
    {"onnx::Unique", onnx_rule_unique, 0, 0},
    {"onnx::Unsqueeze", onnx_rule_unsqueeze, 0, 0},
    {"onnx::Upsample", onnx_rule_resize, 0, 0},
    {"onnx::Where", onnx_rule_broadcast, 0, LIKE(1)},
};

static const struct rule *find_rule(const char *kind)
{
    char word[300];
    const struct rule *rule =
        bsearch(kind, rules, sizeof rules / sizeof *rules, sizeof *rules, nrg_kind_order);
    snprintf(word, sizeof word, " %s ", kind);
    for (size_t i = 0; !rule && !strchr(kind, ' ') && i < sizeof families / sizeof *families; i++)
        if (strstr(families[i].kind, word))
            rule = &families[i];
    return rule;
}

static int infer_types(struct onnx *x, struct nrg_op *op, const struct rule *rule)
{
    struct onnx_shape out[ONNX_RULE_OUTPUTS] = {0};
    onnx_in(op, 0, &out[0]);
    for (size_t i = 1; i < ONNX_RULE_OUTPUTS; i++)
        out[i].rank = -1;
    if (rule->dtype)
        out->dtype =
            rule->dtype > 0 ? (enum nrg_dtype)rule->dtype : onnx_in_dtype(op, (size_t)-rule->dtype);
    int rc = rule->infer ? rule->infer(x, op, rule->arg, out) : 0;
    for (size_t i = 0; i < ONNX_RULE_OUTPUTS && !rc; i++)
        if (!i || out[i].rank >= 0 || out[i].dtype)
            rc = onnx_out(x, op, i, &out[i]);
    return rc == ONNX_DONE ? 0 : rc;
}

int onnx_shapes(struct onnx *x, struct nrg_block *block)
{
    int rc = 0;
    for (size_t i = 0; i < block->n_ops && !rc; i++) {
        struct nrg_op *op = block->ops[i];
        const struct rule *rule = find_rule(op->kind);
        if (rule)
            rc = infer_types(x, op, rule);
        for (size_t b = 0; !rule && b < op->n_blocks && !rc; b++)
            rc = onnx_shapes(x, op->blocks[b]);
        if (!rc)
            rc = onnx_fold(x, op);
    }
    return rc;
}

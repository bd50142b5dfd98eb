/*
 * Costs of TensorRT layers and of the layers of a model_summary.json.
 *   convolutions    batch x output positions x Weights.Count; transposed ones by input positions;
 *                   one that pools too (ConvActPool) by the positions before the pool
 *   gemm            elements of the result x K, when the operands' dimensions agree on K
 *   PointWise       operations in the generated kernel x elements
 *   kgen, Myelin…   generated kernels that may hold anything: unknown
 * In a summary the weight follows from shapes: kernel x C_in x C_out, divided by "groups" where the
 * file has it (those we have seen do not; a depthwise layer then counts as a full one).
 */
#include <string.h>

#include "graph/cost/internal.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static int64_t product_attr(const struct nrg_operator *op, const char *name)
{
    const struct nrg_attr *attr = nrg_op_attr(op->op, name);
    int64_t n = attr && attr->kind == NRG_A_INTS && attr->n ? 1 : NRG_COST_UNKNOWN;
    for (size_t i = 0; n >= 0 && i < attr->n; i++)
        n = nrg_cost_mul(n, attr->is[i]);
    return n;
}

/* arg 1: transposed. */
static void trt_conv(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_type *where =
        op->rule->arg ? nrg_arg_at(op, 0)->type : nrg_cost_output_type(op);
    nrg_cost_set_macs(cost, nrg_cost_mul(nrg_cost_positions(where),
                                         nrg_op_int(op->op, "Weights.Count", NRG_COST_UNKNOWN)));
}

/* Fused kinds, which may hold more than one: only when the weights are just those of one. */
static void trt_fused_conv(const struct nrg_operator *op, struct nrg_cost *cost)
{
    int64_t groups = nrg_op_int(op->op, "Groups", 1);
    int64_t per_group = nrg_arg_dim(nrg_arg_at(op, 0), 1);
    int64_t weights =
        nrg_cost_mul(nrg_op_int(op->op, "OutMaps", NRG_COST_UNKNOWN), product_attr(op, "Kernel"));
    weights = nrg_cost_mul(weights, groups > 0 && per_group >= 0 ? per_group / groups : -1);
    if (weights >= 0 && weights == nrg_op_int(op->op, "Weights.Count", NRG_COST_UNKNOWN))
        trt_conv(op, cost);
    else
        nrg_cost_set_macs(cost, NRG_COST_UNKNOWN);
}

/* Number i of a list attribute; `otherwise` where there is none. */
static int64_t member_attr(const struct nrg_operator *op, const char *name, int i,
                           int64_t otherwise)
{
    const struct nrg_attr *attr = nrg_op_attr(op->op, name);
    return attr && attr->kind == NRG_A_INTS && (size_t)i < attr->n ? attr->is[i] : otherwise;
}

/* Positions along dimension i of what the convolution of a ConvActPool makes, before it pools. */
static int64_t positions_before_pool(const struct nrg_operator *op, int i)
{
    const char *mode = nrg_op_text(op->op, "ConvPaddingMode", "kEXPLICIT_ROUND_DOWN");
    int64_t in = nrg_arg_dim(nrg_arg_at(op, 0), i + 2),
            stride = member_attr(op, "ConvStride", i, 1);
    int64_t kernel = member_attr(op, "ConvKernel", i, 0);
    int64_t dilation = member_attr(op, "ConvDilation", i, 1);
    int64_t pads =
        member_attr(op, "ConvPrePadding", i, 0) + member_attr(op, "ConvPostPadding", i, 0);
    int64_t limit = INT32_MAX;
    if (in < 0 || in > limit || stride < 1 || kernel < 1 || kernel > limit || dilation < 1 ||
        dilation > limit || pads < 0 || pads > limit)
        return NRG_COST_UNKNOWN;
    if (!strncmp(mode, "kSAME", 5))
        return (in + stride - 1) / stride;
    int64_t room = in + pads - dilation * (kernel - 1) - 1;
    bool up = !strcmp(mode, "kEXPLICIT_ROUND_UP");
    if (room < 0 || (!up && strcmp(mode, "kEXPLICIT_ROUND_DOWN")))
        return NRG_COST_UNKNOWN;
    return (room + (up ? stride - 1 : 0)) / stride + 1;
}

static void trt_conv_pool(const struct nrg_operator *op, struct nrg_cost *cost)
{
    int64_t macs = nrg_cost_mul(nrg_arg_dim(nrg_arg_at(op, 0), 0),
                                nrg_op_int(op->op, "ConvWeights.Count", NRG_COST_UNKNOWN));
    for (int i = 0; i + 2 < nrg_arg_rank(nrg_arg_at(op, 0)); i++)
        macs = nrg_cost_mul(macs, positions_before_pool(op, i));
    cost->flops = nrg_cost_mul(product_attr(op, "PoolingWindowSize"), nrg_cost_output_numel(op));
    nrg_cost_set_macs(cost, macs);
}

/* K by the second operand, [K, N] or [N, K]: the first may be printed in the shape it was made. */
static void trt_gemm(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *a = nrg_arg_at(op, 0), *b = nrg_arg_at(op, 1);
    int64_t k = NRG_COST_UNKNOWN, n = nrg_cost_output_dim(op, -1);
    if (nrg_arg_rank(b) >= 2 && n >= 0 && n == nrg_arg_dim(b, -1))
        k = nrg_arg_dim(b, -2);
    else if (nrg_arg_rank(b) >= 2 && n >= 0 && n == nrg_arg_dim(b, -2))
        k = nrg_arg_dim(b, -1);
    if (k <= 0 || nrg_arg_numel(a) < 0 || nrg_arg_numel(a) % k)
        k = NRG_COST_UNKNOWN;
    nrg_cost_set_macs(cost, nrg_cost_mul(nrg_cost_output_numel(op), k));
}

static void trt_pool(const struct nrg_operator *op, struct nrg_cost *cost)
{
    int64_t k = product_attr(op, "WindowSize");
    cost->flops = nrg_cost_mul(k < 0 ? product_attr(op, "Kernel") : k, nrg_cost_output_numel(op));
}

static void trt_pointwise(const struct nrg_operator *op, struct nrg_cost *cost)
{
    cost->flops = nrg_cost_mul(nrg_op_int(op->op, "NbOperations", NRG_COST_UNKNOWN),
                               nrg_cost_output_numel(op));
}

static void layer_conv(const struct nrg_operator *op, struct nrg_cost *cost)
{
    const struct nrg_arg *x = nrg_arg_at(op, 0);
    const struct nrg_type *out = nrg_cost_output_type(op);
    const struct nrg_attr *kernel = nrg_op_attr(op->op, "kernel_size");
    const struct nrg_attr *groups = nrg_op_attr(op->op, "groups");
    int64_t area = product_attr(op, "kernel_size"), g = groups && groups->i > 0 ? groups->i : 1;
    int space = out->rank > 2 ? out->rank - 2 : 0;
    for (int i = 1; kernel && kernel->n == 1 && i < space; i++)
        area = nrg_cost_mul(area, kernel->is[0]); /* one number for all dimensions */
    int64_t weight = nrg_cost_mul(area, nrg_arg_dim(x, 1));
    weight = nrg_cost_mul(weight, space ? out->dims[1] : NRG_COST_UNKNOWN);
    if (weight >= 0)
        weight /= g;
    nrg_cost_set_macs(cost,
                      nrg_cost_mul(nrg_cost_positions(op->rule->arg ? x->type : out), weight));
    cost->params = weight;
}

static void layer_linear(const struct nrg_operator *op, struct nrg_cost *cost)
{
    int64_t k = nrg_arg_dim(nrg_arg_at(op, 0), -1);
    nrg_cost_set_macs(cost, nrg_cost_mul(nrg_cost_output_numel(op), k));
    cost->params = nrg_cost_mul(k, nrg_cost_output_dim(op, -1));
}

/* One line each, sorted by kind (a test checks it). */
/* clang-format off */
static const struct nrg_cost_rule trt_rules[] = {
    {"trt::CaskConvActPool", NRG_CLASS_COMPUTE, 0, trt_conv_pool, 0, "C"},
    {"trt::CaskConvolution", NRG_CLASS_COMPUTE, 0, trt_conv, 0, "C"},
    {"trt::CaskDeconvolution", NRG_CLASS_COMPUTE, 0, trt_conv, 1, "C"},
    {"trt::CaskDeconvolutionV2", NRG_CLASS_COMPUTE, 0, trt_conv, 1, "C"},
    {"trt::CaskFlattenConvolution", NRG_CLASS_COMPUTE, 0, trt_conv, 0, "C"},
    {"trt::CaskGemmConvolution", NRG_CLASS_COMPUTE, 0, trt_conv, 0, "C"},
    {"trt::CaskGemmMatrixMultiply", NRG_CLASS_COMPUTE, 0, trt_gemm, 0, "G"},
    {"trt::CaskPooling", NRG_CLASS_COMPUTE, 0, trt_pool, 0, "P"},
    {"trt::Concat", NRG_CLASS_MOVE, 0, NULL, 0, "M"},
    {"trt::Constant", NRG_CLASS_CONSTANT, 0, NULL, 0, ""},
    {"trt::ConvActPool", NRG_CLASS_COMPUTE, 0, trt_conv_pool, 0, "C"},
    {"trt::CublasConvolution", NRG_CLASS_COMPUTE, 0, trt_conv, 0, "C"},
    {"trt::CublasMatrixMultiply", NRG_CLASS_COMPUTE, 0, trt_gemm, 0, "G"},
    {"trt::CudaDepthwiseConvolution", NRG_CLASS_COMPUTE, 0, trt_conv, 0, "C"},
    {"trt::CudaPooling", NRG_CLASS_COMPUTE, 0, trt_pool, 0, "P"},
    {"trt::CudaSoftMax", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 5, "S"},
    {"trt::CudnnConvolution", NRG_CLASS_COMPUTE, 0, trt_conv, 0, "C"},
    {"trt::CudnnDeconvolution", NRG_CLASS_COMPUTE, 0, trt_conv, 1, "C"},
    {"trt::CudnnPooling", NRG_CLASS_COMPUTE, 0, trt_pool, 0, "P"},
    {"trt::ElementWise", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 1, "E1"},
    {"trt::FusedConvActConvolution", NRG_CLASS_COMPUTE, 0, trt_fused_conv, 0, "C"},
    {"trt::Gather", NRG_CLASS_MOVE, 0, NULL, 0, "M"},
    {"trt::MatrixMultiply", NRG_CLASS_COMPUTE, 0, trt_gemm, 0, "G"},
    {"trt::NoOp", NRG_CLASS_VIEW, 0, NULL, 0, ""},
    {"trt::Padding", NRG_CLASS_MOVE, 0, NULL, 0, "M"},
    {"trt::PointWise", NRG_CLASS_COMPUTE, 0, trt_pointwise, 0, "E1"},
    {"trt::PointWiseV2", NRG_CLASS_COMPUTE, 0, trt_pointwise, 0, "E1"},
    {"trt::Pooling", NRG_CLASS_COMPUTE, 0, trt_pool, 0, "P"},
    {"trt::Reduce", NRG_CLASS_COMPUTE, 0, nrg_cost_input, 1, "R"},
    {"trt::Reformat", NRG_CLASS_MOVE, 0, NULL, 0, "M"},
    {"trt::Resize", NRG_CLASS_MOVE, 0, NULL, 0, "M"},
    {"trt::Shuffle", NRG_CLASS_MOVE, 0, NULL, 0, "M"},
    {"trt::Slice", NRG_CLASS_MOVE, 0, NULL, 0, "M"},
    {"trt::SoftMax", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 5, "S"},
    {"trt::SoftMaxV2", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 5, "S"},
    {"trt::TiledPooling", NRG_CLASS_COMPUTE, 0, trt_pool, 0, "P"},
    {"trt::gemm", NRG_CLASS_COMPUTE, 0, trt_gemm, 0, "G"},
    {"trt::shape_call", NRG_CLASS_ACCESS, 0, NULL, 0, ""},
    {"trt::signal", NRG_CLASS_ACCESS, 0, NULL, 0, ""},
    {"trt::wait", NRG_CLASS_ACCESS, 0, NULL, 0, ""},
};

static const struct nrg_cost_rule layer_rules[] = {
    {"layer::AdaptiveAvgPool2d", NRG_CLASS_COMPUTE, 0, nrg_cost_adaptive_pool, 1, "P"},
    {"layer::AvgPool2d", NRG_CLASS_COMPUTE, 0, nrg_cost_adaptive_pool, 1, "P"},
    {"layer::BatchNorm1d", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 2, "N"},
    {"layer::BatchNorm2d", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 2, "N"},
    {"layer::Conv1d", NRG_CLASS_COMPUTE, 0, layer_conv, 0, "C"},
    {"layer::Conv2d", NRG_CLASS_COMPUTE, 0, layer_conv, 0, "C"},
    {"layer::Conv3d", NRG_CLASS_COMPUTE, 0, layer_conv, 0, "C"},
    {"layer::ConvTranspose1d", NRG_CLASS_COMPUTE, 0, layer_conv, 1, "C"},
    {"layer::ConvTranspose2d", NRG_CLASS_COMPUTE, 0, layer_conv, 1, "C"},
    {"layer::Dropout", NRG_CLASS_VIEW, 0, NULL, 0, ""},
    {"layer::Flatten", NRG_CLASS_VIEW, 0, NULL, 0, ""},
    {"layer::GELU", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 8, "E4"},
    {"layer::Hardsigmoid", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 4, "E4"},
    {"layer::Hardswish", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 5, "E4"},
    {"layer::Identity", NRG_CLASS_VIEW, 0, NULL, 0, ""},
    {"layer::LayerNorm", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 7, "N"},
    {"layer::LayerNorm2d", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 7, "N"},
    {"layer::LeakyReLU", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 2, "E2"},
    {"layer::Linear", NRG_CLASS_COMPUTE, 0, layer_linear, 0, "G"},
    {"layer::MaxPool2d", NRG_CLASS_COMPUTE, 0, nrg_cost_adaptive_pool, 0, "P"},
    {"layer::ReLU", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 1, "E1"},
    {"layer::ReLU6", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 2, "E2"},
    {"layer::SiLU", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 5, "E4"},
    {"layer::Sigmoid", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 4, "E4"},
    {"layer::Softmax", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 5, "S"},
    {"layer::Tanh", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 4, "E4"},
};
/* clang-format on */

const struct nrg_cost_family nrg_cost_family_trt = {"trt::", trt_rules, COUNT(trt_rules)};
const struct nrg_cost_family nrg_cost_family_layer = {"layer::", layer_rules, COUNT(layer_rules)};

/*
 * Rules of quantised and torchvision operators. Quantised weights are inside packed parameters, so
 * that linear layers are counted from their activations, and convolutions only where a parameter
 * file lists the weight. Sorted by kind within each family (a test checks it).
 */
#include "graph/cost/internal.h"

/* One line each, sorted: clang-format would wrap the long ones. */
/* clang-format off */
static const struct nrg_cost_rule quantized_rules[] = {
    {"quantized::add", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 1, "E1"},
    {"quantized::add_out", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 1, "E1"},
    {"quantized::add_relu", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 1, "E1"},
    {"quantized::add_scalar", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 1, "E1"},
    {"quantized::add_scalar_relu", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 1, "E1"},
    {"quantized::batch_norm", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 2, "N"},
    {"quantized::batch_norm1d", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 2, "N"},
    {"quantized::batch_norm2d", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 2, "N"},
    {"quantized::batch_norm2d_relu", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 2, "N"},
    {"quantized::batch_norm3d", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 2, "N"},
    {"quantized::batch_norm_relu", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 2, "N"},
    {"quantized::cat", NRG_CLASS_MOVE, 0, NULL, 0, "M"},
    {"quantized::cat_relu", NRG_CLASS_MOVE, 0, NULL, 0, "M"},
    {"quantized::celu", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 4, "E4"},
    {"quantized::clamp", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 1, "E1"},
    {"quantized::conv1d", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_conv, 0, "C"},
    {"quantized::conv1d_dynamic", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_conv, 0, "C"},
    {"quantized::conv1d_prepack", NRG_CLASS_ACCESS, 0, NULL, 0, ""},
    {"quantized::conv1d_relu", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_conv, 0, "C"},
    {"quantized::conv2d", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_conv, 0, "C"},
    {"quantized::conv2d_add", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_conv, 0, "C"},
    {"quantized::conv2d_add_relu", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_conv, 0, "C"},
    {"quantized::conv2d_dynamic", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_conv, 0, "C"},
    {"quantized::conv2d_prepack", NRG_CLASS_ACCESS, 0, NULL, 0, ""},
    {"quantized::conv2d_relu", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_conv, 0, "C"},
    {"quantized::conv2d_unpack", NRG_CLASS_ACCESS, 0, NULL, 0, ""},
    {"quantized::conv3d", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_conv, 0, "C"},
    {"quantized::conv3d_dynamic", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_conv, 0, "C"},
    {"quantized::conv3d_prepack", NRG_CLASS_ACCESS, 0, NULL, 0, ""},
    {"quantized::conv3d_relu", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_conv, 0, "C"},
    {"quantized::conv_transpose1d", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_conv, 1, "C"},
    {"quantized::conv_transpose2d", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_conv, 1, "C"},
    {"quantized::conv_transpose2d_dynamic", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_conv, 1, "C"},
    {"quantized::conv_transpose3d", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_conv, 1, "C"},
    {"quantized::elu", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 4, "E4"},
    {"quantized::group_norm", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 7, "N"},
    {"quantized::hardswish", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 4, "E4"},
    {"quantized::instance_norm", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 7, "N"},
    {"quantized::layer_norm", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 7, "N"},
    {"quantized::leaky_relu", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 2, "E2"},
    {"quantized::linear", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_linear, 0, "G"},
    {"quantized::linear_dynamic", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_linear, 0, "G"},
    {"quantized::linear_dynamic_fp16", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_linear, 0, "G"},
    {"quantized::linear_leaky_relu", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_linear, 0, "G"},
    {"quantized::linear_prepack", NRG_CLASS_ACCESS, 0, NULL, 0, ""},
    {"quantized::linear_relu", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_linear, 0, "G"},
    {"quantized::linear_relu_dynamic", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_linear, 0, "G"},
    {"quantized::linear_tanh", NRG_CLASS_COMPUTE, 0, nrg_cost_quantized_linear, 0, "G"},
    {"quantized::linear_unpack", NRG_CLASS_ACCESS, 0, NULL, 0, ""},
    {"quantized::matmul", NRG_CLASS_COMPUTE, 0, nrg_cost_matmul, 0, "G"},
    {"quantized::max_pool1d", NRG_CLASS_COMPUTE, 0, nrg_cost_max_pool, 0, "P"},
    {"quantized::max_pool2d", NRG_CLASS_COMPUTE, 0, nrg_cost_max_pool, 0, "P"},
    {"quantized::mul", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 1, "E1"},
    {"quantized::mul_relu", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 1, "E1"},
    {"quantized::mul_scalar", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 1, "E1"},
    {"quantized::mul_scalar_relu", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 1, "E1"},
    {"quantized::prelu", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 2, "E2"},
    {"quantized::relu6", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 1, "E1"},
    {"quantized::sigmoid", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 4, "E4"},
    {"quantized::softmax", NRG_CLASS_COMPUTE, 0, nrg_cost_elements, 5, "S"},
};

const struct nrg_cost_family nrg_cost_family_quantized = {"quantized::", quantized_rules,
    sizeof quantized_rules / sizeof quantized_rules[0]};

static const struct nrg_cost_rule torchvision_rules[] = {
    {"torchvision::deform_conv2d", NRG_CLASS_COMPUTE, NRG_OP_OPAQUE, nrg_cost_opaque, 0, "O"},
    {"torchvision::nms", NRG_CLASS_COMPUTE, NRG_OP_OPAQUE, nrg_cost_opaque, 0, "O"},
    {"torchvision::ps_roi_align", NRG_CLASS_COMPUTE, NRG_OP_OPAQUE, nrg_cost_opaque, 0, "O"},
    {"torchvision::ps_roi_pool", NRG_CLASS_COMPUTE, NRG_OP_OPAQUE, nrg_cost_opaque, 0, "O"},
    {"torchvision::roi_align", NRG_CLASS_COMPUTE, NRG_OP_OPAQUE, nrg_cost_opaque, 0, "O"},
    {"torchvision::roi_pool", NRG_CLASS_COMPUTE, NRG_OP_OPAQUE, nrg_cost_opaque, 0, "O"},
};

const struct nrg_cost_family nrg_cost_family_torchvision = {"torchvision::", torchvision_rules,
    sizeof torchvision_rules / sizeof torchvision_rules[0]};
/* clang-format on */

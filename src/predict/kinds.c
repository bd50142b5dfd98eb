/* See kinds.h. Element-wise operators and copies have no group: they are a module's rest. */
#include "predict/kinds.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    const char *kind, *group;
};

/* Sorted by kind (strcmp); a test checks the order. */
/* clang-format off */
static const struct entry entries[] = {
    {"AdaptiveAvgPool2d", "pool"},
    {"AvgPool2d", "pool"},
    {"BatchNorm1d", "batch_norm"},
    {"BatchNorm2d", "batch_norm"},
    {"Conv1D", "gemm"},
    {"Conv1d", "conv"},
    {"Conv2d", "conv"},
    {"Conv3d", "conv"},
    {"ConvTranspose2d", "conv"},
    {"Embedding", "embedding"},
    {"GRU", "rnn"},
    {"GroupNorm", "group_norm"},
    {"LSTM", "rnn"},
    {"LayerNorm", "layer_norm"},
    {"Linear", "gemm"},
    {"MatMul", "bmm"},
    {"MaxPool2d", "pool"},
    {"RNN", "rnn"},
    {"Softmax", "softmax"},
    {"Tanh", "tanh"},
    {"aten::_convolution", "conv"},
    {"aten::adaptive_avg_pool2d", "pool"},
    {"aten::addbmm", "bmm"},
    {"aten::addmm", "gemm"},
    {"aten::avg_pool2d", "pool"},
    {"aten::baddbmm", "bmm"},
    {"aten::batch_norm", "batch_norm"},
    {"aten::bmm", "bmm"},
    {"aten::conv1d", "conv"},
    {"aten::conv2d", "conv"},
    {"aten::conv3d", "conv"},
    {"aten::convolution", "conv"},
    {"aten::einsum", "bmm"},
    {"aten::embedding", "embedding"},
    {"aten::group_norm", "group_norm"},
    {"aten::gru", "rnn"},
    {"aten::layer_norm", "layer_norm"},
    {"aten::linear", "gemm"},
    {"aten::lstm", "rnn"},
    {"aten::matmul", "bmm"},
    {"aten::max_pool2d", "pool"},
    {"aten::mm", "gemm"},
    {"aten::native_batch_norm", "batch_norm"},
    {"aten::native_layer_norm", "layer_norm"},
    {"aten::scaled_dot_product_attention", "attention"},
    {"aten::softmax", "softmax"},
    {"aten::tanh", "tanh"},
    {"onnx::AveragePool", "pool"},
    {"onnx::BatchNormalization", "batch_norm"},
    {"onnx::Conv", "conv"},
    {"onnx::ConvTranspose", "conv"},
    {"onnx::Einsum", "bmm"},
    {"onnx::GRU", "rnn"},
    {"onnx::Gemm", "gemm"},
    {"onnx::GlobalAveragePool", "pool"},
    {"onnx::LSTM", "rnn"},
    {"onnx::LayerNormalization", "layer_norm"},
    {"onnx::MatMul", "bmm"},
    {"onnx::MaxPool", "pool"},
    {"onnx::Softmax", "softmax"},
    {"onnx::Tanh", "tanh"},
};
/* clang-format on */

static int by_kind(const void *key, const void *entry)
{
    return strcmp(key, ((const struct entry *)entry)->kind);
}

const char *const nrg_form_names[NRG_FORMS] = {"linear", "conv1d"};

unsigned nrg_kind_form(const char *kind)
{
    if (!strcmp(kind, "Linear") || !strcmp(kind, "aten::linear") || !strcmp(kind, "onnx::Gemm"))
        return NRG_FORM_LINEAR;
    return strcmp(kind, "Conv1D") ? 0 : NRG_FORM_CONV1D;
}

const char *nrg_kind_group(const char *kind)
{
    const struct entry *found =
        bsearch(kind, entries, sizeof entries / sizeof *entries, sizeof *entries, by_kind);
    return found ? found->group : kind;
}

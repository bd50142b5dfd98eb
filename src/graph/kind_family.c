/* See kind_family.h. The first name of a row stands for all of them. */
#include "graph/kind_family.h"

#include <stddef.h>
#include <string.h>

#define MOST_NAMES 6

static const char *const families[][MOST_NAMES] = {
    {"aten::linear", "aten::addmm", "aten::mm", "aten::matmul", "aten::bmm"},
    {"aten::_convolution", "aten::convolution", "aten::mkldnn_convolution",
     "aten::cudnn_convolution", "aten::conv2d", "aten::conv1d"},
    {"aten::batch_norm", "aten::native_batch_norm", "aten::cudnn_batch_norm",
     "aten::_native_batch_norm_legit", "aten::_native_batch_norm_legit_no_training"},
    {"aten::layer_norm", "aten::native_layer_norm"},
    {"aten::group_norm", "aten::native_group_norm"},
    {"aten::max_pool2d", "aten::max_pool2d_with_indices"},
    {"aten::softmax", "aten::_softmax"},
    {"aten::log_softmax", "aten::_log_softmax"},
    {"aten::adaptive_avg_pool2d", "aten::_adaptive_avg_pool2d"},
    {"aten::dropout", "aten::native_dropout"},
    {"aten::scaled_dot_product_attention", "aten::_scaled_dot_product_flash_attention_for_cpu",
     "aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_efficient_attention",
     "aten::_scaled_dot_product_attention_math"},
};

const char *nrg_kind_family(const char *kind)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (size_t k = 0; k < MOST_NAMES && families[i][k]; k++)
            if (!strcmp(families[i][k], kind))
                return families[i][0];
    return kind;
}

bool nrg_kind_same(const char *a, const char *b)
{
    return !strcmp(nrg_kind_family(a), nrg_kind_family(b));
}

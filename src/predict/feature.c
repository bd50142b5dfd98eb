/* See feature.h; docs/dataset.md has the same table for people. */
#include "predict/dataset/feature.h"

#include <string.h>

const struct nrg_feature_info nrg_features[NRG_FEATURES] = {
    [NRG_F_BATCH] = {"batch", NRG_STATIC, "batch size of the model's input"},
    [NRG_F_SEQ] = {"seq", NRG_STATIC, "sequence length of the model's input"},
    [NRG_F_PARAMS] = {"params", NRG_STATIC, "parameters of the node"},
    [NRG_F_MACS] = {"macs", NRG_STATIC, "multiply-accumulates"},
    [NRG_F_READ_BYTES] = {"read_bytes", NRG_STATIC, "ideal traffic, each operand once"},
    [NRG_F_WRITTEN_BYTES] = {"written_bytes", NRG_STATIC, "ideal traffic of the results"},
    [NRG_F_COPIED_BYTES] = {"copied_bytes", NRG_STATIC,
                            "operands and results of batched products without the scores"},
    [NRG_F_SCORE_BYTES] = {"score_bytes", NRG_STATIC, "tensors that softmax works on"},
    [NRG_F_REST_BYTES] = {"rest_bytes", NRG_STATIC, "traffic of operators without a node"},
    [NRG_F_REST_FLOPS] = {"rest_flops", NRG_STATIC, "FLOPs of operators without a node"},
    [NRG_F_SOURCE_FLOPS] = {"source_flops", NRG_STATIC, "FLOPs as the data's source counts them"},
    [NRG_F_SOURCE_BYTES] = {"source_bytes", NRG_STATIC, "bytes as the data's source counts them"},

    [NRG_F_IN_0] = {"in_0", NRG_LAYER, "channels of the input, or all of a dense layer's inputs"},
    [NRG_F_IN_1] = {"in_1", NRG_LAYER, "height of the input"},
    [NRG_F_IN_2] = {"in_2", NRG_LAYER, "width of the input"},
    [NRG_F_OUT_0] = {"out_0", NRG_LAYER,
                     "channels of the output, or all of a dense layer's outputs"},
    [NRG_F_OUT_1] = {"out_1", NRG_LAYER, "height of the output"},
    [NRG_F_OUT_2] = {"out_2", NRG_LAYER, "width of the output"},
    [NRG_F_KERNEL_0] = {"kernel_0", NRG_LAYER, "height of the window"},
    [NRG_F_KERNEL_1] = {"kernel_1", NRG_LAYER, "width of the window"},
    [NRG_F_PADDING_0] = {"padding_0", NRG_LAYER, "rows of padding, both sides together"},
    [NRG_F_PADDING_1] = {"padding_1", NRG_LAYER, "columns of padding, both sides together"},
    [NRG_F_STRIDE_0] = {"stride_0", NRG_LAYER, "vertical step of the window"},
    [NRG_F_STRIDE_1] = {"stride_1", NRG_LAYER, "horizontal step of the window"},
    [NRG_F_GROUPS] = {"groups", NRG_LAYER, "groups of a convolution"},

    [NRG_F_TIME_S] = {"time_s", NRG_RESOURCE, "duration of one call"},
    [NRG_F_GPU_ENERGY_J] = {"gpu_energy_j", NRG_RESOURCE, "energy by the GPU's own counter"},
    [NRG_F_CPU_UTIL] = {"cpu_util", NRG_RESOURCE, "processors busy, 0 to 1"},
    [NRG_F_MEM_UTIL] = {"mem_util", NRG_RESOURCE, "memory in use, 0 to 1"},
    [NRG_F_GPU_UTIL] = {"gpu_util", NRG_RESOURCE, "GPU busy, 0 to 1"},
    [NRG_F_GPU_MEM_UTIL] = {"gpu_mem_util", NRG_RESOURCE, "GPU memory busy, 0 to 1"},
    [NRG_F_GPU_HZ] = {"gpu_hz", NRG_RESOURCE, "clock of the GPU"},
    [NRG_F_GPU_MEM_HZ] = {"gpu_mem_hz", NRG_RESOURCE, "clock of the GPU's memory"},
};

int nrg_feature_find(const char *name, size_t len)
{
    for (int i = 0; i < NRG_FEATURES; i++)
        if (strlen(nrg_features[i].name) == len && !memcmp(nrg_features[i].name, name, len))
            return i;
    return -1;
}

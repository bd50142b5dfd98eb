/* See feature.h. Names are in the order of enum nrg_feature. */
#include "predict/dataset/feature.h"

#include <string.h>

const char *const nrg_feature_names[NRG_FEATURES] = {"batch",        "seq",
                                                     "params",       "macs",
                                                     "read_bytes",   "written_bytes",
                                                     "copied_bytes", "score_bytes",
                                                     "rest_bytes",   "rest_flops",
                                                     "source_flops", "source_bytes",
                                                     "in_0",         "in_1",
                                                     "in_2",         "out_0",
                                                     "out_1",        "out_2",
                                                     "kernel_0",     "kernel_1",
                                                     "padding_0",    "padding_1",
                                                     "stride_0",     "stride_1",
                                                     "groups",       "gpus",
                                                     "gpu_layers",   "dense_bytes",
                                                     "expert_bytes", "cache_bytes",
                                                     "prompt_macs",  "routed",
                                                     "unpacked",     "activation_bytes",
                                                     "weight_bits",  "time_s",
                                                     "gpu_energy_j", "cpu_util",
                                                     "mem_util",     "gpu_util",
                                                     "gpu_mem_util", "gpu_hz",
                                                     "gpu_mem_hz"};

int nrg_name_find(const char *const *names, size_t n, const char *text, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(names[i]) == len && !memcmp(names[i], text, len))
            return (int)i;
    return -1;
}

void nrg_range_extend(struct nrg_range *range, double value)
{
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
}

double nrg_range_beyond(struct nrg_range range, double value)
{
    if (range.high < range.low || (value >= range.low && value <= range.high))
        return 0;
    if (value > range.high)
        return range.high > 0 ? log(value / range.high) : 1;
    return value > 0 ? log(range.low / value) : range.low > 0 ? 1 : 0;
}

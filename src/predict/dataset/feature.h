/*
 * What is known of a measured node beside its energy: the columns of a data set. Static features
 * are known before anything runs. Layer features describe convolutions, pools and dense layers to
 * the layer model. Resource features come from running the node itself. docs/dataset.md says what
 * each means. An unknown value is NAN. Also ranges of features, and look-up of names.
 *
 * Nothing is owned and nothing fails. Threads: pure.
 */
#ifndef NRG_PREDICT_DATASET_FEATURE_H
#define NRG_PREDICT_DATASET_FEATURE_H

#include <math.h>
#include <stddef.h>

enum nrg_feature {
    NRG_F_BATCH,
    NRG_F_SEQ,
    NRG_F_PARAMS,
    NRG_F_MACS,
    NRG_F_READ_BYTES,
    NRG_F_WRITTEN_BYTES,
    NRG_F_COPIED_BYTES,
    NRG_F_SCORE_BYTES,
    NRG_F_REST_BYTES,
    NRG_F_REST_FLOPS,
    NRG_F_SOURCE_FLOPS,
    NRG_F_SOURCE_BYTES,

    NRG_F_IN_0,
    NRG_F_IN_1,
    NRG_F_IN_2,
    NRG_F_OUT_0,
    NRG_F_OUT_1,
    NRG_F_OUT_2,
    NRG_F_KERNEL_0,
    NRG_F_KERNEL_1,
    NRG_F_PADDING_0,
    NRG_F_PADDING_1,
    NRG_F_STRIDE_0,
    NRG_F_STRIDE_1,
    NRG_F_GROUPS,

    /* Of a language model's output token: the terms of predict/llm/work.h. */
    NRG_F_GPUS,
    NRG_F_GPU_LAYERS,
    NRG_F_DENSE_BYTES,
    NRG_F_EXPERT_BYTES,
    NRG_F_CACHE_BYTES,
    NRG_F_PROMPT_MACS,
    NRG_F_ROUTED,
    NRG_F_UNPACKED,
    NRG_F_ACTIVATION_BYTES,
    NRG_F_WEIGHT_BITS,

    NRG_F_TIME_S,
    NRG_F_GPU_ENERGY_J,
    NRG_F_CPU_UTIL,
    NRG_F_MEM_UTIL,
    NRG_F_GPU_UTIL,
    NRG_F_GPU_MEM_UTIL,
    NRG_F_GPU_HZ,
    NRG_F_GPU_MEM_HZ,

    NRG_FEATURES
};

#define NRG_FIRST_RESOURCE NRG_F_TIME_S /* resource features stand last */

/* Of the column and of the JSON key, with its unit. */
extern const char *const nrg_feature_names[NRG_FEATURES];

/* Values that were seen. high < low: none. */
struct nrg_range {
    double low, high;
};
#define NRG_NO_RANGE ((struct nrg_range){INFINITY, -INFINITY})

/* Takes a value in; NAN changes nothing. */
void nrg_range_extend(struct nrg_range *range, double value);
/* How far a value lies outside, as ln of the ratio; 0: inside, or the range is empty. */
double nrg_range_beyond(struct nrg_range range, double value);

/* The index of a text among n names; -1: it is none of them. */
int nrg_name_find(const char *const *names, size_t n, const char *text, size_t len);

#endif

/*
 * What is known of a measured node beside its energy: the columns of a data set. Static features
 * are known before anything runs; resource features come from running the node itself; features
 * of layers describe convolutions, pools and dense layers to the layer model.
 *
 * One table says name, class and meaning of each; a value that is not known is NAN.
 */
#ifndef NRG_PREDICT_FEATURE_H
#define NRG_PREDICT_FEATURE_H

#include <stddef.h>

enum nrg_feature_class { NRG_STATIC, NRG_RESOURCE, NRG_LAYER };

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

struct nrg_feature_info {
    const char *name; /* of the column and of the JSON key, with its unit */
    enum nrg_feature_class class;
    const char *meaning;
};

extern const struct nrg_feature_info nrg_features[NRG_FEATURES];

/* -1: no feature is called that. */
int nrg_feature_find(const char *name, size_t len);

#endif

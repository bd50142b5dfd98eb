/*
 * See layer_features.h. TensorRT and model summaries name the same attributes differently, so each
 * is looked up under both names.
 */
#include "predict/dataset/layer_features.h"

#include <math.h>
#include <string.h>

const char *const nrg_layer_type_names[NRG_LAYER_TYPES] = {"convolutional", "pooling", "dense"};

static const struct {
    const char *kind;
    enum nrg_layer_type type;
    bool in_original;
} kinds[] = {
    {"trt::CaskConvolution", NRG_LAYER_CONV, true},
    {"trt::CudnnConvolution", NRG_LAYER_CONV, false},
    {"trt::CudaDepthwiseConvolution", NRG_LAYER_CONV, false},
    {"layer::Conv2d", NRG_LAYER_CONV, true},
    {"trt::CaskPooling", NRG_LAYER_POOL, true},
    {"trt::CudaPooling", NRG_LAYER_POOL, false},
    {"trt::CudnnPooling", NRG_LAYER_POOL, false},
    {"trt::Pooling", NRG_LAYER_POOL, false},
    {"trt::TiledPooling", NRG_LAYER_POOL, false},
    {"layer::AdaptiveAvgPool2d", NRG_LAYER_POOL, true},
    {"layer::AvgPool2d", NRG_LAYER_POOL, true},
    {"layer::MaxPool2d", NRG_LAYER_POOL, true},
    {"trt::CaskGemmConvolution", NRG_LAYER_DENSE, true},
    {"trt::CaskGemmMatrixMultiply", NRG_LAYER_DENSE, false},
    {"layer::Linear", NRG_LAYER_DENSE, true},
};

int nrg_layer_type_find(const char *name)
{
    return nrg_name_find(nrg_layer_type_names, NRG_LAYER_TYPES, name, strlen(name));
}

static int type_of(const struct nrg_op *op, bool original)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].kind, op->kind))
            return !original || kinds[i].in_original ? (int)kinds[i].type : -1;
    return -1;
}

/* Two numbers of an attribute; one stands for both. False: it is not there. */
static bool pair_of(const struct nrg_op *op, const char *name, double out[2])
{
    const struct nrg_attr *attr = nrg_op_attr(op, name);
    if (!attr || attr->kind != NRG_A_INTS || !attr->n)
        return false;
    out[0] = (double)attr->is[0];
    out[1] = (double)attr->is[attr->n > 1 ? 1 : 0];
    return true;
}

static double number_of(const struct nrg_op *op, const char *name)
{
    const struct nrg_attr *attr = nrg_op_attr(op, name);
    return attr && (attr->kind == NRG_A_INT || attr->kind == NRG_A_INTS) ? (double)attr->i : NAN;
}

static const struct nrg_type *tensor_of(struct nrg_value *const *values, size_t n)
{
    const struct nrg_type *type = n ? values[0]->type : NULL;
    return type && nrg_type_numel(type) > 0 && type->rank >= 2 ? type : NULL;
}

static void set_padding(const struct nrg_op *op, double *f)
{
    double before[2], after[2];
    if (pair_of(op, "PrePadding", before) && pair_of(op, "PostPadding", after)) {
        f[NRG_F_PADDING_0] = before[0] + after[0];
        f[NRG_F_PADDING_1] = before[1] + after[1];
    } else if (pair_of(op, "padding", before)) {
        f[NRG_F_PADDING_0] = 2 * before[0];
        f[NRG_F_PADDING_1] = 2 * before[1];
    }
}

static void set_window(const struct nrg_op *op, bool is_pool, bool original, double *f)
{
    double window[2];
    bool found = pair_of(op, "Kernel", window) || pair_of(op, "kernel_size", window);
    if (!found && is_pool && !original)
        found = pair_of(op, "WindowSize", window);
    if (!found && is_pool) { /* global, or counted as such */
        window[0] = f[NRG_F_IN_1];
        window[1] = f[NRG_F_IN_2];
        found = true;
    }
    if (found) {
        f[NRG_F_KERNEL_0] = window[0];
        f[NRG_F_KERNEL_1] = window[1];
    }
    double step[2] = {1, 1};
    if (!pair_of(op, "Stride", step))
        pair_of(op, "stride", step);
    f[NRG_F_STRIDE_0] = step[0];
    f[NRG_F_STRIDE_1] = step[1];
}

int nrg_layer_of(const struct nrg_op *op, bool original, double f[NRG_FEATURES])
{
    int type = type_of(op, original);
    const struct nrg_type *in = tensor_of(op->inputs, op->n_inputs);
    const struct nrg_type *out = tensor_of(op->outputs, op->n_outputs);
    if (type < 0 || !in || !out)
        return -1;
    f[NRG_F_BATCH] = (double)in->dims[0];
    if (type == NRG_LAYER_DENSE) {
        double batch = original ? 1 : f[NRG_F_BATCH];
        f[NRG_F_IN_0] = (double)nrg_type_numel(in) / batch;
        f[NRG_F_OUT_0] = (double)nrg_type_numel(out) / batch;
        return type;
    }
    if (in->rank != 4 || out->rank != 4)
        return -1;
    for (int i = 0; i < 3; i++) {
        f[NRG_F_IN_0 + i] = (double)in->dims[i + 1];
        f[NRG_F_OUT_0 + i] = (double)out->dims[i + 1];
    }
    set_window(op, type == NRG_LAYER_POOL, original, f);
    if (type == NRG_LAYER_CONV) {
        set_padding(op, f);
        double groups = number_of(op, "Groups");
        f[NRG_F_GROUPS] = original ? NAN : isnan(groups) ? number_of(op, "groups") : groups;
    }
    return isnan(f[NRG_F_KERNEL_0]) ? -1 : type;
}

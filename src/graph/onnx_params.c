/*
 * See onnx.h: which initializers are parameters. ONNX only knows constant tensors; among them are
 * weights, running statistics, scales of quantisation and shapes for Reshape. Told apart by where
 * they are read: running mean and variance of BatchNormalization, scales and zero points, and all
 * 64-bit integers and bools are buffers; the rest are parameters.
 *
 * PyTorch's exporter merges tensors of equal contents and writes Identity nodes for the copies,
 * so that the file holds fewer parameters than the model. Each such Identity becomes a parameter
 * that shares the storage of its source (counted once), and a warning says how many there are:
 * the file cannot tell tied weights from weights that happen to be equal, as they are right
 * after initialisation.
 */
#include <errno.h>
#include <string.h>

#include "graph/onnx.h"

/* Inputs that hold settings, not weights: one bit each. */
static const struct {
    const char *kind;
    unsigned inputs;
} settings[] = {
    {"onnx::BatchNormalization", 1u << 3 | 1u << 4},
    {"onnx::QuantizeLinear", 1u << 1 | 1u << 2},
    {"onnx::DequantizeLinear", 1u << 1 | 1u << 2},
    {"onnx::QLinearConv", 1u << 1 | 1u << 2 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7},
    {"onnx::QLinearMatMul", 1u << 1 | 1u << 2 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7},
    {"onnx::ConvInteger", 1u << 2 | 1u << 3},
    {"onnx::MatMulInteger", 1u << 2 | 1u << 3},
    {"onnx::Clip", 1u << 1 | 1u << 2},
    {"onnx::Resize", 1u << 1 | 1u << 2},
    {"onnx::Upsample", 1u << 1},
    {"onnx::Pad", 1u << 2},
    {"com.microsoft::QLinearAdd", 1u << 1 | 1u << 2 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7},
    {"com.microsoft::MatMulNBits", 1u << 2 | 1u << 3},
};

static unsigned setting_inputs(const char *kind)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (!strcmp(settings[i].kind, kind))
            return settings[i].inputs;
    return 0;
}

static struct nrg_param *param_of(const struct onnx_map *map, const struct nrg_model *model,
                                  const struct nrg_value *value)
{
    if (value->producer)
        return NULL;
    uintptr_t number = (uintptr_t)onnx_map_get(map, value->name, strlen(value->name));
    return number ? &model->params[number - 1] : NULL;
}

static int alias(struct onnx *x, const struct nrg_param *source, const struct nrg_value *value)
{
    struct nrg_param copy = *source;
    int64_t numel = nrg_type_numel(copy.type);
    copy.name = value->name;
    if (!copy.is_buffer && numel > 0 && !__builtin_add_overflow(x->aliased, numel, &x->aliased))
        x->n_aliases++;
    return nrg_model_add_param(x->model, &copy) ? onnx_no_memory(x) : 0;
}

/* The names that exporters make up for themselves are no parameters of anybody. */
static bool has_own_name(const char *name)
{
    return strchr(name, '.') && strncmp(name, "onnx::", 6) && name[0] != '/';
}

static int walk(struct onnx *x, const struct onnx_map *map, const struct nrg_block *block)
{
    int rc = 0;
    for (size_t i = 0; i < block->n_ops && !rc; i++) {
        const struct nrg_op *op = block->ops[i];
        unsigned buffers = setting_inputs(op->kind);
        for (size_t k = 0; k < op->n_inputs && k < 32; k++) {
            struct nrg_param *param = param_of(map, x->model, op->inputs[k]);
            if (param && buffers >> k & 1)
                param->is_buffer = true;
        }
        struct nrg_param *source = strcmp(op->kind, "onnx::Identity") || !op->n_inputs
                                       ? NULL
                                       : param_of(map, x->model, op->inputs[0]);
        if (source && op->n_outputs && has_own_name(op->outputs[0]->name))
            rc = alias(x, source, op->outputs[0]);
        for (size_t b = 0; b < op->n_blocks && !rc; b++)
            rc = walk(x, map, op->blocks[b]);
    }
    return rc;
}

int onnx_params(struct onnx *x)
{
    struct onnx_map map = {0};
    int rc = 0;
    for (size_t i = 0; i < x->model->n_params && !rc; i++) {
        struct nrg_param *param = &x->model->params[i];
        enum nrg_dtype dtype = param->type->dtype;
        param->is_buffer = dtype == NRG_I64 || dtype == NRG_BOOL || dtype == NRG_STRING_DTYPE;
        rc = onnx_map_add(x, &map, param->name, strlen(param->name), (void *)(uintptr_t)(i + 1));
    }
    if (!rc)
        rc = walk(x, &map, x->graph->body);
    onnx_map_release(&map);
    if (!rc && x->n_aliases)
        nrg_model_warn(x->model,
                       "%zu parameters (%lld elements) are Identity of others: the exporter merged "
                       "equal tensors, the model may have that many more",
                       x->n_aliases, (long long)x->aliased);
    return rc;
}

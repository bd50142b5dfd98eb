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
 * after initialisation. Weights that it folded or transposed lose their names ("onnx::Conv_12");
 * they get the module in front that reads them, so that they count where they belong.
 */
#include <errno.h>
#include <string.h>

#include "graph/onnx/internal.h"

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
    if (value->producer && strcmp(value->producer->kind, "onnx::Identity"))
        return NULL;
    uintptr_t number = (uintptr_t)onnx_map_get(map, value->name, strlen(value->name));
    return number ? &model->params[number - 1] : NULL;
}

static int index_param(struct onnx *x, struct onnx_map *map, size_t i)
{
    const char *name = x->model->params[i].name;
    return onnx_map_add(x, map, name, strlen(name), (void *)(uintptr_t)(i + 1));
}

/* The names that exporters make up for themselves are no parameters of anybody. */
static bool has_own_name(const char *name)
{
    return strchr(name, '.') && strncmp(name, "onnx::", 6) && name[0] != '/';
}

/* A parameter of its own that has its source's storage. */
static int alias(struct onnx *x, struct onnx_map *map, const struct nrg_op *op)
{
    if (strcmp(op->kind, "onnx::Identity") || !op->n_inputs || !op->n_outputs ||
        !has_own_name(op->outputs[0]->name))
        return 0;
    const struct nrg_param *source = param_of(map, x->model, op->inputs[0]);
    if (!source)
        return 0;
    struct nrg_param copy = *source;
    copy.name = op->outputs[0]->name;
    return nrg_model_add_param(x->model, &copy) ? onnx_no_memory(x)
                                                : index_param(x, map, x->model->n_params - 1);
}

static void mark_settings(struct onnx *x, const struct onnx_map *map, const struct nrg_op *op)
{
    unsigned buffers = setting_inputs(op->kind);
    for (size_t k = 0; buffers && k < op->n_inputs && k < 32; k++) {
        struct nrg_param *param = param_of(map, x->model, op->inputs[k]);
        if (param && buffers >> k & 1)
            param->is_buffer = true;
    }
}

/* First all aliases, then what the nodes use them for. */
static int walk(struct onnx *x, struct onnx_map *map, const struct nrg_block *block, bool aliases)
{
    int rc = 0;
    for (size_t i = 0; i < block->n_ops && !rc; i++) {
        const struct nrg_op *op = block->ops[i];
        if (aliases)
            rc = alias(x, map, op);
        else
            mark_settings(x, map, op);
        for (size_t b = 0; b < op->n_blocks && !rc; b++)
            rc = walk(x, map, op->blocks[b], aliases);
    }
    return rc;
}

/* A parameter that was merged with a buffer must not count as one: it gets its own storage. */
static void part_from_buffers(struct onnx *x, const struct onnx_map *map, size_t first)
{
    for (size_t i = first; i < x->model->n_params; i++) {
        struct nrg_param *param = &x->model->params[i];
        uintptr_t at = (uintptr_t)onnx_map_get(map, param->storage, strlen(param->storage));
        if (at && x->model->params[at - 1].is_buffer != param->is_buffer)
            param->storage = param->name;
    }
}

static void warn_aliases(struct onnx *x, size_t first)
{
    size_t n = 0;
    int64_t elements = 0;
    for (size_t i = first; i < x->model->n_params; i++) {
        int64_t numel = nrg_type_numel(x->model->params[i].type);
        if (x->model->params[i].is_buffer || numel < 0 ||
            x->model->params[i].storage == x->model->params[i].name ||
            __builtin_add_overflow(elements, numel, &elements))
            continue;
        n++;
    }
    if (n)
        nrg_model_warn(x->model,
                       "%zu parameters (%lld elements) are Identity of others: the exporter merged "
                       "equal tensors, the model may have that many more",
                       n, (long long)elements);
}

int onnx_params(struct onnx *x)
{
    struct onnx_map map = {0};
    size_t own = x->model->n_params;
    int rc = 0;
    for (size_t i = 0; i < own && !rc; i++) {
        struct nrg_param *param = &x->model->params[i];
        enum nrg_dtype dtype = param->type->dtype;
        param->is_buffer = dtype == NRG_I64 || dtype == NRG_BOOL || dtype == NRG_STRING_DTYPE;
        rc = index_param(x, &map, i);
    }
    if (!rc)
        rc = walk(x, &map, x->graph->body, true);
    if (!rc)
        rc = walk(x, &map, x->graph->body, false);
    if (!rc)
        part_from_buffers(x, &map, own);
    onnx_map_release(&map);
    if (!rc)
        warn_aliases(x, own);
    return rc;
}

/* "onnx::Conv_12" (a weight that the exporter changed) as "layer1.conv1.onnx::Conv_12". */
static int place(struct onnx *x, const struct onnx_map *map, const struct nrg_op *op,
                 struct nrg_value *value)
{
    struct nrg_param *param = param_of(map, x->model, value);
    if (!param || value->producer || strncmp(value->name, "onnx::", 6))
        return 0;
    size_t n = strlen(op->module);
    char *name = nrg_arena_alloc(&x->model->arena, n + strlen(value->name) + 2);
    if (!name)
        return onnx_no_memory(x);
    memcpy(name, op->module, n);
    name[n] = '.';
    strcpy(name + n + 1, value->name);
    param->name = value->name = name;
    return 0;
}

static int place_all(struct onnx *x, const struct onnx_map *map, const struct nrg_block *block)
{
    int rc = 0;
    for (size_t i = 0; i < block->n_ops && !rc; i++) {
        const struct nrg_op *op = block->ops[i];
        for (size_t k = 0; op->module && op->module[0] && k < op->n_inputs && !rc; k++)
            rc = place(x, map, op, op->inputs[k]);
        for (size_t b = 0; b < op->n_blocks && !rc; b++)
            rc = place_all(x, map, op->blocks[b]);
    }
    return rc;
}

int onnx_params_place(struct onnx *x)
{
    struct onnx_map map = {0};
    int rc = 0;
    for (size_t i = 0; i < x->model->n_params && !rc; i++)
        rc = index_param(x, &map, i);
    if (!rc)
        rc = place_all(x, &map, x->graph->body);
    onnx_map_release(&map);
    return rc;
}

/*
 * See internal.h: which initializers are parameters. ONNX only knows constant tensors; among
 * them are weights, running statistics, scales of quantisation, masks and shapes for Reshape. Their
 * names and where they are read tell them apart (roles.c): running mean and variance of
 * BatchNormalization, scales and zero points, masks, constants of the computation and integers that
 * are no weights are buffers; the rest are parameters.
 *
 * PyTorch's exporter merges tensors of equal contents and writes Identity nodes for the copies,
 * so that the file holds fewer parameters than the model. Each such Identity becomes a parameter
 * that shares the storage of its source (counted once), and a warning says how many there are:
 * the file cannot tell tied weights from weights that happen to be equal, as they are right
 * after initialisation. Weights that it folded or transposed lose their names ("onnx::Conv_12");
 * they get the module in front that reads them, so that they count where they belong.
 */
#include <stdio.h>
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

/* The parameters by name; numbers count from 1. */
struct params {
    struct onnx *x;
    struct onnx_map numbers;
};

static struct nrg_param *param_of(const struct params *p, const struct nrg_value *value)
{
    if (value->producer && strcmp(value->producer->kind, "onnx::Identity"))
        return NULL;
    uintptr_t number = (uintptr_t)onnx_map_get(&p->numbers, value->name, strlen(value->name));
    return number ? &p->x->model->params[number - 1] : NULL;
}

static int index_params(struct params *p, size_t first)
{
    int rc = 0;
    for (size_t i = first; i < p->x->model->n_params && !rc; i++) {
        const char *name = p->x->model->params[i].name;
        rc = onnx_map_add(p->x, &p->numbers, name, strlen(name), (void *)(uintptr_t)(i + 1));
    }
    return rc;
}

/* Names that an exporter made up do not name a parameter of the model. */
static bool has_own_name(const char *name)
{
    return strchr(name, '.') && strncmp(name, "onnx::", 6) && name[0] != '/';
}

/* The copy of a parameter: one of its own that has its source's storage. */
static int add_alias(void *arg, struct nrg_op *op)
{
    struct params *p = arg;
    if (strcmp(op->kind, "onnx::Identity") || !op->n_inputs || !op->n_outputs ||
        !has_own_name(op->outputs[0]->name))
        return 0;
    const struct nrg_param *source = param_of(p, op->inputs[0]);
    if (!source)
        return 0;
    struct nrg_param copy = *source;
    copy.name = op->outputs[0]->name;
    return nrg_model_add_param(p->x->model, &copy) ? onnx_no_memory(p->x)
                                                   : index_params(p, p->x->model->n_params - 1);
}

static int mark_settings(void *arg, struct nrg_op *op)
{
    const struct params *p = arg;
    unsigned buffers = setting_inputs(op->kind);
    for (size_t k = 0; buffers && k < op->n_inputs && k < 32; k++) {
        struct nrg_param *param = param_of(p, op->inputs[k]);
        if (param && buffers >> k & 1)
            param->is_buffer = true;
    }
    return 0;
}

/* A parameter that was merged with a buffer must not count as one: it gets its own storage. */
static void part_from_buffers(struct params *p, size_t first)
{
    struct nrg_model *model = p->x->model;
    for (size_t i = first; i < model->n_params; i++) {
        struct nrg_param *param = &model->params[i];
        uintptr_t at = (uintptr_t)onnx_map_get(&p->numbers, param->storage, strlen(param->storage));
        if (at && model->params[at - 1].is_buffer != param->is_buffer)
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

/* First all aliases, then what the nodes use them for. */
int onnx_params(struct onnx *x)
{
    struct params p = {.x = x};
    size_t own = x->model->n_params;
    int rc = index_params(&p, 0);
    if (!rc)
        rc = onnx_roles(x, &p.numbers);
    if (!rc)
        rc = onnx_each_op(x->graph->body, add_alias, &p);
    if (!rc)
        rc = onnx_each_op(x->graph->body, mark_settings, &p);
    if (!rc) {
        part_from_buffers(&p, own);
        warn_aliases(x, own);
    }
    onnx_map_release(&p.numbers);
    return rc;
}

/* "onnx::Conv_12" (a weight that the exporter changed) as "layer1.conv1.onnx::Conv_12". */
static int place_param(const struct params *p, const char *module, struct nrg_value *value)
{
    struct nrg_param *param = param_of(p, value);
    if (!param || value->producer || strncmp(value->name, "onnx::", 6))
        return 0;
    size_t size = strlen(module) + strlen(value->name) + 2;
    char *name = nrg_arena_alloc(&p->x->model->arena, size);
    if (!name)
        return onnx_no_memory(p->x);
    snprintf(name, size, "%s.%s", module, value->name);
    param->name = value->name = name;
    return 0;
}

static int place_inputs(void *arg, struct nrg_op *op)
{
    int rc = 0;
    for (size_t k = 0; op->module && op->module[0] && k < op->n_inputs && !rc; k++)
        rc = place_param(arg, op->module, op->inputs[k]);
    return rc;
}

int onnx_params_place(struct onnx *x)
{
    struct params p = {.x = x};
    int rc = index_params(&p, 0);
    if (!rc)
        rc = onnx_each_op(x->graph->body, place_inputs, &p);
    onnx_map_release(&p.numbers);
    return rc;
}

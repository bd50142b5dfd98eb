/*
 * See internal.h: what an initializer is, by its name and by how the graph reads it. Exporters
 * write two kinds of tensors into one list: the model's parameters, which keep their names or are
 * read as weights (operands of products, convolutions, norms, embeddings), and constants of the
 * computation, which have made-up names ("/attn/Constant_output_0", "onnx::Add_412", "val_7") and
 * are added, multiplied or compared: masks, scales, thresholds, positions. The second kind are
 * buffers.
 *
 * A tensor is followed through what only moves it (Transpose, Cast, DequantizeLinear) to its
 * reader.
 */
#include <ctype.h>
#include <string.h>

#include "graph/onnx/internal.h"
#include "graph/param.h"

/* Readers of weights: which operands are, one bit each. */
static const struct {
    const char *kind;
    unsigned inputs;
} weight_readers[] = {
    {"onnx::BatchNormalization", 0x06},
    {"onnx::Conv", 0x06},
    {"onnx::ConvInteger", 0x02},
    {"onnx::ConvTranspose", 0x06},
    {"onnx::DeformConv", 0x0a},
    {"onnx::Einsum", 0xff},
    {"onnx::GRU", 0xfe},
    {"onnx::Gather", 0x01},
    {"onnx::Gemm", 0x07},
    {"onnx::GroupNormalization", 0x06},
    {"onnx::InstanceNormalization", 0x06},
    {"onnx::LSTM", 0xfe},
    {"onnx::LayerNormalization", 0x06},
    {"onnx::MatMul", 0x03},
    {"onnx::MatMulInteger", 0x03},
    {"onnx::PRelu", 0x02},
    {"onnx::QLinearConv", 0x108},
    {"onnx::QLinearMatMul", 0x09},
    {"onnx::RMSNormalization", 0x02},
    {"onnx::RNN", 0xfe},
    {"onnx::SimplifiedLayerNormalization", 0x02},
};

static const char *const movers[] = {
    "onnx::Cast",    "onnx::Concat",   "onnx::DequantizeLinear", "onnx::Expand",
    "onnx::Flatten", "onnx::Identity", "onnx::Reshape",          "onnx::Slice",
    "onnx::Split",   "onnx::Squeeze",  "onnx::Transpose",        "onnx::Unsqueeze",
};

/* Fused operators of runtimes read weights in any place; all settings among them are known. */
static bool reads_weight(const struct nrg_op *op, size_t operand)
{
    if (!strncmp(op->kind, "com.microsoft::", 15))
        return true;
    for (size_t i = 0; i < sizeof weight_readers / sizeof *weight_readers; i++)
        if (!strcmp(op->kind, weight_readers[i].kind))
            return operand < 16 && weight_readers[i].inputs >> operand & 1;
    return false;
}

static bool only_moves(const struct nrg_op *op)
{
    for (size_t i = 0; i < sizeof movers / sizeof *movers; i++)
        if (!strcmp(op->kind, movers[i]))
            return true;
    return false;
}

/* "val_12", "Const__3", "17": a word or nothing, and a number. */
static bool is_numbered(const char *name)
{
    size_t len = strlen(name), end = len;
    while (end && isdigit((unsigned char)name[end - 1]))
        end--;
    return end < len && !strchr(name, '.') && (!end || name[end - 1] == '_');
}

bool onnx_made_up_name(const char *name)
{
    static const char *const marks[] = {"onnx::",          "Constant", "lifted_tensor",
                                        "tensor_constant", "Const:",   "scalar_tensor"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(name, marks[i]))
            return true;
    return name[0] == '/' || is_numbered(name);
}

struct roles {
    struct onnx *x;
    struct onnx_map *numbers; /* name -> number of the parameter, from 1 */
    uint32_t *source;         /* by value id: the parameter that it is, from 1 */
    bool *weight;             /* by parameter */
};

static uint32_t source_of(const struct roles *r, const struct nrg_value *value)
{
    if (value->producer)
        return r->source[value->id];
    return (uint32_t)(uintptr_t)onnx_map_get(r->numbers, value->name, strlen(value->name));
}

static int visit_reader(void *arg, struct nrg_op *op)
{
    const struct roles *r = arg;
    bool moves = only_moves(op);
    for (size_t i = 0; i < op->n_inputs; i++) {
        uint32_t source = source_of(r, op->inputs[i]);
        if (source && reads_weight(op, i))
            r->weight[source - 1] = true;
        for (size_t k = 0;
             source && moves && k < op->n_outputs && (!i || !r->source[op->outputs[k]->id]); k++)
            r->source[op->outputs[k]->id] = source;
    }
    return 0;
}

static bool is_buffer(const struct nrg_param *param, bool weight)
{
    enum nrg_dtype dtype = param->type->dtype;
    if (dtype == NRG_I64 || dtype == NRG_BOOL || dtype == NRG_STRING_DTYPE)
        return true;
    if (nrg_dtype_is_whole(dtype) && !weight)
        return true;
    return nrg_param_is_known_buffer(param->name) || (!weight && onnx_made_up_name(param->name));
}

int onnx_roles(struct onnx *x, struct onnx_map *numbers)
{
    struct nrg_model *model = x->model;
    struct roles r = {.x = x, .numbers = numbers};
    r.source = nrg_arena_array(&model->arena, x->graph->n_values + 1, sizeof *r.source);
    r.weight = nrg_arena_array(&model->arena, model->n_params + 1, sizeof *r.weight);
    if (!r.source || !r.weight)
        return onnx_no_memory(x);
    int rc = onnx_each_op(x->graph->body, visit_reader, &r);
    for (size_t i = 0; i < model->n_params; i++)
        model->params[i].is_buffer = is_buffer(&model->params[i], r.weight[i]);
    return rc;
}

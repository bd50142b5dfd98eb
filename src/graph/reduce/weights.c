/*
 * Weights that are inputs of the graph. Traces before PyTorch 1.2 and the texts that torch.onnx
 * prints have no module: they list the model's inputs, and behind them all parameters and buffers
 * in the order of the state dict. Which input is the first of those shows by how the graph reads it
 * (the second operand of a convolution is its weight), by a dotted name, or by requires_grad; all
 * behind it are parameters, too. Their paths are their names where these are dotted, else the
 * module that reads them and the role ("features.0.weight"), so that a parameter file fits.
 *
 * ONNX files say what is a weight (initializers). One without any, exported without its weights,
 * has them as inputs of the same dotted names.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "graph/reduce/internal.h"

#define ROLES 6

/* Names of the operands, from the first on; NULL is data, "t" a weight only when transposed. */
static const struct {
    const char *kinds; /* with a space before and after each */
    const char *roles[ROLES];
} readers[] = {
    {" aten::_convolution aten::conv1d aten::conv2d aten::conv3d aten::conv_transpose1d "
     "aten::conv_transpose2d aten::conv_transpose3d aten::convolution aten::cudnn_convolution "
     "aten::linear aten::mkldnn_convolution aten::thnn_conv2d onnx::Conv onnx::ConvTranspose "
     "onnx::Gemm onnx::InstanceNormalization onnx::LayerNormalization ",
     {NULL, "weight", "bias"}},
    {" aten::batch_norm aten::cudnn_batch_norm aten::instance_norm aten::native_batch_norm "
     "aten::thnn_batch_norm onnx::BatchNormalization ",
     {NULL, "weight", "bias", "running_mean", "running_var"}},
    {" aten::group_norm aten::layer_norm ", {NULL, NULL, "weight", "bias"}},
    {" aten::addmm ", {"bias", NULL, "t"}},
    {" aten::matmul aten::mm ", {NULL, "t"}},
    {" aten::embedding aten::embedding_bag ", {"weight"}},
    {" aten::prelu onnx::PRelu ", {NULL, "weight"}},
    {" aten::gru_cell aten::lstm_cell aten::rnn_relu_cell aten::rnn_tanh_cell ",
     {NULL, NULL, "weight_ih", "weight_hh", "bias_ih", "bias_hh"}},
    {" aten::gru aten::lstm aten::rnn_relu aten::rnn_tanh ", {NULL, NULL, "weight"}},
    {" onnx::GRU onnx::LSTM onnx::RNN ", {NULL, "weight_ih", "weight_hh", "bias"}},
    {" prim::CppOp ", {NULL, "weight", "bias", "running_mean", "running_var"}},
};

/* The roles of its first operands, or NULL. */
static const char *const *roles_of(const struct nrg_op *op)
{
    char word[300];
    snprintf(word, sizeof word, " %s ", op->kind);
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (strstr(readers[i].kinds, word))
            return readers[i].roles;
    return NULL;
}

/* Weights are transposed or stretched on the way to the operator that reads them. */
static const struct nrg_value *origin_of(const struct nrg_value *value, bool *transposed)
{
    static const char *const views[] = {"aten::t",      "aten::transpose", "onnx::Transpose",
                                        "aten::expand", "aten::detach",    "onnx::Identity"};
    const struct nrg_op *op = value->producer;
    for (size_t i = 0; op && op->n_inputs && i < sizeof views / sizeof *views; i++) {
        if (strcmp(op->kind, views[i]) != 0)
            continue;
        *transposed |= i < 3;
        return op->inputs[0]->producer ? value : op->inputs[0];
    }
    return value;
}

/* "conv1.weight", but not "input.1", which only tells two of one name apart. */
static bool is_path(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && dot > name && dot[1] && !isdigit((unsigned char)dot[1]) && !strstr(name, "::");
}

struct search {
    struct nrg_reducer *r;
    const char **paths;   /* by value id */
    struct nrg_map taken; /* paths that were made up */
};

static const char *path_for(struct search *s, const struct nrg_op *op,
                            const struct nrg_value *value, const char *role, size_t member)
{
    const char *module = op && op->module ? op->module : "";
    char path[600];
    if (is_path(value->name) || !role || !*module)
        return value->name;
    if (member)
        snprintf(path, sizeof path, "%s.%s_%zu", module, role, member);
    else
        snprintf(path, sizeof path, "%s.%s", module, role);
    if (nrg_map_get(&s->taken, path))
        return value->name;
    const char *copy = nrg_reducer_copy(s->r, path, strlen(path));
    if (copy && nrg_map_set(&s->taken, copy, (void *)(uintptr_t)copy))
        s->r->rc = -ENOMEM;
    return copy;
}

static void read_as(struct search *s, const struct nrg_op *op, const struct nrg_value *value,
                    const char *role, size_t member)
{
    bool transposed = false;
    const struct nrg_value *input = origin_of(value, &transposed);
    bool only_transposed = !strcmp(role, "t");
    if (input->producer || s->paths[input->id] || (only_transposed && !transposed) ||
        nrg_type_plain(input->type)->kind != NRG_T_TENSOR)
        return;
    s->paths[input->id] = path_for(s, op, input, only_transposed ? "weight" : role, member);
}

static void search_operands(struct search *s, const struct nrg_op *op)
{
    const char *const *roles = roles_of(op);
    for (size_t k = 0; roles && k < ROLES && k < op->n_inputs; k++) {
        const struct nrg_op *list = op->inputs[k]->producer;
        bool is_list = list && !strcmp(list->kind, "prim::ListConstruct");
        if (roles[k] && !is_list)
            read_as(s, op, op->inputs[k], roles[k], 0);
        for (size_t m = 0; roles[k] && is_list && m < list->n_inputs; m++)
            read_as(s, op, list->inputs[m], roles[k], m + 1);
    }
}

static void search_block(struct search *s, const struct nrg_block *block)
{
    for (size_t i = 0; i < block->n_ops && !s->r->rc; i++) {
        search_operands(s, block->ops[i]);
        for (size_t b = 0; b < block->ops[i]->n_blocks; b++)
            search_block(s, block->ops[i]->blocks[b]);
    }
}

static bool is_weight(const struct search *s, const struct nrg_value *value, bool by_name)
{
    const struct nrg_type *type = nrg_type_plain(value->type);
    if (type->kind != NRG_T_TENSOR)
        return false;
    if (by_name)
        return s->paths[value->id] && is_path(value->name);
    return s->paths[value->id] || is_path(value->name) || type->requires_grad == 1;
}

/* Inputs before the first weight are the model's own; some may be weights that no rule knows. */
static void warn_before(struct nrg_reducer *r, const struct nrg_block *body, size_t first)
{
    size_t n = 0;
    for (size_t i = 1; i < first; i++) {
        const struct nrg_type *type = nrg_type_plain(body->inputs[i]->type);
        n += type->kind == NRG_T_TENSOR && type->dtype >= NRG_F64 && type->dtype <= NRG_BF16;
    }
    if (n)
        nrg_reducer_warn(r,
                         "%zu inputs before the first weight (%%%s) are taken as data: if they are "
                         "parameters, the count lacks them",
                         n, body->inputs[first]->name);
}

static bool has_module(const struct nrg_block *body)
{
    for (size_t i = 0; i < body->n_inputs; i++) {
        enum nrg_type_kind kind = nrg_type_plain(body->inputs[i]->type)->kind;
        if (kind == NRG_T_CLASS || (kind == NRG_T_UNKNOWN && !i))
            return true;
    }
    return false;
}

const char **nrg_reduce_weights(struct nrg_reducer *r, const struct nrg_graph *graph)
{
    const struct nrg_block *body = graph->body;
    struct search s = {.r = r};
    bool by_name = !strcmp(r->model->format ? r->model->format : "", "onnx");
    size_t first = 0;
    if (r->model->n_params || has_module(body))
        return NULL;
    s.paths = nrg_reducer_alloc(r, graph->n_values + 1, sizeof *s.paths);
    if (!s.paths)
        return NULL;
    search_block(&s, body);
    nrg_map_release(&s.taken);
    while (first < body->n_inputs && !is_weight(&s, body->inputs[first], by_name))
        first++;
    if (first == body->n_inputs)
        return NULL;
    for (size_t i = first; i < body->n_inputs; i++) {
        struct nrg_value *value = body->inputs[i];
        if (!s.paths[value->id] && nrg_type_plain(value->type)->kind == NRG_T_TENSOR)
            s.paths[value->id] = value->name;
    }
    warn_before(r, body, first);
    return s.paths;
}

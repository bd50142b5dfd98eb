/* See onnx_build.h. */
#include "support/onnx_build.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void add(struct nrg_str *to, const void *bytes, size_t n)
{
    int rc = nrg_str_add(to, bytes, n);
    assert(!rc);
    (void)rc;
}

static void varint(struct nrg_str *to, uint64_t value)
{
    do {
        char byte = (char)(value & 0x7f);
        value >>= 7;
        if (value)
            byte = (char)(byte | 0x80);
        add(to, &byte, 1);
    } while (value);
}

void pb_number(struct nrg_str *to, unsigned field, uint64_t value)
{
    varint(to, (uint64_t)field << 3);
    varint(to, value);
}

static void bytes(struct nrg_str *to, unsigned field, const void *text, size_t n)
{
    varint(to, (uint64_t)field << 3 | 2);
    varint(to, n);
    add(to, text, n);
}

void pb_text(struct nrg_str *to, unsigned field, const char *text)
{
    bytes(to, field, text, strlen(text));
}

void pb_float(struct nrg_str *to, unsigned field, float value)
{
    varint(to, (uint64_t)field << 3 | 5);
    add(to, &value, 4);
}

void pb_message(struct nrg_str *to, unsigned field, struct nrg_str *message)
{
    bytes(to, field, message->text ? message->text : "", message->len);
    nrg_str_release(message);
}

void attr_int(struct nrg_str *node, const char *name, int64_t value)
{
    struct nrg_str attr = {0};
    pb_text(&attr, 1, name);
    pb_number(&attr, 3, (uint64_t)value);
    pb_number(&attr, 20, 2);
    pb_message(node, 5, &attr);
}

void attr_ints(struct nrg_str *node, const char *name, size_t n, const int64_t *values)
{
    struct nrg_str attr = {0}, run = {0};
    pb_text(&attr, 1, name);
    for (size_t i = 0; i < n; i++)
        varint(&run, (uint64_t)values[i]);
    pb_message(&attr, 8, &run);
    pb_number(&attr, 20, 7);
    pb_message(node, 5, &attr);
}

void attr_text(struct nrg_str *node, const char *name, const char *value)
{
    struct nrg_str attr = {0};
    pb_text(&attr, 1, name);
    pb_text(&attr, 4, value);
    pb_number(&attr, 20, 3);
    pb_message(node, 5, &attr);
}

static struct nrg_str int_tensor(const char *name, size_t n, const int64_t *values, bool scalar)
{
    struct nrg_str tensor = {0};
    if (!scalar)
        pb_number(&tensor, 1, n);
    pb_number(&tensor, 2, 7);
    if (name)
        pb_text(&tensor, 8, name);
    bytes(&tensor, 9, values, n * sizeof *values);
    return tensor;
}

void attr_tensor(struct nrg_str *node, const char *name, size_t n, const int64_t *values,
                 bool scalar)
{
    struct nrg_str attr = {0}, tensor = int_tensor(NULL, n, values, scalar);
    pb_text(&attr, 1, name);
    pb_message(&attr, 5, &tensor);
    pb_number(&attr, 20, 4);
    pb_message(node, 5, &attr);
}

void attr_graph(struct nrg_str *node, const char *name, struct nrg_str *graph)
{
    struct nrg_str attr = {0};
    pb_text(&attr, 1, name);
    pb_message(&attr, 6, graph);
    pb_number(&attr, 20, 5);
    pb_message(node, 5, &attr);
}

static void names(struct nrg_str *node, unsigned field, const char *list)
{
    for (bool more = *list != 0; more; list++) {
        size_t n = strcspn(list, ",");
        bytes(node, field, list, n);
        list += n;
        more = *list == ',';
    }
}

struct nrg_str node_of(const char *op_type, const char *inputs, const char *outputs)
{
    struct nrg_str node = {0};
    names(&node, 1, inputs);
    names(&node, 2, outputs);
    pb_text(&node, 4, op_type);
    return node;
}

static void value_info(struct nrg_str *graph, unsigned field, const char *name, int dtype,
                       const int64_t *dims)
{
    struct nrg_str info = {0}, type = {0}, tensor = {0}, shape = {0};
    for (; dims && *dims != END; dims++) {
        struct nrg_str dim = {0};
        if (*dims == DIM_N)
            pb_text(&dim, 2, "N");
        else if (*dims != DIM_ANY)
            pb_number(&dim, 1, (uint64_t)*dims);
        pb_message(&shape, 1, &dim);
    }
    if (dtype)
        pb_number(&tensor, 1, (uint64_t)dtype);
    if (dims)
        pb_message(&tensor, 2, &shape);
    pb_message(&type, 1, &tensor);
    pb_text(&info, 1, name);
    if (dims)
        pb_message(&info, 2, &type);
    nrg_str_release(&type);
    pb_message(graph, field, &info);
}

void graph_input(struct nrg_str *graph, const char *name, int dtype, const int64_t *dims)
{
    value_info(graph, 11, name, dtype, dims);
}

void graph_output(struct nrg_str *graph, const char *name)
{
    value_info(graph, 12, name, 0, NULL);
}

void graph_weight(struct nrg_str *graph, const char *name, const int64_t *dims)
{
    struct nrg_str tensor = {0};
    for (; *dims != END; dims++)
        pb_number(&tensor, 1, (uint64_t)*dims);
    pb_number(&tensor, 2, 1);
    pb_text(&tensor, 8, name);
    pb_message(graph, 5, &tensor);
}

void graph_ints(struct nrg_str *graph, const char *name, size_t n, const int64_t *values)
{
    struct nrg_str tensor = int_tensor(name, n, values, false);
    pb_message(graph, 5, &tensor);
}

void graph_node(struct nrg_str *graph, struct nrg_str *node)
{
    pb_message(graph, 1, node);
}

struct nrg_str model_of(struct nrg_str *graph, int opset)
{
    struct nrg_str model = {0}, import = {0};
    pb_number(&model, 1, 8);
    pb_text(&model, 2, "test");
    pb_text(&import, 1, "");
    pb_number(&import, 2, (uint64_t)opset);
    pb_message(&model, 8, &import);
    pb_message(&model, 7, graph);
    return model;
}

int read_onnx(struct nrg_str *file, const char *name, struct nrg_model *model,
              struct nrg_error *err)
{
    struct nrg_source source = {
        .bytes = (const uint8_t *)file->text, .size = file->len, .name = name};
    int rc = nrg_model_read_bytes(&source, "onnx", model, err);
    nrg_str_release(file);
    return rc;
}

static const struct nrg_op *in_block(const struct nrg_block *block, const char *kind)
{
    const struct nrg_op *found = NULL;
    for (size_t i = 0; i < block->n_ops && !found; i++) {
        if (!strcmp(block->ops[i]->kind, kind))
            return block->ops[i];
        for (size_t b = 0; b < block->ops[i]->n_blocks && !found; b++)
            found = in_block(block->ops[i]->blocks[b], kind);
    }
    return found;
}

const struct nrg_op *op_of(const struct nrg_model *model, const char *kind)
{
    return in_block(model->graphs[0]->body, kind);
}

static const struct nrg_value *value_in(const struct nrg_block *block, const char *name)
{
    const struct nrg_value *found = NULL;
    for (size_t i = 0; i < block->n_ops && !found; i++) {
        const struct nrg_op *op = block->ops[i];
        for (size_t k = 0; k < op->n_outputs && !found; k++)
            if (!strcmp(op->outputs[k]->name, name))
                found = op->outputs[k];
        for (size_t b = 0; b < op->n_blocks && !found; b++)
            found = value_in(op->blocks[b], name);
    }
    return found;
}

const char *type_text(const struct nrg_model *model, const char *name, char *buf, size_t size)
{
    const struct nrg_value *value = value_in(model->graphs[0]->body, name);
    if (!value)
        return "no such value";
    const struct nrg_type *type = value->type;
    size_t n = (size_t)snprintf(buf, size, "%s[", nrg_dtype_name(type->dtype));
    for (int i = 0; i < type->rank && n < size; i++)
        n += (size_t)snprintf(buf + n, size - n, "%s%lld", i ? "," : "", (long long)type->dims[i]);
    if (n < size)
        snprintf(buf + n, size - n, "%s]", type->rank < 0 ? "*" : "");
    return buf;
}

/*
 * Prints what a reader made of a model as JSON lines, for tests: one object for each module,
 * parameter, operator and warning. Usage: params-dump FILE [FORMAT]
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "graph/reader.h"

static json_t *dims_json(const struct nrg_type *type, const int64_t *dims)
{
    json_t *list = json_array();
    for (int i = 0; dims && i < type->rank; i++)
        json_array_append_new(list, json_integer(dims[i]));
    return list;
}

static void put(json_t *object)
{
    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(object);
}

static void put_param(const struct nrg_param *param)
{
    json_t *object = json_pack(
        "{ss ss so so sb sb si ss* sI sI}", "param", param->name, "dtype",
        nrg_dtype_name(param->type->dtype), "dims", dims_json(param->type, param->type->dims),
        "strides", dims_json(param->type, param->type->strides), "buffer", param->is_buffer,
        "extra", param->is_extra, "trainable", param->trainable, "storage", param->storage,
        "offset", (json_int_t)param->storage_offset, "bytes", (json_int_t)param->bytes);
    put(object);
}

static json_t *values_json(struct nrg_value *const *values, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{ss si ss so}", "name", values[i]->name, "kind",
                                              values[i]->type->kind, "dtype",
                                              nrg_dtype_name(values[i]->type->dtype), "dims",
                                              dims_json(values[i]->type, values[i]->type->dims)));
    return list;
}

static void put_ops(const struct nrg_block *block)
{
    for (size_t i = 0; i < block->n_ops; i++) {
        const struct nrg_op *op = block->ops[i];
        put(json_pack("{ss ss* so so}", "op", op->kind, "module", op->module, "inputs",
                      values_json(op->inputs, op->n_inputs), "outputs",
                      values_json(op->outputs, op->n_outputs)));
        for (size_t b = 0; b < op->n_blocks; b++)
            put_ops(op->blocks[b]);
    }
}

int main(int argc, char **argv)
{
    struct nrg_model model;
    struct nrg_error err = {.offset = -1};
    char text[800];
    if (argc < 2)
        return 2;
    if (nrg_model_read(argv[1], argc > 2 ? argv[2] : NULL, &model, &err)) {
        fprintf(stderr, "%s\n", nrg_error_text(&err, text, sizeof text));
        return 1;
    }
    put(json_pack("{ss ss*}", "format", model.format, "producer", model.producer));
    for (size_t i = 0; i < model.n_modules; i++)
        put(json_pack("{ss ss}", "module", model.modules[i].name, "class",
                      model.modules[i].class_name));
    for (size_t i = 0; i < model.n_params; i++)
        put_param(&model.params[i]);
    for (size_t i = 0; i < model.n_graphs; i++) {
        put(json_pack(
            "{ss so so}", "graph", model.graphs[i]->name, "inputs",
            values_json(model.graphs[i]->body->inputs, model.graphs[i]->body->n_inputs), "outputs",
            values_json(model.graphs[i]->body->outputs, model.graphs[i]->body->n_outputs)));
        put_ops(model.graphs[i]->body);
    }
    for (size_t i = 0; i < model.n_warnings; i++)
        put(json_pack("{ss}", "warning", model.warnings[i]));
    nrg_model_release(&model);
    return 0;
}

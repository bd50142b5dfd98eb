/*
 * graph-dump FILE [FORMAT]: a model as JSON, in the structure of the ground truth that was walked
 * through PyTorch's own API (in, nodes, out; kind, scope, attrs, blocks, types), so that a test
 * can compare them node by node. A developer's tool and a test's eye; not installed.
 *
 * graph-dump --time N FILE: reads the file N times and prints the best time, MB/s, and the bytes
 * that a node takes.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "graph/reader.h"

static json_t *block_json(const struct nrg_block *block);

static const char *word_of(enum nrg_type_kind kind)
{
    static const char *const words[] = {
        [NRG_T_TENSOR] = "Tensor",     [NRG_T_INT] = "int",       [NRG_T_FLOAT] = "float",
        [NRG_T_BOOL] = "bool",         [NRG_T_STRING] = "str",    [NRG_T_COMPLEX] = "complex",
        [NRG_T_NUMBER] = "number",     [NRG_T_NONE] = "NoneType", [NRG_T_DEVICE] = "Device",
        [NRG_T_DICT] = "Dict",         [NRG_T_UNION] = "Union",   [NRG_T_FUTURE] = "Future",
        [NRG_T_UNKNOWN] = "",          [NRG_T_TUPLE] = "Tuple",   [NRG_T_LIST] = "List",
        [NRG_T_OPTIONAL] = "Optional", [NRG_T_CLASS] = "",        [NRG_T_OTHER] = "",
    };
    return words[kind];
}

/* As PyTorch's Type.annotation_str has it. */
static void spell(const struct nrg_type *type, struct nrg_str *out)
{
    const char *word = type->name ? type->name : word_of(type->kind);
    nrg_str_add(out, word, strlen(word));
    if (!type->n_args && type->kind != NRG_T_TUPLE)
        return;
    nrg_str_add(out, "[", 1);
    for (size_t i = 0; i < type->n_args; i++) {
        if (i)
            nrg_str_add(out, ", ", 2);
        spell(type->args[i], out);
    }
    nrg_str_add(out, "]", 1);
}

static json_t *ints_json(const int64_t *values, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(values[i]));
    return list;
}

static json_t *type_json(const struct nrg_type *type)
{
    struct nrg_str text = {0};
    json_t *json = json_object();
    spell(type, &text);
    json_object_set_new(json, "str", json_string(text.text ? text.text : ""));
    nrg_str_release(&text);
    if (type->kind != NRG_T_TENSOR)
        return json;
    size_t rank = type->rank < 0 ? 0 : (size_t)type->rank;
    json_object_set_new(json, "sizes", type->rank < 0 ? json_null() : ints_json(type->dims, rank));
    json_object_set_new(json, "strides",
                        type->strides ? ints_json(type->strides, rank) : json_null());
    json_object_set_new(json, "scalar",
                        type->dtype ? json_string(nrg_dtype_name(type->dtype)) : json_null());
    json_object_set_new(json, "device", type->device ? json_string(type->device) : json_null());
    json_object_set_new(json, "requires_grad", json_integer(type->requires_grad));
    return json;
}

static json_t *value_json(const struct nrg_value *value)
{
    return json_pack("{s:s,s:o}", "name", value->name, "type", type_json(value->type));
}

static json_t *values_json(struct nrg_value *const *values, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, value_json(values[i]));
    return list;
}

static json_t *names_json(struct nrg_value *const *values, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_string(values[i]->name));
    return list;
}

/* JSON has no infinity: those go as text. */
static json_t *real_json(double value)
{
    return isfinite(value) ? json_real(value)
           : isnan(value)  ? json_string("nan")
                           : json_string(value < 0 ? "-inf" : "inf");
}

static json_t *reals_json(const double *values, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, real_json(values[i]));
    return list;
}

static json_t *texts_json(const char *const *texts, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_string(texts[i]));
    return list;
}

static json_t *tensor_json(const struct nrg_attr *attr)
{
    json_t *json = json_object();
    if (attr->is)
        json_object_set_new(json, "value", ints_json(attr->is, attr->n));
    else if (attr->fs)
        json_object_set_new(json, "value", reals_json(attr->fs, attr->n));
    if (attr->tensor)
        json_object_set_new(json, "type", type_json(attr->tensor));
    return json;
}

static json_t *attr_json(const struct nrg_attr *attr)
{
    switch (attr->kind) {
    case NRG_A_INT:
    case NRG_A_BOOL:
        return json_pack("{s:s,s:I}", "k", "i", "v", (json_int_t)attr->i);
    case NRG_A_FLOAT:
        return json_pack("{s:s,s:o}", "k", "f", "v", real_json(attr->f));
    case NRG_A_STRING:
        return json_pack("{s:s,s:s}", "k", "s", "v", attr->s);
    case NRG_A_NONE:
        return json_pack("{s:s}", "k", "none");
    case NRG_A_INTS:
        return json_pack("{s:s,s:o}", "k", "is", "v", ints_json(attr->is, attr->n));
    case NRG_A_FLOATS:
        return json_pack("{s:s,s:o}", "k", "fs", "v", reals_json(attr->fs, attr->n));
    case NRG_A_STRINGS:
        return json_pack("{s:s,s:o}", "k", "ss", "v", texts_json(attr->ss, attr->n));
    case NRG_A_TENSOR:
        return json_pack("{s:s,s:o}", "k", "t", "v", tensor_json(attr));
    case NRG_A_GRAPH:
        return json_pack("{s:s,s:s}", "k", "g", "v", attr->graph ? attr->graph->name : "<Graph>");
    case NRG_A_OTHER:
        break;
    }
    return json_pack("{s:s,s:s}", "k", "other", "v", attr->s);
}

static void add_text(json_t *json, const char *key, const char *text)
{
    if (text)
        json_object_set_new(json, key, json_string(text));
}

static json_t *op_json(const struct nrg_op *op)
{
    json_t *json = json_pack("{s:s,s:s,s:o,s:o,s:i}", "kind", op->kind, "scope",
                             op->scope ? op->scope : "", "in", names_json(op->inputs, op->n_inputs),
                             "out", values_json(op->outputs, op->n_outputs), "line", (int)op->line);
    add_text(json, "module", op->module);
    add_text(json, "label", op->label);
    add_text(json, "source", op->source);
    json_t *attrs = op->n_attrs ? json_object() : NULL;
    for (size_t i = 0; i < op->n_attrs; i++)
        json_object_set_new(attrs, op->attrs[i].name, attr_json(&op->attrs[i]));
    if (attrs)
        json_object_set_new(json, "attrs", attrs);
    json_t *blocks = op->n_blocks ? json_array() : NULL;
    for (size_t i = 0; i < op->n_blocks; i++)
        json_array_append_new(blocks, block_json(op->blocks[i]));
    if (blocks)
        json_object_set_new(json, "blocks", blocks);
    return json;
}

static json_t *block_json(const struct nrg_block *block)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < block->n_ops; i++)
        json_array_append_new(nodes, op_json(block->ops[i]));
    return json_pack("{s:o,s:o,s:o}", "in", values_json(block->inputs, block->n_inputs), "nodes",
                     nodes, "out", names_json(block->outputs, block->n_outputs));
}

static json_t *model_json(const struct nrg_model *model)
{
    json_t *graphs = json_array(), *warnings = json_array();
    for (size_t i = 0; i < model->n_graphs; i++) {
        const struct nrg_graph *graph = model->graphs[i];
        json_t *json = block_json(graph->body);
        add_text(json, "name", graph->name);
        json_object_set_new(json, "complete", json_boolean(graph->complete));
        json_object_set_new(json, "n_ops", json_integer((json_int_t)graph->n_ops));
        json_object_set_new(json, "n_values", json_integer((json_int_t)graph->n_values));
        json_array_append_new(graphs, json);
    }
    for (size_t i = 0; i < model->n_warnings; i++)
        json_array_append_new(warnings, json_string(model->warnings[i]));
    return json_pack("{s:s,s:o,s:o}", "format", model->format, "warnings", warnings, "graphs",
                     graphs);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int time_reading(const char *path, long n)
{
    struct nrg_str text = {0};
    FILE *file = fopen(path, "rb");
    char buf[65536];
    double best_s = INFINITY;
    size_t got, n_ops = 0, used = 0;
    while (file && (got = fread(buf, 1, sizeof buf, file)) > 0)
        nrg_str_add(&text, buf, got);
    if (file)
        fclose(file);
    struct nrg_source source = {
        .bytes = (const uint8_t *)text.text, .size = text.len, .name = path};
    for (long i = 0; i < n && text.len; i++) {
        struct nrg_model model;
        double before_s = now_s();
        if (nrg_model_read_bytes(&source, NULL, &model, NULL))
            break;
        double took_s = now_s() - before_s;
        best_s = took_s < best_s ? took_s : best_s;
        n_ops = 0;
        for (size_t g = 0; g < model.n_graphs; g++)
            n_ops += model.graphs[g]->n_ops;
        used = model.arena.used;
        nrg_model_release(&model);
    }
    printf(
        "%s: %zu bytes, %zu nodes, best of %ld: %.3f ms, %.0f MB/s, %zu bytes of memory a node\n",
        path, text.len, n_ops, n, best_s * 1e3, (double)text.len / best_s / 1e6,
        n_ops ? used / n_ops : 0);
    nrg_str_release(&text);
    return n_ops ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct nrg_model model;
    struct nrg_error err = {0};
    char text[800];
    if (argc == 4 && !strcmp(argv[1], "--time"))
        return time_reading(argv[3], atol(argv[2]));
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: graph-dump FILE [FORMAT] | graph-dump --time N FILE\n");
        return 2;
    }
    if (nrg_model_read(argv[1], argc == 3 ? argv[2] : NULL, &model, &err)) {
        fprintf(stderr, "%s\n", nrg_error_text(&err, text, sizeof text));
        return 1;
    }
    json_t *json = model_json(&model);
    json_dumpf(json, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(json);
    nrg_model_release(&model);
    return 0;
}

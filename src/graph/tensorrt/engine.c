/*
 * Reader of TensorRT engine information: what trtexec --exportLayerInfo and the engine inspector
 * write, {"Layers": […], "Bindings": […]}, one layer alone, or a list of layers.
 *
 *   {"Name": "/conv1/Conv + /relu/Relu", "LayerType": "CaskConvolution", "Inputs": [{"Name",
 *    "Dimensions", "Format/Datatype"}], "Outputs": […], "Kernel": [7, 7], "Weights": {"Type":
 *    "Half", "Count": 9408}, "Metadata": "[ONNX Layer: /conv1/Conv]", …}
 *
 * A layer becomes an operator "trt::<LayerType>" in the file's order, which is the order of
 * execution. Tensors are identified by name; a name that several layers write (TensorRT removes
 * concatenations that way) is a new value each time. Weights and constants become parameters.
 * The module is that of the first ONNX node or PyTorch call in the layer's name.
 * An engine built without detailed profiling verbosity has only names: operators without operands.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "graph/json_text.h"
#include "graph/readers.h"
#include "graph/scope_path.h"

#define MAX_LAYERS ((size_t)1 << 20)
#define LONGEST    1024

struct trt {
    struct nrg_layers layers;
    const struct nrg_source *source;
    struct nrg_error *err;
    struct nrg_map values;
    size_t n_names; /* layers that are only names */
};

static const char *text_of(struct trt *t, const json_t *layer, const char *key)
{
    return nrg_layers_text(&t->layers, json_string_value(json_object_get(layer, key)));
}

/* The first word that is an element type: "Channel major FP16 format where channel % 8 == 0". */
static enum nrg_dtype format_dtype(const char *text)
{
    while (text && *text) {
        size_t n = strcspn(text, " ,.:;()[]%=-");
        enum nrg_dtype dtype = n ? nrg_dtype_from_name(text, n) : NRG_DTYPE_UNKNOWN;
        if (n == 3 && !strncasecmp(text, "FP8", 3))
            dtype = NRG_F8_E4M3FN;
        if (dtype != NRG_DTYPE_UNKNOWN)
            return dtype;
        text += n + (text[n] != 0);
    }
    return NRG_DTYPE_UNKNOWN;
}

static int add_param(struct trt *t, const char *name, const struct nrg_type *type)
{
    int64_t numel = nrg_type_numel(type);
    unsigned bits = nrg_dtype_bits(type->dtype);
    struct nrg_param param = {
        .name = name,
        .type = type,
        .trainable = 0,
        .storage = name,
        .bytes = numel >= 0 && numel < INT64_MAX / 128 && bits ? numel * (int64_t)bits / 8 : -1};
    return nrg_model_add_param(t->layers.model, &param);
}

static struct nrg_value *new_tensor(struct trt *t, const json_t *entry)
{
    const char *name = text_of(t, entry, "Name");
    const char *format = json_string_value(json_object_get(entry, "Format/Datatype"));
    if (!format)
        format = json_string_value(json_object_get(entry, "Format"));
    return nrg_layers_value(&t->layers, name,
                            nrg_json_tensor(t->layers.model, json_object_get(entry, "Dimensions"),
                                            format_dtype(format)));
}

/* A tensor that nothing made: an input of the engine, or a constant by its name. */
static struct nrg_value *find_input(struct trt *t, const json_t *entry)
{
    const char *name = json_string_value(json_object_get(entry, "Name"));
    struct nrg_value *value = name ? nrg_map_get(&t->values, name) : NULL;
    if (value)
        return value;
    value = new_tensor(t, entry);
    if (!value || nrg_map_set(&t->values, value->name, value))
        return NULL;
    if (strstr(value->name, "const")) {
        t->layers.out_of_memory |= add_param(t, value->name, value->type) != 0;
        return value;
    }
    t->layers.graph->body->inputs[t->layers.graph->body->n_inputs++] = value;
    return value;
}

/* Weights and biases as parameters "<module or layer>.weight" of one dimension. */
static struct nrg_value *add_weights(struct trt *t, const json_t *layer, const char *key,
                                     const char *suffix, const struct nrg_op *op)
{
    const json_t *about = json_object_get(layer, key);
    int64_t count = json_integer_value(json_object_get(about, "Count"));
    const char *type = json_string_value(json_object_get(about, "Type"));
    const char *base = op->module && op->module[0] ? op->module : op->label;
    char *name =
        count > 0 ? nrg_layers_take(&t->layers, strlen(base) + strlen(suffix) + 24, 1) : NULL;
    if (!name)
        return NULL;
    strcat(strcpy(name, base), suffix);
    if (nrg_map_get(&t->values, name)) /* several layers share the module */
        strcat(strcpy(name, op->label), suffix);
    const struct nrg_type *tensor_type =
        nrg_type_tensor(&t->layers.model->arena, format_dtype(type), 1, &count);
    struct nrg_value *value = nrg_layers_value(&t->layers, name, tensor_type);
    if (!value || add_param(t, name, tensor_type) || nrg_map_set(&t->values, name, value))
        t->layers.out_of_memory = true;
    return value;
}

/* The text between the last '[' and its ']' that has a '/', as torch_tensorrt writes calls. */
static const char *bracketed(const char *part, size_t *len)
{
    for (const char *at = part + *len; at-- > part;) {
        const char *close = *at == '[' ? memchr(at, ']', *len - (size_t)(at - part)) : NULL;
        if (close && memchr(at, '/', (size_t)(close - at))) {
            *len = (size_t)(close - at) - 1;
            return at + 1;
        }
    }
    return part;
}

/* "[ONNX Layer: /conv1/Conv]…" of the metadata, or the first " + " part of the name with a '/'. */
static const char *module_of(struct trt *t, const char *name, const char *metadata)
{
    static const char onnx[] = "[ONNX Layer: ";
    const char *part = strstr(metadata, onnx), *next;
    char path[LONGEST];
    size_t len = 0;
    int n = -1;
    if (part) {
        part += sizeof onnx - 1;
        len = strcspn(part, "]");
        n = nrg_scope_path(part, len, path, sizeof path, NULL, NULL);
    }
    for (part = name; n < 0 && part; part = next ? next + 3 : NULL) {
        next = strstr(part, " + ");
        len = next ? (size_t)(next - part) : strlen(part);
        const char *inner = bracketed(part, &len);
        const char *slash = memchr(inner, '/', len);
        if (slash && slash > inner && !strncmp(name, "Reformat", 8)) { /* "… to /conv1/Conv" */
            len -= (size_t)(slash - inner);
            inner = slash;
        }
        n = nrg_scope_path(inner, len, path, sizeof path, NULL, NULL);
    }
    if (n < 0)
        return NULL;
    char *copy = nrg_arena_copy(&t->layers.model->arena, path, (size_t)n);
    t->layers.out_of_memory |= !copy;
    return copy;
}

static bool attr_of(struct trt *t, const char *key, const json_t *value, struct nrg_attr *attr)
{
    *attr = (struct nrg_attr){.name = nrg_layers_text(&t->layers, key)};
    if (json_is_integer(value)) {
        attr->kind = NRG_A_INT;
        attr->i = json_integer_value(value);
    } else if (json_is_string(value)) {
        attr->kind = NRG_A_STRING;
        attr->s = nrg_layers_text(&t->layers, json_string_value(value));
    } else if (!json_is_integer(json_array_get(value, 0)) ||
               !nrg_layers_ints(&t->layers, value, attr)) {
        return false;
    }
    return !t->layers.out_of_memory;
}

static void add_attributes(struct trt *t, const json_t *layer, struct nrg_op *op)
{
    struct nrg_attr *attrs =
        nrg_layers_take(&t->layers, json_object_size(layer) + 2, sizeof *attrs);
    const char *key;
    json_t *value;
    op->attrs = attrs;
    json_object_foreach((json_t *)(uintptr_t)layer, key, value)
    {
        if (t->layers.out_of_memory)
            return;
        if (strcmp(key, "Name") && strcmp(key, "LayerType") && strcmp(key, "Metadata") &&
            attr_of(t, key, value, &attrs[op->n_attrs]))
            op->n_attrs++;
    }
    static const char *const counts[][2] = {{"Weights", "Weights.Count"},
                                            {"ConvWeights", "ConvWeights.Count"}};
    for (size_t i = 0; attrs && i < 2; i++) {
        const json_t *weights = json_object_get(layer, counts[i][0]);
        int64_t count = json_integer_value(json_object_get(weights, "Count"));
        if (count > 0)
            attrs[op->n_attrs++] =
                (struct nrg_attr){.name = counts[i][1], .kind = NRG_A_INT, .i = count};
    }
}

static const char *kind_of(struct trt *t, const json_t *layer)
{
    const char *type = json_string_value(json_object_get(layer, "LayerType"));
    char text[128] = "trt::";
    size_t n = type ? strlen(type) : 0;
    if (!n)
        return "trt::layer";
    memcpy(text + 5, type, n > 100 ? 100 : n);
    return nrg_layers_text(&t->layers, text);
}

static void add_operands(struct trt *t, const json_t *layer, struct nrg_op *op)
{
    const json_t *in = json_object_get(layer, "Inputs"), *out = json_object_get(layer, "Outputs");
    size_t n_in = json_array_size(in), n_out = json_array_size(out);
    op->inputs = nrg_layers_take(&t->layers, n_in + 4, sizeof(struct nrg_value *));
    op->outputs = nrg_layers_take(&t->layers, n_out, sizeof(struct nrg_value *));
    for (size_t i = 0; i < n_in && !t->layers.out_of_memory; i++)
        if ((op->inputs[op->n_inputs] = find_input(t, json_array_get(in, i))))
            op->n_inputs++;
    static const char *const keys[4][2] = {{"Weights", ".weight"},
                                           {"Bias", ".bias"},
                                           {"ConvWeights", ".weight"},
                                           {"ConvBias", ".bias"}};
    for (size_t i = 0; i < 4 && !t->layers.out_of_memory; i++)
        if ((op->inputs[op->n_inputs] = add_weights(t, layer, keys[i][0], keys[i][1], op)))
            op->n_inputs++;
    for (size_t i = 0; i < n_out && !t->layers.out_of_memory; i++) {
        struct nrg_value *value = new_tensor(t, json_array_get(out, i));
        if (!value || nrg_map_set(&t->values, value->name, value)) {
            t->layers.out_of_memory = true;
            return;
        }
        value->producer = op;
        op->outputs[op->n_outputs++] = value;
    }
}

static struct nrg_op *layer_op(struct trt *t, const json_t *layer)
{
    struct nrg_op *op = nrg_layers_take(&t->layers, 1, sizeof *op);
    if (!op)
        return NULL;
    op->parent = t->layers.graph->body;
    op->id = (uint32_t)t->layers.graph->n_ops++;
    if (json_is_string(layer)) {
        op->kind = "trt::layer";
        op->label = nrg_layers_text(&t->layers, json_string_value(layer));
        op->module = module_of(t, op->label, "");
        t->n_names++;
        return op;
    }
    op->kind = kind_of(t, layer);
    op->label = text_of(t, layer, "Name");
    op->module = module_of(t, op->label, text_of(t, layer, "Metadata"));
    add_attributes(t, layer, op);
    if (!t->layers.out_of_memory)
        add_operands(t, layer, op);
    return op;
}

/* Bindings that a layer made are the engine's outputs; without the list, the last layer's. */
static void set_outputs(struct trt *t, const json_t *bindings)
{
    struct nrg_block *body = t->layers.graph->body;
    if (!json_array_size(bindings)) {
        body->outputs = body->ops[body->n_ops - 1]->outputs;
        body->n_outputs = body->ops[body->n_ops - 1]->n_outputs;
        return;
    }
    body->outputs =
        nrg_layers_take(&t->layers, json_array_size(bindings), sizeof(struct nrg_value *));
    for (size_t i = 0; i < json_array_size(bindings) && !t->layers.out_of_memory; i++) {
        const char *name = json_string_value(json_array_get(bindings, i));
        struct nrg_value *value = name ? nrg_map_get(&t->values, name) : NULL;
        if (value && value->producer)
            body->outputs[body->n_outputs++] = value;
    }
}

static size_t inputs_in(const json_t *layers)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(layers); i++)
        n += json_array_size(json_object_get(json_array_get(layers, i), "Inputs"));
    return n;
}

static int add_layers(struct trt *t, const json_t *layers, const json_t *bindings)
{
    size_t n = json_array_size(layers), n_inputs = inputs_in(layers);
    if (n > MAX_LAYERS || n_inputs > MAX_LAYERS)
        return nrg_fail(t->err, -EFBIG, t->source->name, "has too many layers");
    struct nrg_block *body = nrg_layers_begin(&t->layers, n, n_inputs);
    if (!body)
        return -ENOMEM;
    for (size_t i = 0; i < n && !t->layers.out_of_memory; i++) {
        const json_t *layer = json_array_get(layers, i);
        if (!json_is_object(layer) && !json_is_string(layer))
            return nrg_fail(t->err, -EBADMSG, t->source->name,
                            "layer %zu is neither an object nor a name", i);
        body->ops[body->n_ops++] = layer_op(t, layer);
    }
    if (!t->layers.out_of_memory)
        set_outputs(t, bindings);
    return t->layers.out_of_memory || nrg_model_add_graph(t->layers.model, t->layers.graph)
               ? -ENOMEM
               : 0;
}

static int trt_read(const struct nrg_source *source, struct nrg_model *model, struct nrg_error *err)
{
    struct trt t = {.layers.model = model, .source = source, .err = err};
    json_t *root = nrg_json_open(source, err), *alone = NULL;
    if (!root)
        return -EBADMSG;
    const json_t *layers = json_is_object(root) ? json_object_get(root, "Layers") : root;
    if (json_is_object(root) && json_object_get(root, "LayerType"))
        layers = alone = json_pack("[O]", root);
    int rc =
        json_is_array(layers) && json_array_size(layers)
            ? add_layers(&t, layers, json_object_get(root, "Bindings"))
            : nrg_fail(err, -EBADMSG, source->name, "has no layers: not an engine's information");
    if (rc == -ENOMEM)
        nrg_fail(err, rc, source->name, "needs more memory than its size allows");
    if (!rc && t.n_names)
        nrg_model_warn(model,
                       "%zu layers are only names: build the engine with detailed profiling "
                       "verbosity (trtexec --profilingVerbosity=detailed) to see what they do",
                       t.n_names);
    nrg_map_release(&t.values);
    json_decref(alone);
    json_decref(root);
    return rc;
}

static int trt_match(const struct nrg_source *source)
{
    return nrg_json_mentions(source, "Layers")      ? 85
           : nrg_json_mentions(source, "LayerType") ? 75
                                                    : 0;
}

const struct nrg_reader nrg_reader_tensorrt = {
    .name = "tensorrt",
    .summary = "TensorRT engine information (trtexec --exportLayerInfo, engine inspector)",
    .match = trt_match,
    .read = trt_read,
};

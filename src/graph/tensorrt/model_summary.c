/*
 * Reader of model_summary.json as the Jetson measurements write it: the leaf layers of a PyTorch
 * model in the order of execution, with shapes but without weights or edges.
 *
 *   {"conv1": {"input_shape": [1, 3, 32, 32], "output_shape": [1, 6, 28, 28],
 *              "kernel_size": [5, 5], "stride": [1, 1], "padding": [0, 0], "type": "Conv2d"}, …}
 *
 * Each layer becomes an operator "layer::<type>" of its own module, with one input and one output
 * of the given shapes. Layers are not connected: the file does not say how, and a layer whose input
 * equals its predecessor's output in shape need not read it.
 */
#include <errno.h>
#include <string.h>

#include "graph/json_text.h"
#include "graph/readers.h"

static struct nrg_value *value_of(struct nrg_layers *l, const char *layer, const char *suffix,
                                  const json_t *dims)
{
    char *name = nrg_layers_take(l, strlen(layer) + strlen(suffix) + 1, 1);
    if (!name)
        return NULL;
    strcat(strcpy(name, layer), suffix);
    return nrg_layers_value(l, name, nrg_json_tensor(l->model, dims, NRG_DTYPE_UNKNOWN));
}

/* kernel_size, stride, padding: a number, a list, or null. */
static void add_numbers(struct nrg_layers *l, const json_t *layer, struct nrg_op *op)
{
    static const char *const keys[] = {"kernel_size", "stride", "padding", "dilation", "groups"};
    struct nrg_attr *attrs = nrg_layers_take(l, 5, sizeof *attrs);
    op->attrs = attrs;
    for (size_t k = 0; k < 5 && !l->out_of_memory; k++) {
        attrs[op->n_attrs].name = keys[k];
        op->n_attrs += nrg_layers_ints(l, json_object_get(layer, keys[k]), &attrs[op->n_attrs]);
    }
}

static struct nrg_op *layer_op(struct nrg_layers *l, const char *key, const json_t *layer)
{
    const char *name = nrg_layers_text(l, key);
    const char *class_name = nrg_layers_text(l, json_string_value(json_object_get(layer, "type")));
    struct nrg_op *op = nrg_layers_take(l, 1, sizeof *op);
    struct nrg_value **ends = nrg_layers_take(l, 2, sizeof(struct nrg_value *));
    char *kind = nrg_layers_take(l, strlen(class_name) + 8, 1);
    if (l->out_of_memory || nrg_model_add_module(l->model, name, class_name))
        return NULL;
    strcat(strcpy(kind, "layer::"), class_name);
    ends[0] = value_of(l, name, ".input", json_object_get(layer, "input_shape"));
    ends[1] = value_of(l, name, ".output", json_object_get(layer, "output_shape"));
    *op = (struct nrg_op){.kind = kind,
                          .label = name,
                          .module = name,
                          .inputs = ends,
                          .n_inputs = 1,
                          .outputs = ends + 1,
                          .n_outputs = 1,
                          .parent = l->graph->body,
                          .id = (uint32_t)l->graph->n_ops++};
    if (!l->out_of_memory)
        ends[1]->producer = op;
    add_numbers(l, layer, op);
    return l->out_of_memory ? NULL : op;
}

static int add_layers(struct nrg_layers *l, const struct nrg_source *source, json_t *root,
                      struct nrg_error *err)
{
    size_t n = json_object_size(root);
    struct nrg_block *body = nrg_layers_begin(l, n, n);
    const char *key;
    json_t *layer;
    if (!body || !(body->outputs = nrg_layers_take(l, n, sizeof(struct nrg_value *))))
        return -ENOMEM;
    json_object_foreach(root, key, layer)
    {
        if (!json_is_object(layer) || !json_object_get(layer, "output_shape"))
            return nrg_fail(err, -EBADMSG, source->name, "'%.100s' has no output_shape", key);
        struct nrg_op *op = layer_op(l, key, layer);
        if (!op)
            return -ENOMEM;
        body->ops[body->n_ops++] = op;
        body->inputs[body->n_inputs++] = op->inputs[0];
        body->outputs[body->n_outputs++] = op->outputs[0];
    }
    return nrg_model_add_graph(l->model, l->graph);
}

static int summary_read(const struct nrg_source *source, struct nrg_model *model,
                        struct nrg_error *err)
{
    struct nrg_layers layers = {.model = model};
    json_t *root = nrg_json_open(source, err);
    if (!root)
        return -EBADMSG;
    int rc = json_is_object(root) && json_object_size(root)
                 ? add_layers(&layers, source, root, err)
                 : nrg_fail(err, -EBADMSG, source->name, "is not an object of layers");
    if (rc == -ENOMEM)
        nrg_fail(err, rc, source->name, "needs more memory than its size allows");
    json_decref(root);
    return rc;
}

static int summary_match(const struct nrg_source *source)
{
    return nrg_json_mentions(source, "input_shape") && nrg_json_mentions(source, "output_shape")
               ? 80
               : 0;
}

const struct nrg_reader nrg_reader_model_summary = {
    .name = "model-summary",
    .summary = "model_summary.json of layer-wise measurements: layers with shapes",
    .match = summary_match,
    .read = summary_read,
};

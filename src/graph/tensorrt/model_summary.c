/*
 * Reader of model_summary.json as the Jetson measurements write it: the leaf layers of a PyTorch
 * model in the order of execution, with shapes but without weights or edges.
 *
 *   {"conv1": {"input_shape": [1, 3, 32, 32], "output_shape": [1, 6, 28, 28], "kernel_size": [5,
 * 5], "stride": [1, 1], "padding": [0, 0], "type": "Conv2d"}, …}
 *
 * Each layer becomes an operator "layer::<type>" of its own module, with one input and one output
 * of the shapes told. Layers are not connected: the file does not say how, and a layer whose input
 * equals its predecessor's output in shape need not read it.
 */
#include <errno.h>
#include <string.h>

#include "graph/json_text.h"
#include "graph/readers.h"

struct summary {
    struct nrg_model *model;
    struct nrg_graph *graph;
    bool out_of_memory;
};

static void *take(struct summary *s, size_t n, size_t size)
{
    void *p = nrg_arena_array(&s->model->arena, n ? n : 1, size);
    s->out_of_memory |= !p;
    return p;
}

static struct nrg_value *value_of(struct summary *s, const char *layer, const char *suffix,
                                  const json_t *dims)
{
    struct nrg_value *value = take(s, 1, sizeof *value);
    char *name = take(s, strlen(layer) + strlen(suffix) + 1, 1);
    const struct nrg_type *type = nrg_json_tensor(s->model, dims, NRG_DTYPE_UNKNOWN);
    s->out_of_memory |= !type;
    if (s->out_of_memory)
        return NULL;
    strcat(strcpy(name, layer), suffix);
    *value = (struct nrg_value){name, type, NULL, (uint32_t)s->graph->n_values++};
    return value;
}

/* kernel_size, stride, padding: a number, a list, or null. */
static void numbers(struct summary *s, const json_t *layer, struct nrg_op *op)
{
    static const char *const keys[] = {"kernel_size", "stride", "padding", "dilation", "groups"};
    struct nrg_attr *attrs = take(s, 5, sizeof *attrs);
    op->attrs = attrs;
    for (size_t k = 0; k < 5 && !s->out_of_memory; k++) {
        const json_t *value = json_object_get(layer, keys[k]);
        size_t n = json_is_integer(value) ? 1 : json_array_size(value);
        int64_t *is = n ? take(s, n, sizeof *is) : NULL;
        for (size_t i = 0; is && i < n; i++)
            is[i] = json_integer_value(json_is_array(value) ? json_array_get(value, i) : value);
        if (is)
            attrs[op->n_attrs++] = (struct nrg_attr){
                .name = keys[k], .kind = NRG_A_INTS, .n = n, .i = is[0], .is = is};
    }
}

static struct nrg_op *layer_op(struct summary *s, const char *key, const json_t *layer)
{
    const char *type = json_string_value(json_object_get(layer, "type"));
    const char *name = nrg_json_copy(s->model, key);
    const char *class_name = nrg_json_copy(s->model, type ? type : "");
    struct nrg_op *op = take(s, 1, sizeof *op);
    struct nrg_value **ends = take(s, 2, sizeof(struct nrg_value *));
    char *kind = take(s, strlen(type ? type : "") + 8, 1);
    s->out_of_memory |= !name || !class_name;
    if (s->out_of_memory || nrg_model_add_module(s->model, name, class_name))
        return NULL;
    strcat(strcpy(kind, "layer::"), class_name);
    ends[0] = value_of(s, name, ".input", json_object_get(layer, "input_shape"));
    ends[1] = value_of(s, name, ".output", json_object_get(layer, "output_shape"));
    *op = (struct nrg_op){.kind = kind,
                          .label = name,
                          .module = name,
                          .inputs = ends,
                          .n_inputs = 1,
                          .outputs = ends + 1,
                          .n_outputs = 1,
                          .parent = s->graph->body,
                          .id = (uint32_t)s->graph->n_ops++};
    if (!s->out_of_memory)
        ends[1]->producer = op;
    numbers(s, layer, op);
    return s->out_of_memory ? NULL : op;
}

static int fill(struct summary *s, const struct nrg_source *source, json_t *root,
                struct nrg_error *err)
{
    struct nrg_block *body = take(s, 1, sizeof *body);
    size_t n = json_object_size(root);
    const char *key;
    json_t *layer;
    s->graph = take(s, 1, sizeof *s->graph);
    if (s->out_of_memory)
        return -ENOMEM;
    *s->graph = (struct nrg_graph){.name = "", .body = body, .complete = true};
    body->ops = take(s, n, sizeof(struct nrg_op *));
    body->inputs = take(s, n, sizeof(struct nrg_value *));
    body->outputs = take(s, n, sizeof(struct nrg_value *));
    json_object_foreach(root, key, layer)
    {
        struct nrg_op *op = NULL;
        if (!json_is_object(layer) || !json_object_get(layer, "output_shape"))
            return nrg_fail(err, -EBADMSG, source->name, "'%.100s' has no output_shape", key);
        if (s->out_of_memory || !(op = layer_op(s, key, layer)))
            return -ENOMEM;
        body->ops[body->n_ops++] = op;
        body->inputs[body->n_inputs++] = op->inputs[0];
        body->outputs[body->n_outputs++] = op->outputs[0];
    }
    return nrg_model_add_graph(s->model, s->graph);
}

static int summary_read(const struct nrg_source *source, struct nrg_model *model,
                        struct nrg_error *err)
{
    struct summary s = {.model = model};
    json_t *root = nrg_json_open(source, err);
    if (!root)
        return -EBADMSG;
    int rc = json_is_object(root) && json_object_size(root)
                 ? fill(&s, source, root, err)
                 : nrg_fail(err, -EBADMSG, source->name, "is no object of layers");
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

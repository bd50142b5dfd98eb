/*
 * See json_text.h. Benchmarks that dump a JSON text with a JSON writer leave a file that is one
 * string; it is unwrapped at most MAX_WRAPS times. Jansson bounds the nesting itself.
 */
#include "graph/json_text.h"

#include <errno.h>
#include <string.h>

#define PEEK      4096
#define MAX_WRAPS 3
#define MAX_RANK  32

json_t *nrg_json_load(const struct nrg_source *source, size_t flags, struct nrg_error *err)
{
    json_error_t why;
    json_t *root = json_loadb((const char *)source->bytes, source->size, flags, &why);
    if (!root)
        nrg_fail_at(err, -EBADMSG, source->name, why.position, "is not JSON: %.100s", why.text);
    return root;
}

json_t *nrg_json_open(const struct nrg_source *source, struct nrg_error *err)
{
    json_t *root = nrg_json_load(source, JSON_DECODE_ANY, err);
    for (int i = 0; json_is_string(root) && i < MAX_WRAPS; i++) {
        const struct nrg_source inner = {.bytes = (const uint8_t *)json_string_value(root),
                                         .size = json_string_length(root),
                                         .name = source->name};
        json_t *unwrapped = nrg_json_load(&inner, JSON_DECODE_ANY, err);
        json_decref(root);
        root = unwrapped;
    }
    return root;
}

bool nrg_json_mentions(const struct nrg_source *source, const char *word)
{
    size_t n = source->size < PEEK ? source->size : PEEK, len = strlen(word), i = 0;
    while (i < n && strchr(" \t\r\n", source->bytes[i]) && source->bytes[i])
        i++;
    if (i == n || !strchr("{[\"", source->bytes[i]) || !source->bytes[i])
        return false;
    for (const uint8_t *p = source->bytes, *end = p + n;
         (p = memmem(p, (size_t)(end - p), word, len)); p++) {
        const uint8_t *after = p + len;
        if (p > source->bytes && p[-1] == '"' && after < end && (*after == '"' || *after == '\\'))
            return true;
    }
    return false;
}

const struct nrg_type *nrg_json_tensor(struct nrg_model *model, const json_t *dims,
                                       enum nrg_dtype dtype)
{
    int64_t d[MAX_RANK];
    size_t n = json_array_size(dims);
    if (!json_is_array(dims) || n > MAX_RANK)
        return nrg_type_tensor(&model->arena, dtype, -1, NULL);
    for (size_t i = 0; i < n; i++) {
        const json_t *dim = json_array_get(dims, i);
        d[i] = json_is_integer(dim) && json_integer_value(dim) >= 0 ? json_integer_value(dim)
                                                                    : NRG_DIM_UNKNOWN;
    }
    return nrg_type_tensor(&model->arena, dtype, (int)n, d);
}

bool nrg_json_dims(const json_t *list, int64_t least, struct nrg_tensor_info *tensor)
{
    if (!json_is_array(list) || json_array_size(list) > NRG_MAX_RANK)
        return false;
    tensor->rank = (int)json_array_size(list);
    for (int i = 0; i < tensor->rank; i++) {
        const json_t *dim = json_array_get(list, (size_t)i);
        tensor->dims[i] = json_integer_value(dim);
        if (!json_is_integer(dim) || tensor->dims[i] < least)
            return false;
    }
    return true;
}

void *nrg_layers_take(struct nrg_layers *l, size_t n, size_t size)
{
    void *p = nrg_arena_array(&l->model->arena, n ? n : 1, size);
    l->out_of_memory |= !p;
    return p;
}

struct nrg_block *nrg_layers_begin(struct nrg_layers *l, size_t n_ops, size_t n_inputs)
{
    struct nrg_block *body = nrg_layers_take(l, 1, sizeof *body);
    l->graph = nrg_layers_take(l, 1, sizeof *l->graph);
    if (l->out_of_memory)
        return NULL;
    *l->graph = (struct nrg_graph){.name = "", .body = body, .complete = true};
    body->ops = nrg_layers_take(l, n_ops, sizeof(struct nrg_op *));
    body->inputs = nrg_layers_take(l, n_inputs, sizeof(struct nrg_value *));
    return l->out_of_memory ? NULL : body;
}

const char *nrg_layers_text(struct nrg_layers *l, const char *text)
{
    const char *copy = text ? nrg_model_text(l->model, text, strlen(text)) : "";
    l->out_of_memory |= !copy;
    return copy ? copy : "";
}

struct nrg_value *nrg_layers_value(struct nrg_layers *l, const char *name,
                                   const struct nrg_type *type)
{
    struct nrg_value *value = nrg_layers_take(l, 1, sizeof *value);
    l->out_of_memory |= !type;
    if (!value || !type)
        return NULL;
    *value = (struct nrg_value){name, type, NULL, (uint32_t)l->graph->n_values++};
    return value;
}

bool nrg_layers_ints(struct nrg_layers *l, const json_t *value, struct nrg_attr *attr)
{
    size_t n = json_is_integer(value) ? 1 : json_array_size(value);
    int64_t *is = n ? nrg_layers_take(l, n, sizeof *is) : NULL;
    for (size_t i = 0; is && i < n; i++)
        is[i] = json_integer_value(json_is_array(value) ? json_array_get(value, i) : value);
    if (is)
        *attr =
            (struct nrg_attr){.name = attr->name, .kind = NRG_A_INTS, .n = n, .i = is[0], .is = is};
    return is != NULL;
}

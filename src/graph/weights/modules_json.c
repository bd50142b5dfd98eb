/*
 * Reader of the module list that Python front ends write (docs/graph-params.md): a JSON list of
 * modules with their parameters' and buffers' shapes, in the order of named_modules().
 *
 *     [{"name": "fc", "class": "torch.nn.modules.linear.Linear",
 *       "params": {"weight": [[20, 512], "float32"]}, "bufs": {}}, …]
 *
 * Counts that the file repeats (own_params, total_params) are not trusted and not used.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "graph/param.h"
#include "graph/readers.h"

#define SCHEMA "nrg.modules/1"
#define PEEK   4096

static bool mentions(const struct nrg_source *source, const char *word)
{
    size_t n = source->size < PEEK ? source->size : PEEK;
    return memmem(source->bytes, n, word, strlen(word)) != NULL;
}

static int match_modules(const struct nrg_source *source)
{
    size_t i = 0;
    while (i < source->size && strchr(" \t\r\n", source->bytes[i]) && source->bytes[i])
        i++;
    if (i == source->size || (source->bytes[i] != '[' && source->bytes[i] != '{'))
        return 0;
    if (mentions(source, "\"" SCHEMA "\""))
        return 95;
    return mentions(source, "\"params\"") && mentions(source, "\"name\"") &&
                   (mentions(source, "\"bufs\"") || mentions(source, "\"class\""))
               ? 85
               : 0;
}

/* [dims, dtype] or [dims, dtype, {"trainable": …, "storage": …, "offset": …}]. */
static bool read_tensor(const json_t *entry, struct nrg_tensor_info *tensor)
{
    const json_t *dims = json_array_get(entry, 0), *more = json_array_get(entry, 2);
    const char *dtype = json_string_value(json_array_get(entry, 1));
    const json_t *trainable = json_object_get(more, "trainable");
    *tensor = (struct nrg_tensor_info){.requires_grad = -1, .storage_numel = -1, .bytes = -1};
    if (!json_is_array(dims) || json_array_size(dims) > NRG_MAX_RANK || !dtype)
        return false;
    tensor->rank = (int)json_array_size(dims);
    for (int i = 0; i < tensor->rank; i++) {
        if (!json_is_integer(json_array_get(dims, (size_t)i)))
            return false;
        tensor->dims[i] = json_integer_value(json_array_get(dims, (size_t)i));
    }
    tensor->dtype = nrg_dtype_from_name(dtype, strlen(dtype));
    if (json_is_boolean(trainable))
        tensor->requires_grad = json_is_true(trainable);
    tensor->storage = json_string_value(json_object_get(more, "storage"));
    tensor->storage_len = tensor->storage ? strlen(tensor->storage) : 0;
    tensor->storage_offset = json_integer_value(json_object_get(more, "offset"));
    return true;
}

static int add_all(const struct nrg_source *source, struct nrg_model *model, const char *module,
                   const json_t *tensors, enum nrg_param_role role, struct nrg_error *err)
{
    const char *name;
    json_t *entry;
    json_object_foreach((json_t *)tensors, name, entry)
    {
        struct nrg_tensor_info tensor;
        struct nrg_str path = {0};
        int rc = 0;
        if (!read_tensor(entry, &tensor))
            return nrg_fail(err, -EBADMSG, source->name,
                            "'%.100s.%.100s' is not [[dims], \"dtype\"]", module, name);
        if (nrg_str_addf(&path, "%s%s%s", module, *module ? "." : "", name))
            return nrg_fail(err, -ENOMEM, source->name, "out of memory");
        rc = nrg_param_add(model, source->name, path.text, path.len, &tensor, role, err);
        nrg_str_release(&path);
        if (rc)
            return rc;
    }
    return 0;
}

static int add_module(const struct nrg_source *source, struct nrg_model *model, const json_t *entry,
                      struct nrg_error *err)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    const char *class = json_string_value(json_object_get(entry, "class"));
    if (!name)
        return nrg_fail(err, -EBADMSG, source->name, "module %zu of the list has no name",
                        model->n_modules);
    const char *kept = nrg_model_text(model, name, strlen(name));
    const char *kept_class = nrg_model_text(model, class ? class : "", class ? strlen(class) : 0);
    if (!kept || !kept_class || nrg_model_add_module(model, kept, kept_class))
        return nrg_fail(err, -ENOMEM, source->name, "needs more memory than its size allows");
    int rc = add_all(source, model, kept, json_object_get(entry, "params"), NRG_ROLE_PARAM, err);
    return rc ? rc
              : add_all(source, model, kept, json_object_get(entry, "bufs"), NRG_ROLE_BUFFER, err);
}

static int read_modules(const struct nrg_source *source, struct nrg_model *model,
                        struct nrg_error *err)
{
    json_error_t why;
    json_t *root = json_loadb((const char *)source->bytes, source->size, 0, &why);
    const json_t *list = json_is_object(root) ? json_object_get(root, "modules") : root;
    int rc = 0;
    if (!root)
        return nrg_fail_at(err, -EBADMSG, source->name, why.position, "is not JSON: %.100s",
                           why.text);
    if (!json_is_array(list) || !json_array_size(list))
        rc = nrg_fail(err, -EBADMSG, source->name, "is no list of modules");
    for (size_t i = 0; !rc && i < json_array_size(list); i++)
        rc = add_module(source, model, json_array_get(list, i), err);
    json_decref(root);
    return rc;
}

const struct nrg_reader nrg_reader_modules_json = {
    .name = "modules-json",
    .summary = "list of modules with parameter shapes (docs/graph-params.md)",
    .match = match_modules,
    .read = read_modules,
};

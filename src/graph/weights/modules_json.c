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
#include <string.h>

#include "base/mem.h"
#include "graph/json_text.h"
#include "graph/param.h"
#include "graph/readers.h"

#define SCHEMA "nrg.modules/1"

static int match_modules(const struct nrg_source *source)
{
    if (nrg_json_mentions(source, SCHEMA))
        return 95;
    return nrg_json_mentions(source, "params") && nrg_json_mentions(source, "name") &&
                   (nrg_json_mentions(source, "bufs") || nrg_json_mentions(source, "class"))
               ? 85
               : 0;
}

/* [dims, dtype] or [dims, dtype, {"trainable": …, "storage": …, "offset": …}]. */
static bool read_tensor(const json_t *entry, struct nrg_tensor_info *tensor)
{
    const json_t *more = json_array_get(entry, 2);
    const char *dtype = json_string_value(json_array_get(entry, 1));
    const json_t *trainable = json_object_get(more, "trainable");
    *tensor = (struct nrg_tensor_info){.requires_grad = -1, .storage_numel = -1, .bytes = -1};
    if (!dtype || !nrg_json_dims(json_array_get(entry, 0), INT64_MIN, tensor))
        return false;
    tensor->dtype = nrg_dtype_from_name(dtype, strlen(dtype));
    if (json_is_boolean(trainable))
        tensor->requires_grad = json_is_true(trainable);
    tensor->storage = json_string_value(json_object_get(more, "storage"));
    tensor->storage_len = tensor->storage ? strlen(tensor->storage) : 0;
    tensor->storage_offset = json_integer_value(json_object_get(more, "offset"));
    return true;
}

static int add_tensors(const struct nrg_source *source, struct nrg_model *model, const char *module,
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
    int rc =
        add_tensors(source, model, kept, json_object_get(entry, "params"), NRG_ROLE_PARAM, err);
    return rc ? rc
              : add_tensors(source, model, kept, json_object_get(entry, "bufs"), NRG_ROLE_BUFFER,
                            err);
}

static int read_modules(const struct nrg_source *source, struct nrg_model *model,
                        struct nrg_error *err)
{
    json_t *root = nrg_json_open(source, err);
    const json_t *list = json_is_object(root) ? json_object_get(root, "modules") : root;
    int rc = 0;
    if (!root)
        return -EBADMSG;
    if (!json_is_array(list) || !json_array_size(list))
        rc = nrg_fail(err, -EBADMSG, source->name, "is not a list of modules");
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

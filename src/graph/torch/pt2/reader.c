/*
 * Reader of torch.export programs (.pt2): see internal.h. Two layouts of the archive are known:
 * up to PyTorch 2.7 serialized_exported_program.json beside a nested torch.save file with the
 * state dict, from 2.8 on models/<name>.json and a table of weights. The weights themselves are
 * not needed (every shape is in the JSON); the tables only show which ones are tied.
 */
#include "graph/torch/pt2/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/readers.h"
#include "graph/torch/archive.h"

#define SCHEMA_MAJOR 8

int nrg_pt2_no_memory(struct nrg_pt2 *pt2)
{
    return nrg_fail(pt2->err, -ENOMEM, pt2->where, "needs more memory than its size allows");
}

const char *nrg_pt2_text(struct nrg_pt2 *pt2, const char *text)
{
    return nrg_model_text(pt2->model, text, strlen(text));
}

/* "key,path,class" of one module; a second call of it has "@1" after its path. */
static int note_module(struct nrg_pt2 *pt2, const char *path, size_t len, const char *class,
                       size_t class_len, const char **name)
{
    const char *at = memchr(path, '@', len);
    if (at)
        len = (size_t)(at - path);
    int64_t known = nrg_map_number(&pt2->modules, path, len);
    if (known >= 0) {
        struct nrg_module *module = &pt2->model->modules[known];
        *name = module->name;
        if (!*module->class_name && class_len)
            module->class_name = nrg_model_text(pt2->model, class, class_len);
        return module->class_name ? 0 : nrg_pt2_no_memory(pt2);
    }
    const char *kept = nrg_model_text(pt2->model, path, len);
    const char *kept_class = nrg_model_text(pt2->model, class, class_len);
    int64_t index = (int64_t)pt2->model->n_modules;
    if (!kept || !kept_class || nrg_model_add_module(pt2->model, kept, kept_class) ||
        nrg_map_put(&pt2->modules, kept, strlen(kept), index))
        return nrg_pt2_no_memory(pt2);
    *name = kept;
    return 0;
}

int nrg_pt2_module(struct nrg_pt2 *pt2, const char *stack, const char **module)
{
    int rc = 0;
    *module = NULL;
    if (!stack || !strncmp(stack, "_empty_nn_module_stack", 22))
        return 0;
    while (!rc && *stack) {
        const char *end = strchrnul(stack, ';');
        const char *path = memchr(stack, ',', (size_t)(end - stack));
        const char *class = path ? memchr(path + 1, ',', (size_t)(end - path - 1)) : NULL;
        if (class)
            rc = note_module(pt2, path + 1, (size_t)(class - path - 1), class + 1,
                             (size_t)(end - class - 1), module);
        stack = *end ? end + 1 : end;
    }
    return rc;
}

/* module_call_graph lists modules in their own order, also those without an operator. */
static int list_modules(struct nrg_pt2 *pt2, const json_t *calls)
{
    const char *ignored;
    int rc = note_module(pt2, "", 0, "", 0, &ignored);
    for (size_t i = 0; !rc && i < json_array_size(calls); i++) {
        const char *path = json_string_value(json_object_get(json_array_get(calls, i), "fqn"));
        if (path)
            rc = note_module(pt2, path, strlen(path), "", 0, &ignored);
    }
    return rc;
}

static int note_storage(struct nrg_pt2 *pt2, const char *param, const char *storage)
{
    const char *kept = nrg_pt2_text(pt2, storage), *key = nrg_pt2_text(pt2, param);
    if (!kept || !key || nrg_map_put(&pt2->storages, key, strlen(key), (int64_t)pt2->n_storages) ||
        nrg_append(&pt2->storage_names, &pt2->n_storages, &pt2->cap_storages, &kept, sizeof kept))
        return nrg_pt2_no_memory(pt2);
    return 0;
}

static const struct {
    const char *kind, *key;
    enum nrg_param_role role;
} spec_kinds[] = {
    {"parameter", "parameter_name", NRG_ROLE_PARAM},
    {"buffer", "buffer_name", NRG_ROLE_BUFFER},
    {"tensor_constant", "tensor_constant_name", NRG_ROLE_EXTRA},
};

int nrg_pt2_parameter(struct nrg_pt2 *pt2, const json_t *spec, const json_t *tensors,
                      const char **placeholder, const char **path)
{
    for (size_t i = 0; i < sizeof spec_kinds / sizeof *spec_kinds; i++) {
        const json_t *body = json_object_get(spec, spec_kinds[i].kind);
        const char *name = json_string_value(json_object_get(body, spec_kinds[i].key));
        *placeholder = json_string_value(json_object_get(json_object_get(body, "arg"), "name"));
        if (!name || !*placeholder)
            continue;
        struct nrg_tensor_info tensor;
        if (!nrg_pt2_tensor(pt2, json_object_get(tensors, *placeholder), &tensor))
            return nrg_fail(pt2->err, -EBADMSG, pt2->where, "parameter '%.100s' has no shape",
                            name);
        int64_t at = nrg_map_number(&pt2->storages, name, strlen(name));
        if (at >= 0) {
            tensor.storage = pt2->storage_names[at];
            tensor.storage_len = strlen(tensor.storage);
        }
        int rc = nrg_param_add(pt2->model, pt2->where, name, strlen(name), &tensor,
                               spec_kinds[i].role, pt2->err);
        if (!rc)
            *path = pt2->model->params[pt2->model->n_params - 1].name;
        return rc;
    }
    return 0;
}

/* A weight table names files; names that share one are tied. */
static int read_weights(struct nrg_pt2 *pt2, const uint8_t *bytes, size_t size)
{
    json_t *root = json_loadb((const char *)bytes, size, 0, NULL);
    json_t *table = json_object_get(root, "config"), *entry;
    const char *name;
    int rc = 0;
    json_object_foreach(table ? table : root, name, entry)
    {
        const char *file = json_string_value(json_object_get(entry, "path_name"));
        if (file && !rc)
            rc = note_storage(pt2, name, file);
    }
    json_decref(root);
    return rc;
}

/* Up to 2.7 the state dict is a torch.save file inside: its storage keys show what is tied. */
static int read_state(struct nrg_pt2 *pt2, const uint8_t *bytes, size_t size)
{
    struct nrg_source inner = {.bytes = bytes, .size = size, .name = pt2->where};
    struct nrg_model state;
    int rc = 0;
    if (size < 4 || nrg_model_read_bytes(&inner, "torch-checkpoint", &state, NULL))
        return 0; /* every shape is in the graph: missing ties are not worth an error */
    for (size_t i = 0; !rc && i < state.n_params; i++)
        if (state.params[i].storage)
            rc = note_storage(pt2, state.params[i].name, state.params[i].storage);
    nrg_model_release(&state);
    return rc;
}

static int read_ties(struct nrg_pt2 *pt2, struct nrg_zip *zip)
{
    int rc = 0;
    const uint8_t *bytes = NULL;
    size_t size = 0;
    const struct nrg_zip_entry *end = zip->entries + zip->n_entries;
    for (const struct nrg_zip_entry *e = nrg_zip_first(zip, "data/weights/");
         !rc && e && e < end && !strncmp(e->inside, "data/weights/", 13); e++)
        if (strstr(e->inside, "_config.json") &&
            !(rc = nrg_zip_read(zip, e, &bytes, &size, pt2->err)))
            rc = read_weights(pt2, bytes, size);
    const struct nrg_zip_entry *state = nrg_zip_find(zip, "serialized_state_dict.pt");
    if (!rc && state && !(rc = nrg_zip_read(zip, state, &bytes, &size, pt2->err)))
        rc = read_state(pt2, bytes, size);
    return rc;
}

static void note_program(struct nrg_pt2 *pt2, const json_t *root)
{
    const json_t *schema = json_object_get(root, "schema_version");
    const char *torch = json_string_value(json_object_get(root, "torch_version"));
    json_int_t major = json_integer_value(json_object_get(schema, "major"));
    char text[80];
    if (torch) {
        snprintf(text, sizeof text, "PyTorch %.60s", torch);
        pt2->model->producer = nrg_pt2_text(pt2, text);
    }
    if (schema && major != SCHEMA_MAJOR)
        nrg_model_warn(pt2->model, "schema version %lld is not known (8 is): read anyway",
                       (long long)major);
}

static int read_program(struct nrg_pt2 *pt2, const uint8_t *bytes, size_t size, const char *name)
{
    json_error_t why;
    json_t *root = json_loadb((const char *)bytes, size, 0, &why);
    const json_t *module = json_object_get(root, "graph_module");
    const json_t *graph = json_object_get(module, "graph");
    int rc = 0;
    if (!root)
        rc = nrg_fail_at(pt2->err, -EBADMSG, pt2->where, why.position,
                         "the program is not JSON: %.100s", why.text);
    else if (!json_is_object(graph) || !json_is_array(json_object_get(graph, "nodes")))
        rc = nrg_fail(pt2->err, -EBADMSG, pt2->where, "the program has no graph");
    if (!rc) {
        note_program(pt2, root);
        pt2->specs = json_object_get(json_object_get(module, "signature"), "input_specs");
        rc = list_modules(pt2, json_object_get(module, "module_call_graph"));
    }
    if (!rc)
        rc = nrg_pt2_graph(pt2, graph, name);
    /* Keys of these tables point into the JSON text. */
    nrg_map_release(&pt2->symbols);
    json_decref(root);
    return rc;
}

static int read_entry(struct nrg_pt2 *pt2, struct nrg_zip *zip, const struct nrg_zip_entry *entry,
                      const char *name)
{
    const uint8_t *bytes = NULL;
    size_t size = 0;
    int rc = nrg_zip_read(zip, entry, &bytes, &size, pt2->err);
    return rc ? rc : read_program(pt2, bytes, size, name);
}

static int read_models(struct nrg_pt2 *pt2, struct nrg_zip *zip)
{
    const struct nrg_zip_entry *old = nrg_zip_find(zip, "serialized_exported_program.json");
    const struct nrg_zip_entry *end = zip->entries + zip->n_entries;
    int rc = old ? read_entry(pt2, zip, old, "") : 0;
    for (const struct nrg_zip_entry *e = nrg_zip_first(zip, "models/");
         !rc && e && e < end && !strncmp(e->inside, "models/", 7); e++) {
        const char *dot = strstr(e->inside, ".json");
        if (!dot || dot[5])
            continue;
        const char *name = nrg_model_text(pt2->model, e->inside + 7, (size_t)(dot - e->inside - 7));
        rc = name ? read_entry(pt2, zip, e, pt2->model->n_graphs ? name : "")
                  : nrg_pt2_no_memory(pt2);
    }
    if (!rc && !pt2->model->n_graphs)
        rc = nrg_archive_refuse(zip, pt2->err);
    return rc;
}

static void warn_symbols(struct nrg_pt2 *pt2)
{
    for (size_t i = 0; i < pt2->model->n_symbols && i < 3; i++) {
        const struct nrg_symbol *symbol = &pt2->model->symbols[i];
        nrg_model_warn(pt2->model,
                       "dimension %s is symbolic (%lld in the example): what depends on "
                       "it is unknown",
                       symbol->name, (long long)symbol->example);
    }
}

static int read_pt2(const struct nrg_source *source, struct nrg_model *model, struct nrg_error *err)
{
    struct nrg_pt2 pt2 = {.model = model, .where = source->name, .err = err};
    struct nrg_zip zip;
    int rc = nrg_zip_open(&zip, source->bytes, source->size, source->name, err);
    if (!rc)
        rc = read_ties(&pt2, &zip);
    if (!rc)
        rc = read_models(&pt2, &zip);
    if (!rc)
        warn_symbols(&pt2);
    nrg_map_release(&pt2.symbols);
    nrg_map_release(&pt2.modules);
    nrg_map_release(&pt2.storages);
    free(pt2.storage_names);
    nrg_zip_release(&zip);
    return rc;
}

static int match_pt2(const struct nrg_source *source)
{
    return nrg_archive_kind(source) == NRG_ARCHIVE_PT2 ? 95 : 0;
}

const struct nrg_reader nrg_reader_pt2 = {
    .name = "pt2",
    .summary = "torch.export program (.pt2): graph, shapes and parameters",
    .match = match_pt2,
    .read = read_pt2,
};

/*
 * See param_list.h. The parameter file comes first, then the model's own list, then the graph: only
 * the first of them that has any is used.
 */
#include "graph/param_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "graph/param.h"

static int add_entry(struct nrg_param_list *list, struct nrg_param_entry entry)
{
    return nrg_append(&list->entries, &list->n, &list->cap, &entry, sizeof entry);
}

static int add_file_params(struct nrg_param_list *list, const struct nrg_model *model,
                           struct nrg_map *names)
{
    for (size_t i = 0; i < model->n_params; i++) {
        const struct nrg_param *p = &model->params[i];
        int64_t numel = nrg_type_numel(p->type);
        if (nrg_map_get(names, p->name))
            continue;
        struct nrg_param_entry entry = {
            .path = p->name,
            .type = p->type,
            .numel = numel < 0 ? NRG_COST_UNKNOWN : numel,
            .bytes = p->bytes >= 0 ? p->bytes : nrg_type_bytes(p->type),
            .is_buffer = p->is_buffer,
            .trainable = !p->is_buffer && p->trainable != 0,
            .same_as = -1,
        };
        if (add_entry(list, entry) || nrg_map_set(names, p->name, (void *)(uintptr_t)p))
            return -ENOMEM;
    }
    return 0;
}

/* Where the file lists none, the graph's own uses are all we know. */
static int add_graph_params(struct nrg_param_list *list, const struct nrg_reduced *reduced,
                            struct nrg_map *names)
{
    for (size_t i = 0; i < reduced->n_data; i++) {
        const struct nrg_data *d = reduced->data[i];
        const struct nrg_type *type = nrg_type_plain(d->type);
        if (d->kind != NRG_DATA_PARAM || type->kind == NRG_T_NONE || nrg_map_get(names, d->path))
            continue;
        bool buffer = nrg_param_is_known_buffer(d->path) || nrg_dtype_is_whole(type->dtype);
        struct nrg_param_entry entry = {
            .path = d->path,
            .type = type,
            .numel = nrg_data_numel(d),
            .bytes = nrg_data_bytes(d),
            .is_buffer = buffer,
            .trainable = !buffer && type->requires_grad != 0,
            .same_as = -1,
        };
        if (add_entry(list, entry))
            return -ENOMEM;
    }
    return 0;
}

/* Storages are named by the file; a view at another offset is another parameter. */
static int find_tied(struct nrg_param_list *list, const struct nrg_model *model)
{
    struct nrg_map first = {0};
    struct nrg_arena arena = {0};
    int rc = 0;
    for (size_t i = 0, at = 0; model && !rc && i < model->n_params && at < list->n; i++) {
        const struct nrg_param *p = &model->params[i];
        char key[300];
        if (strcmp(list->entries[at].path, p->name) != 0)
            continue;
        size_t mine = at++;
        if (!p->storage)
            continue;
        snprintf(key, sizeof key, "%s@%lld#%lld", p->storage, (long long)p->storage_offset,
                 (long long)list->entries[mine].numel);
        size_t seen = (size_t)(uintptr_t)nrg_map_get(&first, key);
        char *copy = seen ? NULL : nrg_arena_copy(&arena, key, strlen(key));
        if (seen)
            list->entries[mine].same_as = (int64_t)seen - 1;
        else if (!copy || nrg_map_set(&first, copy, (void *)(uintptr_t)(mine + 1)))
            rc = -ENOMEM;
    }
    nrg_map_release(&first);
    nrg_arena_release(&arena);
    return rc;
}

int nrg_param_list_make(struct nrg_param_list *list, const struct nrg_model *model,
                        const struct nrg_reduced *reduced, const struct nrg_model *params)
{
    struct nrg_map names = {0};
    const struct nrg_model *file = params && params->n_params ? params
                                   : model && model->n_params ? model
                                                              : NULL;
    int rc = 0;
    *list = (struct nrg_param_list){0};
    if (file)
        rc = add_file_params(list, file, &names);
    if (!rc && file)
        rc = find_tied(list, file);
    if (!rc && !file && reduced)
        rc = add_graph_params(list, reduced, &names);
    nrg_map_release(&names);
    if (rc)
        nrg_param_list_release(list);
    return rc;
}

void nrg_param_list_release(struct nrg_param_list *list)
{
    free(list->entries);
    *list = (struct nrg_param_list){0};
}

static int keep_param(struct nrg_model *model, const struct nrg_data *d)
{
    const struct nrg_type *type = nrg_type_plain(d->type);
    struct nrg_param param = {.is_buffer = nrg_param_is_known_buffer(d->path),
                              .trainable = type->requires_grad,
                              .bytes = -1};
    param.name = nrg_arena_copy(&model->arena, d->path, strlen(d->path));
    param.type = nrg_type_tensor(&model->arena, type->dtype, type->rank, type->dims);
    return param.name && param.type ? nrg_model_add_param(model, &param) : -ENOMEM;
}

int nrg_params_from_graph(struct nrg_model *model, struct nrg_error *err)
{
    struct nrg_reduced reduced;
    if (model->n_params || !model->n_graphs)
        return 0;
    int rc = nrg_reduce(model, NULL, &reduced, err);
    if (rc)
        return rc;
    rc = nrg_cost_all(&reduced, NRG_CONVENTION_NRG);
    for (size_t i = 0; !rc && i < reduced.n_data; i++)
        if (reduced.data[i]->kind == NRG_DATA_PARAM && nrg_data_numel(reduced.data[i]) >= 0 &&
            nrg_type_plain(reduced.data[i]->type)->kind == NRG_T_TENSOR)
            rc = keep_param(model, reduced.data[i]);
    nrg_reduced_release(&reduced);
    return rc ? nrg_fail(err, rc, NULL, "out of memory") : 0;
}

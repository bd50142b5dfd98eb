/* See internal.h: what the walks over TorchScript modules and over checkpoints share. */
#include "graph/torch/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void nrg_torch_walk_release(struct nrg_torch_walk *walk)
{
    nrg_str_release(&walk->path);
}

static int enter_level(struct nrg_torch_walk *walk, const char *name, size_t len)
{
    if (walk->depth >= NRG_WALK_DEPTH)
        return nrg_fail(walk->err, -ELOOP, walk->where,
                        "its modules are nested deeper than %d levels", NRG_WALK_DEPTH);
    if (++walk->visits > NRG_WALK_VISITS)
        return nrg_fail(walk->err, -E2BIG, walk->where,
                        "has more than %d values to visit: shared ones that multiply",
                        NRG_WALK_VISITS);
    if (name && ((walk->path.len && nrg_str_add(&walk->path, ".", 1)) ||
                 (len && nrg_str_add(&walk->path, name, len))))
        return nrg_fail(walk->err, -ENOMEM, walk->where, "out of memory");
    walk->depth++;
    return 0;
}

/* A storage must be in the archive, with the bytes that its elements need. */
static void check_storage(struct nrg_torch_walk *walk)
{
    const struct nrg_tensor_info *tensor = &walk->tensor;
    char name[64];
    if (!walk->zip || !tensor->storage || tensor->storage_len > 40)
        return;
    snprintf(name, sizeof name, "data/%.*s", (int)tensor->storage_len, tensor->storage);
    const struct nrg_zip_entry *entry = nrg_zip_find(walk->zip, name);
    uint64_t bits = nrg_dtype_bits(tensor->dtype);
    bool enough = entry && (tensor->storage_numel < 0 || !bits ||
                            (uint64_t)tensor->storage_numel / 8 <= entry->size / bits + 1);
    if (enough || walk->n_bad_storages++)
        return;
    nrg_model_warn(walk->model, "'%s' is %s: only its shape is known", name,
                   entry ? "too short" : "missing");
}

int nrg_torch_add(struct nrg_torch_walk *walk, enum nrg_param_role role)
{
    const char *name = walk->path.text ? walk->path.text : "";
    check_storage(walk);
    walk->n_tensors++;
    return nrg_param_add(walk->model, walk->where, name, walk->path.len, &walk->tensor, role,
                         walk->err);
}

int nrg_torch_add_module(struct nrg_torch_walk *walk, const char *class_name)
{
    const char *path = walk->path.text ? walk->path.text : "";
    const char *name = nrg_model_text(walk->model, path, walk->path.len);
    const char *class = nrg_model_text(walk->model, class_name, strlen(class_name));
    if (!name || !class || nrg_model_add_module(walk->model, name, class))
        return nrg_fail(walk->err, -ENOMEM, walk->where, "needs more memory than its size allows");
    return 0;
}

int nrg_torch_child(struct nrg_torch_walk *walk, const char *name, size_t len, struct nrg_pkl *v,
                    enum nrg_param_role role, nrg_torch_visit_fn *other)
{
    size_t before = walk->path.len;
    int rc = enter_level(walk, name, len);
    if (rc)
        return rc;
    rc = nrg_torch_tensor(v, &walk->tensor) ? nrg_torch_add(walk, role) : other(walk, v, role);
    walk->depth--;
    walk->path.len = before;
    if (walk->path.text)
        walk->path.text[before] = '\0';
    return rc;
}

/* Keys of dicts are texts or numbers (optimizer states); others cannot name anything. */
static int walk_pair(struct nrg_torch_walk *walk, const struct nrg_pkl *key, struct nrg_pkl *v,
                     enum nrg_param_role role)
{
    char number[24];
    if (key->kind == NRG_PKL_TEXT)
        return nrg_torch_child(walk, key->s, key->n, v, role, nrg_torch_walk_plain);
    if (key->kind != NRG_PKL_INT)
        return 0;
    int len = snprintf(number, sizeof number, "%" PRId64, key->i);
    return nrg_torch_child(walk, number, (size_t)len, v, role, nrg_torch_walk_plain);
}

int nrg_torch_walk_plain(struct nrg_torch_walk *walk, struct nrg_pkl *value,
                         enum nrg_param_role role)
{
    const struct nrg_pkl *v = nrg_torch_unwrap(value);
    bool is_dict = nrg_pkl_is_dict(v);
    int rc = 0;
    for (size_t i = 0; is_dict && !rc && i + 1 < v->n; i += 2)
        rc = walk_pair(walk, v->items[i], v->items[i + 1], role);
    if (is_dict || !v || (v->kind != NRG_PKL_LIST && v->kind != NRG_PKL_TUPLE))
        return rc;
    for (size_t i = 0; !rc && i < v->n; i++) {
        struct nrg_pkl number = {.kind = NRG_PKL_INT, .i = (int64_t)i};
        if (v->items[i]->kind >= NRG_PKL_LIST)
            rc = walk_pair(walk, &number, v->items[i], role);
    }
    return rc;
}

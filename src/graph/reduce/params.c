/*
 * Attributes: a chain of prim::GetAttr from the root module is a path. A tensor at its end is a
 * parameter (one data node per path, shape from the parameter file where the text has none), a
 * module is only the path, and an object that the graph itself made keeps what was put into it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "graph/reduce/internal.h"

#define BLANK_RANK 4

/* Last part of "__torch__.torch.nn.modules.linear.___torch_mangle_3.Linear". */
static const char *short_class(const struct nrg_type *type)
{
    const char *dot = type->kind == NRG_T_CLASS && type->name ? strrchr(type->name, '.') : NULL;
    return dot ? dot + 1 : type->kind == NRG_T_CLASS && type->name ? type->name : "";
}

void nrg_reducer_saw_module(struct nrg_reducer *r, const char *path, const struct nrg_type *type,
                            bool called)
{
    struct nrg_reduced *out = r->out;
    size_t at = (size_t)(uintptr_t)nrg_map_get(&r->seen, path);
    struct nrg_seen_module module = {path, short_class(type), called};
    if (at)
        out->modules[at - 1].calls += called;
    else if (nrg_append(&out->modules, &out->n_modules, &out->cap_modules, &module,
                        sizeof module) ||
             nrg_map_set(&r->seen, path, (void *)(uintptr_t)out->n_modules))
        r->rc = -ENOMEM;
}

/* The type that the parameter file lists, where that says more. */
static const struct nrg_type *listed_type(struct nrg_reducer *r, const char *path,
                                          const struct nrg_type *type)
{
    const struct nrg_param *param = nrg_map_get(&r->told, path);
    return param ? nrg_type_better(type, param->type) : type;
}

/* Optional and not in the parameter file: it is None there. */
static bool is_absent(struct nrg_reducer *r, const char *path, const struct nrg_type *type)
{
    return type->kind == NRG_T_OPTIONAL && r->told.n && !nrg_map_get(&r->told, path);
}

struct nrg_data *nrg_reducer_param(struct nrg_reducer *r, const char *path, const char *name,
                                   const struct nrg_type *type)
{
    struct nrg_data *data = nrg_map_get(&r->used, path);
    if (data) {
        data->type = nrg_type_better(data->type, type);
        return data;
    }
    data = nrg_reducer_data(r, NRG_DATA_PARAM, name, listed_type(r, path, type));
    if (!data)
        return NULL;
    data->path = path;
    if (nrg_data_numel(data) < 0)
        data->blank =
            nrg_reducer_alloc(r, 1, sizeof(struct nrg_type) + BLANK_RANK * sizeof(int64_t));
    if (nrg_map_set(&r->used, path, data))
        r->rc = -ENOMEM;
    return data;
}

static const char *join_path(struct nrg_reducer *r, const char *base, const char *name)
{
    size_t size = strlen(base) + strlen(name) + 2;
    char *path = *base ? nrg_reducer_alloc(r, 1, size) : NULL;
    if (!path)
        return name;
    snprintf(path, size, "%s.%s", base, name);
    return path;
}

/* Packed (quantised) weights: a parameter file may list the tensor inside. */
static void bind_packed(struct nrg_reducer *r, struct nrg_arg *arg, const char *path)
{
    const char *inside = r->told.n ? join_path(r, path, "weight") : NULL;
    if (inside && nrg_map_get(&r->told, inside) && strstr(arg->type->name, "PackedParams"))
        arg->data = nrg_reducer_param(r, inside, "weight", &nrg_type_unknown);
}

void nrg_reduce_getattr(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                        struct nrg_arg **args)
{
    const struct nrg_attr *name = nrg_op_attr(op, "name");
    const struct nrg_value *value = op->n_outputs ? op->outputs[0] : NULL;
    const char *base = op->n_inputs && args[0]->path ? args[0]->path : "";
    struct nrg_data *data = NULL;
    struct nrg_arg *arg;
    if (!value)
        return;
    const char *path = join_path(r, base, name && name->s ? name->s : value->name);
    const struct nrg_type *plain = nrg_type_plain(value->type);
    if (op->n_inputs && args[0]->kind == NRG_ARG_OBJECT && !args[0]->path) {
        nrg_reducer_set(f, value, nrg_reduce_attribute(r, op, args[0]));
        nrg_reducer_drop(r, op, NRG_DROP_GETATTR, NULL);
        return;
    }
    if (is_absent(r, path, value->type)) {
        arg = r->none;
    } else if (plain->kind == NRG_T_TENSOR) {
        data = nrg_reducer_param(r, path, value->name, value->type);
        arg = data ? nrg_reducer_tensor(r, data, nrg_type_better(value->type, data->type)) : NULL;
    } else if (plain->kind == NRG_T_CLASS || plain->kind == NRG_T_UNKNOWN) {
        arg = nrg_reducer_arg(r, NRG_ARG_OBJECT, value->type);
        if (arg && plain->kind == NRG_T_CLASS && plain->name) {
            nrg_reducer_saw_module(r, path, plain, false);
            bind_packed(r, arg, path);
        }
    } else {
        arg = nrg_reducer_arg(r, NRG_ARG_UNKNOWN, value->type);
    }
    if (arg && arg != r->none)
        arg->path = path;
    nrg_reducer_set(f, value, arg);
    nrg_reducer_drop(r, op, NRG_DROP_GETATTR, data);
}

void nrg_reduce_settle(struct nrg_reducer *r, struct nrg_arg *arg)
{
    for (size_t i = 0; arg->kind == NRG_ARG_LIST && i < arg->n_items; i++)
        nrg_reduce_settle(r, arg->items[i]);
    if (arg->kind != NRG_ARG_OBJECT || arg->type->kind != NRG_T_UNKNOWN || !arg->path)
        return;
    const char *dot = strrchr(arg->path, '.');
    struct nrg_data *data = nrg_reducer_param(r, arg->path, dot ? dot + 1 : arg->path, arg->type);
    if (!data)
        return;
    arg->kind = NRG_ARG_TENSOR;
    arg->data = data;
    arg->type = data->type;
}

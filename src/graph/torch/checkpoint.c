/*
 * See internal.h: what torch.save wrote. Three shapes are common: a state dict (dotted name to
 * tensor, in an OrderedDict whose _metadata names the modules), a training checkpoint (a dict
 * with a state dict under one of a few keys, beside optimizer state and counters), and a whole
 * nn.Module object (_parameters, _buffers, _modules in its state). For anything else every tensor
 * in nested dicts and lists is listed by its path.
 */
#include <errno.h>
#include <string.h>

#include "graph/torch/internal.h"

static bool is_nn(const struct nrg_pkl *v)
{
    return v && v->kind == NRG_PKL_OBJECT && nrg_pkl_get(v->state, "_modules") &&
           nrg_pkl_get(v->state, "_parameters");
}

static int walk_nn(struct nrg_torch_walk *walk, struct nrg_pkl *v, enum nrg_param_role role)
{
    static const struct {
        const char *key;
        enum nrg_param_role role;
    } parts[] = {{"_parameters", NRG_ROLE_PARAM},
                 {"_buffers", NRG_ROLE_BUFFER},
                 {"_modules", NRG_ROLE_EXTRA}};
    if (!is_nn(v))
        return 0;
    int rc = v->seen ? 0 : nrg_torch_add_module(walk, nrg_pkl_callee(v));
    v->seen = true;
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        const struct nrg_pkl *dict = nrg_pkl_get(v->state, parts[p].key);
        for (size_t i = 0; !rc && nrg_pkl_is_dict(dict) && i + 1 < dict->n; i += 2) {
            const struct nrg_pkl *key = dict->items[i];
            struct nrg_pkl *child = dict->items[i + 1];
            if (key->kind == NRG_PKL_TEXT && child->kind == NRG_PKL_OBJECT)
                rc = nrg_torch_child(walk, key->s, key->n, child, parts[p].role, walk_nn);
        }
    }
    return rc;
}

static int add_nameless(struct nrg_torch_walk *walk, struct nrg_pkl *v, enum nrg_param_role role)
{
    return nrg_torch_add_module(walk, "");
}

/* The state dict's _metadata has a key for every module, also for those without parameters. */
static int add_modules(struct nrg_torch_walk *walk, const struct nrg_pkl *dict)
{
    const struct nrg_pkl *names = nrg_pkl_get(dict->state, "_metadata");
    int rc = 0;
    for (size_t i = 0; !rc && nrg_pkl_is_dict(names) && i + 1 < names->n; i += 2) {
        const struct nrg_pkl *name = names->items[i];
        if (name->kind == NRG_PKL_TEXT)
            rc = nrg_torch_child(walk, name->s, name->n, NULL, NRG_ROLE_EXTRA, add_nameless);
    }
    return rc;
}

static bool has_tensors(struct nrg_torch_walk *walk, const struct nrg_pkl *dict)
{
    for (size_t i = 0; nrg_pkl_is_dict(dict) && i + 1 < dict->n; i += 2)
        if (nrg_torch_tensor(dict->items[i + 1], &walk->tensor))
            return true;
    return false;
}

static struct nrg_pkl *choose_state(struct nrg_torch_walk *walk, struct nrg_pkl *root)
{
    static const char *const keys[] = {"state_dict", "model_state_dict", "model",   "module",
                                       "net",        "params",           "weights", "model_state",
                                       "ema"};
    if (!nrg_pkl_is_dict(root) || has_tensors(walk, root))
        return root;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct nrg_pkl *inner = nrg_pkl_get(root, keys[i]);
        if (is_nn(inner) || has_tensors(walk, inner)) {
            nrg_model_warn(walk->model, "'%s' of the checkpoint is read, its other entries are not",
                           keys[i]);
            return inner;
        }
    }
    return root;
}

int nrg_torch_walk_checkpoint(struct nrg_torch_walk *walk, struct nrg_pkl *root)
{
    root = choose_state(walk, root);
    if (is_nn(root))
        return walk_nn(walk, root, NRG_ROLE_EXTRA);
    int rc = add_modules(walk, root);
    if (!rc && nrg_torch_tensor(root, &walk->tensor))
        rc = nrg_torch_add(walk, NRG_ROLE_GUESS);
    else if (!rc)
        rc = nrg_torch_walk_plain(walk, root, NRG_ROLE_GUESS);
    if (!rc && !walk->n_tensors)
        rc = nrg_fail(walk->err, -ENODATA, walk->where, "holds no tensors");
    if (!rc && nrg_param_modules(walk->model))
        rc = nrg_fail(walk->err, -ENOMEM, walk->where, "needs more memory than its size allows");
    return rc;
}

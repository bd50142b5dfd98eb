/*
 * See internal.h: TorchScript module objects. A module is an object of a class "__torch__.…"
 * whose state is a dict of attributes: tensors, submodules, and constants that are of no use
 * here. The class declarations in code/ tell parameters from buffers; other tensor attributes
 * are extras. Quantised modules hide their weights: either an object of a native class
 * ("__torch__.torch.classes.…") has a tuple with them as its state, or the module itself has one.
 * These are listed as <path of the packed object>.weight and .bias, which is where the graph's
 * GetAttr leads to.
 */
#include <errno.h>
#include <string.h>

#include "graph/torch/internal.h"

#define PACKED_CLASSES "__torch__.torch.classes."
#define MANGLE         "___torch_mangle_"

static int walk_module(struct nrg_torch_walk *walk, struct nrg_pkl *v);

/* "__torch__.a.___torch_mangle_3.B" is class a.B to everybody. */
static void demangle_class(char *out, size_t size, const char *name)
{
    size_t n = 0;
    if (!strncmp(name, "__torch__.", 10))
        name += 10;
    while (*name && n + 1 < size) {
        if (!strncmp(name, MANGLE, strlen(MANGLE))) {
            const char *dot = strchr(name, '.');
            if (dot) {
                name = dot + 1;
                continue;
            }
        }
        const char *dot = strchr(name, '.');
        size_t len = dot ? (size_t)(dot - name) + 1 : strlen(name);
        if (len > size - 1 - n)
            len = size - 1 - n;
        memcpy(out + n, name, len);
        n += len;
        name += len;
    }
    out[n] = '\0';
}

/*
 * Packed parameters: the first tensor of two or more dimensions (or a quantised one) is the
 * weight, a float vector after it the bias; small integer tensors are the packing's settings.
 */
static int walk_packed(struct nrg_torch_walk *walk, struct nrg_pkl *packed,
                       enum nrg_param_role role)
{
    const struct nrg_pkl *v = nrg_torch_unwrap(packed);
    int rc = 0;
    if (!v || (v->kind != NRG_PKL_TUPLE && v->kind != NRG_PKL_LIST))
        return 0;
    for (size_t i = 0; !rc && i < v->n; i++) {
        const struct nrg_tensor_info *tensor = &walk->tensor;
        const char *name = NULL; /* containers have no name of their own */
        if (nrg_torch_tensor(v->items[i], &walk->tensor)) {
            name = !walk->n_packed && tensor->rank >= 2                                   ? "weight"
                   : walk->n_packed == 1 && tensor->rank == 1 && tensor->dtype == NRG_F32 ? "bias"
                                                                                          : NULL;
            if (!name)
                continue;
            walk->n_packed++;
        }
        rc = nrg_torch_child(walk, name, name ? strlen(name) : 0, v->items[i], role, walk_packed);
    }
    return rc;
}

static enum nrg_param_role role_of(const struct nrg_torch_class *class, const struct nrg_pkl *key)
{
    if (!class || (!class->params && !class->buffers))
        return NRG_ROLE_GUESS;
    if (nrg_torch_code_lists(class->params, class->params_len, key->s, key->n))
        return NRG_ROLE_PARAM;
    if (nrg_torch_code_lists(class->buffers, class->buffers_len, key->s, key->n))
        return NRG_ROLE_BUFFER;
    return NRG_ROLE_EXTRA;
}

/* What is no tensor: a module, packed parameters, an object without either, or a container. */
static int walk_other(struct nrg_torch_walk *walk, struct nrg_pkl *v, enum nrg_param_role role)
{
    const char *name = nrg_pkl_callee(v);
    const struct nrg_torch_class *class = NULL;
    if (strncmp(name, "__torch__.", 10) != 0)
        return nrg_torch_walk_plain(walk, v, NRG_ROLE_EXTRA);
    if (!strncmp(name, PACKED_CLASSES, strlen(PACKED_CLASSES))) {
        walk->n_packed = 0;
        return walk_packed(walk, v->state, NRG_ROLE_EXTRA);
    }
    int rc = walk->code ? nrg_torch_code_find(walk->code, name, &class, walk->err) : 0;
    return rc || (class && !class->is_module) ? rc : walk_module(walk, v);
}

/* A module under two names is listed once; its parameters appear under both, with one storage. */
static int walk_module(struct nrg_torch_walk *walk, struct nrg_pkl *v)
{
    static const char packed_name[] = "_packed_params";
    const struct nrg_torch_class *class = NULL;
    char class_name[256];
    int rc = walk->code ? nrg_torch_code_find(walk->code, v->callee->s, &class, walk->err) : 0;
    demangle_class(class_name, sizeof class_name, v->callee->s);
    if (!rc && !v->seen)
        rc = nrg_torch_add_module(walk, class_name);
    v->seen = true;
    walk->n_packed = 0;
    /* A module with its own __getstate__ has a tuple for its state: quantised convolutions. */
    if (!rc && v->state && v->state->kind == NRG_PKL_TUPLE)
        return nrg_torch_child(walk, packed_name, sizeof packed_name - 1, v->state, NRG_ROLE_EXTRA,
                               walk_packed);
    for (size_t i = 0; !rc && nrg_pkl_is_dict(v->state) && i + 1 < v->state->n; i += 2) {
        const struct nrg_pkl *key = v->state->items[i];
        struct nrg_pkl *value = v->state->items[i + 1];
        if (key->kind != NRG_PKL_TEXT)
            continue;
        /* Reading another class may move the table: ask again for each attribute. */
        if (walk->code && (rc = nrg_torch_code_find(walk->code, v->callee->s, &class, walk->err)))
            break;
        if (value->kind >= NRG_PKL_LIST)
            rc = nrg_torch_child(walk, key->s, key->n, value, role_of(class, key), walk_other);
    }
    return rc;
}

int nrg_torch_walk_script(struct nrg_torch_walk *walk, struct nrg_pkl *root)
{
    if (strncmp(nrg_pkl_callee(root), "__torch__.", 10) != 0)
        return nrg_fail(walk->err, -EBADMSG, walk->where, "data.pkl holds no TorchScript module");
    return walk_module(walk, root);
}

/*
 * See torch_walk.h: TorchScript module objects. A module is an object of a class "__torch__.…"
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
static void demangle(char *out, size_t size, const char *name)
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

static int add_named(struct nrg_torch_walk *walk, const char *name, enum nrg_param_role role)
{
    size_t before;
    int rc = nrg_torch_enter(walk, name, strlen(name), &before);
    if (rc)
        return rc;
    rc = nrg_torch_add(walk, role);
    nrg_torch_leave(walk, before);
    return rc;
}

/*
 * Packed parameters: the first tensor of two or more dimensions (or a quantised one) is the
 * weight, a float vector after it the bias; small integer tensors are the packing's settings.
 */
static int walk_packed(struct nrg_torch_walk *walk, const struct nrg_pkl *v, int *found)
{
    int rc = 0;
    v = nrg_torch_unwrap(v);
    if (!v || (v->kind != NRG_PKL_TUPLE && v->kind != NRG_PKL_LIST))
        return 0;
    for (size_t i = 0; !rc && i < v->n; i++) {
        size_t before;
        if (!nrg_torch_tensor(v->items[i], &walk->tensor)) {
            if ((rc = nrg_torch_enter(walk, "", 0, &before)))
                return rc;
            walk->path.len = before; /* containers have no name of their own */
            rc = walk_packed(walk, v->items[i], found);
            nrg_torch_leave(walk, before);
        } else if (!*found && walk->tensor.rank >= 2) {
            ++*found;
            rc = add_named(walk, "weight", NRG_ROLE_EXTRA);
        } else if (*found == 1 && walk->tensor.rank == 1 && walk->tensor.dtype == NRG_F32) {
            ++*found;
            rc = add_named(walk, "bias", NRG_ROLE_EXTRA);
        }
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

static int walk_object(struct nrg_torch_walk *walk, struct nrg_pkl *v)
{
    const char *name = nrg_pkl_callee(v);
    const struct nrg_torch_class *class = NULL;
    int found = 0;
    if (!strncmp(name, PACKED_CLASSES, strlen(PACKED_CLASSES)))
        return walk_packed(walk, v->state, &found);
    int rc = walk->code ? nrg_torch_code_find(walk->code, name, &class, walk->err) : 0;
    return rc || (class && !class->is_module) ? rc : walk_module(walk, v);
}

static int walk_attribute(struct nrg_torch_walk *walk, enum nrg_param_role role,
                          const struct nrg_pkl *key, struct nrg_pkl *v)
{
    size_t before;
    if (v->kind < NRG_PKL_LIST)
        return 0;
    int rc = nrg_torch_enter(walk, key->s, key->n, &before);
    if (rc)
        return rc;
    if (nrg_torch_tensor(v, &walk->tensor))
        rc = nrg_torch_add(walk, role);
    else if (!strncmp(nrg_pkl_callee(v), "__torch__.", 10))
        rc = walk_object(walk, v);
    else
        rc = nrg_torch_walk_plain(walk, v, NRG_ROLE_EXTRA);
    nrg_torch_leave(walk, before);
    return rc;
}

/* A module with its own __getstate__ has a tuple for its state: quantised convolutions. */
static int walk_packed_module(struct nrg_torch_walk *walk, const struct nrg_pkl *state)
{
    static const char name[] = "_packed_params";
    size_t before;
    int found = 0, rc = nrg_torch_enter(walk, name, sizeof name - 1, &before);
    if (rc)
        return rc;
    rc = walk_packed(walk, state, &found);
    nrg_torch_leave(walk, before);
    return rc;
}

/* A module under two names is listed once; its parameters appear under both, with one storage. */
static int walk_module(struct nrg_torch_walk *walk, struct nrg_pkl *v)
{
    const struct nrg_torch_class *class = NULL;
    char class_name[256];
    int rc = walk->code ? nrg_torch_code_find(walk->code, v->callee->s, &class, walk->err) : 0;
    demangle(class_name, sizeof class_name, v->callee->s);
    if (!rc && !v->seen)
        rc = nrg_torch_add_module(walk, class_name);
    v->seen = true;
    if (!rc && v->state && v->state->kind == NRG_PKL_TUPLE)
        return walk_packed_module(walk, v->state);
    for (size_t i = 0; !rc && nrg_pkl_is_dict(v->state) && i + 1 < v->state->n; i += 2) {
        const struct nrg_pkl *key = v->state->items[i];
        if (key->kind != NRG_PKL_TEXT)
            continue;
        /* Reading another class may move the table: ask again for each attribute. */
        if (walk->code && (rc = nrg_torch_code_find(walk->code, v->callee->s, &class, walk->err)))
            break;
        rc = walk_attribute(walk, role_of(class, key), key, v->state->items[i + 1]);
    }
    return rc;
}

int nrg_torch_walk_script(struct nrg_torch_walk *walk, struct nrg_pkl *root)
{
    if (strncmp(nrg_pkl_callee(root), "__torch__.", 10) != 0)
        return nrg_fail(walk->err, -EBADMSG, walk->where, "data.pkl holds no TorchScript module");
    return walk_module(walk, root);
}

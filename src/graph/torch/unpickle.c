/*
 * See unpickle.h. A tensor is stored as a call of one of a few rebuild functions whose
 * arguments hold everything we want: (storage, offset, size, stride, requires_grad, …). The rows
 * below say where each function keeps what. A storage is a persistent id:
 * ('storage', class, key, device, elements); the class names the dtype, unless it is the untyped
 * one of newer versions, then the dtype is an argument of its own.
 */
#include "graph/torch/unpickle.h"

#include <string.h>

#define UNWRAP_MAX 8

/*
 * What a model file may name: names after each prefix, or with NULL anything below it. The latter
 * are classes as data: objects of these hold modules, and their code is never run.
 */
static const struct {
    const char *prefix, *names;
} allowed[] = {
    {"collections.", " OrderedDict defaultdict Counter "},
    {"torch.", " Size device Tensor strided contiguous_format preserve_format channels_last "
               "per_tensor_affine per_channel_affine per_channel_affine_float_qparams "},
    {"torch._utils._rebuild_", " tensor tensor_v2 tensor_v3 qtensor parameter parameter_with_state "
                               "sparse_tensor meta_tensor_no_storage device_tensor_from_numpy "},
    {"torch._tensor.", " _rebuild_from_type_v2 "},
    {"torch.serialization.", " _get_layout "},
    {"torch.jit._pickle.", " build_intlist build_doublelist build_boollist build_tensorlist "
                           "build_tensor_from_id restore_type_tag "},
    {"numpy.core.multiarray.", " scalar _reconstruct "},
    {"numpy._core.multiarray.", " scalar _reconstruct "},
    {"numpy.", " dtype ndarray "},
    {"_codecs.", " encode "},
    {"builtins.", " set frozenset complex slice bytearray "},
    {"__builtin__.", " set frozenset complex bytearray "},
    {"argparse.", " Namespace "},
    {"pathlib.", " PosixPath WindowsPath "},
    {"datetime.", " timedelta datetime "},
    {"__torch__.", NULL},
    {"torch.nn.modules.", NULL},
    {"torch.nn.parameter.", NULL},
    {"torch.nn.functional.", NULL},
    {"torch.nn.quantized.", NULL},
    {"torch.nn.intrinsic.", NULL},
    {"torch.ao.nn.", NULL},
    {"torchvision.models.", NULL},
    {"torchvision.ops.", NULL},
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* "torch.FloatStorage", "torch.cuda.HalfStorage", "torch.storage.UntypedStorage". */
static bool storage_class(const char *name, enum nrg_dtype *dtype)
{
    static const char suffix[] = "Storage";
    const char *dot = strrchr(name, '.');
    size_t len = dot ? strlen(dot + 1) : 0, cut = sizeof suffix - 1;
    if (strncmp(name, "torch.", 6) != 0 || len < cut || strcmp(dot + 1 + len - cut, suffix) != 0)
        return false;
    *dtype = nrg_dtype_from_name(dot + 1, len - cut);
    return *dtype || !strcmp(dot + 1, "UntypedStorage") || !strcmp(dot + 1, "TypedStorage") ||
           !strcmp(dot + 1, "_UntypedStorage");
}

static enum nrg_dtype dtype_global(const char *name)
{
    return strncmp(name, "torch.", 6) != 0 ? NRG_DTYPE_UNKNOWN
                                           : nrg_dtype_from_name(name, strlen(name));
}

/* `names` has a space before and after each. */
static bool has_word(const char *names, const char *word)
{
    size_t len = strlen(word);
    const char *at = len && !strchr(word, ' ') ? names : NULL;
    while (at && (at = strstr(at, word)) && (at[-1] != ' ' || at[len] != ' '))
        at += len;
    return at;
}

bool nrg_torch_allows(const char *global)
{
    enum nrg_dtype dtype;
    for (size_t i = 0; i < COUNT(allowed); i++) {
        size_t len = strlen(allowed[i].prefix);
        if (!strncmp(global, allowed[i].prefix, len) &&
            (!allowed[i].names || has_word(allowed[i].names, global + len)))
            return true;
    }
    return storage_class(global, &dtype) || dtype_global(global);
}

const struct nrg_pkl *nrg_torch_unwrap(const struct nrg_pkl *v)
{
    for (int i = 0; i < UNWRAP_MAX; i++) {
        const char *callee = nrg_pkl_callee(v);
        if (strncmp(callee, "torch.jit._pickle.", 18) != 0)
            break;
        const struct nrg_pkl *inner = nrg_pkl_item(v->args, 0);
        if (!inner)
            break;
        v = inner;
    }
    return v;
}

/* A tuple of integers (or torch.Size of one) into out; false when it is anything else. */
static bool read_ints(const struct nrg_pkl *v, int64_t *out, int *n)
{
    if (!strcmp(nrg_pkl_callee(v), "torch.Size"))
        v = nrg_pkl_item(v->args, 0);
    v = nrg_torch_unwrap(v);
    if (!v || (v->kind != NRG_PKL_TUPLE && v->kind != NRG_PKL_LIST) || v->n > NRG_MAX_RANK)
        return false;
    for (size_t i = 0; i < v->n; i++) {
        if (v->items[i]->kind != NRG_PKL_INT)
            return false;
        out[i] = v->items[i]->i;
    }
    *n = (int)v->n;
    return true;
}

static bool read_storage(const struct nrg_pkl *v, struct nrg_tensor_info *tensor)
{
    const struct nrg_pkl *id = v && v->kind == NRG_PKL_PERSISTENT ? v->args : NULL;
    const struct nrg_pkl *class = nrg_pkl_item(id, 1), *key = nrg_pkl_item(id, 2);
    const struct nrg_pkl *numel = nrg_pkl_item(id, 4);
    if (!nrg_pkl_is_text(nrg_pkl_item(id, 0), "storage") || !class || !key ||
        class->kind != NRG_PKL_GLOBAL || key->kind != NRG_PKL_TEXT ||
        !storage_class(class->s, &tensor->dtype))
        return false;
    tensor->storage = key->s;
    tensor->storage_len = key->n;
    tensor->storage_numel = numel && numel->kind == NRG_PKL_INT ? numel->i : -1;
    return true;
}

/* The positions of each rebuild function's arguments; -1: it has no such argument. */
static const struct layout {
    const char *callee;
    signed char storage, offset, size, stride, grad, dtype;
} layouts[] = {
    {"torch._utils._rebuild_tensor", 0, 1, 2, 3, -1, -1},
    {"torch._utils._rebuild_tensor_v2", 0, 1, 2, 3, 4, -1},
    {"torch._utils._rebuild_tensor_v3", 0, 1, 2, 3, 4, 6},
    {"torch._utils._rebuild_qtensor", 0, 1, 2, 3, 5, -1},
    {"torch._utils._rebuild_meta_tensor_no_storage", -1, -1, 1, 2, 3, 0},
};

static const struct nrg_pkl *argument(const struct nrg_pkl *args, signed char i)
{
    return i < 0 ? NULL : nrg_pkl_item(args, (size_t)i);
}

static bool read_rebuilt(const struct layout *at, const struct nrg_pkl *args,
                         struct nrg_tensor_info *tensor)
{
    const struct nrg_pkl *offset = argument(args, at->offset), *grad = argument(args, at->grad);
    const struct nrg_pkl *dtype = argument(args, at->dtype);
    int n_strides = 0;
    if (at->storage >= 0 && !read_storage(argument(args, at->storage), tensor))
        return false;
    if (!read_ints(argument(args, at->size), tensor->dims, &tensor->rank))
        return false;
    tensor->has_strides = read_ints(argument(args, at->stride), tensor->strides, &n_strides) &&
                          n_strides == tensor->rank;
    if (offset && offset->kind == NRG_PKL_INT)
        tensor->storage_offset = offset->i;
    if (grad && grad->kind == NRG_PKL_BOOL)
        tensor->requires_grad = (int)grad->i;
    if (dtype && dtype->kind == NRG_PKL_GLOBAL)
        tensor->dtype = dtype_global(dtype->s);
    return true;
}

static bool from_call(const char *callee, const struct nrg_pkl *args,
                      struct nrg_tensor_info *tensor)
{
    for (size_t i = 0; i < COUNT(layouts); i++)
        if (!strcmp(layouts[i].callee, callee))
            return read_rebuilt(&layouts[i], args, tensor);
    return false;
}

/* A Parameter is a call around its tensor; a subclass is a call around either. */
bool nrg_torch_tensor(const struct nrg_pkl *v, struct nrg_tensor_info *tensor)
{
    const struct nrg_pkl *grad = NULL;
    const char *callee = nrg_pkl_callee(v);
    const struct nrg_pkl *args = v && v->kind == NRG_PKL_OBJECT ? v->args : NULL;
    *tensor = (struct nrg_tensor_info){.requires_grad = -1, .storage_numel = -1, .bytes = -1};
    for (int i = 0; i < UNWRAP_MAX; i++) {
        if (!strncmp(callee, "torch._utils._rebuild_parameter", 31)) {
            grad = nrg_pkl_item(args, 1);
            tensor->is_parameter = true;
            v = nrg_pkl_item(args, 0);
            callee = nrg_pkl_callee(v);
            args = v && v->kind == NRG_PKL_OBJECT ? v->args : NULL;
        } else if (!strcmp(callee, "torch._tensor._rebuild_from_type_v2")) {
            const struct nrg_pkl *function = nrg_pkl_item(args, 0);
            callee = function && function->kind == NRG_PKL_GLOBAL ? function->s : "";
            args = nrg_pkl_item(args, 2);
        } else {
            break;
        }
    }
    if (!from_call(callee, args, tensor))
        return false;
    if (grad && grad->kind == NRG_PKL_BOOL)
        tensor->requires_grad = (int)grad->i;
    return true;
}

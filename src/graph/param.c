/* See param.h. Names are copied clean, and sizes are checked once, when a parameter is added. */
#include "graph/param.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

const char *nrg_model_text(struct nrg_model *model, const char *text, size_t len)
{
    char *copy = nrg_arena_alloc(&model->arena, len + 1);
    if (copy)
        nrg_copy_clean(copy, len + 1, text, len);
    return copy;
}

/* Names that PyTorch's own modules and the large model families register as buffers. */
bool nrg_param_is_known_buffer(const char *name)
{
    static const char *const known[] = {
        "running_mean",   "running_var", "num_batches_tracked", "position_ids",
        "token_type_ids", "inv_freq",    "original_inv_freq",   "relative_position_index",
        "min_val",        "max_val",     "zero_point",          "attn_mask",
        "masked_bias",    "causal_mask", "attention_mask",      "mask",
    };
    const char *dot = strrchr(name, '.');
    const char *last = dot ? dot + 1 : name;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(last, known[i]))
            return true;
    return false;
}

/* Integers are not trained; those of 8 bits may be quantised weights, which are parameters. */
static bool looks_like_buffer(const char *name, enum nrg_dtype dtype)
{
    return nrg_param_is_known_buffer(name) ||
           (nrg_dtype_is_whole(dtype) && dtype != NRG_I8 && dtype != NRG_U8);
}

const struct nrg_type *nrg_tensor_type(struct nrg_arena *arena,
                                       const struct nrg_tensor_info *tensor)
{
    struct nrg_type *type =
        (struct nrg_type *)nrg_type_tensor(arena, tensor->dtype, tensor->rank, tensor->dims);
    if (!type)
        return NULL;
    type->requires_grad = tensor->requires_grad;
    if (tensor->device &&
        !(type->device = nrg_arena_copy(arena, tensor->device, strlen(tensor->device))))
        return NULL;
    if (tensor->has_strides && tensor->rank > 0) {
        int64_t *strides = nrg_arena_array(arena, (size_t)tensor->rank, sizeof *strides);
        if (!strides)
            return NULL;
        memcpy(strides, tensor->strides, (size_t)tensor->rank * sizeof *strides);
        type->strides = strides;
    }
    return type;
}

static int64_t bytes_of(const struct nrg_type *type)
{
    int64_t n = nrg_type_numel(type), bits = nrg_dtype_bits(type->dtype);
    if (n < 0 || !bits)
        return -1;
    return n > (INT64_MAX - 7) / bits ? -2 : (n * bits + 7) / 8;
}

static void set_role(struct nrg_param *param, const struct nrg_tensor_info *tensor,
                     enum nrg_param_role role)
{
    /* A state dict's tensors are detached: their flag says nothing. */
    int trainable = role == NRG_ROLE_GUESS && !tensor->is_parameter && tensor->requires_grad == 0
                        ? -1
                        : tensor->requires_grad;
    if (role == NRG_ROLE_GUESS)
        role = !tensor->is_parameter && looks_like_buffer(param->name, tensor->dtype)
                   ? NRG_ROLE_BUFFER
                   : NRG_ROLE_PARAM;
    param->is_extra = role == NRG_ROLE_EXTRA;
    param->is_buffer = role != NRG_ROLE_PARAM;
    param->trainable = param->is_buffer ? 0 : trainable;
}

int nrg_param_add(struct nrg_model *model, const char *where, const char *name, size_t name_len,
                  const struct nrg_tensor_info *tensor, enum nrg_param_role role,
                  struct nrg_error *err)
{
    struct nrg_param param = {.name = nrg_model_text(model, name, name_len),
                              .type = nrg_tensor_type(&model->arena, tensor),
                              .storage_offset = tensor->storage_offset};
    if (!param.name || !param.type)
        return nrg_fail(err, -ENOMEM, where, "needs more memory than its size allows");
    for (int i = 0; i < tensor->rank; i++)
        if (tensor->dims[i] < 0)
            return nrg_fail(err, -EINVAL, where, "parameter '%.100s' has a negative dimension",
                            param.name);
    int64_t bytes = bytes_of(param.type);
    if (nrg_type_numel(param.type) == -2 || bytes == -2)
        return nrg_fail(err, -EOVERFLOW, where,
                        "parameter '%.100s' has more elements than 63 bits can count", param.name);
    param.bytes = tensor->bytes >= 0 ? tensor->bytes : bytes;
    if (tensor->storage &&
        !(param.storage = nrg_model_text(model, tensor->storage, tensor->storage_len)))
        return nrg_fail(err, -ENOMEM, where, "needs more memory than its size allows");
    set_role(&param, tensor, role);
    if (nrg_model_add_param(model, &param))
        return nrg_fail(err, -ENOMEM, where, "out of memory");
    return 0;
}

static int add_module_once(struct nrg_model *model, struct nrg_map *seen, const char *name,
                           size_t len)
{
    if (nrg_map_number(seen, name, len) >= 0)
        return 0;
    const char *copy = nrg_arena_copy(&model->arena, name, len);
    if (!copy || nrg_model_add_module(model, copy, ""))
        return -ENOMEM;
    return nrg_map_put(seen, copy, len, 0);
}

int nrg_param_modules(struct nrg_model *model)
{
    struct nrg_map seen = {0};
    int rc = 0;
    for (size_t i = 0; !rc && i < model->n_modules; i++)
        rc = nrg_map_put(&seen, model->modules[i].name, strlen(model->modules[i].name), 0);
    if (!rc)
        rc = add_module_once(model, &seen, "", 0);
    for (size_t i = 0; !rc && i < model->n_params; i++) {
        const char *name = model->params[i].name;
        const char *dot = strchr(name, '.');
        for (; !rc && dot; dot = strchr(dot + 1, '.'))
            rc = add_module_once(model, &seen, name, (size_t)(dot - name));
    }
    nrg_map_release(&seen);
    return rc;
}

int nrg_param_finish(struct nrg_model *model, const char *where, struct nrg_error *err)
{
    if (!model->n_params)
        return nrg_fail(err, -ENODATA, where, "holds no tensors");
    return nrg_param_modules(model)
               ? nrg_fail(err, -ENOMEM, where, "needs more memory than its size allows")
               : 0;
}

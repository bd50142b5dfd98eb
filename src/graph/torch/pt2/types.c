/*
 * See internal.h. Sizes are integers or expressions in sympy's printed form; each distinct
 * expression becomes a symbol of the model, with the size it had in the example inputs.
 */
#include "graph/torch/pt2/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* The schema's own numbers: not those of c10. */
static enum nrg_dtype dtype_of(json_int_t code)
{
    static const enum nrg_dtype codes[] = {
        [1] = NRG_U8,           [2] = NRG_I8,           [3] = NRG_I16,        [4] = NRG_I32,
        [5] = NRG_I64,          [6] = NRG_F16,          [7] = NRG_F32,        [8] = NRG_F64,
        [9] = NRG_C32,          [10] = NRG_C64,         [11] = NRG_C128,      [12] = NRG_BOOL,
        [13] = NRG_BF16,        [28] = NRG_U16,         [29] = NRG_F8_E4M3FN, [30] = NRG_F8_E5M2,
        [31] = NRG_F8_E4M3FNUZ, [32] = NRG_F8_E5M2FNUZ, [34] = NRG_U32,       [35] = NRG_U64,
    };
    return code > 0 && code < (json_int_t)(sizeof codes / sizeof *codes) ? codes[code]
                                                                         : NRG_DTYPE_UNKNOWN;
}

/* "Mul(Integer(2), Symbol('s77', positive=True))" reads better as "Mul(2, s77)". */
static void shorten_symbol(char *out, size_t size, const char *text)
{
    size_t n = 0;
    while (*text && n + 1 < size) {
        const char *name = NULL, *end = NULL, *close = NULL;
        if (!strncmp(text, "Symbol('", 8)) {
            name = text + 8;
            end = strchr(name, '\'');
        } else if (!strncmp(text, "Integer(", 8)) {
            name = text + 8;
            end = strchr(name, ')');
        }
        close = end ? strchr(end, ')') : NULL;
        if (!close) {
            out[n++] = *text++;
            continue;
        }
        while (name < end && n + 1 < size)
            out[n++] = *name++;
        text = close + 1;
    }
    out[n] = '\0';
}

static int64_t symbol_dim(struct nrg_pt2 *pt2, const json_t *expression)
{
    const char *text = json_string_value(json_object_get(expression, "expr_str"));
    const json_t *hint = json_object_get(json_object_get(expression, "hint"), "as_int");
    char name[200];
    if (!text)
        return NRG_DIM_UNKNOWN;
    int64_t known = nrg_map_number(&pt2->symbols, text, strlen(text));
    if (known >= 0)
        return -2 - known;
    shorten_symbol(name, sizeof name, text);
    struct nrg_symbol made = {
        .dim = -2 - (int64_t)pt2->model->n_symbols,
        .name = nrg_pt2_text(pt2, name),
        .example = json_is_integer(hint) ? json_integer_value(hint) : -1,
    };
    if (!made.name ||
        nrg_map_put(&pt2->symbols, text, strlen(text), (int64_t)pt2->model->n_symbols) ||
        nrg_model_add_symbol(pt2->model, &made))
        return NRG_DIM_UNKNOWN;
    return made.dim;
}

static int64_t size_of(struct nrg_pt2 *pt2, const json_t *size)
{
    const json_t *number = json_object_get(size, "as_int");
    if (json_is_integer(number))
        return json_integer_value(number) >= 0 ? json_integer_value(number) : NRG_DIM_UNKNOWN;
    return symbol_dim(pt2, json_object_get(size, "as_expr"));
}

static const char *device_name(const json_t *device, char *buf, size_t size)
{
    const char *type = json_string_value(json_object_get(device, "type"));
    const json_t *index = json_object_get(device, "index");
    if (!type)
        return NULL;
    if (json_is_integer(index))
        snprintf(buf, size, "%.20s:%lld", type, (long long)json_integer_value(index));
    else
        snprintf(buf, size, "%.20s", type);
    return buf;
}

bool nrg_pt2_tensor(struct nrg_pt2 *pt2, const json_t *meta, struct nrg_tensor_info *tensor)
{
    const json_t *sizes = json_object_get(meta, "sizes");
    const json_t *strides = json_object_get(meta, "strides");
    const json_t *grad = json_object_get(meta, "requires_grad");
    *tensor = (struct nrg_tensor_info){.requires_grad = -1, .storage_numel = -1, .bytes = -1};
    if (!json_is_array(sizes) || json_array_size(sizes) > NRG_MAX_RANK)
        return false;
    tensor->rank = (int)json_array_size(sizes);
    tensor->dtype = dtype_of(json_integer_value(json_object_get(meta, "dtype")));
    tensor->has_strides = json_array_size(strides) == json_array_size(sizes);
    for (int i = 0; i < tensor->rank; i++) {
        tensor->dims[i] = size_of(pt2, json_array_get(sizes, (size_t)i));
        if (tensor->has_strides)
            tensor->strides[i] = size_of(pt2, json_array_get(strides, (size_t)i));
    }
    if (json_is_boolean(grad))
        tensor->requires_grad = json_is_true(grad);
    return true;
}

const struct nrg_type *nrg_pt2_tensor_type(struct nrg_pt2 *pt2, const json_t *meta)
{
    struct nrg_tensor_info tensor;
    char device[64];
    if (!nrg_pt2_tensor(pt2, meta, &tensor))
        return nrg_type_tensor(&pt2->model->arena, NRG_DTYPE_UNKNOWN, -1, NULL);
    tensor.device = device_name(json_object_get(meta, "device"), device, sizeof device);
    return nrg_tensor_type(&pt2->model->arena, &tensor);
}

const struct nrg_type *nrg_pt2_simple_type(struct nrg_pt2 *pt2, enum nrg_type_kind kind,
                                           enum nrg_type_kind element)
{
    struct nrg_type *type = nrg_arena_alloc(&pt2->model->arena, 2 * sizeof *type);
    const struct nrg_type **args = nrg_arena_alloc(&pt2->model->arena, sizeof *args);
    if (!type || !args)
        return NULL;
    type[0] = (struct nrg_type){.kind = kind, .rank = -1, .requires_grad = -1};
    type[1] = (struct nrg_type){.kind = element, .rank = -1, .requires_grad = -1};
    args[0] = &type[1];
    if (kind == NRG_T_LIST) {
        type[0].args = args;
        type[0].n_args = 1;
    }
    return &type[0];
}

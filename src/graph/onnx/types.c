/*
 * See internal.h: TypeProto and ValueInfoProto. A dimension is a number, a name (dim_param) or
 * nothing. Equal names are equal symbols everywhere in the model; the names stay in a warning,
 * because what depends on them cannot be counted until the user gives them a size. A negative
 * number is what old exporters wrote for "any" (-1) and becomes unknown; other negative ones are
 * refused.
 */
#include <errno.h>
#include <string.h>

#include "graph/onnx/internal.h"

enum { TYPE_TENSOR = 1, TYPE_SEQUENCE = 4, TYPE_MAP = 5, TYPE_SPARSE = 8, TYPE_OPTIONAL = 9 };
enum { TENSOR_ELEM = 1, TENSOR_SHAPE = 2 };
enum { DIM_VALUE = 1, DIM_PARAM = 2 };
enum { INFO_NAME = 1, INFO_TYPE = 2 };
#define MAX_TYPE_DEPTH 16

enum nrg_dtype onnx_dtype(uint64_t code)
{
    static const enum nrg_dtype dtypes[] = {
        [1] = NRG_F32,        [2] = NRG_U8,           [3] = NRG_I8,       [4] = NRG_U16,
        [5] = NRG_I16,        [6] = NRG_I32,          [7] = NRG_I64,      [8] = NRG_STRING_DTYPE,
        [9] = NRG_BOOL,       [10] = NRG_F16,         [11] = NRG_F64,     [12] = NRG_U32,
        [13] = NRG_U64,       [14] = NRG_C64,         [15] = NRG_C128,    [16] = NRG_BF16,
        [17] = NRG_F8_E4M3FN, [18] = NRG_F8_E4M3FNUZ, [19] = NRG_F8_E5M2, [20] = NRG_F8_E5M2FNUZ,
        [21] = NRG_U4,        [22] = NRG_I4,
    };
    return code < sizeof dtypes / sizeof *dtypes ? dtypes[code] : NRG_DTYPE_UNKNOWN;
}

static int symbol_dim(struct onnx *x, const struct nrg_pb_field *field, int64_t *dim)
{
    *dim = NRG_DIM_UNKNOWN;
    if (field->wire != NRG_PB_BYTES || !field->size)
        return 0;
    uintptr_t number = (uintptr_t)onnx_map_get(&x->symbols, field->bytes, field->size);
    if (!number && x->n_symbols < ONNX_SYMBOLS - 2) {
        number = x->n_symbols++ + 2u;
        int rc = onnx_map_add(x, &x->symbols, field->bytes, field->size, (void *)number);
        const char *name = rc ? NULL : onnx_text(x, field);
        struct nrg_symbol made = {.dim = -(int64_t)number, .name = name, .example = -1};
        if (rc || !name || nrg_model_add_symbol(x->model, &made))
            return rc ? rc : onnx_no_memory(x);
    }
    *dim = number ? -(int64_t)number : NRG_DIM_UNKNOWN;
    return 0;
}

static int read_dim(struct onnx *x, struct nrg_pb msg, int64_t *dim)
{
    struct nrg_pb_field field;
    int rc;
    *dim = NRG_DIM_UNKNOWN;
    while ((rc = nrg_pb_next(&msg, &field)) > 0) {
        if (field.number == DIM_PARAM && (rc = symbol_dim(x, &field, dim)))
            return rc;
        if (field.number != DIM_VALUE || field.wire != NRG_PB_VARINT)
            continue;
        if (field.value > INT64_MAX && field.value != UINT64_MAX)
            return onnx_fail(x, msg.at, "a dimension is negative (%lld)", (long long)field.value);
        *dim = field.value > INT64_MAX ? NRG_DIM_UNKNOWN : (int64_t)field.value;
    }
    return rc < 0 ? onnx_broken(x, &msg) : 0;
}

static int read_shape(struct onnx *x, struct nrg_pb msg, struct nrg_type *type)
{
    struct nrg_pb_field field;
    size_t n = nrg_pb_count(msg, 1);
    int64_t *dims = nrg_arena_array(&x->model->arena, n ? n : 1, sizeof *dims);
    int rc;
    if (!dims)
        return onnx_no_memory(x);
    type->rank = 0;
    type->dims = dims;
    while ((rc = nrg_pb_next(&msg, &field)) > 0)
        if (field.number == 1 && (rc = read_dim(x, nrg_pb_inside(&field), &dims[type->rank++])))
            return rc;
    return rc < 0 ? onnx_broken(x, &msg) : 0;
}

static int read_tensor_type(struct onnx *x, struct nrg_pb msg, struct nrg_type *type)
{
    struct nrg_pb_field field;
    int rc;
    *type = (struct nrg_type){.kind = NRG_T_TENSOR, .rank = -1, .requires_grad = -1};
    while ((rc = nrg_pb_next(&msg, &field)) > 0) {
        if (field.number == TENSOR_ELEM)
            type->dtype = onnx_dtype(field.value);
        else if (field.number == TENSOR_SHAPE && (rc = read_shape(x, nrg_pb_inside(&field), type)))
            return rc;
    }
    return rc < 0 ? onnx_broken(x, &msg) : 0;
}

static int read_type(struct onnx *x, struct nrg_pb msg, const struct nrg_type **out,
                     unsigned depth);

/* Sequences and optionals hold their element's TypeProto as field 1. */
static int read_element_type(struct onnx *x, struct nrg_pb msg, struct nrg_type *type,
                             unsigned depth)
{
    const struct nrg_type **args = nrg_arena_alloc(&x->model->arena, sizeof(struct nrg_type *));
    struct nrg_pb_field field;
    if (!args)
        return onnx_no_memory(x);
    args[0] = x->unknown;
    type->args = args;
    type->n_args = 1;
    return nrg_pb_find(msg, 1, &field) ? read_type(x, nrg_pb_inside(&field), args, depth + 1) : 0;
}

static int read_type(struct onnx *x, struct nrg_pb msg, const struct nrg_type **out, unsigned depth)
{
    struct nrg_type *type = nrg_arena_alloc(&x->model->arena, sizeof *type);
    struct nrg_pb_field field;
    int rc;
    if (!type)
        return onnx_no_memory(x);
    if (depth > MAX_TYPE_DEPTH)
        return onnx_fail(x, msg.at, "types are nested deeper than %d", MAX_TYPE_DEPTH);
    *type = *x->unknown;
    while ((rc = nrg_pb_next(&msg, &field)) > 0) {
        rc = 0;
        if (field.number == TYPE_TENSOR || field.number == TYPE_SPARSE) {
            rc = read_tensor_type(x, nrg_pb_inside(&field), type);
        } else if (field.number == TYPE_SEQUENCE || field.number == TYPE_OPTIONAL) {
            type->kind = field.number == TYPE_SEQUENCE ? NRG_T_LIST : NRG_T_OPTIONAL;
            rc = read_element_type(x, nrg_pb_inside(&field), type, depth);
        } else if (field.number == TYPE_MAP) {
            type->kind = NRG_T_OTHER;
            type->name = "map";
        }
        if (rc)
            return rc;
    }
    *out = type;
    return rc < 0 ? onnx_broken(x, &msg) : 0;
}

int onnx_value_info(struct onnx *x, struct nrg_pb msg, struct nrg_pb_field *name,
                    const struct nrg_type **type)
{
    struct nrg_pb_field field;
    int rc;
    *name = (struct nrg_pb_field){.wire = NRG_PB_BYTES, .bytes = (const uint8_t *)""};
    *type = x->unknown;
    while ((rc = nrg_pb_next(&msg, &field)) > 0) {
        if (field.number == INFO_NAME && field.wire == NRG_PB_BYTES)
            *name = field;
        else if (field.number == INFO_TYPE && (rc = read_type(x, nrg_pb_inside(&field), type, 0)))
            return rc;
    }
    return rc < 0 ? onnx_broken(x, &msg) : 0;
}

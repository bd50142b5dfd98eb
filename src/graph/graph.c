/* See graph.h. Names of element types in all formats are one table and its aliases. */
#include "graph/graph.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const struct {
    const char *name;
    unsigned bits;
} dtypes[] = {
    [NRG_DTYPE_UNKNOWN] = {"unknown", 0},
    [NRG_F64] = {"float64", 64},
    [NRG_F32] = {"float32", 32},
    [NRG_F16] = {"float16", 16},
    [NRG_BF16] = {"bfloat16", 16},
    [NRG_F8_E5M2] = {"float8_e5m2", 8},
    [NRG_F8_E4M3FN] = {"float8_e4m3fn", 8},
    [NRG_F8_E5M2FNUZ] = {"float8_e5m2fnuz", 8},
    [NRG_F8_E4M3FNUZ] = {"float8_e4m3fnuz", 8},
    [NRG_I64] = {"int64", 64},
    [NRG_I32] = {"int32", 32},
    [NRG_I16] = {"int16", 16},
    [NRG_I8] = {"int8", 8},
    [NRG_U64] = {"uint64", 64},
    [NRG_U32] = {"uint32", 32},
    [NRG_U16] = {"uint16", 16},
    [NRG_U8] = {"uint8", 8},
    [NRG_BOOL] = {"bool", 8},
    [NRG_C128] = {"complex128", 128},
    [NRG_C64] = {"complex64", 64},
    [NRG_C32] = {"complex32", 32},
    [NRG_QI8] = {"qint8", 8},
    [NRG_QU8] = {"quint8", 8},
    [NRG_QI32] = {"qint32", 32},
    [NRG_QU4] = {"quint4x2", 4},
    [NRG_QU2] = {"quint2x4", 2},
    [NRG_I4] = {"int4", 4},
    [NRG_U4] = {"uint4", 4},
    [NRG_BITS] = {"bits", 8},
    [NRG_STRING_DTYPE] = {"string", 0},
};

#define COUNT(a) (sizeof(a) / sizeof *(a))
_Static_assert(COUNT(dtypes) == NRG_DTYPES, "a row for every dtype");

/* Other names of the same; compared without case. */
static const struct {
    const char *name;
    enum nrg_dtype dtype;
} aliases[] = {
    {"Double", NRG_F64},
    {"Float", NRG_F32},
    {"Half", NRG_F16},
    {"Long", NRG_I64},
    {"Int", NRG_I32},
    {"Short", NRG_I16},
    {"Char", NRG_I8},
    {"Byte", NRG_U8},
    {"ComplexDouble", NRG_C128},
    {"ComplexFloat", NRG_C64},
    {"ComplexHalf", NRG_C32},
    {"F64", NRG_F64},
    {"F32", NRG_F32},
    {"F16", NRG_F16},
    {"BF16", NRG_BF16},
    {"FP32", NRG_F32},
    {"FP16", NRG_F16},
    {"I64", NRG_I64},
    {"I32", NRG_I32},
    {"I16", NRG_I16},
    {"I8", NRG_I8},
    {"U64", NRG_U64},
    {"U32", NRG_U32},
    {"U16", NRG_U16},
    {"U8", NRG_U8},
    {"F8_E4M3", NRG_F8_E4M3FN},
    {"F8_E5M2", NRG_F8_E5M2},
    {"QUInt4x2", NRG_QU4},
    {"QUInt2x4", NRG_QU2},
    {"C64", NRG_C64},
};

static bool is_same_name(const char *a, const char *b, size_t len)
{
    return strlen(a) == len && !strncasecmp(a, b, len);
}

const char *nrg_dtype_name(enum nrg_dtype dtype)
{
    return dtypes[dtype].name;
}

bool nrg_dtype_is_whole(enum nrg_dtype dtype)
{
    return dtype >= NRG_I64 && dtype <= NRG_BOOL;
}

unsigned nrg_dtype_bits(enum nrg_dtype dtype)
{
    return dtypes[dtype].bits;
}

enum nrg_dtype nrg_dtype_from_name(const char *name, size_t len)
{
    if (len > 6 && !strncmp(name, "torch.", 6)) {
        name += 6;
        len -= 6;
    }
    for (size_t i = 1; i < COUNT(dtypes); i++)
        if (is_same_name(dtypes[i].name, name, len))
            return (enum nrg_dtype)i;
    for (size_t i = 0; i < COUNT(aliases); i++)
        if (is_same_name(aliases[i].name, name, len))
            return aliases[i].dtype;
    if (len > 4 && !strncasecmp(name, "Bits", 4))
        return NRG_BITS;
    return NRG_DTYPE_UNKNOWN;
}

void nrg_model_release(struct nrg_model *model)
{
    free(model->graphs);
    free(model->modules);
    free(model->params);
    free(model->symbols);
    free(model->warnings);
    nrg_arena_release(&model->arena);
    *model = (struct nrg_model){0};
}

int nrg_model_add_graph(struct nrg_model *model, struct nrg_graph *graph)
{
    return nrg_append(&model->graphs, &model->n_graphs, &model->cap_graphs, &graph,
                      sizeof *model->graphs);
}

int nrg_model_add_module(struct nrg_model *model, const char *name, const char *class_name)
{
    return nrg_append(&model->modules, &model->n_modules, &model->cap_modules,
                      &(struct nrg_module){name, class_name}, sizeof *model->modules);
}

int nrg_model_add_param(struct nrg_model *model, const struct nrg_param *param)
{
    return nrg_append(&model->params, &model->n_params, &model->cap_params, param,
                      sizeof *model->params);
}

int nrg_model_add_symbol(struct nrg_model *model, const struct nrg_symbol *symbol)
{
    return nrg_append(&model->symbols, &model->n_symbols, &model->cap_symbols, symbol,
                      sizeof *model->symbols);
}

int nrg_model_warn(struct nrg_model *model, const char *fmt, ...)
{
    char text[500];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    char *copy = nrg_arena_copy(&model->arena, text, strlen(text));
    if (!copy || nrg_append(&model->warnings, &model->n_warnings, &model->cap_warnings, &copy,
                            sizeof *model->warnings))
        return -ENOMEM;
    return 0;
}

const struct nrg_attr *nrg_op_attr(const struct nrg_op *op, const char *name)
{
    for (size_t i = 0; i < op->n_attrs; i++)
        if (!strcmp(op->attrs[i].name, name))
            return &op->attrs[i];
    return NULL;
}

int64_t nrg_op_int(const struct nrg_op *op, const char *name, int64_t otherwise)
{
    const struct nrg_attr *attr = nrg_op_attr(op, name);
    return attr && attr->kind == NRG_A_INT ? attr->i : otherwise;
}

const char *nrg_op_text(const struct nrg_op *op, const char *name, const char *otherwise)
{
    const struct nrg_attr *attr = nrg_op_attr(op, name);
    return attr && attr->kind == NRG_A_STRING ? attr->s : otherwise;
}

const struct nrg_type nrg_type_unknown = {.kind = NRG_T_UNKNOWN, .rank = -1, .requires_grad = -1};

const struct nrg_type *nrg_type_plain(const struct nrg_type *type)
{
    while (type->kind == NRG_T_OPTIONAL && type->n_args == 1)
        type = type->args[0];
    return type;
}

int64_t nrg_type_numel(const struct nrg_type *type)
{
    int64_t n = 1;
    if (type->kind != NRG_T_TENSOR || type->rank < 0 || (type->rank && !type->dims))
        return -1;
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i] < 0)
            return -1;
    for (int i = 0; i < type->rank; i++)
        if (__builtin_mul_overflow(n, type->dims[i], &n))
            return -2;
    return n;
}

/* Types are finite trees of bounded depth: readers limit nesting. */
bool nrg_type_has_tensor(const struct nrg_type *type)
{
    if (type->kind == NRG_T_TENSOR)
        return true;
    for (size_t i = 0; i < type->n_args; i++)
        if (nrg_type_has_tensor(type->args[i]))
            return true;
    return false;
}

const struct nrg_type *nrg_type_tensor(struct nrg_arena *arena, enum nrg_dtype dtype, int rank,
                                       const int64_t *dims)
{
    struct nrg_type *type = nrg_arena_alloc(arena, sizeof *type);
    if (!type)
        return NULL;
    *type =
        (struct nrg_type){.kind = NRG_T_TENSOR, .dtype = dtype, .rank = rank, .requires_grad = -1};
    if (rank > 0 && dims) {
        int64_t *copy = nrg_arena_array(arena, (size_t)rank, sizeof *copy);
        if (!copy)
            return NULL;
        memcpy(copy, dims, (size_t)rank * sizeof *copy);
        type->dims = copy;
    }
    return type;
}

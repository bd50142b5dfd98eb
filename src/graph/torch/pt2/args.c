/*
 * See internal.h. An argument is an object with one key that says what it is. Names are looked
 * up in the scope; scalars and lists of scalars become prim::Constant, lists that hold values
 * become prim::ListConstruct, as TorchScript writes them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/memory.h"
#include "base/mem.h"
#include "graph/torch/pt2/internal.h"

int nrg_pt2_push(struct nrg_pt2_scope *scope, struct nrg_pt2_list *list, struct nrg_value *value)
{
    if (!value || nrg_append(&list->items, &list->n, &list->cap, &value, sizeof value))
        return nrg_pt2_no_memory(scope->pt2);
    return 0;
}

static const char *name_in(const json_t *object)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    return name ? name : json_string_value(json_object_get(object, "as_name"));
}

const char *nrg_pt2_arg_name(const json_t *arg)
{
    static const char *const keys[] = {"as_tensor",    "as_sym_int",    "as_sym_bool",
                                       "as_sym_float", "as_custom_obj", "as_optional_tensor"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *inner = json_object_get(arg, keys[i]);
        if (json_object_get(inner, "as_tensor"))
            inner = json_object_get(inner, "as_tensor");
        const char *name = name_in(inner);
        if (name)
            return name;
    }
    return NULL;
}

/* A name that no node made: PyTorch writes none, so warn and go on with an unknown value. */
static struct nrg_value *unknown_value(struct nrg_pt2_scope *scope, const char *name)
{
    nrg_model_warn(scope->pt2->model, "value '%.100s' is used but never made", name);
    const struct nrg_type *type =
        nrg_pt2_tensor_type(scope->pt2, json_object_get(scope->tensors, name));
    const char *kept = nrg_pt2_text(scope->pt2, name);
    struct nrg_value *value = type && kept ? nrg_pt2_value(scope, kept, type) : NULL;
    return value && nrg_pt2_bind(scope, name, value) ? NULL : value;
}

static struct nrg_value *find_value(struct nrg_pt2_scope *scope, const char *name)
{
    int64_t at = nrg_map_number(&scope->names, name, strlen(name));
    return at >= 0 ? scope->values[at] : unknown_value(scope, name);
}

/* `element`: of a list. */
static struct nrg_value *add_constant(struct nrg_pt2_scope *scope, enum nrg_type_kind kind,
                                      enum nrg_type_kind element, struct nrg_attr attr)
{
    const struct nrg_type *type = nrg_pt2_simple_type(scope->pt2, kind, element);
    struct nrg_value *value = nrg_pt2_numbered(scope, "const", type);
    struct nrg_op *op = value ? nrg_pt2_op(scope, "prim::Constant", NULL, 0, &value, 1) : NULL;
    attr.name = "value";
    bool good = attr.kind == NRG_A_NONE ? op != NULL : nrg_pt2_set_attr(scope->pt2, op, &attr);
    return good ? value : NULL;
}

static struct nrg_value *int_constant(struct nrg_pt2_scope *scope, json_int_t number)
{
    return add_constant(scope, NRG_T_INT, 0, (struct nrg_attr){.kind = NRG_A_INT, .i = number});
}

static struct nrg_value *none_constant(struct nrg_pt2_scope *scope)
{
    return add_constant(scope, NRG_T_NONE, 0, (struct nrg_attr){.kind = NRG_A_NONE});
}

static struct nrg_value *text_constant(struct nrg_pt2_scope *scope, enum nrg_type_kind kind,
                                       enum nrg_attr_kind attr_kind, const char *text)
{
    const char *kept = nrg_pt2_text(scope->pt2, text ? text : "");
    return kept ? add_constant(scope, kind, 0, (struct nrg_attr){.kind = attr_kind, .s = kept})
                : NULL;
}

static struct nrg_value *scalar_constant(struct nrg_pt2_scope *scope, const json_t *v)
{
    const struct nrg_attr real = {.kind = NRG_A_FLOAT, .f = json_number_value(v)};
    const struct nrg_attr truth = {.kind = NRG_A_BOOL, .i = json_is_true(v)};
    if (json_is_integer(v))
        return int_constant(scope, json_integer_value(v));
    if (json_is_string(v)) /* "Infinity", "NaN": JSON has no other way to write them */
        return text_constant(scope, NRG_T_STRING, NRG_A_STRING, json_string_value(v));
    return json_is_real(v)      ? add_constant(scope, NRG_T_FLOAT, 0, real)
           : json_is_boolean(v) ? add_constant(scope, NRG_T_BOOL, 0, truth)
                                : none_constant(scope);
}

/* Booleans are kept as integers. */
static struct nrg_value *number_list(struct nrg_pt2_scope *scope, const json_t *list, bool real)
{
    struct nrg_arena *arena = &scope->pt2->model->arena;
    size_t n = json_array_size(list);
    bool truth = n && json_is_boolean(json_array_get(list, 0));
    double *fs = real ? nrg_arena_array(arena, n, sizeof *fs) : NULL;
    int64_t *is = real ? NULL : nrg_arena_array(arena, n, sizeof *is);
    if (!fs && !is)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        if (real)
            fs[i] = json_number_value(v);
        else
            is[i] = json_is_boolean(v) ? json_is_true(v) : json_integer_value(v);
    }
    enum nrg_type_kind element = real ? NRG_T_FLOAT : truth ? NRG_T_BOOL : NRG_T_INT;
    struct nrg_attr attr = {.kind = real ? NRG_A_FLOATS : NRG_A_INTS, .is = is, .fs = fs, .n = n};
    return add_constant(scope, NRG_T_LIST, element, attr);
}

/* One member of a list: {"name": t}, {"as_tensor": {"name": t}}, {"as_name": s}, {"as_int": 3}. */
static struct nrg_value *list_member(struct nrg_pt2_scope *scope, const json_t *item)
{
    const char *name = nrg_pt2_arg_name(item);
    if (!name)
        name = name_in(item);
    if (name)
        return find_value(scope, name);
    static const char *const keys[] = {"as_int", "as_float", "as_bool"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(item, keys[i]))
            return scalar_constant(scope, json_object_get(item, keys[i]));
    return none_constant(scope);
}

static struct nrg_value *value_list(struct nrg_pt2_scope *scope, const json_t *list,
                                    enum nrg_type_kind element)
{
    struct nrg_pt2_list items = {0};
    struct nrg_value *value = NULL;
    int rc = 0;
    for (size_t i = 0; !rc && i < json_array_size(list); i++)
        rc = nrg_pt2_push(scope, &items, list_member(scope, json_array_get(list, i)));
    if (!rc)
        value =
            nrg_pt2_numbered(scope, "list", nrg_pt2_simple_type(scope->pt2, NRG_T_LIST, element));
    if (value && !nrg_pt2_op(scope, "prim::ListConstruct", items.items, items.n, &value, 1))
        value = NULL;
    free(items.items);
    return value;
}

static struct nrg_value *other_constant(struct nrg_pt2_scope *scope, const char *key,
                                        const json_t *v)
{
    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    struct nrg_value *value = text_constant(scope, NRG_T_OTHER, NRG_A_OTHER, text ? text : key);
    nrg_json_free(text);
    return value;
}

/* Dtypes have PyTorch's own numbers, as in TorchScript. */
static struct nrg_value *dtype_constant(struct nrg_pt2_scope *scope, const json_t *v)
{
    json_int_t code = json_integer_value(v);
    if (code >= 1 && code <= 8)
        return int_constant(scope, code - 1);
    static const struct {
        int schema, c10;
    } rows[] = {{9, 8},   {10, 9},  {11, 10}, {12, 11}, {13, 15}, {28, 27}, {29, 24},
                {30, 23}, {31, 26}, {32, 25}, {33, 44}, {34, 28}, {35, 29}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].schema == code)
            return int_constant(scope, rows[i].c10);
    return none_constant(scope);
}

static struct nrg_value *from_key(struct nrg_pt2_scope *scope, const char *key, const json_t *v)
{
    if (!strcmp(key, "as_none"))
        return none_constant(scope);
    if (!strcmp(key, "as_scalar_type"))
        return dtype_constant(scope, v);
    if (!strcmp(key, "as_device"))
        return text_constant(scope, NRG_T_DEVICE, NRG_A_STRING,
                             json_string_value(json_object_get(v, "type")));
    if (!strcmp(key, "as_ints") || !strcmp(key, "as_bools"))
        return number_list(scope, v, false);
    if (!strcmp(key, "as_floats"))
        return number_list(scope, v, true);
    if (!strcmp(key, "as_tensors") || !strcmp(key, "as_optional_tensors"))
        return value_list(scope, v, NRG_T_TENSOR);
    if (!strcmp(key, "as_sym_ints") || !strcmp(key, "as_sym_bools"))
        return value_list(scope, v, NRG_T_INT);
    if (!strcmp(key, "as_sym_floats"))
        return value_list(scope, v, NRG_T_FLOAT);
    if (json_is_object(v) && strncmp(key, "as_sym_", 7) == 0)
        return list_member(scope, v);
    return json_is_object(v) || json_is_array(v) ? other_constant(scope, key, v)
                                                 : scalar_constant(scope, v);
}

int nrg_pt2_argument(struct nrg_pt2_scope *scope, const json_t *arg, struct nrg_pt2_list *list)
{
    const char *name = nrg_pt2_arg_name(arg);
    void *first = json_object_iter((json_t *)arg);
    struct nrg_value *value =
        name    ? find_value(scope, name)
        : first ? from_key(scope, json_object_iter_key(first), json_object_iter_value(first))
                : none_constant(scope);
    return nrg_pt2_push(scope, list, value);
}

int nrg_pt2_operands(struct nrg_pt2_scope *scope, const json_t *arg, struct nrg_pt2_list *list)
{
    static const char *const keys[] = {"as_tensors", "as_optional_tensors", "as_sym_ints"};
    const char *name = nrg_pt2_arg_name(arg);
    int rc = 0;
    if (name)
        return nrg_pt2_push(scope, list, find_value(scope, name));
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const json_t *items = json_object_get(arg, keys[k]);
        for (size_t i = 0; !rc && i < json_array_size(items); i++)
            rc = nrg_pt2_push(scope, list, list_member(scope, json_array_get(items, i)));
    }
    if (json_object_get(arg, "as_int"))
        rc = nrg_pt2_push(scope, list, scalar_constant(scope, json_object_get(arg, "as_int")));
    return rc;
}

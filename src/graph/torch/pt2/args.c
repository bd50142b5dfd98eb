/*
 * See pt2.h. An argument is an object with one key that says what it is. Names are looked up in
 * the scope; scalars and lists of scalars become prim::Constant, lists that hold values become
 * prim::ListConstruct, as TorchScript writes them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/torch/pt2/internal.h"

int nrg_pt2_push(struct nrg_pt2_scope *scope, struct nrg_pt2_list *list, struct nrg_value *value)
{
    if (!value || nrg_reserve(&list->items, &list->cap, list->n + 1, sizeof(struct nrg_value *)))
        return nrg_pt2_no_memory(scope->pt2);
    list->items[list->n++] = value;
    return 0;
}

const char *nrg_pt2_arg_name(const json_t *arg)
{
    static const char *const keys[] = {"as_tensor",    "as_sym_int",    "as_sym_bool",
                                       "as_sym_float", "as_custom_obj", "as_optional_tensor"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *inner = json_object_get(arg, keys[i]);
        if (json_object_get(inner, "as_tensor"))
            inner = json_object_get(inner, "as_tensor");
        const char *name = json_string_value(json_object_get(inner, "name"));
        if (!name)
            name = json_string_value(json_object_get(inner, "as_name"));
        if (name)
            return name;
    }
    return NULL;
}

/* A name that no node made: in an honest file there is none, so say it once and go on. */
static struct nrg_value *unknown_value(struct nrg_pt2_scope *scope, const char *name)
{
    (void)nrg_model_warn(scope->pt2->model, "value '%.100s' is used but never made", name);
    const struct nrg_type *type =
        nrg_pt2_tensor_type(scope->pt2, json_object_get(scope->tensors, name));
    const char *kept = nrg_pt2_text(scope->pt2, name);
    struct nrg_value *value = type && kept ? nrg_pt2_value(scope, kept, type) : NULL;
    return value && nrg_pt2_bind(scope, name, value) ? NULL : value;
}

static struct nrg_value *lookup(struct nrg_pt2_scope *scope, const char *name)
{
    int64_t at = nrg_nametab_get(&scope->names, name, strlen(name));
    return at >= 0 ? scope->values[at] : unknown_value(scope, name);
}

static struct nrg_value *constant(struct nrg_pt2_scope *scope, const struct nrg_type *type,
                                  struct nrg_attr *attr)
{
    struct nrg_model *model = scope->pt2->model;
    struct nrg_attr *kept = NULL;
    char name[32];
    snprintf(name, sizeof name, "const.%zu", scope->pt2->graph->n_values);
    const char *text = nrg_pt2_text(scope->pt2, name);
    struct nrg_value *value = type && text ? nrg_pt2_value(scope, text, type) : NULL;
    struct nrg_op *op = value ? nrg_pt2_op(scope, "prim::Constant", NULL, 0, &value, 1) : NULL;
    if (op && attr->kind != NRG_A_NONE && (kept = nrg_arena_alloc(&model->arena, sizeof *kept))) {
        *kept = *attr;
        kept->name = "value";
        op->attrs = kept;
        op->n_attrs = 1;
    }
    return op && (kept || attr->kind == NRG_A_NONE) ? value : NULL;
}

static struct nrg_value *int_constant(struct nrg_pt2_scope *scope, json_int_t number)
{
    struct nrg_attr attr = {.kind = NRG_A_INT, .i = number};
    return constant(scope, nrg_pt2_simple_type(scope->pt2, NRG_T_INT, 0), &attr);
}

static struct nrg_value *none_constant(struct nrg_pt2_scope *scope)
{
    struct nrg_attr attr = {.kind = NRG_A_NONE};
    return constant(scope, nrg_pt2_simple_type(scope->pt2, NRG_T_NONE, 0), &attr);
}

static struct nrg_value *text_constant(struct nrg_pt2_scope *scope, enum nrg_type_kind kind,
                                       const char *text)
{
    struct nrg_attr attr = {.kind = NRG_A_STRING, .s = nrg_pt2_text(scope->pt2, text ? text : "")};
    return attr.s ? constant(scope, nrg_pt2_simple_type(scope->pt2, kind, 0), &attr) : NULL;
}

static struct nrg_value *scalar(struct nrg_pt2_scope *scope, const json_t *v)
{
    struct nrg_attr attr = {.kind = NRG_A_FLOAT, .f = json_number_value(v)};
    if (json_is_integer(v))
        return int_constant(scope, json_integer_value(v));
    if (json_is_real(v))
        return constant(scope, nrg_pt2_simple_type(scope->pt2, NRG_T_FLOAT, 0), &attr);
    if (json_is_boolean(v)) {
        attr = (struct nrg_attr){.kind = NRG_A_BOOL, .i = json_is_true(v)};
        return constant(scope, nrg_pt2_simple_type(scope->pt2, NRG_T_BOOL, 0), &attr);
    }
    if (json_is_string(v)) /* "Infinity", "NaN": JSON has no other way to write them */
        return text_constant(scope, NRG_T_STRING, json_string_value(v));
    return none_constant(scope);
}

static struct nrg_value *integer_list(struct nrg_pt2_scope *scope, const json_t *list)
{
    size_t n = json_array_size(list);
    int64_t *is = nrg_arena_array(&scope->pt2->model->arena, n, sizeof *is);
    bool truth = n && json_is_boolean(json_array_get(list, 0));
    for (size_t i = 0; is && i < n; i++) {
        const json_t *v = json_array_get(list, i);
        is[i] = json_is_boolean(v) ? json_is_true(v) : json_integer_value(v);
    }
    struct nrg_attr attr = {.kind = NRG_A_INTS, .is = is, .n = n};
    return is ? constant(
                    scope,
                    nrg_pt2_simple_type(scope->pt2, NRG_T_LIST, truth ? NRG_T_BOOL : NRG_T_INT),
                    &attr)
              : NULL;
}

static struct nrg_value *float_list(struct nrg_pt2_scope *scope, const json_t *list)
{
    size_t n = json_array_size(list);
    double *fs = nrg_arena_array(&scope->pt2->model->arena, n, sizeof *fs);
    for (size_t i = 0; fs && i < n; i++)
        fs[i] = json_number_value(json_array_get(list, i));
    struct nrg_attr attr = {.kind = NRG_A_FLOATS, .fs = fs, .n = n};
    return fs ? constant(scope, nrg_pt2_simple_type(scope->pt2, NRG_T_LIST, NRG_T_FLOAT), &attr)
              : NULL;
}

/* One member of a list: {"name": t}, {"as_tensor": {"name": t}}, {"as_name": s}, {"as_int": 3}. */
static struct nrg_value *member(struct nrg_pt2_scope *scope, const json_t *item)
{
    const char *name = nrg_pt2_arg_name(item);
    if (!name)
        name = json_string_value(json_object_get(item, "name"));
    if (!name)
        name = json_string_value(json_object_get(item, "as_name"));
    if (name)
        return lookup(scope, name);
    const json_t *number = json_object_get(item, "as_int");
    if (!number)
        number = json_object_get(item, "as_float");
    if (!number)
        number = json_object_get(item, "as_bool");
    return number ? scalar(scope, number) : none_constant(scope);
}

static struct nrg_value *value_list(struct nrg_pt2_scope *scope, const json_t *list,
                                    enum nrg_type_kind element)
{
    struct nrg_pt2_list items = {0};
    struct nrg_value *value = NULL;
    char name[32];
    int rc = 0;
    for (size_t i = 0; !rc && i < json_array_size(list); i++)
        rc = nrg_pt2_push(scope, &items, member(scope, json_array_get(list, i)));
    snprintf(name, sizeof name, "list.%zu", scope->pt2->graph->n_values);
    const char *text = rc ? NULL : nrg_pt2_text(scope->pt2, name);
    const struct nrg_type *type = nrg_pt2_simple_type(scope->pt2, NRG_T_LIST, element);
    if (text && type)
        value = nrg_pt2_value(scope, text, type);
    if (value && !nrg_pt2_op(scope, "prim::ListConstruct", items.items, items.n, &value, 1))
        value = NULL;
    free(items.items);
    return value;
}

static struct nrg_value *other(struct nrg_pt2_scope *scope, const char *key, const json_t *v)
{
    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    struct nrg_attr attr = {.kind = NRG_A_OTHER, .s = nrg_pt2_text(scope->pt2, text ? text : key)};
    free(text);
    return attr.s ? constant(scope, nrg_pt2_simple_type(scope->pt2, NRG_T_OTHER, 0), &attr) : NULL;
}

/* Dtypes go by PyTorch's own numbers in TorchScript, so they do here. */
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
        return text_constant(scope, NRG_T_DEVICE, json_string_value(json_object_get(v, "type")));
    if (!strcmp(key, "as_ints") || !strcmp(key, "as_bools"))
        return integer_list(scope, v);
    if (!strcmp(key, "as_floats"))
        return float_list(scope, v);
    if (!strcmp(key, "as_tensors") || !strcmp(key, "as_optional_tensors"))
        return value_list(scope, v, NRG_T_TENSOR);
    if (!strcmp(key, "as_sym_ints") || !strcmp(key, "as_sym_bools"))
        return value_list(scope, v, NRG_T_INT);
    if (!strcmp(key, "as_sym_floats"))
        return value_list(scope, v, NRG_T_FLOAT);
    if (json_is_object(v) && strncmp(key, "as_sym_", 7) == 0)
        return member(scope, v);
    return json_is_object(v) || json_is_array(v) ? other(scope, key, v) : scalar(scope, v);
}

int nrg_pt2_argument(struct nrg_pt2_scope *scope, const json_t *arg, struct nrg_value **value)
{
    const char *name = nrg_pt2_arg_name(arg);
    void *first = json_object_iter((json_t *)arg);
    *value = name    ? lookup(scope, name)
             : first ? from_key(scope, json_object_iter_key(first), json_object_iter_value(first))
                     : none_constant(scope);
    return *value ? 0 : nrg_pt2_no_memory(scope->pt2);
}

int nrg_pt2_operands(struct nrg_pt2_scope *scope, const json_t *arg, struct nrg_pt2_list *list)
{
    static const char *const keys[] = {"as_tensors", "as_optional_tensors", "as_sym_ints"};
    const char *name = nrg_pt2_arg_name(arg);
    int rc = 0;
    if (name)
        return nrg_pt2_push(scope, list, lookup(scope, name));
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const json_t *items = json_object_get(arg, keys[k]);
        for (size_t i = 0; !rc && i < json_array_size(items); i++)
            rc = nrg_pt2_push(scope, list, member(scope, json_array_get(items, i)));
    }
    if (json_object_get(arg, "as_int"))
        rc = nrg_pt2_push(scope, list, scalar(scope, json_object_get(arg, "as_int")));
    return rc;
}

/*
 * Containers and constants. Lists, tuples and dicts are no nodes: they pass their members
 * through, so that an operator which takes a list sees the tensors in it. A list whose members
 * are not known (made in a loop, joined, cut from one tensor by chunk) is `open` and stands for
 * the tensor it was cut from. Dicts keep keys and values side by side.
 *
 * Properties that follow from types (sizes, lengths, is None) become constants, because branches
 * and trip counts depend on them.
 */
#include <errno.h>
#include <string.h>

#include "graph/reduce/internal.h"

/*
 * Frozen graphs hold parameters as constants that keep their names: "self.fc.weight", and
 * "self.conv.weight_fused_bn" where a batch norm was folded in.
 */
static const char *frozen_path(struct nrg_reducer *r, const char *name)
{
    if (strncmp(name, "self.", 5) != 0)
        return NULL;
    const char *fused = strstr(name, "_fused_bn");
    return nrg_reducer_copy(r, name + 5,
                            (size_t)((fused ? fused : name + strlen(name)) - name - 5));
}

void nrg_reduce_constant(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op)
{
    const struct nrg_value *value = op->n_outputs ? op->outputs[0] : NULL;
    const struct nrg_attr *attr = op->n_attrs ? nrg_op_attr(op, "value") : NULL;
    const struct nrg_type *plain = value ? nrg_type_plain(value->type) : NULL;
    struct nrg_data *data = NULL;
    struct nrg_arg *arg = r->none;
    if (!value)
        return;
    if (!attr && op->n_attrs)
        attr = &op->attrs[0];
    if (attr && (plain->kind == NRG_T_TENSOR || attr->kind == NRG_A_TENSOR)) {
        const struct nrg_type *type =
            attr->tensor ? nrg_type_better(value->type, attr->tensor) : value->type;
        const char *path = frozen_path(r, value->name);
        data = path ? nrg_reducer_param(r, path, value->name, type)
                    : nrg_reducer_data(r, NRG_DATA_CONST, value->name, type);
        arg = data ? nrg_reducer_tensor(r, data, type) : NULL;
        if (arg)
            arg->constant = attr;
    } else if (attr && attr->kind != NRG_A_NONE) {
        arg = nrg_reducer_arg(r, NRG_ARG_CONST, value->type);
        if (arg)
            arg->constant = attr;
    }
    nrg_reducer_set(f, value, arg);
    nrg_reducer_drop(r, op, NRG_DROP_CONSTANT, data);
}

static struct nrg_data *some_data(const struct nrg_arg *arg)
{
    struct nrg_data *data =
        arg->kind == NRG_ARG_TENSOR || arg->kind == NRG_ARG_LIST ? arg->data : NULL;
    for (size_t i = 0; !data && arg->kind == NRG_ARG_LIST && i < arg->n_items; i++)
        data = some_data(arg->items[i]);
    return data;
}

/*
 * Every operator that takes a list walks the lists in it, so that a few lines of text could stand
 * for 2^60 members, or for a list that contains itself. Real programs nest little: a list larger
 * than this becomes open, without known members.
 */
#define MAX_NESTED      4096
#define MAX_LATE_ADDING 64

static bool list_contains(const struct nrg_arg *arg, const struct nrg_arg *what)
{
    if (arg == what)
        return true;
    for (size_t i = 0; i < arg->n_items; i++)
        if (arg->items[i] == what || (arg->items[i]->n_items && list_contains(arg->items[i], what)))
            return true;
    return false;
}

/* Counts new members into a list's size; false when they nest too much. */
static bool count_members(struct nrg_arg *list, struct nrg_arg *const *more, size_t n)
{
    uint64_t size = list->size;
    bool nested = false;
    for (size_t i = 0; i < n; i++) {
        bool inner = more[i]->kind == NRG_ARG_LIST || more[i]->n_items;
        size += inner ? 1 + (uint64_t)more[i]->size : 1;
        nested |= inner;
        if (inner && list_contains(more[i], list))
            return false;
    }
    if ((nested || list->is_nested) && size > MAX_NESTED)
        return false;
    list->is_nested |= nested;
    list->size = (uint32_t)(size < UINT32_MAX ? size : UINT32_MAX);
    for (size_t i = 0; i < n; i++)
        if (more[i]->kind == NRG_ARG_LIST)
            more[i]->is_member = true;
    return true;
}

static struct nrg_arg *list_of(struct nrg_reducer *r, const struct nrg_type *type,
                               struct nrg_arg **items, size_t n)
{
    struct nrg_arg *arg = nrg_reducer_arg(r, NRG_ARG_LIST, type);
    if (!arg)
        return NULL;
    if (count_members(arg, items, n)) {
        arg->items = items;
        arg->n_items = n;
        return arg;
    }
    arg->open = true;
    for (size_t i = 0; i < n && !arg->data; i++)
        arg->data = some_data(items[i]);
    return arg;
}

static int make_room(struct nrg_reducer *r, struct nrg_arg *list, size_t n)
{
    if (list->n_items + n <= list->cap_items)
        return 0;
    size_t cap = 2 * (list->n_items + n);
    struct nrg_arg **items = nrg_reducer_alloc(r, cap, sizeof *items);
    if (!items)
        return r->rc;
    if (list->n_items)
        memcpy(items, list->items, list->n_items * sizeof *items);
    list->items = items;
    list->cap_items = cap;
    return 0;
}

/* Adds members to a list in place: all names of it see them, as in the program. */
static void extend_list(struct nrg_reducer *r, struct nrg_arg *list, struct nrg_arg *const *more,
                        size_t n)
{
    if ((list->kind != NRG_ARG_LIST && list->kind != NRG_ARG_OBJECT) || !n)
        return;
    /* How often a loop or a branch does it is not known. */
    list->open |= r->region != 0;
    if ((list->is_member && list->n_items > MAX_LATE_ADDING) || !count_members(list, more, n)) {
        list->open = true;
        return;
    }
    if (make_room(r, list, n))
        return;
    memcpy(list->items + list->n_items, more, n * sizeof *more);
    list->n_items += n;
}

/* A member of which only the list is known. */
static struct nrg_arg *any_member(struct nrg_reducer *r, const struct nrg_arg *list,
                                  const char *name, const struct nrg_type *type)
{
    struct nrg_data *data = some_data(list);
    if (type->kind == NRG_T_UNKNOWN ? !data : !nrg_type_has_tensor(type))
        return nrg_reducer_arg(r, NRG_ARG_UNKNOWN, type);
    /* A list that is filled elsewhere: its members come from somewhere. */
    if (!data)
        data = nrg_reducer_data(r, NRG_DATA_PHI, name, type);
    struct nrg_arg *arg = data ? nrg_reducer_result(r, data, type) : NULL;
    if (arg)
        arg->is_view = true;
    return arg;
}

static void unpack_list(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                        struct nrg_arg *list)
{
    bool exact = list->kind == NRG_ARG_LIST && !list->open && list->n_items == op->n_outputs;
    for (size_t i = 0; i < op->n_outputs; i++) {
        const struct nrg_type *type = op->outputs[i]->type;
        nrg_reducer_set(f, op->outputs[i],
                        exact ? nrg_reducer_typed(r, list->items[i], type)
                              : any_member(r, list, op->outputs[i]->name, type));
    }
}

/* What a dict or an object holds under a key, the last one set; NULL: not known. */
static struct nrg_arg *under_key(struct nrg_reducer *r, const struct nrg_arg *dict, const char *key,
                                 const struct nrg_type *type)
{
    for (size_t i = key ? dict->n_items : 0; i >= 2; i -= 2) {
        const char *have = nrg_arg_text(dict->items[i - 2]);
        if (have && !strcmp(have, key))
            return nrg_reducer_typed(r, dict->items[i - 1], type);
    }
    return NULL;
}

static struct nrg_arg *get_item(struct nrg_reducer *r, const struct nrg_op *op,
                                struct nrg_arg **args)
{
    struct nrg_arg *list = args[0];
    const struct nrg_type *type = op->outputs[0]->type;
    const char *key = op->n_inputs > 1 ? nrg_arg_text(args[1]) : NULL;
    int64_t i;
    struct nrg_arg *found = list->kind == NRG_ARG_LIST ? under_key(r, list, key, type) : NULL;
    if (found)
        return found;
    if (list->kind == NRG_ARG_LIST && !list->open && op->n_inputs > 1 && nrg_arg_int(args[1], &i)) {
        if (i < 0)
            i += (int64_t)list->n_items;
        if (i >= 0 && (size_t)i < list->n_items)
            return nrg_reducer_typed(r, list->items[i], type);
    }
    return any_member(r, list, op->outputs[0]->name, type);
}

/* What container operators do with their arguments. */
enum deed { BUILD, UNPACK, GET, APPEND, SET_ITEM, CREATE, SET_ATTR, PASS, PASS_EACH };

static enum deed deed_of(const char *kind)
{
    static const struct {
        const char *kind;
        enum deed deed;
    } deeds[] = {
        {"prim::ListConstruct", BUILD},
        {"prim::TupleConstruct", BUILD},
        {"prim::DictConstruct", BUILD},
        {"prim::ListUnpack", UNPACK},
        {"prim::TupleUnpack", UNPACK},
        {"prim::TupleIndex", GET},
        {"aten::__getitem__", GET},
        {"aten::get", GET},
        {"aten::pop", GET},
        {"aten::append", APPEND},
        {"aten::insert", SET_ITEM},
        {"aten::_set_item", SET_ITEM},
        {"aten::update", APPEND},
        {"aten::extend", APPEND},
        {"prim::CreateObject", CREATE},
        {"prim::SetAttr", SET_ATTR},
        {"prim::RequiresGradCheck", PASS_EACH},
        {"prim::TypeCheck", PASS_EACH},
    };
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
        if (!strcmp(deeds[i].kind, kind))
            return deeds[i].deed;
    return PASS;
}

/* An object made while running keeps its attributes as a dict does; a module's are parameters. */
static void set_attribute(struct nrg_reducer *r, const struct nrg_op *op, struct nrg_arg **args)
{
    const struct nrg_attr *name = nrg_op_attr(op, "name");
    struct nrg_arg *pair[2] = {nrg_reducer_arg(r, NRG_ARG_CONST, &nrg_type_unknown), NULL};
    if (op->n_inputs < 2 || args[0]->kind != NRG_ARG_OBJECT || args[0]->path || !name || !pair[0])
        return;
    pair[0]->constant = name;
    pair[1] = args[1];
    extend_list(r, args[0], pair, 2);
}

struct nrg_arg *nrg_reduce_attribute(struct nrg_reducer *r, const struct nrg_op *op,
                                     struct nrg_arg *object)
{
    const struct nrg_attr *name = nrg_op_attr(op, "name");
    const struct nrg_value *value = op->outputs[0];
    struct nrg_arg *found = under_key(r, object, name ? name->s : NULL, value->type);
    return found ? found : any_member(r, object, value->name, value->type);
}

static void pass_each(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                      struct nrg_arg **args)
{
    for (size_t i = 0; i < op->n_outputs; i++) {
        const struct nrg_type *type = op->outputs[i]->type;
        nrg_reducer_set(f, op->outputs[i],
                        i < op->n_inputs ? nrg_reducer_typed(r, args[i], type)
                                         : nrg_reducer_arg(r, NRG_ARG_UNKNOWN, type));
    }
}

void nrg_reduce_container(struct nrg_reducer *r, struct nrg_call_frame *f, const struct nrg_op *op,
                          struct nrg_arg **args)
{
    enum deed deed = deed_of(op->kind);
    struct nrg_arg *first = op->n_inputs ? args[0] : r->none, *result = first;
    bool tensors = false;
    for (size_t i = 0; i < op->n_inputs; i++)
        tensors |= nrg_arg_has_tensor(args[i]);
    if (deed == BUILD)
        result = op->n_outputs ? list_of(r, op->outputs[0]->type, args, op->n_inputs) : NULL;
    else if (deed == CREATE && op->n_outputs)
        result = nrg_reducer_arg(r, NRG_ARG_OBJECT, op->outputs[0]->type);
    else if (deed == SET_ATTR)
        set_attribute(r, op, args);
    else if (deed == GET && op->n_outputs)
        result = get_item(r, op, args);
    else if (deed == APPEND && op->n_inputs > 1)
        extend_list(r, first, args + 1, 1);
    else if (deed == SET_ITEM && op->n_inputs > 2)
        extend_list(r, first, args + 1, 2);
    if (deed == UNPACK)
        unpack_list(r, f, op, first);
    else if (deed == PASS_EACH)
        pass_each(r, f, op, args);
    else
        for (size_t i = 0; i < op->n_outputs; i++)
            nrg_reducer_set(f, op->outputs[i], result ? result : r->none);
    nrg_reducer_drop(r, op, tensors || deed == BUILD ? NRG_DROP_CONTAINER : NRG_DROP_NO_TENSOR,
                     NULL);
}

static bool property_value(const struct nrg_op *op, struct nrg_arg *const *args, int64_t *out)
{
    const char *kind = op->kind;
    int64_t i;
    if (!op->n_inputs)
        return false;
    const struct nrg_arg *a = args[0];
    if (!strcmp(kind, "aten::size") && op->n_inputs > 1 && nrg_arg_int(args[1], &i))
        return i > -64 && i < 64 && (*out = nrg_arg_dim(a, (int)i)) >= 0;
    if (!strcmp(kind, "aten::dim"))
        return (*out = nrg_arg_rank(a)) >= 0;
    if (!strcmp(kind, "aten::numel"))
        return a->kind == NRG_ARG_TENSOR && (*out = nrg_arg_numel(a)) >= 0;
    if (!strcmp(kind, "aten::len") && a->kind == NRG_ARG_LIST && !a->open)
        return (*out = (int64_t)a->n_items) >= 0;
    if (!strcmp(kind, "prim::NumToTensor") || !strcmp(kind, "aten::Int") ||
        !strcmp(kind, "aten::Bool") || !strcmp(kind, "aten::IntImplicit"))
        return a->kind == NRG_ARG_CONST && nrg_arg_int(a, out);
    if (!strcmp(kind, "aten::__not__") && nrg_arg_int(a, &i)) {
        *out = !i;
        return true;
    }
    bool is = !strcmp(kind, "aten::__is__");
    if ((is || !strcmp(kind, "aten::__isnot__")) && op->n_inputs > 1 &&
        args[1]->kind == NRG_ARG_NONE) {
        bool none = a->kind == NRG_ARG_NONE;
        *out = none == is;
        return none || (a->kind == NRG_ARG_TENSOR && a->type->kind == NRG_T_TENSOR);
    }
    return false;
}

struct nrg_arg *nrg_reduce_property(struct nrg_reducer *r, const struct nrg_op *op,
                                    struct nrg_arg *const *args, const struct nrg_type *type)
{
    int64_t number;
    return op->n_outputs == 1 && property_value(op, args, &number)
               ? nrg_reducer_int(r, number, type)
               : nrg_reducer_arg(r, NRG_ARG_UNKNOWN, type);
}

/*
 * See internal.h: AttributeProto and the key-value pairs of metadata. The `type` field is
 * missing in files of IR version 1; then the field that is present gives the kind. Subgraphs become
 * blocks of the operator, not attributes, so that every pass that walks blocks sees them. Inside a
 * function an attribute may refer to one of the call (ref_attr_name), or for its default.
 */
#include <errno.h>
#include <string.h>

#include "graph/onnx/internal.h"

enum {
    A_NAME = 1,
    A_FLOAT = 2,
    A_INT = 3,
    A_STRING = 4,
    A_TENSOR = 5,
    A_GRAPH = 6,
    A_FLOATS = 7,
    A_INTS = 8,
    A_STRINGS = 9,
    A_REF = 21,
    A_SPARSE = 22
};
enum { NODE_ATTRIBUTE = 5, FUNCTION_DEFAULTS = 11 };

bool onnx_metadata(struct nrg_pb msg, uint32_t number, const char *key, struct nrg_pb_field *out)
{
    struct nrg_pb_field field;
    while (nrg_pb_next(&msg, &field) > 0) {
        struct nrg_pb_field name = onnx_text_field(nrg_pb_inside(&field), 1);
        if (field.number == number && onnx_text_is(&name, key))
            return nrg_pb_find(nrg_pb_inside(&field), 2, out) && out->wire == NRG_PB_BYTES;
    }
    return false;
}

/* A_INTS or A_FLOATS: counted first, then read. */
static int read_numbers(struct onnx *x, struct nrg_pb msg, uint32_t number, struct nrg_attr *attr)
{
    bool real = number == A_FLOATS;
    const struct nrg_pb_numbers start = {.msg = msg, .number = number, .element = real ? 4 : 0};
    struct nrg_pb_numbers list = start;
    uint64_t bits;
    size_t n = 0;
    while (nrg_pb_number(&list, &bits) > 0)
        n++;
    if (list.run.why)
        return onnx_fail(x, msg.at, "a list of %s is broken", real ? "floats" : "integers");
    int64_t *is = real ? NULL : nrg_arena_array(&x->model->arena, n + 1, sizeof *is);
    double *fs = real ? nrg_arena_array(&x->model->arena, n + 1, sizeof *fs) : NULL;
    if (!is && !fs)
        return onnx_no_memory(x);
    attr->kind = real ? NRG_A_FLOATS : NRG_A_INTS;
    attr->is = is;
    attr->fs = fs;
    attr->n = 0;
    for (list = start; nrg_pb_number(&list, &bits) > 0; attr->n++)
        if (real)
            fs[attr->n] = nrg_pb_float(bits);
        else
            is[attr->n] = (int64_t)bits;
    return 0;
}

static int read_strings(struct onnx *x, struct nrg_pb msg, struct nrg_attr *attr)
{
    size_t n = nrg_pb_count(msg, A_STRINGS);
    const char **ss = nrg_arena_array(&x->model->arena, n + 1, sizeof(char *));
    struct nrg_pb_field field;
    if (!ss)
        return onnx_no_memory(x);
    attr->kind = NRG_A_STRINGS;
    attr->ss = ss;
    attr->n = 0;
    while (nrg_pb_next(&msg, &field) > 0)
        if (field.number == A_STRINGS && !(ss[attr->n++] = onnx_text(x, &field)))
            return onnx_no_memory(x);
    return 0;
}

static int read_tensor(struct onnx *x, const struct nrg_pb_field *field, struct nrg_attr *attr)
{
    struct onnx_tensor tensor;
    int rc = field->number == A_SPARSE ? onnx_sparse_tensor(x, nrg_pb_inside(field), &tensor)
                                       : onnx_tensor(x, nrg_pb_inside(field), &tensor);
    if (rc)
        return rc;
    attr->kind = NRG_A_TENSOR;
    attr->tensor = tensor.type;
    if (tensor.known) {
        attr->n = tensor.known->n;
        attr->is = tensor.known->i;
        attr->fs = tensor.known->f;
    }
    return 0;
}

/* A list is read at its first field, and only one list: without a type, the first. */
static bool is_list(const struct nrg_attr *attr)
{
    return attr->kind == NRG_A_FLOATS || attr->kind == NRG_A_INTS || attr->kind == NRG_A_STRINGS;
}

/* The value in field `number`: what kind of attribute it is follows from the field. */
static int read_value(struct onnx *x, struct nrg_pb msg, const struct nrg_pb_field *field,
                      struct nrg_attr *attr)
{
    switch (field->number) {
    case A_FLOAT:
        attr->kind = NRG_A_FLOAT;
        attr->f = nrg_pb_float(field->value);
        return 0;
    case A_INT:
        attr->kind = NRG_A_INT;
        attr->i = (int64_t)field->value;
        return 0;
    case A_STRING:
        attr->kind = NRG_A_STRING;
        return (attr->s = onnx_text(x, field)) ? 0 : onnx_no_memory(x);
    case A_TENSOR:
    case A_SPARSE:
        return read_tensor(x, field, attr);
    case A_FLOATS:
    case A_INTS:
        return is_list(attr) ? 0 : read_numbers(x, msg, field->number, attr);
    case A_STRINGS:
        return is_list(attr) ? 0 : read_strings(x, msg, attr);
    default:
        return 0;
    }
}

/* By `type` (field 20): the field that holds the value, and the kind that it becomes. */
static const struct {
    uint32_t field;
    enum nrg_attr_kind kind;
} types[] = {
    {0, NRG_A_NONE},          {A_FLOAT, NRG_A_FLOAT}, {A_INT, NRG_A_INT},
    {A_STRING, NRG_A_STRING}, {A_TENSOR, NRG_A_NONE}, {A_GRAPH, NRG_A_NONE},
    {A_FLOATS, NRG_A_FLOATS}, {A_INTS, NRG_A_INTS},   {A_STRINGS, NRG_A_STRINGS},
};

/* 0 when the file does not say: then every field counts. */
static size_t type_of(struct nrg_pb msg)
{
    struct nrg_pb_field type;
    bool told = nrg_pb_find(msg, 20, &type) && type.value < sizeof types / sizeof *types;
    return told ? (size_t)type.value : 0;
}

/* The call's attribute of that name under our own name; else the function's default. */
static int copy_referred(struct onnx *x, const struct nrg_pb_field *ref, struct nrg_attr *attr)
{
    const char *name = attr->name, *wanted = onnx_shared(x, ref);
    if (!wanted)
        return onnx_no_memory(x);
    const struct nrg_attr *given = x->call ? nrg_op_attr(x->call, wanted) : NULL;
    if (given) {
        *attr = *given;
        attr->name = name;
    }
    return 0;
}

/* Zero and the empty list need not be written: then only `type` shows that they are there. */
static void zero_value(struct nrg_attr *attr, enum nrg_attr_kind kind)
{
    static const int64_t no_ints[1];
    static const double no_floats[1];
    static const char *const no_strings[1];
    attr->s = "";
    attr->is = no_ints;
    attr->fs = no_floats;
    attr->ss = no_strings;
    attr->kind = kind;
}

static int read_attribute(struct onnx *x, struct nrg_pb msg, struct nrg_op *op,
                          struct nrg_attr *attr)
{
    struct nrg_pb_field field, name;
    size_t type = type_of(msg);
    uint32_t only = types[type].field;
    int rc;
    *attr = (struct nrg_attr){.name = "", .kind = NRG_A_NONE};
    if (nrg_pb_find(msg, A_NAME, &name) && !(attr->name = onnx_shared(x, &name)))
        return onnx_no_memory(x);
    bool is_else = !strcmp(attr->name, "else_branch");
    struct nrg_pb rest = msg;
    while ((rc = nrg_pb_next(&rest, &field)) > 0) {
        if (field.number == A_REF && (rc = copy_referred(x, &field, attr)))
            return rc;
        bool graph = field.number == A_GRAPH && field.wire == NRG_PB_BYTES && op->blocks;
        if (graph && (!only || only == A_GRAPH)) {
            struct nrg_block **at = &op->blocks[op->n_blocks++];
            if (op->n_blocks == 2 && !is_else)
                *at = op->blocks[0], at = &op->blocks[0];
            if ((rc = onnx_graph(x, nrg_pb_inside(&field), op, at)))
                return rc;
        } else if ((!only || field.number == only) && (rc = read_value(x, msg, &field, attr))) {
            return rc;
        }
    }
    if (attr->kind == NRG_A_NONE && !nrg_pb_find(msg, A_REF, &field))
        zero_value(attr, types[type].kind);
    return rc < 0 ? onnx_broken(x, &rest) : 0;
}

static size_t graphs_in(struct nrg_pb node)
{
    struct nrg_pb_field field;
    size_t n = 0;
    while (nrg_pb_next(&node, &field) > 0)
        if (field.number == NODE_ATTRIBUTE)
            n += nrg_pb_count(nrg_pb_inside(&field), A_GRAPH);
    return n;
}

/* Defaults that the function declares and the call does not give. */
static int read_defaults(struct onnx *x, struct nrg_pb function, struct nrg_op *op,
                         struct nrg_attr *attrs)
{
    struct nrg_pb_field field;
    int rc;
    while (attrs && nrg_pb_next(&function, &field) > 0) {
        struct nrg_attr attr;
        if (field.number != FUNCTION_DEFAULTS || nrg_pb_count(nrg_pb_inside(&field), A_GRAPH))
            continue;
        if ((rc = read_attribute(x, nrg_pb_inside(&field), op, &attr)))
            return rc;
        if (!nrg_op_attr(op, attr.name))
            attrs[op->n_attrs++] = attr;
    }
    return 0;
}

int onnx_attributes(struct onnx *x, struct nrg_pb node, struct nrg_op *op)
{
    const struct onnx_function *function = onnx_find_function(x, node);
    size_t n = nrg_pb_count(node, NODE_ATTRIBUTE), n_graphs = graphs_in(node);
    if (function)
        n += nrg_pb_count(function->msg, FUNCTION_DEFAULTS);
    struct nrg_attr *attrs = n ? nrg_arena_array(&x->model->arena, n, sizeof *attrs) : NULL;
    op->blocks = n_graphs ? nrg_arena_array(&x->model->arena, n_graphs, sizeof *op->blocks) : NULL;
    struct nrg_pb_field field;
    int rc;
    if ((n && !attrs) || (n_graphs && !op->blocks))
        return onnx_no_memory(x);
    op->attrs = attrs;
    while ((rc = nrg_pb_next(&node, &field)) > 0) {
        size_t blocks = op->n_blocks;
        if (field.number != NODE_ATTRIBUTE || !attrs)
            continue;
        if ((rc = read_attribute(x, nrg_pb_inside(&field), op, &attrs[op->n_attrs])))
            return rc;
        op->n_attrs += op->n_blocks == blocks && attrs[op->n_attrs].kind != NRG_A_NONE;
    }
    return rc < 0     ? onnx_broken(x, &node)
           : function ? read_defaults(x, function->msg, op, attrs)
                      : 0;
}

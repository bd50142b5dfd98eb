/*
 * See onnx.h: AttributeProto and the key-value pairs of metadata. The `type` field is missing in
 * files of IR version 1; then the field that is there tells the kind. Subgraphs become blocks of
 * the operator, not attributes, so that every pass that walks blocks sees them. Inside a
 * function an attribute may stand for one of the call (ref_attr_name), or for its default.
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
    struct nrg_pb_field field, name;
    size_t len = strlen(key);
    while (nrg_pb_next(&msg, &field) > 0)
        if (field.number == number && nrg_pb_find(nrg_pb_inside(&field), 1, &name) &&
            name.wire == NRG_PB_BYTES && name.size == len && !memcmp(name.bytes, key, len))
            return nrg_pb_find(nrg_pb_inside(&field), 2, out) && out->wire == NRG_PB_BYTES;
    return false;
}

static int64_t count(struct nrg_pb msg, uint32_t number, size_t element)
{
    struct nrg_pb_field field;
    int64_t n = 0;
    while (nrg_pb_next(&msg, &field) > 0)
        if (field.number == number) {
            int64_t more = nrg_pb_elements(&field, element);
            if (more < 0)
                return more;
            n += more;
        }
    return n;
}

static int ints(struct onnx *x, struct nrg_pb msg, struct nrg_attr *attr)
{
    int64_t n = count(msg, A_INTS, 0);
    int64_t *is = n < 0 ? NULL : nrg_arena_array(&x->model->arena, (size_t)n + 1, sizeof *is);
    struct nrg_pb_field field;
    if (!is)
        return n < 0 ? onnx_fail(x, msg.at, "a list of integers is broken") : onnx_no_memory(x);
    attr->kind = NRG_A_INTS;
    attr->is = is;
    while (nrg_pb_next(&msg, &field) > 0) {
        struct nrg_pb run = nrg_pb_inside(&field);
        uint64_t value;
        if (field.number != A_INTS)
            continue;
        if (field.wire != NRG_PB_BYTES)
            is[attr->n++] = (int64_t)field.value;
        else
            while (attr->n < (size_t)n && nrg_pb_varint(&run, &value) > 0)
                is[attr->n++] = (int64_t)value;
    }
    return 0;
}

static int floats(struct onnx *x, struct nrg_pb msg, struct nrg_attr *attr)
{
    int64_t n = count(msg, A_FLOATS, 4);
    double *fs = n < 0 ? NULL : nrg_arena_array(&x->model->arena, (size_t)n + 1, sizeof *fs);
    struct nrg_pb_field field;
    if (!fs)
        return n < 0 ? onnx_fail(x, msg.at, "a list of floats is broken") : onnx_no_memory(x);
    attr->kind = NRG_A_FLOATS;
    attr->fs = fs;
    while (nrg_pb_next(&msg, &field) > 0) {
        if (field.number != A_FLOATS)
            continue;
        if (field.wire != NRG_PB_BYTES)
            fs[attr->n++] = nrg_pb_float(field.value);
        for (size_t at = 0; field.wire == NRG_PB_BYTES && at < field.size; at += 4)
            fs[attr->n++] = nrg_pb_float(field.bytes[at] | (uint64_t)field.bytes[at + 1] << 8 |
                                         (uint64_t)field.bytes[at + 2] << 16 |
                                         (uint64_t)field.bytes[at + 3] << 24);
    }
    return 0;
}

static int strings(struct onnx *x, struct nrg_pb msg, struct nrg_attr *attr)
{
    size_t n = nrg_pb_count(msg, A_STRINGS);
    const char **ss = nrg_arena_array(&x->model->arena, n + 1, sizeof(char *));
    struct nrg_pb_field field;
    if (!ss)
        return onnx_no_memory(x);
    attr->kind = NRG_A_STRINGS;
    attr->ss = ss;
    while (nrg_pb_next(&msg, &field) > 0)
        if (field.number == A_STRINGS && !(ss[attr->n++] = onnx_text(x, &field)))
            return onnx_no_memory(x);
    return 0;
}

static int tensor(struct onnx *x, const struct nrg_pb_field *field, struct nrg_attr *attr)
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

/* The value in field `number`: what kind of attribute it is follows from the field. */
static int value_of(struct onnx *x, struct nrg_pb msg, const struct nrg_pb_field *field,
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
        return tensor(x, field, attr);
    case A_FLOATS:
        return attr->kind == NRG_A_FLOATS ? 0 : floats(x, msg, attr);
    case A_INTS:
        return attr->kind == NRG_A_INTS ? 0 : ints(x, msg, attr);
    case A_STRINGS:
        return attr->kind == NRG_A_STRINGS ? 0 : strings(x, msg, attr);
    default:
        return 0;
    }
}

/* Which field holds the value when several are there: the one that `type` (field 20) names. */
static uint32_t field_of(struct nrg_pb msg)
{
    static const uint32_t of_type[] = {0,       A_FLOAT,  A_INT,  A_STRING, A_TENSOR,
                                       A_GRAPH, A_FLOATS, A_INTS, A_STRINGS};
    struct nrg_pb_field type;
    return nrg_pb_find(msg, 20, &type) && type.value < sizeof of_type / sizeof *of_type
               ? of_type[type.value]
               : 0;
}

/* The call's attribute of that name under our own name; else the function's default. */
static int referred(struct onnx *x, const struct nrg_pb_field *ref, struct nrg_attr *attr)
{
    const char *name = attr->name, *wanted = onnx_shared(x, ref);
    if (!wanted)
        return onnx_no_memory(x);
    const struct nrg_attr *given = x->call ? nrg_op_attr(x->call->op, wanted) : NULL;
    if (given) {
        *attr = *given;
        attr->name = name;
    }
    return 0;
}

/* Zero and the empty list need not be written: then only `type` tells that they are there. */
static void zero_value(struct nrg_attr *attr, uint32_t number)
{
    static const int64_t no_ints[1];
    static const double no_floats[1];
    static const char *const no_strings[1];
    attr->s = "";
    attr->is = no_ints;
    attr->fs = no_floats;
    attr->ss = no_strings;
    attr->kind = number == A_FLOAT     ? NRG_A_FLOAT
                 : number == A_INT     ? NRG_A_INT
                 : number == A_STRING  ? NRG_A_STRING
                 : number == A_FLOATS  ? NRG_A_FLOATS
                 : number == A_INTS    ? NRG_A_INTS
                 : number == A_STRINGS ? NRG_A_STRINGS
                                       : NRG_A_NONE;
}

static int attribute(struct onnx *x, struct nrg_pb msg, struct nrg_op *op, struct nrg_attr *attr)
{
    struct nrg_pb_field field, name;
    uint32_t only = field_of(msg);
    bool is_else = false;
    int rc;
    *attr = (struct nrg_attr){.name = "", .kind = NRG_A_NONE};
    if (nrg_pb_find(msg, A_NAME, &name) && !(attr->name = onnx_shared(x, &name)))
        return onnx_no_memory(x);
    is_else = !strcmp(attr->name, "else_branch");
    struct nrg_pb rest = msg;
    while ((rc = nrg_pb_next(&rest, &field)) > 0) {
        if (field.number == A_REF && (rc = referred(x, &field, attr)))
            return rc;
        bool graph = field.number == A_GRAPH && field.wire == NRG_PB_BYTES && op->blocks;
        if (graph && (!only || only == A_GRAPH)) {
            struct nrg_block **at = &op->blocks[op->n_blocks++];
            if (op->n_blocks == 2 && !is_else)
                *at = op->blocks[0], at = &op->blocks[0];
            if ((rc = onnx_graph(x, nrg_pb_inside(&field), op, at)))
                return rc;
        } else if ((!only || field.number == only) && (rc = value_of(x, msg, &field, attr))) {
            return rc;
        }
    }
    if (attr->kind == NRG_A_NONE && !nrg_pb_find(msg, A_REF, &field))
        zero_value(attr, only);
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
static int defaults(struct onnx *x, struct nrg_pb function, struct nrg_op *op,
                    struct nrg_attr *attrs)
{
    struct nrg_pb_field field;
    int rc;
    while (attrs && nrg_pb_next(&function, &field) > 0) {
        struct nrg_attr attr;
        if (field.number != FUNCTION_DEFAULTS || nrg_pb_count(nrg_pb_inside(&field), A_GRAPH))
            continue;
        if ((rc = attribute(x, nrg_pb_inside(&field), op, &attr)))
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
        if ((rc = attribute(x, nrg_pb_inside(&field), op, &attrs[op->n_attrs])))
            return rc;
        op->n_attrs += op->n_blocks == blocks && attrs[op->n_attrs].kind != NRG_A_NONE;
    }
    return rc < 0 ? onnx_broken(x, &node) : function ? defaults(x, function->msg, op, attrs) : 0;
}

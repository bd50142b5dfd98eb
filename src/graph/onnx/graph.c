/*
 * See internal.h: GraphProto and NodeProto. A graph is read in two passes over its nodes: the
 * first makes a value for every output, the second looks up the inputs, so that the order of nodes
 * in the file does not matter (the standard demands one, tools break it). A name that nothing
 * makes, or that two nodes make, is an error. Subgraphs see the names around them; bodies of
 * functions see only their own inputs. An input left out ("") is one shared value of type None, so
 * that the others keep their positions; an output left out is a None value of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/onnx/internal.h"

enum { G_NODE = 1, G_INITIALIZER = 5, G_INPUT = 11, G_OUTPUT = 12, G_INFO = 13, G_SPARSE = 15 };
enum { N_INPUT = 1, N_OUTPUT = 2, N_NAME = 3, N_OP_TYPE = 4, N_DOMAIN = 7 };

struct pending {
    struct nrg_pb msg;
    struct nrg_op *op;
};

static const struct nrg_type none_type = {.kind = NRG_T_NONE, .rank = -1, .requires_grad = -1};

const char *onnx_op_name(const struct nrg_op *op)
{
    return op->label && op->label[0] ? op->label : op->n_outputs ? op->outputs[0]->name : op->kind;
}

struct nrg_value *onnx_new_value(struct onnx *x, const char *name, const struct nrg_type *type)
{
    struct nrg_value *value = nrg_arena_alloc(&x->model->arena, sizeof *value);
    if (!value || !name || x->graph->n_values >= UINT32_MAX) {
        onnx_no_memory(x);
        return NULL;
    }
    *value = (struct nrg_value){name, type, NULL, (uint32_t)x->graph->n_values++};
    return value;
}

struct nrg_value *onnx_new_named(struct onnx *x, const struct nrg_pb_field *name,
                                 const struct nrg_type *type)
{
    struct nrg_value *value = onnx_new_value(x, onnx_text(x, name), type);
    return value && !onnx_map_add(x, &x->values, name->bytes, name->size, value) ? value : NULL;
}

int onnx_each_op(struct nrg_block *block, int (*visit)(void *arg, struct nrg_op *op), void *arg)
{
    int rc = 0;
    for (size_t i = 0; i < block->n_ops && !rc; i++) {
        struct nrg_op *op = block->ops[i];
        rc = visit(arg, op);
        for (size_t b = 0; b < op->n_blocks && !rc; b++)
            rc = onnx_each_op(op->blocks[b], visit, arg);
    }
    return rc;
}

int onnx_set_known(struct onnx *x, const struct nrg_value *value, struct onnx_known *known)
{
    size_t before = x->cap_known;
    if (nrg_reserve(&x->known, &x->cap_known, (size_t)value->id + 1, sizeof *x->known))
        return onnx_no_memory(x);
    if (x->cap_known > before)
        memset(x->known + before, 0, (x->cap_known - before) * sizeof *x->known);
    x->known[value->id] = known;
    return 0;
}

struct onnx_known *onnx_get_known(const struct onnx *x, const struct nrg_value *value)
{
    return value->id < x->cap_known ? x->known[value->id] : NULL;
}

int onnx_add_op(struct onnx *x, struct onnx_ops *list, struct nrg_op *op)
{
    int rc = nrg_append(&list->ops, &list->n, &list->cap, &op, sizeof op);
    return rc ? onnx_no_memory(x) : 0;
}

/* Inside a function its outputs are already there: the values of the call. */
static bool is_call_output(const struct onnx *x, const struct nrg_value *value)
{
    for (size_t i = 0; x->call && i < x->call->n_outputs; i++)
        if (x->call->outputs[i] == value)
            return !value->producer;
    return false;
}

static int define_output(struct onnx *x, const struct nrg_pb_field *name, struct nrg_op *op,
                         struct nrg_value **out)
{
    struct nrg_value *value = onnx_map_here(&x->values, name->bytes, name->size);
    if (name->wire != NRG_PB_BYTES)
        return onnx_fail(x, NULL, "a node's output is not a text: not ONNX");
    if (!name->size)
        value = onnx_new_value(x, "", &none_type);
    else if (value && !is_call_output(x, value))
        return onnx_fail(x, name->bytes, "'%s' is made twice", value->name);
    else if (!value)
        value = onnx_new_named(x, name, x->unknown);
    if (!value)
        return -ENOMEM;
    value->producer = op;
    *out = value;
    return 0;
}

/* "onnx::Conv"; operators of another domain keep it: "com.microsoft::Attention". */
static const char *kind_of(struct onnx *x, struct nrg_pb node)
{
    struct nrg_pb_field domain = onnx_text_field(node, N_DOMAIN);
    struct nrg_pb_field type = onnx_text_field(node, N_OP_TYPE);
    char text[256] = "onnx", name[128];
    if (!onnx_is_default_domain(&domain))
        nrg_copy_clean(text, 120, (const char *)domain.bytes, domain.size);
    nrg_copy_clean(name, sizeof name, (const char *)type.bytes, type.size);
    strcat(strcat(text, "::"), name);
    struct nrg_pb_field all = {
        .wire = NRG_PB_BYTES, .bytes = (uint8_t *)text, .size = strlen(text)};
    const char *known = onnx_map_get(&x->texts, all.bytes, all.size);
    if (known)
        return known;
    all.bytes = (uint8_t *)nrg_arena_copy(&x->model->arena, text, all.size);
    return all.bytes ? onnx_shared(x, &all) : NULL;
}

static int define_node(struct onnx *x, struct nrg_pb msg, struct nrg_block *block,
                       struct nrg_op **out)
{
    size_t n_in = nrg_pb_count(msg, N_INPUT), n_out = nrg_pb_count(msg, N_OUTPUT);
    struct nrg_op *op = nrg_arena_alloc(&x->model->arena, sizeof *op);
    struct nrg_pb_field field;
    int rc;
    if (!op || !(op->kind = kind_of(x, msg)))
        return onnx_no_memory(x);
    op->parent = block;
    op->inputs = nrg_arena_array(&x->model->arena, n_in + n_out, sizeof(struct nrg_value *));
    op->outputs = op->inputs ? op->inputs + n_in : NULL;
    if (!op->inputs && n_in + n_out)
        return onnx_no_memory(x);
    while ((rc = nrg_pb_next(&msg, &field)) > 0) {
        rc = 0;
        if (field.number == N_OUTPUT && op->outputs)
            rc = define_output(x, &field, op, &op->outputs[op->n_outputs++]);
        else if (field.number == N_NAME && !(op->label = onnx_text(x, &field)))
            rc = onnx_no_memory(x);
        if (rc)
            return rc;
    }
    *out = op;
    return rc < 0 ? onnx_broken(x, &msg) : 0;
}

static int look_up_inputs(struct onnx *x, struct nrg_pb msg, struct nrg_op *op)
{
    struct nrg_pb_field field;
    while (nrg_pb_next(&msg, &field) > 0) {
        if (field.number != N_INPUT || !op->inputs)
            continue;
        if (field.wire != NRG_PB_BYTES)
            return onnx_fail(x, msg.at, "a node's input is not a text: not ONNX");
        struct nrg_value *value =
            field.size ? onnx_map_get(&x->values, field.bytes, field.size) : x->absent;
        if (!value) {
            const char *name = onnx_text(x, &field);
            return onnx_fail(x, field.bytes, "node '%s' reads '%s', which nothing makes",
                             onnx_op_name(op), name ? name : "?");
        }
        op->inputs[op->n_inputs++] = value;
    }
    return 0;
}

static int complete_node(struct onnx *x, struct pending *node, struct onnx_ops *ops)
{
    struct nrg_op *op = node->op;
    const struct onnx_function *function = onnx_find_function(x, node->msg);
    int rc = look_up_inputs(x, node->msg, op);
    if (!rc)
        rc = onnx_attributes(x, node->msg, op);
    if (!rc)
        rc = onnx_scopes(x, node->msg, op);
    if (rc)
        return rc;
    return function ? onnx_expand(x, function, op, op->parent, ops) : onnx_add_op(x, ops, op);
}

int onnx_nodes(struct onnx *x, struct nrg_pb msg, uint32_t number, struct nrg_block *block,
               struct onnx_ops *ops)
{
    size_t n = nrg_pb_count(msg, number), made = 0;
    struct pending *nodes = nrg_calloc(n + 1, sizeof *nodes);
    struct nrg_pb_field field;
    int rc = 0;
    if (!nodes)
        return onnx_no_memory(x);
    while (!rc && made < n && nrg_pb_next(&msg, &field) > 0)
        if (field.number == number) {
            nodes[made].msg = nrg_pb_inside(&field);
            rc = define_node(x, nodes[made].msg, block, &nodes[made].op);
            made++;
        }
    for (size_t i = 0; !rc && i < made; i++)
        rc = complete_node(x, &nodes[i], ops);
    free(nodes);
    return rc;
}

static int add_param(struct onnx *x, const struct onnx_tensor *tensor, const char *name)
{
    struct nrg_param param = {.name = name,
                              .type = tensor->type,
                              .trainable = -1,
                              .storage = name,
                              .bytes = tensor->bytes};
    return nrg_model_add_param(x->model, &param) ? onnx_no_memory(x) : 0;
}

static int add_initializer(struct onnx *x, const struct nrg_pb_field *field)
{
    struct onnx_tensor tensor;
    struct nrg_pb msg = nrg_pb_inside(field);
    int rc = field->number == G_SPARSE ? onnx_sparse_tensor(x, msg, &tensor)
                                       : onnx_tensor(x, msg, &tensor);
    if (rc)
        return rc;
    if (onnx_map_here(&x->values, tensor.name.bytes, tensor.name.size))
        return onnx_fail(x, tensor.name.bytes, "two initializers have the name '%.*s'",
                         (int)(tensor.name.size > 80 ? 80 : tensor.name.size), tensor.name.bytes);
    struct nrg_value *value = onnx_new_named(x, &tensor.name, tensor.type);
    if (!value)
        return -ENOMEM;
    rc = tensor.known ? onnx_set_known(x, value, tensor.known) : 0;
    return rc ? rc : add_param(x, &tensor, value->name);
}

/* Inputs that an initializer gives a value (all of them in IR version 3) are no inputs. */
static int add_input(struct onnx *x, struct nrg_pb msg, struct nrg_block *block)
{
    const struct nrg_type *type;
    struct nrg_pb_field name;
    int rc = onnx_value_info(x, msg, &name, &type);
    if (rc || onnx_map_here(&x->values, name.bytes, name.size))
        return rc;
    struct nrg_value *value = onnx_new_named(x, &name, type);
    if (!value)
        return -ENOMEM;
    block->inputs[block->n_inputs++] = value;
    return 0;
}

/* Outputs and value_info declare types; an output also says that the value leaves the graph. */
static int declare_type(struct onnx *x, const struct nrg_pb_field *field, struct nrg_block *block)
{
    const struct nrg_type *type;
    struct nrg_pb_field name;
    int rc = onnx_value_info(x, nrg_pb_inside(field), &name, &type);
    if (rc)
        return rc;
    struct nrg_value *value = onnx_map_get(&x->values, name.bytes, name.size);
    if (value && value->producer && type != x->unknown)
        value->type = type;
    if (field->number != G_OUTPUT)
        return 0;
    if (!value)
        return onnx_fail(x, name.bytes, "the graph's output '%.*s' is made by nothing",
                         (int)(name.size > 80 ? 80 : name.size), name.bytes);
    block->outputs[block->n_outputs++] = value;
    return 0;
}

static int each_field(struct onnx *x, struct nrg_pb msg, struct nrg_block *block, unsigned pass)
{
    struct nrg_pb_field field;
    int rc;
    while ((rc = nrg_pb_next(&msg, &field)) > 0) {
        uint32_t n = field.number;
        rc = 0;
        if (pass == 0 && (n == G_INITIALIZER || n == G_SPARSE))
            rc = add_initializer(x, &field);
        else if (pass == 1 && n == G_INPUT)
            rc = add_input(x, nrg_pb_inside(&field), block);
        else if (pass == 2 && (n == G_OUTPUT || n == G_INFO))
            rc = declare_type(x, &field, block);
        if (rc)
            return rc;
    }
    return rc < 0 ? onnx_broken(x, &msg) : 0;
}

static int read_contents(struct onnx *x, struct nrg_pb msg, struct nrg_block *block)
{
    struct onnx_ops ops = {0};
    int rc = each_field(x, msg, block, 0);
    if (!rc)
        rc = each_field(x, msg, block, 1);
    if (!rc)
        rc = onnx_nodes(x, msg, G_NODE, block, &ops);
    if (!rc)
        rc = each_field(x, msg, block, 2);
    if (!rc && ops.n) {
        block->ops = nrg_arena_array(&x->model->arena, ops.n, sizeof(struct nrg_op *));
        if (block->ops)
            memcpy(block->ops, ops.ops, ops.n * sizeof(struct nrg_op *));
        block->n_ops = block->ops ? ops.n : 0;
        rc = block->ops ? onnx_order(x, block) : onnx_no_memory(x);
    }
    free(ops.ops);
    return rc;
}

int onnx_graph(struct onnx *x, struct nrg_pb msg, struct nrg_op *owner, struct nrg_block **out)
{
    struct nrg_block *block = nrg_arena_alloc(&x->model->arena, sizeof *block);
    size_t n_in = nrg_pb_count(msg, G_INPUT), n_out = nrg_pb_count(msg, G_OUTPUT);
    if (!block)
        return onnx_no_memory(x);
    block->owner = owner;
    block->inputs = nrg_arena_array(&x->model->arena, n_in + 1, sizeof(struct nrg_value *));
    block->outputs = nrg_arena_array(&x->model->arena, n_out + 1, sizeof(struct nrg_value *));
    if (!block->inputs || !block->outputs)
        return onnx_no_memory(x);
    if (++x->depth > ONNX_MAX_DEPTH)
        return onnx_fail(x, msg.at, "graphs are nested deeper than %d", ONNX_MAX_DEPTH);
    *out = block;
    onnx_map_enter(&x->values);
    int rc = read_contents(x, msg, block);
    onnx_map_leave(&x->values);
    x->depth--;
    return rc;
}

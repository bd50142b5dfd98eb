/*
 * The ONNX reader: structure, names, order, parameters, and what it refuses. Files are built field
 * by field (support/onnx_build.h); shapes and costs are in test_onnx_shapes.c.
 */
#include <errno.h>
#include <string.h>

#include "support/cmocka.h"

#include "graph/onnx/protobuf.h"
#include "graph/reduce.h"
#include "support/onnx_build.h"
#include "support/tree.h"

static void assert_refused(struct nrg_str *file, int code, const char *reason)
{
    struct nrg_model model;
    struct nrg_error err = {0};
    int rc = read_onnx(file, "bad.onnx", &model, &err);
    if (!rc)
        nrg_model_release(&model);
    assert_int_equal(rc, code);
    if (!strstr(err.what, reason))
        fail_msg("'%s' does not say '%s'", err.what, reason);
}

static struct nrg_model read_good(struct nrg_str *file)
{
    struct nrg_model model;
    struct nrg_error err = {0};
    if (read_onnx(file, "good.onnx", &model, &err))
        fail_msg("%s", err.what);
    return model;
}

/* ---- the wire ---- */

static int walk(const char *bytes, size_t n, const char **why)
{
    struct nrg_pb msg = nrg_pb_of(bytes, n);
    struct nrg_pb_field field;
    int rc;
    while ((rc = nrg_pb_next(&msg, &field)) > 0)
        ;
    *why = msg.why;
    return rc;
}

static void wire_reads_all_four_types(void **state)
{
    static const char bytes[] = "\x08\x96\x01"                                  /* 1: 150 */
                                "\x15\x00\x00\x80\x3f"                          /* 2: 1.0f */
                                "\x19\0\0\0\0\0\0\xf0\x3f"                      /* 3: 1.0 */
                                "\x22\x02hi"                                    /* 4: "hi" */
                                "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"; /* 1: -1 */
    struct nrg_pb msg = nrg_pb_of(bytes, sizeof bytes - 1);
    struct nrg_pb_field f;
    (void)state;
    assert_int_equal(nrg_pb_next(&msg, &f), 1);
    assert_int_equal(f.value, 150);
    assert_int_equal(nrg_pb_next(&msg, &f), 1);
    assert_true(nrg_pb_float(f.value) == 1.0);
    assert_int_equal(nrg_pb_next(&msg, &f), 1);
    assert_true(nrg_pb_double(f.value) == 1.0);
    assert_int_equal(nrg_pb_next(&msg, &f), 1);
    assert_memory_equal(f.bytes, "hi", 2);
    assert_int_equal(nrg_pb_next(&msg, &f), 1);
    assert_int_equal((int64_t)f.value, -1);
    assert_int_equal(nrg_pb_next(&msg, &f), 0);
}

static void wire_refuses_what_protobuf_has_not(void **state)
{
    const char *why;
    (void)state;
    assert_int_equal(walk("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11, &why), -EBADMSG);
    assert_non_null(strstr(why, "64 bits"));
    assert_int_equal(walk("\x08\x80", 2, &why), -EBADMSG);
    assert_int_equal(walk("\x0b", 1, &why), -EBADMSG); /* a group */
    assert_non_null(strstr(why, "wire type"));
    assert_int_equal(walk("\x02\x00", 2, &why), -EBADMSG); /* field 0 */
    assert_int_equal(walk("\x0a\x05"
                          "abc",
                          5, &why),
                     -EBADMSG);
    assert_non_null(strstr(why, "longer than what holds it"));
    assert_int_equal(walk("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, &why), -EBADMSG);
    assert_int_equal(walk("\x0d\x01\x02", 3, &why), -EBADMSG);
}

/* ---- structure ---- */

static struct nrg_str relu_graph(void)
{
    struct nrg_str graph = {0}, node = node_of("Relu", "x", "y");
    pb_text(&node, 3, "/layer1/layer1.0/act/Relu");
    graph_node(&graph, &node);
    graph_input(&graph, "x", 1, DIMS(2, 3));
    graph_output(&graph, "y");
    return graph;
}

static void reads_a_node_with_its_module(void **state)
{
    struct nrg_str graph = relu_graph(), file = model_of(&graph, 13);
    struct nrg_model model = read_good(&file);
    const struct nrg_op *op = op_of(&model, "onnx::Relu");
    char text[80];
    (void)state;
    assert_non_null(op);
    assert_string_equal(op->label, "/layer1/layer1.0/act/Relu");
    assert_string_equal(op->module, "layer1.0.act");
    assert_string_equal(type_text(&model, "y", text, sizeof text), "float32[2,3]");
    assert_string_equal(model.producer, "test");
    assert_int_equal(model.graphs[0]->body->n_inputs, 1);
    assert_ptr_equal(model.graphs[0]->body->outputs[0], op->outputs[0]);
    nrg_model_release(&model);
}

/* IR version 1 has no type: of two lists the first counts, and the second is not put behind it. */
static void an_attribute_without_a_type_is_one_list(void **state)
{
    struct nrg_str graph = {0}, node = node_of("Relu", "x", "y"), attr = {0};
    (void)state;
    pb_text(&attr, 1, "odd");
    for (int i = 0; i < 3; i++)
        pb_float(&attr, 7, 0.5f);
    pb_number(&attr, 8, 42);
    pb_text(&attr, 9, "text");
    pb_message(&node, 5, &attr);
    graph_node(&graph, &node);
    graph_input(&graph, "x", 1, DIMS(2, 3));
    graph_output(&graph, "y");
    struct nrg_str file = model_of(&graph, 13);
    struct nrg_model model = read_good(&file);
    const struct nrg_attr *odd = nrg_op_attr(op_of(&model, "onnx::Relu"), "odd");
    assert_int_equal(odd->kind, NRG_A_FLOATS);
    assert_int_equal(odd->n, 3);
    assert_true(odd->fs[2] == 0.5);
    nrg_model_release(&model);
}

static void initializers_are_parameters_not_inputs(void **state)
{
    struct nrg_str graph = {0}, node = node_of("Gemm", "x,fc.weight,", "y");
    attr_int(&node, "transB", 1);
    graph_node(&graph, &node);
    graph_input(&graph, "x", 1, DIMS(4, 5));
    graph_input(&graph, "fc.weight", 1, DIMS(7, 5)); /* as IR version 3 demands */
    graph_weight(&graph, "fc.weight", DIMS(7, 5));
    graph_ints(&graph, "steps", INTS(1, 2));
    graph_output(&graph, "y");
    struct nrg_str file = model_of(&graph, 13);
    struct nrg_model model = read_good(&file);
    const struct nrg_op *op = op_of(&model, "onnx::Gemm");
    (void)state;
    assert_int_equal(model.graphs[0]->body->n_inputs, 1);
    assert_int_equal(model.n_params, 2);
    assert_string_equal(model.params[0].name, "fc.weight");
    assert_int_equal(model.params[0].bytes, 7 * 5 * 4);
    assert_false(model.params[0].is_buffer);
    assert_true(model.params[1].is_buffer);
    assert_int_equal(op->n_inputs, 3);
    assert_int_equal(op->inputs[2]->type->kind, NRG_T_NONE);
    assert_string_equal(op->module, "fc");
    nrg_model_release(&model);
}

static void sorts_nodes_by_their_data(void **state)
{
    struct nrg_str graph = {0}, late = node_of("Abs", "m", "y"), early = node_of("Neg", "x", "m");
    graph_node(&graph, &late);
    graph_node(&graph, &early);
    graph_input(&graph, "x", 1, DIMS(3));
    graph_output(&graph, "y");
    struct nrg_str file = model_of(&graph, 13);
    struct nrg_model model = read_good(&file);
    char text[80];
    (void)state;
    assert_string_equal(model.graphs[0]->body->ops[0]->kind, "onnx::Neg");
    assert_int_equal(model.graphs[0]->body->ops[1]->id, 1);
    assert_string_equal(type_text(&model, "y", text, sizeof text), "float32[3]");
    assert_int_equal(model.n_warnings, 1);
    nrg_model_release(&model);
}

static void refuses_graphs_that_cannot_be(void **state)
{
    (void)state;
    struct nrg_str graph = {0}, a = node_of("Add", "x,q", "p"), b = node_of("Neg", "p", "q");
    graph_node(&graph, &a);
    graph_node(&graph, &b);
    graph_input(&graph, "x", 1, DIMS(3));
    graph_output(&graph, "q");
    struct nrg_str file = model_of(&graph, 13);
    assert_refused(&file, -EBADMSG, "cycle");

    a = node_of("Neg", "nowhere", "y");
    graph_node(&graph, &a);
    file = model_of(&graph, 13);
    assert_refused(&file, -EBADMSG, "'nowhere', which nothing makes");

    a = node_of("Neg", "x", "y");
    b = node_of("Abs", "x", "y");
    graph_input(&graph, "x", 1, DIMS(3));
    graph_node(&graph, &a);
    graph_node(&graph, &b);
    file = model_of(&graph, 13);
    assert_refused(&file, -EBADMSG, "made twice");

    graph_output(&graph, "never");
    file = model_of(&graph, 13);
    assert_refused(&file, -EBADMSG, "made by nothing");
}

static void refuses_dimensions_that_cannot_be(void **state)
{
    struct nrg_str graph = {0};
    (void)state;
    graph_weight(&graph, "w", DIMS(-5));
    struct nrg_str file = model_of(&graph, 13);
    assert_refused(&file, -EBADMSG, "negative dimension");
    graph_weight(&graph, "w", DIMS(INT64_C(1) << 32, INT64_C(1) << 32));
    file = model_of(&graph, 13);
    assert_refused(&file, -EBADMSG, "63 bits");
    graph_input(&graph, "x", 1, DIMS(-7));
    file = model_of(&graph, 13);
    assert_refused(&file, -EBADMSG, "negative");
}

static void refuses_other_files(void **state)
{
    struct nrg_str file = {0}, graph = relu_graph();
    (void)state;
    pb_number(&file, 1, 8);
    assert_refused(&file, -EBADMSG, "no graph");
    pb_number(&file, 1, 8);
    pb_number(&file, 7, 8);
    assert_refused(&file, -EBADMSG, "wire type");
    nrg_str_add(&file, "not protobuf", 12);
    assert_refused(&file, -EBADMSG, "");
    file = model_of(&graph, 13);
    file.len -= 3; /* a download that stopped */
    assert_refused(&file, -EBADMSG, "truncated");
}

/* ---- subgraphs and functions ---- */

static struct nrg_str nested(unsigned depth)
{
    struct nrg_str graph = {0}, node;
    if (depth) {
        struct nrg_str inner = nested(depth - 1);
        node = node_of("If", "c", "y");
        attr_graph(&node, "then_branch", &inner);
    } else {
        node = node_of("Neg", "x", "y");
    }
    graph_node(&graph, &node);
    graph_output(&graph, "y");
    return graph;
}

static void bounds_nesting(void **state)
{
    struct nrg_str graph = nested(200);
    (void)state;
    graph_input(&graph, "x", 1, DIMS(3));
    graph_input(&graph, "c", 9, DIMS(1));
    struct nrg_str file = model_of(&graph, 13);
    assert_refused(&file, -EBADMSG, "nested deeper");
}

static void branches_are_blocks_then_first(void **state)
{
    struct nrg_str graph = {0}, yes = {0}, no = {0}, node = node_of("If", "c", "y");
    struct nrg_str a = node_of("Neg", "x", "p"), b = node_of("Abs", "x", "p");
    graph_node(&yes, &a);
    graph_output(&yes, "p");
    graph_node(&no, &b); /* the same name in both: scopes end */
    graph_output(&no, "p");
    attr_graph(&node, "else_branch", &no);
    attr_graph(&node, "then_branch", &yes);
    graph_node(&graph, &node);
    graph_input(&graph, "x", 1, DIMS(3, 4));
    graph_input(&graph, "c", 9, DIMS(1));
    graph_output(&graph, "y");
    struct nrg_str file = model_of(&graph, 13);
    struct nrg_model model = read_good(&file);
    const struct nrg_op *op = op_of(&model, "onnx::If");
    char text[80];
    (void)state;
    assert_int_equal(op->n_blocks, 2);
    assert_string_equal(op->blocks[0]->ops[0]->kind, "onnx::Neg");
    assert_ptr_equal(op->blocks[0]->owner, op);
    assert_string_equal(type_text(&model, "y", text, sizeof text), "float32[3,4]");
    assert_int_equal(model.graphs[0]->n_ops, 3);
    nrg_model_release(&model);
}

static void loops_know_their_trips(void **state)
{
    struct nrg_str graph = {0}, body = {0}, loop = node_of("Loop", "m,c,x", "s,all");
    struct nrg_str add = node_of("Add", "v,v", "w"), keep = node_of("Identity", "go", "go2");
    struct nrg_str max = node_of("Constant", "", "m"), cond = node_of("Constant", "", "c");
    graph_input(&body, "i", 7, NULL);
    graph_input(&body, "go", 9, NULL);
    graph_input(&body, "v", 1, NULL);
    graph_node(&body, &add);
    graph_output(&body, "go");
    graph_output(&body, "w");
    graph_output(&body, "w");
    nrg_str_release(&keep);
    attr_tensor(&max, "value", INTS(6), true);
    attr_tensor(&cond, "value", INTS(1), true);
    attr_graph(&loop, "body", &body);
    graph_node(&graph, &max);
    graph_node(&graph, &cond);
    graph_node(&graph, &loop);
    graph_input(&graph, "x", 1, DIMS(2, 5));
    graph_output(&graph, "all");
    struct nrg_str file = model_of(&graph, 13);
    struct nrg_model model = read_good(&file);
    const struct nrg_attr *trips = nrg_op_attr(op_of(&model, "onnx::Loop"), "trip_count");
    char text[80];
    (void)state;
    assert_non_null(trips);
    assert_int_equal(trips->i, 6);
    assert_string_equal(type_text(&model, "all", text, sizeof text), "float32[6,2,5]");
    assert_string_equal(type_text(&model, "s", text, sizeof text), "float32[2,5]");
    nrg_model_release(&model);
}

/* Weights are named by the model or read as such; masks, scales and positions are constants. */
static void constants_are_no_parameters(void **state)
{
    static const struct {
        const char *op, *inputs, *output;
    } nodes[] = {{"MatMul", "x,onnx::MatMul_3", "a"},
                 {"Transpose", "onnx::Transpose_5", "t"},
                 {"MatMul", "a,t", "b"},
                 {"Add", "b,pos_embed", "c"},
                 {"Add", "c,/attn/Constant_output_0", "d"},
                 {"Add", "d,layer.attn_mask", "e"},
                 {"Mul", "e,val_7", "f"},
                 {"Where", "cond,f,onnx::Where_9", "g"}};
    static const char *const params[] = {"onnx::MatMul_3", "onnx::Transpose_5", "pos_embed"};
    static const char *const buffers[] = {"/attn/Constant_output_0", "layer.attn_mask", "val_7",
                                          "onnx::Where_9"};
    struct nrg_str graph = {0};
    (void)state;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        struct nrg_str node = node_of(nodes[i].op, nodes[i].inputs, nodes[i].output);
        graph_node(&graph, &node);
    }
    for (size_t i = 0; i < sizeof params / sizeof *params; i++)
        graph_weight(&graph, params[i], DIMS(4, 4));
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        graph_weight(&graph, buffers[i], DIMS(4, 4));
    graph_input(&graph, "x", 1, DIMS(4, 4));
    graph_input(&graph, "cond", 9, DIMS(4, 4));
    graph_output(&graph, "g");
    struct nrg_str file = model_of(&graph, 13);
    struct nrg_model model = read_good(&file);
    assert_int_equal(model.n_params, 7);
    for (size_t i = 0; i < model.n_params; i++)
        if (model.params[i].is_buffer != (i >= 3))
            fail_msg("%s", model.params[i].name);
    nrg_model_release(&model);
}

static struct nrg_str function_of(const char *name, struct nrg_str *node)
{
    struct nrg_str function = {0};
    pb_text(&function, 1, name);
    pb_text(&function, 4, "a");
    pb_text(&function, 5, "r");
    pb_message(&function, 7, node);
    pb_text(&function, 10, "local");
    return function;
}

static struct nrg_str calling_graph(const char *name)
{
    struct nrg_str graph = {0}, call = node_of(name, "x", "y");
    pb_text(&call, 7, "local");
    pb_text(&call, 3, "/head/norm/call");
    attr_int(&call, "which", 1);
    graph_node(&graph, &call);
    graph_input(&graph, "x", 1, DIMS(3, 4));
    graph_output(&graph, "y");
    return graph;
}

static void functions_are_written_out(void **state)
{
    struct nrg_str graph = calling_graph("Soft"), inner = node_of("Softmax", "a", "r"), attr = {0};
    pb_text(&attr, 1, "axis");
    pb_text(&attr, 21, "which"); /* the call's attribute */
    pb_message(&inner, 5, &attr);
    struct nrg_str file = model_of(&graph, 18), function = function_of("Soft", &inner);
    pb_message(&file, 25, &function);
    struct nrg_model model = read_good(&file);
    const struct nrg_op *op = op_of(&model, "onnx::Softmax");
    (void)state;
    assert_int_equal(model.graphs[0]->body->n_ops, 1);
    assert_string_equal(op->inputs[0]->name, "x");
    assert_string_equal(op->outputs[0]->name, "y");
    assert_int_equal(nrg_op_attr(op, "axis")->i, 1);
    assert_string_equal(op->module, "head.norm");
    nrg_model_release(&model);
}

static void functions_that_call_themselves_are_refused(void **state)
{
    struct nrg_str graph = calling_graph("Again"), inner = node_of("Again", "a", "r");
    (void)state;
    pb_text(&inner, 7, "local");
    struct nrg_str file = model_of(&graph, 18), function = function_of("Again", &inner);
    pb_message(&file, 25, &function);
    assert_refused(&file, -EBADMSG, "call each other");
}

/* Each function calls the next twice: 2^40 operators from 3 kB. */
static void functions_that_double_are_refused(void **state)
{
    struct nrg_str graph = calling_graph("f0"), file = model_of(&graph, 18);
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct nrg_str function = {0};
        char name[16], next[16];
        snprintf(name, sizeof name, "f%d", i);
        snprintf(next, sizeof next, "f%d", i + 1);
        struct nrg_str a = node_of(next, "a", "m"), b = node_of(next, "m", "r");
        pb_text(&a, 7, "local");
        pb_text(&b, 7, "local");
        pb_text(&function, 1, name);
        pb_text(&function, 4, "a");
        pb_text(&function, 5, "r");
        pb_message(&function, 7, &a);
        pb_message(&function, 7, &b);
        pb_text(&function, 10, "local");
        pb_message(&file, 25, &function);
    }
    assert_refused(&file, -EFBIG, "far beyond its own size");
}

/* ---- parameters ---- */

static void merged_parameters_share_their_storage(void **state)
{
    struct nrg_str graph = {0}, same = node_of("Identity", "a.weight", "b.weight");
    struct nrg_str norm = node_of("BatchNormalization", "x,a.weight,b.weight,m,v", "y");
    graph_node(&graph, &same);
    graph_node(&graph, &norm);
    graph_input(&graph, "x", 1, DIMS(2, 3));
    graph_weight(&graph, "a.weight", DIMS(3));
    graph_weight(&graph, "m", DIMS(3));
    graph_weight(&graph, "v", DIMS(3));
    struct nrg_str file = model_of(&graph, 13);
    struct nrg_model model = read_good(&file);
    (void)state;
    assert_int_equal(model.n_params, 4);
    assert_string_equal(model.params[3].name, "b.weight");
    assert_string_equal(model.params[3].storage, model.params[0].storage);
    assert_false(model.params[3].is_buffer);
    assert_true(model.params[1].is_buffer && model.params[2].is_buffer);
    assert_int_equal(model.n_warnings, 1);
    assert_non_null(strstr(model.warnings[0], "3 elements"));
    nrg_model_release(&model);
}

/* ---- external data ---- */

static void external_tensor(struct nrg_str *graph, const char *name, int dtype, const int64_t *dims,
                            const char *location, const char *length)
{
    static const char *const keys[] = {"location", "offset", "length"};
    const char *values[] = {location, "8", length};
    struct nrg_str tensor = {0};
    for (; *dims != END; dims++)
        pb_number(&tensor, 1, (uint64_t)*dims);
    pb_number(&tensor, 2, (uint64_t)dtype);
    pb_text(&tensor, 8, name);
    for (int i = 0; i < 3; i++) {
        struct nrg_str pair = {0};
        pb_text(&pair, 1, keys[i]);
        pb_text(&pair, 2, values[i]);
        pb_message(&tensor, 13, &pair);
    }
    pb_number(&tensor, 14, 1);
    pb_message(graph, 5, &tensor);
}

static struct nrg_str external_model(const char *location)
{
    struct nrg_str graph = {0}, node = node_of("Reshape", "x,shape", "y");
    graph_node(&graph, &node);
    graph_input(&graph, "x", 1, DIMS(6, 4));
    external_tensor(&graph, "shape", 7, DIMS(2), location, "16");
    external_tensor(&graph, "big", 1, DIMS(1000, 1000), "absent.bin", "4000000");
    return model_of(&graph, 13);
}

static void external_data_is_read_only_beside_the_model(void **state)
{
    struct tree tree;
    struct nrg_model model;
    struct nrg_error err;
    char path[200], text[80];
    int64_t contents[] = {99, 8, 3};
    (void)state;
    tree_init(&tree);
    tree_write_bytes(&tree, "/models/w.bin", contents, sizeof contents);
    tree_write_bytes(&tree, "/w.bin", contents, sizeof contents);
    snprintf(path, sizeof path, "%s/models/net.onnx", tree.path);
    struct nrg_str file = external_model("w.bin");
    assert_int_equal(read_onnx(&file, path, &model, &err), 0);
    assert_string_equal(type_text(&model, "y", text, sizeof text), "float32[8,3]");
    assert_int_equal(model.params[1].bytes, 4000000);
    nrg_model_release(&model);

    file = external_model("../w.bin");
    assert_int_equal(read_onnx(&file, path, &model, &err), 0);
    assert_string_equal(type_text(&model, "y", text, sizeof text), "float32[-1,-1]");
    nrg_model_release(&model);
    tree_release(&tree);
}

static void is_recognised_without_its_ending(void **state)
{
    struct nrg_str graph = relu_graph(), file = model_of(&graph, 13);
    struct nrg_source source = {
        .bytes = (const uint8_t *)file.text, .size = file.len, .name = "model.bin"};
    struct nrg_model model;
    struct nrg_error err;
    (void)state;
    assert_int_equal(nrg_model_read_bytes(&source, NULL, &model, &err), 0);
    assert_string_equal(model.format, "onnx");
    nrg_model_release(&model);
    nrg_str_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wire_reads_all_four_types),
        cmocka_unit_test(wire_refuses_what_protobuf_has_not),
        cmocka_unit_test(reads_a_node_with_its_module),
        cmocka_unit_test(an_attribute_without_a_type_is_one_list),
        cmocka_unit_test(initializers_are_parameters_not_inputs),
        cmocka_unit_test(sorts_nodes_by_their_data),
        cmocka_unit_test(refuses_graphs_that_cannot_be),
        cmocka_unit_test(refuses_dimensions_that_cannot_be),
        cmocka_unit_test(refuses_other_files),
        cmocka_unit_test(bounds_nesting),
        cmocka_unit_test(branches_are_blocks_then_first),
        cmocka_unit_test(loops_know_their_trips),
        cmocka_unit_test(constants_are_no_parameters),
        cmocka_unit_test(functions_are_written_out),
        cmocka_unit_test(functions_that_call_themselves_are_refused),
        cmocka_unit_test(functions_that_double_are_refused),
        cmocka_unit_test(merged_parameters_share_their_storage),
        cmocka_unit_test(external_data_is_read_only_beside_the_model),
        cmocka_unit_test(is_recognised_without_its_ending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

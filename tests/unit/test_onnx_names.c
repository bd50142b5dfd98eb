/* The ONNX reader: which module an operator belongs to, by the traces that exporters leave. */
#include <stdio.h>
#include <string.h>

#include "support/cmocka.h"

#include "graph/reduce.h"
#include "support/onnx_build.h"

static struct nrg_model read_good(struct nrg_str *graph, int opset)
{
    struct nrg_str file = model_of(graph, opset);
    struct nrg_model model;
    struct nrg_error err = {0};
    if (read_onnx(&file, "good.onnx", &model, &err))
        fail_msg("%s", err.what);
    return model;
}

static void second_calls_belong_to_the_same_module(void **state)
{
    struct nrg_str graph = {0};
    static const char *const labels[] = {"/block/relu_1/Relu", "/block/relu/Relu",
                                         "/block/conv_2/Relu"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        char out[16];
        snprintf(out, sizeof out, "y%d", i);
        struct nrg_str node = node_of("Relu", "x", out);
        pb_text(&node, 3, labels[i]);
        graph_node(&graph, &node);
    }
    graph_input(&graph, "x", 1, DIMS(3));
    graph_weight(&graph, "block.conv_2.weight", DIMS(3));
    graph_weight(&graph, "block.conv.weight", DIMS(3));
    struct nrg_model model = read_good(&graph, 13);
    struct nrg_op **ops = model.graphs[0]->body->ops;
    assert_string_equal(ops[0]->module, "block.relu");
    assert_string_equal(ops[1]->module, "block.relu");
    assert_string_equal(ops[2]->module, "block.conv_2");
    nrg_model_release(&model);
}

static void metadata_tells_modules_and_classes(void **state)
{
    struct nrg_str graph = {0}, node = node_of("Relu", "x", "y"), pair = {0};
    pb_text(&node, 3, "node_relu_1");
    pb_text(&pair, 1, "pkg.torch.onnx.name_scopes");
    pb_text(&pair, 2, "['', 'layer1', 'layer1.0', 'relu_1']");
    pb_message(&node, 9, &pair);
    pb_text(&pair, 1, "pkg.torch.onnx.class_hierarchy");
    pb_text(&pair, 2, "['models.Net', 'torch.nn.Sequential', 'Block', 'aten.relu.default']");
    pb_message(&node, 9, &pair);
    graph_node(&graph, &node);
    graph_input(&graph, "x", 1, DIMS(3));
    struct nrg_model model = read_good(&graph, 18);
    (void)state;
    assert_string_equal(op_of(&model, "onnx::Relu")->module, "layer1.0");
    assert_int_equal(model.n_modules, 3);
    assert_string_equal(model.modules[1].name, "layer1");
    assert_string_equal(model.modules[1].class_name, "Sequential");
    nrg_model_release(&model);
}

/* A node with the metadata of PyTorch's newer exporter. */
static void add_exported(struct nrg_str *graph, const char *op, const char *in, const char *out,
                         const char *scopes)
{
    struct nrg_str node = node_of(op, in, out), pair = {0};
    pb_text(&node, 3, "node_1");
    pb_text(&pair, 1, "pkg.torch.onnx.name_scopes");
    pb_text(&pair, 2, scopes);
    pb_message(&node, 9, &pair);
    graph_node(graph, &node);
}

/* The optimiser folds a norm into the product before it and keeps the norm's name. */
static void fused_products_belong_to_their_weights(void **state)
{
    struct nrg_str graph = {0};
    add_exported(&graph, "Conv", "x,body.conv.weight,body.conv.bias", "a",
                 "['', 'body', 'body.norm', 'batch_norm']");
    add_exported(&graph, "Relu", "a", "b", "['', 'body', 'body.norm.act', 'relu']");
    add_exported(&graph, "Conv", "b,tied.weight", "c", "['', 'first', 'conv2d']");
    add_exported(&graph, "Conv", "c,tied.weight", "d", "['', 'tied', 'conv2d_1']");
    add_exported(&graph, "Conv", "d,whole.inner.weight", "e", "['', 'whole', 'conv2d_2']");
    graph_input(&graph, "x", 1, DIMS(1, 4, 5, 5));
    graph_weight(&graph, "body.conv.weight", DIMS(4, 4, 1, 1));
    graph_weight(&graph, "body.conv.bias", DIMS(4));
    graph_weight(&graph, "tied.weight", DIMS(4, 4, 1, 1));
    graph_weight(&graph, "whole.inner.weight", DIMS(4, 4, 1, 1));
    struct nrg_model model = read_good(&graph, 18);
    struct nrg_op **ops = model.graphs[0]->body->ops;
    (void)state;
    assert_string_equal(ops[0]->module, "body.conv");
    assert_string_equal(ops[1]->module, "body.norm.act");
    assert_string_equal(ops[2]->module, "first"); /* `tied` has a node of its own */
    assert_string_equal(ops[3]->module, "tied");
    assert_string_equal(ops[4]->module, "whole"); /* a module may use its child's weight */
    nrg_model_release(&model);
}

/* Containers that are never called leave no name: "/q" and "/q_1" are two modules here. */
static void calls_are_told_by_the_parameters_they_read(void **state)
{
    static const char *const nodes[][4] = {{"MatMul", "x,onnx::MatMul_1", "a", "/q/MatMul"},
                                           {"Add", "a,blocks.0.q.bias", "b", "/q/Add"},
                                           {"MatMul", "b,onnx::MatMul_2", "c", "/q_1/MatMul"},
                                           {"Add", "c,blocks.1.q.bias", "d", "/q_1/Add"}};
    static const char *const modules[] = {"blocks.0.q", "blocks.0.q", "blocks.1.q", "blocks.1.q"};
    struct nrg_str graph = {0};
    for (int i = 0; i < 4; i++) {
        struct nrg_str node = node_of(nodes[i][0], nodes[i][1], nodes[i][2]);
        pb_text(&node, 3, nodes[i][3]);
        graph_node(&graph, &node);
    }
    graph_input(&graph, "x", 1, DIMS(2, 4));
    graph_weight(&graph, "onnx::MatMul_1", DIMS(4, 4));
    graph_weight(&graph, "onnx::MatMul_2", DIMS(4, 4));
    graph_weight(&graph, "blocks.0.q.bias", DIMS(4));
    graph_weight(&graph, "blocks.1.q.bias", DIMS(4));
    struct nrg_model model = read_good(&graph, 13);
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_string_equal(model.graphs[0]->body->ops[i]->module, modules[i]);
    nrg_model_release(&model);
}

static void names_of_onnx_runtime_are_undone(void **state)
{
    static const char *const labels[] = {"fused /layer1/layer1.0/conv/Conv",
                                         "/fc/MatMul/MatMulAddFusion", "/ln/Mul/LayerNormFusion/"};
    static const char *const modules[] = {"layer1.0.conv", "fc", "ln"};
    struct nrg_str graph = {0};
    for (int i = 0; i < 3; i++) {
        char out[16];
        snprintf(out, sizeof out, "y%d", i);
        struct nrg_str node = node_of("Relu", "x", out);
        pb_text(&node, 3, labels[i]);
        graph_node(&graph, &node);
    }
    graph_input(&graph, "x", 1, DIMS(3));
    struct nrg_model model = read_good(&graph, 13);
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_string_equal(model.graphs[0]->body->ops[i]->module, modules[i]);
    nrg_model_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_calls_belong_to_the_same_module),
        cmocka_unit_test(metadata_tells_modules_and_classes),
        cmocka_unit_test(fused_products_belong_to_their_weights),
        cmocka_unit_test(calls_are_told_by_the_parameters_they_read),
        cmocka_unit_test(names_of_onnx_runtime_are_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* TensorRT engine information and model summaries: both verbosities, odd files, costs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#include "graph/module_tree.h"
#include "graph/reader.h"

/* Texts here have ' for every quote, which C can write without escapes. */
static int read_text(const char *text, const char *format, struct nrg_model *model,
                     struct nrg_error *err)
{
    char *json = strdup(text);
    assert_non_null(json);
    for (char *p = json; (p = strchr(p, '\'')); p++)
        *p = '"';
    struct nrg_source source = {
        .bytes = (const uint8_t *)json, .size = strlen(json), .name = "engine.json"};
    int rc = nrg_model_read_bytes(&source, format, model, err);
    free(json);
    return rc;
}

static struct nrg_model read_good(const char *text)
{
    struct nrg_model model;
    struct nrg_error err = {0};
    if (read_text(text, NULL, &model, &err))
        fail_msg("%s", err.what);
    return model;
}

static struct nrg_totals totals_of(const struct nrg_model *model)
{
    struct nrg_reduced reduced;
    struct nrg_module_tree tree;
    struct nrg_totals totals;
    struct nrg_error err;
    assert_int_equal(nrg_reduce(model, NULL, &reduced, &err), 0);
    assert_int_equal(nrg_cost_all(&reduced, NRG_CONVENTION_NRG), 0);
    assert_int_equal(nrg_module_tree_make(&tree, model, &reduced, NULL), 0);
    assert_int_equal(nrg_totals_of(&tree, &reduced, &totals), 0);
    nrg_module_tree_release(&tree);
    nrg_reduced_release(&reduced);
    return totals;
}

static const char detailed[] =
    "{'Layers': ["
    "{'Name': 'Reformatting CopyNode for Input Tensor 0 to /c/c.0/Conv + /c/c.1/Relu',"
    " 'LayerType': 'Reformat',"
    " 'Inputs': [{'Name': 'x', 'Dimensions': [2, 3, 8, 8],"
    "             'Format/Datatype': 'Row major linear FP32'}],"
    " 'Outputs': [{'Name': 'x2', 'Dimensions': [2, 3, 8, 8],"
    "              'Format/Datatype': 'Channel major FP16 format where channel % 8 == 0'}],"
    " 'Metadata': ''},"
    "{'Name': '/c/c.0/Conv + /c/c.1/Relu', 'LayerType': 'CaskConvolution',"
    " 'Inputs': [{'Name': 'x2', 'Dimensions': [2, 3, 8, 8], 'Format/Datatype': 'Half'}],"
    " 'Outputs': [{'Name': 'r', 'Dimensions': [2, 16, 4, 4], 'Format/Datatype':"
    "              'Thirty-two wide channel vectorized row major Int8 format'}],"
    " 'Kernel': [3, 3], 'Stride': [2, 2], 'Groups': 1, 'OutMaps': 16,"
    " 'Weights': {'Type': 'Half', 'Count': 432}, 'Bias': {'Type': 'Float', 'Count': 16},"
    " 'Metadata': '[ONNX Layer: /c/c.0/Conv]\\u001e[ONNX Layer: /c/c.1/Relu]'},"
    "{'Name': 'gemm', 'LayerType': 'gemm',"
    " 'Inputs': [{'Name': 'r', 'Dimensions': [2, 256], 'Format/Datatype': 'Half'},"
    "            {'Name': '__mye1_dconst', 'Dimensions': [256, 10], 'Format/Datatype': 'Half'}],"
    " 'Outputs': [{'Name': 'y', 'Dimensions': [2, 10], 'Format/Datatype': 'Half'}]},"
    "{'Name': 'k', 'LayerType': 'kgen',"
    " 'Inputs': [{'Name': 'y', 'Dimensions': [2, 10], 'Format/Datatype': 'Half'}],"
    " 'Outputs': [{'Name': 'z', 'Dimensions': [-1, 10], 'Format/Datatype': 'Half'}]}],"
    " 'Bindings': ['x', 'z']}";

static void detailed_layers_become_operators(void **state)
{
    struct nrg_model model = read_good(detailed);
    const struct nrg_block *body = model.graphs[0]->body;
    const struct nrg_op *conv = body->ops[1];
    (void)state;
    assert_string_equal(model.format, "tensorrt");
    assert_int_equal(body->n_ops, 4);
    assert_int_equal(body->n_inputs, 1);
    assert_string_equal(body->outputs[0]->name, "z");
    assert_int_equal(body->outputs[0]->type->dims[0], NRG_DIM_UNKNOWN);
    assert_string_equal(conv->kind, "trt::CaskConvolution");
    assert_string_equal(conv->module, "c.0");
    assert_string_equal(body->ops[0]->module, "c.0");
    assert_int_equal(conv->inputs[0]->type->dtype, NRG_F16);
    assert_int_equal(conv->outputs[0]->type->dtype, NRG_I8);
    assert_ptr_equal(conv->inputs[0]->producer, body->ops[0]);
    assert_int_equal(nrg_op_attr(conv, "Kernel")->is[1], 3);
    assert_int_equal(model.n_params, 3);
    assert_string_equal(model.params[0].name, "c.0.weight");
    assert_int_equal(model.params[0].bytes, 864);
    nrg_model_release(&model);
}

static void convolutions_and_products_are_counted(void **state)
{
    struct nrg_model model = read_good(detailed);
    struct nrg_totals totals = totals_of(&model);
    (void)state;
    assert_int_equal(totals.cost.macs, 2 * 4 * 4 * 432 + 2 * 10 * 256);
    assert_int_equal(totals.params, 432 + 16 + 2560);
    assert_int_equal(totals.unknown_operators, 1); /* the generated kernel */
    nrg_model_release(&model);
}

static void names_alone_are_kept_with_a_warning(void **state)
{
    struct nrg_model model =
        read_good("{'Layers': ['/conv1/Conv + /relu/Relu', 'fc'],\n'Bindings': ['x']}");
    (void)state;
    assert_int_equal(model.graphs[0]->body->n_ops, 2);
    assert_string_equal(model.graphs[0]->body->ops[0]->label, "/conv1/Conv + /relu/Relu");
    assert_string_equal(model.graphs[0]->body->ops[0]->module, "conv1");
    assert_null(model.graphs[0]->body->ops[1]->module);
    assert_int_equal(model.n_warnings, 1);
    assert_non_null(strstr(model.warnings[0], "profilingVerbosity"));
    nrg_model_release(&model);
}

static void json_in_a_text_is_unwrapped(void **state)
{
    struct nrg_model model = read_good("'{\\'Layers\\': [\\'a\\', \\'b\\', \\'c\\']}'");
    (void)state;
    assert_int_equal(model.graphs[0]->body->n_ops, 3);
    nrg_model_release(&model);
}

static void torch_tensorrt_names_tell_modules(void **state)
{
    struct nrg_model model =
        read_good("{'Layers': ['[CONVOLUTION]-[aten_ops.convolution]-[/features_0/0/convolution] + "
                  "[SCALE]-[aten_ops.norm]-[/features_0/1/norm]']}");
    (void)state;
    assert_string_equal(model.graphs[0]->body->ops[0]->module, "features_0.0");
    nrg_model_release(&model);
}

static void one_layer_alone_is_read(void **state)
{
    struct nrg_model model =
        read_good("{'Name': 'p', 'LayerType': 'CaskPooling', 'WindowSize': [2, 2],"
                  "'Inputs': [{'Name': 'x', 'Dimensions': [1, 4, 8, 8]}],"
                  "'Outputs': [{'Name': 'y', 'Dimensions': [1, 4, 4, 4]}]}");
    struct nrg_totals totals = totals_of(&model);
    (void)state;
    assert_int_equal(totals.cost.flops, 4 * 4 * 4 * 4);
    assert_int_equal(model.graphs[0]->body->n_outputs, 1);
    nrg_model_release(&model);
}

static void odd_files_are_refused(void **state)
{
    static const char *const texts[] = {
        "{'Layers': []}", "{'Layers': [1]}", "{'Layers': 3}", "{'Layers': ['a'", "[]", "7",
        "'\\'a\\''", /* a text in a text in a text */
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct nrg_model model;
        struct nrg_error err = {0};
        assert_int_equal(read_text(texts[i], "tensorrt", &model, &err), -EBADMSG);
        assert_true(err.what[0]);
    }
}

static void weights_beyond_all_memory_are_unknown(void **state)
{
    struct nrg_model model =
        read_good("{'Layers': [{'Name': 'c', 'LayerType': 'CaskConvolution',"
                  "'Inputs': [{'Name': 'x', 'Dimensions': [1, 4, 8, 8]}],"
                  "'Outputs': [{'Name': 'y', 'Dimensions': [1, 4, 4000000000, 4000000000]}],"
                  "'Weights': {'Type': 'Half', 'Count': 9223372036854775807}}]}");
    struct nrg_totals totals = totals_of(&model);
    (void)state;
    assert_int_equal(totals.unknown_operators, 1);
    assert_int_equal(totals.cost.macs, 0);
    assert_int_equal(model.params[0].bytes, -1);
    nrg_model_release(&model);
}

static void summaries_are_counted(void **state)
{
    struct nrg_model model =
        read_good("{'f.conv': {'input_shape': [1, 3, 32, 32], 'output_shape': [1, 6, 28, 28],"
                  " 'kernel_size': [5, 5], 'stride': [1, 1], 'padding': [0, 0], 'type': 'Conv2d'},"
                  "'f.sq': {'input_shape': [1, 6, 28, 28], 'output_shape': [1, 6, 26, 26],"
                  " 'kernel_size': 3, 'stride': 1, 'padding': 0, 'type': 'Conv2d'},"
                  "'fc': {'input_shape': [1, 120], 'output_shape': [1, 84],"
                  " 'kernel_size': null, 'stride': null, 'padding': null, 'type': 'Linear'}}");
    struct nrg_totals totals = totals_of(&model);
    const struct nrg_op *op = model.graphs[0]->body->ops[0];
    (void)state;
    assert_string_equal(model.format, "model-summary");
    assert_string_equal(op->kind, "layer::Conv2d");
    assert_string_equal(op->module, "f.conv");
    assert_int_equal(totals.cost.macs, 28 * 28 * 6 * 3 * 25 + 26 * 26 * 6 * 6 * 9 + 120 * 84);
    nrg_model_release(&model);
}

static void summaries_without_shapes_are_refused(void **state)
{
    struct nrg_model model;
    struct nrg_error err = {0};
    (void)state;
    assert_int_equal(read_text("{'a': {'type': 'Conv2d'}}", "model-summary", &model, &err),
                     -EBADMSG);
    assert_non_null(strstr(err.what, "'a' has no output_shape"));
    assert_int_equal(read_text("[]", "model-summary", &model, &err), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detailed_layers_become_operators),
        cmocka_unit_test(convolutions_and_products_are_counted),
        cmocka_unit_test(names_alone_are_kept_with_a_warning),
        cmocka_unit_test(json_in_a_text_is_unwrapped),
        cmocka_unit_test(torch_tensorrt_names_tell_modules),
        cmocka_unit_test(one_layer_alone_is_read),
        cmocka_unit_test(odd_files_are_refused),
        cmocka_unit_test(weights_beyond_all_memory_are_unknown),
        cmocka_unit_test(summaries_are_counted),
        cmocka_unit_test(summaries_without_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

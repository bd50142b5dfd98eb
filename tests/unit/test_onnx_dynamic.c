/*
 * ONNX shapes that depend on more than the operands' shapes: on policies, on contents of float
 * tensors, on what a loop's body does to its state. Each must come out right or unknown.
 */
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

static void expect_type(const struct nrg_model *model, const char *value, const char *expect)
{
    char text[80];
    if (strcmp(type_text(model, value, text, sizeof text), expect) != 0)
        fail_msg("%s: %s, not %s", value, text, expect);
}

static void resize_by(const char *policy, const int64_t *sizes, const char *expect)
{
    struct nrg_str graph = {0}, node = node_of("Resize", "x,,,sizes", "y");
    attr_text(&node, "keep_aspect_ratio_policy", policy);
    attr_ints(&node, "axes", INTS(2, 3));
    graph_node(&graph, &node);
    graph_input(&graph, "x", 1, DIMS(1, 1, 6, 4));
    graph_ints(&graph, "sizes", 2, sizes);
    graph_output(&graph, "y");
    struct nrg_model model = read_good(&graph, 19);
    expect_type(&model, "y", expect);
    nrg_model_release(&model);
}

/* 6x4 to 12x12: 2 or 3 times; to 7x9: 7/6 gives 4.67, 9/4 gives 13.5, rounded up. */
static void resize_keeps_the_aspect(void **state)
{
    (void)state;
    resize_by("stretch", (const int64_t[]){12, 12}, "float32[1,1,12,12]");
    resize_by("not_larger", (const int64_t[]){12, 12}, "float32[1,1,12,8]");
    resize_by("not_smaller", (const int64_t[]){12, 12}, "float32[1,1,18,12]");
    resize_by("not_larger", (const int64_t[]){7, 9}, "float32[1,1,7,5]");
    resize_by("not_smaller", (const int64_t[]){7, 9}, "float32[1,1,14,9]");
}

/* The region of interest is scaled, and what that gives is not told by shapes. */
static void a_crop_is_unknown(void **state)
{
    struct nrg_str graph = {0}, node = node_of("Upsample", "x", "y");
    static const float scales[] = {1, 1, 2, 2};
    struct nrg_str attr = {0};
    (void)state;
    pb_text(&attr, 1, "scales");
    pb_number(&attr, 20, 6);
    for (size_t i = 0; i < 4; i++)
        pb_float(&attr, 7, scales[i]);
    pb_message(&node, 5, &attr);
    attr_text(&node, "coordinate_transformation_mode", "tf_crop_and_resize");
    graph_node(&graph, &node);
    graph_input(&graph, "x", 1, DIMS(1, 1, 6, 4));
    graph_output(&graph, "y");
    struct nrg_model model = read_good(&graph, 7);
    expect_type(&model, "y", "float32[-1,-1,-1,-1]");
    nrg_model_release(&model);
}

static void unpool_to(bool known, const char *expect)
{
    struct nrg_str graph = {0}, node = node_of("MaxUnpool", "x,i,shape", "y");
    attr_ints(&node, "kernel_shape", INTS(2, 2));
    attr_ints(&node, "strides", INTS(2, 2));
    graph_node(&graph, &node);
    graph_input(&graph, "x", 1, DIMS(1, 1, 2, 2));
    graph_input(&graph, "i", 7, DIMS(1, 1, 2, 2));
    if (known)
        graph_ints(&graph, "shape", INTS(1, 1, 5, 5));
    else
        graph_input(&graph, "shape", 7, DIMS(4));
    graph_output(&graph, "y");
    struct nrg_model model = read_good(&graph, 11);
    expect_type(&model, "y", expect);
    nrg_model_release(&model);
}

static void unpool_has_its_own_shape(void **state)
{
    (void)state;
    unpool_to(true, "float32[1,1,5,5]");
    unpool_to(false, "float32[1,1,-1,-1]");
}

/* A loop of six rounds over state v; `node` makes w of it. */
static struct nrg_model loop_around(struct nrg_str *node)
{
    struct nrg_str graph = {0}, body = {0}, loop = node_of("Loop", "m,c,x", "s,all");
    struct nrg_str max = node_of("Constant", "", "m"), cond = node_of("Constant", "", "c");
    graph_input(&body, "i", 7, NULL);
    graph_input(&body, "go", 9, NULL);
    graph_input(&body, "v", 1, NULL);
    graph_node(&body, node);
    graph_output(&body, "go");
    graph_output(&body, "w");
    graph_output(&body, "w");
    attr_tensor(&max, "value", INTS(6), true);
    attr_tensor(&cond, "value", INTS(1), true);
    attr_graph(&loop, "body", &body);
    graph_node(&graph, &max);
    graph_node(&graph, &cond);
    graph_node(&graph, &loop);
    graph_input(&graph, "x", 1, DIMS(2, 5));
    graph_output(&graph, "s");
    graph_output(&graph, "all");
    return read_good(&graph, 13);
}

/* The last round's tensor is not the first's: nothing in the body has the first one's shape. */
static void a_growing_state_is_unknown(void **state)
{
    struct nrg_str join = node_of("Concat", "v,v", "w"), rank = node_of("Shape", "v", "w");
    (void)state;
    attr_int(&join, "axis", 1);
    struct nrg_model model = loop_around(&join);
    expect_type(&model, "w", "float32[2,-1]");
    expect_type(&model, "s", "float32[2,-1]");
    expect_type(&model, "all", "float32[6,2,-1]");
    nrg_model_release(&model);
    model = loop_around(&rank);
    expect_type(&model, "w", "int64[-1]");
    nrg_model_release(&model);
}

static void stacked_outputs_leave_the_loop(void **state)
{
    struct nrg_str add = node_of("Add", "v,v", "w");
    struct nrg_model model = loop_around(&add);
    struct nrg_reduced reduced;
    struct nrg_error err;
    (void)state;
    assert_int_equal(nrg_reduce(&model, NULL, &reduced, &err), 0);
    assert_int_equal(reduced.n_outputs, 2);
    assert_int_equal(reduced.outputs[0].type->rank, 2);
    assert_int_equal(reduced.outputs[1].type->rank, 3);
    assert_int_equal(reduced.outputs[1].type->dims[0], 6);
    nrg_reduced_release(&reduced);
    nrg_model_release(&model);
}

/* Slices of [4,7] along axis 1, stacked again along the last axis. */
static void scans_stack_where_they_are_told(void **state)
{
    struct nrg_str graph = {0}, body = {0}, scan = node_of("Scan", "x", "y");
    struct nrg_str neg = node_of("Neg", "v", "w");
    (void)state;
    graph_input(&body, "v", 1, NULL);
    graph_node(&body, &neg);
    graph_output(&body, "w");
    attr_graph(&scan, "body", &body);
    attr_int(&scan, "num_scan_inputs", 1);
    attr_ints(&scan, "scan_input_axes", INTS(1));
    attr_ints(&scan, "scan_output_axes", INTS(-1));
    graph_node(&graph, &scan);
    graph_input(&graph, "x", 1, DIMS(4, 7, 3));
    graph_output(&graph, "y");
    struct nrg_model model = read_good(&graph, 11);
    expect_type(&model, "w", "float32[4,3]");
    expect_type(&model, "y", "float32[4,3,7]");
    nrg_model_release(&model);
}

/* Branches that differ: the result is one of both, and no tensor of the first's shape leaves. */
static void branches_that_differ_are_unknown(void **state)
{
    struct nrg_str graph = {0}, yes = {0}, no = {0}, branch = node_of("If", "c", "y");
    struct nrg_str same = node_of("Neg", "x", "a"), twice = node_of("Concat", "x,x", "b");
    struct nrg_reduced reduced;
    struct nrg_error err;
    (void)state;
    attr_int(&twice, "axis", 0);
    graph_node(&yes, &same);
    graph_output(&yes, "a");
    graph_node(&no, &twice);
    graph_output(&no, "b");
    attr_graph(&branch, "then_branch", &yes);
    attr_graph(&branch, "else_branch", &no);
    graph_node(&graph, &branch);
    graph_input(&graph, "c", 9, NULL);
    graph_input(&graph, "x", 1, DIMS(2, 5));
    graph_output(&graph, "y");
    struct nrg_model model = read_good(&graph, 13);
    expect_type(&model, "y", "float32[-1,5]");
    assert_int_equal(nrg_reduce(&model, NULL, &reduced, &err), 0);
    assert_int_equal(nrg_type_numel(reduced.outputs[0].type), -1);
    nrg_reduced_release(&reduced);
    nrg_model_release(&model);
}

static void float_constant(struct nrg_str *graph, const char *name, float value)
{
    struct nrg_str node = node_of("Constant", "", name), attr = {0};
    pb_text(&attr, 1, "value_float");
    pb_number(&attr, 20, 1);
    pb_float(&attr, 2, value);
    pb_message(&node, 5, &attr);
    graph_node(graph, &node);
}

static void add_nodes(struct nrg_str *graph, const char *const (*nodes)[3], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct nrg_str node = node_of(nodes[i][0], nodes[i][1], nodes[i][2]);
        if (!strcmp(nodes[i][0], "Cast"))
            attr_int(&node, "to", nodes[i][2][0] == 'f' ? 1 : 7);
        if (!strcmp(nodes[i][0], "Concat"))
            attr_int(&node, "axis", 0);
        graph_node(graph, &node);
    }
}

/*
 * "Same" padding as exporters of TensorFlow's models write it, for a kernel of 5 and a stride of 2:
 * max((ceil(17 / 2) - 1) * 2 + 5 - 17, 0) = 4 in a float, of which a half stands on each side.
 */
static void float_arithmetic_is_followed(void **state)
{
    static const char *const nodes[][3] = {
        {"Shape", "x", "s"},      {"Gather", "s,at", "h"},
        {"Cast", "h", "fh"},      {"Div", "fh,two", "fd"},
        {"Ceil", "fd", "fc"},     {"Sub", "fc,one", "fs"},
        {"Mul", "fs,two", "fm"},  {"Add", "fm,five", "fa"},
        {"Sub", "fa,fh", "fp"},   {"Clip", "fp,zero", "fq"},
        {"Div", "fq,two", "fr"},  {"Floor", "fr", "fl"},
        {"Cast", "fl", "before"}, {"Sub", "fq,fl", "fv"},
        {"Cast", "fv", "after"},  {"Concat", "none,before,none,after", "pads"},
        {"Pad", "x,pads", "y"},
    };
    struct nrg_str graph = {0};
    (void)state;
    float_constant(&graph, "one", 1);
    float_constant(&graph, "two", 2);
    float_constant(&graph, "five", 5);
    float_constant(&graph, "zero", 0);
    graph_ints(&graph, "at", INTS(1));
    graph_ints(&graph, "none", INTS(0));
    add_nodes(&graph, nodes, sizeof nodes / sizeof *nodes);
    graph_input(&graph, "x", 1, DIMS(3, 17));
    graph_output(&graph, "y");
    struct nrg_model model = read_good(&graph, 13);
    expect_type(&model, "y", "float32[3,21]");
    nrg_model_release(&model);
}

/* What a maximum of an unknown and a known number is, nobody knows. */
static void unknown_numbers_stay_unknown(void **state)
{
    static const char *const nodes[][3] = {
        {"Cast", "n", "fn"}, {"Max", "fn,one", "fm"}, {"Cast", "fm", "m"}, {"Expand", "x,m", "y"}};
    struct nrg_str graph = {0};
    (void)state;
    float_constant(&graph, "one", 1);
    graph_input(&graph, "n", 7, DIMS(1));
    graph_input(&graph, "x", 1, DIMS(1));
    add_nodes(&graph, nodes, sizeof nodes / sizeof *nodes);
    graph_output(&graph, "y");
    struct nrg_model model = read_good(&graph, 13);
    expect_type(&model, "y", "float32[-1]");
    nrg_model_release(&model);
}

/* 2 and infinity in 16 bits: the one is a size, the other is none. */
static void halves_are_read(void **state)
{
    static const struct {
        uint64_t bits;
        const char *expect;
    } cases[] = {{0x4000, "float32[2]"}, {0x7c00, "float32[-1]"}, {0xfe00, "float32[-1]"}};
    static const char *const nodes[][3] = {{"Cast", "h", "n"}, {"ConstantOfShape", "n", "y"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nrg_str graph = {0}, tensor = {0};
        pb_number(&tensor, 1, 1);
        pb_number(&tensor, 2, 10);
        pb_number(&tensor, 5, cases[i].bits);
        pb_text(&tensor, 8, "h");
        pb_message(&graph, 5, &tensor);
        add_nodes(&graph, nodes, 2);
        graph_output(&graph, "y");
        struct nrg_model model = read_good(&graph, 13);
        expect_type(&model, "y", cases[i].expect);
        nrg_model_release(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resize_keeps_the_aspect),
        cmocka_unit_test(a_crop_is_unknown),
        cmocka_unit_test(unpool_has_its_own_shape),
        cmocka_unit_test(a_growing_state_is_unknown),
        cmocka_unit_test(stacked_outputs_leave_the_loop),
        cmocka_unit_test(scans_stack_where_they_are_told),
        cmocka_unit_test(branches_that_differ_are_unknown),
        cmocka_unit_test(float_arithmetic_is_followed),
        cmocka_unit_test(unknown_numbers_stay_unknown),
        cmocka_unit_test(halves_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

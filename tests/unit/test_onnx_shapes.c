/*
 * Shapes and costs of ONNX operators. Most cases are one node: operands, attributes, and the types
 * that must come out, taken from the standard's own formulas or worked out by hand.
 */
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#include "graph/cost.h"
#include "graph/reduce.h"
#include "support/onnx_build.h"

/* One node between inputs x, w, b; attributes as "name=1,2;name=text". */
struct one {
    const char *op;
    int64_t x[6], w[6]; /* END-terminated; w[0] == END: none */
    const char *attrs;
    const char *expect;
    int64_t macs; /* -2: not asked */
    int opset;
};

static void attributes(struct nrg_str *node, const char *text)
{
    while (*text) {
        char name[40], value[100];
        int64_t numbers[8];
        size_t n = 0;
        sscanf(text, "%39[^=]=%99[^;]", name, value);
        if (strspn(value, "-0123456789,[]") == strlen(value)) {
            for (char *p = value[0] == '[' ? value + 1 : value; *p && *p != ']' && n < 8;) {
                numbers[n++] = strtoll(p, &p, 10);
                p += *p == ',';
            }
            if (value[0] == '[')
                attr_ints(node, name, n, numbers);
            else
                attr_int(node, name, numbers[0]);
        } else {
            attr_text(node, name, value);
        }
        text += strcspn(text, ";");
        text += *text == ';';
    }
}

static struct nrg_model read_good(struct nrg_str *file)
{
    struct nrg_model model;
    struct nrg_error err = {0};
    if (read_onnx(file, "good.onnx", &model, &err))
        fail_msg("%s", err.what);
    return model;
}

static int64_t macs_of(const struct nrg_model *model)
{
    struct nrg_reduced reduced;
    struct nrg_error err;
    assert_int_equal(nrg_reduce(model, NULL, &reduced, &err), 0);
    assert_int_equal(nrg_cost_all(&reduced, NRG_CONVENTION_NRG), 0);
    int64_t macs = 0;
    for (size_t i = 0; i < reduced.n_operators; i++)
        macs = nrg_cost_add(macs, reduced.operators[i].cost.macs);
    nrg_reduced_release(&reduced);
    return macs;
}

static void check(const struct one *one)
{
    bool has_w = one->w[0] != END;
    struct nrg_str graph = {0}, node = node_of(one->op, has_w ? "x,w" : "x", "y");
    const char *colon = strstr(one->op, "::");
    char text[100];
    if (colon) { /* another domain */
        char domain[40];
        snprintf(domain, sizeof domain, "%.*s", (int)(colon - one->op), one->op);
        nrg_str_release(&node);
        node = node_of(colon + 2, has_w ? "x,w" : "x", "y");
        pb_text(&node, 7, domain);
    }
    attributes(&node, one->attrs);
    graph_node(&graph, &node);
    graph_input(&graph, "x", 1, one->x);
    if (has_w)
        graph_weight(&graph, "w", one->w);
    graph_output(&graph, "y");
    struct nrg_str file = model_of(&graph, one->opset ? one->opset : 13);
    struct nrg_model model = read_good(&file);
    if (strcmp(type_text(&model, "y", text, sizeof text), one->expect))
        fail_msg("%s {%s}: %s, not %s", one->op, one->attrs, text, one->expect);
    if (one->macs != -2 && macs_of(&model) != one->macs)
        fail_msg("%s {%s}: %lld MACs, not %lld", one->op, one->attrs, (long long)macs_of(&model),
                 (long long)one->macs);
    nrg_model_release(&model);
}

#define NO_W                                                                                       \
    {                                                                                              \
        END                                                                                        \
    }
#define ANY_MACS -2

static const struct one windows[] = {
    {"Conv",
     {1, 3, 224, 224, END},
     {64, 3, 7, 7, END},
     "strides=[2,2];pads=[3,3,3,3]",
     "float32[1,64,112,112]",
     INT64_C(112) * 112 * 64 * 3 * 49,
     0},
    {"Conv",
     {2, 8, 9, END},
     {8, 1, 3, END},
     "group=8;dilations=[2]",
     "float32[2,8,5]",
     2 * 5 * 8 * 3,
     0},
    {"Conv",
     {1, 3, 7, 8, END},
     {4, 3, 3, 3, END},
     "auto_pad=SAME_UPPER;strides=[2,2]",
     "float32[1,4,4,4]",
     4 * 4 * 4 * 27,
     0},
    {"Conv",
     {1, 3, 7, 8, END},
     {4, 3, 3, 3, END},
     "auto_pad=VALID;pads=[9,9,9,9]",
     "float32[1,4,5,6]",
     5 * 6 * 4 * 27,
     0},
    {"Conv", {1, 3, 2, 2, END}, {4, 3, 5, 5, END}, "", "unknown[*]", -1, 0},
    {"Conv",
     {DIM_N, 3, 8, 8, END},
     {4, 3, 3, 3, END},
     "pads=[1,1,1,1]",
     "float32[-2,4,8,8]",
     -1,
     0},
    {"ConvTranspose",
     {1, 4, 7, 8, END},
     {4, 3, 3, 3, END},
     "strides=[2,2];pads=[1,1,1,1];output_padding=[1,1];group=2",
     "float32[1,6,14,16]",
     7 * 8 * 4 * 3 * 9,
     0},
    {"ConvTranspose",
     {1, 4, 7, 8, END},
     {4, 3, 3, 3, END},
     "strides=[2,2];output_shape=[15,17]",
     "float32[1,3,15,17]",
     ANY_MACS,
     0},
    {"ConvTranspose",
     {1, 4, 7, 8, END},
     {4, 3, 3, 3, END},
     "strides=[3,3];auto_pad=SAME_LOWER",
     "float32[1,3,21,24]",
     ANY_MACS,
     0},
    /* Some exporters write the whole shape. */
    {"ConvTranspose",
     {1, 4, 7, 8, END},
     {4, 3, 3, 3, END},
     "strides=[2,2];output_shape=[1,3,15,17]",
     "float32[1,3,15,17]",
     ANY_MACS,
     0},
    {"com.microsoft::QLinearAveragePool",
     {1, 14, 15, 3, END},
     NO_W,
     "kernel_shape=[3,3];channels_last=1",
     "float32[-1,-1,-1,-1]",
     ANY_MACS,
     0},
    {"MaxPool",
     {1, 3, 14, 15, END},
     NO_W,
     "kernel_shape=[3,3];strides=[2,2];ceil_mode=1",
     "float32[1,3,7,7]",
     0,
     0},
    /* A last window that would start behind the input does not count. */
    {"MaxPool",
     {1, 3, 14, 15, END},
     NO_W,
     "kernel_shape=[2,2];strides=[2,2];pads=[1,1,1,1];ceil_mode=1",
     "float32[1,3,8,8]",
     0,
     0},
    {"AveragePool",
     {1, 3, 14, 15, END},
     NO_W,
     "kernel_shape=[3,3];strides=[2,2]",
     "float32[1,3,6,7]",
     0,
     0},
    {"GlobalAveragePool", {1, 3, 14, 15, END}, NO_W, "", "float32[1,3,1,1]", 0, 0},
    {"DepthToSpace", {1, 8, 3, 4, END}, NO_W, "blocksize=2", "float32[1,2,6,8]", 0, 0},
    {"SpaceToDepth", {1, 2, 6, 8, END}, NO_W, "blocksize=2", "float32[1,8,3,4]", 0, 0},
    {"com.microsoft::FusedConv",
     {1, 3, 7, 8, END},
     {4, 3, 3, 3, END},
     "activation=Relu",
     "float32[1,4,5,6]",
     5 * 6 * 4 * 27,
     0},
};

static const struct one products[] = {
    {"MatMul", {2, 6, 5, END}, {5, 7, END}, "", "float32[2,6,7]", 2 * 6 * 5 * 7, 0},
    {"MatMul", {5, END}, {2, 5, 7, END}, "", "float32[2,7]", 2 * 5 * 7, 0},
    {"MatMul", {2, 1, 6, 5, END}, {3, 5, 7, END}, "", "float32[2,3,6,7]", 2 * 3 * 6 * 5 * 7, 0},
    {"MatMul", {6, 5, END}, {5, END}, "", "float32[6]", 30, 0},
    {"MatMul", {6, 5, END}, {4, 7, END}, "", "unknown[*]", -1, 0},
    {"Gemm", {5, 6, END}, {7, 5, END}, "transA=1;transB=1", "float32[6,7]", 6 * 5 * 7, 0},
    {"MatMulInteger", {2, 6, 5, END}, {5, 7, END}, "", "int32[2,6,7]", 2 * 6 * 5 * 7, 0},
    {"Einsum",
     {2, 3, 4, 5, END},
     {2, 3, 6, 5, END},
     "equation=bhid,bhjd->bhij",
     "float32[2,3,4,6]",
     2 * 3 * 4 * 6 * 5,
     0},
    {"Einsum", {2, 3, 4, END}, {4, 5, END}, "equation=...k,kn", "float32[2,3,5]", 2 * 3 * 4 * 5, 0},
    {"Add", {2, 1, 5, END}, {3, 1, END}, "", "float32[2,3,5]", 0, 0},
    {"Add", {2, 4, END}, {3, END}, "", "unknown[*]", 0, 0},
    {"Add", {2, 3, 4, END}, {3, END}, "broadcast=1;axis=1", "float32[2,3,4]", 0, 6},
    {"Equal", {2, 3, END}, {3, END}, "", "bool[2,3]", 0, 0},
    /* A slope per channel: it never stretches the data. */
    {"PRelu", {2, 3, 4, 1, END}, {3, END}, "", "float32[2,3,4,1]", 0, 6},
    {"com.microsoft::FusedMatMul",
     {2, 6, 5, END},
     {2, 5, 7, END},
     "transBatchA=1",
     "float32[*]",
     ANY_MACS,
     0},
    {"LSTM",
     {7, 3, 10, END},
     {2, 80, 10, END},
     "hidden_size=20;direction=bidirectional",
     "float32[7,2,3,20]",
     ANY_MACS,
     0},
    {"GRU",
     {3, 7, 10, END},
     {1, 60, 10, END},
     "hidden_size=20;layout=1",
     "float32[3,7,1,20]",
     ANY_MACS,
     14},
    {"com.microsoft::Attention",
     {2, 5, 8, END},
     {8, 24, END},
     "num_heads=2",
     "float32[2,5,8]",
     2 * 5 * 8 * 24 + 2 * 2 * 5 * 5 * 8,
     0},
    {"com.microsoft::Gelu", {2, 5, 8, END}, NO_W, "", "float32[2,5,8]", 0, 0},
    {"com.microsoft::MatMulNBits",
     {2, 5, 8, END},
     {24, 1, 4, END},
     "K=8;N=24;bits=4",
     "float32[2,5,24]",
     2 * 5 * 24 * 8,
     0},
};

static const struct one layouts[] = {
    {"Transpose", {2, 3, 4, END}, NO_W, "perm=[2,0,1]", "float32[4,2,3]", 0, 0},
    {"Transpose", {2, 3, 4, END}, NO_W, "", "float32[4,3,2]", 0, 0},
    {"Flatten", {2, 3, 4, END}, NO_W, "axis=2", "float32[6,4]", 0, 0},
    {"Flatten", {2, 3, 4, END}, NO_W, "axis=0", "float32[1,24]", 0, 0},
    {"Reshape", {2, 3, 4, END}, NO_W, "shape=[0,-1]", "float32[2,12]", 0, 1},
    {"Squeeze", {2, 1, 4, 1, END}, NO_W, "axes=[1]", "float32[2,4,1]", 0, 11},
    {"Squeeze", {2, 1, 4, 1, END}, NO_W, "", "float32[2,4]", 0, 11},
    {"Unsqueeze", {2, 4, END}, NO_W, "axes=[0,-1]", "float32[1,2,4,1]", 0, 11},
    {"Slice", {2, 10, END}, NO_W, "starts=[1];ends=[-1];axes=[1]", "float32[2,8]", 0, 9},
    {"Slice",
     {2, 10, END},
     NO_W,
     "starts=[-3];ends=[9223372036854775807];axes=[1]",
     "float32[2,3]",
     0,
     9},
    {"Slice", {2, 0, END}, NO_W, "starts=[-1];ends=[9];axes=[1]", "float32[2,0]", 0, 9},
    {"Pad", {1, 3, 7, END}, NO_W, "pads=[0,1,2,0,1,3]", "float32[1,5,12]", 0, 2},
    {"Split", {2, 7, END}, NO_W, "axis=1", "float32[2,7]", 0, 11},
    {"ReduceMean", {2, 3, 4, END}, NO_W, "axes=[1,-1];keepdims=0", "float32[2]", 0, 11},
    {"ReduceMax", {2, 3, 4, END}, NO_W, "", "float32[1,1,1]", 0, 11},
    {"ArgMax", {2, 3, 4, END}, NO_W, "axis=-1;keepdims=0", "int64[2,3]", 0, 0},
    {"TopK", {2, 3, 9, END}, NO_W, "k=4", "float32[2,3,4]", 0, 9},
    {"Gather", {5, 6, END}, {2, 3, END}, "axis=1", "float32[5,2,3]", 0, 0},
    {"Shape", {5, 6, 7, END}, NO_W, "start=1;end=-1", "int64[1]", 0, 15},
    {"Cast", {5, END}, NO_W, "to=10", "float16[5]", 0, 0},
    {"LayerNormalization", {2, 5, END}, {5, END}, "axis=-1", "float32[2,5]", 0, 17},
    {"DynamicQuantizeLinear", {2, 5, END}, NO_W, "", "uint8[2,5]", 0, 0},
};

static void windows_slide(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        check(&windows[i]);
}

static void products_multiply(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        check(&products[i]);
}

static void layouts_change(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        check(&layouts[i]);
}

/* x.view(x.size(0), -1) as PyTorch writes it. */
static struct nrg_str view_chain(int64_t batch)
{
    struct nrg_str graph = {0}, shape = node_of("Shape", "x", "s");
    struct nrg_str pick = node_of("Gather", "s,zero", "b"),
                   up = node_of("Unsqueeze", "b,zeros", "b1");
    struct nrg_str join = node_of("Concat", "b1,rest", "t"), view = node_of("Reshape", "x,t", "y");
    struct nrg_str zero = node_of("Constant", "", "zero");
    attr_tensor(&zero, "value", INTS(0), true);
    attr_int(&join, "axis", 0);
    graph_node(&graph, &zero);
    graph_node(&graph, &shape);
    graph_node(&graph, &pick);
    graph_node(&graph, &up);
    graph_node(&graph, &join);
    graph_node(&graph, &view);
    graph_input(&graph, "x", 1, DIMS(batch, 3, 4, 5));
    graph_ints(&graph, "zeros", INTS(0));
    graph_ints(&graph, "rest", INTS(-1));
    graph_output(&graph, "y");
    return model_of(&graph, 13);
}

static void shapes_are_followed_through_contents(void **state)
{
    struct nrg_str file = view_chain(2);
    struct nrg_model model = read_good(&file);
    char text[80];
    (void)state;
    assert_string_equal(type_text(&model, "y", text, sizeof text), "float32[2,60]");
    nrg_model_release(&model);

    file = view_chain(DIM_N);
    model = read_good(&file);
    assert_string_equal(type_text(&model, "y", text, sizeof text), "float32[-2,60]");
    assert_int_equal(model.n_warnings, 1);
    assert_non_null(strstr(model.warnings[0], "x[0]"));
    nrg_model_release(&model);

    file = view_chain(DIM_ANY);
    model = read_good(&file);
    assert_string_equal(type_text(&model, "y", text, sizeof text), "float32[-1,-1]");
    nrg_model_release(&model);
}

/* Newer opsets give axes, bounds, sizes as inputs: a list each, behind x. */
static void lists_may_be_inputs(void **state)
{
    static const struct {
        const char *op, *inputs, *expect;
        int64_t a[4], b[4], c[4], d[4]; /* END-terminated int64 inputs */
    } cases[] = {
        {"Slice", "x,a,b,c,d", "float32[2,3]", {7, END}, {1, END}, {1, END}, {-2, END}},
        {"Slice", "x,a,b", "float32[1,10]", {1, 0, END}, {2, 99, END}, {END}, {END}},
        {"ReduceSum", "x,a", "float32[2,1]", {1, END}, {END}, {END}, {END}},
        {"Squeeze", "x,a", "float32[10]", {0, END}, {END}, {END}, {END}},
        {"Unsqueeze", "x,a", "float32[2,1,10]", {1, END}, {END}, {END}, {END}},
        {"Expand", "x,a", "float32[3,2,10]", {3, 1, 1, END}, {END}, {END}, {END}},
        {"Tile", "x,a", "float32[4,30]", {2, 3, END}, {END}, {END}, {END}},
        {"Resize", "x,,,a", "float32[5,7]", {5, 7, END}, {END}, {END}, {END}},
        {"TopK", "x,a", "float32[2,4]", {4, END}, {END}, {END}, {END}},
        {"Reshape", "x,a", "float32[5,4]", {5, -1, END}, {END}, {END}, {END}},
        {"ConstantOfShape", "a", "float32[3,4]", {3, 4, END}, {END}, {END}, {END}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nrg_str graph = {0}, node = node_of(cases[i].op, cases[i].inputs, "y");
        const int64_t *lists[] = {cases[i].a, cases[i].b, cases[i].c, cases[i].d};
        bool squeeze = !strcmp(cases[i].op, "Squeeze");
        char text[80];
        graph_node(&graph, &node);
        graph_input(&graph, "x", 1, squeeze ? DIMS(1, 10) : DIMS(2, 10));
        for (int k = 0; k < 4; k++) {
            size_t n = 0;
            while (lists[k][n] != END)
                n++;
            if (n)
                graph_ints(&graph, (const char *[]){"a", "b", "c", "d"}[k], n, lists[k]);
        }
        struct nrg_str file = model_of(&graph, 13);
        struct nrg_model model = read_good(&file);
        if (strcmp(type_text(&model, "y", text, sizeof text), cases[i].expect))
            fail_msg("%s: %s, not %s", cases[i].op, text, cases[i].expect);
        nrg_model_release(&model);
    }
}

/* Declared types join the rules'; a contradiction is counted and the file's number stands. */
static void declared_shapes_are_used(void **state)
{
    struct nrg_str graph = {0}, odd = node_of("Mystery", "x", "m"), neg = node_of("Neg", "m", "y");
    pb_text(&odd, 7, "my.domain");
    graph_node(&graph, &odd);
    graph_node(&graph, &neg);
    graph_input(&graph, "x", 1, DIMS(2));
    struct nrg_str info = {0}, message;
    graph_input(&info, "m", 1, DIMS(8, 9));
    /* The same bytes under the number of value_info: 13 instead of 11. */
    assert_int_equal(info.text[0], 11 << 3 | 2);
    info.text[0] = 13 << 3 | 2;
    nrg_str_add(&graph, info.text, info.len);
    nrg_str_release(&info);
    message = model_of(&graph, 13);
    struct nrg_model model = read_good(&message);
    char text[80];
    (void)state;
    assert_string_equal(op_of(&model, "my.domain::Mystery")->kind, "my.domain::Mystery");
    assert_string_equal(type_text(&model, "y", text, sizeof text), "float32[8,9]");
    nrg_model_release(&model);
}

static void quantised_convolutions_count_alike(void **state)
{
    struct nrg_str graph = {0}, node = node_of("QLinearConv", "x,s,z,w,s,z,s,z", "y");
    graph_node(&graph, &node);
    graph_input(&graph, "x", 2, DIMS(1, 3, 8, 8));
    graph_weight(&graph, "w", DIMS(16, 3, 3, 3));
    graph_weight(&graph, "s", DIMS(1));
    graph_input(&graph, "z", 2, DIMS(1));
    struct nrg_str file = model_of(&graph, 13);
    struct nrg_model model = read_good(&file);
    char text[80];
    (void)state;
    assert_string_equal(type_text(&model, "y", text, sizeof text), "uint8[1,16,6,6]");
    assert_int_equal(macs_of(&model), 6 * 6 * 16 * 27);
    assert_false(model.params[0].is_buffer);
    assert_true(model.params[1].is_buffer);
    nrg_model_release(&model);
}

/* W [1, 4H, I] and R [1, 4H, H], once per step and sequence. */
static void recurrent_layers_count_their_weights(void **state)
{
    struct nrg_str graph = {0}, node = node_of("LSTM", "x,w,r", "y,h,");
    graph_node(&graph, &node);
    graph_input(&graph, "x", 1, DIMS(7, 3, 10));
    graph_weight(&graph, "w", DIMS(1, 80, 10));
    graph_weight(&graph, "r", DIMS(1, 80, 20));
    struct nrg_str file = model_of(&graph, 13);
    struct nrg_model model = read_good(&file);
    char text[80];
    (void)state;
    assert_string_equal(type_text(&model, "h", text, sizeof text), "float32[1,3,20]");
    assert_int_equal(macs_of(&model), 7 * 3 * 4 * 20 * (10 + 20));
    nrg_model_release(&model);
}

/* Dims that are fine alone, but whose product is beyond 63 bits: unknown, never wrapped. */
static void products_never_wrap(void **state)
{
    struct nrg_str graph = {0}, node = node_of("MatMul", "x,w", "y");
    graph_node(&graph, &node);
    graph_input(&graph, "x", 1, DIMS(INT64_C(1) << 40, 8));
    graph_input(&graph, "w", 1, DIMS(8, INT64_C(1) << 40));
    struct nrg_str file = model_of(&graph, 13);
    struct nrg_model model = read_good(&file);
    (void)state;
    assert_int_equal(macs_of(&model), -1);
    nrg_model_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_slide),
        cmocka_unit_test(products_multiply),
        cmocka_unit_test(layouts_change),
        cmocka_unit_test(shapes_are_followed_through_contents),
        cmocka_unit_test(lists_may_be_inputs),
        cmocka_unit_test(declared_shapes_are_used),
        cmocka_unit_test(quantised_convolutions_count_alike),
        cmocka_unit_test(recurrent_layers_count_their_weights),
        cmocka_unit_test(products_never_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The TorchScript text reader on syntax that the recorded models do not have: printers of 0.3 to
 * 1.7, odd types, constants and scopes. tests/unit/test_ts_cut.c has cut, edited and foreign
 * texts; tests/cli/test_graph_ts.py compares whole models with PyTorch's own view of them.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/reader.h"
#include "support/cmocka.h"

static void read_good(struct nrg_model *model, const char *text)
{
    struct nrg_source source = {
        .bytes = (const uint8_t *)text, .size = strlen(text), .name = "test.txt"};
    struct nrg_error err = {0};
    if (nrg_model_read_bytes(&source, NULL, model, &err))
        fail_msg("line %lld: %s\n%s", err.offset, err.what, text);
    assert_string_equal(model->format, "torchscript");
    if (model->n_warnings)
        fail_msg("%s\n%s", model->warnings[0], text);
    for (size_t i = 0; i < model->n_graphs; i++)
        assert_true(model->graphs[i]->complete);
}

static struct nrg_op *op_at(const struct nrg_model *model, size_t i)
{
    assert_true(i < model->graphs[0]->body->n_ops);
    return model->graphs[0]->body->ops[i];
}

static void assert_dims(const struct nrg_type *type, int rank, const int64_t *dims,
                        const int64_t *strides)
{
    assert_int_equal(type->kind, NRG_T_TENSOR);
    assert_int_equal(type->rank, rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(type->dims[i], dims[i]);
    assert_int_equal(type->strides != NULL, strides != NULL);
    for (int i = 0; strides && i < rank; i++)
        assert_int_equal(type->strides[i], strides[i]);
}

static void test_0_3(void **state)
{
    struct nrg_model model;
    read_good(&model,
              "graph(%1 : Double(2, 2)\n"
              "      %2 : Double(2, 2)\n"
              "      -------- stage 1 --------\n"
              "      %7 : Double(2, 2!)) {\n"
              "  %4 : Double(2, 2), %5 : Handle = ^Addmm(1, 1, False)(%2, %1), uses = [[%6.i0, "
              "%8.i1], []];\n"
              "  %6 : UNKNOWN_TYPE = Conv[kernels=[11, 11], group=1](%4, %1), uses = [%9.i0];\n"
              "  ---------------- stage 1 ----------------\n"
              "  %9 : Double(2, 2) = CppOp[N5torch8autograd3AddE](%6, %7), uses = [[%0.i0]], "
              "scope: Net/Block[b];\n"
              "  %10 : Double(2, 2) = cross[dim=-1](%9, %1), uses = [[%0.i1]];\n"
              "  return (%9, %10);\n"
              "}\n");
    const struct nrg_block *body = model.graphs[0]->body;
    assert_int_equal(body->n_inputs, 3);
    assert_int_equal(body->n_ops, 4);
    assert_int_equal(body->n_outputs, 2);
    assert_dims(body->inputs[2]->type, 2, (int64_t[]){2, 2}, NULL);
    assert_string_equal(op_at(&model, 0)->kind, "prim::PythonOp");
    assert_string_equal(op_at(&model, 0)->label, "Addmm");
    assert_string_equal(nrg_op_attr(op_at(&model, 0), "scalar_args")->s, "1, 1, False");
    assert_int_equal(op_at(&model, 0)->n_outputs, 2);
    assert_string_equal(op_at(&model, 1)->kind, "onnx::Conv");
    assert_int_equal(nrg_op_attr(op_at(&model, 1), "kernels")->is[1], 11);
    assert_int_equal(op_at(&model, 1)->outputs[0]->type->kind, NRG_T_UNKNOWN);
    assert_string_equal(op_at(&model, 2)->kind, "prim::CppOp");
    assert_string_equal(op_at(&model, 2)->label, "N5torch8autograd3AddE");
    assert_string_equal(op_at(&model, 2)->module, "b");
    assert_string_equal(op_at(&model, 3)->kind, "aten::cross");
    assert_int_equal(nrg_op_attr(op_at(&model, 3), "dim")->i, -1);
    nrg_model_release(&model);
}

static void test_0_4_arguments_are_attributes(void **state)
{
    struct nrg_model model;
    read_good(
        &model,
        "graph(%0 : Float(1, 3, 8, 8)\n      %1 : Float(4, 3, 3, 3)) {\n"
        "  %2 : Float(4) = Constant[value=<Tensor>](), scope: Net/Conv2d[c]\n"
        "  %3 : Float(1, 4, 6, 6) = _convolution[stride=[1, 1], padding=[0, 0], transposed=0, "
        "groups=1, benchmark=0](%0, %1, %2), scope: Net/Sequential[f]/Conv2d[0]\n"
        "  %4 : Float(1, 4, 6, 6) = addmm[beta={1}, alpha={0.5}](%3, %0, %1)\n"
        "  %5 : Dynamic = aten::select[name=a, b](%4)\n"
        "  %6 : string = prim::Constant[value=it's (odd, x] y]()\n"
        "  return (%5);\n}\n");
    assert_string_equal(op_at(&model, 0)->kind, "prim::Constant");
    assert_int_equal(nrg_op_attr(op_at(&model, 0), "value")->kind, NRG_A_TENSOR);
    assert_string_equal(op_at(&model, 0)->module, "c");
    assert_string_equal(op_at(&model, 1)->kind, "aten::_convolution");
    assert_string_equal(op_at(&model, 1)->module, "f.0");
    assert_int_equal(op_at(&model, 1)->n_attrs, 5);
    const struct nrg_attr *alpha = nrg_op_attr(op_at(&model, 2), "alpha");
    assert_int_equal(alpha->kind, NRG_A_TENSOR);
    assert_int_equal(alpha->n, 1);
    assert_true(alpha->fs[0] == 0.5 && !alpha->is);
    assert_string_equal(nrg_op_attr(op_at(&model, 3), "name")->s, "a, b");
    assert_int_equal(op_at(&model, 3)->outputs[0]->type->rank, -1);
    assert_int_equal(nrg_op_attr(op_at(&model, 4), "value")->kind, NRG_A_STRING);
    assert_string_equal(nrg_op_attr(op_at(&model, 4), "value")->s, "it's (odd, x] y");
    nrg_model_release(&model);
}

static void test_blocks_with_braces(void **state)
{
    struct nrg_model model;
    read_good(&model, "graph(%a : Tensor\n      %c : Tensor) {\n"
                      "  %1 : Tensor, %2 : Tensor = prim::Loop(%a, %c)\n"
                      "    block0(%i : int, %x : Tensor) {\n"
                      "      %3 : Tensor = prim::If(%x)\n"
                      "        block0() {\n"
                      "          -> (%a)\n"
                      "        }\n"
                      "        block1() {\n"
                      "          %4 : Tensor = aten::neg(%x)\n"
                      "          -> (%4)\n"
                      "        }\n"
                      "      -> (%3, %i)\n"
                      "    }\n"
                      "   = prim::Print(%1)\n"
                      "  return (%2);\n}\n");
    assert_int_equal(model.graphs[0]->body->n_ops, 2);
    assert_int_equal(model.graphs[0]->n_ops, 4);
    const struct nrg_op *loop = op_at(&model, 0);
    assert_int_equal(loop->n_blocks, 1);
    assert_int_equal(loop->blocks[0]->n_inputs, 2);
    assert_int_equal(loop->blocks[0]->n_outputs, 2);
    const struct nrg_op *branch = loop->blocks[0]->ops[0];
    assert_int_equal(branch->n_blocks, 2);
    assert_ptr_equal(branch->parent, loop->blocks[0]);
    assert_ptr_equal(branch->blocks[1]->owner, branch);
    assert_ptr_equal(branch->blocks[1]->outputs[0], branch->blocks[1]->ops[0]->outputs[0]);
    assert_int_equal(op_at(&model, 1)->n_outputs, 0);
    assert_int_equal(op_at(&model, 1)->line, 15);
    nrg_model_release(&model);
}

static void test_subgraphs_nest(void **state)
{
    struct nrg_model model;
    read_good(&model, "graph(%x : Float(*, *)):\n"
                      "  %y : Float(*, *) = prim::DifferentiableGraph_0(%x)\n"
                      "  %z : Float(*, *) = prim::FusionGroup_1[device=0](%y)\n"
                      "  return (%z)\n"
                      "with prim::DifferentiableGraph_0 = graph(%x : Float(*, *)):\n"
                      "  %y : Float(*, *) = prim::FusionGroup_0(%x)\n"
                      "  return (%y)\n"
                      "with prim::FusionGroup_0 = graph(%x : Float(*, *)):\n"
                      "  %a : Float(*, *) = aten::neg(%x)\n"
                      "  return (%a)\n"
                      "with prim::FusionGroup_1 = graph(%x : Float(*, *)):\n"
                      "  %b : Float(*, *) = aten::exp(%x)\n"
                      "  return (%b)\n");
    assert_int_equal(model.n_graphs, 4);
    const struct nrg_op *outer = op_at(&model, 0), *last = op_at(&model, 1);
    assert_string_equal(outer->kind, "prim::DifferentiableGraph");
    const struct nrg_graph *inside = nrg_op_attr(outer, "Subgraph")->graph;
    assert_ptr_equal(inside, model.graphs[1]);
    const struct nrg_op *fused = inside->body->ops[0];
    assert_string_equal(fused->kind, "prim::FusionGroup");
    assert_string_equal(nrg_op_attr(fused, "Subgraph")->graph->body->ops[0]->kind, "aten::neg");
    assert_string_equal(nrg_op_attr(last, "Subgraph")->graph->body->ops[0]->kind, "aten::exp");
    assert_int_equal(nrg_op_attr(last, "device")->i, 0);
    assert_ptr_not_equal(inside->body->inputs[0], model.graphs[0]->body->inputs[0]);
    nrg_model_release(&model);
}

static const struct {
    const char *text;
    enum nrg_dtype dtype;
    int rank;
    int64_t dims[4], strides[4]; /* strides[0] of 0: none */
} tensors[] = {
    {"Float(32:128, 128:1)", NRG_F32, 2, {32, 128}, {128, 1}},
    {"Float(1:1, requires_grad=0, device=cpu)", NRG_F32, 1, {1}, {1}},
    {"Half(2, 3, strides=[3, 1], requires_grad=1, device=cuda:0)", NRG_F16, 2, {2, 3}, {3, 1}},
    {"Float(3, 20!)", NRG_F32, 2, {3, 20}, {0}},
    {"Float(*, 8)", NRG_F32, 2, {-1, 8}, {0}},
    {"Float(SS(-2), 3, SS(-17))", NRG_F32, 3, {-2, 3, -17}, {0}},
    {"Long()", NRG_I64, 0, {0}, {0}},
    {"Long(requires_grad=0, device=cpu)", NRG_I64, 0, {0}, {0}},
    {"FloatTensor", NRG_F32, -1, {0}, {0}},
    {"BFloat16Tensor(requires_grad=0, device=cpu)", NRG_BF16, -1, {0}, {0}},
    {"Tensor", NRG_DTYPE_UNKNOWN, -1, {0}, {0}},
    {"Tensor(requires_grad=1)", NRG_DTYPE_UNKNOWN, -1, {0}, {0}},
    {"Tensor(*, 8, 8)", NRG_DTYPE_UNKNOWN, 3, {-1, 8, 8}, {0}},
    {"Float(2, 3)[Undefined]", NRG_F32, 2, {2, 3}, {0}},
    {"Tensor(dtype = Float , shape = (*, 10)", NRG_F32, 2, {-1, 10}, {0}},
    {"ProfiledTensor(dtype = Long , shape = (4, 10)", NRG_I64, 2, {4, 10}, {0}},
    {"Tensor(dtype =  Any , shape = (*)", NRG_DTYPE_UNKNOWN, -1, {0}, {0}},
    {"Float8_e4m3fn(7)", NRG_F8_E4M3FN, 1, {7}, {0}},
    {"QUInt4x2(2, 2)", NRG_QU4, 2, {2, 2}, {0}},
    {"UInt16(1)", NRG_U16, 1, {1}, {0}},
    {"ComplexDouble(2, strides=[1], layout=strided, device=privateuseone:0)",
     NRG_C128,
     1,
     {2},
     {1}},
};

static void test_tensor_types(void **state)
{
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        struct nrg_model model;
        char text[500];
        const char *t = tensors[i].text;
        snprintf(text, sizeof text,
                 "graph(%%a : %s,\n      %%b : %s):\n  %%c : %s, %%d : %s = aten::x(%%a, %%b)\n"
                 "  return (%%d)\n",
                 t, t, t, t);
        read_good(&model, text);
        const struct nrg_block *body = model.graphs[0]->body;
        assert_int_equal(body->n_inputs, 2);
        const struct nrg_op *op = op_at(&model, 0);
        const struct nrg_type *all[] = {body->inputs[0]->type, body->inputs[1]->type,
                                        op->outputs[0]->type, op->outputs[1]->type};
        for (size_t k = 0; k < 4; k++) {
            assert_int_equal(all[k]->dtype, tensors[i].dtype);
            assert_dims(all[k], tensors[i].rank, tensors[i].dims,
                        tensors[i].strides[0] ? tensors[i].strides : NULL);
        }
        nrg_model_release(&model);
    }
}

static void test_other_types(void **state)
{
    struct nrg_model model;
    read_good(
        &model,
        "graph(%self : __torch__.a.___torch_mangle_3.Net,\n"
        "      %a : (int?[]?, Tensor[], (Tensor)),\n"
        "      %b : NamedTuple(a : Tensor, b : int, c : str = x, d : int = (1, 2)),\n"
        "      %c : Dict(str, (int, Tensor?)[]),\n"
        "      %d : Union(Tensor, int[], NoneType),\n"
        "      %e : Future[Tensor], %f : Dict(str, Future(int)), %g : Enum<__torch__.Color>,\n"
        "      %h : InterfaceType<Iface>, %i : t, %j : Weird(1, 2)[], %k : ()):\n"
        "  return (%a)\n");
    const struct nrg_block *body = model.graphs[0]->body;
    assert_int_equal(body->n_inputs, 12);
    const struct nrg_type *type = body->inputs[0]->type;
    assert_int_equal(type->kind, NRG_T_CLASS);
    assert_string_equal(type->name, "__torch__.a.___torch_mangle_3.Net");
    type = body->inputs[1]->type;
    assert_int_equal(type->kind, NRG_T_TUPLE);
    assert_int_equal(type->n_args, 3);
    assert_int_equal(type->args[0]->kind, NRG_T_OPTIONAL);
    assert_int_equal(type->args[0]->args[0]->kind, NRG_T_LIST);
    assert_int_equal(type->args[0]->args[0]->args[0]->args[0]->kind, NRG_T_INT);
    assert_int_equal(type->args[2]->n_args, 1);
    assert_true(nrg_type_has_tensor(type));
    assert_int_equal(body->inputs[2]->type->n_args, 4);
    assert_int_equal(body->inputs[2]->type->args[2]->kind, NRG_T_STRING);
    assert_int_equal(body->inputs[3]->type->kind, NRG_T_DICT);
    assert_int_equal(body->inputs[4]->type->kind, NRG_T_UNION);
    assert_int_equal(body->inputs[4]->type->n_args, 3);
    assert_int_equal(body->inputs[5]->type->kind, NRG_T_FUTURE);
    assert_int_equal(body->inputs[6]->type->args[1]->kind, NRG_T_FUTURE);
    assert_string_equal(body->inputs[7]->type->name, "Enum<__torch__.Color>");
    assert_string_equal(body->inputs[8]->type->name, "Iface");
    assert_int_equal(body->inputs[9]->type->kind, NRG_T_OTHER);
    assert_string_equal(body->inputs[10]->type->name, "Weird(1, 2)[]");
    assert_int_equal(body->inputs[11]->type->kind, NRG_T_TUPLE);
    nrg_model_release(&model);
}

static const struct nrg_attr *constant(struct nrg_model *model, const char *type, const char *value)
{
    char text[600];
    snprintf(text, sizeof text,
             "graph():\n  %%1 : %s = prim::Constant[value=%s]() # a:1:2\n"
             "  return (%%1)\n",
             type, value);
    read_good(model, text);
    assert_string_equal(op_at(model, 0)->source, "a:1:2");
    return nrg_op_attr(op_at(model, 0), "value");
}

static void assert_constant(const char *type, const char *value, enum nrg_attr_kind kind, int64_t i,
                            double f, const char *s)
{
    struct nrg_model model;
    const struct nrg_attr *attr = constant(&model, type, value);
    assert_int_equal(attr->kind, kind);
    assert_int_equal(attr->i, i);
    assert_true(attr->f == f || (isnan(f) && isnan(attr->f)));
    assert_int_equal(attr->s != NULL, s != NULL);
    if (s)
        assert_string_equal(attr->s, s);
    nrg_model_release(&model);
}

static void test_scalars(void **state)
{
    assert_constant("int", "9223372036854775807", NRG_A_INT, INT64_MAX, 0x1p63, NULL);
    assert_constant("int", "-9223372036854775808", NRG_A_INT, INT64_MIN, -0x1p63, NULL);
    assert_constant("bool", "1", NRG_A_BOOL, 1, 1, NULL);
    assert_constant("bool", "False", NRG_A_BOOL, 0, 0, NULL);
    assert_constant("float", "1", NRG_A_FLOAT, 1, 1, NULL);
    assert_constant("float", "1.", NRG_A_FLOAT, 0, 1, NULL);
    assert_constant("float", "1.0000000000000001e-05", NRG_A_FLOAT, 0, 1e-5, NULL);
    assert_constant("float", "-inf", NRG_A_FLOAT, 0, -INFINITY, NULL);
    assert_constant("float", "nan", NRG_A_FLOAT, 0, NAN, NULL);
    assert_constant("complex", "1.-2.5j", NRG_A_OTHER, 0, 0, "1.-2.5j");
    assert_constant("Enum<__torch__.C>", "__torch__.C.RED", NRG_A_OTHER, 0, 0, "__torch__.C.RED");
    assert_constant("Device", "torch.device(\"cuda:0\")", NRG_A_STRING, 0, 0, "cuda:0");
    assert_constant("Device", "\"cpu\"", NRG_A_STRING, 0, 0, "cpu");
    assert_constant("(int, str)", "(1, \"a, b=]\")", NRG_A_OTHER, 0, 0, "(1, \"a, b=]\")");
    assert_constant("Dict(str, int)", "{\"k\": 1, \"j\": 2}", NRG_A_OTHER, 0, 0,
                    "{\"k\": 1, \"j\": 2}");
    assert_constant("__torch__.C", "object(0x55d0)", NRG_A_OTHER, 0, 0, "object(0x55d0)");
}

static void test_strings(void **state)
{
    assert_constant("str", "\"a # b ] ) , scope: z = \"", NRG_A_STRING, 0, 0,
                    "a # b ] ) , scope: z = ");
    assert_constant("str", "\"\\'q\\' \\\"d\\\" \\\\ \\t\\n.\"", NRG_A_STRING, 0, 0,
                    "'q' \"d\" \\ \t\n.");
    /* é as 1.13 prints it, and as an unsigned printer would. */
    assert_constant("str", "\"\\0)+\\/.)\"", NRG_A_STRING, 0, 0, "\303\251");
    assert_constant("str", "\"\\303\\251\"", NRG_A_STRING, 0, 0, "\303\251");
    assert_constant("str", "\"\\001\"", NRG_A_STRING, 0, 0, "?");
    assert_constant("str", "\"\"", NRG_A_STRING, 0, 0, "");
}

static void test_lists_and_tensors(void **state)
{
    struct nrg_model model;
    const struct nrg_attr *attr = constant(&model, "int[]", "[1, -2, 3]");
    assert_int_equal(attr->kind, NRG_A_INTS);
    assert_int_equal(attr->n, 3);
    assert_int_equal(attr->is[1], -2);
    nrg_model_release(&model);
    attr = constant(&model, "float[]", "[1., inf, 2]");
    assert_int_equal(attr->kind, NRG_A_FLOATS);
    assert_true(attr->fs[2] == 2 && isinf(attr->fs[1]));
    nrg_model_release(&model);
    attr = constant(&model, "bool[]", "[True, False]");
    assert_int_equal(attr->kind, NRG_A_INTS);
    assert_int_equal(attr->is[0], 1);
    nrg_model_release(&model);
    attr = constant(&model, "str[]", "[\"a]\", \"b\"]");
    assert_int_equal(attr->kind, NRG_A_STRINGS);
    assert_string_equal(attr->ss[0], "a]");
    nrg_model_release(&model);
    attr = constant(&model, "float[]", "annotate(List[float], [])");
    assert_int_equal(attr->kind, NRG_A_FLOATS);
    assert_int_equal(attr->n, 0);
    nrg_model_release(&model);
    attr = constant(&model, "Long(2, 2)", " 1 -2  3  4 [ CPULongType{2,2} ]");
    assert_int_equal(attr->kind, NRG_A_TENSOR);
    assert_int_equal(attr->tensor->dtype, NRG_I64);
    assert_dims(attr->tensor, 2, (int64_t[]){2, 2}, NULL);
    assert_int_equal(attr->n, 4);
    assert_int_equal(attr->is[1], -2);
    nrg_model_release(&model);
    attr = constant(&model, "Float(2)", "0.01 *  1.5000  2.5000 [ CUDAFloatType{2} ]");
    assert_int_equal(attr->kind, NRG_A_TENSOR);
    assert_int_equal(attr->tensor->dtype, NRG_F32);
    assert_int_equal(attr->n, 0);
    nrg_model_release(&model);
    attr = constant(&model, "Float(0)", "[ CPUFloatType{0} ]");
    assert_int_equal(attr->kind, NRG_A_TENSOR);
    assert_int_equal(attr->tensor->dims[0], 0);
    nrg_model_release(&model);
}

static void test_scopes(void **state)
{
    static const struct {
        const char *scope, *module;
    } cases[] = {
        {"__module.layer1/__module.layer1.0/__module.layer1.0.conv1", "layer1.0.conv1"},
        {"__module", ""},
        {"ResNet/Sequential[layer3]/Bottleneck[20]/Conv2d[conv2]", "layer3.20.conv2"},
        {"ResNet", ""},
        {"a.Net::", ""},
        {"a.Net::/t.Seq::layer1/t.Block::layer1.0/t.Conv2d::conv1", "layer1.0.conv1"},
        {"a.Net::/t.Seq::f/t.B::f.1/t.Seq::conv/t.C::conv.0/t.D::conv.0.0", "f.1.conv.0.0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nrg_model model;
        char text[400];
        snprintf(
            text, sizeof text,
            "graph(%%x : Tensor):\n  %%1 : Tensor = aten::neg(%%x), scope: %s # /a b/<c>.py:1:2\r\n"
            "  %%2 : Tensor = aten::neg(%%1)\n  return (%%2)\n",
            cases[i].scope);
        read_good(&model, text);
        assert_string_equal(op_at(&model, 0)->scope, cases[i].scope);
        assert_string_equal(op_at(&model, 0)->module, cases[i].module);
        assert_string_equal(op_at(&model, 0)->source, "/a b/<c>.py:1:2");
        assert_null(op_at(&model, 1)->scope);
        assert_string_equal(op_at(&model, 1)->module, "");
        nrg_model_release(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_0_3),
        cmocka_unit_test(test_0_4_arguments_are_attributes),
        cmocka_unit_test(test_blocks_with_braces),
        cmocka_unit_test(test_subgraphs_nest),
        cmocka_unit_test(test_tensor_types),
        cmocka_unit_test(test_other_types),
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_lists_and_tensors),
        cmocka_unit_test(test_scopes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

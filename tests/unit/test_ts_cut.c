/*
 * The TorchScript text reader on what people paste: graphs amid logs and prose, cut or edited
 * ones, several in a file, texts of other programs, and hostile ones.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/reader.h"
#include "support/cmocka.h"

static int read_as(const char *format, struct nrg_model *model, const char *text, size_t len,
                   struct nrg_error *err)
{
    struct nrg_source source = {.bytes = (const uint8_t *)text, .size = len, .name = "test.txt"};
    *err = (struct nrg_error){0};
    return nrg_model_read_bytes(&source, format, model, err);
}

static void read_good(struct nrg_model *model, const char *text)
{
    struct nrg_error err;
    if (read_as(NULL, model, text, strlen(text), &err))
        fail_msg("line %lld: %s\n%s", err.offset, err.what, text);
}

static void assert_refused(const char *text, int code, const char *reason)
{
    struct nrg_model model;
    struct nrg_error err;
    assert_int_equal(read_as(NULL, &model, text, strlen(text), &err), code);
    if (!strstr(err.what, reason))
        fail_msg("'%s' does not say '%s'", err.what, reason);
}

static void assert_warned(const struct nrg_model *model, const char *reason)
{
    for (size_t i = 0; i < model->n_warnings; i++)
        if (strstr(model->warnings[i], reason))
            return;
    fail_msg("no warning says '%s'; %zu do: %s", reason, model->n_warnings,
             model->n_warnings ? model->warnings[0] : "");
}

static void test_text_around_graphs(void **state)
{
    struct nrg_model model;
    read_good(&model, "\xef\xbb\xbfHere is my graph (it is long):\n"
                      "```text\n"
                      "traced.graph=graph(%x : Tensor):\n"
                      "  %1 : Tensor = aten::neg(%x) # a.py:1:2\n"
                      "  return (%1)\n"
                      "```\nand the submodule\n\n"
                      "### layer.0\n"
                      "graph(%x : Tensor,\n\n      %y : int):\n"
                      "  %1 : Tensor = aten::exp(%x)\n"
                      "\n"
                      "  return (%1, %y)\n"
                      "Thanks for graph(s)!\n");
    assert_int_equal(model.n_graphs, 2);
    assert_int_equal(model.n_warnings, 0);
    assert_string_equal(model.graphs[0]->name, "");
    assert_string_equal(model.graphs[1]->name, "layer.0");
    assert_int_equal(model.graphs[1]->body->n_inputs, 2);
    assert_int_equal(model.graphs[1]->body->ops[0]->line, 13);
    assert_null(model.graphs[1]->body->ops[0]->module);
    nrg_model_release(&model);
}

static void test_prefixes(void **state)
{
    struct nrg_model model;
    read_good(&model, "[DUMP graph_executor.cpp:610] Optimized Graph\n"
                      "[DUMP graph_executor.cpp:610] graph(%x.1 : Half(*, *),\n"
                      "[DUMP graph_executor.cpp:610]       %p : float):\n"
                      "[DUMP graph_executor.cpp:610]   %3 : bool = prim::If(%p)\n"
                      "[DUMP graph_executor.cpp:610]     block0():\n"
                      "[DUMP graph_executor.cpp:610]       -> (%x.1)\n"
                      "[DUMP graph_executor.cpp:610]   return (%3)\n"
                      "[DEBUG a.cpp:343] After EliminateDeadCodegraph(%0 : Tensor,\n"
                      "[DEBUG a.cpp:343]       %1 : Tensor):\n"
                      "[DEBUG a.cpp:343]   return (%1)\n"
                      "> graph(%x : int):\n>   %1 : int = aten::neg(%x)\n>   return (%1)\n");
    assert_int_equal(model.n_graphs, 3);
    assert_int_equal(model.n_warnings, 0);
    assert_int_equal(model.graphs[0]->body->n_inputs, 2);
    assert_int_equal(model.graphs[0]->body->ops[0]->n_blocks, 1);
    assert_int_equal(model.graphs[1]->body->n_inputs, 2);
    assert_true(model.graphs[0]->complete && model.graphs[1]->complete &&
                model.graphs[2]->complete);
    nrg_model_release(&model);
}

static void test_cut_at_the_end(void **state)
{
    struct nrg_model model;
    read_good(&model, "graph(%x : Tensor):\n"
                      "  %1 : Tensor = aten::neg(%x)\n"
                      "  %2 : Tensor = prim::If(%1)\n"
                      "    block0():\n"
                      "      %3 : Tensor = aten::neg(%x)\n"
                      "      %4 : Tensor = aten::ne");
    assert_false(model.graphs[0]->complete);
    assert_int_equal(model.graphs[0]->n_ops, 3);
    assert_int_equal(model.graphs[0]->body->ops[1]->blocks[0]->n_ops, 1);
    assert_warned(&model, "line 5: the graph ends without its return (it began at line 1)");
    assert_int_equal(model.n_warnings, 1);
    nrg_model_release(&model);
}

static void test_cut_and_another_follows(void **state)
{
    struct nrg_model model;
    read_good(&model, "graph(%x : Tensor):\n"
                      "  %1 : Tensor = aten::neg(%x)\n"
                      "```\nI left out the rest. The other graph(%y : Tensor):\n"
                      "  %1 : Tensor = aten::exp(%y)\n"
                      "  return (%1)\n");
    assert_int_equal(model.n_graphs, 2);
    assert_false(model.graphs[0]->complete);
    assert_true(model.graphs[1]->complete);
    nrg_model_release(&model);
}

static void test_lines_left_out(void **state)
{
    struct nrg_model model;
    read_good(&model, "graph(%x : Tensor):\n"
                      "  %1 : Tensor = aten::neg(%x)\n"
                      "  ...\n"
                      "  %7 : Tensor = aten::add(%1, %6, %5)\n"
                      "  %5 : int = prim::Constant[value=3]()\n"
                      "  return (%7)\n");
    const struct nrg_graph *graph = model.graphs[0];
    assert_false(graph->complete);
    assert_int_equal(graph->body->n_ops, 3);
    const struct nrg_op *add = graph->body->ops[1];
    assert_int_equal(add->n_inputs, 3);
    assert_int_equal(add->inputs[1]->type->kind, NRG_T_UNKNOWN);
    assert_null(add->inputs[1]->producer);
    assert_ptr_equal(add->inputs[2]->producer, graph->body->ops[2]);
    assert_int_equal(graph->n_values, 5);
    assert_warned(&model, "line 4: %6 is defined in a line that is missing (2 such values");
    nrg_model_release(&model);
}

static void test_unreadable_lines(void **state)
{
    struct nrg_model model;
    read_good(&model, "graph(%x : Tensor):\n"
                      "  %1 : Tensor = aten::neg(%x\n"
                      "  <<<<<<< HEAD\n"
                      "  %2 : Tensor = aten::neg(%x)\n"
                      "  return (%2)\n");
    assert_false(model.graphs[0]->complete);
    assert_int_equal(model.graphs[0]->body->n_ops, 1);
    assert_warned(&model, "line 2: 2 lines from here on are not TorchScript");
    nrg_model_release(&model);
}

static void test_dangling_in_a_whole_graph(void **state)
{
    assert_refused("graph(%x : Tensor):\n  %1 : Tensor = aten::add(%x, %y)\n  return (%1)\n",
                   -EBADMSG, "%y is used before anything defines it");
    assert_refused("graph(%x : Tensor):\n  %1 : Tensor = aten::neg(%1)\n  return (%1)\n", -EBADMSG,
                   "%1 is used before");
    assert_refused("graph(%x : Tensor):\n  %1 : Tensor = aten::neg(%2)\n"
                   "  %2 : Tensor = aten::neg(%1)\n  return (%1)\n",
                   -EBADMSG, "%2 is used before");
    assert_refused("graph(%x : Tensor):\n  return (%1)\n", -EBADMSG, "%1 is used before");
}

static void test_missing_subgraph(void **state)
{
    struct nrg_model model;
    read_good(&model, "graph(%x : Tensor):\n"
                      "  %1 : Tensor = prim::TensorExprGroup_0(%x)\n"
                      "  %2 : Tensor = mylib::op_7(%1)\n"
                      "  return (%2)\n"
                      "with prim::Other_3 = graph(%x : Tensor):\n  return (%x)\n");
    assert_string_equal(model.graphs[0]->body->ops[0]->kind, "prim::TensorExprGroup");
    assert_string_equal(model.graphs[0]->body->ops[1]->kind, "mylib::op_7");
    assert_warned(&model, "line 2: the graph of prim::TensorExprGroup_0 is not in the text");
    assert_warned(&model, "line 5: no node refers to this `with` graph");
    nrg_model_release(&model);
}

static void test_no_header(void **state)
{
    struct nrg_model model;
    read_good(&model, "My model has this part:\n\n"
                      "  %4 : Tensor = aten::add(%x, %2)\n"
                      "  %5 : Tensor = aten::neg(%4)\n"
                      "why?\n");
    assert_int_equal(model.graphs[0]->n_ops, 2);
    assert_false(model.graphs[0]->complete);
    assert_warned(&model, "no graph(");
    assert_warned(&model, "%x is defined in a line that is missing");
    nrg_model_release(&model);
}

static void test_hand_written(void **state)
{
    struct nrg_model model;
    read_good(&model, "graph(%a, %b: Tensor):\n"
                      "  # a comment of the author\n"
                      "  %c, %d = aten::x(%a,\n              %b)\n"
                      "  prim::Print(%c)\n"
                      "  return (%d)\n");
    assert_int_equal(model.n_warnings, 0);
    assert_true(model.graphs[0]->complete);
    assert_int_equal(model.graphs[0]->body->n_ops, 2);
    assert_int_equal(model.graphs[0]->body->ops[0]->n_inputs, 2);
    assert_int_equal(model.graphs[0]->body->inputs[1]->type->kind, NRG_T_TENSOR);
    nrg_model_release(&model);
}

static void test_foreign_texts(void **state)
{
    assert_refused("graph():\n    %x : [num_users=1] = placeholder[target=x]\n"
                   "    %add : [num_users=1] = call_function[target=operator.add](args = (%x, 1))\n"
                   "    return add\n",
                   -ENOTSUP, "torch.fx");
    assert_refused("graph(x):\n    %p : [#users=1] = self.p\n"
                   "    %add : [#users=1] = call_function[target=operator.add](args = (%x, %p))\n"
                   "    return add\n",
                   -ENOTSUP, "torch.export.save");
    assert_refused("graph torch-jit-export (\n  %input[FLOAT, 1x3]\n) {\n  %5 = Shape(%input)\n"
                   "  return %5\n}\n",
                   -ENOTSUP, ".onnx file");
    assert_refused("ExportedProgram:\n    class GraphModule(torch.nn.Module):\n        def forward",
                   -ENOTSUP, ".pt2");
    assert_refused("nothing of the kind\n", -EBADMSG, "no format");
    static const char utf16[] = "\xff\xfeg\0r\0a\0p\0h\0(\0%\0x\0)\0:\0";
    struct nrg_model model;
    struct nrg_error err;
    assert_int_equal(read_as(NULL, &model, utf16, sizeof utf16, &err), -ENOTSUP);
    assert_non_null(strstr(err.what, "UTF-16"));
}

static void test_bytes_that_are_no_text(void **state)
{
    struct nrg_model model;
    struct nrg_error err;
    static const char text[] = "graph(%x\xff\xfe : Tensor):\n"
                               "  %\xc3\xa9 : Ten\x01sor = aten::n\x80g(%x\xff\xfe) # a\0b\x07\n"
                               "  return (%\xc3\xa9)\n";
    assert_int_equal(read_as("torchscript", &model, text, sizeof text - 1, &err), 0);
    assert_string_equal(model.graphs[0]->body->inputs[0]->name, "x??");
    assert_string_equal(model.graphs[0]->body->outputs[0]->name, "\xc3\xa9");
    assert_string_equal(model.graphs[0]->body->ops[0]->kind, "aten::n?g");
    assert_string_equal(model.graphs[0]->body->ops[0]->source, "a b?");
    nrg_model_release(&model);
}

/* Head, then `n` times `unit`, then tail: refused for its depth, in no time and without a crash. */
static void assert_too_deep(const char *head, const char *unit, size_t n, const char *tail)
{
    struct nrg_str text = {0};
    struct nrg_model model;
    struct nrg_error err;
    nrg_str_add(&text, head, strlen(head));
    for (size_t i = 0; i < n; i++)
        nrg_str_add(&text, unit, strlen(unit));
    nrg_str_add(&text, tail, strlen(tail));
    assert_int_equal(read_as(NULL, &model, text.text, text.len, &err), -E2BIG);
    assert_non_null(strstr(err.what, "deep"));
    nrg_str_release(&text);
}

static void test_depth_is_bounded(void **state)
{
    assert_too_deep("graph(%x : ", "(", 1000000, "):\n");
    assert_too_deep("graph(%x : ", "Future[", 1000000, "):\n");
    assert_too_deep("graph(%x : int", "?", 1000000, "):\n");
    assert_too_deep("graph(%x : int):\n", " = prim::If(%x)\nblock0():\n", 100000, "");
}

static void test_sizes_beyond_63_bits(void **state)
{
    struct nrg_model model;
    read_good(&model, "graph(%x : Float(99999999999999999999, 2),\n"
                      "      %y : Float(9223372036854775807, 3)):\n  return (%x)\n");
    assert_int_equal(model.graphs[0]->body->inputs[0]->type->dims[0], NRG_DIM_UNKNOWN);
    assert_int_equal(nrg_type_numel(model.graphs[0]->body->inputs[1]->type), -2);
    assert_warned(&model, "63 bits");
    nrg_model_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_around_graphs),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_cut_at_the_end),
        cmocka_unit_test(test_cut_and_another_follows),
        cmocka_unit_test(test_lines_left_out),
        cmocka_unit_test(test_unreadable_lines),
        cmocka_unit_test(test_dangling_in_a_whole_graph),
        cmocka_unit_test(test_missing_subgraph),
        cmocka_unit_test(test_no_header),
        cmocka_unit_test(test_hand_written),
        cmocka_unit_test(test_foreign_texts),
        cmocka_unit_test(test_bytes_that_are_no_text),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_sizes_beyond_63_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

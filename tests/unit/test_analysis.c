/* One analysis: what it holds of a graph, of parameters alone, at another size, and of a wrong
 * file. */
#include "support/cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "graph/analysis.h"

static const char summary[] = "{\"__metadata__\":{},\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],"
                              "\"data_offsets\":[0,24]}}";

static int analyse(struct nrg_analysis *a, const char *text,
                   const struct nrg_analysis_options *options, struct nrg_error *err)
{
    const struct nrg_source source = {
        .bytes = (const uint8_t *)text, .size = strlen(text), .name = "net"};
    return nrg_analyse_bytes(a, &source, options, err);
}

/* y = x w of b rows: 16 x 32 MACs each. */
static const char *trace(char *out, size_t size, int b)
{
    snprintf(out, size,
             "graph(%%x : Float(%d, 16), %%w : Float(32, 16)):\n"
             "  %%c : None = prim::Constant()\n"
             "  %%y : Float(%d, 32) = aten::linear(%%x, %%w, %%c), scope: __module.fc\n"
             "  return (%%y)\n",
             b, b);
    return out;
}

static void counts_a_graph(void **state)
{
    char text[500];
    struct nrg_analysis a;
    struct nrg_analysis_options how = {.want_graph = true, .convention = NRG_CONVENTION_FVCORE};
    (void)state;
    assert_int_equal(analyse(&a, trace(text, sizeof text, 4), &how, NULL), 0);
    memset(text, 0, sizeof text); /* nothing points into the bytes */
    assert_string_equal(a.name, "net");
    assert_true(a.has_graph);
    assert_int_equal(a.totals.cost.macs, 4 * 16 * 32);
    assert_int_equal(a.totals.cost.flops, 4 * 16 * 32); /* one per MAC, as fvcore counts */
    assert_int_equal(a.convention, NRG_CONVENTION_FVCORE);
    assert_int_equal(a.tree.n, 2);
    assert_string_equal(a.tree.nodes[1].name, "fc");
    assert_int_equal(a.tree.nodes[1].cost.macs, 4 * 16 * 32);
    nrg_analysis_release(&a);
}

static void counts_at_another_size(void **state)
{
    char text[500], other[500];
    struct nrg_model second;
    const struct nrg_size batch = {"batch", 10};
    struct nrg_analysis_options how = {.trace = &second, .sizes = &batch, .n_sizes = 1};
    struct nrg_analysis a;
    (void)state;
    trace(other, sizeof other, 8);
    const struct nrg_source source = {
        .bytes = (const uint8_t *)other, .size = strlen(other), .name = "other"};
    assert_int_equal(nrg_model_read_bytes(&source, NULL, &second, NULL), 0);
    assert_int_equal(analyse(&a, trace(text, sizeof text, 4), &how, NULL), 0);
    assert_int_equal(a.totals.cost.macs, 10 * 16 * 32);
    nrg_analysis_release(&a);
    nrg_model_release(&second);
}

static void counts_parameters_alone(void **state)
{
    uint8_t file[8 + sizeof summary - 1 + 24] = {sizeof summary - 1};
    const struct nrg_source source = {.bytes = file, .size = sizeof file, .name = "weights"};
    struct nrg_analysis_options how = {0};
    struct nrg_analysis a;
    struct nrg_error err;
    (void)state;
    memcpy(file + 8, summary, sizeof summary - 1);
    assert_int_equal(nrg_analyse_bytes(&a, &source, &how, &err), 0);
    assert_false(a.has_graph);
    assert_int_equal(a.reduced.n_operators, 0);
    assert_int_equal(a.totals.params, 6);
    assert_int_equal(a.tree.nodes[0].params, 6);
    nrg_analysis_release(&a);
    how.want_graph = true;
    assert_int_equal(nrg_analyse_bytes(&a, &source, &how, &err), -ENODATA);
    assert_string_equal(err.where, "weights");
    assert_string_equal(err.what, "holds parameters but no graph");
}

/* A wrong file leaves its name and nothing to release, but releasing does no harm. */
static void names_a_wrong_file(void **state)
{
    static const struct nrg_analysis_options how;
    struct nrg_analysis a;
    struct nrg_error err;
    (void)state;
    assert_int_equal(analyse(&a, "no model", &how, &err), -EBADMSG);
    assert_string_equal(a.name, "net");
    assert_string_equal(err.where, "net");
    nrg_analysis_release(&a);
    assert_int_equal(nrg_analyse(&a, "/nowhere/model.onnx", &how, &err), -ENOENT);
    assert_string_equal(a.name, "/nowhere/model.onnx");
    nrg_analysis_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_a_graph),
        cmocka_unit_test(counts_at_another_size),
        cmocka_unit_test(counts_parameters_alone),
        cmocka_unit_test(names_a_wrong_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

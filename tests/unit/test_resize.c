/* Graphs at other sizes: two traces tell what scales, symbols are set, the rest is refused. */
#include "support/cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "graph/module_tree.h"
#include "graph/reader.h"
#include "graph/resize.h"
#include "graph/resize_symbols.h"

/* ids, embedding, a view to rows, a product, and a slice that is one shorter. */
static void write_trace(char *out, size_t size, int b, int s)
{
    snprintf(out, size,
             "graph(%%x : Long(%d, %d), %%w : Float(100, 16), %%v : Float(32, 16)):\n"
             "  %%c : int = prim::Constant[value=0]()\n"
             "  %%e : Float(%d, %d, 16, strides=[%d, 16, 1]) = aten::embedding(%%w, %%x, %%c, %%c, "
             "%%c)\n"
             "  %%p : Float(%d, 16, %d, strides=[%d, 1, 16]) = aten::permute(%%e, %%c)\n"
             "  %%r : Float(%d, 16, strides=[16, 1]) = aten::reshape(%%e, %%c)\n"
             "  %%y : Float(%d, 32, strides=[32, 1]) = aten::linear(%%r, %%v, %%c)\n"
             "  return (%%y)\n",
             b, s, b, s, 16 * s, b, s, 16 * s, b * s, b * s);
}

static void read_text(struct nrg_model *model, const char *text)
{
    struct nrg_source source = {
        .bytes = (const uint8_t *)text, .size = strlen(text), .name = "trace"};
    assert_int_equal(nrg_model_read_bytes(&source, NULL, model, NULL), 0);
}

static int64_t macs_of(struct nrg_model *model)
{
    struct nrg_reduced reduced;
    struct nrg_module_tree tree;
    struct nrg_totals totals;
    assert_int_equal(nrg_reduce(model, NULL, &reduced, NULL), 0);
    assert_int_equal(nrg_cost_all(&reduced, NRG_CONVENTION_NRG), 0);
    assert_int_equal(nrg_module_tree_make(&tree, model, &reduced, NULL), 0);
    assert_int_equal(nrg_totals_of(&tree, &reduced, &totals), 0);
    assert_int_equal(totals.unknown_operators, 0);
    nrg_module_tree_release(&tree);
    nrg_reduced_release(&reduced);
    return totals.cost.macs;
}

static int resize(int b1, int s1, int b2, int s2, int batch, int seq, int64_t *macs,
                  struct nrg_error *err)
{
    char first[2000], second[2000];
    struct nrg_model a, b;
    struct nrg_size sizes[2] = {{"batch", batch}, {"seq", seq}};
    write_trace(first, sizeof first, b1, s1);
    write_trace(second, sizeof second, b2, s2);
    read_text(&a, first);
    read_text(&b, second);
    int rc = nrg_model_resize(&a, &b, sizes, seq ? 2 : 1, "trace", err);
    if (!rc) {
        *macs = macs_of(&a);
        /* Strides follow: the permuted tensor stays permuted, and dense. */
        const struct nrg_type *p = a.graphs[0]->body->ops[2]->outputs[0]->type;
        assert_non_null(p->strides);
        assert_int_equal(p->strides[0], 16 * p->dims[2]);
        assert_int_equal(p->strides[1], 1);
    }
    nrg_model_release(&a);
    nrg_model_release(&b);
    return rc;
}

static void scales_by_two_traces(void **state)
{
    int64_t macs = 0;
    (void)state;
    assert_int_equal(resize(2, 8, 6, 8, 5, 0, &macs, NULL), 0);
    assert_int_equal(macs, 5 * 8 * 16 * 32);
    assert_int_equal(resize(2, 8, 6, 10, 7, 12, &macs, NULL), 0);
    assert_int_equal(macs, 7 * 12 * 16 * 32);
}

static void refuse(int b2, int s2, int batch, int seq, const char *what)
{
    struct nrg_error err = {0};
    int64_t macs;
    assert_int_equal(resize(2, 8, b2, s2, batch, seq, &macs, &err), -ENOTSUP);
    if (!strstr(err.what, what))
        fail_msg("'%s' does not say '%s'", err.what, what);
}

static void refuses_what_is_not_told(void **state)
{
    struct nrg_model a, b;
    struct nrg_error err = {0};
    struct nrg_size size = {"batch", 4};
    char text[2000];
    (void)state;
    refuse(6, 8, 4, 9, "both traces have the sequence 8");
    refuse(4, 16, 4, 9, "same factor");
    write_trace(text, sizeof text, 2, 8);
    read_text(&a, text);
    assert_int_equal(nrg_model_resize(&a, NULL, &size, 1, "trace", &err), -ENOTSUP);
    assert_non_null(strstr(err.what, "no symbolic dimension 'batch'"));
    read_text(&b, "graph(%x : Long(4, 8)):\n  %y : Long(4, 8) = aten::neg(%x)\n  return (%y)\n");
    assert_int_equal(nrg_model_resize(&a, &b, &size, 1, "trace", &err), -ENOTSUP);
    assert_non_null(strstr(err.what, "differ in more than sizes"));
    nrg_model_release(&a);
    nrg_model_release(&b);
}

static void evaluates_symbols(void **state)
{
    static const struct {
        const char *name;
        int64_t value;
    } cases[] = {{"s0", 7},          {"2*s0", 14},
                 {"s0 + 1", 8},      {"(s0*s1)//2", 10},
                 {"s1 - s0", -1},    {"s0**2", -1},
                 {"Max(1, s0)", -1}, {"4*(s0 - s1)", 16},
                 {"s0*s0*s0", 343},  {"9999999999*9999999999", -1}};
    struct nrg_model model = {0};
    struct nrg_symbols symbols = {.model = &model};
    (void)state;
    struct nrg_symbol s1 = {.dim = -3, .name = "s1", .example = 3};
    assert_int_equal(nrg_model_add_symbol(&model, &s1), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nrg_symbol s = {.dim = -10 - (int64_t)i, .name = cases[i].name, .example = -1};
        assert_int_equal(nrg_model_add_symbol(&model, &s), 0);
    }
    assert_int_equal(nrg_symbols_find(&model, "s0", -1), -10);
    assert_int_equal(nrg_symbols_set(&symbols, -10, 7), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(nrg_symbols_value(&symbols, -10 - (int64_t)i), cases[i].value);
    nrg_symbols_release(&symbols);
    nrg_model_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_by_two_traces),
        cmocka_unit_test(refuses_what_is_not_told),
        cmocka_unit_test(evaluates_symbols),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

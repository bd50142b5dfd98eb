/*
 * The tables of rules and the pieces of the reduction that text fixtures reach badly: order of
 * the tables, derived kinds, arithmetic that must not wrap, strides, shapes as people see them.
 */
#include <math.h>
#include <string.h>

#include "graph/cost/internal.h"
#include "graph/module_tree.h"
#include "graph/reduce/internal.h"
#include "report/graph/report.h"
#include "report/units.h"
#include "support/cmocka.h"

static const struct nrg_cost_rule *find(const char *kind, struct nrg_cost_rule *scratch)
{
    const struct nrg_cost_rule *rule = nrg_cost_rule_find(kind, scratch);
    assert_non_null(rule);
    return rule;
}

static void tables_are_sorted(void **state)
{
    for (size_t f = 0; nrg_cost_families[f]; f++) {
        const struct nrg_cost_rule *rules = nrg_cost_families[f]->rules;
        for (size_t i = 1; i < nrg_cost_families[f]->n; i++)
            if (strcmp(rules[i - 1].kind, rules[i].kind) >= 0)
                fail_msg("%s stands before %s", rules[i - 1].kind, rules[i].kind);
    }
}

static void kinds_are_derived(void **state)
{
    struct nrg_cost_rule scratch;
    const struct nrg_cost_rule *rule = find("aten::linear", &scratch);
    assert_int_equal(rule->class, NRG_CLASS_COMPUTE);
    assert_string_equal(rule->code, "G");
    assert_ptr_equal(find("aten::add.Tensor", &scratch)->cost, nrg_cost_add_sub);
    rule = find("aten::gelu_", &scratch);
    assert_true(rule->flags & NRG_OP_IN_PLACE);
    assert_string_equal(rule->code, "E4");
    assert_int_equal(find("aten::permute_copy", &scratch)->class, NRG_CLASS_MOVE);
    assert_int_equal(find("_convolution", &scratch)->cost == nrg_cost_convolution, 1);
    assert_int_equal(find("Constant", &scratch)->class, NRG_CLASS_CONSTANT);
    /* Two underscores are Python's, not in place. */
    assert_false(find("aten::__and__", &scratch)->flags & NRG_OP_IN_PLACE);
}

static void strangers_are_opaque(void **state)
{
    struct nrg_cost_rule scratch;
    char kind[400];
    const char *const kinds[] = {"aten::frobnicate", "my_ops::fused", "", "::", "a::b_", "_"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct nrg_cost_rule *rule = find(kinds[i], &scratch);
        assert_int_equal(rule->class, NRG_CLASS_COMPUTE);
        assert_true(rule->flags & NRG_OP_OPAQUE);
    }
    memset(kind, 'x', sizeof kind - 1);
    kind[sizeof kind - 1] = '\0';
    assert_true(find(kind, &scratch)->flags & NRG_OP_NOT_RECORDED);
}

static void arithmetic_does_not_wrap(void **state)
{
    assert_int_equal(nrg_cost_mul(3, 4), 12);
    assert_int_equal(nrg_cost_mul(INT64_MAX, 2), NRG_COST_UNKNOWN);
    assert_int_equal(nrg_cost_mul(0, NRG_COST_UNKNOWN), NRG_COST_UNKNOWN);
    assert_int_equal(nrg_cost_add(INT64_MAX, 1), NRG_COST_UNKNOWN);
    assert_int_equal(nrg_cost_add(NRG_COST_UNKNOWN, 1), NRG_COST_UNKNOWN);
}

static struct nrg_type tensor(int rank, const int64_t *dims, const int64_t *strides)
{
    return (struct nrg_type){
        .kind = NRG_T_TENSOR, .dtype = NRG_F32, .rank = rank, .dims = dims, .strides = strides};
}

static bool viewable(int rank, const int64_t *dims, const int64_t *strides, int new_rank,
                     const int64_t *new_dims)
{
    struct nrg_type in = tensor(rank, dims, strides), out = tensor(new_rank, new_dims, NULL);
    return nrg_reduce_viewable(&in, &out);
}

#define D(...) ((const int64_t[]){__VA_ARGS__})

static void views_follow_strides(void **state)
{
    assert_true(viewable(3, D(2, 3, 4), D(12, 4, 1), 2, D(6, 4)));
    assert_true(viewable(3, D(2, 3, 4), D(12, 4, 1), 1, D(24)));
    assert_true(viewable(2, D(6, 4), D(4, 1), 4, D(2, 1, 3, 4)));
    assert_false(viewable(2, D(3, 4), D(1, 3), 1, D(12)));               /* transposed */
    assert_true(viewable(2, D(3, 4), D(1, 3), 3, D(3, 2, 2)));           /* splits one dim */
    assert_false(viewable(3, D(2, 3, 4), D(12, 1, 3), 2, D(2, 12)));     /* inner two swapped */
    assert_true(viewable(3, D(2, 3, 4), D(12, 1, 3), 4, D(1, 2, 3, 4))); /* ones fit anywhere */
    assert_false(viewable(2, D(4, 3), D(0, 1), 1, D(12)));               /* expanded */
    assert_true(viewable(3, D(2, 1, 3), D(3, 99, 1), 1, D(6)));          /* stride of a 1 is moot */
    assert_true(viewable(0, NULL, NULL, 1, D(1)));
    assert_true(viewable(2, D(0, 4), D(4, 1), 1, D(0)));
    /* Where nothing is known it is taken for a view. */
    assert_true(viewable(2, D(3, -1), D(1, 3), 1, D(12)));
    assert_true(viewable(2, D(3, 4), NULL, 1, D(12)));
}

static void bytes_of_what_is_stored(void **state)
{
    struct nrg_type plain = tensor(2, D(4, 3), D(3, 1));
    struct nrg_type expanded = tensor(2, D(4, 3), D(0, 1));
    struct nrg_type unknown = tensor(2, D(4, -1), NULL);
    struct nrg_type huge = tensor(2, D(INT64_MAX / 2, 4), NULL);
    struct nrg_type four_bits = plain;
    four_bits.dtype = NRG_U4;
    assert_int_equal(nrg_type_bytes(&plain), 48);
    assert_int_equal(nrg_type_bytes(&expanded), 12);
    assert_int_equal(nrg_type_bytes(&unknown), NRG_COST_UNKNOWN);
    assert_int_equal(nrg_type_bytes(&huge), NRG_COST_UNKNOWN);
    assert_int_equal(nrg_type_bytes(&four_bits), 6);
}

static void numbers_for_people(void **state)
{
    char buf[64];
    struct nrg_type t = tensor(3, D(1, -1, 7), NULL), scalar = tensor(0, NULL, NULL);
    assert_string_equal(nrg_show_dims(buf, sizeof buf, &t), "1x?x7");
    assert_string_equal(nrg_show_dims(buf, sizeof buf, &scalar), "scalar");
    assert_string_equal(nrg_show_dims(buf, sizeof buf, NULL), "-");
    assert_string_equal(nrg_show_dims(buf, 4, &t), "1x?");
    assert_string_equal(nrg_show_integer(11689512).text, "11,689,512");
    assert_string_equal(nrg_show_power(9.9999).text, "10.00 W"); /* four digits, not five */
    assert_string_equal(nrg_show_power(9.9994).text, "9.999 W");
    assert_string_equal(nrg_show_energy(-99.999).text, "-100.0 J");
    assert_string_equal(nrg_show_energy(0.99999).text, "1000 mJ");
    assert_string_equal(nrg_show_band(10, 9, 11.5, "+-").text, "+- 1.500 J");
    assert_string_equal(nrg_show_band(1089, 461, 3532, "+-").text, "461.0 J .. 3532 J");
    assert_string_equal(nrg_show_band(1, 0, 1.8, "+-").text, "+- 1.000 J");
    assert_string_equal(nrg_show_band(1, 0, 2.1, "+-").text,
                        "0.000 J .. 2.100 J"); /* not 1 +- 1.1 */
    assert_string_equal(nrg_show_band(1, NAN, 2.1, "+-").text, "-");
    assert_string_equal(nrg_show_integer(0).text, "0");
    assert_string_equal(nrg_show_integer(-1).text, "-");
    assert_string_equal(nrg_show_count(1814073344).text, "1.814 G");
    assert_string_equal(nrg_show_count(999999).text, "1.000 M");
    assert_string_equal(nrg_show_count(INT64_MAX).text, "9.223 E");
    assert_string_equal(nrg_show_count(-1).text, "-");
    assert_string_equal(nrg_show_amount(9999.9).text, "9999");
    assert_string_equal(nrg_show_amount(3.77979e71).text, "3.78e+71");
    assert_string_equal(nrg_show_amount(INFINITY).text, "inf");
    assert_string_equal(nrg_show_amount(NAN).text, "-");
}

/* ---- einsum ---- */

static void einsum(const char *equation, const struct nrg_type *types, size_t n, int64_t macs)
{
    struct nrg_arg items[4] = {0}, *pointers[4];
    struct nrg_arg list = {.kind = NRG_ARG_LIST, .items = pointers, .n_items = n};
    struct nrg_cost cost = {0};
    for (size_t i = 0; i < n; i++) {
        items[i] = (struct nrg_arg){.kind = NRG_ARG_TENSOR, .type = &types[i]};
        pointers[i] = &items[i];
    }
    nrg_cost_einsum_of(equation, &list, &cost);
    assert_int_equal(cost.macs, macs);
}

static void einsum_contracts(void **state)
{
    struct nrg_type ab[] = {tensor(2, D(3, 4), NULL), tensor(2, D(4, 5), NULL)};
    struct nrg_type batch[] = {tensor(4, D(2, 8, 6, 4), NULL), tensor(4, D(2, 8, 7, 4), NULL)};
    struct nrg_type three[] = {tensor(2, D(3, 4), NULL), tensor(2, D(4, 5), NULL),
                               tensor(2, D(5, 6), NULL)};
    struct nrg_type unknown[] = {tensor(2, D(3, -1), NULL), tensor(2, D(4, 5), NULL)};
    einsum("ij,jk->ik", ab, 2, 60);
    einsum(" i j , j k ", ab, 2, 60);
    einsum("bhqd,bhkd->bhqk", batch, 2, 2 * 8 * 6 * 7 * 4);
    einsum("...qd,...kd->...qk", batch, 2, 2 * 8 * 6 * 7 * 4);
    einsum("ij,jk,kl->il", three, 3, 3 * 4 * 5 + 3 * 5 * 6);
    einsum("ij,jk->ik", unknown, 2, NRG_COST_UNKNOWN);
    einsum("ijk,jk->ik", ab, 2, NRG_COST_UNKNOWN); /* letters and dims disagree */
    einsum("ij->ji", ab, 1, 0);
    einsum("", ab, 2, NRG_COST_UNKNOWN);
}

/* ---- parameters that share memory ---- */

static void add_param(struct nrg_model *model, const char *name, const struct nrg_type *type,
                      const char *storage)
{
    struct nrg_param param = {
        .name = name, .type = type, .trainable = 1, .storage = storage, .bytes = -1};
    assert_int_equal(nrg_model_add_param(model, &param), 0);
}

static const struct nrg_tree_node *node(const struct nrg_module_tree *tree, const char *name)
{
    for (size_t i = 0; i < tree->n; i++)
        if (!strcmp(tree->nodes[i].name, name))
            return &tree->nodes[i];
    return NULL;
}

static void tied_weights_count_once(void **state)
{
    struct nrg_model model = {0};
    struct nrg_module_tree tree;
    struct nrg_totals totals;
    struct nrg_type type = tensor(2, D(10, 4), NULL);
    add_param(&model, "encoder.embed.weight", &type, "7");
    add_param(&model, "decoder.embed.weight", &type, "7");
    add_param(&model, "decoder.head.weight", &type, "7");
    add_param(&model, "decoder.head.bias", &type, "8");
    assert_int_equal(nrg_module_tree_make(&tree, &model, NULL, NULL), 0);
    assert_int_equal(nrg_totals_of(&tree, NULL, &totals), 0);
    assert_int_equal(totals.params, 80);
    assert_int_equal(totals.param_bytes, 320);
    assert_int_equal(node(&tree, "")->params, 80);
    assert_int_equal(node(&tree, "encoder")->params, 40);
    assert_int_equal(node(&tree, "decoder")->params, 80);
    assert_int_equal(node(&tree, "decoder.head")->params, 80);
    nrg_module_tree_release(&tree);
    nrg_model_release(&model);
}

static void alike_siblings_fold(void **state)
{
    struct nrg_model model = {0};
    struct nrg_module_tree tree;
    struct nrg_type small = tensor(1, D(4), NULL), large = tensor(1, D(5), NULL);
    add_param(&model, "layer.0.w", &small, NULL);
    add_param(&model, "layer.1.w", &small, NULL);
    add_param(&model, "layer.2.w", &large, NULL);
    add_param(&model, "layer.3.w", &small, NULL);
    assert_int_equal(nrg_module_tree_make(&tree, &model, NULL, NULL), 0);
    assert_int_equal(node(&tree, "layer.0")->repeats, 2);
    assert_int_equal(node(&tree, "layer.1")->repeats, 0);
    assert_int_equal(node(&tree, "layer.2")->repeats, 1);
    assert_int_equal(node(&tree, "layer.3")->repeats, 1);
    assert_int_equal(node(&tree, "layer")->size, 5);
    nrg_module_tree_release(&tree);
    nrg_model_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_sorted),       cmocka_unit_test(kinds_are_derived),
        cmocka_unit_test(strangers_are_opaque),    cmocka_unit_test(arithmetic_does_not_wrap),
        cmocka_unit_test(views_follow_strides),    cmocka_unit_test(bytes_of_what_is_stored),
        cmocka_unit_test(numbers_for_people),      cmocka_unit_test(einsum_contracts),
        cmocka_unit_test(tied_weights_count_once), cmocka_unit_test(alike_siblings_fold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Data sets: copies become multiplicities, parts become operators, odd rows are counted, and wrong
 * files are refused with file and line.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predict/dataset/internal.h"
#include "predict/dataset/irene_shape.h"
#include "predict/dataset/summary.h"
#include "predict/kinds.h"

static const struct nrg_read_options no_options;

static int read_text(struct nrg_dataset *set, const char *text, struct nrg_error *err)
{
    char *copy = strdup(text);
    nrg_dataset_init(set);
    int rc = nrg_dataset_read_csv(set, copy, strlen(copy), "t.csv", &no_options, err);
    free(copy);
    return rc ? rc : nrg_dataset_finish(set, err);
}

#define HEAD                                                                                       \
    "id,device,model,node,kind,level,parts,macs,read_bytes,written_bytes,rest_bytes,energy_j\n"

static void merges_copies_and_composes(void **state)
{
    struct nrg_dataset set;
    (void)state;
    assert_int_equal(read_text(&set,
                               HEAD "1,d,m,a,Linear,operator,,10,4,4,,0.5\n"
                                    "2,d,m,b,Linear,operator,,10,4,4,,0.5\n"
                                    "3,d,m,c,Tanh,operator,,0,4,4,,0.1\n"
                                    "4,d,m,l,Layer,module,1:2 2 3,,,,7,1.8\n"
                                    "5,d,m,,m,model,4:12 3:1,,,,90,22\n",
                               NULL),
                     0);
    assert_int_equal(set.n, 4);
    assert_int_equal(set.rows_read, 5);
    assert_int_equal(set.rows[0].multiplicity, 2);
    const struct nrg_row *layer = &set.rows[2], *model = &set.rows[3];
    assert_int_equal(layer->n_leaves, 2);
    assert_int_equal(set.leaves[layer->first_leaf].count, 3); /* ids 1 and 2 are one measurement */
    assert_int_equal(set.leaves[model->first_leaf].count, 36);
    assert_int_equal(set.leaves[model->first_leaf + 1].count, 13);
    assert_true(isnan(nrg_row_feature(&set, 0, NRG_F_REST_BYTES)));
    assert_true(nrg_row_feature(&set, 3, NRG_F_REST_BYTES) == 90);
    nrg_dataset_release(&set);
}

static void understands_units(void **state)
{
    struct nrg_dataset set;
    (void)state;
    assert_int_equal(
        read_text(&set, "device,model,kind,level,energy_mj,time_us\nd,m,k,operator,2,30\n", NULL),
        0);
    assert_true(fabs(set.rows[0].energy_j - 2e-3) < 1e-15);
    assert_true(fabs(nrg_row_feature(&set, 0, NRG_F_TIME_S) - 30e-6) < 1e-15);
    nrg_dataset_release(&set);
}

static void counts_what_it_leaves_out(void **state)
{
    struct nrg_dataset set;
    (void)state;
    assert_int_equal(read_text(&set,
                               HEAD "1,d,m,a,K,operator,,1,1,1,,nan\n"
                                    "2,d,m,b,K,operator,,1,1,1,,-3\n"
                                    "3,d,m,c,K,operator,,1,1,1,,\n"
                                    "4,d,m,d,K,operator,,1,1,1,,1\n"
                                    "5,d,m,l,L,module,4 1,,,,0,1\n"
                                    "6,d,m,e,K,operator,,-1,1,1,,1\n",
                               NULL),
                     0);
    assert_int_equal(set.n, 1);
    assert_int_equal(set.n_notes, 3);
    assert_int_equal(set.notes[0].count, 3);
    assert_int_equal(set.notes[0].line, 2);
    assert_non_null(strstr(set.notes[0].text, "not a positive number"));
    assert_non_null(strstr(set.notes[1].text, "a part of it was left out"));
    assert_non_null(strstr(set.notes[2].text, "negative"));
    nrg_dataset_release(&set);
}

static void refuse(const char *text, const char *what, long long line)
{
    struct nrg_dataset set;
    struct nrg_error err = {0};
    assert_true(read_text(&set, text, &err) < 0);
    if (!strstr(err.what, what))
        fail_msg("'%s' does not say '%s'", err.what, what);
    assert_int_equal(err.offset, line);
    nrg_dataset_release(&set);
}

static void refuses_wrong_files(void **state)
{
    (void)state;
    refuse("", "is empty", -1);
    refuse("device,model,kind,level\nd,m,k,operator\n", "energy_j", 1);
    refuse("device,model,kind,energy_j\nd,m,k,1\n", "'level'", 1);
    refuse("device,model,kind,level,energy_j,energy_mj\n", "same quantity", 1);
    refuse(HEAD "1,d,m,a,K,operator,,1,1,1,,x\n", "energy_j is not a number", 2);
    refuse(HEAD "1,d,m,a,K,operator,,1,1,1,1\n", "11 cells, the header has 12", 2);
    refuse(HEAD "1,d,m,a,K,layer,,1,1,1,,1\n", "level is operator, module or model", 2);
    refuse(HEAD "1,d,m,a,K,module,2,1,1,1,,1\n", "part '2'", 2);
    refuse(HEAD "1,d,m,a,K,operator,,1,1,1,,1\n1,d,m,a,K,operator,,2,1,1,,1\n", "twice", 3);
    refuse(HEAD "1,,m,a,K,operator,,1,1,1,,1\n", "has no device", 2);
    refuse(
        "device,model,kind,level,counts,energy_j\nd,m,K,operator,nrg,1\nd,m,K,operator,irene,2\n",
        "can't be mixed", -1);
    refuse(HEAD, "no measurement", -1);
}

static void finds_the_noise_floor(void **state)
{
    struct nrg_dataset set;
    struct nrg_data_summary s;
    (void)state;
    assert_int_equal(read_text(&set,
                               HEAD "1,d,a,x,K,operator,,5,1,1,,1.0\n"
                                    "2,d,b,x,K,operator,,5,1,1,,1.2\n"
                                    "3,d,a,y,K,operator,,9,1,1,,2.0\n",
                               NULL),
                     0);
    assert_int_equal(nrg_data_summary_make(&s, &set), 0);
    assert_int_equal(s.all.repeated, 1);
    assert_true(fabs(s.all.spread_median - 0.2 / 1.1) < 1e-12);
    nrg_data_summary_release(&s);
    nrg_dataset_release(&set);
}

/* IrEne's counts, by its formulas, of shapes that are then solved for. */
static void solves_shapes(void **state)
{
    struct nrg_irene_cost c;
    double b = 24, s = 96, k = 768, n = 3072;
    (void)state;
    struct nrg_irene_op linear = {.kind = "Linear",
                                  .batch = b,
                                  .seq = s,
                                  .flops = b * s * n * (2 * k + 1),
                                  .bytes = 4 * b * (s * k + s * n + k * n) + 8 * b * s * n};
    assert_true(nrg_irene_shape(&linear, &c));
    assert_true(c.macs == b * s * k * n);
    assert_true(c.read_bytes + c.written_bytes == 4 * (b * s * k + k * n + n + b * s * n));
    assert_true(c.params == k * n + n);
    struct nrg_irene_op pooler = {.kind = "Linear",
                                  .batch = 8,
                                  .seq = 224,
                                  .flops = 2 * 8 * k * k,
                                  .bytes = 4 * (8 * k + k * k + 8 * k)};
    assert_true(nrg_irene_shape(&pooler, &c));
    assert_true(c.macs == 8 * k * k);
    struct nrg_irene_op product = {.kind = "MatMul",
                                   .batch = b,
                                   .seq = s,
                                   .flops = 2 * b * 12 * s * s * 64,
                                   .bytes = 4 * b * 12 * (2 * s * 64 + s * s)};
    assert_true(nrg_irene_shape(&product, &c));
    assert_true(c.copied_bytes == 2 * 4 * b * s * 768);
    product.flops += 1;
    assert_false(nrg_irene_shape(&product, &c));
}

static void groups_kinds(void **state)
{
    static const char *const pairs[][2] = {{"Linear", "gemm"},
                                           {"Conv1D", "gemm"},
                                           {"aten::addmm", "gemm"},
                                           {"onnx::Gemm", "gemm"},
                                           {"aten::matmul", "bmm"},
                                           {"MatMul", "bmm"},
                                           {"aten::conv2d", "conv"},
                                           {"Conv2d", "conv"},
                                           {"AdaptiveAvgPool2d", "pool"},
                                           {"aten::softmax", "softmax"},
                                           {"onnx::Tanh", "tanh"},
                                           {"aten::tanh", "tanh"},
                                           {"RNN", "rnn"},
                                           {"aten::_convolution", "conv"},
                                           {"Tanh", "tanh"}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_string_equal(nrg_kind_group(pairs[i][0]), pairs[i][1]);
    assert_string_equal(nrg_kind_group("aten::gelu"), "aten::gelu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_copies_and_composes),
        cmocka_unit_test(understands_units),
        cmocka_unit_test(counts_what_it_leaves_out),
        cmocka_unit_test(refuses_wrong_files),
        cmocka_unit_test(finds_the_noise_floor),
        cmocka_unit_test(solves_shapes),
        cmocka_unit_test(groups_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

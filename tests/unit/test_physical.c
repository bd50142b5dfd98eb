/*
 * The physical model on a device of known truth: coefficients come back, intervals hold what they
 * say, and sizes, kinds and states that were not trained on widen them.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predict/dataset/internal.h"
#include "predict/evaluate.h"
#include "predict/physical/interval.h"
#include "predict/profile_json.h"

#define CALL 2e-3
#define MAC  5e-11
#define BYTE 8e-10

static double next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (double)(1u << 24);
}

/* A factor around 1; the mean of four numbers, as real noise has tails. */
static double around_one(unsigned *seed, double noise)
{
    double sum = next(seed) + next(seed) + next(seed) + next(seed);
    return 1 + noise * (sum / 4 - 0.5);
}

/* Two kinds and a module of both, of several models, with relative noise. */
static void make_set(struct nrg_dataset *set, int models, double noise)
{
    char *text = NULL;
    size_t size = 0;
    unsigned seed = 7;
    FILE *out = open_memstream(&text, &size);
    static const struct nrg_read_options options;
    fprintf(out, "id,device,model,kind,level,parts,macs,read_bytes,written_bytes,rest_bytes,"
                 "energy_j\n");
    for (int i = 0, id = 1; i < 60 * models; i++, id += 3) {
        double macs = 1e6 * pow(10, 3 * next(&seed)), bytes = 1e5 * pow(10, 3 * next(&seed));
        double rest = 1e5 * pow(10, 2 * next(&seed));
        double gemm = (CALL + MAC * macs + BYTE * bytes) * around_one(&seed, noise);
        double norm = (CALL / 2 + BYTE * bytes) * around_one(&seed, noise);
        double module = (gemm + 2 * norm + 3 * 1e-3 + 1e-9 * rest) * around_one(&seed, noise);
        fprintf(out, "%d,d,m%d,Linear,operator,,%.17g,%.17g,0,,%.17g\n", id, i % models, macs,
                bytes, gemm);
        fprintf(out, "%d,d,m%d,LayerNorm,operator,,0,%.17g,0,,%.17g\n", id + 1, i % models, bytes,
                norm);
        fprintf(out, "%d,d,m%d,Block,module,%d %d:2,,,,%.17g,%.17g\n", id + 2, i % models, id,
                id + 1, rest, module);
    }
    fclose(out);
    nrg_dataset_init(set);
    assert_int_equal(nrg_dataset_read_csv(set, text, size, "made", &options, NULL), 0);
    assert_int_equal(nrg_dataset_finish(set, NULL), 0);
    free(text);
}

static const struct nrg_group *group(const struct nrg_physical *m, const char *kind)
{
    bool known;
    const struct nrg_group *g = nrg_physical_group(m, kind, true, &known);
    assert_true(known);
    return g;
}

static void near(double got, double truth, double part)
{
    if (!(fabs(got - truth) <= part * truth))
        fail_msg("%g instead of %g", got, truth);
}

static void finds_the_coefficients(void **state)
{
    struct nrg_dataset set;
    struct nrg_physical m;
    (void)state;
    make_set(&set, 4, 0);
    assert_int_equal(nrg_physical_fit(&m, &set, NULL, NRG_SET_STATIC, NULL), 0);
    near(group(&m, "Linear")->joules[NRG_PER_CALL], CALL, 1e-6);
    near(group(&m, "Linear")->joules[NRG_PER_MAC], MAC, 1e-6);
    near(group(&m, "Linear")->joules[NRG_PER_BYTE], BYTE, 1e-6);
    near(group(&m, "LayerNorm")->joules[NRG_PER_CALL], CALL / 2, 1e-6);
    near(m.module_joules[NRG_PER_OPERATOR], 1e-3, 1e-6);
    near(m.module_joules[NRG_PER_REST_BYTE], 1e-9, 1e-6);
    assert_true(m.module_joules[NRG_PER_SCORE_BYTE] == 0);
    for (size_t i = 0; i < set.n; i++) {
        struct nrg_estimate e;
        assert_int_equal(nrg_physical_row(&m, &set, i, &e), 0);
        near(e.energy_j, set.rows[i].energy_j, 1e-6);
    }
    nrg_physical_release(&m);
    nrg_dataset_release(&set);
}

static void intervals_hold(void **state)
{
    struct nrg_dataset set;
    struct nrg_physical_state physical = {.features = NRG_SET_STATIC, .confidence = 0.9};
    struct nrg_predictor predictor = nrg_physical_predictor(&physical);
    struct nrg_evaluate_options options = {0};
    struct nrg_evaluation e;
    (void)state;
    make_set(&set, 6, 0.6);
    assert_int_equal(nrg_evaluate(&e, &set, &predictor, &options, NULL), 0);
    assert_int_equal(e.n_folds, 6);
    for (int l = 0; l < 2; l++) {
        assert_true(e.levels[l].all.covered > 85 && e.levels[l].all.covered < 98.5);
        assert_true(e.levels[l].all.error < 15);
    }
    nrg_evaluation_release(&e);
    nrg_dataset_release(&set);
}

static double width(const struct nrg_estimate *e)
{
    return e->high_j / e->low_j;
}

static void widens_outside(void **state)
{
    struct nrg_dataset set;
    struct nrg_physical m;
    struct nrg_estimate in, small, large, other;
    (void)state;
    make_set(&set, 4, 0.2);
    assert_int_equal(nrg_physical_fit(&m, &set, NULL, NRG_SET_STATIC, NULL), 0);
    assert_int_equal(nrg_physical_calibrate(&m, &set, NULL, 0.95, NULL), 0);
    assert_true(m.held_out_models);
    nrg_physical_operator(&m, "Linear", (double[]){1, 3e7, 3e6}, &in);
    nrg_physical_operator(&m, "Linear", (double[]){1, 3e3, 3e2}, &small);
    nrg_physical_operator(&m, "Linear", (double[]){1, 3e12, 3e10}, &large);
    nrg_physical_operator(&m, "Conv2d", (double[]){1, 3e7, 3e6}, &other);
    assert_true(in.beyond == 0 && !in.unknown_kind);
    assert_true(width(&small) > 1.5 * width(&in) && width(&large) > 1.5 * width(&in));
    assert_true(other.unknown_kind && width(&other) > width(&in));
    assert_true(in.low_j < in.energy_j && in.energy_j < in.high_j);
    nrg_physical_release(&m);
    nrg_dataset_release(&set);
}

static int fit_text(const char *text, struct nrg_physical *m, struct nrg_error *err)
{
    static const struct nrg_read_options options;
    struct nrg_dataset set;
    char *copy = strdup(text);
    nrg_dataset_init(&set);
    assert_int_equal(nrg_dataset_read_csv(&set, copy, strlen(copy), "t", &options, NULL), 0);
    assert_int_equal(nrg_dataset_finish(&set, NULL), 0);
    int rc = nrg_physical_fit(m, &set, NULL, NRG_SET_STATIC, err);
    if (!rc)
        assert_int_equal(nrg_physical_calibrate(m, &set, NULL, 0.95, NULL), 0);
    nrg_dataset_release(&set);
    free(copy);
    return rc;
}

#define HEAD "device,model,kind,level,macs,read_bytes,energy_j\n"

static void survives_poor_data(void **state)
{
    struct nrg_physical m;
    struct nrg_error err = {0};
    struct nrg_estimate e;
    (void)state;
    assert_int_equal(fit_text(HEAD "d,m,Linear,operator,100,10,0.5\n", &m, NULL), 0); /* one row */
    nrg_physical_operator(&m, "Linear", (double[]){1, 100, 10}, &e);
    near(e.energy_j, 0.5, 1e-9);
    assert_false(m.held_out_models);
    nrg_physical_release(&m);
    /* All sizes equal: nothing tells the terms apart, the mean of 1/E is kept. */
    assert_int_equal(
        fit_text(HEAD "d,m,Linear,operator,9,9,1\nd,n,Linear,operator,9,9,1.1\n", &m, NULL), 0);
    nrg_physical_operator(&m, "Linear", (double[]){1, 9, 9}, &e);
    assert_true(e.energy_j > 0.99 && e.energy_j < 1.11);
    nrg_physical_release(&m);
    assert_int_equal(fit_text(HEAD "d,m,Linear,operator,,,1\n", &m, &err), -ENODATA);
    assert_non_null(strstr(err.what, "static features"));
}

/* A profile is the same text every time, and reads back as the same predictions. */
static void profiles_round_trip(void **state)
{
    struct nrg_dataset set;
    struct nrg_profile a, b;
    struct nrg_train_options options = {.confidence = 0.95};
    struct nrg_estimate x, y;
    (void)state;
    make_set(&set, 3, 0.3);
    assert_int_equal(nrg_profile_train(&a, &set, &options, NULL), 0);
    json_t *doc = nrg_profile_json(&a);
    char *text = json_dumps(doc, JSON_REAL_PRECISION(17));
    json_decref(doc);
    assert_int_equal(nrg_profile_parse(&b, text, strlen(text), "p", NULL), 0);
    for (double size = 1; size < 1e13; size *= 100) {
        nrg_physical_operator(&a.physical, "LayerNorm", (double[]){1, 0, size}, &x);
        nrg_physical_operator(&b.physical, "LayerNorm", (double[]){1, 0, size}, &y);
        near(y.energy_j, x.energy_j, 1e-12);
        near(y.high_j, x.high_j, 1e-12);
        near(y.low_j, x.low_j, 1e-12);
    }
    doc = nrg_profile_json(&b);
    char *again = json_dumps(doc, JSON_REAL_PRECISION(17));
    assert_string_equal(text, again);
    json_decref(doc);
    free(text);
    free(again);
    nrg_profile_release(&a);
    nrg_profile_release(&b);
    nrg_dataset_release(&set);
}

static void refuse(const char *text, const char *what)
{
    struct nrg_profile p;
    struct nrg_error err = {0};
    assert_true(nrg_profile_parse(&p, text, strlen(text), "p", &err) < 0);
    if (!strstr(err.what, what))
        fail_msg("'%s' does not say '%s'", err.what, what);
}

static void refuses_wrong_profiles(void **state)
{
    (void)state;
    refuse("{", "expected");
    refuse("{}", "not a profile");
    refuse("{\"schema\": \"nrg.profile/2\"}", "nrg.profile/1");
    refuse("{\"schema\": \"nrg.profile/1\"}", "'device'");
    refuse("{\"schema\": \"nrg.profile/1\", \"device\": \"d\", \"model\": \"magic\"}",
           "does not know");
    refuse(
        "{\"schema\": \"nrg.profile/1\", \"device\": \"d\", \"model\": \"physical\", \"features\": "
        "\"static\", \"counts\": \"nrg\", \"provenance\": \"measured\", \"confidence\": -1}",
        "confidence");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_coefficients), cmocka_unit_test(intervals_hold),
        cmocka_unit_test(widens_outside),         cmocka_unit_test(survives_poor_data),
        cmocka_unit_test(profiles_round_trip),    cmocka_unit_test(refuses_wrong_profiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

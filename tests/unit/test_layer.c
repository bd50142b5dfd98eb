/*
 * The layer model's parts: polynomials in their known number and order, the Lasso held to its
 * optimality conditions, and layers of a known law.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predict/compat/layer_json.h"
#include "predict/dataset/internal.h"

static double next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (double)(1u << 23) - 1;
}

static void counts_and_orders_products(void **state)
{
    double x[3] = {2, 3, 5}, out[20];
    double want[20] = {1, 2, 3, 5, 4, 6, 10, 9, 15, 25, 8, 12, 20, 18, 30, 50, 27, 45, 75, 125};
    (void)state;
    assert_int_equal(nrg_poly_count(13, 3), 560); /* the study's: 560, 364, 20 */
    assert_int_equal(nrg_poly_count(11, 3), 364);
    assert_int_equal(nrg_poly_count(3, 3), 20);
    assert_int_equal(nrg_poly_count(14, 3), 680); /* IrEne's: 84, 286, 680 */
    assert_int_equal(nrg_poly_count(10, 3), 286);
    assert_int_equal(nrg_poly_count(6, 3), 84);
    nrg_poly_expand(x, 3, 3, out);
    for (int i = 0; i < 20; i++)
        assert_true(out[i] == want[i]);
}

#define ROWS 80
#define N    12

/* |gradient| = alpha where a coefficient is not 0, and at most alpha where it is. */
static void lasso_is_optimal(void **state)
{
    static double x[ROWS * N], y[ROWS];
    (void)state;
    for (int positive = 0; positive < 2; positive++) {
        unsigned seed = 3;
        struct nrg_lasso fit;
        struct nrg_lasso_options o = {.alphas = 60, .folds = 10, .positive = positive};
        for (int i = 0; i < ROWS; i++) {
            for (int j = 0; j < N; j++)
                x[i * N + j] = next(&seed);
            y[i] = 2 * x[i * N] - 3 * x[i * N + 1] + 0.5 * x[i * N + 2] + 4 + 0.3 * next(&seed);
        }
        assert_int_equal(nrg_lasso_fit(&fit, x, y, ROWS, N, &o), 0);
        size_t kept = 0;
        for (int j = 0; j < N; j++) {
            double g = 0, mean = 0;
            for (int i = 0; i < ROWS; i++)
                mean += x[i * N + j] / ROWS;
            for (int i = 0; i < ROWS; i++) {
                double r = y[i] - fit.intercept;
                for (int k = 0; k < N; k++)
                    r -= fit.coefficients[k] * x[i * N + k];
                g += (x[i * N + j] - mean) * r / ROWS;
            }
            double b = fit.coefficients[j];
            kept += b != 0;
            assert_true(!positive || b >= 0);
            if (b != 0)
                assert_true(fabs(g - copysign(fit.alpha, b)) < 1e-5);
            else
                assert_true(g <= fit.alpha + 1e-5 && (positive || g >= -fit.alpha - 1e-5));
        }
        assert_true(kept >= 2 && kept < N);
        assert_true(fabs(fit.coefficients[0] - 2) < (positive ? 2 : 0.2));
        nrg_lasso_release(&fit);
    }
}

/* Dense layers whose time is linear in the work and whose power is constant. */
static void learns_a_law(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    static const struct nrg_read_options options;
    struct nrg_dataset set;
    struct nrg_layer_model m, again;
    struct nrg_layer_estimate e, f;
    double features[NRG_FEATURES];
    (void)state;
    fprintf(out, "device,model,kind,level,batch,in_0,out_0,time_s,energy_j\n");
    for (int i = 0; i < 60; i++) {
        double in = 64 + 32 * (i * 7 % 60), result = 64 + 64 * (i * 11 % 60);
        double time = 1e-5 + 1e-10 * in * result;
        fprintf(out, "d,m%d,dense,operator,1,%g,%g,%.17g,%.17g\n", i % 5, in, result, time,
                5 * time);
    }
    fclose(out);
    nrg_dataset_init(&set);
    assert_int_equal(nrg_dataset_read_csv(&set, text, size, "made", &options, NULL), 0);
    assert_int_equal(nrg_dataset_finish(&set, NULL), 0);
    assert_int_equal(nrg_layer_fit(&m, &set, NULL, false, 0.95, NULL), 0);
    assert_int_equal(m.rows[NRG_LAYER_DENSE], 60);
    assert_true(m.expected_error[NRG_LAYER_DENSE] < 0.05);
    for (int i = 0; i < NRG_FEATURES; i++)
        features[i] = NAN;
    features[NRG_F_BATCH] = 1;
    features[NRG_F_IN_0] = 1000;
    features[NRG_F_OUT_0] = 1000;
    assert_int_equal(nrg_layer_predict(&m, NRG_LAYER_DENSE, features, &e), 0);
    assert_true(fabs(e.time_s - 1.1e-4) < 5e-6);
    assert_true(fabs(e.power_w - 5) < 0.1);
    assert_int_not_equal(nrg_layer_predict(&m, NRG_LAYER_POOL, features, &f), 0);
    json_t *doc = nrg_layer_json(&m);
    assert_int_equal(nrg_layer_parse(&again, doc, "p", NULL), 0);
    assert_int_equal(nrg_layer_predict(&again, NRG_LAYER_DENSE, features, &f), 0);
    assert_true(fabs(f.energy.energy_j - e.energy.energy_j) < 1e-12);
    json_decref(doc);
    nrg_layer_release(&m);
    nrg_layer_release(&again);
    nrg_dataset_release(&set);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_and_orders_products),
        cmocka_unit_test(lasso_is_optimal),
        cmocka_unit_test(learns_a_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

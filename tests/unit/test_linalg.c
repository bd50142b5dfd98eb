/*
 * linalg: least squares and non-negative least squares, held to what defines their answers (the
 * normal equations, the Karush-Kuhn-Tucker conditions) and to small systems solved by hand.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/nnls.h"

#define N    12
#define ROWS 40

/* A repeatable stream of numbers in [-1, 1). */
static double next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (double)(1u << 23) - 1;
}

static void random_system(struct nrg_gram *s, unsigned seed, const double *scale)
{
    double row[N];
    assert_int_equal(nrg_gram_grow(s, N), 0);
    nrg_gram_clear(s);
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < N; i++)
            row[i] = next(&seed) * scale[i];
        nrg_gram_add(s, row, NULL, 0, next(&seed), 1);
    }
}

static double gradient(const struct nrg_gram *s, const double *x, size_t i)
{
    double g = s->b[i];
    for (size_t j = 0; j < N; j++)
        g -= s->a[nrg_packed(i, j)] * x[j];
    return g / sqrt(s->a[nrg_packed(i, i)]);
}

static void solves_normal_equations(void **state)
{
    double x[N], scale[N];
    struct nrg_gram s = {0};
    size_t rank;
    (void)state;
    for (int i = 0; i < N; i++)
        scale[i] = pow(10, i - 3); /* as calls, MiB and MACs differ */
    for (unsigned seed = 1; seed < 30; seed++) {
        random_system(&s, seed, scale);
        assert_int_equal(nrg_gram_least_squares(&s, x, &rank), 0);
        assert_int_equal(rank, N);
        for (int i = 0; i < N; i++)
            assert_true(fabs(gradient(&s, x, (size_t)i)) < 1e-9);
    }
    nrg_gram_release(&s);
}

static void nnls_meets_its_conditions(void **state)
{
    double x[N], scale[N];
    struct nrg_gram s = {0};
    size_t zeros = 0;
    (void)state;
    for (int i = 0; i < N; i++)
        scale[i] = pow(10, 6 - i);
    for (unsigned seed = 100; seed < 300; seed++) {
        random_system(&s, seed, scale);
        assert_int_equal(nrg_gram_nonnegative(&s, NULL, 0, 0, 0, x), 0);
        for (int i = 0; i < N; i++) {
            assert_true(x[i] >= 0);
            if (x[i] > 0)
                assert_true(fabs(gradient(&s, x, (size_t)i)) < 1e-9);
            else
                assert_true(gradient(&s, x, (size_t)i) < 1e-9);
            zeros += x[i] == 0;
        }
    }
    nrg_gram_release(&s);
    assert_true(zeros > 200); /* the bounds were at work */
}

/* A column twice: one of them explains, the other is 0, and the fit is exact. */
static void survives_rank_deficiency(void **state)
{
    struct nrg_gram s = {0};
    double x[3];
    size_t rank;
    (void)state;
    assert_int_equal(nrg_gram_grow(&s, 3), 0);
    for (int i = 1; i <= 4; i++) {
        double row[3] = {1, 1, i};
        nrg_gram_add(&s, row, NULL, 0, 2 + 3 * i, 1);
    }
    assert_int_equal(nrg_gram_least_squares(&s, x, &rank), 0);
    assert_int_equal(rank, 2);
    assert_true(fabs(x[0] + x[1] - 2) < 1e-9 && fabs(x[2] - 3) < 1e-9);
    assert_int_equal(nrg_gram_nonnegative(&s, NULL, 0, 0, 0, x), 0);
    assert_true(fabs(x[0] + x[1] - 2) < 1e-6 && fabs(x[2] - 3) < 1e-6);
    nrg_gram_release(&s);
}

static void knows_the_empty_cases(void **state)
{
    static const double row[2] = {0, 2};
    struct nrg_gram s = {0};
    double x[2] = {9, 9};
    (void)state;
    assert_int_equal(nrg_gram_nonnegative(&s, NULL, 0, 0, 0, x), 0);
    assert_true(x[0] == 9); /* no columns: nothing is written */
    assert_int_equal(nrg_gram_grow(&s, 2), 0);
    assert_int_equal(nrg_gram_nonnegative(&s, NULL, 0, 0, 0, x), 0); /* no rows */
    assert_true(x[0] == 0 && x[1] == 0);
    nrg_gram_add(&s, row, NULL, 0, -4, 1);
    assert_int_equal(nrg_gram_nonnegative(&s, NULL, 0, 0, 0, x), 0); /* zeros, and one that hurts */
    assert_true(x[0] == 0 && x[1] == 0);
    nrg_gram_clear(&s);
    nrg_gram_add(&s, row, NULL, 0, 4, 1);
    assert_int_equal(nrg_gram_nonnegative(&s, NULL, 0, 0, 0, x), 0);
    assert_true(x[0] == 0 && fabs(x[1] - 2) < 1e-11);
    nrg_gram_release(&s);
}

/* However many are summed up at once, and whatever is known of zeros. */
static void sums_are_those_of_single_numbers(void **state)
{
    double x[41];
    uint32_t touched[41];
    unsigned seed = 7;
    (void)state;
    for (size_t n = 1; n <= 41; n++) {
        struct nrg_gram all = {0}, some = {0};
        assert_int_equal(nrg_gram_grow(&all, n) + nrg_gram_grow(&some, n), 0);
        for (size_t i = 0; i < n; i++)
            x[i] = i % 5 == 3 ? next(&seed) : 0;
        size_t n_touched = 0;
        for (size_t i = 0; i < n; i++)
            if (x[i] != 0)
                touched[n_touched++] = (uint32_t)i;
        nrg_gram_add(&all, x, NULL, 0, 1.5, 0.7);
        nrg_gram_add(&some, x, touched, n_touched, 1.5, 0.7);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j <= i; j++) {
                assert_true(all.a[nrg_packed(i, j)] == 0.7 * x[i] * x[j]);
                assert_true(all.a[nrg_packed(i, j)] == some.a[nrg_packed(i, j)]);
            }
        nrg_scale(all.b, 2, n);
        for (size_t i = 0; i < n; i++)
            assert_true(all.b[i] == 2 * some.b[i] || fabs(all.b[i] - 2 * some.b[i]) < 1e-15);
        nrg_gram_release(&all);
        nrg_gram_release(&some);
    }
}

/* Rows are reduced several at once, in sums of several numbers: what comes out is the factor that
 * single rows and single numbers have, also where a column depends on those before. */
static void factor_does_not_depend_on_how_it_is_summed(void **state)
{
    static const double none[64] = {0};
    (void)state;
    for (size_t n = 1; n < 40; n++) {
        double rows[40][64], fast[40 * 41 / 2] = {0}, slow[40 * 41 / 2], floor[40];
        bool lost_fast[40], lost_slow[40];
        unsigned seed = (unsigned)n;
        for (size_t i = 0; i < n; i++) {
            memcpy(rows[i], i % 7 == 6 ? rows[i - 1] : none, sizeof rows[i]);
            for (size_t k = 0; i % 7 != 6 && k < 64; k++)
                rows[i][k] = next(&seed);
            floor[i] = 1e-9;
            for (size_t j = 0; j <= i; j++)
                for (size_t k = 0; k < 64; k++)
                    fast[nrg_packed(i, j)] += rows[i][k] * rows[j][k];
        }
        memcpy(slow, fast, sizeof slow);
        size_t rank = nrg_gram_factor(fast, n, floor, lost_fast, false);
        assert_int_equal(rank, nrg_gram_factor(slow, n, floor, lost_slow, true));
        assert_int_equal(rank, n - n / 7);
        assert_memory_equal(lost_fast, lost_slow, n * sizeof *lost_fast);
        for (size_t i = 0; i < n * (n + 1) / 2; i++)
            assert_true(fabs(fast[i] - slow[i]) < 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solves_normal_equations),
        cmocka_unit_test(nnls_meets_its_conditions),
        cmocka_unit_test(survives_rank_deficiency),
        cmocka_unit_test(knows_the_empty_cases),
        cmocka_unit_test(sums_are_those_of_single_numbers),
        cmocka_unit_test(factor_does_not_depend_on_how_it_is_summed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

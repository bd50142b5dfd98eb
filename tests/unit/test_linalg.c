/*
 * linalg: least squares and non-negative least squares, held to what defines their answers (the
 * normal equations, the Karush-Kuhn-Tucker conditions) and to small systems solved by hand.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/linalg.h"

#define N    12
#define ROWS 40

/* A repeatable stream of numbers in [-1, 1). */
static double next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (double)(1u << 23) - 1;
}

struct system {
    double gram[N * N], rhs[N];
};

static void random_system(struct system *s, unsigned seed, const double *scale)
{
    double row[N];
    *s = (struct system){0};
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < N; i++)
            row[i] = next(&seed) * scale[i];
        nrg_normal_add(s->gram, s->rhs, N, row, next(&seed), 1);
    }
}

static double gradient(const struct system *s, const double *x, int i)
{
    double g = s->rhs[i];
    for (int j = 0; j < N; j++)
        g -= s->gram[i * N + j] * x[j];
    return g / sqrt(s->gram[i * N + i]);
}

static void solves_normal_equations(void **state)
{
    double x[N], scale[N];
    struct system s;
    size_t rank;
    (void)state;
    for (int i = 0; i < N; i++)
        scale[i] = pow(10, i - 3); /* as calls, MiB and MACs differ */
    for (unsigned seed = 1; seed < 30; seed++) {
        random_system(&s, seed, scale);
        assert_int_equal(nrg_least_squares(s.gram, s.rhs, N, x, &rank), 0);
        assert_int_equal(rank, N);
        for (int i = 0; i < N; i++)
            assert_true(fabs(gradient(&s, x, i)) < 1e-9);
    }
}

static void nnls_meets_its_conditions(void **state)
{
    double x[N], scale[N];
    struct system s;
    size_t zeros = 0;
    (void)state;
    for (int i = 0; i < N; i++)
        scale[i] = pow(10, 6 - i);
    for (unsigned seed = 100; seed < 300; seed++) {
        random_system(&s, seed, scale);
        assert_int_equal(nrg_nnls(s.gram, s.rhs, N, x), 0);
        for (int i = 0; i < N; i++) {
            assert_true(x[i] >= 0);
            if (x[i] > 0)
                assert_true(fabs(gradient(&s, x, i)) < 1e-9);
            else
                assert_true(gradient(&s, x, i) < 1e-9);
            zeros += x[i] == 0;
        }
    }
    assert_true(zeros > 200); /* the bounds were at work */
}

/* A column twice: one of them explains, the other is 0, and the fit is exact. */
static void survives_rank_deficiency(void **state)
{
    double gram[9] = {0}, rhs[3] = {0}, x[3];
    size_t rank;
    (void)state;
    for (int i = 1; i <= 4; i++) {
        double row[3] = {1, 1, i};
        nrg_normal_add(gram, rhs, 3, row, 2 + 3 * i, 1);
    }
    assert_int_equal(nrg_least_squares(gram, rhs, 3, x, &rank), 0);
    assert_int_equal(rank, 2);
    assert_true(fabs(x[0] + x[1] - 2) < 1e-9 && fabs(x[2] - 3) < 1e-9);
    assert_int_equal(nrg_nnls(gram, rhs, 3, x), 0);
    assert_true(fabs(x[0] + x[1] - 2) < 1e-6 && fabs(x[2] - 3) < 1e-6);
}

static void knows_the_empty_cases(void **state)
{
    double gram[4] = {0, 0, 0, 4}, rhs[2] = {0, -8}, x[2] = {9, 9};
    (void)state;
    assert_int_equal(nrg_nnls(gram, rhs, 2, x), 0); /* a column of zeros, and one that hurts */
    assert_true(x[0] == 0 && x[1] == 0);
    rhs[1] = 8;
    assert_int_equal(nrg_nnls(gram, rhs, 2, x), 0);
    assert_true(x[0] == 0 && fabs(x[1] - 2) < 1e-12);
    assert_int_equal(nrg_nnls(gram, rhs, 0, x), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solves_normal_equations),
        cmocka_unit_test(nnls_meets_its_conditions),
        cmocka_unit_test(survives_rank_deficiency),
        cmocka_unit_test(knows_the_empty_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

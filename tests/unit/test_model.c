/*
 * The numbers of the one model (attribute/model/evidence.h), held to the formulas themselves: V,
 * its inverse and determinants are made here densely, by elimination, without a whitened row.
 */
#include "support/cmocka.h"

#include <math.h>
#include <string.h>

#include "attribute/model/evidence.h"

static void assert_near(double value, double truth, double off)
{
    if (!(fabs(value - truth) <= off))
        fail_msg("%.9g is not %.9g", value, truth);
}

#define ROWS    20
#define COLUMNS 4

/* A repeatable stream of numbers in [0, 1). */
static double next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (double)(1u << 24);
}

struct system {
    double x[ROWS][COLUMNS], y[ROWS], variance[ROWS], with_last[ROWS], prior[COLUMNS];
};

/* share: of the noise, what a row has in common with the one before. */
static void make_system(struct system *s, unsigned seed, double share)
{
    for (size_t i = 0; i < ROWS; i++) {
        s->y[i] = 10 * next(&seed);
        s->variance[i] = 0.5 + next(&seed);
        s->with_last[i] = i ? -share * sqrt(s->variance[i] * s->variance[i - 1]) : 0;
        for (size_t k = 0; k < COLUMNS; k++) {
            s->x[i][k] = next(&seed);
            s->y[i] += s->x[i][k] * (double)(5 * k);
        }
    }
    for (size_t k = 0; k < COLUMNS; k++)
        s->prior[k] = pow(10, (double)k * 2 - 2);
}

/* log |a| and the solution of a z = b, by elimination; a is symmetric and positive. */
static double eliminate(double a[ROWS][ROWS], double *b, size_t n)
{
    double log_det = 0;
    for (size_t i = 0; i < n; i++) {
        log_det += log(a[i][i]);
        for (size_t j = i + 1; j < n; j++) {
            double part = a[j][i] / a[i][i];
            for (size_t k = i; k < n; k++)
                a[j][k] -= part * a[i][k];
            b[j] -= part * b[i];
        }
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
    return log_det;
}

/* Covariance of the rows as the model has it: V, and X prior X' where `with_prior`. */
static void make_covariance(const struct system *s, bool with_prior, double v[ROWS][ROWS])
{
    memset(v, 0, sizeof(double[ROWS][ROWS]));
    for (size_t i = 0; i < ROWS; i++) {
        v[i][i] = s->variance[i];
        if (i)
            v[i][i - 1] = v[i - 1][i] = s->with_last[i];
    }
    for (size_t i = 0; with_prior && i < ROWS; i++)
        for (size_t j = 0; j < ROWS; j++)
            for (size_t k = 0; k < COLUMNS; k++)
                v[i][j] += s->x[i][k] * s->prior[k] * s->x[j][k];
}

static void add_all(const struct system *s, struct nrg_model_sums *sums)
{
    assert_int_equal(nrg_model_sums_init(sums, COLUMNS), 0);
    for (size_t i = 0; i < ROWS; i++) {
        double x[COLUMNS];
        memcpy(x, s->x[i], sizeof x);
        nrg_model_sums_add(sums, x, s->y[i], s->variance[i], s->with_last[i]);
    }
}

/* log p(y) = -1/2 (log |V + X prior X'| + y'(V + X prior X')^-1 y), but for a constant. */
static void evidence_is_that_of_the_rows(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 6; seed++) {
        struct system s;
        struct nrg_model_sums sums;
        struct nrg_arena memory = {0};
        struct nrg_model_room room;
        double v[ROWS][ROWS], z[ROWS], square = 0;
        make_system(&s, seed, seed % 2 ? 0 : 0.45);
        add_all(&s, &sums);
        make_covariance(&s, true, v);
        memcpy(z, s.y, sizeof z);
        double log_det = eliminate(v, z, ROWS);
        for (size_t i = 0; i < ROWS; i++)
            square += s.y[i] * z[i];
        assert_int_equal(nrg_model_room_init(&room, &memory, COLUMNS), 0);
        assert_near(nrg_model_evidence(&sums, s.prior, false, &room), -0.5 * (log_det + square),
                    1e-8 * square);
        nrg_arena_release(&memory);
        nrg_model_sums_release(&sums);
    }
}

/* X'V^-1 (y - X m) = m / prior, and C is the inverse of X'V^-1 X + 1 / prior. */
static void posterior_solves_its_equation(void **state)
{
    (void)state;
    for (unsigned seed = 11; seed <= 16; seed++) {
        struct system s;
        struct nrg_model_sums sums;
        struct nrg_arena memory = {0};
        struct nrg_model_room room;
        double mean[COLUMNS], c[COLUMNS * (COLUMNS + 1) / 2], g[COLUMNS][COLUMNS] = {{0}};
        make_system(&s, seed, seed % 2 ? 0 : 0.45);
        add_all(&s, &sums);
        assert_int_equal(nrg_model_room_init(&room, &memory, COLUMNS), 0);
        nrg_model_posterior(&sums, s.prior, mean, c, &room);
        for (size_t k = 0; k < COLUMNS; k++) {
            double v[ROWS][ROWS], z[ROWS], left = 0;
            make_covariance(&s, false, v);
            for (size_t i = 0; i < ROWS; i++)
                z[i] = s.x[i][k];
            eliminate(v, z, ROWS); /* V^-1 x_k */
            for (size_t i = 0; i < ROWS; i++) {
                double rest = s.y[i];
                for (size_t j = 0; j < COLUMNS; j++) {
                    rest -= s.x[i][j] * mean[j];
                    g[k][j] += z[i] * s.x[i][j];
                }
                left += z[i] * rest;
            }
            assert_near(left, mean[k] / s.prior[k], 1e-7 * (1 + fabs(left)));
            g[k][k] += 1 / s.prior[k];
        }
        for (size_t i = 0; i < COLUMNS; i++)
            for (size_t j = 0; j < COLUMNS; j++) {
                double unit = 0;
                for (size_t k = 0; k < COLUMNS; k++)
                    unit += g[i][k] * c[nrg_packed(k, j)];
                assert_near(unit, i == j ? 1 : 0, 1e-8);
            }
        nrg_arena_release(&memory);
        nrg_model_sums_release(&sums);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(evidence_is_that_of_the_rows),
                                       cmocka_unit_test(posterior_solves_its_equation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

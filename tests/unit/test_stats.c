/*
 * stats: sorting and medians, spread by hand, quantiles against closed forms and printed tables.
 */
#include "support/cmocka.h"

#include <math.h>

#include "base/search.h"
#include "base/stats.h"

static void check_near(double got, double want, double part)
{
    if (!(fabs(got - want) <= part * fabs(want)))
        fail_msg("%.17g is not %.17g", got, want);
}

static void sorts(void **state)
{
    double values[] = {3, -1, INFINITY, 2.5, 2.5, -INFINITY};
    int64_t whole[] = {INT64_MAX, 0, INT64_MIN, -7, 7};
    (void)state;
    nrg_sort(values, 6);
    assert_true(isinf(values[0]) && values[1] == -1 && values[2] == 2.5 && values[4] == 3);
    nrg_sort_i64(whole, 5);
    assert_true(whole[0] == INT64_MIN && whole[1] == -7 && whole[4] == INT64_MAX);
    nrg_sort(NULL, 0);
    nrg_sort_i64(NULL, 0);
}

static void finds_the_middle(void **state)
{
    double odd[] = {9, 1, 4}, even[] = {9, 1, 4, 5};
    int64_t whole[] = {30, 10, 20, 40};
    (void)state;
    assert_true(nrg_median(odd, 3) == 4);
    assert_true(nrg_median(even, 4) == 4.5);
    assert_true(nrg_median(even, 1) == 1);
    assert_true(isnan(nrg_median(NULL, 0)));
    assert_int_equal(nrg_median_i64(whole, 4), 30);
    assert_int_equal(nrg_median_i64(whole, 3), 20);
}

static void median_of_many_is_the_median(void **state)
{
    double sorted[40], moved[40];
    unsigned next = 1;
    (void)state;
    assert_true(isnan(nrg_median_of_many(NULL, 0)));
    for (unsigned turn = 0; turn < 400; turn++) {
        size_t n = 1 + turn % 40;
        for (size_t i = 0; i < n; i++) { /* many of them alike, in some turns all */
            next = next * 1664525u + 1013904223u;
            sorted[i] = moved[i] = (double)((next >> 16) % (1 + turn / 8));
        }
        assert_true(nrg_median_of_many(moved, n) == nrg_median(sorted, n));
    }
}

static void counts_in_order(void **state)
{
    static const struct {
        int64_t at;
        char rest[24];
    } items[] = {{INT64_MIN, ""}, {-3, ""}, {5, ""}, {5, ""}, {INT64_MAX, ""}};
    static const int64_t plain[] = {10, 20, 30};
    (void)state;
    assert_int_equal(nrg_count_up_to(&items->at, 5, sizeof *items, 5), 4);
    assert_int_equal(nrg_count_below(&items->at, 5, sizeof *items, 5), 2);
    assert_int_equal(nrg_count_up_to(&items->at, 5, sizeof *items, INT64_MIN), 1);
    assert_int_equal(nrg_count_below(&items->at, 5, sizeof *items, INT64_MIN), 0);
    assert_int_equal(nrg_count_below(&items->at, 5, sizeof *items, INT64_MAX), 4);
    assert_int_equal(nrg_count_up_to(&items->at, 5, sizeof *items, INT64_MAX), 5);
    for (int64_t v = 0; v < 40; v++)
        assert_int_equal(nrg_count_up_to(plain, 3, sizeof *plain, v), v / 10 < 3 ? v / 10 : 3);
    assert_int_equal(nrg_count_up_to(NULL, 0, 8, 7), 0);
}

/* 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares 32, t of 7 degrees of freedom 2.365. */
static void spreads(void **state)
{
    static const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
    (void)state;
    struct nrg_spread s = nrg_spread_of(values, 8);
    double half = 2.365 * sqrt(32.0 / 7 / 8);
    assert_int_equal(s.n, 8);
    assert_true(s.mean == 5);
    check_near(s.sd, sqrt(32.0 / 7), 1e-15);
    check_near(s.low, 5 - half, 1e-15);
    check_near(s.high, 5 + half, 1e-15);
    s = nrg_spread_of(values, 1);
    assert_true(s.mean == 2 && isnan(s.sd) && isnan(s.low) && isnan(s.high));
    assert_true(isnan(nrg_spread_of(values, 0).mean));
}

static void normal_quantiles(void **state)
{
    static const double table[][2] = {{0.5, 0.674489750196082},  {0.6826894921370859, 1},
                                      {0.9, 1.644853626951473},  {0.95, 1.959963984540054},
                                      {0.99, 2.575829303548901}, {0.999, 3.290526731491894}};
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        check_near(nrg_normal_half(table[i][0]), table[i][1], 1e-14);
    for (double z = 0.1; z < 8; z += 0.1) /* it is the inverse of erf */
        check_near(nrg_normal_half(erf(z / sqrt(2))), z, z < 6 ? 1e-7 : 1e-2);
}

static void student_quantiles(void **state)
{
    static const double table[][3] = {{0.95, 1, 12.706},   {0.95, 2, 4.303},    {0.95, 3, 3.182},
                                      {0.95, 5, 2.571},    {0.95, 10, 2.228},   {0.95, 30, 2.042},
                                      {0.99, 10, 3.169},   {0.90, 4, 2.132},    {0.99, 60, 2.660},
                                      {0.68, 1e9, 0.9945}, {0.95, 1e9, 1.95996}};
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        check_near(nrg_student_half(table[i][0], table[i][1]), table[i][2], 1.2e-3);
    /* One degree is Cauchy's distribution, two have a closed form. */
    check_near(nrg_student_half(0.5, 1), 1, 1e-14);
    check_near(nrg_student_half(0.8, 2), 0.8 / sqrt(0.5 * (1 - 0.8 * 0.8)), 1e-14);
    assert_true(nrg_student_half(0.95, INFINITY) == nrg_normal_half(0.95));
}

/* How likely t is beyond a printed quantile, and fractions between whole degrees of freedom. */
static void student_tails(void **state)
{
    (void)state;
    check_near(nrg_student_tails(12.7062, 1), 0.05, 1e-5);
    check_near(nrg_student_tails(2.2281, 10), 0.05, 1e-4);
    check_near(nrg_student_tails(-3.1693, 10), 0.01, 1e-4);
    check_near(nrg_student_tails(1.959964, INFINITY), 0.05, 1e-6);
    check_near(nrg_student_tails(0, 3), 1, 1e-12);
    assert_true(nrg_student_tails(1e12, 5) < 1e-50);
    for (double f = 1; f < 12; f += 0.25) {
        double t = nrg_student_half(0.95, f);
        check_near(nrg_student_tails(t, f), 0.05, 2e-3);
        assert_true(t > nrg_student_half(0.95, f + 0.25));
    }
}

static void chi_squared_quantiles(void **state)
{
    (void)state;
    /* printed tables; few degrees of freedom are what few runs have */
    check_near(nrg_chi_squared(0.025, 1), 0.00098207, 1e-5);
    check_near(nrg_chi_squared(0.025, 2), 0.050636, 1e-5);
    check_near(nrg_chi_squared(0.025, 4), 0.48442, 1e-5);
    check_near(nrg_chi_squared(0.975, 1), 5.0239, 1e-5);
    check_near(nrg_chi_squared(0.025, 60), 40.482, 1e-3);
    check_near(nrg_chi_squared(0.975, 10), 20.483, 5e-3);
    check_near(nrg_chi_squared(0.025, 10), 3.247, 1e-2);
    check_near(nrg_chi_squared(0.5, 30), 29.336, 1e-3);
}

/* Two ways to the same figure, each within what its own rounding allows. */
static void the_ways_agree(void **state)
{
    (void)state;
    assert_true(isinf(nrg_student_half95(0)));
    for (size_t f = 1; f < 200; f++) {
        check_near(nrg_student_half95(f), nrg_student_half(0.95, (double)f), 1.2e-3);
        assert_true(nrg_student_half95(f) > nrg_student_half95(f + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(median_of_many_is_the_median),
        cmocka_unit_test(sorts),
        cmocka_unit_test(finds_the_middle),
        cmocka_unit_test(counts_in_order),
        cmocka_unit_test(spreads),
        cmocka_unit_test(normal_quantiles),
        cmocka_unit_test(student_quantiles),
        cmocka_unit_test(student_tails),
        cmocka_unit_test(chi_squared_quantiles),
        cmocka_unit_test(the_ways_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

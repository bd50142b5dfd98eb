/*
 * Intervals of a ratio that are known to be true or not: simulated sets of runs with a known ratio,
 * scatter, outliers and a machine that drifts, judged over many comparisons; and closed forms.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "compare/effect.h"
#include "sensors/channel.h"

#define RUNS 30

/* Numbers of our own (xorshift64*), so that the product's code is not its own judge. */
static uint64_t state_;

static double uniform(void)
{
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return (double)((state_ * 0x2545f4914f6cdd1dULL) >> 11) / 9007199254740992.0;
}

static double normal(void)
{
    double u = uniform(), v = uniform();
    return sqrt(-2 * log(u + 1e-300)) * cos(2 * M_PI * v);
}

enum order { RANDOM, IN_TURN, BLOCKS };

struct world {
    size_t n_a, n_b;
    double ratio, scatter_a, scatter_b, drift;
    enum order order;
};

static void place(const struct world *w, struct nrg_compare_value *a, struct nrg_compare_value *b)
{
    size_t n = w->n_a + w->n_b, left_a = w->n_a, left_b = w->n_b;
    for (size_t i = 0; i < n; i++) {
        bool is_a = w->order == BLOCKS    ? left_a > 0
                    : w->order == IN_TURN ? i % 2 == 0
                                          : uniform() * (double)(left_a + left_b) < (double)left_a;
        is_a = (is_a && left_a) || !left_b;
        double at = (double)i / (double)n, drift = exp(w->drift * at);
        double scatter = is_a ? w->scatter_a : w->scatter_b;
        struct nrg_compare_value o = {.value = 100 * drift * exp(scatter * normal()) *
                                               (is_a ? 1 : w->ratio),
                                      .low = 1,
                                      .high = 1,
                                      .t_ns = 1700000000000000000 + (int64_t)i * 60000000000};
        *(is_a ? &a[--left_a] : &b[--left_b]) = o;
    }
}

struct judged {
    double holds, different, needed;
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static struct judged judge(const struct world *w, size_t times)
{
    struct nrg_compare_value a[RUNS], b[RUNS];
    struct judged j = {0};
    double *needed = calloc(times, sizeof *needed);
    assert_non_null(needed);
    state_ = 88172645463325252ULL;
    for (size_t i = 0; i < times; i++) {
        struct nrg_effect e;
        place(w, a, b);
        assert_int_equal(nrg_effect_find(&e, (struct nrg_sample){a, w->n_a},
                                         (struct nrg_sample){b, w->n_b}, 0.95),
                         0);
        j.holds += (e.low <= w->ratio && w->ratio <= e.high) / (double)times;
        j.different += (e.verdict != NRG_EFFECT_NONE) / (double)times;
        assert_int_equal(e.verdict != NRG_EFFECT_NONE, e.p_value < 0.05);
        needed[i] = nrg_runs_needed(&e, 0.01, 0.95).runs;
    }
    qsort(needed, times, sizeof *needed, by_size);
    j.needed = needed[times / 2];
    free(needed);
    return j;
}

static void between(double low, double x, double high, const char *what)
{
    if (!(x >= low && x <= high))
        fail_msg("%s: %g is not within %g ... %g", what, x, low, high);
}

/* Chance moves a share of 95 % by 1 % in 500 comparisons, by 0.3 % in all of them. */
static void intervals_hold_the_ratio(void **state)
{
    static const size_t runs[] = {3, 5, 10, 30};
    double pooled = 0, n = 0;
    (void)state;
    for (size_t i = 0; i < 4; i++)
        for (int order = RANDOM; order <= BLOCKS; order++)
            for (int drifts = 0; drifts < 2; drifts++) {
                struct world w = {runs[i],           runs[i],          1.07, 0.01, 0.02,
                                  drifts ? 0.05 : 0, (enum order)order};
                double holds = judge(&w, runs[i] > 10 ? 150 : 500).holds;
                between(0.915, holds, 0.99, "holds");
                pooled += holds;
                n++;
            }
    between(0.94, pooled / n, 0.97, "pooled");
}

static void unequal_sides_hold_it_too(void **state)
{
    (void)state;
    struct world few = {3, 30, 0.9, 0.01, 0.01, 0.02, RANDOM};
    struct world scattered = {30, 4, 0.9, 0.005, 0.03, 0, RANDOM};
    between(0.92, judge(&few, 400).holds, 0.985, "3 and 30");
    between(0.92, judge(&scattered, 400).holds, 0.985, "scatter of 0.5 and 3 %");
}

/* In one of 20, whatever the number of runs; chance moves that by 0.5 % in 2,000 comparisons. */
static void chance_is_no_difference(void **state)
{
    static const size_t runs[] = {3, 4, 5, 8};
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        for (int unequal = 0; unequal < 2; unequal++) {
            struct world w = {runs[i], runs[i], 1, 0.02, unequal ? 0.005 : 0.02, 0.03, IN_TURN};
            between(0.025, judge(&w, 2000).different, 0.065, "A/A");
        }
}

/* The textbook's number for known scatter: 15.7 (s / d)^2 of each side. */
static void runs_needed_are_right(void **state)
{
    (void)state;
    struct world w = {10, 10, 1, 0.02, 0.02, 0, RANDOM};
    double truth = 2 * pow((1.96 + 0.8416) * 0.02 / log(1.01), 2);
    between(truth / 1.2, judge(&w, 500).needed, truth * 1.2, "runs needed");
    struct world more = {64, 64, 1.01, 0.02, 0.02, 0, RANDOM};
    (void)more; /* below: with so many runs 1 % is found in 4 of 5 tries */
    size_t found = 0;
    state_ = 1;
    for (size_t i = 0; i < 300; i++) {
        struct nrg_compare_value a[64], b[64];
        struct nrg_effect e;
        place(&more, a, b);
        assert_int_equal(
            nrg_effect_find(&e, (struct nrg_sample){a, 64}, (struct nrg_sample){b, 64}, 0.95), 0);
        found += e.verdict == NRG_EFFECT_MORE;
    }
    between(0.73, (double)found / 300, 0.87, "found");
}

/* ---- closed forms ---- */

static struct nrg_compare_value value(double x, int64_t t_ns)
{
    return (struct nrg_compare_value){.value = x, .low = 1, .high = 1, .t_ns = t_ns};
}

/* Without times it is Welch's test; the figures are those of the formula, by hand. */
static void welch(void **state)
{
    struct nrg_compare_value a[] = {value(exp(1.0), NRG_MISSING), value(exp(1.2), NRG_MISSING),
                                    value(exp(1.4), NRG_MISSING)};
    struct nrg_compare_value b[] = {value(exp(2.0), NRG_MISSING), value(exp(2.6), NRG_MISSING)};
    struct nrg_effect e;
    (void)state;
    assert_int_equal(
        nrg_effect_find(&e, (struct nrg_sample){a, 3}, (struct nrg_sample){b, 2}, 0.95), 0);
    /* means 1.2 and 2.3, variances 0.04 and 0.18: error² = 0.04/3 + 0.18/2 */
    assert_true(fabs(log(e.ratio) - 1.1) < 1e-12);
    double error = sqrt(0.04 / 3 + 0.18 / 2), half = log(e.high) - 1.1;
    assert_true(isnan(e.drift));
    /* degrees of freedom (0.04/3 + 0.18/2)² / ((0.04/3)²/2 + (0.18/2)²/1) = 1.304: 7.46 */
    assert_true(fabs(e.freedom - 1.30393) < 1e-4);
    between(7.432 * error, half, 7.492 * error, "half width");
    assert_true(fabs(log(e.low) - (1.1 - half)) < 1e-12);
}

/* Five runs a minute apart, and five others a day later: a drift of minutes is not one of a day. */
static void a_pause_is_no_drift(void **state)
{
    static const double scatter[] = {0.004, -0.003, 0.006, -0.002, 0.005};
    struct nrg_compare_value a[5], b[5];
    struct nrg_effect e;
    (void)state;
    for (int i = 0; i < 5; i++) {
        a[i] = (struct nrg_compare_value){8 * exp(scatter[i]), 0, 1, 1, i * 60000000000};
        b[i] = (struct nrg_compare_value){10 * exp(scatter[4 - i]), 0, 1, 1,
                                          86400000000000 + i * 60000000000};
    }
    assert_int_equal(
        nrg_effect_find(&e, (struct nrg_sample){a, 5}, (struct nrg_sample){b, 5}, 0.95), 0);
    between(7.9, e.a, 8.1, "A in the middle of the time");
    between(1.23, e.ratio, 1.27, "ratio of two sessions");
    between(1.18, e.low, 1.25, "low end of two sessions");
    between(1.25, e.high, 1.32, "high end of two sessions");
    assert_int_equal(e.verdict, NRG_EFFECT_MORE);
}

static void what_can_not_be_said(void **state)
{
    struct nrg_compare_value one = value(2, 0), two[] = {value(3, 1), value(3, 2)},
                             none = value(NAN, 0);
    struct nrg_effect e;
    (void)state;
    assert_int_equal(
        nrg_effect_find(&e, (struct nrg_sample){&one, 1}, (struct nrg_sample){two, 2}, 0.95), 0);
    assert_true(fabs(e.ratio - 1.5) < 1e-12);
    assert_true(isnan(e.low) && isnan(e.high) && isnan(e.p_value));
    assert_int_equal(e.verdict, NRG_EFFECT_UNKNOWN);
    assert_true(isnan(nrg_runs_needed(&e, 0.01, 0.95).runs));
    assert_int_equal(
        nrg_effect_find(&e, (struct nrg_sample){&none, 1}, (struct nrg_sample){two, 2}, 0.95), 0);
    assert_true(isnan(e.ratio));
}

/* Runs that do not vary at all: the sensors' own error is what is left. */
static void never_narrower_than_the_sensor(void **state)
{
    struct nrg_compare_value a[4], b[4];
    struct nrg_effect e;
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        a[i] = value(100, (int64_t)(2 * i));
        b[i] = value(101, (int64_t)(2 * i + 1));
        a[i].own = b[i].own = 0.03;
    }
    assert_int_equal(
        nrg_effect_find(&e, (struct nrg_sample){a, 4}, (struct nrg_sample){b, 4}, 0.95), 0);
    double half = log(e.high) - log(e.ratio);
    between(1.96 * 0.03 / sqrt(3) * sqrt(2.0 / 4), half,
            1.96 * 0.03 / sqrt(3) * sqrt(2.0 / 4) * 1.2, "half");
    assert_int_equal(e.verdict, NRG_EFFECT_NONE);
}

/* A band that is common to all runs cancels; what differs of it does not. */
static void a_common_band_cancels(void **state)
{
    struct nrg_compare_value a[4], b[4];
    struct nrg_effect e;
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        a[i] = value(100 + 0.1 * (double)(i % 2), (int64_t)(2 * i));
        b[i] = value(90 + 0.1 * (double)(i % 2), (int64_t)(2 * i + 1));
        a[i].low = b[i].low = 0.5;
        a[i].high = b[i].high = 1.6;
    }
    assert_int_equal(
        nrg_effect_find(&e, (struct nrg_sample){a, 4}, (struct nrg_sample){b, 4}, 0.95), 0);
    assert_int_equal(e.verdict, NRG_EFFECT_LESS);
    for (size_t i = 0; i < 4; i++)
        b[i].high = 1.92; /* B may be 20 % more than that beyond A */
    assert_int_equal(
        nrg_effect_find(&e, (struct nrg_sample){a, 4}, (struct nrg_sample){b, 4}, 0.95), 0);
    between(0.9 * 1.2 * 0.99, e.high, 0.9 * 1.2 * 1.01, "high");
    assert_int_equal(e.verdict, NRG_EFFECT_NONE);
}

/* All orders of three and three are equally likely: 2 of 20 are as far apart as can be. */
static void ranks(void **state)
{
    double a[] = {1, 2, 3}, b[] = {4, 5, 6}, mixed[] = {2.5, 0.5, 9}, p;
    (void)state;
    assert_int_equal(nrg_rank_test(a, 3, b, 3, &p), 0);
    assert_true(fabs(p - 0.1) < 1e-12);
    assert_int_equal(nrg_rank_test(b, 3, a, 3, &p), 0);
    assert_true(fabs(p - 0.1) < 1e-12);
    assert_int_equal(nrg_rank_test(a, 3, mixed, 3, &p), 0);
    assert_true(fabs(p - 1) < 1e-12); /* 5 of 9 pairs, the middle */
    double same[] = {1, 1, 1};
    assert_int_equal(nrg_rank_test(same, 3, same, 3, &p), 0);
    assert_true(p > 0.99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_hold_the_ratio),
        cmocka_unit_test(unequal_sides_hold_it_too),
        cmocka_unit_test(chance_is_no_difference),
        cmocka_unit_test(runs_needed_are_right),
        cmocka_unit_test(welch),
        cmocka_unit_test(a_pause_is_no_drift),
        cmocka_unit_test(what_can_not_be_said),
        cmocka_unit_test(never_narrower_than_the_sensor),
        cmocka_unit_test(a_common_band_cancels),
        cmocka_unit_test(ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

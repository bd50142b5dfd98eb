/*
 * attribute/regress/fit.c against the simulated machine (tests/simulator), which has its own truth:
 * the bars that joules per layer are held to. Few seeds: bench/regress_coverage runs hundreds,
 * docs/regression.md has its figures. A sanitizer takes minutes for all of it and gets a part.
 */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "simulator/trial.h"

static const struct trial_scenario *find(const char *name)
{
    for (size_t i = 0; i < trial_n_scenarios; i++)
        if (!strcmp(trial_scenarios[i].name, name))
            return &trial_scenarios[i];
    fail_msg("no scenario '%s'", name);
    return NULL;
}

static struct trial_figures run(const char *name, uint64_t first_seed, size_t seeds)
{
    struct trial_sum sum = {0};
    for (size_t i = 0; i < seeds; i++)
        trial_run(find(name), first_seed + i, &sum);
    struct trial_figures f = trial_figures(&sum);
    print_message("# %s: median error %.3f %%, 95 %% intervals hold the truth in %.1f %% of %zu, "
                  "total off by at most %.3f %%\n",
                  name, 100 * f.median_error, 100 * f.coverage, sum.intervals, 100 * f.total_error);
    assert_int_equal(sum.failed, 0);
    trial_sum_release(&sum);
    return f;
}

static void check(const char *name, uint64_t seed, size_t seeds, double error)
{
    struct trial_figures f = run(name, seed, seeds);
    assert_true(f.median_error <= error);
    assert_true(f.total_error <= 0.005);
}

static void rounding_alone(void **state)
{
    (void)state;
    check("counter 1 ms", 51, 1, 0.01);
    check("counter 20 ms", 52, 1, 0.01);
    check("counter 100 ms", 53, 1, 0.01);
}

static void one_percent_noise(void **state)
{
    (void)state;
    check("counter 1 ms, 1 % noise", 54, 1, 0.03);
    check("counter 20 ms, 1 % noise", 55, 2, 0.03);
    check("mean gauge 20 ms, 1 % noise", 56, 3, 0.03);
}

/* Layers that can't be separated are flagged as such. */
static void hopeless(void **state)
{
    (void)state;
    struct trial_figures f = run("500 steps, counter 100 ms, 1 %", 57, 4);
    assert_true(f.unresolved > 0.8 && f.median_width > 0.3);
    assert_true(f.coverage >= 0.9);
    f = run("500 steps, Jetson, given 0.42 s", 58, 4);
    assert_true(f.unresolved > 0.8);
    assert_true(f.coverage >= 0.85);
}

static void sensors_that_average(void **state)
{
    (void)state;
    check("500 steps, GPU, window 100 ms, 20 ms", 59, 1, 0.01);
    check("average 0.42 s, 2 ms, 40 mW, driver", 60, 1, 0.01);
    check("window 25 ms, 100 ms, 8 mW", 61, 1, 0.01);
}

/* Few seeds scatter: their bar is wider than the 90 to 99 % that hundreds are held to. */
static void intervals_cover(void **state)
{
    static const char *const names[] = {
        "500 steps, counter 20 ms",
        "500 steps, counter 20 ms, 1 %",
        "500 steps, counter 100 ms",
        "500 steps, counter 20 ms, 5 %",
        "500 steps, no idle time, 20 ms, 1 %",
        "500 steps, 5 seldom, 20 ms, 1 %",
        "500 steps, 5 twins, 20 ms",
    };
    (void)state;
    double coverage = 0;
    size_t n = sizeof names / sizeof *names;
    for (size_t i = 0; i < n; i++) {
        struct trial_figures f = run(names[i], 70 + 10 * i, 4);
        assert_true(f.coverage >= 0.87);
        coverage += f.coverage / (double)n;
    }
    print_message("# all of them: %.1f %%\n", 100 * coverage);
    assert_true(coverage >= 0.9 && coverage <= 0.99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_alone),  cmocka_unit_test(one_percent_noise),
        cmocka_unit_test(hopeless),        cmocka_unit_test(sensors_that_average),
        cmocka_unit_test(intervals_cover),
    };
    if (getenv("NRG_TEST_SHORT"))
        cmocka_set_test_filter("hopeless");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

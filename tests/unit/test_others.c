/* CPU time of other processes, from a busy time in ticks and the workload's CPU time in ns. */
#include <math.h>
#include <stdlib.h>

#include "energy/others.h"
#include "support/cmocka.h"

#define CELLS 600
#define TICK  0.01

/* The kernel's count of a true sum. */
static double in_ticks(double s)
{
    return floor(s / TICK + 1e-9) * TICK;
}

/* Others' seconds of a run in which the workload uses `mine` and others `other` of each 100 ms. */
static double found_s(double mine, double other, double tick_s)
{
    double busy_s[CELLS], mine_s[CELLS], others_s[CELLS], sum = 0, last = in_ticks(0.0137), all = 0;
    for (size_t k = 0; k < CELLS; k++) {
        all += mine + other * (k % 7 < 3 ? 2 : 0.25);
        double now = tick_s > 0 ? in_ticks(0.0137 + all) : 0.0137 + all;
        busy_s[k] = now - last;
        mine_s[k] = mine;
        last = now;
    }
    nrg_others_spread(busy_s, mine_s, CELLS, tick_s, others_s);
    for (size_t k = 0; k < CELLS; k++) {
        assert_true(others_s[k] >= 0);
        sum += others_s[k];
    }
    return sum;
}

static void test_rounding_is_nobody(void **state)
{
    (void)state;
    for (double mine = 0.0003; mine < 0.1; mine += 0.0097)
        assert_true(found_s(mine, 0, TICK) <= 1e-9);
}

static void test_what_others_used_is_known_to_two_ticks(void **state)
{
    (void)state;
    for (double other = 0.001; other < 0.1; other += 0.0123) {
        double truth = 0;
        for (size_t k = 0; k < CELLS; k++)
            truth += other * (k % 7 < 3 ? 2 : 0.25);
        assert_true(fabs(found_s(0.05, other, TICK) - truth) < 2.1 * TICK);
        assert_true(fabs(found_s(0.05, other, 0) - truth) < TICK);
    }
}

/* Processes that are counted a little too high at times must not become negative others. */
static void test_a_sum_that_falls_waits(void **state)
{
    (void)state;
    double busy_s[] = {0.1, 0.1, 0.1, 0.1}, mine_s[] = {0.1, 0.15, 0.05, 0.0}, others_s[4];
    nrg_others_spread(busy_s, mine_s, 4, 0, others_s);
    assert_true(others_s[0] <= 0 && others_s[1] <= 0 && others_s[2] <= 0);
    assert_true(others_s[3] > 0.09 && others_s[3] <= 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding_is_nobody),
        cmocka_unit_test(test_what_others_used_is_known_to_two_ticks),
        cmocka_unit_test(test_a_sum_that_falls_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

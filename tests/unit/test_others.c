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

/* CPU time of others that stay busy, or not, for about 25 ms, in cells of 100 ms and at any time.
 */
struct bursts {
    double fine_cpus[CELLS * NRG_OTHERS_PARTS], others_s[CELLS];
    int64_t begin_ns[CELLS + 1];
};

static void make_bursts(struct bursts *b)
{
    uint32_t dice = 7;
    bool busy = false;
    for (size_t i = 0; i < CELLS * NRG_OTHERS_PARTS; i++) {
        double on_s = 0;
        for (int part = 0; part < 10; part++) {
            dice = dice * 1664525u + 1013904223u;
            busy ^= (dice >> 8) % 50 == 0; /* each ms; it takes 25 of them to forget */
            on_s += busy ? 1e-3 : 0;
        }
        b->fine_cpus[i] = on_s / 0.01;
        b->others_s[i / NRG_OTHERS_PARTS] += on_s;
    }
    for (size_t k = 0; k <= CELLS; k++)
        b->begin_ns[k] = (int64_t)k * 100000000;
}

/* Slope of what others did over what is said of it, both as changes from one part to the next. */
static void test_parts_of_a_cell_change_as_others_do(void **state)
{
    static struct bursts b;
    struct nrg_others_profile profile;
    double parts[NRG_OTHERS_PARTS], last = 0, sum_xy = 0, sum_xx = 0, even_xy = 0, even_xx = 0;
    (void)state;
    make_bursts(&b);
    nrg_others_fit_profile(&profile, b.others_s, b.begin_ns, CELLS, 0);
    assert_true(profile.cell_s > 0);
    for (size_t k = 1; k + 1 < CELLS; k++) {
        double sum_s = 0, jump = (b.others_s[k] - b.others_s[k - 1]) / 0.1;
        const double *fine = &b.fine_cpus[k * NRG_OTHERS_PARTS];
        assert_true(nrg_others_parts(&profile, b.others_s, b.begin_ns, CELLS, k, parts));
        for (size_t i = 0; i < NRG_OTHERS_PARTS; i++) {
            double said = parts[i] - (i ? parts[i - 1] : last), was = fine[i] - fine[i - 1];
            sum_s += parts[i] * 0.01;
            sum_xy += k > 1 ? said * was : 0;
            sum_xx += k > 1 ? said * said : 0;
            even_xy += i ? 0 : jump * was;
            even_xx += i ? 0 : jump * jump;
        }
        last = parts[NRG_OTHERS_PARTS - 1];
        assert_true(fabs(sum_s - b.others_s[k]) < 1e-9);
    }
    assert_true(fabs(sum_xy / sum_xx - 1) < 0.15);
    assert_true(even_xy / even_xx < 0.6); /* what a rate that is even in each cell would say */
}

static void test_steady_or_few_others_are_even(void **state)
{
    double others_s[CELLS], parts[NRG_OTHERS_PARTS];
    int64_t begin_ns[CELLS + 1];
    struct nrg_others_profile profile;
    (void)state;
    for (size_t k = 0; k <= CELLS; k++)
        begin_ns[k] = (int64_t)k * 100000000;
    for (size_t k = 0; k < CELLS; k++)
        others_s[k] = 0.05;
    nrg_others_fit_profile(&profile, others_s, begin_ns, CELLS, TICK);
    assert_false(nrg_others_parts(&profile, others_s, begin_ns, CELLS, 9, parts));
    nrg_others_fit_profile(&profile, others_s, begin_ns, 3, TICK);
    assert_false(nrg_others_parts(&profile, others_s, begin_ns, 3, 1, parts));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding_is_nobody),
        cmocka_unit_test(test_what_others_used_is_known_to_two_ticks),
        cmocka_unit_test(test_a_sum_that_falls_waits),
        cmocka_unit_test(test_parts_of_a_cell_change_as_others_do),
        cmocka_unit_test(test_steady_or_few_others_are_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

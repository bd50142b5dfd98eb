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
    nrg_others_spread(busy_s, mine_s, NULL, CELLS, tick_s, others_s);
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
    nrg_others_spread(busy_s, mine_s, NULL, 4, 0, others_s);
    assert_true(others_s[0] <= 0 && others_s[1] <= 0 && others_s[2] <= 0);
    assert_true(others_s[3] > 0.09 && others_s[3] <= 0.1);
}

/* The recorder uses 0.6 ms of each 100, another process 5, or nothing. Ticks that ask who runs
 * never see the recorder, exact times have it. */
static double with_recorder_s(double other, bool seen)
{
    double busy_s[CELLS], mine_s[CELLS], recorder_s[CELLS], others_s[CELLS], sum = 0, last = 0;
    for (size_t k = 0; k < CELLS; k++) {
        double now = in_ticks((double)(k + 1) * (0.05 + other + (seen ? 6e-4 : 0)));
        busy_s[k] = now - last;
        mine_s[k] = 0.05;
        recorder_s[k] = 6e-4;
        last = now;
    }
    nrg_others_spread(busy_s, mine_s, recorder_s, CELLS, TICK, others_s);
    for (size_t k = 0; k < CELLS; k++) {
        assert_true(others_s[k] >= 6e-4);
        sum += others_s[k];
    }
    return sum;
}

static void test_the_recorder_counts_once(void **state)
{
    (void)state;
    assert_true(fabs(with_recorder_s(0, false) - CELLS * 6e-4) < 1e-9);
    assert_true(fabs(with_recorder_s(0, true) - CELLS * 6e-4) < 2.1 * TICK);
    assert_true(fabs(with_recorder_s(0.005, true) - CELLS * 5.6e-3) < 2.1 * TICK);
    /* Whether ticks saw it can't be told: then what they show counts. */
    assert_true(fabs(with_recorder_s(0.005, false) - CELLS * 5e-3) < 2.1 * TICK);
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
    struct nrg_others_cell cell;
    const double *parts = cell.cpus;
    double last = 0, sum_xy = 0, sum_xx = 0, even_xy = 0, even_xx = 0;
    (void)state;
    make_bursts(&b);
    nrg_others_fit_profile(&profile, b.others_s, b.begin_ns, CELLS, &(struct nrg_others_clock){0});
    assert_true(profile.cell_s > 0);
    for (size_t k = 2; k + 2 < CELLS; k++) {
        double sum_s = 0, jump = (b.others_s[k] - b.others_s[k - 1]) / 0.1;
        const double *fine = &b.fine_cpus[k * NRG_OTHERS_PARTS];
        assert_true(nrg_others_parts(&profile, b.others_s, b.begin_ns, CELLS, k, &cell));
        for (size_t i = 0; i < NRG_OTHERS_PARTS; i++) {
            double said = parts[i] - (i ? parts[i - 1] : last), was = fine[i] - fine[i - 1];
            sum_s += parts[i] * 0.01;
            sum_xy += k > 2 ? said * was : 0;
            sum_xx += k > 2 ? said * said : 0;
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
    double others_s[CELLS];
    struct nrg_others_cell cell;
    int64_t begin_ns[CELLS + 1];
    struct nrg_others_profile profile;
    (void)state;
    for (size_t k = 0; k <= CELLS; k++)
        begin_ns[k] = (int64_t)k * 100000000;
    for (size_t k = 0; k < CELLS; k++)
        others_s[k] = 0.05;
    nrg_others_fit_profile(&profile, others_s, begin_ns, CELLS,
                           &(struct nrg_others_clock){TICK, TICK});
    assert_false(nrg_others_parts(&profile, others_s, begin_ns, CELLS, 9, &cell));
    nrg_others_fit_profile(&profile, others_s, begin_ns, 3, &(struct nrg_others_clock){TICK, TICK});
    assert_false(nrg_others_parts(&profile, others_s, begin_ns, 3, 1, &cell));
}

/* Who is busy for a second and not for the next goes from one to the other at one moment, which the
 * CPU time of that cell tells; elsewhere nothing is open. */
static void test_levels_change_at_one_moment(void **state)
{
    static double others_s[CELLS];
    static int64_t begin_ns[CELLS + 1];
    struct nrg_others_profile profile;
    struct nrg_others_cell cell;
    (void)state;
    for (size_t k = 0; k <= CELLS; k++)
        begin_ns[k] = (int64_t)k * 100000000;
    for (size_t k = 0; k < CELLS; k++) /* on from 0.035 s in cell 10 on, off in the same of 20 */
        others_s[k] = k % 20 == 10 ? 0.065 : k % 20 > 10 ? 0.1 : k % 20 || !k ? 0 : 0.035;
    nrg_others_fit_profile(&profile, others_s, begin_ns, CELLS,
                           &(struct nrg_others_clock){1e-9, 0.004});
    assert_true(nrg_others_parts(&profile, others_s, begin_ns, CELLS, 30, &cell));
    for (size_t i = 0; i < NRG_OTHERS_PARTS; i++)
        assert_true(fabs(cell.cpus[i] - (i < 3 ? 0 : i == 3 ? 0.5 : 1)) < 1e-9);
    assert_true(cell.unsure2[1] <= 0 && cell.unsure2[3] > 0 && cell.unsure2[5] <= 0);
    assert_true(nrg_others_parts(&profile, others_s, begin_ns, CELLS, 31, &cell));
    assert_true(fabs(cell.cpus[0] - 1) < 1e-9 && cell.unsure2[0] <= 0);
    others_s[35] = 0.04; /* a gap somewhere in this cell */
    assert_true(nrg_others_parts(&profile, others_s, begin_ns, CELLS, 35, &cell));
    assert_true(fabs(cell.unsure2[0] - 0.36) < 1e-9);
}

static double sum_of(const double *cpus)
{
    double sum = 0;
    for (size_t i = 0; i < NRG_OTHERS_BINS; i++)
        sum += cpus[i];
    return sum / NRG_OTHERS_BINS;
}

static void fill_even(double *cpus, double each)
{
    for (size_t i = 0; i < NRG_OTHERS_BINS; i++)
        cpus[i] = each;
}

/* Two CPUs, one of which the workload has in the middle half of the cell. */
static void test_others_run_where_there_is_room(void **state)
{
    (void)state;
    struct nrg_others_room room = {.cpus = 2};
    double cpus[NRG_OTHERS_BINS];
    nrg_others_room_add(&room, 0.25, 0.75, 1);
    fill_even(cpus, 0.8);
    assert_false(nrg_others_fit_in(&room, cpus)); /* they have room as they are */
    assert_true(fabs(cpus[50] - 0.8) < 1e-9);
    fill_even(cpus, 1.4);
    assert_true(nrg_others_fit_in(&room, cpus));
    assert_true(fabs(cpus[50] - 1) < 1e-9 && fabs(cpus[10] - 1.8) < 1e-9);
    assert_true(fabs(sum_of(cpus) - 1.4) < 1e-9);
    fill_even(cpus, 1.7); /* more than there is: the rest stays spread evenly */
    assert_true(nrg_others_fit_in(&room, cpus));
    assert_true(fabs(cpus[50] - 1.2) < 1e-9 && fabs(sum_of(cpus) - 1.7) < 1e-9);
}

static void test_others_have_all_that_is_left_of_full_cpus(void **state)
{
    (void)state;
    struct nrg_others_room room = {.cpus = 2, .full = true};
    double cpus[NRG_OTHERS_BINS];
    nrg_others_room_add(&room, 0, 0.505, 1);
    nrg_others_room_grow(&room, 0.404); /* no less than was said */
    fill_even(cpus, 1.48);
    assert_true(nrg_others_fit_in(&room, cpus));
    assert_true(fabs(cpus[0] - 1) < 1e-9 && fabs(cpus[99] - 2) < 1e-9);
    assert_true(fabs(cpus[50] - 1.5) < 1e-9); /* a bin of which the workload has half */
    nrg_others_room_grow(&room, 0.606);       /* workers beside it */
    assert_true(nrg_others_fit_in(&room, cpus));
    assert_true(fabs(cpus[0] - 0.8) < 1e-9 && fabs(cpus[99] - 2) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding_is_nobody),
        cmocka_unit_test(test_what_others_used_is_known_to_two_ticks),
        cmocka_unit_test(test_a_sum_that_falls_waits),
        cmocka_unit_test(test_the_recorder_counts_once),
        cmocka_unit_test(test_parts_of_a_cell_change_as_others_do),
        cmocka_unit_test(test_steady_or_few_others_are_even),
        cmocka_unit_test(test_levels_change_at_one_moment),
        cmocka_unit_test(test_others_run_where_there_is_room),
        cmocka_unit_test(test_others_have_all_that_is_left_of_full_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * energy/updates/held.c: how long a gauge holds its values, from readings alone. The updates are
 * made here; a gauge that follows a filter, and a program that changes by itself, hold nothing.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdlib.h>

#include "energy/updates/held.h"

#define READINGS 6000
#define READ_NS  10000000
#define STEP_W   0.02

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 0x1p53;
}

/* About normal, of deviation 1. */
static double normal(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform(state);
    return sum;
}

static struct nrg_timeline make_timeline(void)
{
    struct nrg_timeline tl = {.n = READINGS, .is_gauge = true};
    tl.t_ns = calloc(READINGS, sizeof *tl.t_ns);
    tl.sum_j = calloc(READINGS, sizeof *tl.sum_j);
    tl.gap = calloc(READINGS, 1);
    tl.own_gauge = calloc(READINGS, sizeof *tl.own_gauge);
    assert_true(tl.t_ns && tl.sum_j && tl.gap && tl.own_gauge);
    for (size_t i = 0; i < READINGS; i++)
        tl.t_ns[i] = 1000000000 + (int64_t)i * READ_NS + (int64_t)(i * i % 17) * 20000;
    return tl;
}

/* Power of each update at random, `steady` of them as before; readings with noise, rounded. */
static struct nrg_held held_gauge(double update_s, double noise_w, double steady)
{
    struct nrg_timeline tl = make_timeline();
    struct nrg_held held;
    uint64_t state = 42;
    double power_w = 6, last = 0;
    for (size_t i = 0; i < READINGS; i++) {
        double number = floor(((double)tl.t_ns[i] / 1e9 + 0.0037) / update_s);
        if (number != last && uniform(&state) >= steady)
            power_w = 6 + normal(&state);
        last = number;
        tl.own_gauge[i] = round((power_w + noise_w * normal(&state)) / STEP_W) * STEP_W;
    }
    assert_int_equal(nrg_held_find(&tl, &held), 0);
    nrg_timeline_release(&tl);
    return held;
}

static void check_update(double update_s, double noise_w, double steady)
{
    struct nrg_held held = held_gauge(update_s, noise_w, steady);
    if (fabs((double)held.update_ns / 1e9 - update_s) > 1e-3 * update_s)
        fail_msg("%g s with %g W of noise: %g s", update_s, noise_w, (double)held.update_ns / 1e9);
    if (noise_w > 0)
        assert_true(held.within_w > 4 * noise_w);
    else
        assert_true(held.within_w == 0);
}

static void values_that_are_held(void **state)
{
    (void)state;
    check_update(0.05, 0, 0);
    check_update(0.2, 0, 0.5);
}

/* Most updates show about the value before: what changes is still on the grid. */
static void held_values_with_noise(void **state)
{
    (void)state;
    check_update(0.05002, 0.01, 0);
    check_update(0.05002, 0.01, 0.6);
    check_update(0.20008, 0.01, 0.5);
    check_update(0.1, 0.05, 0.3);
}

/* Read as fast as it updates. */
static void fresh_readings_are_not_held(void **state)
{
    (void)state;
    assert_int_equal(held_gauge(0.01, 0.01, 0).update_ns, 0);
    assert_int_equal(held_gauge(0.015, 0.01, 0).update_ns, 0);
}

/* A load that jumps at any time, as it is or through a filter of lag_s. */
static void check_load(double lag_s)
{
    struct nrg_timeline tl = make_timeline();
    struct nrg_held held;
    uint64_t state = 7;
    double power_w = 6, next_s = 0, shown_w = 6;
    for (size_t i = 0; i < READINGS; i++) {
        double t_s = (double)tl.t_ns[i] / 1e9;
        if (t_s > next_s) {
            power_w = power_w > 6 ? 4 : 8;
            next_s = t_s + 0.08 + 0.04 * uniform(&state);
        }
        shown_w += (power_w - shown_w) * (lag_s > 0 ? 0.01 / lag_s : 1);
        tl.own_gauge[i] = round((shown_w + 0.02 * normal(&state)) / STEP_W) * STEP_W;
    }
    assert_int_equal(nrg_held_find(&tl, &held), 0);
    assert_int_equal(held.update_ns, 0);
    nrg_timeline_release(&tl);
}

static void a_load_is_not_held(void **state)
{
    (void)state;
    check_load(0);
    check_load(0.02);
    check_load(0.4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_that_are_held),
        cmocka_unit_test(held_values_with_noise),
        cmocka_unit_test(fresh_readings_are_not_held),
        cmocka_unit_test(a_load_is_not_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

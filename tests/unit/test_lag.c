/*
 * energy/lag.c and energy/quantum.c: the time constant and the step of a sensor from readings
 * whose truth is a closed form: an exponential after a step of the load, ripple of the load's own
 * on it, rounded, and followed by a plateau that is many times as long.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "energy/lag.h"
#include "energy/quantum.h"

#define PERIOD_S 2e-3

struct shape {
    double tau_s, ripple_w, step_w, seconds;
};

static double rounded(double value, double step)
{
    return step > 0 ? step * nearbyint(value / step) : value;
}

static struct nrg_timeline make(const struct shape *shape)
{
    size_t n = (size_t)(shape->seconds / PERIOD_S);
    struct nrg_timeline tl = {.n = n, .is_gauge = true, .period_ns = (int64_t)(PERIOD_S * 1e9)};
    tl.t_ns = calloc(n, sizeof *tl.t_ns);
    tl.sum_j = calloc(n, sizeof *tl.sum_j);
    tl.own_gauge = calloc(n, sizeof *tl.own_gauge);
    tl.gap = calloc(n, sizeof *tl.gap);
    assert_true(tl.t_ns && tl.sum_j && tl.own_gauge && tl.gap);
    for (size_t i = 0; i < n; i++) {
        double t = (double)i * PERIOD_S;
        double faded = shape->tau_s > 0 ? 1 - exp(-t / shape->tau_s) : t > 0;
        tl.t_ns[i] = (int64_t)(t * 1e9);
        tl.own_gauge[i] =
            rounded(4 + 2 * faded + shape->ripple_w * sin(2 * M_PI * t / 0.035), shape->step_w);
        if (i)
            tl.sum_j[i] = tl.sum_j[i - 1] + (tl.own_gauge[i] + tl.own_gauge[i - 1]) / 2 * PERIOD_S;
    }
    return tl;
}

static double found_s(const struct shape *shape, double noise_w)
{
    struct nrg_timeline tl = make(shape);
    double lag_s = nrg_lag_fit(&tl, tl.t_ns[0], tl.t_ns[tl.n - 1], noise_w).lag_s;
    nrg_timeline_release(&tl);
    return lag_s;
}

static void time_constants_are_found(void **state)
{
    (void)state;
    const struct shape shapes[] = {
        {0.42, 0, 0, 4},         {0.42, 0, 40e-3, 4},      {0.42, 30e-3, 40e-3, 4},
        {0.42, 30e-3, 0, 30},    {0.42, 30e-3, 40e-3, 30}, {0.1, 30e-3, 8e-3, 30},
        {1.5, 30e-3, 40e-3, 30},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        double noise_w = fmax(1e-6, shapes[i].step_w / sqrt(12));
        double lag_s = found_s(&shapes[i], noise_w);
        if (!(fabs(lag_s - shapes[i].tau_s) < 0.05 * shapes[i].tau_s))
            fail_msg("shape %zu: %g s instead of %g s", i, lag_s, shapes[i].tau_s);
    }
}

/* A step that the sensor follows at once, and ripple alone, are no time constant. */
static void none_is_made_up(void **state)
{
    (void)state;
    const struct shape step = {0, 30e-3, 40e-3, 10};
    const struct shape ripple = {1e-9, 0.5, 0, 10};
    assert_true(isnan(found_s(&step, 40e-3 / sqrt(12))));
    assert_true(isnan(found_s(&ripple, 1e-6)));
}

static void steps_are_seen(void **state)
{
    (void)state;
    const struct shape coarse = {0.42, 30e-3, 40e-3, 10}, fine = {0.42, 30e-3, 0, 10};
    struct nrg_timeline tl = make(&coarse);
    assert_true(fabs(nrg_gauge_quantum(&tl, 1e-3) - 40e-3) < 1e-6);
    nrg_timeline_release(&tl);
    tl = make(&fine);
    assert_true(nrg_gauge_quantum(&tl, 1e-3) == 1e-3);
    nrg_timeline_release(&tl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_constants_are_found),
        cmocka_unit_test(none_is_made_up),
        cmocka_unit_test(steps_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

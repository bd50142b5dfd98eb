/* Scale, offset and delay of a meter whose truth is known: noise, averaging, gaps, and refusals. */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "energy/meter_fit.h"

#define S  NRG_NS_PER_S
#define MS NRG_NS_PER_MS
#define N  600

/* Busy and idle in turns, lengths without a pattern: the energy up to t in closed form. */
static double energy_j(double t_s)
{
    static const double edges[] = {0,    2.3,  4.1,  7.9,  9.2,  13.4, 15.1, 16.8,
                                   20.3, 23.9, 25.2, 29.8, 31.5, 34.0, 37.7, 39.1,
                                   43.6, 46.2, 48.9, 53.0, 55.4, 57.1, 61.0, 80.0};
    double energy = 0;
    for (size_t i = 0; i + 1 < sizeof edges / sizeof *edges && edges[i] < t_s; i++) {
        double end = edges[i + 1] < t_s ? edges[i + 1] : t_s;
        energy += (i % 2 ? 25 : 95) * (end - edges[i]);
    }
    return energy;
}

static double truth_w(void *arg, int64_t begin_ns, int64_t end_ns)
{
    const int64_t *gap = arg;
    if (gap && begin_ns < gap[1] && end_ns > gap[0])
        return NAN;
    return (energy_j((double)end_ns / 1e9) - energy_j((double)begin_ns / 1e9)) * 1e9 /
           (double)(end_ns - begin_ns);
}

static double uniform(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) / 9007199254740992.0;
}

static double gauss(uint64_t *state)
{
    return sqrt(-2 * log(uniform(state) + 1e-300)) * cos(6.283185307179586 * uniform(state));
}

static const struct nrg_meter_reference reference = {
    .mean_w = truth_w, .first_ns = 0, .last_ns = 60 * S, .period_ns = 20 * MS};

/* meter(t) = (truth(t - delay) - offset) / scale, averaged over average_ns, noisy. */
static void make(struct nrg_meter_point *points, double scale, double offset_w, int64_t delay_ns,
                 int64_t average_ns, double noise_w, uint64_t seed)
{
    uint64_t state = seed * 2654435761 + 12345;
    for (size_t i = 0; i < N; i++) {
        int64_t t = (int64_t)i * 100 * MS + (int64_t)(uniform(&state) * 20e6);
        double w = truth_w(NULL, t - delay_ns - average_ns / 2, t - delay_ns + average_ns / 2);
        points[i] =
            (struct nrg_meter_point){t, t, (w - offset_w) / scale + noise_w * gauss(&state)};
    }
}

static void truth_is_found(void **state)
{
    static const struct {
        double scale, offset_w;
        int64_t delay_ns, average_ns;
    } cases[] = {{1, 0, 0, 20 * MS},
                 {1.25, -15, 700 * MS, 20 * MS},
                 {0.5, 30, -2 * S, 20 * MS},
                 {2, -40, 3300 * MS, 100 * MS},
                 {-1, 200, 50 * MS, 20 * MS}};
    struct nrg_meter_point points[N];
    struct nrg_meter_fit fit;
    struct nrg_error err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make(points, cases[i].scale, cases[i].offset_w, cases[i].delay_ns, cases[i].average_ns, 0,
             i);
        assert_int_equal(nrg_meter_fit(points, N, &reference, 5 * S, &fit, &err), 0);
        assert_true(fabs(fit.scale / cases[i].scale - 1) < 0.01);
        assert_true(fabs(fit.offset_w - cases[i].offset_w) < 1);
        assert_true(fabs(fit.delay_s - (double)cases[i].delay_ns / 1e9) <
                    fmax(0.005, 2 * fit.delay_sd_s));
        assert_true(fit.delay_sd_s < 0.05);
        assert_true(fabs(fit.correlation) > 0.99);
    }
}

/* Intervals of one standard deviation must hold the truth about as often as they say. */
static void uncertainties_are_honest(void **state)
{
    struct nrg_meter_point points[N];
    struct nrg_meter_fit fit;
    struct nrg_error err;
    int scale_in = 0, offset_in = 0, delay_in = 0;
    const int trials = 60;
    (void)state;
    for (int i = 0; i < trials; i++) {
        make(points, 1.1, -8, 400 * MS, 20 * MS, 10, (uint64_t)i + 77);
        assert_int_equal(nrg_meter_fit(points, N, &reference, 2 * S, &fit, &err), 0);
        scale_in += fabs(fit.scale - 1.1) < 2 * fit.scale_sd;
        offset_in += fabs(fit.offset_w + 8) < 2 * fit.offset_sd_w;
        delay_in += fabs(fit.delay_s - 0.4) < 2 * fit.delay_sd_s;
        assert_true(fabs(fit.delay_s - 0.4) < 0.05);
        assert_true(fit.residual_w > 8 && fit.residual_w < 14);
    }
    assert_in_range(scale_in, trials * 85 / 100, trials);
    assert_in_range(offset_in, trials * 85 / 100, trials);
    assert_in_range(delay_in, trials * 80 / 100, trials);
}

static void long_average_is_recognised(void **state)
{
    struct nrg_meter_point points[N];
    struct nrg_meter_fit fit;
    struct nrg_error err;
    (void)state;
    make(points, 1, 0, 500 * MS, 200 * MS, 1, 5);
    assert_int_equal(nrg_meter_fit(points, N, &reference, 2 * S, &fit, &err), 0);
    assert_true(fit.average_s > 0.1 && fit.average_s < 0.3);
    assert_true(fabs(fit.delay_s - 0.5) < 0.01);
}

static void counters_are_means_of_their_intervals(void **state)
{
    struct nrg_meter_point points[59];
    struct nrg_meter_fit fit;
    struct nrg_error err;
    (void)state;
    for (int64_t i = 0; i < 59; i++)
        points[i] = (struct nrg_meter_point){
            i * S, (i + 1) * S, truth_w(NULL, i * S - 300 * MS, (i + 1) * S - 300 * MS)};
    assert_int_equal(nrg_meter_fit(points, 59, &reference, 2 * S, &fit, &err), 0);
    assert_true(fabs(fit.scale - 1) < 0.01 && fabs(fit.delay_s - 0.3) < 0.02);
}

static void gaps_of_the_reference_are_left_out(void **state)
{
    static int64_t gap[2] = {20 * S, 24 * S};
    struct nrg_meter_reference broken = reference;
    struct nrg_meter_point points[N];
    struct nrg_meter_fit fit;
    struct nrg_error err;
    (void)state;
    broken.arg = gap;
    make(points, 1.25, -15, 700 * MS, 20 * MS, 0, 3);
    assert_int_equal(nrg_meter_fit(points, N, &broken, 2 * S, &fit, &err), 0);
    assert_true(fabs(fit.scale - 1.25) < 0.02 && fabs(fit.delay_s - 0.7) < 0.01);
}

static double flat_w(void *arg, int64_t begin_ns, int64_t end_ns)
{
    (void)arg;
    (void)begin_ns;
    (void)end_ns;
    return 40;
}

static void what_tells_nothing_is_refused(void **state)
{
    struct nrg_meter_reference flat = reference;
    struct nrg_meter_point points[N];
    struct nrg_meter_fit fit;
    struct nrg_error err;
    uint64_t seed = 9;
    (void)state;
    make(points, 1, 0, 0, 20 * MS, 0, 1);
    assert_int_equal(nrg_meter_fit(points, 5, &reference, S, &fit, &err), -ENODATA);
    assert_int_equal(nrg_meter_fit(points, 0, &reference, S, &fit, &err), -ENODATA);
    assert_int_equal(nrg_meter_fit(points, N, &reference, 40 * S, &fit, &err), -ENODATA);
    flat.mean_w = flat_w;
    assert_int_equal(nrg_meter_fit(points, N, &flat, S, &fit, &err), -ENODATA);
    for (size_t i = 0; i < N; i++)
        points[i].power_w = 50 + gauss(&seed);
    assert_int_equal(nrg_meter_fit(points, N, &reference, S, &fit, &err), -ENODATA);
    for (size_t i = 0; i < N; i++)
        points[i].power_w = 50;
    assert_int_equal(nrg_meter_fit(points, N, &reference, S, &fit, &err), -ENODATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truth_is_found),
        cmocka_unit_test(uncertainties_are_honest),
        cmocka_unit_test(long_average_is_recognised),
        cmocka_unit_test(counters_are_means_of_their_intervals),
        cmocka_unit_test(gaps_of_the_reference_are_left_out),
        cmocka_unit_test(what_tells_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

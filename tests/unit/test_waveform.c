/*
 * waveform against mains whose powers are known in closed form (support/mains.c): accuracy over
 * rates, frequencies, harmonics, offsets, phase and noise; that every sample is charged exactly
 * once; what comes out without mains; and that the file compiles for a machine that has nothing
 * but a compiler.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/waveform/engine.h"
#include "support/mains.h"

#define BAR 0.002 /* of the real power */

struct tally {
    double energy_j, samples, worst, frequency_hz, v_rms, i_rms, seconds;
    unsigned windows;
};

static struct nrg_wave_settings plain(double rate_hz)
{
    struct nrg_wave_settings set = {.rate_hz = rate_hz, .n_currents = 1, .v_scale = 1};
    set.i_scale[0] = 1;
    return set;
}

static void keep(struct tally *t, const struct nrg_wave_result *r, double power_w)
{
    double error = fabs(r->current[0].power_w / power_w - 1);
    t->energy_j = r->current[0].energy_j;
    t->samples += r->samples + r->owed_samples;
    t->worst = error > t->worst ? error : t->worst;
    t->frequency_hz = r->frequency_hz;
    t->v_rms = r->v_rms;
    t->i_rms = r->current[0].i_rms;
    t->windows++;
}

static struct tally measure(struct mains *mains, const struct nrg_wave_settings *set,
                            double seconds)
{
    static struct nrg_wave wave;
    struct nrg_wave_result result;
    struct tally t = {0};
    double power_w = mains_truth(mains).power_w, v, i;
    long n = lround(seconds * mains->rate_hz);
    assert_true(nrg_wave_init(&wave, set));
    for (long k = 0; k < n; k++) {
        mains_next(mains, &v, &i);
        if (nrg_wave_feed(&wave, v, &i, &result))
            keep(&t, &result, power_w);
    }
    double worst = t.worst, frequency_hz = t.frequency_hz; /* of whole windows */
    if (nrg_wave_finish(&wave, &result))
        keep(&t, &result, power_w);
    t.worst = worst;
    t.frequency_hz = frequency_hz;
    t.seconds = (double)n / mains->rate_hz;
    assert_true(fabs(t.samples - (double)n) < 1e-3);
    return t;
}

static void assert_within(double is, double should, double share)
{
    if (!(fabs(is - should) <= share * fabs(should)))
        fail_msg("%.9g is not within %g %% of %.9g", is, share * 100, should);
}

/* The bar: everything at once, at rates from 32 samples per cycle on. */
static double energy_error_of_bad_mains(double rate_hz, double hz)
{
    struct mains mains;
    mains_init(&mains, rate_hz);
    mains_distort(&mains);
    mains.frequency_hz = hz;
    mains.swing_hz = 1;
    mains.swing_period_s = 3;
    mains.v.offset = 20;
    mains.i.offset = -.4;
    mains.v.noise = 2;
    mains.i.noise = .02;
    mains.current_late_s = 70e-6;
    struct mains_truth truth = mains_truth(&mains);
    struct nrg_wave_settings set = plain(rate_hz);
    set.delay[0] = -70e-6 * rate_hz;
    struct tally t = measure(&mains, &set, 6);
    assert_within(t.v_rms, truth.v_rms, BAR);
    assert_within(t.i_rms, truth.i_rms, .01);
    assert_true(fabs(t.frequency_hz - hz) < 1.05);
    return fabs(t.energy_j / (truth.power_w * t.seconds) - 1);
}

static void real_power_of_bad_mains(void **state)
{
    static const double rates[] = {1600, 2500, 4000, 9615.4, 20000, 48000};
    static const double frequencies[] = {45, 49.7, 50.3, 60, 64};
    (void)state;
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        double worst = 0;
        for (size_t f = 0; f < sizeof frequencies / sizeof *frequencies; f++) {
            double error = energy_error_of_bad_mains(rates[r], frequencies[f]);
            worst = error > worst ? error : worst;
        }
        print_message("# %g Hz: energy within %.3f %%\n", rates[r], worst * 100);
        assert_true(worst < BAR);
    }
}

/* Without noise each single window is that good, not only their mean. */
static void every_window_is_right(void **state)
{
    static const double rates[] = {2000, 3137, 8000, 44100};
    double worst = 0;
    (void)state;
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        for (double hz = 45; hz <= 65; hz += 2.37) {
            struct mains mains;
            mains_init(&mains, rates[r]);
            mains_distort(&mains);
            mains.frequency_hz = hz;
            mains.v.offset = -300; /* more than the voltage itself */
            mains.i.offset = 5;
            struct nrg_wave_settings set = plain(rates[r]);
            struct tally t = measure(&mains, &set, 3);
            assert_true(t.windows > 10);
            if (t.worst > BAR / 4)
                fail_msg("%g Hz at %g: %g", hz, rates[r], t.worst);
            assert_within(t.frequency_hz, hz, 1e-4);
            worst = t.worst > worst ? t.worst : worst;
        }
    }
    print_message("# every window within %.3f %%\n", worst * 100);
}

/* Delays of several samples, to both sides; wrong ones are seen in the power. */
static void phase_is_calibrated(void **state)
{
    static const double delays[] = {-11.3, -2, -.4, 0, .25, 1, 7.8};
    (void)state;
    for (size_t d = 0; d < sizeof delays / sizeof *delays; d++) {
        struct mains mains;
        mains_init(&mains, 5000);
        mains.i.phase[0] = -1; /* cos of 1 radian: small errors of phase show */
        mains.current_late_s = -delays[d] / 5000;
        struct nrg_wave_settings set = plain(5000);
        set.delay[0] = delays[d];
        double truth = mains_truth(&mains).power_w;
        struct tally t = measure(&mains, &set, 3);
        assert_within(t.energy_j, truth * t.seconds, BAR / 2);
    }
    struct mains mains;
    mains_init(&mains, 5000);
    mains.i.phase[0] = -1;
    struct nrg_wave_settings set = plain(5000);
    set.delay[0] = 1;
    struct tally t = measure(&mains, &set, 1);
    double error = t.energy_j / (mains_truth(&mains).power_w * t.seconds) - 1;
    assert_true(fabs(error) > .05);
}

/* A load that changes in the middle of a window: what was used is what is charged. */
static void steps_are_charged(void **state)
{
    struct mains mains;
    (void)state;
    mains_init(&mains, 4000);
    mains.load[0] = .1;
    mains.load[1] = 5;
    mains.step_s = 2.345; /* not at a crossing; the mean of i stays 0 */
    struct nrg_wave_settings set = plain(4000);
    struct tally t = measure(&mains, &set, 5);
    assert_within(t.energy_j, 230 * (.1 * 2.345 + 5 * (5 - 2.345)), BAR);
}

static void several_currents(void **state)
{
    static struct nrg_wave wave;
    struct nrg_wave_settings set = plain(4000);
    struct nrg_wave_result result = {0};
    struct mains mains;
    (void)state;
    mains_init(&mains, 4000);
    set.n_currents = 3;
    set.v_scale = .5;
    set.i_scale[1] = 2;
    set.i_scale[2] = -1;
    assert_true(nrg_wave_init(&wave, &set));
    for (int k = 0; k < 4000; k++) {
        double v, i[3];
        mains_next(&mains, &v, &i[0]);
        i[1] = 3 * i[0] + 7;
        i[2] = i[0];
        nrg_wave_feed(&wave, v, i, &result);
    }
    assert_within(result.v_rms, 115, 1e-3);
    assert_within(result.current[0].power_w, 115, 1e-3);
    assert_within(result.current[1].power_w, 115 * 6, 1e-3);
    assert_within(result.current[1].i_rms, 6, 1e-3);
    assert_within(result.current[1].power_factor, 1, 1e-3);
    assert_within(result.current[2].power_w, -115, 1e-3);
    assert_within(result.current[2].apparent_va, 115, 1e-3);
}

/* No mains: results come all the same, nothing is invented. */
static void no_mains(void **state)
{
    static struct nrg_wave wave;
    struct nrg_wave_settings set = plain(1000);
    struct nrg_wave_result result = {0};
    unsigned windows = 0;
    const double i = 2;
    (void)state;
    assert_true(nrg_wave_init(&wave, &set));
    for (int k = 0; k < 5000; k++)
        windows += nrg_wave_feed(&wave, 12, &i, &result);
    assert_true(windows >= 10);
    assert_int_equal(result.cycles, 0);
    assert_true(fabs(result.frequency_hz) < 1e-12);
    assert_true(fabs(result.current[0].power_w) < 1e-9);
    assert_true(fabs(result.v_rms) < 1e-9);
    set.keep_dc = true;
    windows = 0;
    assert_true(nrg_wave_init(&wave, &set));
    for (int k = 0; k < 5000; k++)
        windows += nrg_wave_feed(&wave, 12, &i, &result);
    assert_true(windows >= 10);
    assert_within(result.current[0].power_w, 24, 1e-9);
    assert_within(result.v_rms, 12, 1e-9);
    assert_true(nrg_wave_finish(&wave, &result));
    assert_within(result.current[0].energy_j, 24 * 5, 1e-9);
}

static void short_recordings(void **state)
{
    (void)state;
    for (int n = 0; n < 400; n++) {
        static struct nrg_wave wave;
        struct nrg_wave_settings set = plain(2000);
        struct nrg_wave_result result;
        struct mains mains;
        double samples = 0, v, i;
        mains_init(&mains, 2000);
        assert_true(nrg_wave_init(&wave, &set));
        for (int k = 0; k < n; k++) {
            mains_next(&mains, &v, &i);
            if (nrg_wave_feed(&wave, v, &i, &result))
                samples += result.samples + result.owed_samples;
        }
        if (nrg_wave_finish(&wave, &result)) {
            samples += result.samples + result.owed_samples;
            assert_true(isfinite(result.current[0].energy_j));
        }
        assert_true(fabs(samples - n) < 1e-6);
        assert_false(nrg_wave_finish(&wave, &result));
    }
}

static void settings_are_checked(void **state)
{
    static struct nrg_wave wave;
    struct nrg_wave_settings set = plain(2000);
    (void)state;
    assert_true(nrg_wave_init(&wave, &set));
    set.rate_hz = 10;
    assert_false(nrg_wave_init(&wave, &set));
    set.rate_hz = NAN;
    assert_false(nrg_wave_init(&wave, &set));
    set = plain(2000);
    set.n_currents = NRG_WAVE_CURRENTS + 1;
    assert_false(nrg_wave_init(&wave, &set));
    set = plain(2000);
    set.delay[0] = NRG_WAVE_HISTORY;
    assert_false(nrg_wave_init(&wave, &set));
    set.delay[0] = NAN;
    assert_false(nrg_wave_init(&wave, &set));
}

/* For microcontrollers with floating point: no headers of a system. */
static void compiles_freestanding(void **state)
{
    static const char *const commands[] = {
        "-O2 -I%s/../src -c %s/../src/sensors/waveform/engine.c",
        "-O2 -DNRG_WAVE_REAL=float -I%s/../src -c %s/../src/sensors/waveform/engine.c",
    };
    char command[1024], rest[900];
    (void)state;
    if (system("cc --version >/dev/null 2>&1")) {
        print_message("# no compiler here\n");
        skip();
    }
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(rest, sizeof rest, commands[k], NRG_TEST_SOURCE, NRG_TEST_SOURCE);
#pragma GCC diagnostic pop
        snprintf(command, sizeof command,
                 "cc -std=c17 -Wall -Wextra -Werror -ffreestanding -o /dev/null %s", rest);
        if (system(command))
            fail_msg("%s", command);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_power_of_bad_mains), cmocka_unit_test(every_window_is_right),
        cmocka_unit_test(phase_is_calibrated),     cmocka_unit_test(steps_are_charged),
        cmocka_unit_test(several_currents),        cmocka_unit_test(no_mains),
        cmocka_unit_test(short_recordings),        cmocka_unit_test(settings_are_checked),
        cmocka_unit_test(compiles_freestanding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Stamps of a device's own clock, against a clock of known offset, drift, delay and steps. */
#include "support/cmocka.h"

#include <stdlib.h>

#include "base/clock.h"
#include "sensors/stamps.h"

#define MS NRG_NS_PER_MS
#define S  NRG_NS_PER_S

/* Every 100 ms a reading is made; it is seen 1 to 40 ms later. The device is ahead by `ahead`, and
 * fast by `ppm`. The error is the shortest delay, and what drift adds until it comes again. */
static void run(int64_t ahead_ns, double ppm, int64_t most_error_ns)
{
    struct nrg_stamps stamps = {.most_delay_ns = S};
    struct nrg_stamped out[2];
    int64_t last = 0;
    srand(7);
    for (int i = 0; i < 3000; i++) {
        int64_t made = 50 * S + i * 100 * MS, delay = MS + rand() % (39 * MS);
        int64_t stamp = made + ahead_ns + (int64_t)((double)made * ppm / 1e6);
        size_t n = nrg_stamps_place(&stamps, stamp, i, made + delay, out);
        assert_int_equal(n, i == 0 ? 0 : i == 1 ? 2 : 1);
        for (size_t k = 0; k < n; k++) {
            int64_t t = out[k].t_ns;
            assert_int_equal(out[k].raw, i + (int)k + 1 - (int)n);
            assert_true(t > last && t <= made + delay);
            if (i > 100)
                assert_true(llabs((long long)(t - made)) <= most_error_ns);
            last = t;
        }
        assert_int_equal(nrg_stamps_place(&stamps, stamp, i, made + delay + 20 * MS, out), 0);
    }
}

static void follows_another_clock(void **state)
{
    (void)state;
    run(0, 0, 4 * MS);
    run(3600 * S, 0, 4 * MS);
    run(-20 * 365 * 86400 * S, 0, 4 * MS); /* a controller that never heard of the time */
    run(1234567, 100, 8 * MS);
    run(1234567, -100, 8 * MS);
}

/* Whole seconds: readings are placed within the second that the stamp can't tell. */
static void takes_coarse_stamps(void **state)
{
    struct nrg_stamps stamps = {.most_delay_ns = 5 * S};
    struct nrg_stamped out[2];
    int64_t last = 0;
    (void)state;
    for (int i = 0; i < 200; i++) {
        int64_t made = 10 * S + i * 700 * MS, stamp = made / S * S;
        size_t n = nrg_stamps_place(&stamps, stamp, i, made + 10 * MS, out);
        for (size_t k = 0; k < n; k++) {
            int64_t t = out[k].t_ns, then = 10 * S + out[k].raw * 700 * MS;
            assert_true(t > last && t <= then + 13 * MS && t > then - S);
            last = t;
        }
    }
}

/* The first is a value of 90 ms ago, seen when we begin: its time is known by the second. */
static void an_old_first_reading(void **state)
{
    struct nrg_stamps stamps = {.most_delay_ns = S};
    struct nrg_stamped out[2];
    (void)state;
    assert_int_equal(nrg_stamps_place(&stamps, 77 * S, 1, 10 * S + 90 * MS, out), 0);
    assert_int_equal(nrg_stamps_place(&stamps, 77 * S + 100 * MS, 2, 10 * S + 102 * MS, out), 2);
    assert_int_equal(out[0].t_ns, 10 * S + 2 * MS);
    assert_int_equal(out[1].t_ns, 10 * S + 102 * MS);
}

static void survives_a_set_clock(void **state)
{
    static const int64_t steps[] = {-3600 * S, -10 * MS, 3600 * S, -30 * S};
    (void)state;
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        struct nrg_stamps stamps = {.most_delay_ns = S};
        struct nrg_stamped out[2];
        int64_t last = 0;
        for (int i = 0; i < 100; i++) {
            int64_t made = 10 * S + i * 100 * MS;
            int64_t stamp = made + (i >= 50 ? steps[k] : 0);
            if (nrg_stamps_place(&stamps, stamp, i, made + 5 * MS, out) != 1)
                continue;
            assert_true(out[0].t_ns > last && out[0].t_ns <= made + 5 * MS);
            assert_true(out[0].t_ns >= made - 20 * MS);
            last = out[0].t_ns;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_another_clock),
        cmocka_unit_test(takes_coarse_stamps),
        cmocka_unit_test(an_old_first_reading),
        cmocka_unit_test(survives_a_set_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Readings that came late or not at all: the energy that is shown, how much of the time it covers,
 * and an interval that holds what the device really used.
 */
#include "support/cmocka.h"

#include <math.h>

#include "energy/summary.h"
#include "support/made.h"

#define RUN_S 4.0

struct fixture {
    struct made made;
    struct nrg_summary summary;
};

static void summarise(struct fixture *f)
{
    size_t n;
    struct nrg_error err;
    made_run(&f->made, "command", 0, RUN_S);
    made_open(&f->made);
    const struct nrg_run *runs = nrg_recording_runs(f->made.recording, &n);
    assert_int_equal(
        nrg_summary_make(&f->summary, f->made.recording, &runs[0], NRG_SPLIT_ACTIVE, &err), 0);
}

/* A run with the readings of one channel. */
static void summarise_channel(struct fixture *f, const struct nrg_channel *c, const double *t_s,
                              const int64_t *raw, size_t n)
{
    made_init(&f->made);
    made_channel(&f->made, c, t_s, raw, n);
    summarise(f);
}

static void done(struct fixture *f)
{
    nrg_summary_release(&f->summary);
    made_release(&f->made);
}

static void close_to(double value, double expected, double off)
{
    if (!(fabs(value - expected) <= off))
        fail_msg("%g is not %g", value, expected);
}

static void holds(double low_j, double high_j, double truth_j)
{
    if (!(low_j <= truth_j + 1e-6 && high_j >= truth_j - 1e-6))
        fail_msg("%g .. %g does not hold %g", low_j, high_j, truth_j);
}

static void one_domain(const struct fixture *f, double energy_j, double covered, double truth_j)
{
    const struct nrg_summary *s = &f->summary;
    assert_int_equal(s->n_domains, 1);
    close_to(s->domains[0].energy_j, energy_j, 1e-3 * energy_j);
    close_to(s->domains[0].covered, covered, 1e-3);
    holds(s->domains[0].low_j, s->domains[0].high_j, truth_j);
    close_to(s->total_covered, covered, 1e-3);
}

/* 1 kHz, and every tenth reading is late by 9 ms: nothing is lost by that. */
static void late_readings_lose_nothing(void **state)
{
    struct fixture f;
    static double t_s[4001];
    static int64_t raw[4001];
    size_t n = 0;
    struct nrg_channel c = made_gauge("package-0");
    (void)state;
    c.update_ns = NRG_NS_PER_MS;
    for (int ms = 0; ms <= 4000; ms++)
        if (ms % 19 < 10) {
            t_s[n] = ms / 1e3;
            raw[n++] = 10000;
        }
    summarise_channel(&f, &c, t_s, raw, n);
    one_domain(&f, 40, 1, 40);
    done(&f);
}

/* Bursts that fall into the time before a late reading are in the interval. */
static void what_late_readings_hid_is_in_the_interval(void **state)
{
    struct fixture f;
    static double t_s[401];
    static int64_t raw[401];
    size_t n = 0;
    struct nrg_channel c = made_gauge("package-0");
    (void)state;
    c.update_ns = NRG_NS_PER_MS;
    for (int k = 0; k <= 400; k++) {
        bool burst = k % 100 >= 40 && k % 100 < 60; /* 0.2 s of 30 W in each second of 10 W */
        if (burst && k > 100)
            continue;
        t_s[n] = k / 1e2;
        raw[n++] = burst ? 30000 : 10000;
    }
    summarise_channel(&f, &c, t_s, raw, n);
    assert_true(f.summary.domains[0].energy_j < 50); /* three of the four bursts were not seen */
    close_to(f.summary.domains[0].covered, 1, 1e-3);
    holds(f.summary.domains[0].low_j, f.summary.domains[0].high_j, 4 * (10 + 0.2 * 20));
    done(&f);
}

static void an_outage_is_in_the_interval(void **state)
{
    struct fixture f;
    static double t_s[401];
    static int64_t raw[401];
    size_t n = 0;
    struct nrg_channel c = made_gauge("package-0");
    (void)state;
    c.update_ns = 10 * NRG_NS_PER_MS;
    for (int k = 0; k <= 400; k++)
        if (k <= 100 || k >= 200) {
            t_s[n] = k / 1e2;
            raw[n++] = k % 2 ? 12000 : 8000;
        }
    summarise_channel(&f, &c, t_s, raw, n);
    one_domain(&f, 30, 0.75, 40);
    assert_true(f.summary.domains[0].low_j <= 30);
    done(&f);
}

/* After one of two sensors left, the mean is not that of the one that stayed. */
static void a_partial_total_says_so(void **state)
{
    struct fixture f;
    struct nrg_channel a = made_counter("package-0"), b = made_counter("package-1");
    (void)state;
    made_init(&f.made);
    made_constant(&f.made, &a, 0, 4, 0.1, 30);
    made_constant(&f.made, &b, 0, 1, 0.1, 28);
    summarise(&f);
    const struct nrg_summary *s = &f.summary;
    close_to(s->total_j, 148, 0.01);
    close_to(s->total_covered, 0.25, 1e-3);
    close_to(s->total_mean_w, 58, 0.01);
    holds(s->total_low_j, s->total_high_j, 4 * 58);
    done(&f);
}

/* perf shows a register that can't be read as 0: a jump, a stand-still, a jump back. */
static void a_lost_register_is_a_gap(void **state)
{
    struct fixture f;
    static double t_s[41];
    static int64_t raw[41];
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    c.limit_w = 1000;
    c.wrap = 0;
    for (int k = 0; k <= 40; k++) {
        t_s[k] = k / 10.0;
        raw[k] = k > 10 && k < 30 ? 1000 : 5000000000 + k * 1000000; /* 10 W in uJ */
    }
    summarise_channel(&f, &c, t_s, raw, 41);
    one_domain(&f, 20, 0.5, 40);
    done(&f);
}

/* 10 W, of a counter that is at `after` when the machine wakes up, at 2 s; the recorder saw it at
 * `seen_s`, and looked at its clocks every second. */
static void sleep_of(struct fixture *f, int64_t after, double seen_s, double slept_s)
{
    static double t_s[401];
    static int64_t raw[401];
    struct nrg_channel c = made_counter("package-0");
    struct nrg_event event = {.t_ns = made_ns(seen_s), .kind = "suspend", .source = "clock"};
    c.limit_w = 0;
    c.wrap = 65536 * INT64_C(1000000);
    for (int k = 0; k <= 400; k++) {
        t_s[k] = k / 100.0;
        raw[k] = (k < 200 ? 5000000000 : after) + k * 100000;
    }
    made_init(&f->made);
    made_channel(&f->made, &c, t_s, raw, 401);
    for (int k = 0; k <= 4; k++) {
        struct nrg_clock_pair pair = {.mono_ns = made_ns(k + seen_s - 3)};
        pair.real_ns = pair.mono_ns + (k >= 3 ? (int64_t)(slept_s * 1e9) : 0);
        assert_int_equal(nrg_store_clock(f->made.store, &pair), 0);
    }
    assert_int_equal(nrg_store_event(f->made.store, &event), 0);
    summarise(f);
}

/* Without a limit it would be a wrap: 60 kJ within 10 ms. */
static void a_counter_that_a_suspend_set_back_is_a_gap(void **state)
{
    struct fixture f;
    (void)state;
    for (int late = 0; late <= 1; late++) {
        sleep_of(&f, 0, late ? 2.7 : 2.0, 3600);
        one_domain(&f, 39.9, 3.99 / 4, 40);
        assert_true(f.summary.domains[0].peak_w < 20);
        done(&f);
    }
    sleep_of(&f, 50000000000, 2.7, 60); /* ahead by 45 kJ: 750 W is what it may have used */
    one_domain(&f, 45040, 1, 45040);
    done(&f);
    sleep_of(&f, 50000000000, 2.7, 0.2); /* 200 kW are not */
    one_domain(&f, 39.9, 3.99 / 4, 40);
    done(&f);
}

/* Long after a suspend, a counter that goes back has wrapped. */
static void a_wrap_elsewhere_is_a_wrap(void **state)
{
    struct fixture f;
    (void)state;
    sleep_of(&f, 0, 3.9, 3600);
    one_domain(&f, 60576, 1, 60576);
    done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_readings_lose_nothing),
        cmocka_unit_test(what_late_readings_hid_is_in_the_interval),
        cmocka_unit_test(an_outage_is_in_the_interval),
        cmocka_unit_test(a_partial_total_says_so),
        cmocka_unit_test(a_lost_register_is_a_gap),
        cmocka_unit_test(a_counter_that_a_suspend_set_back_is_a_gap),
        cmocka_unit_test(a_wrap_elsewhere_is_a_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

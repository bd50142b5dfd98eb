/*
 * energy/timeline.c: readings become joules over time. Each test writes a recording with
 * known readings of one channel and asks for the energy between instants. energy/cursor.c, which
 * asks in order of time, with points that no reading has.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "energy/cursor.h"
#include "energy/timeline.h"
#include "record/store/writer.h"

#define S    NRG_NS_PER_S
#define ZERO (1000 * S)

struct fixture {
    char path[64];
    struct nrg_recording *recording;
    struct nrg_timeline tl;
};

static const struct nrg_driver driver = {.name = "test"};

static struct nrg_channel make_channel(enum nrg_kind kind)
{
    struct nrg_channel c = {.quantity = kind == NRG_COUNTER ? NRG_ENERGY : NRG_POWER,
                            .kind = kind,
                            .scale = 1, /* raw units are joules or watts */
                            .update_ns = NRG_NS_PER_MS};
    strcpy(c.name, "package-0");
    return c;
}

/* Readings every second; NRG_MISSING are holes, t_ns may be NULL. */
static void record(struct fixture *f, struct nrg_channel channel, const int64_t *raw, size_t n,
                   const int64_t *t_ns)
{
    bool wanted[] = {true};
    struct nrg_found found = {
        .driver = &driver, .channels = &channel, .n_channels = 1, .wanted = wanted};
    struct nrg_store *store;
    struct nrg_rows rows;
    struct nrg_error err;
    int series[1];
    size_t n_channels;
    strcpy(f->path, "/tmp/nrg-timeline-XXXXXX");
    close(mkstemp(f->path));
    assert_int_equal(nrg_store_create(f->path, true, &store, &err), 0);
    assert_int_equal(nrg_store_sensor(store, &found, S, series, 1), 0);
    nrg_rows_init(&rows, 1);
    for (size_t i = 0; i < n; i++)
        nrg_rows_add(&rows, t_ns ? t_ns[i] : ZERO + (int64_t)i * S, 0, &raw[i]);
    assert_int_equal(nrg_store_rows(store, series[0], &rows), 0);
    nrg_rows_release(&rows);
    assert_int_equal(nrg_store_close(store, &err), 0);
    assert_int_equal(nrg_recording_open(f->path, &f->recording, &err), 0);
    const struct nrg_recorded_channel *c = nrg_recording_channels(f->recording, &n_channels);
    assert_int_equal(n_channels, 1);
    assert_int_equal(nrg_timeline_load(&f->tl, f->recording, c), 0);
}

static void done(struct fixture *f)
{
    nrg_timeline_release(&f->tl);
    nrg_recording_close(f->recording);
    unlink(f->path);
}

static void check(const struct fixture *f, double from_s, double to_s, double energy_j,
                  double covered_s)
{
    int64_t covered;
    double j = nrg_timeline_between(&f->tl, ZERO + (int64_t)(from_s * 1e9),
                                    ZERO + (int64_t)(to_s * 1e9), &covered);
    if (fabs(j - energy_j) > 1e-6 || fabs((double)covered / 1e9 - covered_s) > 1e-6)
        fail_msg("%g..%g s: %g J over %g s, not %g J over %g s", from_s, to_s, j,
                 (double)covered / 1e9, energy_j, covered_s);
}

static void counter_interpolates_inside_only(void **state)
{
    struct fixture f;
    static const int64_t raw[] = {100, 110, 130, 130, 170};
    (void)state;
    record(&f, make_channel(NRG_COUNTER), raw, 5, NULL);
    check(&f, 0, 4, 70, 4);
    check(&f, 0.5, 1.5, 15, 1);
    check(&f, -5, 0, 0, 0);
    check(&f, -1, 1, 10, 1);
    check(&f, 3.5, 9, 20, 0.5);
    check(&f, 2, 2, 0, 0);
    check(&f, 3, 1, 0, 0);
    assert_int_equal(f.tl.stuck_ns, S);
    assert_true(fabs(nrg_timeline_peak(&f.tl, ZERO, ZERO + 4 * S, S) - 40) < 1e-9);
    done(&f);
}

/* One that updates no faster than it is read goes on at its ends, with the mean of its last two
 * steps and no less than an update; for an update, and no longer than it was seen. */
static void a_slow_counter_is_held(void **state)
{
    static const int64_t steps[] = {100, 110, 130, 130, 170}, few[] = {100, 160},
                         back[] = {100, 150, 10, 30, 60}, t_ns[] = {ZERO, ZERO + S / 2};
    struct nrg_channel c = make_channel(NRG_COUNTER);
    int64_t held_ns;
    struct fixture f;
    (void)state;
    c.update_ns = S;
    record(&f, c, steps, 5, NULL);
    check(&f, 0, 4, 70, 4);
    check(&f, -0.5, 1, 17.5, 1.5); /* 30 J in its first 2 s */
    check(&f, 3.5, 4.5, 30, 1);    /* 60 J in its last 3 s, of which 1 s without any */
    check(&f, 3.5, 9, 40, 1.5);
    check(&f, -9, -2, 0, 0);
    assert_true(
        fabs(nrg_timeline_counter_held(&f.tl, ZERO - S / 2, ZERO + 9 * S, &held_ns) - 27.5) < 1e-9);
    assert_int_equal(held_ns, S + S / 2);
    struct nrg_energy_cursor cursor;
    nrg_energy_cursor_init(&cursor, &f.tl, ZERO - 3 * S, 0);
    nrg_energy_cursor_advance(&cursor, ZERO + 9 * S);
    assert_true(fabs(cursor.sum_j - 105) < 1e-9);
    assert_int_equal(cursor.covered_ns, 6 * S);
    done(&f);
    record(&f, c, few, 2, t_ns); /* seen for half a second */
    check(&f, -3, 3, 180, 1.5);
    done(&f);
    record(&f, c, back, 5, NULL); /* not across a gap */
    check(&f, -1, 0, 50, 1);
    check(&f, 4, 9, 25, 1);
    done(&f);
    record(&f, c, few, 1, t_ns); /* a reading alone says nothing */
    check(&f, -1, 1, 0, 0);
    done(&f);
}

static void check_cursor(struct nrg_energy_cursor *c, double t_s, double energy_j)
{
    double j = nrg_energy_cursor_at(c, ZERO + (int64_t)(t_s * 1e9)).energy_j;
    if (!(fabs(j - energy_j) < 1e-9))
        fail_msg("up to %g s: %.12g J, not %.12g J", t_s, j, energy_j);
}

/* 8 of the first 10 J in its first quarter; of the next 20 J 2 J up to 1.5 s and 5 J up to 1.75 s.
 */
static void points_between_readings(void **state)
{
    struct fixture f;
    struct nrg_energy_cursor c;
    static const int64_t raw[] = {100, 110, 130, 130};
    static const double begins_s[] = {-1, 0, 0.5, 1.6}, before_j[] = {0, 0, 8 + 2. / 3, 13.2};
    (void)state;
    record(&f, make_channel(NRG_COUNTER), raw, 4, NULL);
    const double sum_j[] = {nrg_point_j(&f.tl, 0), nrg_point_j(&f.tl, 1)};
    const struct nrg_energy_point more[] = {{ZERO + S / 4, sum_j[0] + 8, 0},
                                            {ZERO + S * 3 / 2, sum_j[1] + 2, 1},
                                            {ZERO + S * 7 / 4, sum_j[1] + 5, 1}};
    for (size_t i = 0; i < 4; i++) {
        nrg_energy_cursor_init(&c, &f.tl, ZERO + (int64_t)(begins_s[i] * 1e9), 0);
        nrg_energy_cursor_refine(&c, more, 3);
        if (begins_s[i] < 0.25) {
            check_cursor(&c, 0.125, 4);
            check_cursor(&c, 0.25, 8);
        }
        if (begins_s[i] < 1) {
            check_cursor(&c, 0.75, 8 + 4. / 3 - before_j[i]);
            check_cursor(&c, 1.25, 11 - before_j[i]);
        }
        check_cursor(&c, 1.75, 15 - before_j[i]);
        check_cursor(&c, 1.875, 22.5 - before_j[i]);
        check_cursor(&c, 9, 30 - before_j[i]);
    }
    done(&f);
}

static void missing_counter_readings_lose_nothing(void **state)
{
    struct fixture f;
    static const int64_t raw[] = {100, NRG_MISSING, NRG_MISSING, 160, 180};
    (void)state;
    record(&f, make_channel(NRG_COUNTER), raw, 5, NULL);
    check(&f, 0, 4, 80, 4);
    done(&f);
}

static void wraps(void **state)
{
    struct fixture f;
    struct nrg_channel c = make_channel(NRG_COUNTER);
    static const int64_t raw[] = {950, 990, 30, 70};
    (void)state;
    c.wrap = 1000;
    c.limit_w = 300;
    record(&f, c, raw, 4, NULL);
    assert_int_equal(f.tl.wraps, 1);
    check(&f, 0, 3, 120, 3);
    done(&f);
}

/* 1000 J at up to 600 W: between readings 3 s apart it may have wrapped once or twice. */
static void several_wraps_are_ambiguous(void **state)
{
    struct fixture f;
    struct nrg_channel c = make_channel(NRG_COUNTER);
    static const int64_t raw[] = {100, 200, 300, 400};
    static const int64_t t_ns[] = {ZERO, ZERO + S, ZERO + 4 * S, ZERO + 5 * S};
    (void)state;
    c.wrap = 1000;
    c.limit_w = 600;
    record(&f, c, raw, 4, t_ns);
    assert_int_equal(f.tl.ambiguous, 1);
    check(&f, 0, 5, 200, 2);
    check(&f, 1, 4, 0, 0);
    done(&f);
}

static void backwards_and_jumps_are_gaps(void **state)
{
    struct fixture f;
    struct nrg_channel c = make_channel(NRG_COUNTER);
    static const int64_t raw[] = {1000, 1040, 500, 540, 99999, 100039};
    (void)state;
    c.limit_w = 300;
    record(&f, c, raw, 6, NULL);
    assert_int_equal(f.tl.backwards, 2);
    check(&f, 0, 5, 120, 3);
    done(&f);

    c.wrap = 1000000; /* back by 500 is not a wrap either: the power would be impossible */
    record(&f, c, raw, 6, NULL);
    assert_int_equal(f.tl.backwards, 2);
    assert_int_equal(f.tl.wraps, 0);
    check(&f, 0, 5, 120, 3);
    done(&f);
}

static void extreme_counters_do_not_overflow(void **state)
{
    struct fixture f;
    struct nrg_channel c = make_channel(NRG_COUNTER);
    static const int64_t raw[] = {INT64_MAX, INT64_MIN + 1, INT64_MAX, 0, -1, INT64_MAX};
    (void)state;
    c.limit_w = 300;
    record(&f, c, raw, 6, NULL);
    int64_t covered;
    double j = nrg_timeline_between(&f.tl, ZERO, ZERO + 5 * S, &covered);
    assert_true(isfinite(j) && j >= 0 && j <= 300 * 5);
    done(&f);
}

static void gauge_is_a_trapezoid_held_for_one_period(void **state)
{
    struct fixture f;
    static const int64_t raw[] = {10, 20, 20, 40};
    (void)state;
    record(&f, make_channel(NRG_GAUGE), raw, 4, NULL);
    check(&f, 0, 3, 65, 3);
    check(&f, 0.5, 1.0, 8.75, 0.5);
    check(&f, -0.5, 0, 5, 0.5);
    check(&f, -3, 0, 10, 1); /* one period of its own, no more */
    check(&f, 3, 3.25, 10, 0.25);
    check(&f, 3, 60, 40, 1);
    assert_true(nrg_timeline_gauge_at(&f.tl, ZERO + 3 * S / 2) == 20);
    assert_true(isnan(nrg_timeline_gauge_at(&f.tl, ZERO - 2 * S)));
    assert_true(isnan(nrg_timeline_gauge_at(&f.tl, ZERO + 90 * S)));
    assert_float_equal(nrg_timeline_gauge_line(&f.tl, ZERO + 9 * S / 4), 25, 1e-9);
    assert_true(nrg_timeline_gauge_line(&f.tl, ZERO + 7 * S / 2) == 40); /* held beyond the last */
    assert_true(isnan(nrg_timeline_gauge_line(&f.tl, ZERO - 2 * S)));
    done(&f);
}

static void gauge_readings_far_apart_are_a_gap(void **state)
{
    struct fixture f;
    static const int64_t raw[] = {10, 10, 50, 50};
    static const int64_t t_ns[] = {ZERO, ZERO + S, ZERO + 5 * S, ZERO + 6 * S};
    (void)state;
    record(&f, make_channel(NRG_GAUGE), raw, 4, t_ns);
    check(&f, 0, 6, 60, 2);
    check(&f, 2, 4, 0, 0);
    done(&f);
}

static void one_reading_and_none(void **state)
{
    struct fixture f;
    static const int64_t raw[] = {10, NRG_MISSING};
    (void)state;
    record(&f, make_channel(NRG_COUNTER), raw, 1, NULL);
    check(&f, -1, 1, 0, 0);
    done(&f);
    record(&f, make_channel(NRG_COUNTER), raw + 1, 1, NULL);
    check(&f, -1, 1, 0, 0);
    assert_int_equal(f.tl.n, 0);
    assert_true(nrg_timeline_peak(&f.tl, ZERO, ZERO + S, S) < 0);
    done(&f);
}

/* As a regression makes them: nothing is packed. */
static void a_timeline_in_arrays(void **state)
{
    int64_t t_ns[] = {ZERO, ZERO + S, ZERO + 3 * S, ZERO + 4 * S}, covered_ns;
    double sum_j[] = {0, 10, 10, 16};
    uint8_t gap[] = {0, 1, 0, 0};
    struct nrg_timeline tl = {.n = 4, .t_ns = t_ns, .sum_j = sum_j, .gap = gap};
    (void)state;
    assert_int_equal(nrg_timeline_up_to(&tl, ZERO - 1), 0);
    assert_int_equal(nrg_timeline_up_to(&tl, ZERO + 3 * S), 3);
    assert_int_equal(nrg_timeline_below(&tl, ZERO + 3 * S), 2);
    assert_true(nrg_timeline_between(&tl, ZERO + S / 2, ZERO + 7 * S / 2, &covered_ns) == 8);
    assert_int_equal(covered_ns, S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counter_interpolates_inside_only),
        cmocka_unit_test(a_slow_counter_is_held),
        cmocka_unit_test(points_between_readings),
        cmocka_unit_test(missing_counter_readings_lose_nothing),
        cmocka_unit_test(wraps),
        cmocka_unit_test(several_wraps_are_ambiguous),
        cmocka_unit_test(backwards_and_jumps_are_gaps),
        cmocka_unit_test(extreme_counters_do_not_overflow),
        cmocka_unit_test(gauge_is_a_trapezoid_held_for_one_period),
        cmocka_unit_test(gauge_readings_far_apart_are_a_gap),
        cmocka_unit_test(one_reading_and_none),
        cmocka_unit_test(a_timeline_in_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

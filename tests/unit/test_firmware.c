/*
 * The arithmetic of firmware/, compiled for the host: sums and windows (meter.c, sums.c) against
 * mains whose powers are known in closed form (support/mains.c), what becomes of samples when the
 * main loop is late or conversions are lost, the ends of all ranges under the sanitizers, and the
 * text of every form of line (line.c). The rest needs a processor: tests/cli/test_firmware.py.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../firmware/line.h"
#include "../../firmware/meter.h"
#include "support/mains.h"

#define RATE_HZ 2000
#define BAR     0.002 /* of the real power */

#define V_FULL 420.0 /* ends of the ADC's range */
#define I_FULL 20.0

static const struct meter_settings plain = {
    .rate_mhz = RATE_HZ * 1000,
    .cycles = 10,
    .uv_per_count = (uint32_t)(V_FULL / 512 * 1e6 + .5),
    .ua_per_count = {(int32_t)(I_FULL / 512 * 1e6 + .5), (int32_t)(I_FULL / 512 * 1e6 + .5),
                     (int32_t)(I_FULL / 512 * 1e6 + .5)},
    .late_us = {0, -200, 180},
};

/* Three clamps on one voltage: clamp c carries c + 1 times the current, sampled in its slot. */
struct board {
    struct mains mains[METER_CLAMPS];
    struct meter meter;
    double power_w, v_rms;
    unsigned long sets;
};

static void start(struct board *board, const struct meter_settings *settings)
{
    for (int c = 0; c < METER_CLAMPS; c++) {
        struct mains *mains = &board->mains[c];
        mains_init(mains, RATE_HZ);
        mains_distort(mains);
        mains->v.offset = 5;
        mains->i.offset = -.2;
        mains->v.noise = V_FULL / 512;
        mains->i.noise = I_FULL / 512;
        mains->random += (uint64_t)c;
        for (int k = 0; k < MAINS_HARMONICS; k++)
            mains->i.rms[k] *= 2 * (c + 1);
        mains->current_late_s = (c + 1) / 4.0 / RATE_HZ - settings->late_us[c] * 1e-6;
    }
    struct mains_truth truth = mains_truth(&board->mains[0]);
    board->power_w = truth.power_w;
    board->v_rms = truth.v_rms;
    board->sets = 0;
    assert_true(meter_init(&board->meter, settings));
}

static int16_t count_of(double value, double full)
{
    double count = round(value * 512 / full);
    return (int16_t)(count < -512 ? -512 : count > 511 ? 511 : count);
}

static void feed_set(struct board *board)
{
    for (uint8_t c = 0; c < METER_CLAMPS; c++) {
        double v, i;
        mains_next(&board->mains[c], &v, &i);
        if (c == 0)
            meter_voltage(&board->meter, count_of(v, V_FULL));
        meter_current(&board->meter, c, count_of(i, I_FULL));
    }
    board->sets++;
}

/* Feeds for that long, the main loop looking every `pass` sets. The last report. */
static struct meter_report feed(struct board *board, double seconds, unsigned long pass)
{
    struct meter_report report = {0};
    for (unsigned long n = (unsigned long)(seconds * RATE_HZ); n--;) {
        feed_set(board);
        if (board->sets % pass == 0)
            meter_take(&board->meter, &report);
    }
    return report;
}

static void assert_within(double is, double should, double share)
{
    if (!(fabs(is - should) <= share * fabs(should)))
        fail_msg("%.9g is not within %g %% of %.9g", is, share * 100, should);
}

/* Joules that are in no report yet are those of the running window. */
static double seconds_charged(const struct board *board)
{
    const struct meter_window *running = board->meter.window;
    return (double)(board->sets - running->n) / RATE_HZ;
}

static void energy_of_bad_mains(void **state)
{
    static struct board board;
    (void)state;
    for (double hz = 45; hz < 65; hz += 1.9) {
        start(&board, &plain);
        for (int c = 0; c < METER_CLAMPS; c++) {
            board.mains[c].frequency_hz = hz;
            board.mains[c].swing_hz = .5;
            board.mains[c].swing_period_s = 4;
        }
        struct meter_report report = feed(&board, 8, 1);
        assert_int_equal(report.lost, 0);
        assert_within(report.v_rms_cv / 100.0, board.v_rms, BAR);
        assert_true(fabs(report.frequency_mhz / 1e3 - hz) < .6);
        for (int c = 0; c < METER_CLAMPS; c++) {
            double power_w = board.power_w * (c + 1);
            assert_within((double)report.energy_dj[c] / 10, power_w * seconds_charged(&board), BAR);
            assert_within(report.power_mw[c] / 1e3, power_w, .01);
        }
    }
}

/* A window's ends lie between samples. Without noise each single window is right, not only their
 * mean: a set too many or too few would be 0.2 %. */
static void every_window_is_right(void **state)
{
    static struct meter meter;
    (void)state;
    for (double hz = 45.3; hz < 65; hz += 2.17) {
        struct meter_report report;
        unsigned windows = 0;
        assert_true(meter_init(&meter, &plain));
        for (int n = 0; n < 4 * RATE_HZ; n++) {
            const double turn = 2 * acos(-1) * hz / RATE_HZ;
            meter_voltage(&meter, (int16_t)lround(400 * sin(turn * n)));
            for (uint8_t c = 0; c < METER_CLAMPS; c++) {
                double late = plain.late_us[c] * 1e-6 * RATE_HZ;
                double at = n + (c + 1) / 4.0 - late;
                meter_current(&meter, c, (int16_t)lround(400 * sin(turn * at - .7)));
            }
            if (!meter_take(&meter, &report))
                continue;
            assert_within(report.frequency_mhz / 1e3, hz, 5e-4);
            assert_within(report.v_rms_cv / 100.0, 400 / sqrt(2) * V_FULL / 512, 5e-4);
            for (int c = 0; c < METER_CLAMPS; c++)
                assert_within(report.power_mw[c] / 1e3,
                              80000 * cos(.7) * V_FULL * I_FULL / 512 / 512, 1e-3);
            windows++;
        }
        assert_true(windows > 15);
    }
}

/* A clamp that delays the current more than was said: phase errors show, so phase is corrected. */
static void phase_matters(void **state)
{
    static struct board board;
    struct meter_settings wrong = plain;
    (void)state;
    start(&board, &plain);
    for (int c = 0; c < METER_CLAMPS; c++)
        board.mains[c].i.phase[0] = -1;
    double power_w = mains_truth(&board.mains[1]).power_w;
    struct meter_report report = feed(&board, 3, 1);
    assert_within(report.power_mw[1] / 1e3, power_w, .01);
    wrong.late_us[1] = 0;
    start(&board, &plain);
    for (int c = 0; c < METER_CLAMPS; c++)
        board.mains[c].i.phase[0] = -1;
    assert_true(meter_init(&board.meter, &wrong));
    report = feed(&board, 3, 1);
    assert_true(fabs(report.power_mw[1] / 1e3 / power_w - 1) > .05);
}

/* The first cycle is not in a window; its time is charged all the same. */
static void the_beginning_is_charged(void **state)
{
    static struct board board;
    struct meter_report report;
    (void)state;
    start(&board, &plain);
    while (!meter_take(&board.meter, &report))
        feed_set(&board);
    assert_int_equal(report.lost, 0);
    assert_within((double)report.energy_dj[2] / 10, board.power_w * 3 * seconds_charged(&board),
                  .01);
    assert_false(meter_take(&board.meter, &report));
}

static void a_late_main_loop_loses_nothing(void **state)
{
    static struct board board;
    (void)state;
    start(&board, &plain);
    struct meter_report report = feed(&board, 30, 3 * RATE_HZ);
    assert_int_equal(report.lost, 0);
    const struct meter_window *waiting = &board.meter.windows[board.meter.filling ^ 1];
    double seconds = seconds_charged(&board) - (double)waiting->n / RATE_HZ;
    assert_within((double)report.energy_dj[0] / 10, board.power_w * seconds, BAR);
    assert_within(report.v_rms_cv / 100.0, board.v_rms, BAR);
}

/* While a window is the main loop's, the interrupt leaves it alone. */
static void a_waiting_window_is_left_alone(void **state)
{
    static struct board board;
    static struct meter_window before;
    (void)state;
    start(&board, &plain);
    while (!board.meter.full)
        feed_set(&board);
    const struct meter_window *waiting = &board.meter.windows[board.meter.filling ^ 1];
    before = *waiting;
    for (int n = 0; n < 3 * RATE_HZ; n++)
        feed_set(&board);
    assert_memory_equal(&before, waiting, sizeof before);
}

/* Beyond 4 s sums would overflow: samples are lost, counted, and charged at the mean. */
static void a_stuck_main_loop_is_told(void **state)
{
    static struct board board;
    (void)state;
    start(&board, &plain);
    struct meter_report report = feed(&board, 60, 10 * RATE_HZ);
    assert_true(report.lost > 3 * RATE_HZ * METER_SLOTS);
    assert_true(report.lost < 60 * RATE_HZ * METER_SLOTS);
    assert_within(report.power_mw[0] / 1e3, board.power_w, .01);
}

static void lost_conversions_are_charged(void **state)
{
    static struct board board;
    struct meter_report report = {0};
    unsigned long lost = 0;
    (void)state;
    start(&board, &plain);
    for (unsigned long n = 0; n < 10 * RATE_HZ; n++) {
        feed_set(&board);
        if (n % 397 == 0) {
            meter_lost(&board.meter, 8);
            lost += 8;
        }
        meter_take(&board.meter, &report);
    }
    const struct meter_window *running = board.meter.window;
    double seconds = seconds_charged(&board) + (double)report.lost / METER_SLOTS / RATE_HZ;
    assert_int_equal(report.lost, lost - running->lost);
    assert_within((double)report.energy_dj[0] / 10, board.power_w * seconds, BAR);
}

static void a_turned_clamp_counts_with_a_negative_scale_only(void **state)
{
    static struct board board;
    struct meter_settings turned = plain;
    (void)state;
    turned.ua_per_count[1] = -turned.ua_per_count[1];
    start(&board, &turned);
    struct meter_report report = feed(&board, 3, 1);
    assert_within(report.power_mw[1] / 1e3, -2 * board.power_w, .01);
    assert_int_equal(report.energy_dj[1], 0); /* a counter does not go back */
    assert_true(report.energy_dj[0] > 1000);
}

static void no_mains(void **state)
{
    static struct meter meter;
    struct meter_report report = {.frequency_mhz = 1};
    unsigned windows = 0;
    (void)state;
    assert_true(meter_init(&meter, &plain));
    for (int n = 0; n < 10 * RATE_HZ; n++) {
        meter_voltage(&meter, 7);
        for (uint8_t c = 0; c < METER_CLAMPS; c++)
            meter_current(&meter, c, (int16_t)(-40 * c));
        windows += meter_take(&meter, &report);
    }
    assert_true(windows > 20);
    assert_int_equal(report.frequency_mhz, 0);
    assert_int_equal(report.v_rms_cv, 0);
    for (int c = 0; c < METER_CLAMPS; c++)
        assert_int_equal(report.power_mw[c], 0);
}

static void settings_are_checked(void **state)
{
    struct meter meter;
    struct meter_settings set = plain;
    (void)state;
    set.cycles = 0;
    assert_false(meter_init(&meter, &set));
    set = plain;
    set.rate_mhz = 100000;
    assert_false(meter_init(&meter, &set));
    set.rate_mhz = 20000000; /* windows of more sets than the sums hold */
    set.cycles = 20;
    assert_false(meter_init(&meter, &set));
    set = plain;
    set.uv_per_count = 0;
    assert_false(meter_init(&meter, &set));
    set = plain;
    set.ua_per_count[2] = 0;
    assert_false(meter_init(&meter, &set));
    set.ua_per_count[2] = INT32_MIN;
    assert_false(meter_init(&meter, &set));
    set = plain;
    set.late_us[0] = 600; /* more than a set */
    assert_false(meter_init(&meter, &set));
}

static uint32_t random_number(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

/* Any samples, any settings, any main loop: nothing overflows (the sanitizer watches). */
static void any_samples(void **state)
{
    unsigned tried = 0;
    (void)state;
    for (uint64_t seed = 1; seed < 100; seed++) {
        static struct meter meter;
        struct meter_report report;
        uint64_t next = seed;
        struct meter_settings set = {.rate_mhz = random_number(&next) % 20000001,
                                     .cycles = (uint8_t)(1 + random_number(&next) % 20),
                                     .uv_per_count = random_number(&next) % 10000001};
        for (int c = 0; c < METER_CLAMPS; c++)
            set.ua_per_count[c] = (int32_t)random_number(&next) >> seed % 20;
        if (!meter_init(&meter, &set))
            continue;
        tried++;
        unsigned swing = 1 + random_number(&next) % 200, pass = 1 + random_number(&next) % 20000;
        for (unsigned n = 0; n < 40000; n++) {
            int16_t x = n / swing % 2 ? 511 : -512;
            meter_voltage(&meter, seed % 3 ? x : (int16_t)(random_number(&next) % 1024 - 512));
            for (uint8_t c = 0; c < METER_CLAMPS; c++)
                meter_current(&meter, c, c ? x : (int16_t)(-x - 1));
            if (n % pass == 0)
                meter_lost(&meter, UINT16_MAX);
            if (n % pass == 0)
                meter_take(&meter, &report);
        }
    }
    assert_true(tried > 20);
}

static const struct meter_report some = {.v_rms_cv = 23012,
                                         .power_mw = {1234567, -3400, 40000000},
                                         .energy_dj = {359999, 36000, UINT64_C(1) << 32},
                                         .lost = 0};

static void assert_line(struct line *line, enum line_form form, const struct meter_report *report,
                        const char *expected)
{
    char text[LINE_MOST + 1];
    uint8_t n = line_format(line, form, 5, report, text);
    text[n] = 0;
    assert_string_equal(text, expected);
}

static void forms_of_lines(void **state)
{
    struct line line = {0};
    struct meter_report report = some;
    (void)state;
    /* 1235 is 211 4, -3 is 253 255, and 40 kW do not fit 16 bits */
    assert_line(&line, LINE_NOTES, &some, "OK 5 211 4 253 255 255 127 228 89 (-0)\r\n");
    memset(&line, 0, sizeof line);
    assert_line(&line, LINE_EMONPI, &some,
                "OK 5 211 4 253 255 208 4 228 89 184 11 184 11 184 11 184 11 184 11 184 11 "
                "0 0 0 0 (-0)\r\n");
    memset(&line, 0, sizeof line);
    report.lost = 12;
    assert_line(&line, LINE_JOULES, &report,
                "lost 12 conversions\r\n"
                "OK 5 211 4 253 255 255 127 228 89 63 126 5 0 160 140 0 0 0 0 0 0 (-0)\r\n");
    assert_line(&line, LINE_MSG, &report,
                "MSG:1,Vrms:230.12,P1:1234.6,P2:-3.4,P3:40000.0,E1:9,E2:1,E3:119304,lost:12\r\n");
}

/* Rounding to watts is made up for by the next lines. */
static void small_powers_add_up(void **state)
{
    struct line line = {0};
    struct meter_report report = {.power_mw = {400, -400, 1600}};
    char text[LINE_MOST + 1];
    int sums[3] = {0, 0, 0};
    (void)state;
    for (int k = 0; k < 10; k++) {
        int bytes[6];
        text[line_format(&line, LINE_NOTES, 5, &report, text)] = 0;
        assert_int_equal(sscanf(text, "OK 5 %d %d %d %d %d %d", &bytes[0], &bytes[1], &bytes[2],
                                &bytes[3], &bytes[4], &bytes[5]),
                         6);
        for (int c = 0; c < 3; c++)
            sums[c] += (int16_t)(bytes[2 * c] | bytes[2 * c + 1] << 8);
    }
    assert_int_equal(sums[0], 4);
    assert_int_equal(sums[1], -4);
    assert_int_equal(sums[2], 16);
}

/* The longest text that there can be has room. */
static void lines_have_room(void **state)
{
    const struct meter_report most = {
        .v_rms_cv = UINT16_MAX,
        .power_mw = {-2000000000, -2000000000, -2000000000},
        .energy_dj = {UINT64_MAX / 1000, UINT64_MAX / 1000, UINT64_MAX / 1000},
        .lost = UINT32_MAX};
    (void)state;
    for (int form = LINE_NOTES; form <= LINE_MSG; form++) {
        struct line line = {.number = UINT32_MAX - 1};
        char text[255];
        assert_in_range(line_format(&line, (enum line_form)form, 255, &most, text), 1, LINE_MOST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energy_of_bad_mains),
        cmocka_unit_test(every_window_is_right),
        cmocka_unit_test(phase_matters),
        cmocka_unit_test(the_beginning_is_charged),
        cmocka_unit_test(a_late_main_loop_loses_nothing),
        cmocka_unit_test(a_waiting_window_is_left_alone),
        cmocka_unit_test(a_stuck_main_loop_is_told),
        cmocka_unit_test(lost_conversions_are_charged),
        cmocka_unit_test(a_turned_clamp_counts_with_a_negative_scale_only),
        cmocka_unit_test(no_mains),
        cmocka_unit_test(settings_are_checked),
        cmocka_unit_test(any_samples),
        cmocka_unit_test(forms_of_lines),
        cmocka_unit_test(small_powers_add_up),
        cmocka_unit_test(lines_have_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

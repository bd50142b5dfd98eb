/*
 * The main loop's half of meter.h: from the sums of a window to watts, volts and joules.
 *
 * A window ends at a zero crossing, which lies between two sets. The sets on both sides are shared
 * between the two windows by the trapezoid rule, so what one window loses the next one gets: no
 * sample is in two windows or in none, and a frequency that does not fit the sampling rate leaks
 * nothing. Offsets go out exactly: sum(v*i) - sum(v)*sum(i)/n.
 *
 * Energy is kept in units of the sums; only whole tenths of a joule are taken out, so nothing is
 * lost to rounding however long it runs. Conversions that were lost are charged at the mean
 * power of their window.
 *
 * Ranges: samples have 10 bits about 0, so products stay below 2^18, sums of 8000 sets below 2^31
 * and weighed sums below 2^46.
 */
#include "meter.h"

#include <string.h>

#define ONE          1024 /* a set */
#define TAP_ONE      16384
#define PLACE_ONE    4096 /* a set, for delays */
#define FASTEST_HZ   75
#define SLOWEST_HZ   30
#define FIRST_ARM    16 /* counts, until the voltage's size is known */
#define PER_JOULE    256
#define MOST_MW      2000000000
#define MOST_LOST    ((uint32_t)1 << 22) /* conversions in a window: 9 minutes */
#define POWER_UNIT   16
#define NOT_CROSSING (ONE / 2)

static int16_t divide_rounded(int64_t x, int64_t y)
{
    return (int16_t)((x < 0 ? x - y / 2 : x + y / 2) / y);
}

/* The cubic through the sets at -1, 0, 1 and 2, at x (1/4096). What rounding leaves goes to the
 * set at 0, so that a constant stays what it is. */
static void cubic_taps(int64_t x, int16_t taps[METER_TAPS])
{
    const int64_t one = PLACE_ONE, unit = one * one * one / TAP_ONE;
    taps[0] = divide_rounded(-x * (x - one) * (x - 2 * one), 6 * unit);
    taps[2] = divide_rounded(-(x + one) * x * (x - 2 * one), 2 * unit);
    taps[3] = divide_rounded((x + one) * x * (x - one), 6 * unit);
    taps[1] = (int16_t)(TAP_ONE - taps[0] - taps[2] - taps[3]);
}

static bool init_clamp(struct meter *meter, const struct meter_settings *settings, uint8_t c)
{
    int64_t late = (int64_t)settings->late_us[c] * settings->rate_mhz * PLACE_ONE / 1000000000;
    int32_t ua = settings->ua_per_count[c];
    if (!ua || ua < -INT32_MAX || late < -PLACE_ONE || late > PLACE_ONE)
        return false;
    cubic_taps((c + 1) * PLACE_ONE / METER_SLOTS - late, meter->taps[c]);
    meter->turned[c] = ua < 0;
    /* A sum of 1 is uv * ua / 10^12 W for one set. */
    uint32_t size_ua = (uint32_t)(ua < 0 ? -ua : ua);
    uint64_t per_ampere = UINT64_C(1000000000000) * PER_JOULE / settings->uv_per_count;
    uint64_t per_joule = per_ampere * settings->rate_mhz / size_ua / 1000;
    meter->per_joule[c] = (uint32_t)per_joule;
    return per_joule >= 16384 && per_joule <= UINT32_MAX;
}

bool meter_init(struct meter *meter, const struct meter_settings *settings)
{
    memset(meter, 0, sizeof *meter);
    if (settings->rate_mhz < 500000 || settings->rate_mhz > 20000000 || !settings->cycles ||
        settings->cycles > 100 || settings->uv_per_count < 1000 ||
        settings->uv_per_count > 10000000)
        return false;
    meter->shortest = (uint16_t)(settings->rate_mhz / (1000 * (uint32_t)FASTEST_HZ));
    meter->longest = (uint16_t)(settings->rate_mhz / (1000 * (uint32_t)SLOWEST_HZ));
    if ((uint32_t)settings->cycles * meter->longest > METER_MOST_SETS)
        return false;
    for (uint8_t c = 0; c < METER_CLAMPS; c++)
        if (!init_clamp(meter, settings, c))
            return false;
    meter->rate_mhz = settings->rate_mhz;
    meter->uv_per_count = settings->uv_per_count;
    meter->cycles = settings->cycles;
    meter->window = meter->windows;
    meter->hysteresis = meter->next_hysteresis = FIRST_ARM;
    return true;
}

static uint32_t square_root(uint64_t x)
{
    uint64_t root = 0, bit = (uint64_t)1 << 62;
    while (bit > x)
        bit >>= 2;
    for (; bit; bit >>= 2) {
        bool fits = x >= root + bit;
        x -= fits ? root + bit : 0;
        root = (root >> 1) + (fits ? bit : 0);
    }
    return (uint32_t)root;
}

/* Where between the two sets the crossing is, 1/1024. */
static int16_t place_of(const struct meter_edge *edge)
{
    int16_t before = (int16_t)(edge->v[1] - edge->zero), after = (int16_t)(edge->v[2] - edge->zero);
    if (!edge->crossing || before >= 0 || after <= before)
        return NOT_CROSSING;
    return (int16_t)((int32_t)before * ONE / (before - after));
}

/* What the window before the edge gets of the set after it, less what it gives of its own last. */
static int32_t piece_of(int32_t before, int32_t after, int16_t place)
{
    int16_t of_after = (int16_t)((int32_t)place * place / (2 * ONE));
    int16_t of_before = (int16_t)(ONE / 2 - place + of_after);
    return (after * of_after - before * of_before + ONE / 2) >> 10;
}

/* Shares the sets about an edge: added at the end of a window, taken away (negative sign) at the
 * beginning of the next. Returns the change of the window's length, 1/1024 sets. */
static int16_t share_edge(struct meter_sums *sums, const struct meter_edge *edge, int8_t sign)
{
    int16_t place = place_of(edge);
    const int16_t *v = edge->v;
    sums->v += sign * piece_of(v[1], v[2], place);
    sums->vv += sign * piece_of((int32_t)v[1] * v[1], (int32_t)v[2] * v[2], place);
    for (uint8_t c = 0; c < METER_CLAMPS; c++) {
        const int16_t *i = edge->i[c];
        sums->clamp[c].i += sign * piece_of(i[0], i[1], place);
        for (uint8_t t = 0; t < METER_TAPS; t++)
            sums->clamp[c].vi[t] +=
                sign * piece_of((int32_t)i[0] * v[t], (int32_t)i[1] * v[t + 1], place);
    }
    return (int16_t)(sign * (place - ONE / 2));
}

/* sum(v*i) of a clamp with the voltage at the current's own time, without offsets. */
static int64_t weigh_products(const struct meter *meter, const struct meter_sums *sums, uint8_t c,
                              int32_t n)
{
    int64_t sum = TAP_ONE / 2;
    for (uint8_t t = 0; t < METER_TAPS; t++)
        sum += (int64_t)sums->clamp[c].vi[t] * meter->taps[c][t];
    sum = (sum >> 14) - (int64_t)sums->v * sums->clamp[c].i * ONE / n;
    return meter->turned[c] ? -sum : sum;
}

/* The counter never goes back: energy that a clamp returns is subtracted from what follows. */
static void charge_energy(struct meter *meter, uint8_t c, int64_t vi)
{
    meter->rest[c] += vi * (10 * PER_JOULE);
    if (meter->rest[c] < meter->per_joule[c])
        return;
    int64_t energy_dj = meter->rest[c] / meter->per_joule[c];
    meter->energy_dj[c] += (uint64_t)energy_dj;
    meter->rest[c] -= energy_dj * meter->per_joule[c];
}

static int32_t power_of(const struct meter *meter, uint8_t c, int64_t vi, int32_t n)
{
    int64_t work = vi * POWER_UNIT * meter->rate_mhz / meter->per_joule[c];
    int64_t power_mw = work * (PER_JOULE / POWER_UNIT) * ONE / n;
    return (int32_t)(power_mw > MOST_MW ? MOST_MW : power_mw < -MOST_MW ? -MOST_MW : power_mw);
}

static uint16_t volts_of(const struct meter *meter, uint32_t vv, int32_t n)
{
    uint64_t square = (uint64_t)vv * 65536 / (uint32_t)n * ONE; /* 1/65536 */
    uint64_t v_rms_cv =
        (uint64_t)square_root(square) * meter->uv_per_count / (256 * UINT64_C(10000));
    return v_rms_cv > UINT16_MAX ? UINT16_MAX : (uint16_t)v_rms_cv;
}

/* The voltage's part of a report, and the crossing level for the window after the next. */
static void report_voltage(struct meter *meter, const struct meter_window *window, int32_t n,
                           struct meter_report *report)
{
    const struct meter_sums *sums = &window->sums;
    int32_t vv = sums->vv - (int32_t)((int64_t)sums->v * sums->v * ONE / n);
    uint32_t spread = vv > 0 ? (uint32_t)vv : 0;
    report->v_rms_cv = volts_of(meter, spread, n);
    report->frequency_mhz = 0;
    if (!window->broken)
        report->frequency_mhz =
            (uint32_t)((uint64_t)meter->rate_mhz * window->cycles * ONE / (uint32_t)n);
    meter->next_zero = (int16_t)(sums->v / window->n);
    meter->next_hysteresis = (int16_t)(square_root(spread / window->n) / 2);
}

static void report_window(struct meter *meter, struct meter_window *window,
                          struct meter_report *report)
{
    int32_t n = (int32_t)window->n * ONE;
    n += share_edge(&window->sums, &window->end, 1);
    n += share_edge(&window->sums, &window->begin, -1);
    uint32_t lost = window->lost < MOST_LOST ? window->lost : MOST_LOST;
    int32_t unseen_n = (int32_t)(lost * (ONE / METER_SLOTS) + (uint32_t)window->ahead * ONE);
    for (uint8_t c = 0; c < METER_CLAMPS; c++) {
        int64_t vi = weigh_products(meter, &window->sums, c, n);
        charge_energy(meter, c, unseen_n ? vi + vi * unseen_n / n : vi);
        report->power_mw[c] = power_of(meter, c, vi, n);
        report->energy_dj[c] = meter->energy_dj[c];
    }
    report_voltage(meter, window, n, report);
    meter->lost += lost;
    report->lost = meter->lost;
}

bool meter_take(struct meter *meter, struct meter_report *report)
{
    if (!meter->full)
        return false;
    METER_HAND_OVER();
    struct meter_window *window = &meter->windows[meter->filling ^ 1];
    report_window(meter, window, report);
    memset(window, 0, sizeof *window);
    METER_HAND_OVER();
    meter->full = false;
    return true;
}

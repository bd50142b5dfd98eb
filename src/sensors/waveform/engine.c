/*
 * See waveform/engine.h. Sums are kept on two levels: of the current cycle, and of the window that
 * consists of complete cycles. So a recording that stops in the middle of a cycle still ends with a
 * whole one, and the remainder is charged at the power of the window before it.
 *
 * A cut at the fraction x between two samples with the products a and b: the product is
 * interpolated linearly between samples, and each sample stands for half a step on both sides. So
 * the old side's sum changes by d = x*x/2*b - (1-x)*(1-x)/2*a, and the new side starts with -d.
 * What one window loses the next one gets, exactly.
 */
#include "sensors/waveform/engine.h"

#include <math.h>

#define MASK (NRG_WAVE_HISTORY - 1)

/* A crossing that comes faster is noise; without one for longer there is no mains. */
#define FASTEST_HZ 75
#define SLOWEST_HZ 30

static nrg_wave_real floor_of(nrg_wave_real x)
{
    nrg_wave_real whole = (nrg_wave_real)(int)x;
    return whole > x ? whole - 1 : whole;
}

/* Weights of the samples at -1, 0, 1 and 2 for a point at f in 0..1: the cubic through them. */
static void set_cubic_taps(nrg_wave_real f, nrg_wave_real taps[4])
{
    taps[0] = -f * (f - 1) * (f - 2) / 6;
    taps[1] = (f + 1) * (f - 1) * (f - 2) / 2;
    taps[2] = -(f + 1) * f * (f - 2) / 2;
    taps[3] = (f + 1) * f * (f - 1) / 6;
}

/* The delay of everything that is needed so that negative delays can be met. */
static unsigned lead_of(const struct nrg_wave_settings *set)
{
    nrg_wave_real lead = 0;
    for (unsigned c = 0; c < set->n_currents; c++) {
        nrg_wave_real whole = floor_of(set->delay[c]);
        nrg_wave_real need = set->delay[c] > whole ? 1 - whole : -whole;
        if (need > lead)
            lead = need;
    }
    return (unsigned)lead;
}

static bool set_delays(struct nrg_wave *wave)
{
    const nrg_wave_real most = (nrg_wave_real)NRG_WAVE_HISTORY / 2 - 4;
    for (unsigned c = 0; c < wave->set.n_currents; c++)
        if (!(wave->set.delay[c] >= -most && wave->set.delay[c] <= most))
            return false;
    wave->lead = lead_of(&wave->set);
    for (unsigned c = 0; c < wave->set.n_currents; c++) {
        nrg_wave_real delay = wave->set.delay[c] + (nrg_wave_real)wave->lead;
        nrg_wave_real whole = floor_of(delay);
        wave->delay[c].whole = (unsigned)whole;
        wave->delay[c].fraction = delay > whole;
        set_cubic_taps(delay - whole, wave->delay[c].taps);
    }
    return true;
}

/* Begins anew; energy is kept. */
static void restart_wave(struct nrg_wave *wave)
{
    static const struct nrg_wave_sums none;
    wave->at = wave->cycles = 0;
    wave->have_last = wave->armed = wave->settled = wave->begun = wave->broken = false;
    wave->settle = (unsigned)(wave->set.rate_hz / 40) + 1;
    wave->zero = wave->v_offset = wave->set.v_offset;
    for (unsigned c = 0; c < wave->set.n_currents; c++)
        wave->i_offset[c] = wave->set.i_offset[c];
    wave->cycle = wave->window = wave->before = none;
    wave->hysteresis = wave->owed = 0;
}

bool nrg_wave_init(struct nrg_wave *wave, const struct nrg_wave_settings *settings)
{
    static const struct nrg_wave zeros;
    *wave = zeros;
    wave->set = *settings;
    if (!wave->set.cycles)
        wave->set.cycles = 10;
    if (!(settings->rate_hz >= 200 && settings->rate_hz <= 100000000) || !settings->n_currents ||
        settings->n_currents > NRG_WAVE_CURRENTS || settings->cycles > 100000 || !set_delays(wave))
        return false;
    wave->shortest = settings->rate_hz / FASTEST_HZ;
    wave->longest = settings->rate_hz / SLOWEST_HZ;
    restart_wave(wave);
    return true;
}

/* Two points in turn: one is being filled, the other is the last. */
static const struct nrg_wave_point *last_of(const struct nrg_wave *wave)
{
    return &wave->points[wave->turn ^ 1];
}

static void add_sums(struct nrg_wave_sums *to, const struct nrg_wave_sums *from, unsigned n)
{
    to->n += from->n;
    to->v += from->v;
    to->vv += from->vv;
    for (unsigned c = 0; c < n; c++) {
        to->of[c].i += from->of[c].i;
        to->of[c].ii += from->of[c].ii;
        to->of[c].vi += from->of[c].vi;
    }
}

/* Adds a point with a weight. */
static void add_point(const struct nrg_wave *wave, const struct nrg_wave_point *point,
                      nrg_wave_real weight, struct nrg_wave_sums *sums)
{
    nrg_wave_real v = point->v - wave->v_offset;
    sums->n += weight;
    sums->v += weight * v;
    sums->vv += weight * v * v;
    for (unsigned c = 0; c < wave->set.n_currents; c++) {
        nrg_wave_real i = point->i[c] - wave->i_offset[c];
        sums->of[c].i += weight * i;
        sums->of[c].ii += weight * i * i;
        sums->of[c].vi += weight * (point->shifted[c] - wave->v_offset) * i;
    }
}

/* Moves sums to other offsets: (v - a)(i - b) = vi - a*i - b*v + ab, for any samples. */
static void move_offsets(struct nrg_wave *wave, struct nrg_wave_sums *sums, nrg_wave_real dv,
                         const nrg_wave_real *di)
{
    for (unsigned c = 0; c < wave->set.n_currents; c++) {
        sums->of[c].vi += sums->n * dv * di[c] - dv * sums->of[c].i - di[c] * sums->v;
        sums->of[c].ii += sums->n * di[c] * di[c] - 2 * di[c] * sums->of[c].i;
        sums->of[c].i -= sums->n * di[c];
        wave->i_offset[c] += di[c];
    }
    sums->vv += sums->n * dv * dv - 2 * dv * sums->v;
    sums->v -= sums->n * dv;
    wave->v_offset += dv;
}

static double positive_root(double x)
{
    return x > 0 ? sqrt(x) : 0;
}

/* The result of these sums; `paid`: for how many samples energy is charged. */
static void set_result(struct nrg_wave *wave, const struct nrg_wave_sums *sums, nrg_wave_real paid,
                       struct nrg_wave_result *out)
{
    double n = (double)sums->n, dc = wave->set.keep_dc ? 0 : 1, v_scale = (double)wave->set.v_scale;
    double v = (double)sums->v / n;
    out->samples = (double)paid;
    out->owed_samples = (double)wave->owed;
    out->ago_samples = 0;
    out->cycles = wave->broken ? 0 : wave->cycles;
    bool steady = out->cycles && wave->longest_seen <= wave->shortest_seen * (nrg_wave_real)1.2;
    out->frequency_hz = steady ? (double)wave->set.rate_hz * out->cycles / n : 0;
    out->v_rms =
        positive_root((double)sums->vv / n - dc * v * v) * (v_scale < 0 ? -v_scale : v_scale);
    for (unsigned c = 0; c < wave->set.n_currents; c++) {
        double i = (double)sums->of[c].i / n, i_scale = (double)wave->set.i_scale[c];
        double power = ((double)sums->of[c].vi / n - dc * v * i) * v_scale * i_scale;
        double i_rms = positive_root((double)sums->of[c].ii / n - dc * i * i);
        out->current[c].power_w = power;
        out->current[c].i_rms = i_rms * (i_scale < 0 ? -i_scale : i_scale);
        double apparent = out->current[c].i_rms * out->v_rms;
        out->current[c].apparent_va = apparent;
        out->current[c].power_factor = apparent > 0 ? power / apparent : 0;
        wave->energy_j[c] += power * (double)(paid + wave->owed) / (double)wave->set.rate_hz;
        out->current[c].energy_j = wave->energy_j[c];
    }
    wave->owed = 0;
}

/* Takes offsets and hysteresis for the next window from the last one. */
static void learn_offsets(struct nrg_wave *wave)
{
    static const struct nrg_wave_sums none;
    const struct nrg_wave_sums *sums = &wave->window;
    nrg_wave_real dv = sums->v / sums->n, di[NRG_WAVE_CURRENTS];
    wave->hysteresis = (nrg_wave_real)positive_root((double)(sums->vv / sums->n - dv * dv)) / 2;
    wave->zero = wave->v_offset + dv;
    for (unsigned c = 0; c < wave->set.n_currents; c++)
        di[c] = sums->of[c].i / sums->n;
    if (!wave->set.keep_dc)
        move_offsets(wave, &wave->cycle, dv, di);
    wave->window = none;
    wave->cycles = 0;
    wave->broken = false;
}

/* A cycle ended at the fraction x between the last point and `now`. */
static bool end_cycle(struct nrg_wave *wave, const struct nrg_wave_point *now, nrg_wave_real x,
                      bool crossing, struct nrg_wave_result *out)
{
    struct nrg_wave_sums piece = {0};
    add_point(wave, now, x * x / 2, &piece);
    add_point(wave, last_of(wave), -(1 - x) * (1 - x) / 2, &piece);
    add_sums(&wave->cycle, &piece, wave->set.n_currents);
    if (wave->begun) {
        nrg_wave_real length = wave->cycle.n;
        if (!wave->cycles || length < wave->shortest_seen)
            wave->shortest_seen = length;
        if (!wave->cycles || length > wave->longest_seen)
            wave->longest_seen = length;
        wave->cycles++;
        wave->broken |= !crossing;
        add_sums(&wave->window, &wave->cycle, wave->set.n_currents);
    } else {
        wave->owed += wave->cycle.n;
        wave->begun = true;
    }
    struct nrg_wave_sums rest = {0};
    add_point(wave, now, -x * x / 2, &rest);
    add_point(wave, last_of(wave), (1 - x) * (1 - x) / 2, &rest);
    wave->cycle = rest;
    if (wave->cycles < wave->set.cycles)
        return false;
    set_result(wave, &wave->window, wave->window.n, out);
    wave->before = wave->window;
    out->ago_samples = (double)wave->lead + 1 - (double)x;
    learn_offsets(wave);
    return true;
}

/* The first samples, a bit more than a slow cycle, give the middle and the amplitude of v. */
static void settle_voltage(struct nrg_wave *wave, nrg_wave_real v)
{
    nrg_wave_real none[NRG_WAVE_CURRENTS] = {0};
    if (!wave->have_last || v < wave->low)
        wave->low = v;
    if (!wave->have_last || v > wave->high)
        wave->high = v;
    if (wave->settle-- > 1)
        return;
    wave->settled = true;
    wave->zero = (wave->low + wave->high) / 2;
    wave->hysteresis = (wave->high - wave->low) / 8;
    if (!wave->set.keep_dc)
        move_offsets(wave, &wave->cycle, wave->zero - wave->v_offset, none);
}

/* True when a cycle ends between the last point and this one; *x: where. */
static bool cycle_ends(struct nrg_wave *wave, nrg_wave_real v, nrg_wave_real *x, bool *crossing)
{
    nrg_wave_real before = last_of(wave)->v - wave->zero, after = v - wave->zero;
    bool due = wave->armed && after >= 0;
    wave->armed = after < 0 && (wave->armed || after < -wave->hysteresis);
    nrg_wave_real limit = wave->begun ? wave->longest : 2 * wave->longest;
    *crossing = due && (!wave->begun || wave->cycle.n >= wave->shortest);
    *x = before < 0 && *crossing ? before / (before - after) : (nrg_wave_real)0.5;
    return *crossing || wave->cycle.n >= limit;
}

static void look_up(struct nrg_wave *wave, struct nrg_wave_point *now)
{
    now->v = wave->past_v[(wave->at - wave->lead) & MASK];
    for (unsigned c = 0; c < wave->set.n_currents; c++) {
        unsigned from = wave->at - wave->delay[c].whole;
        const nrg_wave_real *taps = wave->delay[c].taps;
        now->i[c] = wave->past_i[c][(wave->at - wave->lead) & MASK];
        now->shifted[c] = wave->past_v[from & MASK];
        if (wave->delay[c].fraction)
            now->shifted[c] = taps[0] * wave->past_v[(from + 1) & MASK] +
                              taps[1] * now->shifted[c] +
                              taps[2] * wave->past_v[(from - 1) & MASK] +
                              taps[3] * wave->past_v[(from - 2) & MASK];
    }
}

/* Fills the past with the first sample, so that delays have something to read. */
static void fill_history(struct nrg_wave *wave, nrg_wave_real v, const nrg_wave_real *i)
{
    for (unsigned k = 0; k < NRG_WAVE_HISTORY; k++)
        wave->past_v[k] = v;
    for (unsigned c = 0; c < wave->set.n_currents; c++)
        for (unsigned k = 0; k < NRG_WAVE_HISTORY; k++)
            wave->past_i[c][k] = i[c];
}

bool nrg_wave_feed(struct nrg_wave *wave, nrg_wave_real v, const nrg_wave_real *i,
                   struct nrg_wave_result *out)
{
    struct nrg_wave_point *now = &wave->points[wave->turn];
    nrg_wave_real x;
    bool done = false, crossing;
    if (!wave->have_last)
        fill_history(wave, v, i);
    wave->at = (wave->at + 1) & MASK;
    wave->past_v[wave->at] = v;
    for (unsigned c = 0; c < wave->set.n_currents; c++)
        wave->past_i[c][wave->at] = i[c];
    look_up(wave, now);
    if (!wave->settled)
        settle_voltage(wave, now->v);
    else if (cycle_ends(wave, now->v, &x, &crossing))
        done = end_cycle(wave, now, x, crossing, out);
    add_point(wave, now, 1, &wave->cycle);
    wave->turn ^= 1;
    wave->have_last = true;
    return done;
}

bool nrg_wave_finish(struct nrg_wave *wave, struct nrg_wave_result *out)
{
    nrg_wave_real left = wave->window.n + wave->cycle.n;
    const struct nrg_wave_sums *sums = wave->cycles         ? &wave->window
                                       : wave->before.n > 0 ? &wave->before
                                                            : &wave->cycle;
    if (!(left > 0) || !(sums->n > 0))
        return false;
    set_result(wave, sums, left, out);
    restart_wave(wave);
    return true;
}

/*
 * See waveform_int.h, and waveform.c for why cuts and windows are as they are. Ranges: counts and
 * offsets have 17 bits, delayed voltages 21 (four of them fraction), products 38; a window has at
 * most 64 cycles of 1/30 s at 100 kHz, 2^18 samples: sums of products stay below 2^57.
 */
#include "sensors/waveform_int.h"

#define MASK (NRG_WAVEI_HISTORY - 1)
#define ONE  ((int64_t)1 << 16) /* a sample */

#define FASTEST_HZ 75
#define SLOWEST_HZ 30
#define MOST_MW    (1 << 28) /* times the longest window stays within 63 bits */
#define MOST_COUNT 65535

static int32_t limited(int64_t x, int32_t most)
{
    return x > most ? most : x < -most ? -most : (int32_t)x;
}

/* x * 2^shift / y without losing the high bits of x; y < 2^(63 - shift). */
static int64_t divide(int64_t x, int64_t y, unsigned shift)
{
    int64_t rest = x % y;
    return x / y * ((int64_t)1 << shift) + rest * ((int64_t)1 << shift) / y;
}

static uint64_t square_root(uint64_t x)
{
    uint64_t root = 0, bit = (uint64_t)1 << 62;
    while (bit > x)
        bit >>= 2;
    for (; bit; bit >>= 2) {
        bool fits = x >= root + bit;
        x -= fits ? root + bit : 0;
        root = (root >> 1) + (fits ? bit : 0);
    }
    return root;
}

/* The factor for a / b, as many bits of it as 32 hold. */
static struct nrg_wavei_scale scale_of(uint64_t a, uint64_t b)
{
    struct nrg_wavei_scale scale = {0, 0};
    while (a && a < (uint64_t)1 << 62 && scale.shift < 62) {
        a <<= 1;
        scale.shift++;
    }
    uint64_t factor = a / b;
    while (factor > UINT32_MAX && scale.shift) {
        factor >>= 1;
        scale.shift--;
    }
    scale.factor = factor > UINT32_MAX ? UINT32_MAX : (uint32_t)factor;
    return scale;
}

static int64_t scaled(int64_t x, struct nrg_wavei_scale scale)
{
    uint64_t size = x < 0 ? (uint64_t)-x : (uint64_t)x;
    uint64_t low = (size & UINT32_MAX) * scale.factor;
    uint64_t high = (size >> 32) * scale.factor + (low >> 32);
    low &= UINT32_MAX;
    uint64_t y = scale.shift >= 32 ? high >> (scale.shift - 32)
                                   : high << (32 - scale.shift) | low >> scale.shift;
    y &= INT64_MAX;
    return x < 0 ? -(int64_t)y : (int64_t)y;
}

/* The cubic through the samples at -1, 0, 1 and 2; f: 1/256. What rounding leaves goes to the
 * nearest of them, so that a constant stays what it is. */
static void cubic(int32_t f, int32_t taps[4])
{
    int64_t one = 256, unit = (int64_t)1 << 24;
    taps[0] = (int32_t)(-(int64_t)f * (f - one) * (f - 2 * one) * 16384 / 6 / unit);
    taps[2] = (int32_t)(-(f + one) * f * (f - 2 * one) * 16384 / 2 / unit);
    taps[3] = (int32_t)((f + one) * f * (f - one) * 16384 / 6 / unit);
    taps[1] = 16384 - taps[0] - taps[2] - taps[3];
}

static bool set_delays(struct nrg_wavei *wave)
{
    const int32_t most = (NRG_WAVEI_HISTORY / 2 - 4) * 256;
    int32_t lead = 0;
    for (unsigned c = 0; c < wave->set.n_currents; c++) {
        int32_t delay = wave->set.delay[c];
        if (delay < -most || delay > most)
            return false;
        int32_t whole = (delay + most) / 256 - most / 256;
        int32_t need = delay > whole * 256 ? 1 - whole : -whole;
        lead = need > lead ? need : lead;
    }
    wave->lead = (uint8_t)lead;
    for (unsigned c = 0; c < wave->set.n_currents; c++) {
        int32_t delay = wave->set.delay[c] + lead * 256;
        wave->delay[c].whole = (uint8_t)(delay / 256);
        wave->delay[c].fraction = delay % 256 != 0;
        cubic(delay % 256, wave->delay[c].taps);
    }
    return true;
}

void nrg_wavei_restart(struct nrg_wavei *wave)
{
    static const struct nrg_wavei_sums none;
    wave->at = wave->cycles = 0;
    wave->have_last = wave->armed = wave->settled = wave->begun = wave->broken = false;
    wave->settle = wave->set.rate_mhz / 40000 + 1;
    wave->zero = wave->v_offset = wave->set.v_offset;
    for (unsigned c = 0; c < wave->set.n_currents; c++)
        wave->i_offset[c] = wave->set.i_offset[c];
    wave->cycle = wave->window = none;
    wave->hysteresis = 0;
    wave->owed = 0;
}

bool nrg_wavei_init(struct nrg_wavei *wave, const struct nrg_wavei_settings *settings)
{
    static const struct nrg_wavei zeros;
    *wave = zeros;
    wave->set = *settings;
    if (!wave->set.cycles)
        wave->set.cycles = 10;
    if (settings->rate_mhz < 200000 || settings->rate_mhz > 100000000 || !settings->n_currents ||
        settings->n_currents > NRG_WAVEI_CURRENTS || settings->cycles > 64 || !set_delays(wave))
        return false;
    wave->shortest = (int64_t)settings->rate_mhz * ONE / (1000 * FASTEST_HZ);
    wave->longest = (int64_t)settings->rate_mhz * ONE / (1000 * SLOWEST_HZ);
    wave->to_mv = scale_of(settings->uv_per_count, 256000);
    for (unsigned c = 0; c < settings->n_currents; c++) {
        uint64_t ua = settings->ua_per_count[c];
        wave->to_ma[c] = scale_of(ua, 256000);
        wave->to_mw[c] = scale_of(ua * settings->uv_per_count, 256000000000u);
    }
    nrg_wavei_restart(wave);
    return true;
}

/* Two points in turn: one is filled while the other is the last. */
static const struct nrg_wavei_point *last_of(const struct nrg_wavei *wave)
{
    return &wave->points[wave->turn ^ 1];
}

static void add(struct nrg_wavei_sums *to, const struct nrg_wavei_sums *from, unsigned n)
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

static void add_point(struct nrg_wavei *wave, const struct nrg_wavei_point *now)
{
    struct nrg_wavei_sums *sums = &wave->cycle;
    int32_t v = now->v - wave->v_offset;
    sums->n += ONE;
    sums->v += v;
    sums->vv += (int64_t)v * v;
    for (unsigned c = 0; c < wave->set.n_currents; c++) {
        int32_t i = now->i[c] - wave->i_offset[c];
        sums->of[c].i += i;
        sums->of[c].ii += (int64_t)i * i;
        sums->of[c].vi += (int64_t)(now->shifted[c] - wave->v_offset * 16) * i;
    }
}

/* What goes from the new side of a cut to the old one: weights in 1/32768. */
static void piece_of(const struct nrg_wavei *wave, const struct nrg_wavei_point *now, int64_t x,
                     struct nrg_wavei_sums *piece)
{
    const struct nrg_wavei_point *last = last_of(wave);
    int64_t after = x * x >> 16, before = (32768 - x) * (32768 - x) >> 16;
    int64_t v0 = last->v - wave->v_offset, v1 = now->v - wave->v_offset;
    piece->n = (after - before) * 2;
    piece->v = (after * v1 - before * v0) / 32768;
    piece->vv = (after * v1 * v1 - before * v0 * v0) / 32768;
    for (unsigned c = 0; c < wave->set.n_currents; c++) {
        int64_t i0 = last->i[c] - wave->i_offset[c], i1 = now->i[c] - wave->i_offset[c];
        int64_t s0 = last->shifted[c] - wave->v_offset * 16;
        int64_t s1 = now->shifted[c] - wave->v_offset * 16;
        piece->of[c].i = (after * i1 - before * i0) / 32768;
        piece->of[c].ii = (after * i1 * i1 - before * i0 * i0) / 32768;
        piece->of[c].vi = (after * s1 * i1 - before * s0 * i0) / 32768;
    }
}

static void negate(struct nrg_wavei_sums *sums, unsigned n)
{
    sums->n = -sums->n;
    sums->v = -sums->v;
    sums->vv = -sums->vv;
    for (unsigned c = 0; c < n; c++) {
        sums->of[c].i = -sums->of[c].i;
        sums->of[c].ii = -sums->of[c].ii;
        sums->of[c].vi = -sums->of[c].vi;
    }
}

/* Sums about other offsets, see waveform.c. */
static void move_offsets(struct nrg_wavei *wave, struct nrg_wavei_sums *sums, int32_t dv,
                         const int32_t *di)
{
    int64_t n = sums->n;
    for (unsigned c = 0; c < wave->set.n_currents; c++) {
        sums->of[c].vi += 16 * (n * dv / ONE * di[c] - dv * sums->of[c].i - di[c] * sums->v);
        sums->of[c].ii += n * di[c] / ONE * di[c] - 2 * di[c] * sums->of[c].i;
        sums->of[c].i -= n * di[c] / ONE;
        wave->i_offset[c] += di[c];
    }
    sums->vv += n * dv / ONE * dv - 2 * dv * sums->v;
    sums->v -= n * dv / ONE;
    wave->v_offset += dv;
}

/* Mean of squares without the mean's own, 1/256; never below 0. */
static int64_t variance(int64_t squares, int64_t mean, int64_t n, bool keep_dc)
{
    int64_t x = divide(squares, n, 24) - (keep_dc ? 0 : mean * mean / 256);
    return x > 0 ? x : 0;
}

static void charge(struct nrg_wavei *wave, unsigned c, int64_t power_mw, int64_t n)
{
    int64_t rate = wave->set.rate_mhz, work = power_mw * n;
    int64_t rest = work % rate * 1000 + wave->energy_rest[c];
    wave->energy_mj[c] += work / rate * 1000 + rest / rate;
    wave->energy_rest[c] = rest % rate;
}

static void result(struct nrg_wavei *wave, struct nrg_wavei_result *out)
{
    const struct nrg_wavei_sums *sums = &wave->window;
    int64_t n = sums->n, v = divide(sums->v, n, 24); /* 1/256 */
    bool steady = !wave->broken && wave->longest_seen * 5 <= wave->shortest_seen * 6;
    uint64_t spread = (uint64_t)variance(sums->vv, v, n, wave->set.keep_dc);
    int32_t v_mv = limited(scaled((int64_t)square_root(spread << 8), wave->to_mv), INT32_MAX);
    out->samples = (uint32_t)((n + ONE / 2) / ONE);
    out->owed_samples = (uint32_t)((wave->owed + ONE / 2) / ONE);
    out->cycles = wave->broken ? 0 : wave->cycles;
    out->frequency_mhz =
        steady ? (uint32_t)((int64_t)wave->set.rate_mhz * wave->cycles * ONE / n) : 0;
    out->v_rms_mv = (uint32_t)v_mv;
    for (unsigned c = 0; c < wave->set.n_currents; c++) {
        int64_t i = divide(sums->of[c].i, n, 24);
        int64_t vi = divide(sums->of[c].vi, n, 20) - (wave->set.keep_dc ? 0 : v * i / 256);
        int32_t power_mw = limited(scaled(vi, wave->to_mw[c]), MOST_MW);
        spread = (uint64_t)variance(sums->of[c].ii, i, n, wave->set.keep_dc);
        int32_t i_ma =
            limited(scaled((int64_t)square_root(spread << 8), wave->to_ma[c]), INT32_MAX);
        int64_t apparent = limited((int64_t)v_mv * i_ma / 1000, INT32_MAX);
        out->current[c].power_mw = power_mw;
        out->current[c].i_rms_ma = (uint32_t)i_ma;
        out->current[c].apparent_mva = (uint32_t)apparent;
        out->current[c].power_factor =
            (int16_t)(apparent ? limited((int64_t)power_mw * 10000 / apparent, 10000) : 0);
        charge(wave, c, power_mw, n + wave->owed);
        out->current[c].energy_mj = wave->energy_mj[c] / ONE;
    }
    wave->owed = 0;
}

static void learn(struct nrg_wavei *wave)
{
    static const struct nrg_wavei_sums none;
    const struct nrg_wavei_sums *sums = &wave->window;
    int32_t di[NRG_WAVEI_CURRENTS], dv = limited(divide(sums->v, sums->n, 16), MOST_COUNT);
    int64_t spread = sums->vv / (sums->n / ONE) - (int64_t)dv * dv;
    wave->hysteresis = (int32_t)square_root(spread > 0 ? (uint64_t)spread : 0) / 2;
    wave->zero = wave->v_offset + dv;
    for (unsigned c = 0; c < wave->set.n_currents; c++)
        di[c] = limited(divide(sums->of[c].i, sums->n, 16), MOST_COUNT);
    if (!wave->set.keep_dc)
        move_offsets(wave, &wave->cycle, dv, di);
    wave->window = none;
    wave->cycles = 0;
    wave->broken = false;
}

static bool cut(struct nrg_wavei *wave, const struct nrg_wavei_point *now, int64_t x, bool crossing,
                struct nrg_wavei_result *out)
{
    struct nrg_wavei_sums piece;
    piece_of(wave, now, x, &piece);
    add(&wave->cycle, &piece, wave->set.n_currents);
    int64_t length = wave->cycle.n;
    if (wave->begun) {
        if (!wave->cycles || length < wave->shortest_seen)
            wave->shortest_seen = length;
        if (!wave->cycles || length > wave->longest_seen)
            wave->longest_seen = length;
        wave->cycles++;
        wave->broken |= !crossing;
        add(&wave->window, &wave->cycle, wave->set.n_currents);
    } else {
        wave->owed += length;
        wave->begun = true;
    }
    negate(&piece, wave->set.n_currents);
    wave->cycle = piece;
    if (wave->cycles < wave->set.cycles)
        return false;
    result(wave, out);
    learn(wave);
    return true;
}

static void settle(struct nrg_wavei *wave, int32_t v)
{
    static const int32_t none[NRG_WAVEI_CURRENTS];
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

static bool crossed(struct nrg_wavei *wave, int32_t v, int64_t *x, bool *crossing)
{
    int64_t before = last_of(wave)->v - wave->zero, after = v - wave->zero;
    int64_t limit = wave->begun ? wave->longest : 2 * wave->longest;
    bool due = wave->armed && after >= 0;
    wave->armed = after < 0 && (wave->armed || after < -wave->hysteresis);
    *crossing = due && (!wave->begun || wave->cycle.n >= wave->shortest);
    *x = before < 0 && *crossing ? before * 32768 / (before - after) : 16384;
    return *crossing || wave->cycle.n >= limit;
}

static void look_up(struct nrg_wavei *wave, struct nrg_wavei_point *now)
{
    now->v = wave->past_v[(wave->at - wave->lead) & MASK];
    for (unsigned c = 0; c < wave->set.n_currents; c++) {
        unsigned from = (unsigned)wave->at - wave->delay[c].whole;
        const int32_t *taps = wave->delay[c].taps;
        now->i[c] = wave->past_i[c][(wave->at - wave->lead) & MASK];
        now->shifted[c] = wave->past_v[from & MASK] * 16;
        if (wave->delay[c].fraction)
            now->shifted[c] =
                (taps[0] * wave->past_v[(from + 1) & MASK] + taps[1] * wave->past_v[from & MASK] +
                 taps[2] * wave->past_v[(from - 1) & MASK] +
                 taps[3] * wave->past_v[(from - 2) & MASK]) /
                1024;
    }
}

static void first(struct nrg_wavei *wave, int32_t v, const int32_t *i)
{
    for (unsigned k = 0; k < NRG_WAVEI_HISTORY; k++)
        wave->past_v[k] = v;
    for (unsigned c = 0; c < wave->set.n_currents; c++)
        for (unsigned k = 0; k < NRG_WAVEI_HISTORY; k++)
            wave->past_i[c][k] = limited(i[c], MOST_COUNT);
}

bool nrg_wavei_feed(struct nrg_wavei *wave, int32_t v, const int32_t *i,
                    struct nrg_wavei_result *out)
{
    struct nrg_wavei_point *now = &wave->points[wave->turn];
    int64_t x;
    bool done = false, crossing;
    v = limited(v, MOST_COUNT);
    if (!wave->have_last)
        first(wave, v, i);
    wave->at = (uint8_t)((wave->at + 1) & MASK);
    wave->past_v[wave->at] = v;
    for (unsigned c = 0; c < wave->set.n_currents; c++)
        wave->past_i[c][wave->at] = limited(i[c], MOST_COUNT);
    look_up(wave, now);
    if (!wave->settled)
        settle(wave, now->v);
    else if (crossed(wave, now->v, &x, &crossing))
        done = cut(wave, now, x, crossing, out);
    add_point(wave, now);
    wave->turn ^= 1;
    wave->have_last = true;
    return done;
}

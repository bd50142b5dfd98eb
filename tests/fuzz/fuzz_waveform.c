/*
 * Fuzz target: the sums of waveform.c and waveform_int.c under any samples and settings: results
 * are finite, and every sample is in exactly one window.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/waveform/engine.h"
#include "sensors/waveform_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int16_t s16(const uint8_t *p)
{
    return (int16_t)(p[0] | p[1] << 8);
}

static void keep(const struct nrg_wave_result *r, double *samples)
{
    if (!isfinite(r->current[0].power_w) || !isfinite(r->v_rms) || !(r->samples > 0))
        abort();
    *samples += r->samples + r->owed_samples;
}

static void run_real(const uint8_t *data, size_t n, double rate_hz, double delay, unsigned cycles)
{
    static struct nrg_wave wave;
    struct nrg_wave_settings set = {.rate_hz = rate_hz, .n_currents = 1, .v_scale = 1};
    struct nrg_wave_result result;
    double samples = 0;
    set.i_scale[0] = 1;
    set.delay[0] = delay;
    set.cycles = cycles;
    if (!nrg_wave_init(&wave, &set))
        return;
    for (size_t k = 0; k < n; k++) {
        const double i = s16(data + 4 * k + 2);
        if (nrg_wave_feed(&wave, s16(data + 4 * k), &i, &result))
            keep(&result, &samples);
    }
    if (nrg_wave_finish(&wave, &result))
        keep(&result, &samples);
    if (fabs(samples - (double)n) > 1e-6 * (double)n)
        abort();
}

static void run_integers(const uint8_t *data, size_t n, uint32_t rate_mhz, int16_t delay,
                         uint8_t cycles)
{
    static struct nrg_wavei wave;
    struct nrg_wavei_settings set = {.rate_mhz = rate_mhz, .n_currents = 1};
    struct nrg_wavei_result result;
    set.uv_per_count = rate_mhz * 7;
    set.ua_per_count[0] = rate_mhz ^ 0xffff;
    set.delay[0] = delay;
    set.cycles = cycles;
    if (!nrg_wavei_init(&wave, &set))
        return;
    for (size_t k = 0; k < n; k++) {
        const int32_t i = s16(data + 4 * k + 2) * (cycles & 1 ? 60000 : 1);
        if (nrg_wavei_feed(&wave, s16(data + 4 * k), &i, &result) && !result.samples)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 8)
        return 0;
    uint32_t rate_mhz = 0;
    memcpy(&rate_mhz, data, 4);
    size_t n = (size - 8) / 4;
    run_real(data + 8, n, rate_mhz / 1e3, s16(data + 4) / 256.0, data[6]);
    run_integers(data + 8, n, rate_mhz, s16(data + 4), data[6]);
    return 0;
}

/*
 * Fuzz target: the sums of waveform/engine.c under any samples and settings: results are finite,
 * and every sample is in exactly one window.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/waveform/engine.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 8)
        return 0;
    uint32_t rate_mhz = 0;
    memcpy(&rate_mhz, data, 4);
    size_t n = (size - 8) / 4;
    run_real(data + 8, n, rate_mhz / 1e3, s16(data + 4) / 256.0, data[6]);
    return 0;
}

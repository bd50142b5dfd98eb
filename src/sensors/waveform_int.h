/*
 * waveform.h for processors without floating point: the same windows and sums in integers.
 *
 * Samples are counts of an ADC of up to 16 bits (signed, or unsigned about its middle). Sums are
 * 64 bits wide, delays have 14 bits of fraction, moments of crossings 15. A multiply of 32 by 32
 * bits and a 64-bit add per product and sample; 64-bit divisions once per window. The file needs
 * <stdint.h> and <stdbool.h>, nothing else: no heap, no libc, no FPU. What its steps cost in
 * accuracy is stated in docs/waveform.md and held by tests/unit/test_waveform.c.
 *
 * The caller owns the state. One thread (or one interrupt) per state.
 */
#ifndef NRG_SENSORS_WAVEFORM_INT_H
#define NRG_SENSORS_WAVEFORM_INT_H

#include <stdbool.h>
#include <stdint.h>

#ifndef NRG_WAVEI_CURRENTS
#define NRG_WAVEI_CURRENTS 6
#endif
#ifndef NRG_WAVEI_HISTORY
#define NRG_WAVEI_HISTORY 32 /* samples, a power of two: delays of up to 12 */
#endif

struct nrg_wavei_settings {
    uint32_t rate_mhz; /* samples per 1000 s: 200 Hz to 100 kHz */
    uint8_t n_currents;
    uint8_t cycles;                            /* per window, up to 64; 0: 10 */
    uint32_t uv_per_count;                     /* microvolts */
    uint32_t ua_per_count[NRG_WAVEI_CURRENTS]; /* microamperes */
    int16_t delay[NRG_WAVEI_CURRENTS];         /* 1/256 samples that v is to be delayed by */
    bool keep_dc;                              /* offsets below are the truth: direct current */
    int32_t v_offset, i_offset[NRG_WAVEI_CURRENTS]; /* counts; a first guess otherwise */
};

struct nrg_wavei_result {
    uint32_t samples;       /* length of the window, rounded */
    uint32_t owed_samples;  /* before the first window: charged at its power */
    uint8_t cycles;         /* whole mains cycles in it, 0: it has none */
    uint32_t frequency_mhz; /* 0: not seen */
    uint32_t v_rms_mv;
    struct {
        int32_t power_mw;
        uint32_t i_rms_ma, apparent_mva;
        int16_t power_factor; /* 1/10000 */
        int64_t energy_mj;    /* since the beginning */
    } current[NRG_WAVEI_CURRENTS];
};

struct nrg_wavei_sums {
    int64_t n; /* 1/65536 samples */
    int64_t v, vv;
    struct {
        int64_t i, ii, vi; /* vi: 1/16, as delayed voltages are */
    } of[NRG_WAVEI_CURRENTS];
};

struct nrg_wavei_point {
    int32_t v, i[NRG_WAVEI_CURRENTS], shifted[NRG_WAVEI_CURRENTS]; /* shifted: 1/16 */
};

/* x * factor / 2^shift */
struct nrg_wavei_scale {
    uint32_t factor;
    uint8_t shift;
};

struct nrg_wavei {
    struct nrg_wavei_settings set;
    uint8_t lead;
    struct {
        uint8_t whole;
        bool fraction;
        int32_t taps[4]; /* 1/16384, sum is 16384 */
    } delay[NRG_WAVEI_CURRENTS];
    struct nrg_wavei_scale to_mv, to_ma[NRG_WAVEI_CURRENTS], to_mw[NRG_WAVEI_CURRENTS];
    int64_t shortest, longest; /* 1/65536 samples of a cycle */
    int32_t past_v[NRG_WAVEI_HISTORY], past_i[NRG_WAVEI_CURRENTS][NRG_WAVEI_HISTORY];
    uint8_t at;
    struct nrg_wavei_point points[2];
    unsigned turn; /* which of them is filled next */
    bool have_last, armed, settled, begun, broken;
    uint32_t settle;
    int32_t low, high, zero, hysteresis;
    int32_t v_offset, i_offset[NRG_WAVEI_CURRENTS];
    struct nrg_wavei_sums cycle, window;
    uint8_t cycles;
    int64_t shortest_seen, longest_seen, owed;
    int64_t energy_mj[NRG_WAVEI_CURRENTS];   /* 1/65536 */
    int64_t energy_rest[NRG_WAVEI_CURRENTS]; /* what divisions left */
};

bool nrg_wavei_init(struct nrg_wavei *wave, const struct nrg_wavei_settings *settings);
bool nrg_wavei_feed(struct nrg_wavei *wave, int32_t v, const int32_t *i,
                    struct nrg_wavei_result *out);
/* Samples were lost: begins anew; energy is kept. */
void nrg_wavei_restart(struct nrg_wavei *wave);

#endif

/*
 * Raw samples of mains voltage and current to power, in one pass, without gaps.
 *
 * Give it each sample of the voltage with those of up to NRG_WAVE_CURRENTS currents; every few
 * mains cycles it has a result: real power, Vrms, Irms, apparent power, power factor, frequency
 * and energy. Every sample belongs to exactly one window, and a cut between two samples gives each
 * side its part, so energy has no gaps.
 *
 *   offsets    removed exactly: P = mean(v*i) - mean(v)*mean(i) over whole cycles. Sums are taken
 *              about the last window's mean, which avoids cancellation in single precision.
 *   phase      of a current: the voltage is taken `delay` samples earlier, interpolated by a cubic
 *              through four samples. Negative: the current is delayed instead.
 *   windows    end at a positive-going zero crossing of the voltage (armed by a hysteresis that
 *              follows Vrms), at its interpolated time, so a drifting mains frequency causes no
 *              error. Without mains (no signal, direct current) a cycle ends by time.
 *
 * Cost: a multiply and add per product (v*v, and i*i and v*i per current), four for a delay that
 * is not whole. Divisions and roots once per window.
 *
 * Also for microcontrollers: waveform/engine.c and this file need nothing else of nrg, no heap, and
 * of libc only <stdint.h>, <stdbool.h> and sqrt. Define NRG_WAVE_REAL as float for an FPU of single
 * precision; firmware/ has the same in integers. The caller owns the state, which is plain memory.
 * One thread per state; errors are false.
 */
#ifndef NRG_SENSORS_WAVEFORM_ENGINE_H
#define NRG_SENSORS_WAVEFORM_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#ifndef NRG_WAVE_REAL
#define NRG_WAVE_REAL double
#endif
typedef NRG_WAVE_REAL nrg_wave_real;

#ifndef NRG_WAVE_CURRENTS
#define NRG_WAVE_CURRENTS 6
#endif
#ifndef NRG_WAVE_HISTORY
#define NRG_WAVE_HISTORY 128 /* samples, a power of two: delays of up to 60 */
#endif

struct nrg_wave_settings {
    nrg_wave_real rate_hz; /* samples per second of each channel */
    unsigned n_currents;
    unsigned cycles;                          /* per window; 0: 10 */
    nrg_wave_real v_scale;                    /* volts per count */
    nrg_wave_real i_scale[NRG_WAVE_CURRENTS]; /* amperes per count; negative: reversed clamp */
    nrg_wave_real delay[NRG_WAVE_CURRENTS];   /* samples to delay v by */
    bool keep_dc;                             /* direct current: the offsets below are exact */
    nrg_wave_real v_offset;                   /* counts at 0 V; without keep_dc a first guess */
    nrg_wave_real i_offset[NRG_WAVE_CURRENTS];
};

struct nrg_wave_result {
    double samples;      /* length of the window, with fractions */
    double owed_samples; /* samples before the first window, charged at that window's power */
    double ago_samples;  /* from the window's end to the last sample given */
    unsigned cycles;     /* whole mains cycles in it; 0: none */
    double frequency_hz; /* 0: no mains, or not steady enough */
    double v_rms;
    struct {
        double power_w, i_rms, apparent_va, power_factor; /* 0 without apparent power */
        double energy_j;                                  /* since the beginning */
    } current[NRG_WAVE_CURRENTS];
};

struct nrg_wave_sums {
    nrg_wave_real n, v, vv; /* n: samples, with fractions */
    struct {
        nrg_wave_real i, ii, vi;
    } of[NRG_WAVE_CURRENTS];
};

/* The samples of one moment, in raw counts. */
struct nrg_wave_point {
    nrg_wave_real v, i[NRG_WAVE_CURRENTS], shifted[NRG_WAVE_CURRENTS]; /* v, delayed */
};

struct nrg_wave {
    struct nrg_wave_settings set;
    unsigned lead; /* samples by which everything is delayed */
    struct {
        unsigned whole;        /* samples of delay */
        bool fraction;         /* interpolation is needed */
        nrg_wave_real taps[4]; /* weights of the delays whole-1 .. whole+2 */
    } delay[NRG_WAVE_CURRENTS];
    nrg_wave_real shortest, longest; /* samples of a cycle */
    nrg_wave_real past_v[NRG_WAVE_HISTORY], past_i[NRG_WAVE_CURRENTS][NRG_WAVE_HISTORY];
    unsigned at; /* index of the latest sample in the past */
    struct nrg_wave_point points[2];
    unsigned turn;                         /* the point that is filled next */
    bool have_last, armed, settled, begun; /* begun: past the first crossing or limit */
    unsigned settle;                       /* samples left until settled */
    nrg_wave_real low, high;               /* range of v while settling */
    nrg_wave_real zero, hysteresis;        /* of crossings, in counts */
    nrg_wave_real v_offset, i_offset[NRG_WAVE_CURRENTS]; /* subtracted before summing */
    struct nrg_wave_sums cycle, window, before;          /* before: the last complete window */
    unsigned cycles;                                     /* complete cycles in this window */
    bool broken;                                         /* one of them ended by time */
    nrg_wave_real shortest_seen, longest_seen;
    nrg_wave_real owed; /* samples before the first crossing: charged with the first window */
    double energy_j[NRG_WAVE_CURRENTS];
};

/* False when a setting is out of range (rate, counts, a delay beyond the history). */
bool nrg_wave_init(struct nrg_wave *wave, const struct nrg_wave_settings *settings);
/* One sample of the voltage and n_currents of the currents, in counts. True: *out is a window. */
bool nrg_wave_feed(struct nrg_wave *wave, nrg_wave_real v, const nrg_wave_real *i,
                   struct nrg_wave_result *out);
/* The samples end here: the rest, as a last window. False: there is no rest. */
bool nrg_wave_finish(struct nrg_wave *wave, struct nrg_wave_result *out);

#endif

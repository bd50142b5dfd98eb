/*
 * Raw samples of mains voltage and current to power, one pass, nothing left out.
 *
 * Give it each sample of the voltage with those of up to NRG_WAVE_CURRENTS currents; every few
 * mains cycles it has a result: real power, Vrms, Irms, apparent power, power factor, frequency
 * and energy. It does not wait for anything: every sample belongs to exactly one window, and a
 * cut between two samples gives each side its part, so energy has no gaps.
 *
 *   offsets    removed exactly: P = mean(v*i) - mean(v)*mean(i) over whole cycles. Sums are taken
 *              about the last window's mean, so that nothing cancels in short floats.
 *   phase      of a current: the voltage is taken `delay` samples earlier, between samples by a
 *              cubic through four of them. Negative: the current is held back instead.
 *   windows    end at a positive-going zero crossing of the voltage (armed by a hysteresis that
 *              follows Vrms), at its interpolated moment: mains of 45 to 65 Hz that drifts leaks
 *              nothing. Without mains (no signal, direct current) a cycle ends by time.
 *
 * Cost: a multiply and add per product (v*v, and i*i and v*i per current), four for a delay that
 * is not whole. Divisions and roots once per window.
 *
 * For microcontrollers as well: waveform.c and this file are all there is; no heap, of libc only
 * <stdint.h>, <stdbool.h> and sqrt. Define NRG_WAVE_REAL as float for a short FPU, and see
 * waveform_int.h for none. The caller owns the state; it is plain memory. One thread per state.
 */
#ifndef NRG_SENSORS_WAVEFORM_H
#define NRG_SENSORS_WAVEFORM_H

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
    nrg_wave_real i_scale[NRG_WAVE_CURRENTS]; /* amperes per count; negative: turned round */
    nrg_wave_real delay[NRG_WAVE_CURRENTS];   /* samples that v is to be delayed by */
    bool keep_dc;                             /* offsets below are the truth: direct current */
    nrg_wave_real v_offset;                   /* counts at 0 V; a first guess otherwise */
    nrg_wave_real i_offset[NRG_WAVE_CURRENTS];
};

struct nrg_wave_result {
    double samples;      /* length of the window, with fractions */
    double owed_samples; /* before the first window, until v was known: charged at its power */
    double ago_samples;  /* from its end to the sample that was given last */
    unsigned cycles;     /* whole mains cycles in it, 0: it has none */
    double frequency_hz; /* 0: not seen, or not steady enough to be mains */
    double v_rms;
    struct {
        double power_w, i_rms, apparent_va, power_factor; /* 0 when apparent is */
        double energy_j;                                  /* since the beginning */
    } current[NRG_WAVE_CURRENTS];
};

struct nrg_wave_sums {
    nrg_wave_real n, v, vv; /* n: samples, with fractions */
    struct {
        nrg_wave_real i, ii, vi;
    } of[NRG_WAVE_CURRENTS];
};

/* What is known of one moment: raw counts. */
struct nrg_wave_point {
    nrg_wave_real v, i[NRG_WAVE_CURRENTS], shifted[NRG_WAVE_CURRENTS]; /* v, delayed */
};

struct nrg_wave {
    struct nrg_wave_settings set;
    unsigned lead; /* samples that everything is held back */
    struct {
        unsigned whole;        /* samples of delay */
        bool fraction;         /* taps are needed */
        nrg_wave_real taps[4]; /* of delays whole-1 .. whole+2 */
    } delay[NRG_WAVE_CURRENTS];
    nrg_wave_real shortest, longest; /* samples of a cycle */
    nrg_wave_real past_v[NRG_WAVE_HISTORY], past_i[NRG_WAVE_CURRENTS][NRG_WAVE_HISTORY];
    unsigned at; /* of the latest in the past */
    struct nrg_wave_point points[2];
    unsigned turn;                         /* which of them is filled next */
    bool have_last, armed, settled, begun; /* begun: the first crossing or limit is behind us */
    unsigned settle;                       /* samples left */
    nrg_wave_real low, high;               /* of v while settling */
    nrg_wave_real zero, hysteresis;        /* of crossings, counts */
    nrg_wave_real v_offset, i_offset[NRG_WAVE_CURRENTS]; /* what sums are about */
    struct nrg_wave_sums cycle, window, before;          /* before: the last window that ended */
    unsigned cycles;                                     /* ended in this window */
    bool broken;                                         /* one of them was ended by time */
    nrg_wave_real shortest_seen, longest_seen;
    nrg_wave_real owed; /* samples before the first crossing: paid at the first window's power */
    double energy_j[NRG_WAVE_CURRENTS];
};

/* False when a setting makes no sense (rate, counts, a delay beyond the history). */
bool nrg_wave_init(struct nrg_wave *wave, const struct nrg_wave_settings *settings);
/* One sample of the voltage and n_currents of the currents, in counts. True: *out is a window. */
bool nrg_wave_feed(struct nrg_wave *wave, nrg_wave_real v, const nrg_wave_real *i,
                   struct nrg_wave_result *out);
/* The samples end here: what is left, as a last window. False when there is nothing. */
bool nrg_wave_finish(struct nrg_wave *wave, struct nrg_wave_result *out);
/* Samples were lost: begins anew; energy is kept. */
void nrg_wave_restart(struct nrg_wave *wave);

#endif

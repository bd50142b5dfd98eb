/*
 * The classic way of hobby energy monitors, for comparison only: calcVI(crossings, timeout).
 *
 * A measurement begins when the program asks for one, waits until the voltage is near its middle,
 * then sums v*v, i*i and v*i until it has seen `crossings` half waves, or the time is over; the
 * sums are divided by the number of samples. Offsets are
 * followed by a slow filter, the phase is shifted by a straight line through two samples. Between
 * measurements nothing is seen: `unseen` and `seen` count it. Written from the method's
 * description (docs/waveform.md); use waveform.h to measure.
 */
#ifndef NRG_SENSORS_CALCVI_H
#define NRG_SENSORS_CALCVI_H

#include <stdbool.h>
#include <stdint.h>

struct nrg_calcvi {
    /* settings */
    double v_scale, i_scale; /* volts and amperes per count */
    double phase;            /* 1: as sampled; 0: one sample earlier; beyond: extrapolated */
    unsigned crossings;      /* half waves per measurement: 20 */
    unsigned timeout;        /* samples */
    unsigned pause;          /* samples between measurements: other inputs, sending, sleeping */
    /* state */
    enum { NRG_CALCVI_PAUSE, NRG_CALCVI_START, NRG_CALCVI_SUM } state;
    bool begun, above, was_above;
    double v_offset, i_offset, v_last, v_peak;
    unsigned waited, crossed, n;
    double vv, ii, vi;
    uint64_t seen, unseen; /* samples in measurements, and all others */
};

struct nrg_calcvi_result {
    double power_w, v_rms, i_rms, apparent_va, power_factor;
};

void nrg_calcvi_init(struct nrg_calcvi *calc, double v_scale, double i_scale, double rate_hz,
                     double pause_s);
bool nrg_calcvi_feed(struct nrg_calcvi *calc, double v, double i, struct nrg_calcvi_result *out);

#endif

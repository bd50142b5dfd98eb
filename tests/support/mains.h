/*
 * For tests and benches: synthetic mains whose powers are known in closed form. Shares nothing
 * with the code under test. Voltage and current are sums of harmonics; with one frequency (even
 * one that drifts slowly) only harmonics of equal order carry power: P = sum of V*I*cos(difference
 * of phase), Vrms and Irms are root sums of squares, whatever offsets and noise are added.
 */
#ifndef NRG_TESTS_MAINS_H
#define NRG_TESTS_MAINS_H

#include <stdbool.h>
#include <stdint.h>

#define MAINS_HARMONICS 16

struct mains_wave {
    double rms[MAINS_HARMONICS];   /* [0]: the fundamental, [k]: order k+1 */
    double phase[MAINS_HARMONICS]; /* radians */
    double offset, noise;          /* in the wave's unit; noise: of a uniform spread, one side */
};

struct mains {
    double rate_hz, frequency_hz;
    double swing_hz, swing_period_s; /* the frequency moves by +-swing */
    double current_late_s;           /* the current's sample is taken this much after v's */
    struct mains_wave v, i;
    double load[2]; /* times the current: before and after step_s */
    double step_s;  /* 0: no step */
    /* state */
    double angle, t_s;
    uint64_t random;
};

struct mains_truth {
    double power_w, v_rms, i_rms; /* at load 1, without noise */
};

/* A sine of 230 V and 1 A in phase, 50 Hz. */
void mains_init(struct mains *mains, double rate_hz);
void mains_next(struct mains *mains, double *v, double *i);
struct mains_truth mains_truth(const struct mains *mains);
/* A distorted voltage and the current of a rectifier behind it. */
void mains_distort(struct mains *mains);
/* Uniform in -1..1. */
double mains_random(uint64_t *state);

#endif

/*
 * Synthetic mains for the simulator: a voltage and three currents as functions of time, in double
 * precision, and what they carry (the truth), integrated on a grid of its own. Shares nothing with
 * the firmware. The caller owns the state; no errors. (tests/support/mains.h has closed forms, but
 * only in steps of one rate; a simulated ADC asks at times of its own.)
 */
#ifndef FIRMWARE_SIM_MAINS_H
#define FIRMWARE_SIM_MAINS_H

#define MAINS_CLAMPS    3
#define MAINS_HARMONICS 9

struct mains_load {
    double amperes;                   /* rms of the fundamental */
    double phase;                     /* radians that it lags by */
    double distortion;                /* share of a rectifier's harmonics: 0 to 1 */
    double period_s, on_s, off_share; /* switches: on for on_s of every period_s; 0: always on */
    double from_s;                    /* on from here; before: off_share */
};

struct mains_scenario {
    const char *name, *what;
    double hz, swing_hz, swing_s; /* frequency, and how it swings */
    double distortion;            /* share of the voltage's harmonics */
    double noise;                 /* of each input, rms, in counts of the ADC */
    double bias, drift;           /* of each input: counts at the beginning, and per second */
    struct mains_load loads[MAINS_CLAMPS];
};

struct mains_point {
    double v, i[MAINS_CLAMPS];
};

/* What has been carried from begin_s to t_s. */
struct mains_truth {
    double begin_s, t_s, vv, energy_j[MAINS_CLAMPS];
};

const struct mains_scenario *mains_find(const char *name);
/* The scenarios in order; NULL behind the last. */
const struct mains_scenario *mains_at(unsigned k);

struct mains_point mains_value(const struct mains_scenario *mains, double t_s);
/* Integrates on to t_s; tells the truth at the last positive-going zero crossing, if one is new. */
int mains_advance(const struct mains_scenario *mains, struct mains_truth *truth, double t_s,
                  struct mains_truth *crossing);

#endif

/*
 * Synthetic mains, see mains.h. Harmonics are those of a flattened voltage and of a rectifier with
 * a capacitor. The integral is a midpoint rule with steps of 20 us: a load that switches within a
 * step costs 10 us of its power.
 */
#include "mains.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define STEP_S 20e-6

static const double pi = 3.14159265358979323846;
static const double v_share[MAINS_HARMONICS] = {1, 0, .02, 0, .03, 0, .015, 0, .005};
static const double v_phase[MAINS_HARMONICS] = {0, 0, 3.1, 0, .2, 0, 2.9, 0, .5};
static const double i_share[MAINS_HARMONICS] = {1, 0, .8, 0, .55, 0, .3, 0, .12};
static const double i_phase[MAINS_HARMONICS] = {.1, 0, 3.3, 0, .3, 0, 3.4, 0, .4};

/* 2 kW, 370 W, 56 W. */
#define HEATER  .amperes = 8.7
#define SERVER  .amperes = 1.6, .distortion = 1
#define MOTOR   .amperes = .45, .phase = 1
#define TYPICAL .distortion = 1, .noise = .6, .bias = 4

static const struct mains_scenario scenarios[] = {
    {"steady", "50 Hz, steady", .hz = 50, TYPICAL, .loads = {{HEATER}, {SERVER}, {MOTOR}}},
    {"swing", "49.5 to 50.5 Hz within 4 s", .hz = 50, .swing_hz = .5, .swing_s = 4, TYPICAL,
     .loads = {{HEATER}, {SERVER}, {MOTOR}}},
    {"sixty", "59.5 to 60.5 Hz within 4 s", .hz = 60, .swing_hz = .5, .swing_s = 4, TYPICAL,
     .loads = {{HEATER}, {SERVER}, {MOTOR}}},
    {"drift", "noise of 2 counts, bias drifts by 3 counts/s", .hz = 50.02, .distortion = 1,
     .noise = 2, .bias = -15, .drift = 3, .loads = {{HEATER}, {SERVER}, {MOTOR}}},
    {"step", "loads switched on in the middle of a cycle", .hz = 50.02, TYPICAL,
     .loads = {{HEATER, .from_s = 2.347},
               {SERVER, .from_s = 4.113, .off_share = .3},
               {MOTOR, .from_s = 5.871, .off_share = .1}}},
    {"burst", "bursts: 70 of 400, 310 of 900, 40 of 130 ms", .hz = 50.02, TYPICAL,
     .loads = {{HEATER, .period_s = .4, .on_s = .07, .off_share = .05},
               {SERVER, .period_s = .9, .on_s = .31, .off_share = .2},
               {MOTOR, .period_s = .13, .on_s = .04, .off_share = .2}}},
    {"clean", "a sine, no noise at all", .hz = 50, .loads = {{HEATER}, {.amperes = 1.6}, {MOTOR}}},
};

const struct mains_scenario *mains_at(unsigned k)
{
    return k < sizeof scenarios / sizeof *scenarios ? &scenarios[k] : NULL;
}

const struct mains_scenario *mains_find(const char *name)
{
    for (unsigned k = 0; mains_at(k); k++)
        if (!strcmp(mains_at(k)->name, name))
            return mains_at(k);
    return NULL;
}

static double load_share(const struct mains_load *load, double t_s)
{
    int on = t_s >= load->from_s;
    if (load->period_s > 0)
        on = on && fmod(t_s, load->period_s) < load->on_s;
    return on ? 1 : load->off_share;
}

/* The integral of the frequency: turns since 0. */
static double turns_at(const struct mains_scenario *mains, double t_s)
{
    double turns = mains->hz * t_s;
    if (mains->swing_s > 0) {
        double w = 2 * pi / mains->swing_s;
        turns += mains->swing_hz * (1 - cos(w * t_s)) / w;
    }
    return turns;
}

struct mains_point mains_value(const struct mains_scenario *mains, double t_s)
{
    double angle = 2 * pi * fmod(turns_at(mains, t_s), 1);
    struct mains_point p = {.v = 0};
    for (int k = 0; k < MAINS_HARMONICS; k += 2) {
        double order = k + 1;
        p.v += (k ? mains->distortion : 1) * v_share[k] * sin(order * angle + v_phase[k]);
        for (int c = 0; c < MAINS_CLAMPS; c++) {
            const struct mains_load *load = &mains->loads[c];
            double share = k ? load->distortion * i_share[k] : 1;
            double phase = load->distortion > 0 ? i_phase[k] : 0;
            if (share > 0)
                p.i[c] += share * sin(order * (angle - load->phase) + phase);
        }
    }
    p.v *= 230 * sqrt(2);
    for (int c = 0; c < MAINS_CLAMPS; c++)
        p.i[c] *= mains->loads[c].amperes * sqrt(2) * load_share(&mains->loads[c], t_s);
    return p;
}

int mains_advance(const struct mains_scenario *mains, struct mains_truth *truth, double t_s,
                  struct mains_truth *crossing)
{
    int crossed = 0;
    while (truth->t_s + STEP_S <= t_s) {
        struct mains_point p = mains_value(mains, truth->t_s + STEP_S / 2);
        double begin = mains_value(mains, truth->t_s).v;
        truth->t_s += STEP_S;
        double end = mains_value(mains, truth->t_s).v;
        truth->vv += p.v * p.v * STEP_S;
        for (int c = 0; c < MAINS_CLAMPS; c++)
            truth->energy_j[c] += p.v * p.i[c] * STEP_S;
        if (begin < 0 && end >= 0) {
            *crossing = *truth;
            crossed = 1;
        }
    }
    return crossed;
}

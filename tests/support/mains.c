/* Synthetic mains, see mains.h. */
#include "support/mains.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

double mains_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) / 4503599627370496.0 - 1;
}

void mains_init(struct mains *mains, double rate_hz)
{
    memset(mains, 0, sizeof *mains);
    mains->rate_hz = rate_hz;
    mains->frequency_hz = 50;
    mains->v.rms[0] = 230;
    mains->i.rms[0] = 1;
    mains->load[0] = mains->load[1] = 1;
    mains->random = 88172645463325252u;
}

void mains_distort(struct mains *mains)
{
    static const double v_share[] = {1, 0, .02, 0, .03, 0, .015, 0, .005};
    static const double i_share[] = {1, 0, .7, 0, .45, 0, .25, 0, .1};
    double v = mains->v.rms[0], i = mains->i.rms[0];
    for (int k = 0; k < 9; k++) {
        mains->v.rms[k] = v * v_share[k];
        mains->i.rms[k] = i * i_share[k];
        mains->v.phase[k] = .3 * k;
        mains->i.phase[k] = k ? 2.9 * k : -.2;
    }
}

static double wave_at(const struct mains_wave *wave, double angle)
{
    double sum = 0;
    for (int k = 0; k < MAINS_HARMONICS; k++)
        if (wave->rms[k] > 0)
            sum += wave->rms[k] * sin((k + 1) * angle + wave->phase[k]);
    return sum * sqrt(2);
}

void mains_next(struct mains *mains, double *v, double *i)
{
    double hz = mains->frequency_hz;
    if (mains->swing_hz > 0)
        hz += mains->swing_hz * sin(2 * pi * mains->t_s / mains->swing_period_s);
    double late = 2 * pi * hz * mains->current_late_s;
    double load = mains->load[mains->step_s > 0 && mains->t_s >= mains->step_s];
    *v = wave_at(&mains->v, mains->angle) + mains->v.offset;
    *i = wave_at(&mains->i, mains->angle + late) * load + mains->i.offset;
    *v += mains->v.noise * mains_random(&mains->random);
    *i += mains->i.noise * mains_random(&mains->random);
    mains->t_s += 1 / mains->rate_hz;
    mains->angle = fmod(mains->angle + 2 * pi * hz / mains->rate_hz, 2 * pi);
}

struct mains_truth mains_truth(const struct mains *mains)
{
    const struct mains_wave *v = &mains->v, *i = &mains->i;
    struct mains_truth truth = {0, 0, 0};
    for (int k = 0; k < MAINS_HARMONICS; k++) {
        truth.power_w += v->rms[k] * i->rms[k] * cos(v->phase[k] - i->phase[k]);
        truth.v_rms += v->rms[k] * v->rms[k];
        truth.i_rms += i->rms[k] * i->rms[k];
    }
    truth.v_rms = sqrt(truth.v_rms);
    truth.i_rms = sqrt(truth.i_rms);
    return truth;
}

/*
 * What a pair of samples costs in waveform/engine.c. The samples are made before, so that only the
 * sums are timed; the median of many batches stands for the rest. Accuracy of the same samples is
 * printed beside it, against the closed form of tests/support/mains.c. A few seconds; prints a
 * table. firmware/sim has the same for a microcontroller, beside calcVI.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sensors/waveform/engine.h"
#include "support/mains.h"

enum { RATE = 8000, SECONDS = 20, N = RATE * SECONDS, REPEATS = 15 };
#define FULL 2048.0 /* counts to each side: an ADC of 12 bits */

/* [1]: the current is taken LATE samples after the voltage */
#define LATE .37
static double volts[N], amperes[2][N];

struct outcome {
    double ns, error; /* per pair of samples; of the energy */
};

static double cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts); /* others may be busy */
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static struct mains_truth make_samples(int late)
{
    struct mains mains;
    mains_init(&mains, RATE);
    mains_distort(&mains);
    mains.swing_hz = .5;
    mains.swing_period_s = 7;
    mains.current_late_s = late ? LATE / RATE : 0;
    for (int k = 0; k < N; k++) {
        double v, i;
        mains_next(&mains, &v, &i);
        volts[k] = round(v / 400 * FULL + FULL);
        amperes[late][k] = round(i / 6 * FULL + FULL);
    }
    return mains_truth(&mains);
}

static struct outcome run_real(int late, double truth_w)
{
    static struct nrg_wave wave;
    struct nrg_wave_settings set = {.rate_hz = RATE, .n_currents = 1, .v_scale = 400 / FULL};
    struct nrg_wave_result result;
    double samples = 0, energy_j = 0;
    set.i_scale[0] = 6 / FULL;
    set.delay[0] = late ? -LATE : 0;
    if (!nrg_wave_init(&wave, &set))
        abort();
    double begin = cpu_ns();
    for (int k = 0; k < N; k++)
        if (nrg_wave_feed(&wave, volts[k], &amperes[late][k], &result)) {
            samples += result.samples + result.owed_samples;
            energy_j = result.current[0].energy_j;
        }
    double end = cpu_ns();
    return (struct outcome){(end - begin) / N, energy_j / (truth_w * samples / RATE) - 1};
}

static int by_cost(const void *a, const void *b)
{
    double x = ((const struct outcome *)a)->ns, y = ((const struct outcome *)b)->ns;
    return (x > y) - (x < y);
}

static void print(const char *what, struct outcome *outcomes)
{
    qsort(outcomes, REPEATS, sizeof *outcomes, by_cost);
    struct outcome o = outcomes[REPEATS / 2];
    printf("| %-44s | %5.1f | %8.3f |\n", what, o.ns, o.error * 100);
}

int main(void)
{
    struct outcome all[2][REPEATS];
    double truth_w = make_samples(1).power_w;
    make_samples(0);
    for (int r = 0; r < REPEATS; r++)
        for (int late = 0; late < 2; late++)
            all[late][r] = run_real(late, truth_w);
    printf("| %-44s | %5s | %8s |\n", "12-bit samples at 8 kHz", "ns", "error %");
    printf("|:---------------------------------------------|------:|---------:|\n");
    print("waveform", all[0]);
    print("waveform, voltage delayed by 0.37 samples", all[1]);
    return 0;
}

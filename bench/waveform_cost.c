/*
 * What a pair of samples costs in waveform.c, in its integer variant and in the classic calcVI, and
 * what share of the time each of them sees. The samples are made before, so that only the sums are
 * timed; the median of many batches stands for the rest. Accuracy of the same samples is printed
 * beside it, against the closed form of tests/support/mains.c. A few seconds; prints a table.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sensors/calcvi.h"
#include "sensors/waveform/engine.h"
#include "sensors/waveform_int.h"
#include "support/mains.h"

enum { RATE = 8000, SECONDS = 20, N = RATE * SECONDS, REPEATS = 15 };
#define FULL 2048.0 /* counts to each side: an ADC of 12 bits */

/* [1]: the current is taken LATE samples after the voltage */
#define LATE .37
static double volts[N], amperes[2][N];
static int32_t v_counts[N], i_counts[2][N];

struct outcome {
    double ns, error, seen; /* per pair of samples; of the energy; share of the samples */
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
        v_counts[k] = (int32_t)lround(v / 400 * FULL + FULL);
        i_counts[late][k] = (int32_t)lround(i / 6 * FULL + FULL);
        volts[k] = v_counts[k];
        amperes[late][k] = i_counts[late][k];
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
    return (struct outcome){(end - begin) / N, energy_j / (truth_w * samples / RATE) - 1, 1};
}

static struct outcome run_integers(int late, double truth_w)
{
    static struct nrg_wavei wave;
    struct nrg_wavei_settings set = {.rate_mhz = RATE * 1000, .n_currents = 1};
    struct nrg_wavei_result result;
    double samples = 0, energy_j = 0;
    set.delay[0] = (int16_t)(late ? -LATE * 256 - .5 : 0);
    set.uv_per_count = (uint32_t)lround(400e6 / FULL);
    set.ua_per_count[0] = (uint32_t)lround(6e6 / FULL);
    if (!nrg_wavei_init(&wave, &set))
        abort();
    double begin = cpu_ns();
    for (int k = 0; k < N; k++)
        if (nrg_wavei_feed(&wave, v_counts[k], &i_counts[late][k], &result)) {
            samples += result.samples + result.owed_samples;
            energy_j = (double)result.current[0].energy_mj / 1e3;
        }
    double end = cpu_ns();
    return (struct outcome){(end - begin) / N, energy_j / (truth_w * samples / RATE) - 1, 1};
}

static struct outcome run_classic(double pause_s, double truth_w)
{
    struct nrg_calcvi calc;
    struct nrg_calcvi_result result;
    double power_w = 0;
    unsigned n = 0;
    nrg_calcvi_init(&calc, 400 / FULL, 6 / FULL, RATE, pause_s);
    double begin = cpu_ns();
    for (int k = 0; k < N; k++)
        if (nrg_calcvi_feed(&calc, volts[k], amperes[0][k], &result)) {
            power_w += result.power_w;
            n++;
        }
    double end = cpu_ns();
    double seen = (double)(calc.seen + (calc.state == NRG_CALCVI_SUM ? calc.n : 0)) / N;
    return (struct outcome){(end - begin) / N, power_w / n / truth_w - 1, seen};
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
    printf("| %-44s | %5.1f | %8.3f | %6.1f |\n", what, o.ns, o.error * 100, 100 - o.seen * 100);
}

int main(void)
{
    struct outcome all[7][REPEATS];
    double truth_w = make_samples(1).power_w;
    make_samples(0);
    for (int r = 0; r < REPEATS; r++) {
        all[0][r] = run_real(0, truth_w);
        all[1][r] = run_real(1, truth_w);
        all[2][r] = run_integers(0, truth_w);
        all[3][r] = run_integers(1, truth_w);
        all[4][r] = run_classic(0, truth_w);
        all[5][r] = run_classic(.44, truth_w); /* three inputs in turn */
        all[6][r] = run_classic(4.8, truth_w); /* a reading every five seconds */
    }
    printf("| %-44s | %5s | %8s | %6s |\n", "12-bit samples at 8 kHz", "ns", "error %", "gaps %");
    printf("|:---------------------------------------------|------:|---------:|-------:|\n");
    print("waveform", all[0]);
    print("waveform, voltage delayed by 0.37 samples", all[1]);
    print("waveform_int", all[2]);
    print("waveform_int, voltage delayed", all[3]);
    print("calcVI, one input, back to back", all[4]);
    print("calcVI, three inputs in turn", all[5]);
    print("calcVI, a reading every 5 s", all[6]);
    return 0;
}

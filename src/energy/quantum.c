/* See quantum.h. The step is the greatest common divisor of the differences, up to rounding. */
#include "energy/quantum.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"

#define FINE         1e-5 /* of the largest power: smaller steps do not matter */
#define MANY_VALUES  12
#define QUANTUM_ROWS 5000

/* Largest step that both are whole multiples of; below `least` is floating point rounding. */
static double common_step(double a, double b, double least)
{
    while (b > least) {
        double rest = fmod(a, b);
        a = b;
        b = rest < b - rest ? rest : b - rest;
    }
    return a;
}

/*
 * A step is the sensor's when readings took many values, or most of those within their range; a few
 * values far from one another are the load's own levels.
 */
static bool is_quantum(double quantum, const double *sorted, size_t n)
{
    size_t values = 1;
    for (size_t i = 1; i < n; i++)
        values += sorted[i] - sorted[i - 1] > quantum / 2;
    double range = (sorted[n - 1] - sorted[0]) / quantum + 1;
    return values >= MANY_VALUES || (double)values > range / 2;
}

double nrg_gauge_quantum(const struct nrg_timeline *tl, double resolution)
{
    size_t n = tl->n < QUANTUM_ROWS ? tl->n : QUANTUM_ROWS;
    double quantum = 0, largest = 0;
    double *sorted = tl->is_gauge && n ? malloc(n * sizeof *sorted) : NULL;
    if (!sorted)
        return 0;
    for (size_t i = 0; i < n; i++)
        sorted[i] = nrg_point_gauge(tl, i);
    nrg_sort(sorted, n);
    largest = fmax(fabs(sorted[0]), fabs(sorted[n - 1]));
    for (size_t i = 1; i < n; i++)
        quantum = common_step(quantum, sorted[i] - sorted[i - 1], 1e-7 * largest);
    bool seen = quantum > FINE * largest && is_quantum(quantum, sorted, n);
    free(sorted);
    return seen ? quantum : resolution;
}

double nrg_gauge_noise_w(const struct nrg_timeline *tl, double resolution)
{
    double sum = 0, n = 0;
    for (size_t i = 1; tl->is_gauge && i + 1 < tl->n; i++) {
        double off =
            nrg_point_gauge(tl, i - 1) - 2 * nrg_point_gauge(tl, i) + nrg_point_gauge(tl, i + 1);
        /* Steps of the load are no noise: those beyond ten times the mean so far are left out. */
        if (n < 16 || off * off < 100 * sum / n) {
            sum += off * off;
            n++;
        }
    }
    double step = nrg_gauge_quantum(tl, resolution);
    double variance = n > 0 ? sum / n / 6 : 0;
    return sqrt(fmax(variance, step * step / 12));
}

/* See interval.h. */
#include "attribute/regress/interval.h"

#include <math.h>

#include "base/stats.h"

#define FAR_FROM_0 6.0 /* deviations: beyond, that powers are not negative does not matter */
#define BESIDE     0.5 /* of half of an interval, around a figure that is not in its middle */

/* Probability that a normal figure of deviation 1 around 0 is below z. */
static double probability_below(double z)
{
    return erfc(-z / sqrt(2)) / 2;
}

/*
 * Which figures to expect, with this confidence, of a truth that is not negative: from `first` to
 * the one that is returned, taken in the order of how much more likely the truth makes them than
 * the best truth there is (Feldman and Cousins 1998). All in deviations.
 */
static double last_expected(double truth, double confidence, double *first)
{
    double low = truth, high = truth + 12;
    for (int i = 0; i < 40; i++) {
        double last = (low + high) / 2, odds = (last - truth) * (last - truth) / 2;
        /* the same odds on the other side, where below 0 the best truth is 0 */
        *first = truth - (last - truth);
        if (*first < 0)
            *first = truth > 0 ? truth / 2 - odds / truth : -INFINITY;
        double inside = probability_below(last - truth) -
                        (isfinite(*first) ? probability_below(*first - truth) : 0);
        *(inside < confidence ? &low : &high) = last;
    }
    return high;
}

/* Truths that make the figure an expected one, in deviations; far from 0, those on both sides. */
static struct nrg_power_interval truths_of(double figure, double confidence)
{
    double low = 0, high = fmax(figure, 0) + 8, from = 0, to = fmax(figure, 0) + 1, first;
    for (int i = 0; i < 26; i++) { /* highest truth that still expects so little */
        double truth = (low + high) / 2;
        last_expected(truth, confidence, &first);
        *(first < figure ? &low : &high) = truth;
    }
    if (last_expected(0, confidence, &first) >= figure)
        return (struct nrg_power_interval){0, high};
    for (int i = 0; i < 26; i++) { /* lowest that still expects so much */
        double truth = (from + to) / 2;
        *(last_expected(truth, confidence, &first) < figure ? &from : &to) = truth;
    }
    return (struct nrg_power_interval){from, high};
}

struct nrg_power_interval nrg_power_interval_make(double confidence, double value, double center,
                                                  double half, double most)
{
    double deviation = half / nrg_student_half(confidence, INFINITY), far = center / deviation;
    struct nrg_power_interval i = {center - half, center + half};
    if (far < FAR_FROM_0) {
        i = truths_of(fmax(far, -FAR_FROM_0), confidence);
        i.low *= deviation;
        i.high *= deviation;
    }
    /* Where powers that can't be negative moved the others, the figure is closer to the truth than
     * the one that intervals are around, and has an error, too. */
    i.low = fmin(i.low, fmax(value - BESIDE * half, 0));
    i.high = fmax(i.high, value + BESIDE * half);
    if (most > 0)
        i.high = fmax(fmin(i.high, most), value);
    return i;
}

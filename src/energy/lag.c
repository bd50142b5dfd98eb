/*
 * See lag.h. The exponential solves tau * P' = end - P, which integrated is linear in what is
 * known: P(t) - P(0) = a * integral of P + b * t, with a = -1 / tau. That needs no derivative, so
 * rounded readings do no harm, and no start values.
 */
#include "energy/lag.h"

#include <math.h>
#include <stdlib.h>

#define MIN_READINGS  24
#define MIN_CHANGE    8    /* of a stretch, in times the noise of a reading */
#define MIN_PART      0.02 /* and of the mean power */
#define MIN_EXPLAINED 0.99
#define MIN_CONSTANTS 0.8  /* of the time constant that a stretch must last */
#define MIN_LAG       3    /* readings: anything shorter is a step of the load */
#define RIPPLE        0.05 /* of the readings' range: the load's own ups and downs on the way */
#define MAX_STRETCHES 256

struct fit {
    double lag_s, weight;
};

/* Least squares of y on x1 and x2 without intercept; false when they can't be told apart. */
static bool solve_normal(const double s[6], double *a, double *b)
{
    double det = s[0] * s[2] - s[1] * s[1];
    if (!(fabs(det) > 1e-12 * s[0] * s[2]))
        return false;
    *a = (s[3] * s[2] - s[4] * s[1]) / det;
    *b = (s[0] * s[4] - s[1] * s[3]) / det;
    return true;
}

/* Readings [from, to] as one exponential; lag_s is NAN when they are none. */
static struct fit fit_stretch(const struct nrg_timeline *tl, size_t from, size_t to)
{
    double s[6] = {0}, a, b, mean = 0, n = (double)(to - from);
    struct nrg_reading_point first = nrg_point_at(tl, from);
    double end_s = (double)(nrg_point_ns(tl, to) - first.t_ns) * 1e-9;
    for (size_t i = from + 1; i <= to; i++) {
        struct nrg_reading_point at = nrg_point_at(tl, i);
        double t = (double)(at.t_ns - first.t_ns) * 1e-9;
        /* Of the power beyond the first reading's: large constants would cost precision. */
        double p = at.gauge - first.gauge;
        double integral = at.sum_j - first.sum_j - first.gauge * t;
        s[0] += integral * integral, s[1] += integral * t, s[2] += t * t;
        s[3] += integral * p, s[4] += t * p, s[5] += p * p;
        mean += p / n;
    }
    struct fit none = {NAN, 0};
    if (!solve_normal(s, &a, &b) || !(a < 0))
        return none;
    double left = s[5] - a * s[3] - b * s[4], all = s[5] - n * mean * mean;
    /* A straight line fits everything that is short: the bend must be worth its parameter. */
    double straight = s[5] - s[4] * s[4] / s[2];
    if (!(all > 0) || left > (1 - MIN_EXPLAINED) * all || left > straight / 4 ||
        end_s < -MIN_CONSTANTS / a || -1 / a < MIN_LAG * end_s / n)
        return none;
    return (struct fit){-1 / a, fabs(nrg_point_gauge(tl, to) - first.gauge)};
}

/* How far readings may turn back without ending a stretch. */
static double tolerance_w(const struct nrg_timeline *tl, size_t from, size_t end, double noise_w)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = from; i < end; i++) {
        low = fmin(low, nrg_point_gauge(tl, i));
        high = fmax(high, nrg_point_gauge(tl, i));
    }
    return fmax(4 * noise_w, high > low ? RIPPLE * (high - low) : 0);
}

/* The end of the stretch from `from` in which readings go one way, turning back by back_w at most.
 */
static size_t end_of_one_way(const struct nrg_timeline *tl, size_t from, size_t end, double back_w,
                             int way)
{
    double best = nrg_point_gauge(tl, from) * way;
    size_t at = from, best_at = from;
    while (at + 1 < end && !nrg_point_gap(tl, at) &&
           nrg_point_gauge(tl, at + 1) * way > best - back_w) {
        at++;
        if (nrg_point_gauge(tl, at) * way >= best) {
            best = nrg_point_gauge(tl, at) * way;
            best_at = at;
        }
    }
    return best_at;
}

/* Once the final power is nearly reached, readings add nothing: keep as many again, cut the rest.
 */
static size_t cut_tail(const struct nrg_timeline *tl, size_t from, size_t to, double back_w)
{
    size_t reached = from;
    while (reached < to && fabs(nrg_point_gauge(tl, to) - nrg_point_gauge(tl, reached)) > back_w)
        reached++;
    return to - from > 2 * (reached - from) ? from + 2 * (reached - from) : to;
}

/* Where power changes fastest, over a tenth of the stretch: before it the load had not changed. */
static size_t steepest_point(const struct nrg_timeline *tl, size_t from, size_t to)
{
    size_t width = (to - from) / 10 + 1, best = from;
    double most = -1;
    for (size_t i = from; i + width <= to; i++) {
        double change = fabs(nrg_point_gauge(tl, i + width) - nrg_point_gauge(tl, i)) /
                        (double)(nrg_point_ns(tl, i + width) - nrg_point_ns(tl, i));
        if (change > most) {
            most = change;
            best = i;
        }
    }
    return best;
}

static int by_lag(const void *a, const void *b)
{
    const struct fit *x = a, *y = b;
    return x->lag_s < y->lag_s ? -1 : x->lag_s > y->lag_s;
}

/* The weighted median; NAN where most of the weight is not near it. */
static struct nrg_lag_fit agree_on_lag(struct fit *fits, size_t n)
{
    struct nrg_lag_fit result = {NAN, 0};
    double all = 0, sum = 0, near = 0;
    for (size_t i = 0; i < n; i++)
        all += fits[i].weight;
    if (!n)
        return result;
    qsort(fits, n, sizeof *fits, by_lag);
    size_t middle = 0;
    while (middle + 1 < n && (sum += fits[middle].weight) < all / 2)
        middle++;
    double lag_s = fits[middle].lag_s;
    for (size_t i = 0; i < n; i++)
        if (fabs(fits[i].lag_s - lag_s) < lag_s / 3) {
            near += fits[i].weight;
            result.stretches++;
        }
    result.lag_s = near > all * 2 / 3 ? lag_s : NAN;
    return result;
}

struct nrg_lag_fit nrg_lag_fit(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns,
                               double noise_w)
{
    struct fit fits[MAX_STRETCHES];
    size_t n = 0, from = 0, end = tl->n;
    while (from < end && nrg_point_ns(tl, from) < begin_ns)
        from++;
    while (end > from && nrg_point_ns(tl, end - 1) > end_ns)
        end--;
    double mean_w = tl->is_gauge && end > from + 1
                        ? (nrg_point_j(tl, end - 1) - nrg_point_j(tl, from)) * 1e9 /
                              (double)(nrg_point_ns(tl, end - 1) - nrg_point_ns(tl, from))
                        : NAN;
    double least_w = fmax(MIN_CHANGE * noise_w, MIN_PART * fabs(mean_w));
    double back_w = tl->is_gauge ? tolerance_w(tl, from, end, noise_w) : 0;
    while (tl->is_gauge && from + MIN_READINGS < end && n < MAX_STRETCHES) {
        size_t up = end_of_one_way(tl, from, end, back_w, 1),
               down = end_of_one_way(tl, from, end, back_w, -1);
        size_t to = up > down ? up : down;
        if (to >= from + MIN_READINGS &&
            fabs(nrg_point_gauge(tl, to) - nrg_point_gauge(tl, from)) >= least_w) {
            size_t last = cut_tail(tl, from, to, back_w), start = steepest_point(tl, from, last);
            if (last >= start + MIN_READINGS)
                fits[n] = fit_stretch(tl, start, last);
            if (last >= start + MIN_READINGS && !isnan(fits[n].lag_s))
                n++;
        }
        from = to > from ? to : from + 1;
    }
    return agree_on_lag(fits, n);
}

/*
 * See align.h. The search goes from coarse to fine: a grid of COARSE shifts over the whole range,
 * then the best dozen of them with a quarter of the step, down to a fraction of the sampling
 * period, then parabolas. The running integral of the activity gives its mean over any window at
 * once, so that a shift costs one look at each reading, whatever the number of spans.
 */
#include "import/align.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sensors/channel.h"

enum { PEAKS = 12, COARSE = 2000, COARSE_VALUES = 4000 };

#define CHI2_95     3.841
#define DISTINCT    9.0 /* of -2 log likelihood: three standard deviations */
#define MIN_SAMPLES 8

struct peak {
    int64_t shift_ns;
    double rss; /* relative to that of a constant: 1 - r^2 */
};

struct aligner {
    const struct nrg_power_series *power;
    const struct nrg_activity *activity;
    double *sum;   /* of the low-passed activity, n + 1 */
    size_t stride; /* of readings, while the search is coarse */
    int64_t low_ns, high_ns;
};

/* Running integral of the activity behind a low-pass of first order, in steps. */
static void integrate_activity(struct aligner *a, int64_t lag_ns)
{
    const struct nrg_activity *v = a->activity;
    double steps = (double)lag_ns / (double)v->step_ns; /* of the time constant */
    double keep = lag_ns > 0 ? exp(-1 / steps) : 0, y = 0;
    a->sum[0] = 0;
    for (size_t i = 0; i < v->n; i++) {
        double u = v->busy[i];
        a->sum[i + 1] = a->sum[i] + u + (y - u) * (1 - keep) * steps; /* mean over the step */
        y = u + (y - u) * keep;
    }
}

/* The decay of the low-pass after the end of the log is in the last steps, which are idle. */
static double integral_at(const struct aligner *a, double t_steps)
{
    size_t n = a->activity->n;
    if (!(t_steps > 0))
        return 0;
    if (t_steps >= (double)n)
        return a->sum[n];
    size_t i = (size_t)t_steps;
    return a->sum[i] + (a->sum[i + 1] - a->sum[i]) * (t_steps - (double)i);
}

static double mean_activity(const struct aligner *a, size_t first, size_t next, int64_t shift_ns)
{
    const struct nrg_power_series *p = a->power;
    double step = (double)a->activity->step_ns;
    int64_t zero_ns = a->activity->begin_ns + shift_ns;
    double from = (double)(p->begin_ns[first] - zero_ns) / step;
    double to = (double)(p->end_ns[next - 1] - zero_ns) / step;
    return to > from ? (integral_at(a, to) - integral_at(a, from)) / (to - from) : 0;
}

/* Sums over readings of power x and activity y. */
struct sums {
    double n, x, y, xx, yy, xy;
};

static struct sums sums_of(const struct aligner *a, int64_t shift_ns)
{
    const struct nrg_power_series *p = a->power;
    struct sums s = {0};
    double origin = p->power_w[0]; /* differences keep more digits */
    for (size_t i = 0; i < p->n; i += a->stride) {
        size_t next = i + a->stride < p->n ? i + a->stride : p->n;
        double x = 0, y = mean_activity(a, i, next, shift_ns);
        for (size_t k = i; k < next; k++)
            x += (p->power_w[k] - origin) / (double)(next - i);
        s.n++;
        s.x += x;
        s.y += y;
        s.xx += x * x;
        s.yy += y * y;
        s.xy += x * y;
    }
    return s;
}

/* 1 - r^2; 1 where there is nothing to compare, or power falls with activity. */
static double rss_of(const struct aligner *a, int64_t shift_ns, double *r)
{
    struct sums s = sums_of(a, shift_ns);
    double vx = s.xx - s.x * s.x / s.n, vy = s.yy - s.y * s.y / s.n;
    double c = s.xy - s.x * s.y / s.n;
    double corr = vx > 1e-12 * s.xx && vy > 1e-9 * s.n ? c / sqrt(vx * vy) : 0;
    corr = corr > 1 ? 1 : corr;
    if (r)
        *r = corr;
    return corr > 0 ? 1 - corr * corr : 1;
}

/* The number of independent readings, from the lag-1 autocorrelation of the residuals. */
static double effective_n(const struct aligner *a, int64_t shift_ns)
{
    const struct nrg_power_series *p = a->power;
    struct sums s = sums_of(a, shift_ns);
    double vy = s.yy - s.y * s.y / s.n, slope = vy > 0 ? (s.xy - s.x * s.y / s.n) / vy : 0;
    double base = (s.x - slope * s.y) / s.n + p->power_w[0], last = 0, ee = 0, el = 0;
    for (size_t i = 0; i < p->n; i++) {
        double e = p->power_w[i] - base - slope * mean_activity(a, i, i + 1, shift_ns);
        ee += e * e;
        el += i ? e * last : 0;
        last = e;
    }
    double rho = ee > 0 ? el / ee : 0;
    rho = rho < 0 ? 0 : rho > 0.9999 ? 0.9999 : rho;
    double n = (double)p->n * (1 - rho) / (1 + rho);
    return n < 3 ? 3 : n;
}

/* Keeps the best peaks; none may be nearer than `apart_ns` to a better one. */
static void keep_peak(struct peak *peaks, size_t *n, struct peak p, int64_t apart_ns)
{
    size_t at = 0;
    for (size_t i = 0; i < *n; i++)
        if (llabs(peaks[i].shift_ns - p.shift_ns) < apart_ns) {
            if (peaks[i].rss <= p.rss)
                return;
            memmove(peaks + i, peaks + i + 1, (--*n - i) * sizeof *peaks);
            i--;
        }
    while (at < *n && peaks[at].rss <= p.rss)
        at++;
    if (at == PEAKS)
        return;
    *n += *n < PEAKS;
    memmove(peaks + at + 1, peaks + at, (*n - at - 1) * sizeof *peaks);
    peaks[at] = p;
}

static void scan_shifts(const struct aligner *a, int64_t low_ns, int64_t high_ns, int64_t step_ns,
                        struct peak *peaks, size_t *n)
{
    low_ns = low_ns < a->low_ns ? a->low_ns : low_ns;
    high_ns = high_ns > a->high_ns ? a->high_ns : high_ns;
    for (int64_t shift = low_ns; shift <= high_ns; shift += step_ns)
        keep_peak(peaks, n, (struct peak){shift, rss_of(a, shift, NULL)}, step_ns * 3 / 2);
}

/* The best shift by a parabola through three points, repeated with smaller steps. */
static struct peak refine_peak(const struct aligner *a, struct peak p, int64_t step_ns)
{
    for (int round = 0; round < 6 && step_ns >= 2; round++, step_ns /= 3) {
        double left = rss_of(a, p.shift_ns - step_ns, NULL);
        double right = rss_of(a, p.shift_ns + step_ns, NULL);
        double bend = left - 2 * p.rss + right;
        double move = bend > 0 ? 0.5 * (left - right) / bend : left < right ? -1 : 1;
        move = move < -1 ? -1 : move > 1 ? 1 : move;
        struct peak better = {p.shift_ns + (int64_t)llround(move * (double)step_ns), 0};
        better.rss = rss_of(a, better.shift_ns, NULL);
        if (better.rss < p.rss)
            p = better;
    }
    return p;
}

static size_t search_shifts(struct aligner *a, struct peak *peaks)
{
    int64_t finest_ns = a->power->period_ns / 8 > 0 ? a->power->period_ns / 8 : 1;
    int64_t step_ns = (a->high_ns - a->low_ns) / COARSE;
    size_t n = 0;
    step_ns = step_ns > finest_ns ? step_ns : finest_ns;
    a->stride = 1 + a->power->n / COARSE_VALUES;
    scan_shifts(a, a->low_ns, a->high_ns, step_ns, peaks, &n);
    while (step_ns > finest_ns) {
        struct peak next[PEAKS] = {0};
        size_t m = 0;
        int64_t finer_ns = step_ns / 4 > finest_ns ? step_ns / 4 : finest_ns;
        a->stride = finer_ns * 4 < a->power->period_ns * (int64_t)a->stride ? 1 : a->stride;
        for (size_t i = 0; i < n; i++)
            scan_shifts(a, peaks[i].shift_ns - step_ns, peaks[i].shift_ns + step_ns, finer_ns, next,
                        &m);
        memcpy(peaks, next, m * sizeof *peaks);
        n = m;
        step_ns = finer_ns;
    }
    a->stride = 1;
    for (size_t i = 0; i < n; i++)
        peaks[i].rss = rss_of(a, peaks[i].shift_ns, NULL);
    for (size_t i = 1; i < n; i++)
        if (peaks[i].rss < peaks[0].rss) {
            struct peak p = peaks[0];
            peaks[0] = peaks[i];
            peaks[i] = p;
        }
    if (n)
        peaks[0] = refine_peak(a, peaks[0], step_ns);
    return n;
}

/* How far one can go to a side before the sum of squares grows significantly. */
static int64_t half_width(const struct aligner *a, struct peak best, double n_effective,
                          int direction)
{
    int64_t step_ns = a->power->period_ns / 16 > 0 ? a->power->period_ns / 16 : 1, far = 0;
    int64_t most_ns = a->high_ns - a->low_ns + a->power->period_ns;
    while (far < most_ns) {
        int64_t next = far + step_ns;
        double rss = rss_of(a, best.shift_ns + direction * next, NULL);
        if (n_effective * log((rss + 1e-12) / (best.rss + 1e-12)) > CHI2_95)
            break;
        far = next;
        step_ns += step_ns / 4;
    }
    /* between far and far + step */
    for (int64_t half = step_ns / 2; half > 0; half /= 2) {
        double rss = rss_of(a, best.shift_ns + direction * (far + half), NULL);
        if (n_effective * log((rss + 1e-12) / (best.rss + 1e-12)) <= CHI2_95)
            far += half;
    }
    return far;
}

/* Edges of the activity that readings can resolve; each is known to about a sampling period. */
static double count_edges(const struct nrg_activity *v, int64_t period_ns)
{
    size_t per = period_ns > v->step_ns ? (size_t)(period_ns / v->step_ns) : 1, edges = 0;
    bool high = false;
    for (size_t i = 0; i < v->n; i += per) {
        double mean = 0;
        size_t next = i + per < v->n ? i + per : v->n;
        for (size_t k = i; k < next; k++)
            mean += v->busy[k] / (double)(next - i);
        if (high ? mean < 0.4 : mean > 0.6)
            high = !high, edges++;
    }
    return edges ? (double)edges : 1;
}

static int judge_peaks(struct aligner *a, const struct peak *peaks, size_t n, int shifts_tried,
                       struct nrg_alignment *out, struct nrg_error *err)
{
    double n_effective = effective_n(a, peaks[0].shift_ns);
    double evidence = -n_effective * log(peaks[0].rss + 1e-12);
    rss_of(a, peaks[0].shift_ns, &out->correlation);
    if (evidence < DISTINCT + 2 * log(shifts_tried))
        return nrg_fail(err, -EDOM, NULL,
                        "power of %s does not follow the layers' activity anywhere (best "
                        "correlation %.2f): give --offset",
                        a->power->name, out->correlation);
    int64_t left = half_width(a, peaks[0], n_effective, -1),
            right = half_width(a, peaks[0], n_effective, 1);
    int64_t width = left > right ? left : right;
    double floor_ns =
        (double)a->power->period_ns / 2 / sqrt(count_edges(a->activity, a->power->period_ns));
    out->offset_ns = peaks[0].shift_ns;
    out->uncertainty_ns = width > (int64_t)floor_ns ? width : (int64_t)floor_ns;
    out->rival_ns = NRG_MISSING;
    for (size_t i = 1; i < n; i++) {
        if (llabs(peaks[i].shift_ns - peaks[0].shift_ns) <= 2 * out->uncertainty_ns)
            continue;
        if (n_effective * log((peaks[i].rss + 1e-12) / (peaks[0].rss + 1e-12)) > DISTINCT)
            continue;
        out->rival_ns = peaks[i].shift_ns;
        return nrg_fail(err, -EDOM, NULL,
                        "power of %s fits two places nearly equally well, %.3f s apart "
                        "(correlation %.2f): give --offset, or a shorter range",
                        a->power->name, (double)llabs(out->rival_ns - out->offset_ns) / 1e9,
                        out->correlation);
    }
    return 0;
}

/* The best shift near a good one, with another time constant. */
static struct peak fit_near(struct aligner *a, struct peak near, int64_t lag_ns)
{
    int64_t step_ns = lag_ns / 16 > a->power->period_ns / 8 ? lag_ns / 16 : a->power->period_ns / 8;
    struct peak peaks[PEAKS];
    size_t n = 0;
    step_ns = step_ns > 0 ? step_ns : 1;
    integrate_activity(a, lag_ns);
    scan_shifts(a, near.shift_ns - 8 * step_ns, near.shift_ns + 8 * step_ns, step_ns, peaks, &n);
    near.rss = rss_of(a, near.shift_ns, NULL);
    return refine_peak(a, n && peaks[0].rss < near.rss ? peaks[0] : near, step_ns);
}

/*
 * Refines the time constant between those that were tried, by halving the distance to its
 * neighbours. Shift and time constant are correlated along a slope: what the uncertainty of the
 * time constant adds to that of the shift is returned as a half width.
 */
static int64_t fit_lag(struct aligner *a, struct peak *best, int64_t *lag_ns)
{
    for (double factor = sqrt(2); factor > 1.005; factor = sqrt(factor))
        for (int side = 0; side < 2; side++) {
            int64_t lag = (int64_t)((double)*lag_ns * (side ? factor : 1 / factor));
            struct peak p = fit_near(a, *best, lag);
            if (p.rss < best->rss) {
                *best = p;
                *lag_ns = lag;
            }
        }
    const double d = 0.05; /* of the logarithm of the time constant */
    struct peak less = fit_near(a, *best, (int64_t)((double)*lag_ns * exp(-d)));
    struct peak more = fit_near(a, *best, (int64_t)((double)*lag_ns * exp(d)));
    *best = fit_near(a, *best, *lag_ns);
    double n = effective_n(a, best->shift_ns);
    double rise = n * (log(less.rss + 1e-12) + log(more.rss + 1e-12) - 2 * log(best->rss + 1e-12));
    double width = rise > 0 ? d * sqrt(2 * CHI2_95 / rise) : 1;
    double slope = (double)(more.shift_ns - less.shift_ns) / (2 * d);
    return (int64_t)llround(fabs(slope) * fmin(width, 1));
}

/* Time constants to try: the sensor's own, or else from 0 up to a quarter of the log. */
static size_t lags_to_try(const struct nrg_power_series *p, int64_t *lags, size_t most)
{
    size_t n = 1;
    lags[0] = p->lag_ns;
    if (p->lag_ns > 0 || !p->gauge)
        return n;
    int64_t longest_ns = (p->end_ns[p->n - 1] - p->begin_ns[0]) / 4;
    for (int64_t lag = 2 * p->period_ns; lag > 0 && lag <= longest_ns && n < most; lag *= 2)
        lags[n++] = lag;
    return n;
}

int nrg_align(const struct nrg_power_series *power, const struct nrg_activity *activity,
              int64_t low_ns, int64_t high_ns, struct nrg_alignment *out, struct nrg_error *err)
{
    struct aligner a = {
        .power = power, .activity = activity, .stride = 1, .low_ns = low_ns, .high_ns = high_ns};
    struct peak best[PEAKS] = {{0, 2}}, peaks[PEAKS];
    size_t n_best = 0;
    int64_t lags[16], best_lag = 0;
    *out = (struct nrg_alignment){.correlation = NAN, .rival_ns = NRG_MISSING};
    if (power->n < MIN_SAMPLES || high_ns < low_ns)
        return nrg_fail(err, -EDOM, NULL,
                        "too few readings of %s to find the layers by (%zu): give --offset",
                        power->name, power->n);
    a.sum = nrg_calloc(activity->n + 1, sizeof *a.sum);
    if (!a.sum)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    size_t n_lags = lags_to_try(power, lags, sizeof lags / sizeof *lags);
    for (size_t i = 0; i < n_lags; i++) {
        integrate_activity(&a, lags[i]);
        size_t n = search_shifts(&a, peaks);
        /* A longer time constant must fit clearly better. */
        if (n && peaks[0].rss < best[0].rss * (i ? 0.98 : 1)) {
            memcpy(best, peaks, sizeof best);
            n_best = n;
            best_lag = lags[i];
        }
    }
    int rc = -EDOM;
    if (n_best) {
        bool fitted = best_lag > 0 && power->lag_ns == 0;
        int64_t more_ns = fitted ? fit_lag(&a, &best[0], &best_lag) : 0;
        integrate_activity(&a, best_lag);
        out->lag_ns = best_lag;
        out->lag_fitted = fitted;
        rc = judge_peaks(&a, best, n_best, COARSE * (int)n_lags, out, err);
        out->uncertainty_ns = (int64_t)hypot((double)out->uncertainty_ns, (double)more_ns);
    } else {
        nrg_fail(err, rc, NULL, "the layers can't be found in the power of %s", power->name);
    }
    free(a.sum);
    return rc;
}

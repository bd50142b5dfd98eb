/*
 * See meter_fit.h. The same readings are used for every delay (those whose windows lie inside the
 * reference wherever they are moved to), so that rests can be compared.
 *
 * Uncertainties are one standard deviation: of scale and offset from the rests of the line, of
 * the delay from how far it can be moved until the sum of squares has grown by one mean square.
 */
#include "energy/meter_fit.h"

#include <errno.h>
#include <math.h>

#include "base/clock.h"

#define LEAST_POINTS      8
#define MOST_DELAYS       4000
#define LEAST_STEP_NS     (NRG_NS_PER_MS)
#define LEAST_CORRELATION 0.5
#define WIDTHS            4
#define ROUNDING          1e-9 /* of the readings' variance: no rest is known better */

struct search {
    const struct nrg_meter_point *points;
    size_t first, n; /* of the points that are used */
    const struct nrg_meter_reference *ref;
};

/* Sums of one straight line, meter over reference. */
struct line {
    double n, mean_x, mean_y, sxx, sxy, syy;
};

static void add(struct line *l, double x, double y)
{
    l->n++;
    double dx = x - l->mean_x, dy = y - l->mean_y;
    l->mean_x += dx / l->n;
    l->mean_y += dy / l->n;
    l->sxx += dx * (x - l->mean_x);
    l->syy += dy * (y - l->mean_y);
    l->sxy += dx * (y - l->mean_y);
}

static struct line line_at(const struct search *s, int64_t delay_ns, int64_t width_ns)
{
    struct line l = {0};
    for (size_t i = s->first; i < s->first + s->n; i++) {
        const struct nrg_meter_point *p = &s->points[i];
        int64_t half = p->begin_ns == p->end_ns ? width_ns / 2 : 0;
        double x =
            s->ref->mean_w(s->ref->arg, p->begin_ns - half - delay_ns, p->end_ns + half - delay_ns);
        if (!isnan(x))
            add(&l, x, p->power_w);
    }
    return l;
}

/* Sum of squares that the line leaves, per reading; reference gaps change their number a little. */
static double rest(const struct line *l)
{
    if (l->n < LEAST_POINTS || !(l->sxx > 0))
        return INFINITY;
    double left = l->syy - l->sxy * l->sxy / l->sxx;
    return (left > 0 ? left : 0) / l->n;
}

static double rest_at(const struct search *s, int64_t delay_ns, int64_t width_ns)
{
    struct line l = line_at(s, delay_ns, width_ns);
    return rest(&l);
}

static int64_t usual_period(const struct nrg_meter_point *points, size_t n)
{
    return n > 1 ? (points[n - 1].end_ns - points[0].end_ns) / (int64_t)(n - 1) : 0;
}

static int64_t best_delay(const struct search *s, int64_t max_ns, int64_t step_ns, int64_t width_ns,
                          double *least)
{
    int64_t best = 0;
    *least = INFINITY;
    for (int64_t delay = -max_ns; delay <= max_ns; delay += step_ns) {
        double r = rest_at(s, delay, width_ns);
        if (r < *least) {
            *least = r;
            best = delay;
        }
    }
    return best;
}

/* Thirds of an interval in which the rest has one minimum. */
static int64_t refine(const struct search *s, int64_t at, int64_t step_ns, int64_t width_ns)
{
    int64_t low = at - step_ns, high = at + step_ns;
    while (high - low > 20000) {
        int64_t third = (high - low) / 3;
        if (rest_at(s, low + third, width_ns) < rest_at(s, high - third, width_ns))
            high -= third;
        else
            low += third;
    }
    return low + (high - low) / 2;
}

/* How far the delay can be moved in one direction until the rest has grown to `bound`. */
static double reach_s(const struct search *s, int64_t at, int64_t direction, int64_t width_ns,
                      int64_t most_ns, double bound)
{
    int64_t inside = 0, outside = LEAST_STEP_NS / 10;
    while (outside < most_ns && rest_at(s, at + direction * outside, width_ns) < bound) {
        inside = outside;
        outside *= 2;
    }
    for (int i = 0; i < 12; i++) {
        int64_t middle = inside + (outside - inside) / 2;
        if (rest_at(s, at + direction * middle, width_ns) < bound)
            inside = middle;
        else
            outside = middle;
    }
    return (double)outside / 1e9;
}

/* The middle of where it may be: without noise, delays between which no reading saw a step are as
 * good as each other. */
static void set_delay(const struct search *s, int64_t delay_ns, int64_t width_ns, int64_t max_ns,
                      struct nrg_meter_fit *fit)
{
    struct line l = line_at(s, delay_ns, width_ns);
    double n = (double)s->n, bound = rest(&l) * (1 + 1 / (n - 3)) + l.syy / l.n * ROUNDING;
    double period_s = (double)s->ref->period_ns / 1e9;
    double later = reach_s(s, delay_ns, 1, width_ns, max_ns, bound);
    double earlier = reach_s(s, delay_ns, -1, width_ns, max_ns, bound);
    double reach = (later + earlier) / 2;
    fit->delay_s = (double)delay_ns / 1e9 + (later - earlier) / 2;
    fit->average_s = (double)width_ns / 1e9;
    fit->delay_sd_s = sqrt(reach * reach + period_s * period_s / 12 / n);
}

static int set_line(const struct line *l, struct nrg_meter_fit *fit, struct nrg_error *err)
{
    double r = l->sxx > 0 && l->syy > 0 ? l->sxy / sqrt(l->sxx * l->syy) : 0;
    if (!(fabs(r) >= LEAST_CORRELATION))
        return nrg_fail(err, -ENODATA, "meter",
                        "does not follow the reference (correlation %.2f): the load did not "
                        "change, it is not this machine's meter, or --max-delay is too small",
                        r);
    double a = l->sxy / l->sxx, b = l->mean_y - a * l->mean_x;
    double left = l->syy - l->sxy * l->sxy / l->sxx, s2 = (left > 0 ? left : 0) / (l->n - 3);
    double var_a = s2 / l->sxx, ratio = b / a;
    double var_b = s2 * (1 / l->n + l->mean_x * l->mean_x / l->sxx), cov = -l->mean_x * var_a;
    fit->scale = 1 / a;
    fit->scale_sd = sqrt(var_a) / (a * a);
    fit->offset_w = -ratio;
    fit->offset_sd_w = sqrt(fabs(var_b + ratio * ratio * var_a - 2 * ratio * cov)) / fabs(a);
    fit->residual_w = sqrt(s2) / fabs(a);
    fit->spread_w = sqrt(l->sxx / l->n);
    fit->correlation = r;
    fit->n = (size_t)l->n;
    return 0;
}

/* Readings that stay inside the reference wherever they are moved to. */
static int choose_points(struct search *s, size_t n, int64_t margin_ns, struct nrg_error *err)
{
    s->first = 0;
    while (s->first < n && s->points[s->first].begin_ns - margin_ns < s->ref->first_ns)
        s->first++;
    s->n = 0;
    while (s->first + s->n < n && s->points[s->first + s->n].end_ns + margin_ns <= s->ref->last_ns)
        s->n++;
    if (s->n < LEAST_POINTS)
        return nrg_fail(err, -ENODATA, "meter",
                        "%zu of its %zu readings can be compared, at least %d are needed: measure "
                        "longer (--for), or allow less (--max-delay)",
                        s->n, n, LEAST_POINTS);
    return 0;
}

int nrg_meter_fit(const struct nrg_meter_point *points, size_t n,
                  const struct nrg_meter_reference *reference, int64_t max_delay_ns,
                  struct nrg_meter_fit *fit, struct nrg_error *err)
{
    struct search s = {.points = points, .ref = reference};
    int64_t period = usual_period(points, n), own = reference->period_ns;
    const int64_t widths[WIDTHS] = {own, own + period / 2, own + period, own + 2 * period};
    int64_t step =
        own / 2 > 2 * max_delay_ns / MOST_DELAYS ? own / 2 : 2 * max_delay_ns / MOST_DELAYS;
    if (step < LEAST_STEP_NS)
        step = LEAST_STEP_NS;
    int rc = choose_points(&s, n, max_delay_ns + step + widths[WIDTHS - 1], err);
    if (rc)
        return rc;
    double least = INFINITY;
    int64_t delay = 0, width = own;
    for (int i = 0; i < WIDTHS; i++) {
        double r;
        int64_t d = best_delay(&s, max_delay_ns, step, widths[i], &r);
        if (r < least * 0.99) { /* a longer average must be better, not just as good */
            least = r;
            delay = d;
            width = widths[i];
        }
    }
    *fit = (struct nrg_meter_fit){0};
    delay = refine(&s, delay, step, width);
    struct line l = line_at(&s, delay, width);
    rc = set_line(&l, fit, err);
    if (!rc)
        set_delay(&s, delay, width, max_delay_ns, fit);
    return rc;
}

/*
 * See meter_fit.h. The same readings are used for every delay (those whose windows lie inside the
 * reference wherever they are moved to), so that residuals can be compared.
 *
 * Uncertainties are one standard deviation: of scale and offset from the residuals of the line, of
 * the delay from how far it can be moved until the sum of squares has grown by one mean square.
 *
 * In a recording, the reference is the sum of the parts that the wall is compared with (wall.c);
 * its power between two instants is exact for counters. A power gauge of the meter is preferred to
 * its counter, which is coarse.
 */
#include "energy/meter_fit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "energy/frame.h"
#include "energy/summary.h"

#define LEAST_POINTS      8
#define MOST_DELAYS       4000
#define LEAST_STEP_NS     (NRG_NS_PER_MS)
#define LEAST_CORRELATION 0.5
#define WIDTHS            4
#define ROUNDING          1e-9 /* of the readings' variance: no residual is known better */

struct search {
    const struct nrg_meter_point *points;
    size_t first, n; /* of the points that are used */
    const struct nrg_meter_reference *ref;
};

/* Sums of one straight line, meter over reference. */
struct line {
    double n, mean_x, mean_y, sxx, sxy, syy;
};

static void add_point(struct line *l, double x, double y)
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
            add_point(&l, x, p->power_w);
    }
    return l;
}

/* Sum of squares that the line leaves, per reading; reference gaps change their number a little. */
static double residual_of(const struct line *l)
{
    if (l->n < LEAST_POINTS || !(l->sxx > 0))
        return INFINITY;
    double left = l->syy - l->sxy * l->sxy / l->sxx;
    return (left > 0 ? left : 0) / l->n;
}

static double residual_at(const struct search *s, int64_t delay_ns, int64_t width_ns)
{
    struct line l = line_at(s, delay_ns, width_ns);
    return residual_of(&l);
}

static int64_t best_delay(const struct search *s, int64_t max_ns, int64_t step_ns, int64_t width_ns,
                          double *least)
{
    int64_t best = 0;
    *least = INFINITY;
    for (int64_t delay = -max_ns; delay <= max_ns; delay += step_ns) {
        double r = residual_at(s, delay, width_ns);
        if (r < *least) {
            *least = r;
            best = delay;
        }
    }
    return best;
}

/* Ternary search: within a step of the grid the residual has one minimum. */
static int64_t refine_delay(const struct search *s, int64_t at, int64_t step_ns, int64_t width_ns)
{
    int64_t low = at - step_ns, high = at + step_ns;
    while (high - low > 20000) {
        int64_t third = (high - low) / 3;
        if (residual_at(s, low + third, width_ns) < residual_at(s, high - third, width_ns))
            high -= third;
        else
            low += third;
    }
    return low + (high - low) / 2;
}

/* How far the delay can be moved in one direction until the residual has grown to `bound`. */
static double reach_s(const struct search *s, int64_t at, int64_t direction, int64_t width_ns,
                      int64_t most_ns, double bound)
{
    int64_t inside = 0, outside = LEAST_STEP_NS / 10;
    while (outside < most_ns && residual_at(s, at + direction * outside, width_ns) < bound) {
        inside = outside;
        outside *= 2;
    }
    for (int i = 0; i < 12; i++) {
        int64_t middle = inside + (outside - inside) / 2;
        if (residual_at(s, at + direction * middle, width_ns) < bound)
            inside = middle;
        else
            outside = middle;
    }
    return (double)outside / 1e9;
}

/* The middle of where it may be: without noise, all delays that put every step of the load between
 * the same readings fit equally well. */
static void set_delay(const struct search *s, int64_t delay_ns, int64_t width_ns, int64_t max_ns,
                      struct nrg_meter_fit *fit)
{
    struct line l = line_at(s, delay_ns, width_ns);
    double n = (double)s->n, bound = residual_of(&l) * (1 + 1 / (n - 3)) + l.syy / l.n * ROUNDING;
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
    int64_t own = reference->period_ns;
    int64_t period = n > 1 ? (points[n - 1].end_ns - points[0].end_ns) / (int64_t)(n - 1) : 0;
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
    delay = refine_delay(&s, delay, step, width);
    struct line l = line_at(&s, delay, width);
    rc = set_line(&l, fit, err);
    if (!rc)
        set_delay(&s, delay, width, max_delay_ns, fit);
    return rc;
}

struct pair {
    struct nrg_frame frame;
    struct nrg_summary summary; /* says which domains are the reference */
};

static const struct nrg_timeline *part_timeline(struct pair *p, const struct nrg_domain *part)
{
    return nrg_frame_timeline(&p->frame, (size_t)(part->channel - p->frame.channels));
}

static double parts_mean_w(void *arg, int64_t begin_ns, int64_t end_ns)
{
    struct pair *p = arg;
    double sum_w = 0;
    for (size_t i = 0; i < p->summary.n_domains; i++) {
        const struct nrg_domain *part = &p->summary.domains[i];
        const struct nrg_timeline *tl = part->wall_part ? part_timeline(p, part) : NULL;
        int64_t covered_ns = 0;
        if (!part->wall_part)
            continue;
        double energy_j = tl ? nrg_timeline_between(tl, begin_ns, end_ns, &covered_ns) : 0;
        if (covered_ns < (end_ns - begin_ns) / 2 || covered_ns <= 0)
            return NAN;
        sum_w += energy_j * 1e9 / (double)covered_ns;
    }
    return sum_w;
}

static struct nrg_meter_reference reference_of(struct pair *p)
{
    struct nrg_meter_reference ref = {.mean_w = parts_mean_w,
                                      .arg = p,
                                      .first_ns = INT64_MIN,
                                      .last_ns = INT64_MAX,
                                      .period_ns = NRG_NS_PER_MS};
    for (size_t i = 0; i < p->summary.n_domains; i++) {
        const struct nrg_domain *part = &p->summary.domains[i];
        const struct nrg_timeline *tl = part->wall_part ? part_timeline(p, part) : NULL;
        if (tl && nrg_point_ns(tl, 0) > ref.first_ns)
            ref.first_ns = nrg_point_ns(tl, 0);
        if (tl && nrg_point_ns(tl, tl->n - 1) < ref.last_ns)
            ref.last_ns = nrg_point_ns(tl, tl->n - 1);
        if (tl && tl->period_ns > ref.period_ns)
            ref.period_ns = tl->period_ns;
    }
    return ref;
}

/* Index of the meter's channel, a gauge if there is one; frame->n: none. */
static size_t find_meter(const struct nrg_frame *frame)
{
    size_t power = nrg_frame_find(frame, "wall", NRG_POWER);
    return power < frame->n ? power : nrg_frame_find(frame, "wall", NRG_ENERGY);
}

/* A counter's readings are means from one to the next. */
static size_t make_points(const struct nrg_timeline *tl, struct nrg_meter_point *points)
{
    size_t n = 0;
    for (size_t i = 0; tl && i < tl->n; i++) {
        if (tl->is_gauge)
            points[n++] = (struct nrg_meter_point){nrg_point_ns(tl, i), nrg_point_ns(tl, i),
                                                   nrg_point_gauge(tl, i)};
        else if (i && !nrg_point_gap(tl, i - 1) && nrg_point_ns(tl, i) > nrg_point_ns(tl, i - 1))
            points[n++] = (struct nrg_meter_point){
                nrg_point_ns(tl, i - 1), nrg_point_ns(tl, i),
                (nrg_point_j(tl, i) - nrg_point_j(tl, i - 1)) * 1e9 /
                    (double)(nrg_point_ns(tl, i) - nrg_point_ns(tl, i - 1))};
    }
    return n;
}

static int fit_pair(struct pair *p, int64_t max_delay_ns, struct nrg_meter_fit *fit,
                    struct nrg_error *err)
{
    const char *path = nrg_recording_path(p->frame.recording);
    size_t meter = find_meter(&p->frame);
    if (meter == p->frame.n)
        return nrg_fail(err, -ENODATA, path,
                        "has no meter of the machine, a channel called wall: covers=NAME:machine "
                        "says which power of the meter it is");
    if (!p->summary.wall.n_parts)
        return nrg_fail(err, -ENODATA, path,
                        "has nothing to compare the meter with: nrg sensors says what can be "
                        "measured here");
    const struct nrg_timeline *tl = nrg_frame_timeline(&p->frame, meter);
    struct nrg_meter_point *points = nrg_calloc((tl ? tl->n : 0) + 1, sizeof *points);
    if (!points)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    struct nrg_meter_reference ref = reference_of(p);
    int rc = nrg_meter_fit(points, make_points(tl, points), &ref, max_delay_ns, fit, err);
    free(points);
    return rc;
}

int nrg_meter_fit_recording(struct nrg_recording *recording, int64_t max_delay_ns,
                            struct nrg_meter_fit *fit, struct nrg_error *err)
{
    struct pair p = {0};
    size_t n_runs;
    const struct nrg_run *runs = nrg_recording_runs(recording, &n_runs);
    if (!n_runs)
        return nrg_recording_no_run(recording, "run", err);
    int rc = nrg_summary_make(&p.summary, recording, &runs[n_runs - 1], NRG_SPLIT_ACTIVE, err);
    if (rc)
        return rc;
    rc = nrg_frame_init(&p.frame, recording) ? nrg_fail(err, -ENOMEM, NULL, "out of memory")
                                             : fit_pair(&p, max_delay_ns, fit, err);
    nrg_frame_release(&p.frame);
    nrg_summary_release(&p.summary);
    return rc;
}

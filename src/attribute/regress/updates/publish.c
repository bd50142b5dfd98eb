/*
 * The values that a device published, of a sensor that is read faster than it updates: one that
 * updates every 100 ms and is read every 20 ms shows each value several times. Only the first
 * reading of it is news, and the update lies between the last reading of the old value and that
 * one. When exactly it came is sought by grid.c.
 *
 * Readings that are as fast as the sensor, or slower, are left as they are.
 */
#include <errno.h>
#include <math.h>

#include "attribute/regress/internal.h"
#include "base/stats.h"

#define SLOWER      2.5  /* updates that last so many readings are found */
#define SAID_SLOWER 1.7  /* the same where the driver says how often there is one */
#define ONCE        0.95 /* the same of a counter, or of moments: each update is another value */
#define LONG_S      5e-3 /* updates of these; clockwork.c finds a counter's that are shorter */
#define REGULAR     0.8  /* of the news */
#define NOMINAL     0.02 /* of what the driver says: a device's clock is that good */
#define SEEN        0.75 /* of an update: readings that are closer have seen each */

static size_t count_news(const struct nrg_timeline *tl)
{
    size_t n = 0;
    for (size_t i = 1; i < tl->n; i++)
        n += nrg_update_is_news(tl, i);
    return n;
}

/* Room for n values of the timeline's own. */
static int make_room(struct nrg_regress *r, bool gauge, size_t n)
{
    struct nrg_timeline *own = &r->published.timeline;
    own->n = 0;
    own->t_ns = nrg_arena_array(&r->memory, n + 1, sizeof *own->t_ns);
    own->sum_j = nrg_arena_array(&r->memory, n + 1, sizeof *own->sum_j);
    own->gap = nrg_arena_array(&r->memory, n + 1, sizeof *own->gap);
    own->own_gauge = gauge ? nrg_arena_array(&r->memory, n + 1, sizeof *own->own_gauge) : NULL;
    r->published.before_ns = nrg_arena_array(&r->memory, n + 1, sizeof *r->published.before_ns);
    r->published.updates = nrg_arena_array(&r->memory, n + 1, sizeof *r->published.updates);
    return r->memory.failed ? -ENOMEM : 0;
}

/* The new values alone, at the times of their first readings. */
static int take_news(struct nrg_regress *r, const struct nrg_timeline *tl, size_t n)
{
    struct nrg_timeline *own = &r->published.timeline;
    *own = *tl;
    int rc = make_room(r, tl->is_gauge, n);
    if (rc)
        return rc;
    for (size_t i = 1; i < tl->n; i++) {
        if (own->n)
            own->gap[own->n - 1] |= nrg_point_gap(tl, i - 1);
        if (!nrg_update_is_news(tl, i))
            continue;
        r->published.before_ns[own->n] = nrg_point_ns(tl, i - 1);
        own->t_ns[own->n] = nrg_point_ns(tl, i);
        own->sum_j[own->n] = nrg_point_j(tl, i);
        if (own->own_gauge)
            own->own_gauge[own->n] = nrg_point_gauge(tl, i);
        own->gap[own->n++] = 0;
    }
    return 0;
}

static double middle_s(const struct nrg_regress *r, size_t i)
{
    const struct nrg_timeline *own = &r->published.timeline;
    return ((double)(r->published.before_ns[i] - own->t_ns[0]) / 2 +
            (double)(own->t_ns[i] - own->t_ns[0]) / 2) /
           1e9;
}

static double median_update_s(const struct nrg_regress *r)
{
    const struct nrg_timeline *own = &r->published.timeline;
    double steps[1001];
    size_t n = own->n - 1 < 1001 ? own->n - 1 : 1001;
    for (size_t i = 0; i < n; i++)
        steps[i] = middle_s(r, i + 1) - middle_s(r, i);
    nrg_sort(steps, n);
    double median = steps[n / 2], sum = 0, kept = 0;
    for (size_t i = 0; i < n; i++)
        if (fabs(steps[i] - median) < median / 2) {
            sum += steps[i];
            kept++;
        }
    return kept > 0 ? sum / kept : median;
}

/*
 * News on a grid come about as far apart each time, to a reading. A steady power that is rounded
 * shows the same value several times, too, but at any distance. Where it is known how often a gauge
 * updates, some may show the value before again.
 */
static bool is_regular(const struct nrg_regress *r, double reading_s, double update_s, bool repeats)
{
    const struct nrg_timeline *own = &r->published.timeline;
    double most_s = fmin(1.2 * reading_s, update_s / 3);
    size_t regular = 0;
    for (size_t i = 0; i + 1 < own->n; i++) {
        double apart_s = (double)(own->t_ns[i + 1] - own->t_ns[i]) / 1e9;
        double updates = repeats ? fmax(round(apart_s / update_s), 1) : 1;
        regular += fabs(apart_s - updates * update_s) < most_s;
    }
    return (double)regular > REGULAR * (double)(own->n - 1);
}

/* As the driver says, or as values that are held do. */
static double said_update_s(const struct nrg_regress *r)
{
    int64_t said_ns = r->options.channel->update_ns;
    return (double)(said_ns > 0 ? said_ns : r->options.timeline->held_ns) / 1e9;
}

/* How far updates are apart; 0: they are on no grid. */
static double find_update_s(const struct nrg_regress *r, double reading_s)
{
    double usual_s = median_update_s(r), said_s = said_update_s(r);
    if (fabs(usual_s - said_s) < NOMINAL * said_s) /* jitter may have moved the usual one */
        usual_s = said_s;
    if (is_regular(r, reading_s, usual_s, false))
        return usual_s;
    bool known = r->options.timeline->is_gauge && said_s > 0;
    return known && is_regular(r, reading_s, said_s, true) ? said_s : 0;
}

/* A reading shows the last update: one that came after others had been missed is of the last period
 * before it, however long ago the reading before was. */
static void forget_missed(struct nrg_regress *r)
{
    const struct nrg_timeline *own = &r->published.timeline;
    int64_t oldest_ns = (int64_t)((1 + NOMINAL) * r->published.update_s * 1e9);
    for (size_t i = 0; i < own->n; i++)
        if (r->published.before_ns[i] < own->t_ns[i] - oldest_ns)
            r->published.before_ns[i] = own->t_ns[i] - oldest_ns;
}

/* Between which readings each update came, and which one it is. */
static void number_updates(struct nrg_regress *r)
{
    const struct nrg_timeline *own = &r->published.timeline;
    struct nrg_update *updates = r->published.updates;
    forget_missed(r);
    for (size_t i = 0; i < own->n; i++)
        updates[i] = (struct nrg_update){(double)(r->published.before_ns[i] - own->t_ns[0]) / 1e9,
                                         (double)(own->t_ns[i] - own->t_ns[0]) / 1e9, 0};
    nrg_updates_number(updates, own->n, r->published.update_s);
}

/* Updates before value i, of number i of the published ones, that showed again what was there: not
 * where some were missed. */
static size_t repeats_before(const struct nrg_published *p, size_t i)
{
    const struct nrg_update *u = &p->updates[i];
    if (!i || p->timeline.gap[i - 1] || u->high_s - u->low_s > SEEN * p->update_s)
        return 0;
    return (size_t)(u->number - u[-1].number) - 1;
}

/*
 * An update may show the same value as the one before: two moments in calls of one class. Left out
 * because of what they show, they would make classes that last look less likely.
 */
static int add_repeats(struct nrg_regress *r)
{
    const struct nrg_published from = r->published;
    struct nrg_published *to = &r->published;
    size_t n = from.timeline.n;
    for (size_t i = 0; i < from.timeline.n; i++)
        n += repeats_before(&from, i);
    int rc = n > from.timeline.n ? make_room(r, true, n) : 0;
    for (size_t i = 0; !rc && n > from.timeline.n && i < from.timeline.n; i++) {
        size_t repeats = repeats_before(&from, i);
        for (size_t k = 0; k <= repeats; k++) {
            size_t at = to->timeline.n++, of = k < repeats ? i - 1 : i;
            double back_s = (double)(repeats - k) * from.update_s, any_s = k < repeats ? back_s : 0;
            to->timeline.t_ns[at] = from.timeline.t_ns[i] - (int64_t)(back_s * 1e9);
            to->before_ns[at] = from.before_ns[i] - (int64_t)(back_s * 1e9);
            to->timeline.sum_j[at] = from.timeline.sum_j[of];
            to->timeline.own_gauge[at] = from.timeline.own_gauge[of];
            to->timeline.gap[at] = k < repeats ? 0 : from.timeline.gap[i];
            to->updates[at] = (struct nrg_update){from.updates[i].low_s - back_s - any_s,
                                                  from.updates[i].high_s - back_s + any_s,
                                                  from.updates[i].number - (double)(repeats - k)};
        }
    }
    return rc;
}

/* Begins the value of an update, with a reading of it; the one before was of an earlier update. */
static void begin_value(struct nrg_published *p, const struct nrg_timeline *tl, size_t before,
                        size_t i, double number)
{
    struct nrg_timeline *own = &p->timeline;
    size_t at = own->n++;
    p->before_ns[at] = nrg_point_ns(tl, before);
    own->t_ns[at] = nrg_point_ns(tl, i);
    own->sum_j[at] = nrg_point_j(tl, i);
    own->own_gauge[at] = nrg_point_gauge(tl, i);
    own->gap[at] = 0;
    p->updates[at] = (struct nrg_update){(double)(p->before_ns[at] - own->t_ns[0]) / 1e9,
                                         (double)(own->t_ns[at] - own->t_ns[0]) / 1e9, number};
}

/*
 * Values that noise blurs: those that changed by more say when all others came, too, and each
 * update has the mean of its readings. Readings that may be of either of two updates are none's.
 */
static int take_means(struct nrg_regress *r, const struct nrg_timeline *tl)
{
    const struct nrg_published from = r->published;
    struct nrg_published *to = &r->published;
    struct nrg_timeline *own = &to->timeline;
    struct nrg_update_grid grid;
    size_t last = 0, readings = 0;
    if (!nrg_update_grid_find(from.updates, from.timeline.n, &grid) || !grid.regular)
        return 0;
    double off = grid.half_origin_s / grid.period_s, first = NAN, number = NAN;
    int rc = make_room(r, true, (size_t)from.updates[from.timeline.n - 1].number + 1);
    for (size_t i = 0; !rc && i < tl->n; i++) {
        double at_s = (double)(nrg_point_ns(tl, i) - from.timeline.t_ns[0]) / 1e9;
        double at = (at_s - grid.origin_s) / grid.period_s, k = floor(at - off);
        if (i && own->n)
            own->gap[own->n - 1] |= nrg_point_gap(tl, i - 1);
        if (k < 0 || k > from.updates[from.timeline.n - 1].number || k != floor(at + off)) {
            last = k < 0 ? i : last;
            continue;
        }
        if (k != number) {
            first = own->n ? first : k;
            begin_value(to, tl, last, i, k - first);
            number = k;
            readings = 0;
        }
        last = i;
        double *mean = &own->own_gauge[own->n - 1];
        *mean += (nrg_point_gauge(tl, i) - *mean) / (double)++readings;
    }
    return rc;
}

/* A gauge that sees a part of each update. */
static bool sees_part(const struct nrg_timeline *tl, const struct nrg_channel *c)
{
    return tl->is_gauge && c->window_ns > 0 && c->window_ns < c->update_ns;
}

/* Per update, for news to be told from values that are equal by chance. */
static double least_readings(const struct nrg_timeline *tl, const struct nrg_channel *c)
{
    double update_s = (double)c->update_ns / 1e9;
    if (update_s > LONG_S && (!tl->is_gauge || sees_part(tl, c)))
        return ONCE;
    return update_s > 0 ? SAID_SLOWER : SLOWER;
}

/* What a mean of many updates is off by stays in it as long as any of them: rows tell by how much
 * more it changes from one to the next. */
static void know_mean(struct nrg_regress *r, const struct nrg_channel *c)
{
    r->published.mean_updates = (double)c->window_ns / (double)c->update_ns;
    r->first_phi = NRG_MEAN_PHI;
}

int nrg_regress_take_news(struct nrg_regress *r)
{
    const struct nrg_timeline *tl = r->options.timeline;
    const struct nrg_channel *c = r->options.channel;
    size_t news = count_news(tl);
    double update_s = (double)c->update_ns / 1e9;
    double slower = least_readings(tl, c);
    if (tl->n < 3 || news < 8 || (double)(tl->n - 1) < slower * (double)news)
        return 0;
    double span_s = (double)(nrg_point_ns(tl, tl->n - 1) - nrg_point_ns(tl, 0)) / 1e9;
    double reading_s = span_s / (double)(tl->n - 1);
    if (c->lag_ns > 0 || (update_s > 0 && reading_s * slower > update_s))
        return 0; /* it is read slower than it updates: values are equal by chance */
    int rc = take_news(r, tl, news);
    update_s = rc ? 0 : find_update_s(r, reading_s);
    if (!rc && update_s > 0) {
        r->options.timeline = &r->published.timeline;
        r->published.timeline.period_ns = (int64_t)(update_s * 1e9);
        r->published.used = true;
        r->published.update_s = update_s;
        if (sees_part(tl, c))
            r->published.window_s = (double)c->window_ns / 1e9;
        if (nrg_channel_is_running_mean(c))
            know_mean(r, c);
        number_updates(r);
        rc = tl->held_w > 0 ? take_means(r, tl) : tl->is_gauge ? add_repeats(r) : 0;
    }
    return rc;
}

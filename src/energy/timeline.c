/* See timeline.h. One pass over the readings; queries are binary searches. */
#include "energy/timeline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/search.h"
#include "energy/updates/held.h"
#include "record/read/still.h"

#define LEAST_UPDATES 2 /* in a mean that nobody has spoken of */
#define END_STEPS     2 /* of a counter: between two of them it did not stand in one by chance */

struct builder {
    struct nrg_timeline *timeline;
    const struct nrg_recording *recording;
    const struct nrg_recorded_channel *channel;
    int64_t last_ns, last_raw;
    int64_t moved_ns; /* when the counter last changed */
    bool lost;        /* the register could not be read */
    struct nrg_power_range range;
    double steepest; /* W/s: how fast a gauge went from one value to the next */
};

static int add_point(struct builder *b, int64_t t_ns, int64_t raw, bool gap)
{
    b->last_ns = t_ns;
    b->timeline->n++;
    return nrg_packed_add(b->timeline->packed, t_ns, raw, gap);
}

/* nrg_counted_step, with what happened noted in the timeline. */
static double counter_step(struct builder *b, int64_t raw, int64_t t_ns)
{
    bool wrapped;
    double step =
        nrg_counted_step(b->recording, b->channel, b->last_raw, raw, b->last_ns, t_ns, &wrapped);
    b->timeline->wraps += wrapped;
    b->timeline->backwards += step == NRG_STEP_BACKWARDS;
    b->timeline->ambiguous += step == NRG_STEP_AMBIGUOUS;
    b->timeline->stood += step == NRG_STEP_STILL;
    return step;
}

/* The integer that a step was, which may have been rounded up to 2^63. */
static int64_t whole_step(double step)
{
    return step < 0x1p63 ? (int64_t)step : INT64_MAX;
}

static int add_counter(struct builder *b, int64_t t_ns, int64_t raw)
{
    struct nrg_timeline *tl = b->timeline;
    double step = 0;
    bool gap = false;
    if (nrg_is_still(b->recording, b->channel, t_ns))
        return 0;
    if (tl->n) {
        if (t_ns <= b->last_ns)
            return 0;
        step = counter_step(b, raw, t_ns);
        b->lost = nrg_counter_is_lost(b->lost, step);
        gap = step < 0 || b->lost;
    }
    if (!tl->n || raw != b->last_raw)
        b->moved_ns = t_ns;
    else if (t_ns - b->moved_ns > tl->stuck_ns)
        tl->stuck_ns = t_ns - b->moved_ns;
    b->last_raw = raw;
    return add_point(b, t_ns, gap ? 0 : whole_step(step), gap);
}

/* Within an update a gauge may jump. */
static void note_slope(struct builder *b, double from_w, double to_w, int64_t dt_ns)
{
    int64_t update_ns = b->timeline->update_ns;
    double over_s = (double)(dt_ns > update_ns ? dt_ns : update_ns) / 1e9;
    b->range.low_w = fmin(b->range.low_w, fmin(from_w, to_w));
    b->range.high_w = fmax(b->range.high_w, fmax(from_w, to_w));
    b->steepest = fmax(b->steepest, fabs(to_w - from_w) / over_s);
}

static int add_gauge(struct builder *b, int64_t t_ns, int64_t raw)
{
    struct nrg_timeline *tl = b->timeline;
    double scale = b->channel->channel.scale, last = (double)b->last_raw * scale,
           off = (double)raw * scale - last;
    bool gap = false;
    if (tl->n) {
        int64_t dt_ns = t_ns - b->last_ns;
        double dt_s = (double)dt_ns / 1e9;
        if (dt_ns <= 0)
            return 0;
        gap = dt_ns > nrg_gauge_gap_ns(tl->period_ns);
        if (!gap) {
            tl->noise_j2 += off * off * dt_s * dt_s / 12;
            note_slope(b, last, last + off, dt_ns);
        }
    }
    b->last_raw = raw;
    return add_point(b, t_ns, raw, gap);
}

static int add_rows(struct builder *b, const struct nrg_rows *rows)
{
    const int64_t *raw = nrg_rows_column(rows, b->channel->column);
    bool gauge = b->timeline->is_gauge;
    int rc = 0;
    for (size_t i = 0; !rc && i < rows->n; i++)
        if (raw[i] != NRG_MISSING)
            rc =
                gauge ? add_gauge(b, rows->t_ns[i], raw[i]) : add_counter(b, rows->t_ns[i], raw[i]);
    return rc;
}

/* Each chunk says it of its readings. */
static int note_took(struct nrg_timeline *tl, const struct nrg_rows *rows)
{
    struct nrg_took took = {rows->t_ns[0], rows->width_ns > 0 ? rows->width_ns : 0};
    int64_t last_ns = tl->n_took ? tl->took[tl->n_took - 1].took_ns : 0;
    return took.took_ns == last_ns
               ? 0
               : nrg_append(&tl->took, &tl->n_took, &tl->cap_took, &took, sizeof took);
}

int64_t nrg_timeline_took_ns(const struct nrg_timeline *tl, int64_t t_ns)
{
    size_t begun =
        tl->n_took ? nrg_count_up_to(&tl->took->first_ns, tl->n_took, sizeof *tl->took, t_ns) : 0;
    return begun ? tl->took[begun - 1].took_ns : 0;
}

/* All that are made of one series. */
struct builders {
    struct builder *items;
    size_t n;
};

static int on_rows(void *arg, const struct nrg_rows *rows)
{
    struct builders *all = arg;
    int rc = 0;
    for (size_t i = 0; !rc && rows->n && i < all->n; i++) {
        rc = note_took(all->items[i].timeline, rows);
        if (!rc)
            rc = add_rows(&all->items[i], rows);
    }
    return rc;
}

/* Times between the first readings. */
struct distances {
    const struct nrg_recorded_channel *channel;
    int64_t ns[NRG_FIRST_SPACINGS], last_ns;
    size_t n;
    bool any;
};

static int on_some_rows(void *arg, const struct nrg_rows *rows)
{
    struct distances *d = arg;
    const int64_t *raw = nrg_rows_column(rows, d->channel->column);
    for (size_t i = 0; i < rows->n && d->n < NRG_FIRST_SPACINGS; i++) {
        if (raw[i] == NRG_MISSING || (d->any && rows->t_ns[i] <= d->last_ns))
            continue;
        if (d->any)
            d->ns[d->n++] = rows->t_ns[i] - d->last_ns;
        d->last_ns = rows->t_ns[i];
        d->any = true;
    }
    return d->n >= NRG_FIRST_SPACINGS; /* positive: enough seen */
}

int64_t nrg_channel_update_ns(struct nrg_recording *recording,
                              const struct nrg_recorded_channel *channel)
{
    struct distances d = {.channel = channel};
    if (channel->channel.update_ns || channel->channel.kind != NRG_GAUGE)
        return channel->channel.update_ns;
    if (nrg_recording_read_series(recording, channel->series, on_some_rows, &d, NULL) < 0)
        return 0;
    return nrg_gauge_update_ns(d.ns, d.n, channel->period_ns);
}

/* `like`: of the same series, begun before it; NULL: none. */
static int start_timeline(struct builder *b, struct nrg_recording *recording,
                          const struct nrg_timeline *like)
{
    struct nrg_timeline *tl = b->timeline;
    const struct nrg_recorded_channel *channel = b->channel;
    *tl = (struct nrg_timeline){.is_gauge = channel->channel.kind != NRG_COUNTER};
    tl->update_ns = nrg_channel_update_ns(recording, channel);
    tl->period_ns = channel->period_ns > tl->update_ns ? channel->period_ns : tl->update_ns;
    tl->packed = nrg_calloc(1, sizeof *tl->packed);
    return tl->packed ? nrg_packed_init(tl->packed, tl->is_gauge, channel->channel.scale,
                                        like ? like->packed : NULL)
                      : -ENOMEM;
}

/* How long values are held, where only readings can say. */
static int learn_held(struct nrg_timeline *tl, const struct nrg_channel *c)
{
    struct nrg_held held;
    if (c->update_ns || c->lag_ns || c->kind != NRG_GAUGE || c->quantity != NRG_POWER)
        return 0;
    int rc = nrg_held_find(tl, &held);
    tl->held_ns = held.update_ns;
    tl->held_w = held.within_w;
    if (tl->update_ns < held.update_ns)
        tl->update_ns = held.update_ns;
    return rc;
}

/*
 * How long the means may be that a gauge shows. Where its driver does not say it: a mean of W
 * changes by no more than the power's range in W, so that one that ever went faster is shorter.
 */
static void learn_mean(struct nrg_timeline *tl, const struct builder *b)
{
    const struct nrg_channel *c = &b->channel->channel;
    double range_w = b->range.high_w - b->range.low_w;
    if (c->kind != NRG_GAUGE || c->quantity != NRG_POWER || c->lag_ns > 0 ||
        c->provenance == NRG_ESTIMATED)
        return;
    if (nrg_channel_is_running_mean(c))
        tl->mean_ns = c->window_ns;
    else if (!c->window_ns && tl->update_ns > 0 && b->steepest > 0 && range_w > 0)
        tl->mean_ns = (int64_t)fmin(range_w / b->steepest * 1e9, (double)NRG_LONGEST_MEAN_NS);
    if (tl->mean_ns <= (c->window_ns ? tl->update_ns : LEAST_UPDATES * tl->update_ns))
        tl->mean_ns = 0;
}

int nrg_timelines_load(struct nrg_timeline *const *timelines, struct nrg_recording *recording,
                       const struct nrg_recorded_channel *const *channels, size_t n)
{
    struct builders all = {nrg_calloc(n + 1, sizeof *all.items), n};
    size_t damaged = 0;
    int rc = !all.items ? -ENOMEM : n ? nrg_stills_find(recording, channels[0]->series) : 0;
    for (size_t i = 0; i < n; i++)
        *timelines[i] = (struct nrg_timeline){0};
    for (size_t i = 0; !rc && i < n; i++) {
        all.items[i] = (struct builder){.timeline = timelines[i],
                                        .recording = recording,
                                        .channel = channels[i],
                                        .range = {NAN, NAN}};
        rc = start_timeline(&all.items[i], recording, i ? timelines[0] : NULL);
    }
    if (!rc && n)
        rc = nrg_recording_read_series(recording, channels[0]->series, on_rows, &all, &damaged);
    for (size_t i = 0; !rc && i < n; i++) {
        timelines[i]->damaged = damaged;
        rc = nrg_packed_finish(timelines[i]->packed);
        if (!rc)
            rc = learn_held(timelines[i], &channels[i]->channel);
        if (!rc)
            learn_mean(timelines[i], &all.items[i]);
    }
    for (size_t i = 0; rc && i < n; i++)
        nrg_timeline_release(timelines[i]);
    free(all.items);
    return rc;
}

int nrg_timeline_load(struct nrg_timeline *tl, struct nrg_recording *recording,
                      const struct nrg_recorded_channel *channel)
{
    return nrg_timelines_load(&tl, recording, &channel, 1);
}

void nrg_timeline_release(struct nrg_timeline *tl)
{
    if (tl->packed)
        nrg_packed_release(tl->packed);
    free(tl->packed);
    free(tl->t_ns);
    free(tl->sum_j);
    free(tl->gap);
    free(tl->own_gauge);
    free(tl->took);
    *tl = (struct nrg_timeline){0};
}

size_t nrg_timeline_up_to(const struct nrg_timeline *tl, int64_t t_ns)
{
    return tl->t_ns ? nrg_count_up_to(tl->t_ns, tl->n, sizeof *tl->t_ns, t_ns)
                    : nrg_packed_up_to(tl->packed, t_ns);
}

size_t nrg_timeline_below(const struct nrg_timeline *tl, int64_t t_ns)
{
    return t_ns == INT64_MIN ? 0 : nrg_timeline_up_to(tl, t_ns - 1);
}

/* Sum of a part of the time between two points, which is known. */
static double part_sum(bool is_gauge, const struct nrg_reading_point *from,
                       const struct nrg_reading_point *to, int64_t begin_ns, int64_t width_ns)
{
    double width = (double)width_ns, apart = (double)(to->t_ns - from->t_ns);
    if (!is_gauge)
        return (to->sum_j - from->sum_j) * width / apart;
    /* Inside a trapezoid the power itself is interpolated. */
    double slope = (to->gauge - from->gauge) / apart;
    double middle = (double)(begin_ns - from->t_ns) + width / 2;
    return (from->gauge + slope * middle) * width / 1e9;
}

/* From a counter's first or last point on: as far as nrg_timeline_end looks. */
static size_t end_stretch(const struct nrg_timeline *tl, bool first)
{
    size_t edge = first ? 0 : tl->n - 1, at = edge, steps = 0;
    while (first ? at + 1 < tl->n : at > 0) {
        size_t from = first ? at : at - 1;
        int64_t seen_ns = nrg_point_ns(tl, at) - nrg_point_ns(tl, edge);
        bool enough = (first ? seen_ns : -seen_ns) >= tl->update_ns && steps >= END_STEPS;
        if (enough || nrg_point_gap(tl, from))
            break;
        steps += nrg_point_j(tl, from + 1) > nrg_point_j(tl, from);
        at = first ? at + 1 : at - 1;
    }
    return at;
}

struct nrg_held_end nrg_timeline_end(const struct nrg_timeline *tl, bool first)
{
    const struct nrg_held_end nothing = {NAN, 0};
    size_t edge = first ? 0 : tl->n - 1;
    if (tl->is_gauge)
        return (struct nrg_held_end){nrg_point_gauge(tl, edge), tl->period_ns};
    if (tl->update_ns < tl->period_ns)
        return nothing;
    size_t other = end_stretch(tl, first), from = first ? edge : other, to = first ? other : edge;
    int64_t seen_ns = nrg_point_ns(tl, to) - nrg_point_ns(tl, from);
    if (seen_ns <= 0)
        return nothing;
    double seen_j = nrg_point_j(tl, to) - nrg_point_j(tl, from);
    return (struct nrg_held_end){seen_j * 1e9 / (double)seen_ns,
                                 seen_ns < tl->update_ns ? seen_ns : tl->update_ns};
}

/* Of a time before the first point, or after the last. */
static double held_sum(const struct nrg_timeline *tl, bool first, int64_t begin_ns, int64_t end_ns,
                       int64_t *covered_ns)
{
    struct nrg_held_end held = nrg_timeline_end(tl, first);
    int64_t width = end_ns - begin_ns, t_ns = nrg_point_ns(tl, first ? 0 : tl->n - 1);
    int64_t reach = first ? t_ns - begin_ns : end_ns - t_ns;
    int64_t over = reach > held.reach_ns ? reach - held.reach_ns : 0;
    width = width > over ? width - over : 0;
    if (!width)
        return 0;
    *covered_ns += width;
    return held.power_w * (double)width / 1e9;
}

double nrg_timeline_counter_held(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns,
                                 int64_t *held_ns)
{
    double sum_j = 0;
    *held_ns = 0;
    if (tl->is_gauge || !tl->n)
        return 0;
    int64_t first_ns = nrg_point_ns(tl, 0), last_ns = nrg_point_ns(tl, tl->n - 1);
    if (begin_ns < first_ns)
        sum_j += held_sum(tl, true, begin_ns, end_ns < first_ns ? end_ns : first_ns, held_ns);
    if (end_ns > last_ns)
        sum_j += held_sum(tl, false, begin_ns > last_ns ? begin_ns : last_ns, end_ns, held_ns);
    return sum_j;
}

double nrg_timeline_between(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns,
                            int64_t *covered_ns)
{
    int64_t covered = 0, at = begin_ns;
    double sum = 0;
    size_t next = tl->n && end_ns > begin_ns ? nrg_timeline_up_to(tl, begin_ns) : 0;
    struct nrg_reading_point from = {0}, to;
    if (next)
        from = nrg_point_at(tl, next - 1);
    for (; tl->n && at < end_ns; next++, from = to) {
        to = next < tl->n ? nrg_point_at(tl, next) : (struct nrg_reading_point){.t_ns = INT64_MAX};
        int64_t stop = to.t_ns < end_ns ? to.t_ns : end_ns;
        if (!next || next == tl->n) {
            sum += held_sum(tl, !next, at, stop, &covered);
        } else if (!from.gap) {
            covered += stop - at;
            sum += part_sum(tl->is_gauge, &from, &to, at, stop - at);
        }
        at = stop;
    }
    if (covered_ns)
        *covered_ns = covered;
    return sum;
}

double nrg_timeline_peak(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns,
                         int64_t window_ns)
{
    double peak = -1;
    size_t begun = nrg_timeline_up_to(tl, begin_ns), from = begun ? begun - 1 : 0;
    size_t j = from, last_gap = from;
    struct nrg_reading_point to = {0};
    if (j < tl->n)
        to = nrg_point_at(tl, j);
    for (size_t i = from; i < tl->n; i++) {
        struct nrg_reading_point at = nrg_point_at(tl, i);
        if (at.t_ns > end_ns)
            break;
        while (j < tl->n && to.t_ns - at.t_ns < window_ns) {
            last_gap = to.gap ? j + 1 : last_gap;
            if (++j < tl->n)
                to = nrg_point_at(tl, j);
        }
        if (j >= tl->n || to.t_ns > end_ns + window_ns)
            break;
        if (last_gap > i)
            continue;
        double mean = (to.sum_j - at.sum_j) * 1e9 / (double)(to.t_ns - at.t_ns);
        peak = mean > peak ? mean : peak;
    }
    return peak;
}

double nrg_timeline_gauge_at(const struct nrg_timeline *tl, int64_t t_ns)
{
    if (!tl->is_gauge)
        return NAN;
    size_t begun = nrg_timeline_up_to(tl, t_ns), at = begun ? begun - 1 : 0;
    int64_t off_ns = begun ? t_ns - nrg_point_ns(tl, at) : nrg_point_ns(tl, 0) - t_ns;
    int64_t most_ns = begun ? nrg_gauge_gap_ns(tl->period_ns) : tl->period_ns;
    return off_ns <= most_ns ? nrg_point_gauge(tl, at) : NAN;
}

double nrg_timeline_gauge_line(const struct nrg_timeline *tl, int64_t t_ns)
{
    double held = nrg_timeline_gauge_at(tl, t_ns);
    size_t next = nrg_timeline_up_to(tl, t_ns);
    if (isnan(held) || !next || next == tl->n || nrg_point_gap(tl, next - 1))
        return held;
    double from_ns = (double)nrg_point_ns(tl, next - 1), to_ns = (double)nrg_point_ns(tl, next);
    return held + (nrg_point_gauge(tl, next) - held) * ((double)t_ns - from_ns) / (to_ns - from_ns);
}

struct nrg_power_range nrg_timeline_gauge_range(const struct nrg_timeline *tl, int64_t begin_ns,
                                                int64_t end_ns)
{
    struct nrg_power_range range = {NAN, NAN};
    for (size_t i = 0; tl->is_gauge && i < tl->n && nrg_point_ns(tl, i) <= end_ns; i++) {
        if (nrg_point_ns(tl, i) < begin_ns)
            continue;
        range.low_w = fmin(range.low_w, nrg_point_gauge(tl, i));
        range.high_w = fmax(range.high_w, nrg_point_gauge(tl, i));
    }
    return range;
}

double nrg_timeline_late(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns,
                         int64_t *late_ns)
{
    double late_j = 0;
    *late_ns = 0;
    for (size_t i = 1; tl->is_gauge && i < tl->n && nrg_point_ns(tl, i - 1) < end_ns; i++) {
        int64_t from = nrg_point_ns(tl, i - 1), to = nrg_point_ns(tl, i), covered_ns;
        if (to <= begin_ns || !nrg_gauge_is_late(to - from, tl->period_ns))
            continue;
        late_j += nrg_timeline_between(tl, from > begin_ns ? from : begin_ns,
                                       to < end_ns ? to : end_ns, &covered_ns);
        *late_ns += covered_ns;
    }
    return late_j;
}

double nrg_timeline_gauge_sd(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns)
{
    double n = 0, mean = 0, squares = 0;
    for (size_t i = 0; tl->is_gauge && i < tl->n && nrg_point_ns(tl, i) <= end_ns; i++) {
        if (nrg_point_ns(tl, i) < begin_ns)
            continue;
        double off = nrg_point_gauge(tl, i) - mean;
        n++;
        mean += off / n;
        squares += off * (nrg_point_gauge(tl, i) - mean);
    }
    return n > 1 ? sqrt(squares / (n - 1)) : 0;
}

double nrg_timeline_gauge_ends_j(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns,
                                 int64_t window_ns)
{
    int64_t reach_ns = tl->update_ns + (window_ns > 0 ? window_ns : tl->update_ns);
    struct nrg_power_range first =
        nrg_timeline_gauge_range(tl, begin_ns - reach_ns, begin_ns + reach_ns);
    struct nrg_power_range last =
        nrg_timeline_gauge_range(tl, end_ns - reach_ns, end_ns + reach_ns);
    double change_w = fmax(first.high_w, last.high_w) - fmin(first.low_w, last.low_w);
    double late_j = isnan(change_w) ? 0 : change_w * (double)reach_ns / 2e9;
    return fmax(late_j, nrg_timeline_gauge_sd(tl, begin_ns, end_ns) * (double)tl->update_ns / 1e9);
}

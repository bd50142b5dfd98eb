/* See timeline.h. One pass over the readings; queries are binary searches. */
#include "energy/timeline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/search.h"

struct builder {
    struct nrg_timeline *timeline;
    const struct nrg_recorded_channel *channel;
    int64_t last_raw;
    int64_t moved_ns; /* when the counter last changed */
    bool lost;        /* the register could not be read */
};

static int add_point(struct nrg_timeline *tl, int64_t t_ns, double step_j, bool gap, double gauge)
{
    if (tl->n == tl->cap) {
        size_t cap_t = tl->cap, cap_s = tl->cap, cap_g = tl->cap, cap_v = tl->cap;
        if (nrg_reserve(&tl->t_ns, &cap_t, tl->n + 1, sizeof *tl->t_ns) ||
            nrg_reserve(&tl->sum_j, &cap_s, tl->n + 1, sizeof *tl->sum_j) ||
            nrg_reserve(&tl->gap, &cap_g, tl->n + 1, sizeof *tl->gap) ||
            (!isnan(gauge) && nrg_reserve(&tl->gauge, &cap_v, tl->n + 1, sizeof *tl->gauge)))
            return -ENOMEM;
        tl->cap = cap_t;
    }
    tl->t_ns[tl->n] = t_ns;
    tl->sum_j[tl->n] = (tl->n ? tl->sum_j[tl->n - 1] : 0) + step_j;
    if (tl->gauge)
        tl->gauge[tl->n] = gauge;
    tl->gap[tl->n] = 0;
    if (tl->n)
        tl->gap[tl->n - 1] = gap;
    tl->n++;
    return 0;
}

/* nrg_counter_step, with what happened noted in the timeline. */
static double counter_step(struct builder *b, int64_t raw, int64_t dt_ns)
{
    bool wrapped;
    double step = nrg_counter_step(&b->channel->channel, b->last_raw, raw, dt_ns, &wrapped);
    b->timeline->wraps += wrapped;
    b->timeline->backwards += step == NRG_STEP_BACKWARDS;
    b->timeline->ambiguous += step == NRG_STEP_AMBIGUOUS;
    return step;
}

static int add_counter(struct builder *b, int64_t t_ns, int64_t raw)
{
    struct nrg_timeline *tl = b->timeline;
    double step = 0;
    bool gap = false;
    if (tl->n) {
        int64_t last_ns = tl->t_ns[tl->n - 1];
        if (t_ns <= last_ns)
            return 0;
        step = counter_step(b, raw, t_ns - last_ns);
        b->lost = nrg_counter_is_lost(b->lost, step);
        gap = step < 0 || b->lost;
    }
    if (!tl->n || raw != b->last_raw)
        b->moved_ns = t_ns;
    else if (t_ns - b->moved_ns > tl->stuck_ns)
        tl->stuck_ns = t_ns - b->moved_ns;
    b->last_raw = raw;
    return add_point(tl, t_ns, gap ? 0 : step * b->channel->channel.scale, gap, NAN);
}

static int add_gauge(struct builder *b, int64_t t_ns, int64_t raw)
{
    struct nrg_timeline *tl = b->timeline;
    double value = (double)raw * b->channel->channel.scale, step = 0;
    bool gap = false;
    if (tl->n) {
        int64_t dt_ns = t_ns - tl->t_ns[tl->n - 1];
        double last = tl->gauge[tl->n - 1], dt_s = (double)dt_ns / 1e9;
        if (dt_ns <= 0)
            return 0;
        gap = dt_ns > nrg_gauge_gap_ns(tl->period_ns);
        step = gap ? 0 : (value + last) / 2 * dt_s;
        if (!gap)
            tl->noise_j2 += (value - last) * (value - last) * dt_s * dt_s / 12;
    }
    return add_point(tl, t_ns, step, gap, value);
}

static int on_rows(void *arg, const struct nrg_rows *rows)
{
    struct builder *b = arg;
    const int64_t *raw = nrg_rows_column(rows, b->channel->column);
    bool counter = b->channel->channel.kind == NRG_COUNTER;
    int rc = 0;
    for (size_t i = 0; !rc && i < rows->n; i++)
        if (raw[i] != NRG_MISSING)
            rc = counter ? add_counter(b, rows->t_ns[i], raw[i])
                         : add_gauge(b, rows->t_ns[i], raw[i]);
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

int nrg_timeline_load(struct nrg_timeline *tl, struct nrg_recording *recording,
                      const struct nrg_recorded_channel *channel)
{
    *tl = (struct nrg_timeline){0};
    tl->update_ns = nrg_channel_update_ns(recording, channel);
    tl->period_ns = channel->period_ns > tl->update_ns ? channel->period_ns : tl->update_ns;
    struct builder builder = {.timeline = tl, .channel = channel};
    int rc = nrg_recording_read_series(recording, channel->series, on_rows, &builder, &tl->damaged);
    if (rc)
        nrg_timeline_release(tl);
    return rc;
}

void nrg_timeline_release(struct nrg_timeline *tl)
{
    free(tl->t_ns);
    free(tl->sum_j);
    free(tl->gap);
    free(tl->gauge);
    *tl = (struct nrg_timeline){0};
}

/* Index of the last point at or before t, -1 when there is none. */
static ptrdiff_t last_point(const struct nrg_timeline *tl, int64_t t_ns)
{
    return (ptrdiff_t)nrg_count_up_to(tl->t_ns, tl->n, sizeof *tl->t_ns, t_ns) - 1;
}

/* Part of [begin, end] between points i and i+1 (or before the first, after the last). */
static double piece(const struct nrg_timeline *tl, ptrdiff_t i, int64_t begin_ns, int64_t end_ns,
                    int64_t *covered_ns)
{
    int64_t width = end_ns - begin_ns;
    if (width <= 0)
        return 0;
    if (i >= 0 && i + 1 < (ptrdiff_t)tl->n) {
        if (tl->gap[i])
            return 0;
        *covered_ns += width;
        if (tl->gauge) {
            /* Inside a trapezoid the power itself is interpolated. */
            double span = (double)(tl->t_ns[i + 1] - tl->t_ns[i]);
            double slope = (tl->gauge[i + 1] - tl->gauge[i]) / span;
            double middle = (double)(begin_ns - tl->t_ns[i]) + (double)width / 2;
            return (tl->gauge[i] + slope * middle) * (double)width / 1e9;
        }
        return (tl->sum_j[i + 1] - tl->sum_j[i]) * (double)width /
               (double)(tl->t_ns[i + 1] - tl->t_ns[i]);
    }
    if (!tl->gauge)
        return 0;
    ptrdiff_t at = i < 0 ? 0 : i;
    int64_t reach = i < 0 ? tl->t_ns[0] - begin_ns : end_ns - tl->t_ns[at];
    int64_t over = reach > tl->period_ns ? reach - tl->period_ns : 0;
    width = width > over ? width - over : 0;
    *covered_ns += width;
    return tl->gauge[at] * (double)width / 1e9;
}

double nrg_timeline_between(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns,
                            int64_t *covered_ns)
{
    int64_t covered = 0;
    double sum = 0;
    if (tl->n && end_ns > begin_ns) {
        int64_t at = begin_ns;
        for (ptrdiff_t i = last_point(tl, begin_ns); at < end_ns; i++) {
            int64_t next = i + 1 < (ptrdiff_t)tl->n ? tl->t_ns[i + 1] : INT64_MAX;
            int64_t stop = next < end_ns ? next : end_ns;
            sum += piece(tl, i, at, stop, &covered);
            at = stop;
        }
    }
    if (covered_ns)
        *covered_ns = covered;
    return sum;
}

double nrg_timeline_peak(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns,
                         int64_t window_ns)
{
    double peak = -1;
    ptrdiff_t first = last_point(tl, begin_ns);
    size_t from = first < 0 ? 0 : (size_t)first, j = from, last_gap = from;
    for (size_t i = from; i < tl->n && tl->t_ns[i] <= end_ns; i++) {
        while (j < tl->n && tl->t_ns[j] - tl->t_ns[i] < window_ns) {
            if (tl->gap[j])
                last_gap = j + 1;
            j++;
        }
        if (j >= tl->n || tl->t_ns[j] > end_ns + window_ns)
            break;
        if (last_gap > i)
            continue;
        double mean = (tl->sum_j[j] - tl->sum_j[i]) * 1e9 / (double)(tl->t_ns[j] - tl->t_ns[i]);
        peak = mean > peak ? mean : peak;
    }
    return peak;
}

double nrg_timeline_gauge_at(const struct nrg_timeline *tl, int64_t t_ns)
{
    ptrdiff_t i = last_point(tl, t_ns);
    if (!tl->gauge)
        return NAN;
    if (i < 0)
        return tl->t_ns[0] - t_ns <= tl->period_ns ? tl->gauge[0] : NAN;
    return t_ns - tl->t_ns[i] <= nrg_gauge_gap_ns(tl->period_ns) ? tl->gauge[i] : NAN;
}

struct nrg_power_range nrg_timeline_gauge_range(const struct nrg_timeline *tl, int64_t begin_ns,
                                                int64_t end_ns)
{
    struct nrg_power_range range = {NAN, NAN};
    for (size_t i = 0; tl->gauge && i < tl->n && tl->t_ns[i] <= end_ns; i++) {
        if (tl->t_ns[i] < begin_ns)
            continue;
        range.low_w = fmin(range.low_w, tl->gauge[i]);
        range.high_w = fmax(range.high_w, tl->gauge[i]);
    }
    return range;
}

double nrg_timeline_late(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns,
                         int64_t *late_ns)
{
    double late_j = 0;
    *late_ns = 0;
    for (size_t i = 1; tl->gauge && i < tl->n && tl->t_ns[i - 1] < end_ns; i++) {
        int64_t from = tl->t_ns[i - 1], to = tl->t_ns[i], covered_ns;
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
    for (size_t i = 0; tl->gauge && i < tl->n && tl->t_ns[i] <= end_ns; i++) {
        if (tl->t_ns[i] < begin_ns)
            continue;
        double off = tl->gauge[i] - mean;
        n++;
        mean += off / n;
        squares += off * (tl->gauge[i] - mean);
    }
    return n > 1 ? sqrt(squares / (n - 1)) : 0;
}

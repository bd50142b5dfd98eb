/* See frame.h. Timelines load lazily: most commands look at few of the channels. */
#include "energy/frame.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/search.h"
#include "energy/bins.h"
#include "energy/idle.h"
#include "energy/updates/running_mean.h"
#include "energy/updates/update_grid.h"

#define READ_PER_UPDATE 0.95                /* else one reading may show two updates */
#define LONG_UPDATE_NS  5000000             /* the ends of shorter ones hardly matter */
#define GRID_AROUND_NS  (60 * NRG_NS_PER_S) /* of a baseline: far enough to know the period */
#define KEPT_POINTS     (2u << 20)          /* of all channels, when dropped: some 10 MB */

int nrg_frame_init(struct nrg_frame *frame, struct nrg_recording *recording)
{
    *frame = (struct nrg_frame){.recording = recording};
    frame->channels = nrg_recording_channels(recording, &frame->n);
    frame->timelines = nrg_calloc(frame->n + 1, sizeof *frame->timelines);
    frame->loaded = nrg_calloc(frame->n + 1, sizeof *frame->loaded);
    return frame->timelines && frame->loaded ? 0 : -ENOMEM;
}

void nrg_frame_release(struct nrg_frame *frame)
{
    for (size_t i = 0; frame->timelines && i < frame->n; i++)
        nrg_timeline_release(&frame->timelines[i]);
    free(frame->timelines);
    free(frame->loaded);
}

const struct nrg_timeline *nrg_frame_timeline(struct nrg_frame *frame, size_t channel)
{
    if (channel >= frame->n)
        return NULL;
    if (!frame->loaded[channel]) {
        frame->loaded[channel] = true;
        nrg_timeline_load(&frame->timelines[channel], frame->recording, &frame->channels[channel]);
    }
    return frame->timelines[channel].n ? &frame->timelines[channel] : NULL;
}

int nrg_frame_load(struct nrg_frame *frame, const bool *wanted)
{
    struct nrg_arena memory = {0};
    struct nrg_timeline **timelines =
        nrg_arena_array(&memory, frame->n + 1, sizeof(struct nrg_timeline *));
    const struct nrg_recorded_channel **channels =
        nrg_arena_array(&memory, frame->n + 1, sizeof(const struct nrg_recorded_channel *));
    for (size_t first = 0; !memory.failed && first < frame->n; first++) {
        size_t n = 0;
        for (size_t i = first; i < frame->n; i++) {
            if (!wanted[i] || frame->loaded[i] ||
                frame->channels[i].series != frame->channels[first].series)
                continue;
            frame->loaded[i] = true;
            timelines[n] = &frame->timelines[i];
            channels[n++] = &frame->channels[i];
        }
        nrg_timelines_load(timelines, frame->recording, channels, n);
    }
    int rc = memory.failed ? -ENOMEM : 0;
    nrg_arena_release(&memory);
    return rc;
}

void nrg_frame_drop(struct nrg_frame *frame, size_t channel)
{
    if (frame->loaded[channel] && frame->timelines[channel].n <= KEPT_POINTS / frame->n)
        return;
    nrg_timeline_release(&frame->timelines[channel]);
    frame->loaded[channel] = false;
}

void nrg_frame_drop_all(struct nrg_frame *frame)
{
    for (size_t i = 0; i < frame->n; i++)
        nrg_frame_drop(frame, i);
}

size_t nrg_frame_find(const struct nrg_frame *frame, const char *name, enum nrg_quantity quantity)
{
    for (size_t i = 0; i < frame->n; i++)
        if (!strcmp(frame->channels[i].channel.name, name) &&
            frame->channels[i].channel.quantity == quantity)
            return i;
    return frame->n;
}

size_t nrg_frame_companion(const struct nrg_frame *frame, const char *name, const char *suffix)
{
    char full[64];
    snprintf(full, sizeof full, "%.48s%s", name, suffix);
    return nrg_frame_find(frame, full, NRG_ENERGY);
}

int nrg_gpu_number(const char *channel)
{
    int gpu, used = 0;
    return sscanf(channel, "gpu-%d%n", &gpu, &used) == 1 && !channel[used] ? gpu : -1;
}

double nrg_frame_baseline_s(const struct nrg_frame *frame, bool *after)
{
    size_t n;
    const struct nrg_run *runs = nrg_recording_runs(frame->recording, &n);
    double time_s = 0;
    *after = false;
    for (size_t i = 0; i < n; i++) {
        *after = !strcmp(runs[i].kind, "baseline") && i > 0 &&
                 (*after || strcmp(runs[i - 1].kind, "baseline"));
        if (!strcmp(runs[i].kind, "baseline"))
            time_s += (double)(runs[i].end_ns - runs[i].begin_ns) * 1e-9;
    }
    return time_s;
}

/* From the first to the last reading within the run; false: there are no two. */
static bool cut_to_readings(const struct nrg_timeline *tl, struct nrg_span_ns *span)
{
    size_t from = nrg_timeline_below(tl, span->begin_ns);
    size_t to = nrg_timeline_up_to(tl, span->end_ns);
    if (to < from + 2)
        return false;
    *span = (struct nrg_span_ns){nrg_point_ns(tl, from), nrg_point_ns(tl, to - 1)};
    return true;
}

struct baselines {
    double energy_j, time_s, least_w, most_w;
    double edge_s; /* how far off the time of each of its ends is, a deviation */
};

/* Which update of a grid that begins at zero_ns a new value is: it came between the reading and the
 * one before. */
static double update_number(const struct nrg_timeline *tl, size_t i, int64_t zero_ns,
                            const struct nrg_update_grid *grid)
{
    double low_s = (double)(nrg_point_ns(tl, i - 1) - zero_ns) * 1e-9;
    double high_s = (double)(nrg_point_ns(tl, i) - zero_ns) * 1e-9;
    return round(((low_s + high_s) / 2 - grid->origin_s) / grid->period_s);
}

/*
 * A counter that is read as fast as it updates, or faster, shows when it did. From its first to its
 * last update in a baseline, time is that of so many periods, which all of its updates tell far
 * better than any single reading. False: it can't be told.
 */
static bool cut_to_updates(const struct nrg_timeline *tl, const struct nrg_recorded_channel *c,
                           struct nrg_span_ns *span, double *time_s, double *edge_s)
{
    struct nrg_update_grid grid;
    size_t from = nrg_timeline_below(tl, span->begin_ns);
    size_t to = nrg_timeline_up_to(tl, span->end_ns);
    double update_ns = (double)c->channel.update_ns;
    int64_t zero_ns = span->begin_ns - GRID_AROUND_NS;
    if (tl->is_gauge || update_ns < LONG_UPDATE_NS ||
        READ_PER_UPDATE * (double)c->period_ns > update_ns ||
        !nrg_update_grid_fit(tl, zero_ns, span->end_ns + GRID_AROUND_NS, update_ns, 0, &grid) ||
        !grid.regular)
        return false;
    for (from = from ? from : 1; from < to && !nrg_update_is_news(tl, from); from++)
        ;
    while (to > from + 1 && !nrg_update_is_news(tl, to - 1))
        to--;
    if (to < from + 2)
        return false;
    *span = (struct nrg_span_ns){nrg_point_ns(tl, from), nrg_point_ns(tl, to - 1)};
    double updates =
        update_number(tl, to - 1, zero_ns, &grid) - update_number(tl, from, zero_ns, &grid);
    *time_s = updates * grid.period_s;
    *edge_s = updates * grid.half_period_s / sqrt(6);
    return updates > 0;
}

/* Which baselines count: by when they were. */
enum side { BEFORE = 1, AFTER = 2, ANY = 3 };

static enum side side_of(const struct nrg_run *runs, size_t n, size_t baseline)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(runs[i].kind, "baseline") && runs[i].begin_ns < runs[baseline].begin_ns)
            return AFTER;
    return BEFORE;
}

/* A running mean shows the end of a run for a while: the baseline after it begins later. False: not
 * any more within it. */
static bool cut_to_quiet(const struct nrg_timeline *tl, const struct nrg_run *runs, size_t n,
                         struct nrg_span_ns *span)
{
    int64_t reach_ns = nrg_running_mean_reach_ns(tl), begin_ns = span->begin_ns;
    for (size_t i = 0; reach_ns > 0 && i < n; i++)
        if (strcmp(runs[i].kind, "baseline") && runs[i].end_ns <= begin_ns &&
            runs[i].end_ns > span->begin_ns - reach_ns)
            span->begin_ns = runs[i].end_ns + reach_ns;
    return span->begin_ns < span->end_ns;
}

/* `readings_of`: cut to the readings of that channel, where there is one. */
static struct baselines find_baselines(struct nrg_frame *frame, size_t channel, size_t readings_of,
                                       enum side side)
{
    size_t n;
    struct baselines b = {.least_w = INFINITY, .most_w = -INFINITY};
    const struct nrg_run *runs = nrg_recording_runs(frame->recording, &n);
    const struct nrg_timeline *cut = nrg_frame_timeline(frame, readings_of);
    const struct nrg_timeline *tl = nrg_frame_timeline(frame, channel);
    for (size_t i = 0; tl && i < n; i++) {
        struct nrg_span_ns span = {runs[i].begin_ns, runs[i].end_ns};
        const struct nrg_recorded_channel *c = &frame->channels[channel];
        double edge_s = (double)c->channel.update_ns * 1e-9 / sqrt(12), updates_s = 0;
        int64_t covered = 0;
        if (strcmp(runs[i].kind, "baseline") || !(side & side_of(runs, n, i)))
            continue;
        if (!cut_to_quiet(tl, runs, n, &span) || (cut && !cut_to_readings(cut, &span)))
            continue;
        bool told = !cut && cut_to_updates(tl, c, &span, &updates_s, &edge_s);
        double j = nrg_timeline_between(tl, span.begin_ns, span.end_ns, &covered);
        if (covered > 0) {
            bool whole = told && covered == span.end_ns - span.begin_ns;
            double s = whole ? updates_s : (double)covered * 1e-9;
            b.energy_j += j;
            b.time_s += s;
            b.least_w = fmin(b.least_w, j / s);
            b.most_w = fmax(b.most_w, j / s);
            b.edge_s = hypot(b.edge_s, edge_s);
        }
    }
    return b;
}

double nrg_frame_baseline_rate_at(struct nrg_frame *frame, size_t channel, size_t readings_of)
{
    struct baselines b = find_baselines(frame, channel, readings_of, ANY);
    return b.time_s > 0 ? b.energy_j / b.time_s : NAN;
}

struct nrg_baseline_ends nrg_frame_baseline_ends(struct nrg_frame *frame, size_t channel)
{
    return nrg_frame_baseline_ends_at(frame, channel, frame->n);
}

struct nrg_baseline_ends nrg_frame_baseline_ends_at(struct nrg_frame *frame, size_t channel,
                                                    size_t readings_of)
{
    struct baselines before = find_baselines(frame, channel, readings_of, BEFORE);
    struct baselines after = find_baselines(frame, channel, readings_of, AFTER);
    return (struct nrg_baseline_ends){before.time_s > 0 ? before.energy_j / before.time_s : NAN,
                                      after.time_s > 0 ? after.energy_j / after.time_s : NAN};
}

double nrg_frame_baseline_most(struct nrg_frame *frame, size_t channel)
{
    struct nrg_baseline_ends ends = nrg_frame_baseline_ends(frame, channel);
    return fmax(nrg_frame_baseline_rate(frame, channel), fmax(ends.before, ends.after));
}

double nrg_frame_baseline_doubt(struct nrg_frame *frame, size_t channel)
{
    bool after;
    struct baselines b = find_baselines(frame, channel, frame->n, ANY);
    if (!(b.time_s > 0))
        return 0;
    nrg_frame_baseline_s(frame, &after);
    double w = fabs(b.energy_j / b.time_s);
    double scatter_w = fmax(NRG_BASELINE_ERROR * w, w * sqrt(12) * b.edge_s / b.time_s);
    return (after ? (b.most_w - b.least_w) / 2 : NRG_IDLE_DRIFT * w) + scatter_w;
}

double nrg_frame_baseline_error(struct nrg_frame *frame, size_t channel)
{
    struct baselines b = find_baselines(frame, channel, frame->n, ANY);
    return b.time_s > 0 ? fabs(b.energy_j / b.time_s) * sqrt(2) * b.edge_s / b.time_s : 0;
}

double nrg_frame_baseline_rate(struct nrg_frame *frame, size_t channel)
{
    return nrg_frame_baseline_rate_at(frame, channel, frame->n);
}

double nrg_frame_baseline_scatter(struct nrg_frame *frame, size_t channel)
{
    size_t n;
    const struct nrg_run *runs = nrg_recording_runs(frame->recording, &n);
    const struct nrg_timeline *tl = nrg_frame_timeline(frame, channel);
    double most = 0;
    for (size_t i = 0; tl && tl->is_gauge && i < n; i++) {
        struct nrg_span_ns span = {runs[i].begin_ns, runs[i].end_ns};
        if (!strcmp(runs[i].kind, "baseline") && cut_to_quiet(tl, runs, n, &span))
            most = fmax(most, nrg_timeline_gauge_sd(tl, span.begin_ns, span.end_ns));
    }
    return most;
}

/* See frame.h. Timelines load lazily: most commands look at few of the channels. */
#include "energy/frame.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/search.h"
#include "energy/bins.h"
#include "energy/idle.h"

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

void nrg_frame_drop(struct nrg_frame *frame, size_t channel)
{
    nrg_timeline_release(&frame->timelines[channel]);
    frame->loaded[channel] = false;
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
    size_t from = nrg_count_below(tl->t_ns, tl->n, sizeof *tl->t_ns, span->begin_ns);
    size_t to = nrg_count_up_to(tl->t_ns, tl->n, sizeof *tl->t_ns, span->end_ns);
    if (to < from + 2)
        return false;
    *span = (struct nrg_span_ns){tl->t_ns[from], tl->t_ns[to - 1]};
    return true;
}

struct baselines {
    double energy_j, time_s, least_w, most_w;
};

/* `readings_of`: cut to the readings of that channel, where there is one. */
static struct baselines find_baselines(struct nrg_frame *frame, size_t channel, size_t readings_of)
{
    size_t n;
    struct baselines b = {.least_w = INFINITY, .most_w = -INFINITY};
    const struct nrg_run *runs = nrg_recording_runs(frame->recording, &n);
    const struct nrg_timeline *cut = nrg_frame_timeline(frame, readings_of), *tl;
    for (size_t i = 0; i < n; i++) {
        struct nrg_span_ns span = {runs[i].begin_ns, runs[i].end_ns};
        int64_t covered = 0;
        if (strcmp(runs[i].kind, "baseline"))
            continue;
        tl = nrg_frame_timeline(frame, channel);
        if (!tl)
            return (struct baselines){0};
        if (cut && !cut_to_readings(cut, &span))
            continue;
        double j = nrg_timeline_between(tl, span.begin_ns, span.end_ns, &covered);
        if (covered > 0) {
            double s = (double)covered * 1e-9;
            b.energy_j += j;
            b.time_s += s;
            b.least_w = fmin(b.least_w, j / s);
            b.most_w = fmax(b.most_w, j / s);
        }
    }
    return b;
}

double nrg_frame_baseline_rate_at(struct nrg_frame *frame, size_t channel, size_t readings_of)
{
    struct baselines b = find_baselines(frame, channel, readings_of);
    return b.time_s > 0 ? b.energy_j / b.time_s : NAN;
}

double nrg_frame_baseline_doubt(struct nrg_frame *frame, size_t channel)
{
    bool after;
    struct baselines b = find_baselines(frame, channel, frame->n);
    if (!(b.time_s > 0))
        return 0;
    nrg_frame_baseline_s(frame, &after);
    double w = fabs(b.energy_j / b.time_s);
    double update_s = (double)frame->channels[channel].channel.update_ns * 1e-9;
    double scatter_w = fmax(NRG_BASELINE_ERROR * w, w * update_s / b.time_s);
    return (after ? (b.most_w - b.least_w) / 2 : NRG_IDLE_DRIFT * w) + scatter_w;
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
    for (size_t i = 0; tl && tl->gauge && i < n; i++)
        if (!strcmp(runs[i].kind, "baseline"))
            most = fmax(most, nrg_timeline_gauge_sd(tl, runs[i].begin_ns, runs[i].end_ns));
    return most;
}

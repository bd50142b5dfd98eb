/* See recorder_use.h. */
#include "energy/recorder_use.h"

#include <math.h>

bool nrg_busy_samples(const struct nrg_frame *frame)
{
    size_t busy = nrg_frame_find(frame, "cpu.busy", NRG_SECONDS);
    if (busy == frame->n)
        return false;
    const struct nrg_channel *c = &frame->channels[busy].channel;
    return c->update_ns > 0 && c->resolution * 1e9 > (double)c->update_ns / 2;
}

struct nrg_recorder_use nrg_recorder_use_find(struct nrg_frame *frame)
{
    size_t channel = nrg_frame_find(frame, "cpu.recorder", NRG_SECONDS);
    if (channel == frame->n || !nrg_busy_samples(frame))
        return (struct nrg_recorder_use){0};
    double before = nrg_frame_baseline_rate(frame, channel);
    return (struct nrg_recorder_use){nrg_frame_timeline(frame, channel), before > 0 ? before : 0};
}

double nrg_recorder_use_s(const struct nrg_recorder_use *use, int64_t begin_ns, int64_t end_ns)
{
    if (!use->own)
        return 0;
    double own_s = nrg_timeline_between(use->own, begin_ns, end_ns, NULL);
    return fmax(0, own_s - use->before * (double)(end_ns - begin_ns) * 1e-9);
}

/* See recorder.h. */
#include "attribute/recorder.h"

#include <math.h>
#include <string.h>

#include "energy/recorder_use.h"

#define READING_S 6e-5 /* CPU time of a recorder for one more reading: docs/performance.md */
#define ONCE      0.1  /* of a CPU second's watts, that come once however many CPUs are busy */

double nrg_cpu_watts(const struct nrg_engine *e, const struct nrg_part *part)
{
    const struct nrg_cells *c = &e->cells;
    double busy_s = 0, active_j = part->domain->energy_j - part->out->idle_w * e->out->duration_s;
    for (size_t k = 0; c->busy_s && k < c->n; k++)
        busy_s += c->outside[k] ? 0 : c->busy_s[k];
    return busy_s > 0 && active_j > 0 ? active_j / busy_s : INFINITY;
}

/* Readings per second of the part's sensor in the runs of a kind: baselines, or the others. */
static double reading_rate(const struct nrg_engine *e, const struct nrg_part *part, bool baselines)
{
    size_t n_runs, n = 0;
    double length_s = 0;
    const struct nrg_run *runs = nrg_recording_runs(e->frame.recording, &n_runs);
    for (size_t i = 0; i < n_runs; i++) {
        if (!strcmp(runs[i].kind, "baseline") != baselines)
            continue;
        n += nrg_timeline_up_to(part->tl, runs[i].end_ns) -
             nrg_timeline_below(part->tl, runs[i].begin_ns);
        length_s += (double)(runs[i].end_ns - runs[i].begin_ns) * 1e-9;
    }
    return length_s > 0 ? (double)n / length_s : 0;
}

double nrg_recorder_more_busy(const struct nrg_engine *e, const struct nrg_part *part)
{
    if (!nrg_busy_samples(&e->frame))
        return 0;
    if (nrg_frame_find(&e->frame, "cpu.recorder", NRG_SECONDS) < e->frame.n)
        return e->cells.own_s / e->out->duration_s;
    double more = reading_rate(e, part, false) - reading_rate(e, part, true);
    return fmin(fmax(more, 0) * READING_S, NRG_TRICKLE);
}

/* CPUs that the recorder had in the baselines: as recorded, or what so many readings take, but no
 * more than were busy. */
static double recorder_in_baseline(struct nrg_engine *e, const struct nrg_part *part)
{
    size_t own = nrg_frame_find(&e->frame, "cpu.recorder", NRG_SECONDS);
    size_t busy = nrg_frame_find(&e->frame, "cpu.busy", NRG_SECONDS);
    double cpus = own < e->frame.n    ? nrg_frame_baseline_rate(&e->frame, own)
                  : busy < e->frame.n ? fmin(READING_S * reading_rate(e, part, true),
                                             nrg_frame_baseline_rate(&e->frame, busy))
                                      : 0;
    return cpus > 0 ? cpus : 0;
}

double nrg_own_busy(const struct nrg_engine *e)
{
    const struct nrg_cells *c = &e->cells;
    double own_s = 0;
    for (size_t k = 0; c->busy_s && c->other_s && k < c->n; k++)
        own_s += c->outside[k] ? 0 : fmax(c->busy_s[k] - c->other_s[k], 0);
    return own_s / e->out->duration_s;
}

double nrg_recorder_woken_w(struct nrg_engine *e, const struct nrg_part *part)
{
    double watts = nrg_cpu_watts(e, part);
    if (part->pool || !isfinite(watts))
        return 0;
    return ONCE * watts * recorder_in_baseline(e, part) / (1 + fmax(nrg_own_busy(e), 1));
}

/*
 * Where a run's idle power comes from: the recording's own (an estimate, an import), the
 * baseline's, or, where there is none, or the machine was busy meanwhile, and utilisation varied
 * enough, the intercept of power over busy CPUs. Else it is not known, and at most the least power
 * that was seen.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "energy/idle.h"
#include "energy/internal.h"
#include "energy/share_cells.h"

#define MIN_TOLD_S    0.05 /* power of a shorter cell says little */
#define LEAST_SHARE   0.05 /* quantile that stands for the least: one cell may be an outlier */
#define BASELINE_BUSY 0.05 /* of all CPUs: more than a quiet machine's own housekeeping */

struct search {
    struct nrg_summary *s;
    struct nrg_frame *frame;
    struct nrg_share_cells *cells;
    bool has_busy;
};

/* Mean power of the processors' domains during the baseline run, NAN without one. */
static double baseline_w(const struct search *sh, double *doubt_w)
{
    double sum = 0;
    *doubt_w = 0;
    for (size_t d = 0; d < sh->s->n_domains; d++) {
        const struct nrg_domain *domain = &sh->s->domains[d];
        size_t channel = (size_t)(domain->channel - sh->frame->channels);
        if (!nrg_is_cpu_domain(domain))
            continue;
        sum += nrg_frame_baseline_rate(sh->frame, channel);
        *doubt_w += nrg_frame_baseline_doubt(sh->frame, channel);
    }
    return sum > 0 ? sum : NAN;
}

/* What idle power is at most: the least power of a cell, but for outliers. */
static double least_power_w(const struct search *sh)
{
    size_t n = 0;
    double least_w = 0, *w = nrg_calloc(sh->cells->n + 1, sizeof *w);
    for (size_t k = 0; w && k < sh->cells->n; k++) {
        double dt = nrg_cell_s(sh->cells, k);
        if (dt >= MIN_TOLD_S)
            w[n++] = sh->cells->at[k].cpu_j / dt;
    }
    if (n) {
        nrg_sort(w, n);
        least_w = fmax(0, w[(size_t)((double)n * LEAST_SHARE)]);
    }
    free(w);
    return least_w;
}

static double regressed_idle_w(const struct search *sh, double *doubt_w)
{
    struct nrg_idle_fit fit;
    nrg_idle_init(&fit);
    for (size_t k = 0; k < sh->cells->n; k++) {
        double dt = nrg_cell_s(sh->cells, k);
        if (dt >= MIN_TOLD_S)
            nrg_idle_add(&fit, sh->cells->at[k].busy_s / dt, sh->cells->at[k].cpu_j / dt);
    }
    *doubt_w = 2 * nrg_idle_error(&fit);
    return nrg_idle_solve(&fit);
}

/* How much of the machine was busy during the baseline; 0 where that is not known, or little. */
static double baseline_busy(const struct search *sh)
{
    int64_t cpus = 0;
    double busy_cpus =
        nrg_frame_baseline_rate(sh->frame, nrg_frame_find(sh->frame, "cpu.busy", NRG_SECONDS));
    nrg_recording_integer(sh->frame->recording, "cpus", &cpus);
    return cpus > 0 && busy_cpus > BASELINE_BUSY * (double)cpus ? busy_cpus / (double)cpus : 0;
}

/*
 * Idle power by the baseline, or by how power follows the load, and which it was; how far it may be
 * off. A baseline that was taken on a busy machine charges the others' work to idle: then idle may
 * be anything below it.
 */
static double measured_idle_w(struct search *sh)
{
    double baseline_doubt_w, line_doubt_w = 0;
    double idle_w = baseline_w(sh, &baseline_doubt_w), busy = isnan(idle_w) ? 0 : baseline_busy(sh);
    bool wants_line = sh->has_busy && (isnan(idle_w) || busy > 0);
    double line_w = wants_line ? regressed_idle_w(sh, &line_doubt_w) : NAN;
    bool lower = line_w < idle_w, by_line = isnan(idle_w) || lower;
    if (busy > 0)
        nrg_summary_missing(sh->s, "idle power",
                            lower ? "the machine was %.0f %% busy during the baseline, so idle is "
                                    "taken from how power follows the load"
                                  : "the machine was %.0f %% busy during the baseline: idle is "
                                    "overstated and the command's energy understated",
                            100 * busy);
    sh->s->idle_method = !by_line ? "baseline" : isnan(line_w) ? NULL : "regression";
    if (!sh->s->idle_method) {
        sh->s->idle_found.more_w = least_power_w(sh);
        return NAN;
    }
    sh->s->idle_found.more_w = by_line ? line_doubt_w : baseline_doubt_w;
    sh->s->idle_found.less_w = !by_line && busy > 0 ? idle_w : sh->s->idle_found.more_w;
    return by_line ? line_w : idle_w;
}

/* How idle power that is recorded as energy was found: an import names that as its source
 * (import/aipm.c). */
static const char *recorded_method(const struct nrg_channel *c)
{
    static const char *const methods[] = {"baseline", "regression"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (!strcmp(c->source, methods[i]))
            return methods[i];
    return "estimate";
}

static bool cpus_are_estimated(const struct search *sh)
{
    for (size_t d = 0; d < sh->s->n_domains; d++) {
        const struct nrg_domain *domain = &sh->s->domains[d];
        if (nrg_is_cpu_domain(domain) && domain->channel->channel.provenance == NRG_ESTIMATED)
            return true;
    }
    return false;
}

/* An import's band, or the drift of what it was found by. */
static void set_recorded(struct search *sh, const struct nrg_channel *c, double power_w,
                         bool estimate)
{
    bool banded = c->error_low > 0 || c->error_high > 0;
    struct nrg_idle_power *found = &sh->s->idle_found;
    found->power_w = power_w;
    if (!estimate) {
        found->less_w = (banded ? c->error_low : NRG_IDLE_DRIFT) * power_w;
        found->more_w = (banded ? c->error_high : NRG_IDLE_DRIFT) * power_w;
    }
}

/*
 * Idle energy that the recording has; NULL. An estimate's own has its band, and goes with estimated
 * processors only: there no baseline knows better, as it would be the same model, with what else
 * ran meanwhile.
 */
static const struct nrg_timeline *recorded_idle(struct search *sh)
{
    size_t channel = nrg_frame_find(sh->frame, NRG_IDLE_CHANNEL, NRG_ENERGY);
    const struct nrg_timeline *tl = nrg_frame_timeline(sh->frame, channel);
    const char *method = tl ? recorded_method(&sh->frame->channels[channel].channel) : NULL;
    bool estimate = tl && !strcmp(method, "estimate");
    if (!tl || (estimate && !cpus_are_estimated(sh)))
        return NULL;
    double energy_j = nrg_timeline_between(tl, sh->s->begin_ns, sh->s->end_ns, NULL);
    sh->s->idle_method = method;
    set_recorded(sh, &sh->frame->channels[channel].channel, energy_j / sh->s->duration_s, estimate);
    return tl;
}

/* Idle energy of each cell, never more than the cell has. */
void nrg_idle_fill(struct nrg_summary *s, struct nrg_frame *frame, struct nrg_share_cells *cells,
                   bool has_busy)
{
    struct search search = {s, frame, cells, has_busy}, *sh = &search;
    s->idle_found = (struct nrg_idle_power){.power_w = NAN};
    const struct nrg_timeline *recorded = recorded_idle(sh);
    if (!recorded)
        s->idle_found.power_w = measured_idle_w(sh);
    for (size_t k = 0; s->idle_method && k < cells->n; k++) {
        double j = recorded ? nrg_cell_sum(sh->cells, recorded, k)
                            : s->idle_found.power_w * nrg_cell_s(sh->cells, k);
        sh->cells->at[k].idle_j = fmin(j, sh->cells->at[k].cpu_j);
    }
}

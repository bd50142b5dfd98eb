/*
 * Where a run's idle power comes from: the recording's own (an estimate, an import), the
 * baseline's, or, where there is none, or the machine was busy meanwhile, and utilisation varied
 * enough, the intercept of power over busy CPUs. Else it is not known, and at most the least power
 * that was seen. A baseline that drew more than the run did for a while is not believed: idle.h has
 * the rule, which `nrg attribute` follows, too.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "energy/cursor.h"
#include "energy/idle.h"
#include "energy/internal.h"
#include "energy/share_cells.h"

#define MIN_TOLD_S    0.05 /* power of a shorter cell says little */
#define MOST_CELLS    4096
#define TOLD_UPDATES  10   /* of a counter that updates slowly: fewer may show nothing */
#define BASELINE_BUSY 0.05 /* of all CPUs: more than a quiet machine's own housekeeping */

struct search {
    struct nrg_summary *s;
    struct nrg_frame *frame;
    struct nrg_share_cells *cells;
    bool has_busy;
};

/* What the baselines say. */
struct baseline {
    double w; /* mean power; NAN: there are none, or they were not idle */
    double most_w, error_w, doubt_w;
};

static struct baseline read_baseline(struct nrg_frame *frame, const struct nrg_domain *domain)
{
    size_t channel = (size_t)(domain->channel - frame->channels);
    return (struct baseline){
        nrg_frame_baseline_rate(frame, channel), nrg_frame_baseline_most(frame, channel),
        nrg_frame_baseline_error(frame, channel), nrg_frame_baseline_doubt(frame, channel)};
}

/* Of the processors' domains together. */
static struct baseline cpu_baseline(const struct search *sh)
{
    struct baseline sum = {0};
    for (size_t d = 0; d < sh->s->n_domains; d++) {
        if (!nrg_is_cpu_domain(&sh->s->domains[d]))
            continue;
        struct baseline one = read_baseline(sh->frame, &sh->s->domains[d]);
        sum.w += one.w;
        sum.most_w += one.most_w;
        sum.error_w += one.error_w;
        sum.doubt_w += one.doubt_w;
    }
    sum.w = sum.w > 0 ? sum.w : NAN;
    return sum;
}

/* Drops a baseline that the run does not allow, and says so. */
static void doubt_baseline(struct nrg_summary *s, const char *what, double least_w,
                           struct baseline *b)
{
    if (isnan(b->w) || !nrg_idle_was_busy(b->most_w, least_w, b->error_w))
        return;
    nrg_summary_missing(s, what,
                        "the baseline drew %.3g W, but the run for a while no more than %.3g W: "
                        "something else was busy then, so that is not idle power",
                        b->most_w, least_w);
    b->w = NAN;
}

/* How long a stretch must be for a domain's power to be told, of cells that are so long. */
static int64_t told_ns(const struct nrg_domain *domain, int64_t cell_ns)
{
    const struct nrg_channel *c = &domain->channel->channel;
    bool slow = c->kind == NRG_COUNTER && c->update_ns > cell_ns / 2;
    return slow ? TOLD_UPDATES * c->update_ns : cell_ns;
}

/* What idle power is at most: the least power of a cell, or of some together, but for outliers.
 * NAN: not known. */
static double least_power_w(const struct search *sh)
{
    size_t n = 0, together = 1;
    double j = 0, s = 0, *w = nrg_calloc(sh->cells->n + 1, sizeof *w);
    for (size_t d = 0; d < sh->s->n_domains; d++) {
        const struct nrg_domain *domain = &sh->s->domains[d];
        size_t cells = (size_t)(told_ns(domain, sh->cells->length_ns) / sh->cells->length_ns);
        together = nrg_is_cpu_domain(domain) && cells > together ? cells : together;
    }
    for (size_t k = 0; w && k < sh->cells->n; k++) {
        j += sh->cells->at[k].gap ? NAN : sh->cells->at[k].cpu_j;
        s += nrg_cell_s(sh->cells, k);
        if ((k + 1) % together && k + 1 < sh->cells->n)
            continue;
        if (s >= MIN_TOLD_S && !isnan(j))
            w[n++] = j / s;
        j = s = 0;
    }
    if (n)
        nrg_sort(w, n);
    double least_w = w ? nrg_idle_least_w(w, n) : NAN;
    free(w);
    return least_w;
}

/* The longest that one of the processors' gauges may average over. */
static double longest_s(const struct search *sh)
{
    double longest = 0;
    for (size_t d = 0; d < sh->s->n_domains; d++) {
        const struct nrg_recorded_channel *channel = sh->s->domains[d].channel;
        const struct nrg_timeline *tl =
            nrg_frame_timeline(sh->frame, (size_t)(channel - sh->frame->channels));
        if (!nrg_is_cpu_domain(&sh->s->domains[d]) || !tl || !tl->is_gauge)
            continue;
        double width = (double)nrg_timeline_width_ns(tl, channel) * 1e-9;
        double said = fmax((double)channel->channel.window_ns, (double)channel->channel.lag_ns);
        longest = fmax(longest, nrg_idle_memory_s(width, said * 1e-9));
    }
    return longest;
}

/* The same of a timeline alone. */
static double least_between_w(const struct nrg_timeline *tl, const struct nrg_summary *s,
                              int64_t length_ns)
{
    size_t n = 0;
    double *w = nrg_calloc(MOST_CELLS, sizeof *w);
    int64_t least_ns = (s->end_ns - s->begin_ns) / MOST_CELLS + 1;
    length_ns = length_ns > least_ns ? length_ns : least_ns;
    for (int64_t at = s->begin_ns, end; w && at < s->end_ns; at = end) {
        int64_t covered_ns;
        end = s->end_ns - at < 2 * length_ns ? s->end_ns : at + length_ns;
        double j = nrg_timeline_between(tl, at, end, &covered_ns);
        if ((double)covered_ns * 1e-9 >= MIN_TOLD_S)
            w[n++] = j * 1e9 / (double)covered_ns;
    }
    if (n)
        nrg_sort(w, n);
    double least_w = w ? nrg_idle_least_w(w, n) : NAN;
    free(w);
    return least_w;
}

double nrg_domain_idle_w(struct nrg_summary *s, struct nrg_frame *frame,
                         const struct nrg_domain *domain, double *doubt_w)
{
    const char *name = domain->channel->channel.name;
    struct baseline b = read_baseline(frame, domain);
    const struct nrg_timeline *tl =
        nrg_frame_timeline(frame, (size_t)(domain->channel - frame->channels));
    double least_w = tl ? least_between_w(tl, s, told_ns(domain, NRG_LEAST_CELL_NS)) : NAN;
    doubt_baseline(s, name, least_w, &b);
    *doubt_w = b.doubt_w;
    return b.w;
}

static double regressed_idle_w(const struct search *sh, double *doubt_w)
{
    struct nrg_idle_fit fit;
    nrg_idle_init(&fit, longest_s(sh));
    for (size_t k = 0; k < sh->cells->n; k++)
        nrg_idle_add(&fit, nrg_cell_s(sh->cells, k), sh->cells->at[k].busy_s,
                     sh->cells->at[k].gap ? NAN : sh->cells->at[k].cpu_j);
    *doubt_w = 2 * nrg_idle_error(&fit, nrg_idle_always(&fit));
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
    double line_doubt_w = 0, least_w = least_power_w(sh);
    struct baseline b = cpu_baseline(sh);
    doubt_baseline(sh->s, "idle power", least_w, &b);
    double busy = isnan(b.w) ? 0 : baseline_busy(sh);
    bool wants_line = sh->has_busy && (isnan(b.w) || busy > 0);
    double line_w = wants_line ? regressed_idle_w(sh, &line_doubt_w) : NAN;
    bool lower = line_w < b.w, by_line = isnan(b.w) || lower;
    if (busy > 0)
        nrg_summary_missing(sh->s, "idle power",
                            lower ? "the machine was %.0f %% busy during the baseline, so idle is "
                                    "taken from how power follows the load"
                                  : "the machine was %.0f %% busy during the baseline: idle is "
                                    "overstated and the command's energy understated",
                            100 * busy);
    sh->s->idle_method = !by_line ? "baseline" : isnan(line_w) ? NULL : "regression";
    if (!sh->s->idle_method) {
        sh->s->idle_found.more_w = isnan(least_w) ? 0 : fmax(0, least_w);
        return NAN;
    }
    sh->s->idle_found.more_w = by_line ? line_doubt_w : b.doubt_w;
    sh->s->idle_found.less_w = !by_line && busy > 0 ? b.w : sh->s->idle_found.more_w;
    return by_line ? line_w : b.w;
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

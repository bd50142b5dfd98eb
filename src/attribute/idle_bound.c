/*
 * What idle power can't be, in one place: less than nothing, or more than the machine drew. Whoever
 * finds idle power of a cell hands it over here, and whoever adds up a domain has its rest settled
 * here. And what a baseline says, if it is to be believed: not where it is above what the run
 * itself needed for a while, unless the watts of those that were busy then can be told: by a
 * regression, or where the run drew more than they did.
 */
#include <math.h>
#include <stdlib.h>

#include "attribute/internal.h"
#include "base/mem.h"
#include "base/stats.h"
#include "energy/idle.h"
#include "energy/quantum.h"

#define AROUND            10   /* updates */
#define MOST_AROUND       1000 /* cells */
#define SAID_BUSY         0.1  /* CPUs of others in a baseline */
#define BASELINE_READINGS 6    /* of a gauge, that are not the same */
#define STRETCHES         4    /* of a run, in each of which idle power may show */
#define LEAST_CELLS       20   /* of one */
#define NOISE_WIDE        4    /* deviations, from the least to the most that noise makes */
#define RESTING           64   /* of its cells, one: a few are enough, as they must agree */

/* A counter may show nothing in one cell and that of two updates in the next, or at the begin of a
 * run what was before: so with the cells around. */
static double power_around(const struct nrg_engine *e, const struct nrg_part *part,
                           const double *power_w, size_t k)
{
    const struct nrg_cells *c = &e->cells;
    double update_s = part->tl->is_gauge ? 0 : (double)part->channel->channel.update_ns * 1e-9;
    size_t around = (size_t)ceil(fmin(AROUND * update_s / nrg_cells_length_s(c, k), MOST_AROUND));
    size_t from = k > around ? k - around : 0, to = k + around < c->n ? k + around : c->n - 1;
    double sum_j = 0, sum_s = 0;
    if (update_s < nrg_cells_length_s(c, k) / 2)
        return power_w[k];
    for (size_t i = from; i <= to; i++) {
        bool known = c->outside[i] == c->outside[k] && !isnan(power_w[i]);
        sum_j += known ? power_w[i] * nrg_cells_length_s(c, i) : 0;
        sum_s += known ? nrg_cells_length_s(c, i) : 0;
    }
    return sum_s > 0 ? sum_j / sum_s : power_w[k];
}

void nrg_part_note_power(const struct nrg_engine *e, struct nrg_part *part, const double *power_w)
{
    for (size_t k = 0; k < e->cells.n; k++)
        part->most_w[k] = isnan(power_w[k]) ? 0 : fmax(0, power_around(e, part, power_w, k));
}

void nrg_part_set_idle(struct nrg_part *part, size_t k, double w)
{
    part->idle_w[k] = isinf(w) ? NAN : fmin(fmax(w, 0), part->most_w[k]);
}

/* A counter's two ends lie anywhere in its update; readings of a gauge show by how much they differ
 * what their mean is off by, but for their rounding. */
static double baseline_error_w(struct nrg_engine *e, const struct nrg_part *part)
{
    bool after;
    size_t channel = (size_t)(part->channel - e->frame.channels);
    const struct nrg_channel *c = &part->channel->channel;
    double length_s = nrg_frame_baseline_s(&e->frame, &after);
    double memory_s = fmax((double)part->width_ns, (double)c->lag_ns * 2) * 1e-9;
    if (!part->tl->is_gauge || length_s < BASELINE_READINGS * memory_s)
        return nrg_frame_baseline_error(&e->frame, channel);
    return hypot(nrg_frame_baseline_scatter(&e->frame, channel) * sqrt(memory_s / length_s),
                 nrg_gauge_quantum(part->tl, c->resolution) / sqrt(12));
}

/* What the ends of a counter's updates make of a cell's power. */
static double cell_noise_w(const struct nrg_part *part, double length_s, double power_w)
{
    double update_s = part->tl->is_gauge ? 0 : (double)part->channel->channel.update_ns * 1e-9;
    return power_w * update_s / length_s / sqrt(6);
}

/* How far the power of the cells from one to another that drew least, others left aside, is from
 * idle power: the mean of those that noise alone may tell apart. `sorted` is room for them.
 * INFINITY: they are too few. */
static double least_off_w(const struct nrg_engine *e, const struct nrg_part *part, size_t from,
                          size_t to, double *sorted)
{
    double length_s = 0, sum_w = 0;
    size_t n = 0, alike = 0;
    for (size_t k = from; k < to; k++) {
        double own_s = nrg_cells_length_s(&e->cells, k);
        if (e->cells.outside[k] || own_s < NRG_LEAST_CELL_S)
            continue;
        sorted[n++] = part->most_w[k] - (part->level ? (double)part->level[k].w : 0);
        length_s += own_s;
    }
    if (n < LEAST_CELLS)
        return INFINITY;
    nrg_sort(sorted, n);
    double least_w = sorted[n / RESTING];
    double most_w = least_w + NOISE_WIDE * cell_noise_w(part, length_s / (double)n, least_w);
    while (alike < n && sorted[alike] <= most_w)
        sum_w += sorted[alike++];
    return fabs(sum_w / (double)alike - part->out->idle_w);
}

double nrg_part_drift_w(const struct nrg_engine *e, const struct nrg_part *part)
{
    size_t n = e->cells.n, stretches = n / LEAST_CELLS < STRETCHES ? n / LEAST_CELLS : STRETCHES;
    double drift_w = NRG_IDLE_DRIFT * part->out->idle_w, off_w = stretches ? 0 : drift_w;
    double *sorted = nrg_calloc(n + 1, sizeof *sorted);
    for (size_t i = 0; sorted && i < stretches; i++)
        off_w =
            fmax(off_w, least_off_w(e, part, n * i / stretches, n * (i + 1) / stretches, sorted));
    off_w = sorted ? off_w : drift_w;
    free(sorted);
    return fmin(off_w, drift_w);
}

bool nrg_part_baseline(struct nrg_engine *e, struct nrg_part *part, double least_w, double *idle_w)
{
    const char *name = part->channel->channel.name;
    size_t channel = nrg_frame_find(&e->frame, "cpu.busy", NRG_SECONDS);
    double busy = nrg_frame_baseline_rate_at(&e->frame, channel, channel);
    bool others = !part->pool && busy > SAID_BUSY && nrg_gpu_number(name) < 0;
    size_t own = (size_t)(part->channel - e->frame.channels);
    double most_w = nrg_frame_baseline_most(&e->frame, own);
    *idle_w = nrg_frame_baseline_rate(&e->frame, own);
    if (isnan(*idle_w))
        return false;
    part->idle_error_w = baseline_error_w(e, part);
    bool told = others && (part->method == NRG_METHOD_REGRESS ||
                           *idle_w * e->out->duration_s < part->domain->energy_j);
    if (!told && nrg_idle_was_busy(most_w, least_w, part->idle_error_w)) {
        part->idle_error_w = 0;
        nrg_attribution_note(e->out, name,
                             "it drew %.3g W in the baseline, but for a while of the run no more "
                             "than %.3g W: something else was busy then, so that is not idle power",
                             most_w, least_w);
        return false;
    }
    if (others)
        nrg_attribution_note(e->out, name,
                             "others were busy in the baseline (%.2g CPUs): what they drew is "
                             "taken off it, as far as their watts are known",
                             busy);
    return true;
}

void nrg_domain_settle(struct nrg_attribution_domain *d, double rows_j)
{
    double not_rows_j = d->idle_j + d->other_processes_j;
    d->unattributed_j = d->total_j - rows_j - not_rows_j;
    if (!(d->unattributed_j < 0) || !(not_rows_j > 0))
        return;
    /* Both are found, and the total is measured. */
    double kept = fmax(0, d->total_j - rows_j) / not_rows_j;
    d->idle_j *= kept;
    d->other_processes_j *= kept;
    d->unattributed_j = fmin(0, d->total_j - rows_j);
}

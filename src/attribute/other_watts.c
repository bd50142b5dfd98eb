/*
 * What a CPU second of other processes draws, where energy is divided by CPU time. When they start
 * or stop, power changes, and by how much shows their watts: the median over all such moments,
 * because the workload changes its own power at some of them. How far the moments differ is what
 * is not known of it. Where there are too few, or they say too little, others are taken to draw
 * what the workload does at the time, and it may be half or twice that.
 *
 * What was busy during a baseline is in its power, at the same watts: that is taken off idle power,
 * and others have all that they used. Where they go on as they did, their watts then do not matter.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/internal.h"
#include "base/mem.h"
#include "base/stats.h"

#define LEAST_CHANGE  0.4 /* CPUs */
#define OWN_CHANGE    0.2 /* of it, that the workload may change by at the same time */
#define LEAST_CHANGES 6
#define MOST_APART    30     /* cells */
#define OF_MEDIAN     1.25   /* error of a median, in that of a mean */
#define OF_DEVIATION  1.4826 /* of a normal figure, in its median */
#define WIDE          2.5    /* errors, for few changes */
#define LEAST_ERROR   0.1    /* of the watts, as in energy/program.c */
#define MOST_ERROR    0.6    /* of what the workload draws: else it says too little */
#define MOST_OTHERS   0.98   /* of a cell in which the workload had CPU time */
#define LEAST_BEYOND  0.1    /* of all CPU time: what else is there to tell watts from */
#define REMEMBERED_S  1.0    /* of others' CPU time in the baseline */
#define LESS          0.5    /* times the workload's watts */
#define MORE          2.0

struct changes {
    double *w; /* per CPU second */
    size_t n;
};

static double cpus(const struct nrg_cells *c, const double *cpu_s, size_t k)
{
    return cpu_s[k] / nrg_cells_length_s(c, k);
}

/* One figure for each run of cells between which others change: where they do so most. */
static void find_changes(const struct nrg_engine *e, const double *active_w, size_t apart,
                         struct changes *found)
{
    const struct nrg_cells *c = &e->cells;
    double most = 0;
    for (size_t k = apart; k < c->n; k++) {
        double change = cpus(c, c->other_s, k) - cpus(c, c->other_s, k - apart);
        double busy = cpus(c, c->busy_s, k) - cpus(c, c->busy_s, k - apart);
        double power_w = active_w[k] - active_w[k - apart];
        bool usable = !c->outside[k] && !c->outside[k - apart] && !isnan(power_w) &&
                      fabs(change) > LEAST_CHANGE &&
                      fabs(busy - change) < OWN_CHANGE * fabs(change);
        if (!usable)
            most = 0;
        else if (fabs(change) > most) {
            found->n += most == 0;
            found->w[found->n - 1] = power_w / change;
            most = fabs(change);
        }
    }
}

/* Watts per CPU second with their error; an error of INFINITY: not known. */
struct watts {
    double w, half_w;
};

static struct watts fit_watts(struct changes *found)
{
    struct watts watts = {0, INFINITY};
    if (found->n < LEAST_CHANGES)
        return watts;
    watts.w = fmax(0, nrg_median(found->w, found->n));
    for (size_t i = 0; i < found->n; i++)
        found->w[i] = fabs(found->w[i] - watts.w);
    double deviation_w = OF_DEVIATION * nrg_median(found->w, found->n);
    watts.half_w = WIDE * OF_MEDIAN * deviation_w / sqrt((double)found->n);
    watts.half_w = fmax(watts.half_w, LEAST_ERROR * watts.w);
    return watts;
}

/* Power above idle per cell; NAN where it is not known. */
static double fill_active(const struct nrg_engine *e, const struct nrg_part *part, double *active_w)
{
    const struct nrg_cells *c = &e->cells;
    struct nrg_energy_cursor cursor;
    double sum_j = 0;
    nrg_energy_cursor_init(&cursor, part->tl, c->begin_ns[0], part->lag_s);
    struct nrg_energy_at last = {0}, at;
    for (size_t k = 0; k < c->n; k++, last = at) {
        at = nrg_energy_cursor_at(&cursor, c->begin_ns[k + 1]);
        double known_s = (at.covered_ns - last.covered_ns) * 1e-9;
        active_w[k] = known_s > 0 ? (at.energy_j - last.energy_j) / known_s - part->idle_w[k] : NAN;
        sum_j += c->outside[k] || isnan(active_w[k]) ? 0 : active_w[k] * nrg_cells_length_s(c, k);
    }
    return sum_j;
}

/* Of measured domains of the processors alone. */
static bool is_shared(const struct nrg_engine *e, const struct nrg_part *part)
{
    return part->method == NRG_METHOD_INTEGRATE && e->cells.other_s && !part->pool &&
           part->channel->channel.provenance != NRG_ESTIMATED &&
           nrg_gpu_number(part->channel->channel.name) < 0;
}

static double baseline_busy(struct nrg_engine *e, const struct nrg_part *part)
{
    size_t channel = nrg_frame_find(&e->frame, "cpu.busy", NRG_SECONDS);
    double busy = nrg_frame_baseline_rate_at(&e->frame, channel, channel);
    return !strcmp(part->out->idle_source, "baseline") && busy > 0 ? busy : 0;
}

/* Watts of a CPU second of anybody. `busy`: CPUs whose watts are in idle power. */
static double mean_watts(const struct nrg_engine *e, double active_j, double busy)
{
    const struct nrg_cells *c = &e->cells;
    double all_s = 0, beyond_s = 0;
    for (size_t k = 0; k < c->n; k++) {
        all_s += c->outside[k] ? 0 : c->busy_s[k];
        beyond_s += c->outside[k] ? 0 : c->busy_s[k] - busy * nrg_cells_length_s(c, k);
    }
    return active_j > 0 && beyond_s > LEAST_BEYOND * all_s ? active_j / beyond_s : 0;
}

/*
 * Others' CPU seconds that are as in the baseline, cell by cell. They jump by ticks: what one cell
 * lacks is made up for in the next ones. `saved_s` is what is still to be had.
 */
static double as_before_s(const struct nrg_cells *c, size_t k, double busy, double *saved_s)
{
    *saved_s = fmin(*saved_s, busy * REMEMBERED_S) + busy * nrg_cells_length_s(c, k);
    double s = fmin(fmax(c->other_s[k], 0), *saved_s);
    *saved_s -= s;
    return s;
}

/* Others' joules where their watts are not known: at the mean of all as far as they go on as in
 * the baseline, and beyond that in the proportion of CPU time. */
static double share_j(const struct nrg_cells *c, size_t k, double all_j, double before_s, double w)
{
    double share = (double)c->other[k], other_s = c->other_s[k];
    double mine_s = share > 0 ? other_s * (1 - share) / share : 0, beyond_s = other_s - before_s;
    double before_j = fmin(w * before_s, MOST_OTHERS * all_j);
    double beyond = beyond_s > 0 ? beyond_s / (beyond_s + mine_s) : 0;
    return share > 0 ? before_j + (all_j - before_j) * beyond : 0;
}

static void take_watts(struct nrg_engine *e, struct nrg_part *part, const double *active_w,
                       struct watts watts, double busy)
{
    const struct nrg_cells *c = &e->cells;
    bool fitted = isfinite(watts.half_w);
    double back_w = fmin(watts.w * busy, part->out->idle_w), saved_s = 0;
    part->others_less = fitted ? fmin(1, watts.half_w / watts.w) : 1 - LESS;
    part->others_more = fitted ? watts.half_w / watts.w : MORE - 1;
    for (size_t k = 0; k < c->n; k++) {
        double length_s = nrg_cells_length_s(c, k), all_j = (active_w[k] + back_w) * length_s;
        double before_s = as_before_s(c, k, busy, &saved_s);
        if (back_w > 0 && !isnan(part->idle_w[k]))
            part->idle_w[k] = fmax(0, part->idle_w[k] - back_w);
        part->own_other[k] = 0;
        if (!(all_j > 0))
            continue;
        double other_j = fitted ? fmin(watts.w * c->other_s[k], MOST_OTHERS * all_j)
                                : share_j(c, k, all_j, before_s, watts.w);
        double mine_j = all_j - other_j;
        part->own_other[k] = (float)(other_j / all_j);
        if (mine_j > 0)
            part->other_doubt[k] = (float)((other_j - back_w * length_s) / mine_j);
    }
    if (back_w > 0)
        part->out->idle_w = fmax(0, part->out->idle_w - back_w);
}

static int find_watts(struct nrg_engine *e, struct nrg_part *part, double *active_w,
                      struct changes *found)
{
    const struct nrg_cells *c = &e->cells;
    double busy = baseline_busy(e, part);
    double mean_w = mean_watts(e, fill_active(e, part, active_w), busy);
    double cell_ns = (double)(c->begin_ns[c->n] - c->begin_ns[0]) / (double)c->n;
    double apart = 2 + ceil(2 * ((double)part->width_ns + part->lag_s * 1e9) / cell_ns);
    if (apart <= MOST_APART)
        find_changes(e, active_w, (size_t)apart, found);
    struct watts watts = fit_watts(found);
    if (!(watts.w > 0) || !(watts.half_w < MOST_ERROR * mean_w))
        watts = (struct watts){mean_w, INFINITY};
    part->own_other = nrg_arena_array(&e->memory, c->n + 1, sizeof *part->own_other);
    part->other_doubt = nrg_arena_array(&e->memory, c->n + 1, sizeof *part->other_doubt);
    if (e->memory.failed)
        return -ENOMEM;
    memcpy(part->own_other, part->other, c->n * sizeof *part->own_other);
    part->other = part->own_other;
    take_watts(e, part, active_w, watts, busy);
    return 0;
}

int nrg_other_watts(struct nrg_engine *e)
{
    double *active_w = nrg_calloc(e->cells.n + 1, sizeof *active_w);
    struct changes found = {.w = nrg_calloc(e->cells.n + 1, sizeof *found.w)};
    int rc = active_w && found.w ? 0 : -ENOMEM;
    for (size_t p = 0; !rc && p < e->n_parts; p++)
        if (is_shared(e, &e->parts[p])) {
            found.n = 0;
            rc = find_watts(e, &e->parts[p], active_w, &found);
        }
    free(active_w);
    free(found.w);
    return rc;
}

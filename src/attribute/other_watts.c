/*
 * What a CPU second of other processes draws, where energy is divided by CPU time. When they start
 * or stop, power changes, and by how much shows their watts: the median over all such moments,
 * because the workload changes its own power at some of them. How far the moments differ is what
 * is not known of it. Where there are too few, or they say too little, others are taken to draw
 * what the workload does at the time, and it may be half or twice that.
 *
 * What was busy during a baseline is in its power, at the same watts: that is taken off idle power,
 * and others have all that they used. Where they go on as they did, their watts then do not matter.
 * Others whose watts are known, or are as in the baseline, draw them all through a cell: as a part
 * of its energy, a span of many watts that ends in a cell would pay for the one of few that begins.
 * When in the cell they ran is not known, and counts at the edges of spans (distribute.c).
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
#define LEAST_ERROR   0.04   /* of the watts */
#define MOST_ERROR    0.6    /* of what the workload draws: else it says too little */
#define MOST_OTHERS   0.98   /* of a cell in which the workload had CPU time */
#define LEAST_BEYOND  0.1    /* of all CPU time: what else is there to tell watts from */
#define LEAST_BUSY    0.02   /* CPUs: fewer are the ticks' rounding */
#define LEAST_TICK_S  4e-3   /* of kernels at 250 Hz, which most are */
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
static void find_changes(const struct nrg_engine *e, const double *power_w, size_t apart,
                         struct changes *found)
{
    const struct nrg_cells *c = &e->cells;
    double most = 0;
    for (size_t k = apart; k < c->n; k++) {
        double change = cpus(c, c->other_s, k) - cpus(c, c->other_s, k - apart);
        double busy = cpus(c, c->busy_s, k) - cpus(c, c->busy_s, k - apart);
        double more_w = power_w[k] - power_w[k - apart];
        bool usable = !c->outside[k] && !c->outside[k - apart] && !isnan(more_w) &&
                      fabs(change) > LEAST_CHANGE &&
                      fabs(busy - change) < OWN_CHANGE * fabs(change);
        if (!usable)
            most = 0;
        else if (fabs(change) > most) {
            found->n += most == 0;
            found->w[found->n - 1] = more_w / change;
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

/* Of measured domains of the processors alone. */
static bool is_shared(const struct nrg_engine *e, const struct nrg_part *part)
{
    return part->method == NRG_METHOD_INTEGRATE && e->cells.other_s && !part->pool &&
           part->channel->channel.provenance != NRG_ESTIMATED &&
           nrg_gpu_number(part->channel->channel.name) < 0;
}

/* CPUs that were busy during the baseline, and power meanwhile: from one reading of the busy time
 * to another, both. */
struct before {
    double busy, power_w;
};

static struct before look_before(struct nrg_engine *e, const struct nrg_part *part)
{
    size_t channel = nrg_frame_find(&e->frame, "cpu.busy", NRG_SECONDS);
    size_t power = (size_t)(part->channel - e->frame.channels);
    struct before before = {nrg_frame_baseline_rate_at(&e->frame, channel, channel),
                            nrg_frame_baseline_rate_at(&e->frame, power, channel)};
    bool known = !strcmp(part->out->idle_source, "baseline") && before.busy > 0;
    return known && before.power_w > 0 ? before : (struct before){0};
}

double nrg_busy_tick_s(const struct nrg_engine *e)
{
    size_t channel = nrg_frame_find(&e->frame, "cpu.busy", NRG_SECONDS);
    if (channel == e->frame.n)
        return LEAST_TICK_S;
    const struct nrg_channel *c = &e->frame.channels[channel].channel;
    return fmax(LEAST_TICK_S, fmax(c->resolution, (double)c->update_ns * 1e-9));
}

/* Idle power of a cell, with what others had in it, whether there was as much in the cell or not.
 */
static double idle_before_w(const struct nrg_engine *e, const struct nrg_part *part,
                            const struct before *before, size_t k)
{
    return before->busy > 0 ? before->power_w + nrg_part_idle_line_w(e, part, k) : part->idle_w[k];
}

/* Watts of a CPU second of anybody, beyond those that idle power has. */
static double mean_watts(const struct nrg_engine *e, const struct nrg_part *part,
                         const double *power_w, const struct before *before)
{
    const struct nrg_cells *c = &e->cells;
    double all_s = 0, beyond_s = 0, active_j = 0;
    for (size_t k = 0; k < c->n; k++) {
        double length_s = nrg_cells_length_s(c, k);
        double active_w = power_w[k] - idle_before_w(e, part, before, k);
        if (c->outside[k])
            continue;
        all_s += c->busy_s[k];
        beyond_s += c->busy_s[k] - before->busy * length_s;
        active_j += isnan(active_w) ? 0 : active_w * length_s;
    }
    return active_j > 0 && beyond_s > LEAST_BEYOND * all_s ? active_j / beyond_s : 0;
}

/*
 * What others used beyond their part of the baseline, which may be less than nothing. CPU times are
 * as of the last tick: what others have too much in one cell they lack in the next, so only what
 * does not come back within a tick is theirs.
 */
struct beyond {
    double sum_s; /* all, since the begin */
    double at_s;  /* that was counted */
    double tick_s;
};

static double beyond_s(struct beyond *b, const struct nrg_cells *c, size_t k, double busy)
{
    double last_s = b->at_s;
    b->sum_s += c->other_s[k] - busy * nrg_cells_length_s(c, k);
    b->at_s = fmin(fmax(b->at_s, b->sum_s - b->tick_s), b->sum_s + b->tick_s);
    return b->at_s - last_s;
}

/* Others' watts, as far as they are known, and what idle power has of them. */
struct drawn {
    double w, back_w, busy;
    bool fitted;
    double tick_s;
    double scatter_s; /* of their CPU time in a cell, beyond what ticks make */
};

double nrg_others_scatter_s(const struct nrg_cells *c, double tick_s)
{
    double n = 0, sum_s = 0, squares = 0;
    for (size_t k = 0; k < c->n; k++) {
        if (c->outside[k])
            continue;
        n++;
        sum_s += c->other_s[k];
        squares += c->other_s[k] * c->other_s[k];
    }
    double mean_s = n > 0 ? sum_s / n : 0;
    return n > 0 ? sqrt(fmax(0, squares / n - mean_s * mean_s - tick_s * tick_s / 6)) : 0;
}

/* What is not known of when they ran: nothing in a cell of which they had all, or nothing. */
static void fill_timing(const struct nrg_cells *c, size_t k, const struct drawn *d,
                        struct nrg_others_level *level)
{
    double length_s = nrg_cells_length_s(c, k), busy = fmax(c->other_s[k], 0) / length_s;
    double most_s = busy < 1 ? sqrt(busy * (1 - busy)) * length_s : length_s;
    level->unsteady_j = (float)(d->w * fmin(d->scatter_s, most_s));
    level->edge_j = (float)(d->w * fmin(fmin(d->tick_s, d->scatter_s), most_s) / sqrt(3));
}

/* Known watts are drawn at all times alike, and so are those of the baseline, up to twice as much
 * as it had, and of a trickle; what is beyond that goes in the proportion of CPU time. `all_j`:
 * above idle. */
static void fill_level(const struct nrg_cells *c, size_t k, const struct drawn *d, double more_s,
                       double all_j, struct nrg_part *part)
{
    double length_s = nrg_cells_length_s(c, k), share = (double)c->other[k];
    double before_s = d->busy * length_s, most_s = fmax(before_s, NRG_TRICKLE * length_s);
    double level_s = before_s + fmin(more_s, most_s);
    more_s = d->fitted ? 0 : fmax(more_s - most_s, 0);
    level_s = d->fitted ? c->other_s[k] : level_s;
    double their_j = d->w * fmax(level_s, 0), level_j = fmin(their_j, MOST_OTHERS * all_j);
    double mine_s = share > 0 ? c->other_s[k] * (1 - share) / share : 0;
    double beyond = more_s > 0 && share > 0 ? more_s / (more_s + mine_s) : 0;
    part->own_other[k] = (float)beyond;
    part->level[k] = (struct nrg_others_level){
        .w = (float)(level_j / length_s),
        .all_w = (float)(their_j / length_s),
        .doubt_w = (float)(level_j / length_s - d->back_w),
        .doubt_part = beyond < 1 ? (float)(beyond / (1 - beyond)) : 0,
    };
    fill_timing(c, k, d, &part->level[k]);
}

/* Idle power without others, but never more than the cell has. Returns what is above it. */
static double take_idle(struct nrg_part *part, size_t k, double power_w, double idle_w)
{
    if (isnan(part->idle_w[k]))
        return 0;
    nrg_part_set_idle(part, k, idle_w);
    return power_w - part->idle_w[k];
}

/* Others, beyond those of the baseline, had next to nothing in the mean of the run. */
static bool is_trickle(const struct nrg_engine *e, double busy)
{
    const struct nrg_cells *c = &e->cells;
    double more_s = 0;
    for (size_t k = 0; k < c->n; k++)
        more_s += c->outside[k] ? 0 : c->other_s[k] - busy * nrg_cells_length_s(c, k);
    return more_s < NRG_TRICKLE * e->out->duration_s;
}

static void take_watts(struct nrg_engine *e, struct nrg_part *part, const double *power_w,
                       struct watts watts, const struct before *before)
{
    const struct nrg_cells *c = &e->cells;
    struct drawn d = {.w = watts.w,
                      .back_w = fmin(watts.w * before->busy, before->power_w),
                      .busy = before->busy,
                      .fitted = isfinite(watts.half_w),
                      .tick_s = nrg_busy_tick_s(e)};
    struct beyond b = {.tick_s = d.busy > 0 ? d.tick_s : 0};
    d.scatter_s = nrg_others_scatter_s(c, d.tick_s);
    double off = watts.half_w > 0 ? watts.half_w / watts.w : 0;
    /* Who only wakes up for moments may find a CPU awake, or wake one. */
    part->others_less = d.fitted ? fmin(1, off) : is_trickle(e, d.busy) ? 1 : 1 - LESS;
    part->others_more = d.fitted ? off : MORE - 1;
    for (size_t k = 0; k < c->n; k++) {
        double idle_w = idle_before_w(e, part, before, k) - d.back_w;
        double all_j = take_idle(part, k, power_w[k], idle_w) * nrg_cells_length_s(c, k);
        double more_s = beyond_s(&b, c, k, d.busy);
        part->own_other[k] = 0;
        if (all_j > 0)
            fill_level(c, k, &d, more_s, all_j, part);
    }
    if (before->busy > 0)
        part->out->idle_w = before->power_w - d.back_w;
}

/* How busy others were in the baseline is known to a tick. */
static double busy_error_w(struct nrg_engine *e, double w, bool fitted)
{
    bool after;
    double length_s = nrg_frame_baseline_s(&e->frame, &after);
    return length_s > 0 ? (fitted ? 1 : MORE) * w * nrg_busy_tick_s(e) / length_s / sqrt(6) : 0;
}

/* By the changes that power shows, or as the workload's. */
static struct watts choose_watts(const struct nrg_engine *e, const struct nrg_part *part,
                                 const double *power_w, const struct before *before,
                                 struct changes *found)
{
    const struct nrg_cells *c = &e->cells;
    double mean_w = mean_watts(e, part, power_w, before);
    double cell_ns = (double)(c->begin_ns[c->n] - c->begin_ns[0]) / (double)c->n;
    double apart = 2 + ceil(2 * ((double)part->width_ns + part->lag_s * 1e9) / cell_ns);
    if (apart <= MOST_APART)
        find_changes(e, power_w, (size_t)apart, found);
    struct watts watts = fit_watts(found);
    bool told = watts.w > 0 && watts.half_w < MOST_ERROR * mean_w;
    return told ? watts : (struct watts){mean_w, INFINITY};
}

static int find_watts(struct nrg_engine *e, struct nrg_part *part, double *power_w,
                      struct changes *found)
{
    const struct nrg_cells *c = &e->cells;
    struct before before = {0};
    struct watts watts = {part->found_others_w, 0}; /* what is not known of them is idle power's */
    nrg_part_fill_power(e, part, power_w);
    if (!part->idle_found) {
        before = look_before(e, part);
        watts = choose_watts(e, part, power_w, &before, found);
    }
    part->own_other = nrg_arena_array(&e->memory, c->n + 1, sizeof *part->own_other);
    part->level = nrg_arena_array(&e->memory, c->n + 1, sizeof *part->level);
    if (e->memory.failed)
        return -ENOMEM;
    memcpy(part->own_other, part->other, c->n * sizeof *part->own_other);
    part->other = part->own_other;
    take_watts(e, part, power_w, watts, &before);
    if (before.busy > LEAST_BUSY) {
        part->baseline_busy = before.busy;
        part->idle_error_w =
            hypot(part->idle_error_w, busy_error_w(e, watts.w, isfinite(watts.half_w)));
    }
    return 0;
}

int nrg_other_watts(struct nrg_engine *e)
{
    double *power_w = nrg_calloc(e->cells.n + 1, sizeof *power_w);
    struct changes found = {.w = nrg_calloc(e->cells.n + 1, sizeof *found.w)};
    int rc = power_w && found.w ? 0 : -ENOMEM;
    for (size_t p = 0; !rc && p < e->n_parts; p++)
        if (is_shared(e, &e->parts[p])) {
            found.n = 0;
            rc = find_watts(e, &e->parts[p], power_w, &found);
        }
    free(power_w);
    free(found.w);
    return rc;
}

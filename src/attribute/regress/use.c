/*
 * Makes the regressions of the domains, and takes over their results.
 *
 * A class is a path of spans. Where there are more than MAX_CLASSES, the smallest share one: their
 * rows get its power and an interval that says how little that means. Energy of other processes
 * and of processes without spans is taken off the readings first, in the proportion of their CPU
 * time. Where idle power is known, time without any span is a class too, or its power would be
 * pressed into the others; where it is not known, that power is what a regression calls idle.
 */
#include "attribute/regress/fit.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/internal.h"
#include "attribute/regress/idle.h"
#include "attribute/regress/slicer.h"
#include "attribute/regress/split.h"
#include "base/mem.h"
#include "energy/quantum.h"

#define MAX_CLASSES    512
#define LEAST_RESOLVED 0.5 /* of the spans' time: else integration says as much */
#define LEAST_SEEN     0.1 /* the same for a sensor that looks part of the time */
#define EDGE_CELLS     100

/* Of a path, in all pools. */
static double self_ns(const struct nrg_survey *survey, size_t path)
{
    double sum = 0;
    for (size_t pool = 0; pool < survey->n_pools; pool++)
        sum += nrg_survey_at(survey, path, pool)->self_ns;
    return sum;
}

static int by_time(const void *a, const void *b, void *arg)
{
    double x = self_ns(arg, *(const uint32_t *)a), y = self_ns(arg, *(const uint32_t *)b);
    return x > y ? -1 : x < y;
}

/* class_of per path: the largest in order, then one for the rest, then one for no span (path 0). */
static int choose_classes(struct nrg_engine *e)
{
    size_t n = e->walk.paths.n, used = 0;
    uint32_t *order = nrg_arena_array(&e->memory, n + 1, sizeof *order);
    e->class_of = nrg_arena_array(&e->memory, n + 1, sizeof *e->class_of);
    if (e->memory.failed)
        return -ENOMEM;
    memset(e->class_of, 0xff, (n + 1) * sizeof *e->class_of);
    for (size_t i = 1; i < n; i++)
        if (self_ns(&e->survey, i) > 0)
            order[used++] = (uint32_t)i;
    if (used > MAX_CLASSES)
        qsort_r(order, used, sizeof *order, by_time, &e->survey);
    for (size_t i = 0; i < used; i++)
        e->class_of[order[i]] = (uint32_t)(i < MAX_CLASSES ? i : MAX_CLASSES);
    e->n_classes = (used < MAX_CLASSES ? used : MAX_CLASSES + (used > MAX_CLASSES)) + 4;
    e->class_of[0] = (uint32_t)e->n_classes - 4;
    e->before_class = e->n_classes - 3;
    e->untracked_class = e->n_classes - 2;
    e->other_class = e->n_classes - 1;
    e->rest_class = used > MAX_CLASSES ? MAX_CLASSES : SIZE_MAX;
    return 0;
}

static void falls_back(struct nrg_part *part, const char *why, ...)
    __attribute__((format(printf, 2, 3)));
static void falls_back(struct nrg_part *part, const char *why, ...)
{
    va_list ap;
    part->method = NRG_METHOD_INTEGRATE;
    va_start(ap, why);
    vsnprintf(part->out->why, sizeof part->out->why, why, ap);
    va_end(ap);
}

/* Part of the power at an instant that tracks of the pool may have used. */
static double mine_at(const struct nrg_engine *e, const struct nrg_part *part, size_t k)
{
    const struct nrg_cells *c = &e->cells;
    double tracked = 0;
    if (!part->pool && c->has_rates)
        return 1; /* others have classes of their own */
    for (size_t g = 0; g < c->n_groups; g++)
        if (c->group_pool[g] == part->pool)
            tracked += (double)c->share[k * c->n_groups + g];
    return (1 - (double)part->other[k]) * fmin(tracked, 1);
}

static bool needs_own_timeline(const struct nrg_engine *e, const struct nrg_part *part)
{
    for (size_t k = 0; k < e->cells.n; k++)
        if (!e->cells.outside[k] && mine_at(e, part, k) < 0.999)
            return true;
    return e->n_windows > 1 || !strcmp(part->out->idle_source, "estimate");
}

/* The readings without idle power (where it is known) and without what others used; NULL: no
 * memory. */
static const struct nrg_timeline *own_timeline(const struct nrg_engine *e,
                                               const struct nrg_part *part,
                                               struct nrg_arena *memory)
{
    const struct nrg_timeline *tl = part->tl;
    struct nrg_timeline *own = nrg_arena_alloc(memory, sizeof *own);
    if (!own)
        return NULL;
    *own = *tl; /* the same times */
    own->sum_j = nrg_arena_array(memory, tl->n, sizeof *own->sum_j);
    own->gap = nrg_arena_array(memory, tl->n, sizeof *own->gap);
    own->own_gauge = tl->is_gauge ? nrg_arena_array(memory, tl->n, sizeof *own->own_gauge) : NULL;
    if (memory->failed)
        return NULL;
    for (size_t i = 0; i < tl->n; i++) {
        size_t next = i + 1 < tl->n ? i + 1 : i;
        double s = (double)(nrg_point_ns(tl, next) - nrg_point_ns(tl, i)) * 1e-9;
        size_t k = nrg_cells_find(
            &e->cells, nrg_point_ns(tl, i) + (nrg_point_ns(tl, next) - nrg_point_ns(tl, i)) / 2);
        double idle_w = part->idle_known ? part->idle_w[k] : 0, mine = mine_at(e, part, k);
        if (part->idle_known && strcmp(part->out->idle_source, "estimate") != 0)
            idle_w = part->out->idle_w; /* as correct_idle goes on from */
        double step_j = nrg_point_j(tl, next) - nrg_point_j(tl, i);
        /* between runs nothing is known */
        own->gap[i] = nrg_point_gap(tl, i) || e->cells.outside[k];
        if (tl->is_gauge)
            own->own_gauge[i] = (nrg_point_gauge(tl, i) - idle_w) * mine;
        if (next > i)
            own->sum_j[next] = own->sum_j[i] + (own->gap[i] ? 0 : (step_j - idle_w * s) * mine);
    }
    for (size_t i = 0; tl->is_gauge && i + 1 < tl->n; i++) /* trapezoids again */
        own->sum_j[i + 1] =
            own->sum_j[i] +
            (own->gap[i] ? 0
                         : (own->own_gauge[i] + own->own_gauge[i + 1]) / 2 *
                               (double)(nrg_point_ns(tl, i + 1) - nrg_point_ns(tl, i)) * 1e-9);
    return own;
}

/*
 * When in the first and the last cell of a run threads were busy outside of their spans is not
 * known: they may not have run at all yet. How long a single thread was is, so each of the two is
 * one row then: without them nothing may tell idle power from a thread that always works. Of
 * several threads it is known less well, and rows there are left out. Where cells are many.
 * The run's ends may cut cells short: where a reading is as long as a cell, each of the two is at
 * least that long, or the thread begins and ends in a row that is taken to be exact.
 */
static void know_edges(const struct nrg_cells *c, struct nrg_regress_options *o)
{
    if (c->n <= EDGE_CELLS || !c->has_rates)
        return;
    o->edges_known = c->one_thread;
    size_t edge = o->edges_known ? 1 : 2; /* CPU times are read some ms after a cell began */
    size_t first = edge, last = c->n - edge;
    int64_t cell_ns = (c->begin_ns[c->n] - c->begin_ns[0]) / (int64_t)c->n;
    int64_t least_ns = 2 * o->timeline->period_ns > cell_ns ? cell_ns * 99 / 100 : 0;
    first += c->begin_ns[first] - c->begin_ns[0] < least_ns;
    last -= c->begin_ns[c->n] - c->begin_ns[last] < least_ns;
    o->first_whole_ns = c->begin_ns[first];
    o->last_whole_ns = c->begin_ns[last];
}

/* What an attribution before found of a domain's updates. */
static struct nrg_updates_found updates_before(const struct nrg_engine *e,
                                               const struct nrg_part *part)
{
    const struct nrg_attribution *before = e->options->before;
    const char *name = part->channel->channel.name;
    for (size_t i = 0; before && i < before->n_domains; i++)
        if (!strcmp(before->domains[i].domain->channel->channel.name, name))
            return before->domains[i].updates;
    return (struct nrg_updates_found){0};
}

static int start_regression(struct nrg_engine *e, struct nrg_part *part,
                            const struct nrg_class_split *split, struct nrg_arena *memory,
                            struct nrg_regress **regress)
{
    bool separate = needs_own_timeline(e, part);
    const struct nrg_timeline *tl = separate ? own_timeline(e, part, memory) : part->tl;
    double idle_w = part->idle_known ? part->out->idle_w : NAN;
    if (separate && part->idle_known)
        idle_w = 0;
    struct nrg_regress_options o = {
        .timeline = tl,
        .channel = &part->channel->channel,
        .begin_ns = e->windows[0].begin_ns,
        .end_ns = e->windows[e->n_windows - 1].end_ns,
        .n_classes = split ? split->n_classes : e->n_classes,
        .lag = e->options->lag,
        .lag_s = e->options->lag == NRG_LAG_GIVEN ? e->options->lag_s
                                                  : (double)part->channel->channel.lag_ns * 1e-9,
        .seen_lag_s = part->lag_s,
        .idle_w = idle_w,
        .confidence = e->options->confidence > 0 ? e->options->confidence : 0.95,
        .unplaced_s = part->pool ? 0 : e->cells.unplaced_s,
        .has_gaps = part->pool || !e->cells.has_rates,
        .gap_class = e->class_of[0],
        .others_class = e->other_class,
        .updates = updates_before(e, part),
        .course = {.begin_ns = e->windows[0].begin_ns,
                   .end_ns = e->windows[e->n_windows - 1].end_ns}};
    nrg_regress_know_idle(e, part, &o);
    know_edges(&e->cells, &o);
    part->course = o.course;
    return tl && !e->memory.failed ? nrg_regress_new(&o, regress) : -ENOMEM;
}

static void take_others(const struct nrg_engine *e, struct nrg_part *part)
{
    const struct nrg_cells *c = &e->cells;
    double power_w = part->regressed.classes[e->other_class].power_w, sum_s = 0;
    for (size_t k = 0; c->other_s && k < c->n; k++)
        sum_s += c->outside[k] ? 0 : c->other_s[k];
    if (isnan(power_w) && !(part->trickle_busy > 0))
        return;
    power_w = isnan(power_w) ? 0 : power_w;
    part->others_j = power_w * (sum_s - part->trickle_busy * e->out->duration_s) +
                     part->trickle_w * e->out->duration_s;
}

/* Part of the time of spans whose power the regression could tell. */
static double resolved_part(const struct nrg_engine *e, const struct nrg_part *part)
{
    double all = 0, resolved = 0;
    for (size_t i = 1; i < e->walk.paths.n; i++) {
        uint32_t c = e->class_of[i];
        if (c == UINT32_MAX)
            continue;
        double ns = nrg_survey_at(&e->survey, i, part->pool)->self_ns;
        all += ns;
        if (!part->regressed.classes[c].unresolved && !isnan(part->regressed.classes[c].power_w))
            resolved += ns;
    }
    return all > 0 ? resolved / all : 0;
}

/* Others have watts of their own, which integration does not know: with them, a regression that
 * tells little is still nearer to the truth. */
static bool has_others(const struct nrg_engine *e, const struct nrg_part *part)
{
    const struct nrg_regress_class *others = &part->regressed.classes[e->other_class];
    return others->time_s != 0 && others->power_w > 0;
}

/* Of spans: the mean power; half-widths of the intervals, and how much powers differ, both as parts
 * of it. */
struct certainty {
    double half, contrast, mean_w;
};

static struct certainty certainty_of(const struct nrg_engine *e, const struct nrg_part *part)
{
    double energy_j = 0, half_j = 0, time_s = 0, square = 0;
    for (size_t c = 0; c < e->class_of[0]; c++) { /* those of no span are the last ones */
        const struct nrg_regress_class *class_ = &part->regressed.classes[c];
        if (isnan(class_->power_w))
            continue;
        energy_j += class_->power_w * class_->time_s;
        half_j += (class_->high_w - class_->low_w) / 2 * class_->time_s;
        square += class_->power_w * class_->power_w * class_->time_s;
        time_s += class_->time_s;
    }
    double mean_w = time_s > 0 ? energy_j / time_s : 0;
    if (!(mean_w > 0))
        return (struct certainty){INFINITY, 0, 0};
    return (struct certainty){half_j / energy_j,
                              sqrt(fmax(square / time_s / (mean_w * mean_w) - 1, 0)), mean_w};
}

/* The same of integration: what edges cost, and what is not known of idle power. INFINITY: more
 * than a regression's. */
static double integrated_half(struct nrg_engine *e, const struct nrg_part *part,
                              const struct certainty *regressed)
{
    double edges = nrg_method_edge_error(e, part) * regressed->contrast;
    if (!(edges < regressed->half))
        return INFINITY;
    double idle_w = nrg_regress_idle_doubt_w(e, part);
    return edges + (regressed->mean_w > 0 ? idle_w / regressed->mean_w : 0);
}

/* No reading saw the class: it may have used nothing, or all that the domain can. Most likely it
 * is as the others are. */
static void take_unseen(struct nrg_part *part, size_t path, double mean_w)
{
    part->class_w[path] = fmin(mean_w, part->ceiling_w);
    part->below_w[path] = part->class_w[path];
    part->above_w[path] = part->ceiling_w - part->class_w[path];
}

static void take_result(struct nrg_engine *e, struct nrg_part *part)
{
    const struct nrg_regress_result *r = &part->regressed;
    double mean_w = certainty_of(e, part).mean_w;
    for (size_t i = 1; i < e->walk.paths.n; i++) {
        uint32_t c = e->class_of[i];
        if (c == UINT32_MAX)
            continue;
        if (isnan(r->classes[c].power_w)) {
            take_unseen(part, i, mean_w);
            continue;
        }
        part->class_w[i] = r->classes[c].power_w;
        part->below_w[i] = fmax(0, r->classes[c].power_w - r->classes[c].low_w);
        part->above_w[i] = fmax(0, r->classes[c].high_w - r->classes[c].power_w);
        if (c == e->rest_class) { /* one of many: it may have used nothing, or far more */
            part->below_w[i] = part->class_w[i];
            part->above_w[i] = part->ceiling_w;
        }
    }
    if (r->window) { /* what it did not see is in the intervals of the classes */
        part->factor_low = 1 - part->channel->channel.error_low;
        part->factor_high = 1 + part->channel->channel.error_high;
    }
    nrg_regress_take_idle(e, part);
    part->idle_error_w = 0; /* it is in the intervals of the classes */
    take_others(e, part);
    part->lag_s = r->lag_s;
    part->out->lag_s = r->lag_s;
    part->out->residual = r->residual;
    nrg_copy(part->out->lag_source, sizeof part->out->lag_source, r->lag_source);
}

static int solve_part(struct nrg_engine *e, struct nrg_part *part, int rc)
{
    /* Of idle power that is guessed, integration knows no more. */
    bool automatic = e->options->method == NRG_METHOD_AUTO && !part->idle_guessed &&
                     !nrg_method_together(e, part->pool);
    if (rc == -ENODATA || rc == -EDOM) {
        falls_back(part,
                   "too few intervals of the sensor to tell %zu kinds of spans "
                   "apart by regression",
                   e->n_classes - 1);
        return 0;
    }
    if (rc)
        return rc;
    double resolved = resolved_part(e, part);
    double least = part->regressed.window ? LEAST_SEEN : LEAST_RESOLVED;
    if (automatic && resolved < least && !has_others(e, part)) {
        falls_back(part,
                   "a regression could tell the power of %.0f %% of the spans' "
                   "time only",
                   100 * resolved);
        return 0;
    }
    struct certainty certainty = certainty_of(e, part);
    double integrated = automatic ? integrated_half(e, part, &certainty) : INFINITY;
    if (integrated < certainty.half) {
        falls_back(part,
                   "a regression would be certain to %.2g %% only, the edges of spans and idle "
                   "power cost %.2g %%",
                   100 * certainty.half, 100 * integrated);
        nrg_regress_leave_idle(e, part);
        return 0;
    }
    take_result(e, part);
    return 0;
}

/* The powers of paths, which the walk for the slices has at 0. */
static int make_powers(struct nrg_engine *e)
{
    size_t n = e->walk.paths.n + 1;
    for (size_t p = 0; p < e->n_parts; p++) {
        struct nrg_part *part = &e->parts[p];
        if (part->method != NRG_METHOD_REGRESS)
            continue;
        part->class_w = nrg_arena_array(&e->memory, n, sizeof *part->class_w);
        part->below_w = nrg_arena_array(&e->memory, n, sizeof *part->below_w);
        part->above_w = nrg_arena_array(&e->memory, n, sizeof *part->above_w);
    }
    return e->memory.failed ? -ENOMEM : 0;
}

/* How many parts are to be regressed. */
static size_t count_regressions(struct nrg_engine *e)
{
    size_t n = 0;
    for (size_t p = 0; p < e->n_parts; p++) {
        struct nrg_part *part = &e->parts[p];
        if (part->method == NRG_METHOD_REGRESS && part->everything_idle)
            falls_back(part, "power did not follow the load, all of it is idle");
        if (part->method == NRG_METHOD_REGRESS && !part->pool && e->cells.has_rates &&
            nrg_gpu_number(part->channel->channel.name) >= 0)
            falls_back(part, "the spans are the processors', whose CPU time says nothing of a GPU");
        n += part->method == NRG_METHOD_REGRESS;
    }
    return n;
}

/* Regresses a part; split: with classes of threads; NULL. rc is that of the solution, too. */
static int regress_classes(struct nrg_engine *e, struct nrg_part *part,
                           const struct nrg_slicer *slicer, const struct nrg_class_split *split,
                           struct nrg_regress_result *result, struct nrg_updates_found *updates)
{
    struct nrg_arena memory = {0};
    struct nrg_regress *regress = NULL;
    int rc = start_regression(e, part, split, &memory, &regress);
    if (!rc)
        rc = nrg_slicer_hand_over(slicer, e, part, split, regress);
    if (!rc) {
        rc = nrg_regress_solve(regress, result);
        *updates = nrg_regress_updates(regress);
    }
    nrg_regress_free(regress);
    nrg_arena_release(&memory);
    return rc;
}

/* Takes the result with classes of threads, where that explains more. */
static int try_split(struct nrg_engine *e, struct nrg_part *part, const struct nrg_slicer *slicer)
{
    struct nrg_arena memory = {0};
    struct nrg_class_split split;
    struct nrg_regress_result result = {0}, joined;
    struct nrg_updates_found updates;
    int rc = nrg_split_find(&split, e, &slicer->log, &memory);
    if (!rc && split.n_classes > split.n_whole) {
        rc = regress_classes(e, part, slicer, &split, &result, &updates);
        if (!rc && nrg_split_earns(&split, &part->regressed, &result)) {
            rc = nrg_split_join(&split, &result, &joined);
            if (!rc) {
                nrg_regress_result_release(&part->regressed);
                part->regressed = joined;
                part->out->updates = updates;
            }
        }
        nrg_regress_result_release(&result);
    }
    nrg_arena_release(&memory);
    return rc == -ENOMEM ? rc : 0;
}

/* One part after the other: a regression holds far more than the log it is made from. */
static int regress_part(struct nrg_engine *e, struct nrg_part *part,
                        const struct nrg_slicer *slicer)
{
    nrg_regress_guess_idle(e, part);
    int rc = regress_classes(e, part, slicer, NULL, &part->regressed, &part->out->updates);
    if (!rc && !part->pool)
        rc = try_split(e, part, slicer);
    rc = solve_part(e, part, rc);
    if (!rc)
        nrg_regress_settle_guess(e, part);
    return rc;
}

int nrg_regress_parts(struct nrg_engine *e)
{
    if (!count_regressions(e))
        return 0;
    struct nrg_slicer slicer = {0};
    int rc = choose_classes(e);
    if (!rc)
        rc = make_powers(e);
    if (!rc) {
        rc = nrg_distribute(e, &slicer);
        memset(e->rows, 0, e->walk.rows->n * sizeof *e->rows);
        memset(e->row_parts, 0, e->walk.rows->n * e->n_parts * sizeof *e->row_parts);
        e->counts.n = 0;
    }
    for (size_t p = 0; !rc && p < e->n_parts; p++)
        if (e->parts[p].method == NRG_METHOD_REGRESS)
            rc = regress_part(e, &e->parts[p], &slicer);
    nrg_slicer_release(&slicer);
    return rc;
}

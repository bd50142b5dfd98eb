/*
 * What regressions are made of, and what becomes of their results.
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
#include "attribute/slicer.h"
#include "base/mem.h"

#define MAX_CLASSES 512

static int by_time(const void *a, const void *b, void *arg)
{
    const struct nrg_survey_path *paths = arg;
    double x = paths[*(const uint32_t *)a].self_ns, y = paths[*(const uint32_t *)b].self_ns;
    return x > y ? -1 : x < y;
}

/* class_of per path: the largest in order, then one for the rest, then one for no span (path 0). */
static int choose_classes(struct nrg_engine *e)
{
    size_t n = e->walk.paths.n, used = 0;
    uint32_t *order = calloc(n + 1, sizeof *order);
    e->class_of = malloc((n + 1) * sizeof *e->class_of);
    if (!order || !e->class_of) {
        free(order);
        return -ENOMEM;
    }
    memset(e->class_of, 0xff, (n + 1) * sizeof *e->class_of);
    for (size_t i = 1; i < n; i++)
        if (e->survey.paths[i].self_ns > 0)
            order[used++] = (uint32_t)i;
    if (used > MAX_CLASSES)
        qsort_r(order, used, sizeof *order, by_time, e->survey.paths);
    for (size_t i = 0; i < used; i++)
        e->class_of[order[i]] = (uint32_t)(i < MAX_CLASSES ? i : MAX_CLASSES);
    e->n_classes = (used < MAX_CLASSES ? used : MAX_CLASSES + (used > MAX_CLASSES)) + 1;
    e->class_of[0] = (uint32_t)e->n_classes - 1;
    e->rest_class = used > MAX_CLASSES ? MAX_CLASSES : SIZE_MAX;
    free(order);
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

/* The readings without idle power (where it is known) and without what others used. */
static int own_timeline(const struct nrg_engine *e, const struct nrg_part *part,
                        struct nrg_timeline *own)
{
    const struct nrg_timeline *tl = part->tl;
    *own = *tl;
    own->cap = tl->n;
    own->t_ns = malloc(tl->n * sizeof *own->t_ns);
    own->sum_j = malloc(tl->n * sizeof *own->sum_j);
    own->gap = malloc(tl->n);
    own->gauge = tl->gauge ? malloc(tl->n * sizeof *own->gauge) : NULL;
    if (!own->t_ns || !own->sum_j || !own->gap || (tl->gauge && !own->gauge)) {
        nrg_timeline_release(own);
        return -ENOMEM;
    }
    memcpy(own->t_ns, tl->t_ns, tl->n * sizeof *own->t_ns);
    memcpy(own->gap, tl->gap, tl->n);
    own->sum_j[0] = 0;
    for (size_t i = 0; i < tl->n; i++) {
        size_t next = i + 1 < tl->n ? i + 1 : i;
        double s = (double)(tl->t_ns[next] - tl->t_ns[i]) * 1e-9;
        size_t k = nrg_cells_find(&e->cells, tl->t_ns[i] + (tl->t_ns[next] - tl->t_ns[i]) / 2);
        double idle_w = part->idle_known ? part->idle_w[k] : 0, mine = mine_at(e, part, k);
        double step_j = tl->sum_j[next] - tl->sum_j[i];
        own->gap[i] |= e->cells.outside[k]; /* between runs nobody knows what went on */
        if (tl->gauge)
            own->gauge[i] = (tl->gauge[i] - idle_w) * mine;
        if (next > i)
            own->sum_j[next] = own->sum_j[i] + (own->gap[i] ? 0 : (step_j - idle_w * s) * mine);
    }
    for (size_t i = 0; tl->gauge && i + 1 < tl->n; i++) /* trapezoids again */
        own->sum_j[i + 1] =
            own->sum_j[i] + (own->gap[i] ? 0
                                         : (own->gauge[i] + own->gauge[i + 1]) / 2 *
                                               (double)(tl->t_ns[i + 1] - tl->t_ns[i]) * 1e-9);
    return 0;
}

static int start(struct nrg_engine *e, struct nrg_part *part, struct nrg_timeline *own,
                 struct nrg_regress **regress)
{
    bool separate = needs_own_timeline(e, part);
    int rc = separate ? own_timeline(e, part, own) : 0;
    double idle_w = part->idle_known ? part->out->idle_w : NAN;
    if (separate && part->idle_known)
        idle_w = 0;
    struct nrg_regress_options o = {
        .timeline = separate ? own : part->tl,
        .channel = &part->channel->channel,
        .begin_ns = e->windows[0].begin_ns,
        .end_ns = e->windows[e->n_windows - 1].end_ns,
        .n_classes = e->n_classes,
        .lag = e->options->lag,
        .lag_s = e->options->lag == NRG_LAG_GIVEN ? e->options->lag_s
                                                  : (double)part->channel->channel.lag_ns * 1e-9,
        .seen_lag_s = part->lag_s,
        .idle_w = idle_w,
        .confidence = e->options->confidence > 0 ? e->options->confidence : 0.95};
    part->class_w = calloc(e->walk.paths.n + 1, sizeof *part->class_w);
    part->below_w = calloc(e->walk.paths.n + 1, sizeof *part->below_w);
    part->above_w = calloc(e->walk.paths.n + 1, sizeof *part->above_w);
    if (!part->class_w || !part->below_w || !part->above_w)
        rc = -ENOMEM;
    return rc ? rc : nrg_regress_new(&o, regress);
}

/* Idle power as the regression found it holds for the whole run. */
static void take_idle(struct nrg_engine *e, struct nrg_part *part)
{
    const struct nrg_regress_result *r = &part->regressed;
    if (part->idle_known || !r->idle_fitted || isnan(r->idle_w))
        return;
    for (size_t k = 0; k < e->cells.n; k++)
        part->idle_w[k] = r->idle_w;
    part->out->idle_w = r->idle_w;
    nrg_copy(part->out->idle_source, sizeof part->out->idle_source, "fitted");
}

/* Part of the time of spans whose power the regression could tell. */
static double resolved_part(const struct nrg_engine *e, const struct nrg_part *part)
{
    double all = 0, resolved = 0;
    for (size_t i = 1; i < e->walk.paths.n; i++) {
        uint32_t c = e->class_of[i];
        if (c == UINT32_MAX)
            continue;
        all += e->survey.paths[i].self_ns;
        if (!part->regressed.classes[c].unresolved && !isnan(part->regressed.classes[c].power_w))
            resolved += e->survey.paths[i].self_ns;
    }
    return all > 0 ? resolved / all : 0;
}

static void take_result(struct nrg_engine *e, struct nrg_part *part)
{
    const struct nrg_regress_result *r = &part->regressed;
    for (size_t i = 1; i < e->walk.paths.n; i++) {
        uint32_t c = e->class_of[i];
        if (c == UINT32_MAX || isnan(r->classes[c].power_w))
            continue;
        part->class_w[i] = r->classes[c].power_w;
        part->below_w[i] = fmax(0, r->classes[c].power_w - r->classes[c].low_w);
        part->above_w[i] = fmax(0, r->classes[c].high_w - r->classes[c].power_w);
        if (c == e->rest_class) { /* one of many: it may have used nothing, or far more */
            part->below_w[i] = part->class_w[i];
            part->above_w[i] = part->ceiling_w;
        }
    }
    take_idle(e, part);
    part->lag_s = r->lag_s;
    part->out->lag_s = r->lag_s;
    part->out->residual = r->residual;
    nrg_copy(part->out->lag_source, sizeof part->out->lag_source, r->lag_source);
}

static int solve(struct nrg_engine *e, struct nrg_part *part, struct nrg_regress *regress)
{
    int rc = nrg_regress_solve(regress, &part->regressed);
    bool automatic = e->options->method == NRG_METHOD_AUTO;
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
    if (automatic && resolved < 0.5) {
        falls_back(part,
                   "a regression could tell the power of %.0f %% of the spans' "
                   "time only",
                   100 * resolved);
        return 0;
    }
    take_result(e, part);
    return 0;
}

int nrg_regress_parts(struct nrg_engine *e)
{
    size_t n = e->n_parts + 1, wanted = 0;
    struct nrg_regress **regress = calloc(n, sizeof(struct nrg_regress *));
    struct nrg_timeline *own = calloc(n, sizeof *own);
    struct nrg_slicer slicer = {
        .regress = regress, .engine_parts = e->parts, .n_parts = e->n_parts};
    int rc = regress && own ? choose_classes(e) : -ENOMEM;
    for (size_t p = 0; !rc && p < e->n_parts; p++) {
        struct nrg_part *part = &e->parts[p];
        if (part->method == NRG_METHOD_REGRESS && part->everything_idle)
            falls_back(part, "power did not follow the load, all of it is idle");
        if (part->method != NRG_METHOD_REGRESS)
            continue;
        rc = start(e, part, &own[p], &regress[p]);
        wanted++;
    }
    slicer.class_of = e->class_of;
    if (!rc && wanted) {
        rc = nrg_distribute(e, &slicer);
        memset(e->rows, 0, e->walk.rows->n * sizeof *e->rows);
        memset(e->row_parts, 0, e->walk.rows->n * e->n_parts * sizeof *e->row_parts);
        e->n_counts = 0;
    }
    for (size_t p = 0; !rc && p < e->n_parts; p++)
        if (regress[p])
            rc = solve(e, &e->parts[p], regress[p]);
    for (size_t p = 0; regress && own && p < e->n_parts; p++) {
        nrg_regress_free(regress[p]);
        nrg_timeline_release(&own[p]);
    }
    free(slicer.slices);
    free(regress);
    free(own);
    return rc;
}

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
#include "attribute/left_over.h"
#include "attribute/regress/by_model.h"
#include "attribute/regress/idle/idle.h"
#include "attribute/regress/load/in_step.h"
#include "attribute/regress/load/split.h"
#include "attribute/regress/load/streams.h"
#include "attribute/regress/rows/edges.h"
#include "attribute/regress/rows/own_timeline.h"
#include "attribute/regress/rows/slicer.h"
#include "base/mem.h"
#include "energy/quantum.h"

#define MAX_CLASSES    512
#define LEAST_RESOLVED 0.5  /* of the spans' time: else integration says as much */
#define LEAST_SEEN     0.1  /* the same for a sensor that looks part of the time */
#define ENDS           0.01 /* of the run, before the first span and after the last: few readings */

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
    e->n_classes = (used < MAX_CLASSES ? used : MAX_CLASSES + (used > MAX_CLASSES));
    e->class_of[0] = (uint32_t)e->n_classes++;
    e->apart_class = e->n_classes++;
    e->before_class = e->n_classes++;
    e->untracked_class = e->n_classes++;
    e->other_class = e->n_classes++;
    e->aged_class = e->n_classes;
    e->n_classes += NRG_GAP_AGES;
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

/* From the first span to the last of the part's tracks. */
static struct nrg_span_ns marked_time(const struct nrg_engine *e, const struct nrg_part *part,
                                      const struct nrg_regress_options *o)
{
    const struct nrg_cells *c = &e->cells;
    int64_t first_ns = o->end_ns, last_ns = o->begin_ns;
    for (size_t i = 0; i < c->n_tracks; i++) {
        if (c->track_pool[i] != part->pool || !c->first_ns[i])
            continue;
        first_ns = c->first_ns[i] < first_ns ? c->first_ns[i] : first_ns;
        last_ns = c->last_ns[i] > last_ns ? c->last_ns[i] : last_ns;
    }
    return (struct nrg_span_ns){first_ns > o->begin_ns ? first_ns : o->begin_ns,
                                last_ns < o->end_ns ? last_ns : o->end_ns};
}

/* Time between spans, of a single track; less of several. */
static double gaps_ns(const struct nrg_engine *e, const struct nrg_part *part,
                      const struct nrg_span_ns *marked)
{
    double sum_ns = (double)(marked->end_ns - marked->begin_ns);
    for (size_t i = 1; i < e->walk.paths.n; i++)
        sum_ns -= nrg_survey_at(&e->survey, i, part->pool)->self_ns;
    return sum_ns;
}

/* What was done before the first span and after the last is known by nobody, where there are no
 * CPU times: through an average, a second of it would show in readings that spans are told by. */
static bool hides_ends(const struct nrg_engine *e, const struct nrg_part *part,
                       const struct nrg_timeline *tl)
{
    return !part->pool && !e->cells.has_rates && tl && tl->is_gauge;
}

/*
 * Idle power that was not measured is told by time in which the workload rests. Shortly before its
 * first span and after its last it starts up and ends, and a reading or two of that would tell it
 * alone, whatever was done there: so they do not count, unless there are many. Where nothing says
 * what was done there, they do not count either, unless they are all that tells idle power.
 */
static void leave_out_ends(const struct nrg_engine *e, const struct nrg_part *part,
                           struct nrg_regress_options *o)
{
    bool told = !o->idle_guessed && !isnan(o->idle_w), hidden = hides_ends(e, part, o->timeline);
    struct nrg_span_ns marked = marked_time(e, part, o);
    double run_ns = (double)(o->end_ns - o->begin_ns);
    double ends_ns = run_ns - (double)(marked.end_ns - marked.begin_ns);
    bool few = ends_ns <= ENDS * run_ns;
    bool spared = few || (hidden && (told || ends_ns <= gaps_ns(e, part, &marked)));
    if ((told && !hidden) || !spared || marked.end_ns <= marked.begin_ns)
        return;
    o->begin_ns = o->course.begin_ns = marked.begin_ns;
    o->end_ns = o->course.end_ns = marked.end_ns;
}

int nrg_regress_options_make(struct nrg_engine *e, struct nrg_part *part,
                             const struct nrg_class_split *split, struct nrg_arena *memory,
                             struct nrg_regress_options *options)
{
    bool separate = nrg_regress_needs_own(e, part), by_age = split && split->by_age;
    const struct nrg_timeline *tl = separate ? nrg_regress_own(e, part, memory) : part->tl;
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
        .adds_up = !part->pool && e->cells.has_rates && e->cells.n_tracks > 1,
        .unplaced_s = part->pool ? 0 : e->cells.unplaced_s,
        .shares = part->pool != 0,
        .has_gaps = part->pool || !e->cells.has_rates,
        .gap_class = by_age ? split->rest_class : e->class_of[0],
        .others_class = e->other_class,
        .workers_class = e->untracked_class,
        .spans = e->class_of[0],
        .n_whole = e->n_classes,
        .cell_ns = e->cells.begin_ns,
        .n_cells = part->pool || !e->cells.has_rates ? 0 : e->cells.n,
        .idle_told_s2 = e->cells.idle_told_s2,
        .updates = split && split->updates.sought ? split->updates : updates_before(e, part),
        .course = {.begin_ns = e->windows[0].begin_ns,
                   .end_ns = e->windows[e->n_windows - 1].end_ns}};
    nrg_regress_know_idle(e, part, &o);
    if (tl)
        leave_out_ends(e, part, &o);
    part->course = o.course;
    if (!tl || nrg_regress_know_edges(e, part, &o, memory) || e->memory.failed)
        return -ENOMEM;
    *options = o;
    return 0;
}

static int start_regression(struct nrg_engine *e, struct nrg_part *part,
                            const struct nrg_class_split *split, struct nrg_arena *memory,
                            struct nrg_regress **regress)
{
    struct nrg_regress_options options;
    int rc = nrg_regress_options_make(e, part, split, memory, &options);
    return rc ? rc : nrg_regress_new(&options, regress);
}

static void take_others(const struct nrg_engine *e, struct nrg_part *part)
{
    const struct nrg_cells *c = &e->cells;
    double power_w = part->regressed.classes[e->other_class].power_w, sum_s = 0;
    for (size_t k = 0; c->other_s && k < c->n; k++)
        sum_s += c->outside[k] ? 0 : c->other_s[k];
    if (isnan(power_w) && !(part->trickle_w > 0))
        return;
    power_w = isnan(power_w) ? 0 : power_w;
    part->others_j = power_w * (sum_s - part->trickle_busy * e->out->duration_s) +
                     part->trickle_w * e->out->duration_s;
}

static void note_crowd(struct nrg_engine *e, const struct nrg_part *part)
{
    double others_w = part->regressed.classes[e->other_class].power_w;
    if (part->regressed.others_held && others_w >= 0)
        nrg_attribution_note(e->out, part->channel->channel.name,
                             "the CPUs were hardly ever idle, also in the baseline: what others "
                             "drew (%.3g W per CPU is taken) can't be told from idle power, and "
                             "all intervals have it; a baseline while they rest would tell it",
                             others_w);
    if (part->regressed.others_steady && others_w >= 0)
        nrg_attribution_note(e->out, part->channel->channel.name,
                             "others were as busy all the time: what they drew (%.3g W per CPU is "
                             "taken) can't be told from what the spans did, and all intervals have "
                             "it",
                             others_w);
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
    if (r->window) /* what it did not see is in the intervals of the classes */
        nrg_part_calibrate(part);
    nrg_regress_take_idle(e, part);
    part->idle_error_w = 0; /* it is in the intervals of the classes */
    take_others(e, part);
    note_crowd(e, part);
    part->lag_s = r->lag_s;
    if (r->lag_s > 0 || strcmp(r->lag_source, "driver") != 0) /* else totals have the driver's */
        part->out->lag_s = r->lag_s;
    part->out->residual = r->residual;
    nrg_copy(part->out->lag_source, sizeof part->out->lag_source, r->lag_source);
}

static int solve_part(struct nrg_engine *e, struct nrg_part *part, int rc)
{
    /* Of idle power that is guessed, and of others on CPUs that are never idle, integration knows
     * no more. */
    bool automatic = e->options->method == NRG_METHOD_AUTO && !part->idle_guessed &&
                     !part->regressed.others_held && !nrg_method_together(e, part->pool);
    if (rc == -ENODATA && part->out->updates.lost) {
        falls_back(part, "its readings do not tell when the sensor looked");
        return 0;
    }
    if (rc == -ENODATA || rc == -EDOM) {
        falls_back(part,
                   "too few intervals of the sensor to tell %zu kinds of spans "
                   "apart by regression",
                   (size_t)e->class_of[0]);
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

static int give_regress(void *regress, const struct nrg_class_activity *activity)
{
    return nrg_regress_slice(regress, activity);
}

int nrg_regress_classes(struct nrg_engine *e, struct nrg_part *part,
                        const struct nrg_slicer *slicer, const struct nrg_class_split *split,
                        struct nrg_regress_result *result, struct nrg_updates_found *updates)
{
    struct nrg_arena memory = {0};
    struct nrg_regress *regress = NULL;
    if (e->options->engine == NRG_ENGINE_MODEL)
        return nrg_regress_by_model(e, part, slicer, result);
    int rc = start_regression(e, part, split, &memory, &regress);
    if (!rc)
        rc = nrg_slicer_hand_over(slicer, e, part, split, give_regress, regress);
    if (!rc) {
        rc = nrg_regress_solve(regress, result);
        *updates = nrg_regress_updates(regress);
    }
    if (!rc)
        rc = nrg_left_over_keep(e, part, nrg_regress_timeline(regress));
    nrg_regress_free(regress);
    nrg_arena_release(&memory);
    return rc;
}

/* Takes the result with classes of threads, where that explains more; and where it shows that
 * threads are told apart only by what little all do, as if that drew the same in each. */
static int try_split(struct nrg_engine *e, struct nrg_part *part, const struct nrg_slicer *slicer)
{
    struct nrg_arena memory = {0};
    struct nrg_class_split split;
    struct nrg_regress_result result = {0}, joined;
    struct nrg_updates_found updates;
    int rc = nrg_split_find(&split, e, &slicer->log, &memory);
    if (!rc && split.n_classes > split.n_whole) {
        rc = nrg_regress_classes(e, part, slicer, &split, &result, &updates);
        bool earns = !rc && nrg_split_earns(&split, &part->regressed, &result);
        if (!rc)
            rc = nrg_split_join(&split, &result, &joined);
        if (!rc && (earns || nrg_split_tells_less(&split, &result, &joined))) {
            nrg_regress_result_release(&part->regressed);
            part->regressed = joined;
            part->out->updates = updates;
        } else if (!rc) {
            nrg_regress_result_release(&joined);
        }
        nrg_regress_result_release(&result);
    }
    nrg_arena_release(&memory);
    return rc == -ENOMEM ? rc : 0;
}

/*
 * A GPU does not fall to idle power as soon as nothing runs on it: clocks and voltages stay up for
 * a while. Takes the result with time without spans by its age, where that explains more: first
 * with the updates that were found without it, then with those that are found with it.
 */
static int try_ages(struct nrg_engine *e, struct nrg_part *part, const struct nrg_slicer *slicer)
{
    struct nrg_class_split split;
    int rc = 0;
    /* Idle power that is guessed is what that time shows. An attribution that goes on from another
     * has spans where there is none. */
    if (part->idle_guessed || e->options->before ||
        !nrg_split_ages(&split, e, &slicer->log, (uint32_t)part->pool))
        return 0;
    split.adds = part->adds;
    split.updates = part->out->updates;
    for (int i = 0; !rc && i < 2 && !part->regressed.only_rounding; i++) {
        struct nrg_regress_result result = {0};
        struct nrg_updates_found updates;
        rc = nrg_regress_classes(e, part, slicer, &split, &result, &updates);
        if (rc || (!i && !nrg_split_earns(&split, &part->regressed, &result))) {
            nrg_regress_result_release(&result);
            break;
        }
        nrg_regress_result_release(&part->regressed);
        part->regressed = result;
        part->out->updates = updates;
        split.updates = updates_before(e, part);
    }
    return rc == -ENOMEM ? rc : 0;
}

/* The regressions of a GPU beyond the first one. */
static int regress_gpu(struct nrg_engine *e, struct nrg_part *part, const struct nrg_slicer *slicer)
{
    struct nrg_streams beside = {0};
    int rc = nrg_streams_find(&beside, e, part, slicer);
    if (!rc)
        rc = try_ages(e, part, slicer);
    nrg_streams_widen(&beside, e, &part->regressed);
    nrg_streams_release(&beside);
    return rc;
}

/* One part after the other: a regression holds far more than the log it is made from. */
static int regress_part(struct nrg_engine *e, struct nrg_part *part,
                        const struct nrg_slicer *slicer, const struct nrg_in_step *in_step)
{
    nrg_regress_guess_idle(e, part);
    int rc = nrg_regress_classes(e, part, slicer, NULL, &part->regressed, &part->out->updates);
    bool old = e->options->engine != NRG_ENGINE_MODEL;
    if (!rc && old)
        rc = part->pool ? regress_gpu(e, part, slicer) : try_split(e, part, slicer);
    if (!rc && old && !part->pool)
        nrg_in_step_widen(in_step, e, &part->regressed);
    rc = solve_part(e, part, rc);
    if (!rc)
        nrg_regress_settle_guess(e, part);
    if (!rc && old && part->method == NRG_METHOD_REGRESS)
        rc = nrg_left_over_make(e, part, &slicer->log);
    return rc;
}

int nrg_regress_parts(struct nrg_engine *e)
{
    if (!count_regressions(e))
        return 0;
    struct nrg_slicer slicer = {0};
    struct nrg_in_step in_step = {0};
    int rc = choose_classes(e);
    if (!rc)
        rc = make_powers(e);
    if (!rc) {
        slicer.gap_class = e->class_of[0];
        slicer.apart_class = (uint32_t)e->apart_class;
        rc = nrg_distribute(e, &slicer);
        memset(e->rows, 0, e->walk.rows->n * sizeof *e->rows);
        memset(e->row_parts, 0, e->walk.rows->n * e->n_parts * sizeof *e->row_parts);
        e->counts.n = 0;
    }
    if (!rc)
        rc = nrg_in_step_place(&in_step, e, &slicer);
    for (size_t p = 0; !rc && p < e->n_parts; p++)
        if (e->parts[p].method == NRG_METHOD_REGRESS)
            rc = regress_part(e, &e->parts[p], &slicer, &in_step);
    nrg_in_step_release(&in_step);
    nrg_slicer_release(&slicer);
    return rc;
}

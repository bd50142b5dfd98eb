/*
 * The figures of a regression: one per class, or one for all classes of a group. Intervals are
 * around the solution that may be negative, and cut: no power is below 0, and none can have used
 * more than there was.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/regress/internal.h"
#include "attribute/regress/interval.h"
#include "base/mem.h"
#include "base/stats.h"

#define MOST        1.05  /* of all energy: the sum has an error too */
#define IDLE_KNOWN  0.5   /* of the mean power: an idle interval wider than this is not known */
#define UNPLACED    0.6   /* of all such work, in one class */
#define KNOWN_POWER 0.1   /* deviation of a power that is known, of it */
#define IDLE_TIME   0.001 /* of the time without any span: less is not enough */
#define ROUNDED     1.5   /* of the variance of a rounding */
#define IN_GAPS     0.5   /* of the power of spans, drawn in gaps that can't be told from them */

/* Idle is kept when there was enough time without spans to know it from. */
static bool idle_is_known(const struct nrg_solver *s)
{
    const struct nrg_regress *r = s->r;
    size_t p = s->n_classes;
    double span_s = (double)(r->options.end_ns - r->options.begin_ns) / 1e9;
    if (!s->idle || s->dependent[p] || r->covered_s > (1 - IDLE_TIME) * span_s)
        return false;
    double t = nrg_student_half(r->options.confidence, s->freedom);
    return t * sqrt(nrg_solver_covariance(s, p, p)) < IDLE_KNOWN * r->sum_y / r->sum_s;
}

static int solve_all(struct nrg_solver *s)
{
    bool fit_idle = isnan(s->r->options.idle_w);
    int rc = nrg_solver_solve(s, fit_idle);
    if (!rc && nrg_solver_drop_awake(s))
        rc = nrg_solver_solve(s, fit_idle);
    if (!rc && nrg_solver_hold_others(s)) {
        s->crowded = true;
        rc = nrg_solver_solve(s, fit_idle);
    }
    if (!rc && nrg_solver_hold_workers(s))
        rc = nrg_solver_solve(s, fit_idle);
    if (!rc && nrg_solver_know_gaps(s))
        rc = nrg_solver_solve(s, fit_idle);
    if (!rc && nrg_solver_hold_steady(s))
        rc = nrg_solver_solve(s, fit_idle);
    if (!rc)
        rc = nrg_solver_doubt_idle(s);
    if (!rc && s->idle_doubted)
        rc = nrg_solver_solve(s, fit_idle);
    if (!rc && nrg_solver_join_calls(s))
        rc = nrg_solver_solve(s, fit_idle);
    if (!rc)
        rc = nrg_solver_join_places(s, fit_idle);
    if (!rc)
        rc = nrg_solver_join_within(s, fit_idle);
    if (!rc)
        rc = nrg_solver_walk(s);
    if (!rc)
        rc = nrg_solver_spread(s);
    if (fit_idle && (rc == -ENODATA || (!rc && !idle_is_known(s)))) {
        rc = nrg_solver_solve(s, false);
        if (!rc)
            rc = nrg_solver_spread(s);
    }
    if (!rc)
        rc = nrg_solver_judge_drift(s);
    if (!rc)
        nrg_solver_limit_alike(s);
    if (!rc)
        nrg_solver_add_waits(s);
    return rc;
}

static double column_time_s(const struct nrg_solver *s, size_t p)
{
    return p < s->n_classes ? s->r->time_s[s->index[p]] : 0;
}

static bool is_alone(const struct nrg_solver *s, size_t p)
{
    return s->root[p] == p && s->next[p] == SIZE_MAX;
}

/* Time without spans, in which nothing has to run, where it can't be told from some of them. */
static bool is_untold_gap(const struct nrg_solver *s, size_t p)
{
    const struct nrg_regress_options *o = &s->r->options;
    size_t class_ = p < s->n_classes ? s->r->class_of[s->index[p]] : 0;
    bool outside = class_ >= o->spans && class_ < o->n_whole && class_ != o->others_class &&
                   class_ != o->workers_class;
    return o->has_gaps && p < s->n_classes && outside && !is_alone(s, p);
}

static double time_of(const struct nrg_solver *s, size_t p, bool gaps)
{
    double sum = 0;
    for (size_t q = s->root[p]; q != SIZE_MAX; q = s->next[q])
        sum += is_untold_gap(s, q) == gaps ? column_time_s(s, q) : 0;
    return sum;
}

/* A gap has none of its group's energy, but for what may_be_in_gaps_w says. */
static double group_time_s(const struct nrg_solver *s, size_t p)
{
    return time_of(s, p, false);
}

/* Part of a column in the power of its group, which is the mean over time. */
static double share_of(const struct nrg_solver *s, size_t p, double group_s)
{
    return is_alone(s, p) ? 1 : group_s > 0 ? column_time_s(s, p) / group_s : 0;
}

static double joint_power(const struct nrg_solver *s, size_t p, const double *beta)
{
    double sum = 0, group_s = group_time_s(s, p);
    for (size_t q = s->root[p]; q != SIZE_MAX; q = s->next[q])
        sum += share_of(s, q, group_s) * beta[q] * s->scale[q];
    return sum;
}

/* The same of who had what CPUs draw together. */
static double joint_doubt_w(const struct nrg_solver *s, size_t p)
{
    const double *doubt_w = s->r->together.doubt_w;
    double sum = 0, group_s = group_time_s(s, p);
    for (size_t q = doubt_w ? s->root[p] : SIZE_MAX; q != SIZE_MAX; q = s->next[q])
        sum += share_of(s, q, group_s) * doubt_w[s->index[q]];
    return sum;
}

/* The same of what is not known of processes beside the spans. */
static double joint_by_held_w(const struct nrg_solver *s, size_t kind, size_t p)
{
    double sum = 0, group_s = group_time_s(s, p);
    for (size_t q = s->root[p]; q != SIZE_MAX; q = s->next[q])
        sum += share_of(s, q, group_s) * nrg_solver_by_held_w(s, kind, q);
    return sum;
}

/* At most, gaps draw a part of what the group's spans do: so much of these is not theirs. */
static double may_be_in_gaps_w(const struct nrg_solver *s, size_t p)
{
    double spans_s = group_time_s(s, p), gaps_s = IN_GAPS * time_of(s, p, true);
    return gaps_s > 0 ? joint_power(s, p, s->beta) * gaps_s / (spans_s + gaps_s) : 0;
}

static double joint_covariance(const struct nrg_solver *s, size_t p, size_t q)
{
    if (is_alone(s, p) && is_alone(s, q))
        return nrg_solver_covariance(s, p, q);
    double sum = 0, p_s = group_time_s(s, p), q_s = group_time_s(s, q);
    for (size_t a = s->root[p]; a != SIZE_MAX; a = s->next[a])
        for (size_t b = s->root[q]; b != SIZE_MAX; b = s->next[b])
            sum += share_of(s, a, p_s) * share_of(s, b, q_s) * nrg_solver_covariance(s, a, b);
    return sum;
}

/* Waits that come late look like readings that are early, by a part of an update: power that is not
 * the class's own, the more the shorter its calls are. */
static double mistimed_w(const struct nrg_solver *s, size_t p)
{
    const struct nrg_regress *r = s->r;
    uint32_t calls = r->calls_column_of[r->class_of[s->index[p]]];
    double update_s = (double)r->options.channel->update_ns / 1e9;
    bool told = r->options.waits_w && calls && r->call_s[calls] > 0;
    return told ? update_s / sqrt(12) / r->call_s[calls] * nrg_solver_mean_power(s) : 0;
}

/*
 * When in its call a thread waited is not known, and not alike in all classes. So energy may be
 * taken for that of the call before or after, in proportion to the time that it waited: powers are
 * drawn towards one another.
 */
static double blurred_w(const struct nrg_solver *s, size_t p, double power_w)
{
    double waited = nrg_regress_waited(s->r, s->index[p]);
    if (!(waited > 0) || s->r->waits.used)
        return 0;
    double off_w = fmax(fabs(power_w - nrg_solver_mean_power(s)), 0.8 * power_w);
    double uneven = s->r->options.waits_w ? nrg_solver_concentration(s, 0, 1) : 1;
    return uneven * waited * (off_w + mistimed_w(s, p));
}

/* Where readings can't tell whether calls or their time use the energy, or when in its calls a
 * class does, it may be as by another solution. How far that is; 0: there is none. */
static double moved_w(const struct nrg_solver *s, size_t p, const double *to, size_t n)
{
    size_t column = s->index[p];
    bool known = to && s->r->prior && column < s->r->n_prior && column < n;
    return known ? to[column] - s->r->prior[column] : 0;
}

/* What one class then has more its neighbours have less: the mean over time is what idle power is
 * off by in trials, and known better. */
static double moved_apart_w(const struct nrg_solver *s, size_t p, const double *to, size_t n)
{
    double sum_j = 0, sum_s = 0;
    if (!to || !is_alone(s, p))
        return 0;
    for (size_t q = 0; q < s->n_classes; q++) {
        sum_j += moved_w(s, q, to, n) * column_time_s(s, q);
        sum_s += column_time_s(s, q);
    }
    return moved_w(s, p, to, n) - (sum_s > 0 ? sum_j / sum_s : 0);
}

/*
 * What the powers leave of a counter's energy in sum, as a part of what classes have. Noise of rows
 * comes back in the next ones. A model of the readings that is wrong in the whole does not, and
 * leaves as much to each class: times of updates on a clock that is not the counter's, say.
 */
static double left_over(const struct nrg_solver *s)
{
    const struct nrg_regress *r = s->r;
    double left_j = r->sum_y - (isnan(r->options.idle_w) ? 0 : r->options.idle_w * r->sum_s);
    double classes_j = 0;
    left_j -= nrg_idle_walk_mean_w(&s->walk.course) * r->sum_s;
    for (size_t p = 0; p < s->m; p++) {
        double w = (p < s->n_bound ? s->beta[p] : s->free_beta[p]) * s->scale[p];
        left_j -= w * r->time_s[s->index[p]];
        classes_j += p < s->n_classes ? w * r->time_s[s->index[p]] : 0;
    }
    return !r->options.timeline->is_gauge && classes_j > 0 ? fabs(left_j) / classes_j : 0;
}

/* What such work draws is not known either: as much, it may be, as the class that draws most, of
 * those whose power is known. */
static double unplaced_power_w(const struct nrg_solver *s)
{
    double most_w = nrg_solver_mean_power(s);
    for (size_t p = 0; p < s->n_classes; p++) {
        double w = s->beta[p] * s->scale[p];
        bool known =
            !s->dependent[p] && nrg_solver_covariance(s, p, p) < KNOWN_POWER * KNOWN_POWER * w * w;
        most_w = known ? fmax(most_w, w) : most_w;
    }
    return most_w;
}

/*
 * Work that is in no class is in the readings, and so in the power of some. In sum that is its
 * energy; where it is always beside the same calls, one class has more of it, and its neighbours
 * less than nothing.
 */
static double unplaced_w(const struct nrg_solver *s, size_t p)
{
    double class_s = group_time_s(s, p), work_s = s->r->options.unplaced_s;
    return class_s > 0 ? UNPLACED * work_s / class_s * unplaced_power_w(s) : 0;
}

/* Of the energy of classes, if such work draws that much. */
static double unplaced_part(const struct nrg_solver *s, double power_w)
{
    double energy_j = 0;
    for (size_t p = 0; p < s->n_classes; p++)
        energy_j += s->beta[p] * s->scale[p] * column_time_s(s, p);
    return energy_j > 0 ? s->r->options.unplaced_s * power_w / energy_j : 0;
}

/* What classes have of their powers: most likely, such work draws as they do in the mean. */
static double placed_part(const struct nrg_solver *s)
{
    return fmax(1 - unplaced_part(s, nrg_solver_mean_power(s)), 0);
}

/* What a class has of its power by its waits. */
static double waits_w(const struct nrg_solver *s, size_t p)
{
    const double *awake = s->r->options.awake;
    double sum = 0, group_s = group_time_s(s, p);
    for (size_t q = awake ? s->root[p] : SIZE_MAX; q != SIZE_MAX; q = s->next[q])
        sum += share_of(s, q, group_s) * awake[s->index[q]];
    return s->awake_w * sum;
}

/* What a class lacks because the recorder woke an idle machine; others are what they were. */
static double woken_w(const struct nrg_regress *r, size_t class_)
{
    return class_ == r->options.others_class ? 0 : r->options.woken_w;
}

static bool is_others(const struct nrg_solver *s, size_t p)
{
    return s->index[p] == s->r->column_of[s->r->options.others_class];
}

/* Part of the classes' energy that others may have instead, who slow them down (pace.c). */
static double slowed_part(const struct nrg_solver *s)
{
    double work_s = 0, others_s = 0;
    for (size_t p = 0; p < s->n_classes; p++)
        *(is_others(s, p) ? &others_s : &work_s) += column_time_s(s, p);
    return work_s > 0 ? fmin(s->r->pace.by_others * fmax(others_s, 0) / work_s, 1) : 0;
}

/* Of a class, half of that, which is also what it may be off by. */
static double slowed_w(const struct nrg_solver *s, size_t p)
{
    return is_others(s, p) ? 0 : slowed_part(s) / 2 * joint_power(s, p, s->beta);
}

static void set_class(const struct nrg_solver *s, struct nrg_regress_result *result, size_t p)
{
    const struct nrg_regress *r = s->r;
    struct nrg_regress_class *c = &result->classes[r->class_of[s->index[p]]];
    double group_s = group_time_s(s, p), most = group_s > 0 ? MOST * r->sum_y / group_s : 0;
    double placed = placed_part(s);
    double doubt_w = joint_doubt_w(s, p), other_w = doubt_w != 0 ? r->together.other * doubt_w : 0;
    double in_waits_w = waits_w(s, p), theirs_w = slowed_w(s, p);
    double woken = woken_w(r, r->class_of[s->index[p]]);
    other_w += r->awake_taken * in_waits_w + theirs_w - woken;
    c->power_w = fmax(placed * joint_power(s, p, s->beta) - other_w, 0);
    double drift_w = 0;
    for (size_t i = 0; i <= NRG_DOUBT_AWAKE; i++)
        c->drift_w[i] = s->drift[i].untold * joint_power(s, p, s->drift[i].moved);
    c->drift_w[NRG_DOUBT_AWAKE] =
        fabs(c->drift_w[NRG_DOUBT_AWAKE]) + r->awake_taken_off * in_waits_w;
    c->drift_w[NRG_DOUBT_TOGETHER] = r->together.untold * doubt_w;
    for (size_t kind = 0; kind < NRG_BESIDE; kind++)
        c->drift_w[NRG_DOUBT_WORKERS + kind] = joint_by_held_w(s, kind, p);
    c->drift_w[NRG_DOUBT_OTHERS] += copysign(theirs_w, c->drift_w[NRG_DOUBT_OTHERS]);
    for (size_t k = 0; k < NRG_ALIKE; k++)
        c->drift_w[NRG_DOUBT_ALIKE + k] = nrg_solver_alike_w(s, k, p);
    c->drift_w[NRG_DOUBT_WOKEN] = NRG_WOKEN_OFF * woken;
    c->drift_w[NRG_DOUBT_GAPS] = may_be_in_gaps_w(s, p);
    c->drift_w[NRG_DOUBT_OTHERWISE] = r->untold * moved_apart_w(s, p, r->otherwise, r->n_otherwise);
    c->drift_w[NRG_DOUBT_WITHIN] = r->rough * moved_apart_w(s, p, r->plain, r->n_plain);
    for (size_t i = 0; i < NRG_DOUBTS; i++)
        drift_w += i == NRG_DOUBT_GAPS ? 0 : fabs(c->drift_w[i]);
    double half = hypot(hypot(result->t * sqrt(fmax(joint_covariance(s, p, p), 0)),
                              NRG_REGRESS_LEAST_ERROR * c->power_w),
                        nrg_solver_misplaced_w(s, p)) +
                  blurred_w(s, p, c->power_w) + drift_w + nrg_solver_looked_elsewhere_w(s, result) +
                  unplaced_w(s, p) + (result->left_over + result->to_neighbours) * c->power_w;
    c->free_w = placed * joint_power(s, p, s->free_beta) - other_w;
    struct nrg_power_interval i =
        nrg_power_interval_make(s->r->options.confidence, c->power_w, c->free_w, half, most);
    c->low_w = fmax(i.low - c->drift_w[NRG_DOUBT_GAPS], 0); /* gaps can only take from it */
    c->high_w = i.high;
    c->time_s = column_time_s(s, p);
    c->unresolved = !(c->high_w - c->low_w <= c->power_w);
    c->group = r->class_of[s->index[s->root[p]]];
}

static void set_untold_gap(const struct nrg_solver *s, struct nrg_regress_result *result, size_t p)
{
    size_t gap = s->r->class_of[s->index[p]];
    result->classes[gap] =
        (struct nrg_regress_class){.high_w = fmax(IN_GAPS * joint_power(s, p, s->beta), 0),
                                   .time_s = column_time_s(s, p),
                                   .group = gap,
                                   .unresolved = true};
}

static void set_classes(const struct nrg_solver *s, struct nrg_regress_result *result)
{
    const struct nrg_regress *r = s->r;
    size_t n = r->options.n_classes;
    for (size_t p = 0; p < s->n_classes; p++) {
        size_t a = r->class_of[s->index[p]];
        if (is_untold_gap(s, p)) {
            set_untold_gap(s, result, p);
            continue;
        }
        set_class(s, result, p);
        for (size_t q = 0; q <= p; q++) {
            size_t b = r->class_of[s->index[q]];
            if (is_untold_gap(s, q))
                continue;
            result->covariance[a * n + b] = result->covariance[b * n + a] =
                joint_covariance(s, p, q);
        }
        if (s->idle)
            result->idle_covariance[a] = joint_covariance(s, p, s->n_classes);
    }
}

static void set_idle(const struct nrg_solver *s, struct nrg_regress_result *result)
{
    const struct nrg_regress *r = s->r;
    size_t p = s->n_classes;
    if (!isnan(r->options.idle_w))
        result->idle_w = result->idle_low_w = result->idle_high_w = r->options.idle_w;
    if (!s->idle)
        return;
    double variance = nrg_solver_covariance(s, p, p);
    result->idle_w = s->beta[p] * s->scale[p];
    struct nrg_power_interval i = nrg_power_interval_make(
        s->r->options.confidence, result->idle_w, s->free_beta[p] * s->scale[p],
        result->t * sqrt(variance), MOST * r->sum_y / r->sum_s);
    result->idle_fitted = true;
    result->idle_variance = variance;
    result->idle_low_w = i.low;
    result->idle_high_w = i.high;
}

/* How far idle power was off in the mean, and along which shapes. */
static void set_drift(const struct nrg_solver *s, struct nrg_regress_result *result)
{
    nrg_solver_give_walk(s, &result->idle_walk);
    result->idle_off_w = nrg_idle_walk_mean_w(&s->walk.course);
    for (size_t p = s->n_bound; p < s->m; p++) {
        double w = s->free_beta[p] * s->scale[p];
        size_t column = s->index[p], shape = column - NRG_COLUMN_IDLE_SHAPES;
        if (column == NRG_COLUMN_IDLE_OFF)
            result->idle_off_w += w;
        if (column < NRG_COLUMN_IDLE_SHAPES || column > NRG_COLUMN_IDLE_SHAPES_LAST)
            continue;
        result->idle_shape_w[shape] = w;
        result->idle_off_w += w * nrg_idle_shape_mean(&s->r->options.course, shape);
    }
}

/* How much a column counts for what is there without the workload: idle power in the mean of the
 * run, and others beyond those of the baseline. */
static double beside_weight(const struct nrg_solver *s, size_t p)
{
    const struct nrg_regress *r = s->r;
    size_t column = s->index[p];
    if (column == NRG_COLUMN_IDLE_OFF)
        return 1;
    if (p >= s->n_bound)
        return nrg_solver_shape_mean(s, p);
    bool others = column == r->column_of[r->options.others_class] && p < s->n_classes;
    return others && r->sum_s > 0 ? r->time_s[column] / r->sum_s : 0;
}

/* The columns that count for it. */
struct beside {
    size_t p[NRG_IDLE_SHAPES + 2], n;
    double weight[NRG_IDLE_SHAPES + 2];
};

static struct beside find_beside(const struct nrg_solver *s)
{
    struct beside b = {.n = 0};
    for (size_t p = 0; p < s->m && b.n < NRG_IDLE_SHAPES + 2; p++) {
        double weight = beside_weight(s, p);
        if (weight == 0)
            continue;
        b.p[b.n] = p;
        b.weight[b.n++] = weight;
    }
    return b;
}

static double beside_sum(const struct nrg_solver *s, const struct beside *b, const double *of)
{
    double sum_w = 0;
    for (size_t i = 0; i < b->n; i++)
        sum_w += b->weight[i] * of[b->p[i]] * s->scale[b->p[i]];
    return sum_w;
}

/* What is not known of it: as its columns say. */
static double beside_variance(const struct nrg_solver *s, const struct beside *b)
{
    double sum = 0;
    for (size_t i = 0; i < b->n; i++)
        for (size_t k = 0; k < b->n; k++)
            sum += b->weight[i] * b->weight[k] * nrg_solver_covariance(s, b->p[i], b->p[k]);
    return sum;
}

/* The same as classes leave it: their waits are not in its columns. */
static double classes_variance(const struct nrg_solver *s)
{
    size_t others = s->r->column_of[s->r->options.others_class];
    double sum = 0;
    for (size_t p = 0; p < s->n_classes; p++)
        for (size_t q = 0; q < s->n_classes && s->index[p] != others; q++)
            if (s->index[q] != others)
                sum += column_time_s(s, p) * column_time_s(s, q) * nrg_solver_covariance(s, p, q);
    return sum / (s->r->sum_s * s->r->sum_s);
}

/* How much more than the known idle power that was, and half of its interval. */
static void set_beside(const struct nrg_solver *s, struct nrg_regress_result *result)
{
    struct beside b = find_beside(s);
    double half_w = result->t * sqrt(fmax(fmax(beside_variance(s, &b), classes_variance(s)), 0));
    for (size_t p = 0; p < s->n_classes; p++) { /* what a class has too much, these lack */
        double power_w = s->beta[p] * s->scale[p], part = column_time_s(s, p) / s->r->sum_s;
        double woken = NRG_WOKEN_OFF * woken_w(s->r, s->r->class_of[s->index[p]]);
        half_w += (blurred_w(s, p, power_w) + result->left_over * power_w + woken) * part;
    }
    for (size_t i = 0; i <= NRG_DOUBT_FALL; i++)
        if (s->drift[i].untold > 0)
            half_w += s->drift[i].untold * fabs(beside_sum(s, &b, s->drift[i].moved));
    for (size_t kind = 0; kind < NRG_BESIDE; kind++) {
        double by_held_w = 0;
        for (size_t i = 0; i < b.n; i++)
            by_held_w += b.weight[i] * nrg_solver_by_held_w(s, kind, b.p[i]);
        half_w += fabs(by_held_w);
    }
    const struct nrg_regress_class *others = &result->classes[s->r->options.others_class];
    double others_w = others->power_w * others->time_s / s->r->sum_s;
    result->beside_w = beside_sum(s, &b, s->beta) + nrg_idle_walk_mean_w(&s->walk.course);
    result->beside_idle_w = result->beside_w - (isfinite(others_w) ? others_w : 0);
    result->beside_half_w = half_w;
}

/* What is left of a row is the rounding of its reading, or of a counter's two. */
static bool only_rounding(const struct nrg_regress *r)
{
    double step =
        r->options.timeline->is_gauge ? r->quantum : M_SQRT2 * r->options.channel->resolution;
    return r->prior && r->sum_e2 < ROUNDED * step * step / 12 * (double)r->row;
}

static void set_whole(const struct nrg_solver *s, struct nrg_regress_result *result)
{
    const struct nrg_regress *r = s->r;
    double left = s->left * s->freedom;
    result->t = nrg_student_half(r->options.confidence, s->freedom);
    result->intervals = r->row;
    double curved = nrg_solver_curved_part(s),
           waits = s->idle_by_rows * hypot(curved, nrg_solver_misplaced_part(s, true));
    result->left_over = left_over(s) + unplaced_part(s, unplaced_power_w(s)) + waits;
    result->to_neighbours = hypot(curved, nrg_solver_misplaced_part(s, false)) - waits;
    result->window = r->options.lag == NRG_LAG_AUTO && nrg_regress_sees_window(r);
    result->lag_s = strcmp(r->lag_source, "none") ? nrg_kernel_lag_s(&r->kernel) : 0;
    memcpy(result->lag_source, r->lag_source, sizeof result->lag_source);
    result->only_rounding = only_rounding(r);
    result->others_held = s->crowded;
    result->others_steady = !s->crowded && s->held_off_w[NRG_OTHERS] > 0;
    if (r->prior && r->sum_y2 > 0)
        result->residual = sqrt(r->sum_e2 / r->sum_y2);
    else
        result->residual = s->sum.yy > 0 ? sqrt(left / s->sum.yy) : 0;
}

/* What others had of what was drawn in waits is theirs, by their CPU time, and so is half of what
 * they may have where they slow the program down. */
static void give_taken(const struct nrg_solver *s, struct nrg_regress_result *result)
{
    const struct nrg_regress *r = s->r;
    struct nrg_regress_class *others = &result->classes[r->options.others_class];
    double taken_s = 0, slowed_j = 0;
    for (size_t p = 0; r->options.awake && p < s->n_classes; p++)
        taken_s += r->awake_taken * r->options.awake[s->index[p]] * column_time_s(s, p);
    for (size_t p = 0; p < s->n_classes; p++)
        slowed_j += slowed_w(s, p) * column_time_s(s, p);
    if (others->time_s > taken_s && taken_s > 0)
        others->power_w += s->awake_w * taken_s / others->time_s;
    if (slowed_j > 0 && others->time_s > 0)
        others->power_w += slowed_j / others->time_s;
}

static int make_room(const struct nrg_solver *s, struct nrg_regress_result *result)
{
    size_t n = s->r->options.n_classes;
    result->classes = nrg_calloc(n + 1, sizeof *result->classes);
    result->covariance = nrg_calloc(n * n + 1, sizeof *result->covariance);
    result->idle_covariance = s->idle ? nrg_calloc(n + 1, sizeof *result->idle_covariance) : NULL;
    if (!result->classes || !result->covariance || (s->idle && !result->idle_covariance))
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        result->classes[i] =
            (struct nrg_regress_class){.power_w = NAN, .low_w = NAN, .high_w = NAN, .group = i};
    return 0;
}

int nrg_regress_make_result(const struct nrg_regress *r, struct nrg_regress_result *result)
{
    struct nrg_solver s;
    int rc = nrg_solver_init(&s, r);
    if (!rc)
        rc = solve_all(&s);
    if (!rc)
        rc = make_room(&s, result);
    if (!rc) {
        set_whole(&s, result);
        set_idle(&s, result);
        set_drift(&s, result);
        set_classes(&s, result);
        set_beside(&s, result);
        give_taken(&s, result);
    }
    if (rc)
        nrg_regress_result_release(result);
    nrg_solver_release(&s);
    return rc;
}

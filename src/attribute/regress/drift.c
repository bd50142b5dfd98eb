/*
 * Whether idle power drifted. Where the load hardly changes from row to row, idle power is found by
 * going back from there to no load at all, and what is not known of the load then looks like idle
 * power that is not where it was measured. So that idle stayed where it was, and that it drifted,
 * are two explanations: each counts by how likely it makes the readings, and where that does not
 * decide, intervals hold both. The same for a drift that is not straight: a machine that warms up
 * comes to a new level, fast at first.
 */
#include <math.h>

#include "attribute/regress/internal.h"

#define LEAST_KEPT 1e-3
#define STRAIGHT   3   /* log odds before the readings that a drift is not bent */
#define BEND_OFF   0.1 /* of the bend: found on simulated machines */
#define LEAST_IDLE 0.1 /* of the power of a baseline in which others were busy */

/* Of idle power, without what others had in the baseline. */
static double idle_part(const struct nrg_regress *r)
{
    const struct nrg_regress_options *o = &r->options;
    uint32_t column = o->idle_busy > 0 ? r->column_of[o->others_class] : 0;
    double others_w = column && r->prior && column < r->n_prior ? r->prior[column] : 0;
    double idle = o->idle_w > 0 ? 1 - others_w * o->idle_busy / o->idle_w : 1;
    return fmax(idle, LEAST_IDLE);
}

double nrg_regress_idle_deviation_w(const struct nrg_regress *r, size_t column)
{
    const struct nrg_regress_options *o = &r->options;
    if (column == NRG_COLUMN_IDLE_OFF)
        return o->idle_error_w;
    double all_w = o->idle_shape_w[column - NRG_COLUMN_IDLE_SHAPES];
    return all_w > 0 ? all_w * idle_part(r) : 0;
}

/* A machine that is known to have warmed up did so fast at first. */
static void expect_bend(const struct nrg_regress *r, struct nrg_gram *sum)
{
    size_t column = NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_BEND;
    double w = nrg_regress_idle_deviation_w(r, column), bent_w = r->options.idle_bent_w;
    if (w > 0 && sum->a[nrg_packed(column, column)] > 0) {
        sum->b[column] += bent_w / (w * w);
        sum->yy += bent_w * bent_w / (w * w);
    }
}

/* Idle power and its shapes where the run ends are what was seen after it. */
void nrg_regress_anchor(const struct nrg_regress *r, struct nrg_gram *sum)
{
    const struct nrg_regress_options *o = &r->options;
    expect_bend(r, sum);
    double error_w = sqrt(2) * o->idle_error_w, x[NRG_COLUMN_IDLE_OFF + 1] = {0};
    if (!o->seen_twice || !(error_w > 0))
        return;
    x[NRG_COLUMN_IDLE_OFF] = 1;
    x[NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_LINE] = 1;
    x[NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_HEAT] = o->course.heat ? o->course.heat->after : 0;
    for (size_t i = NRG_COLUMN_IDLE_SHAPES; i <= NRG_COLUMN_IDLE_OFF; i++) {
        if (!(sum->a[nrg_packed(i, i)] > 0))
            continue;
        sum->b[i] += x[i] * o->idle_after_w / (error_w * error_w);
        for (size_t k = NRG_COLUMN_IDLE_SHAPES; k <= i; k++)
            if (sum->a[nrg_packed(k, k)] > 0)
                sum->a[nrg_packed(i, k)] += x[i] * x[k] / (error_w * error_w);
    }
    sum->yy += o->idle_after_w * o->idle_after_w / (error_w * error_w);
}

/* When in their calls threads waited is not known, which draws powers towards one another: how much
 * power, in the mean, may be missing from some of them. */
static double blur_w(const struct nrg_solver *s)
{
    double mean_w = nrg_solver_mean_power(s), sum = 0;
    for (size_t p = 0; p < s->n_classes; p++) {
        double off_j = nrg_regress_waited(s->r, s->index[p]) * (s->beta[p] * s->scale[p] - mean_w) *
                       s->r->time_s[s->index[p]];
        sum += off_j * off_j;
    }
    return s->r->sum_s > 0 ? sqrt(sum) / s->r->sum_s : 0;
}

/* Probability that it went along a shape, whose column is p; `against`: log odds before. */
static double probability(const struct nrg_solver *s, size_t p, double drift_w, double against)
{
    double blur = 2 * blur_w(s), drift2 = drift_w * drift_w;
    double seen = s->free_beta[p] * s->scale[p];
    double v = nrg_solver_covariance(s, p, p) + blur * blur;
    double odds = (seen * seen / v - seen * seen / (v + drift2) - log1p(drift2 / v)) / 2;
    return 1 / (1 + exp(against - odds));
}

/* Where a column stands; m: it is not solved for. */
static size_t place_of(const struct nrg_solver *s, size_t column)
{
    size_t p = s->n_bound;
    while (p < s->m && (s->index[p] != column || s->dependent[p]))
        p++;
    return p;
}

/* What no shape has of the course: as the last sine is large, those after it are not nothing. In
 * the mean of the run they look like idle power that was off. */
static void doubt_rest(struct nrg_solver *s)
{
    size_t last = NRG_IDLE_HEAT - 1, p = place_of(s, NRG_COLUMN_IDLE_SHAPES + last);
    size_t off = place_of(s, NRG_COLUMN_IDLE_OFF);
    double own = off < s->m ? s->inverse[nrg_packed(off, off)] : 0;
    if (p == s->m || !(own > 0))
        return;
    /* Where readings tell idle power from load by themselves, they do so whatever its course. */
    double told = sqrt(nrg_solver_covariance(s, off, off)) / s->r->options.idle_error_w;
    double rest_w = fmin(told, 1) * fabs(s->free_beta[p] * s->scale[p]);
    for (size_t q = 0; q < s->m; q++)
        s->drift[last].moved[q] = s->inverse[nrg_packed(off, q)] / own * rest_w / s->scale[off];
    s->drift[last].untold = 1;
}

static int judge_shape(struct nrg_solver *s, size_t shape, double against)
{
    size_t column = NRG_COLUMN_IDLE_SHAPES + shape, p = place_of(s, column);
    double drift_w = nrg_regress_idle_deviation_w(s->r, column);
    if (p == s->m || !(drift_w > 0))
        return 0;
    double drifted = fmax(probability(s, p, drift_w, against), LEAST_KEPT), other = 1 - drifted;
    s->drift[shape].untold = fmin(2 * sqrt(drifted * other), fmax(drifted, other));
    nrg_solver_narrow(s, s->covariance, p, drifted); /* not known as far as there was one */
    return nrg_solver_draw(s, p, drifted, s->drift[shape].moved);
}

/* Idle power is known to have changed: a load that changes as the machine warms up looks much the
 * same as the bend, of which a part may be that. */
static int doubt_bend(struct nrg_solver *s)
{
    size_t p = place_of(s, NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_BEND);
    if (p == s->m)
        return 0;
    s->drift[NRG_IDLE_BEND].untold = BEND_OFF;
    return nrg_solver_draw(s, p, 1, s->drift[NRG_IDLE_BEND].moved);
}

/* Where a machine warms up evenly, sines come with the bend: they are not judged by themselves. */
int nrg_solver_judge_drift(struct nrg_solver *s)
{
    bool known = s->r->options.idle_bent_w != 0;
    int rc = known ? doubt_bend(s) : judge_shape(s, NRG_IDLE_BEND, STRAIGHT);
    if (!rc)
        rc = judge_shape(s, NRG_IDLE_LINE, 0);
    if (!rc)
        rc = judge_shape(s, NRG_IDLE_HEAT, 0);
    if (!rc)
        doubt_rest(s);
    return rc;
}

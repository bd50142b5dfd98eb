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
#define LEAST_IDLE 0.1 /* of the power of a baseline in which others were busy */

double nrg_regress_drift_w(const struct nrg_regress *r, double all_w)
{
    const struct nrg_regress_options *o = &r->options;
    uint32_t column = o->idle_busy > 0 ? r->column_of[o->others_class] : 0;
    double others_w = column && r->prior && column < r->n_prior ? r->prior[column] : 0;
    double idle = o->idle_w > 0 ? 1 - others_w * o->idle_busy / o->idle_w : 1;
    return all_w * fmax(idle, LEAST_IDLE);
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

/* Probability that it drifted, or bent; `against`: log odds before. */
static double probability(const struct nrg_solver *s, size_t p, double all_w, double against)
{
    const struct nrg_regress_options *o = &s->r->options;
    double blur = (o->idle_begins ? 2 : 1) * blur_w(s), drift_w = nrg_regress_drift_w(s->r, all_w),
           drift2 = drift_w * drift_w;
    double seen = s->free_beta[p] * s->scale[p];
    double v = nrg_solver_covariance(s, p, p) + blur * blur;
    double odds = (seen * seen / v - seen * seen / (v + drift2) - log1p(drift2 / v)) / 2;
    return 1 / (1 + exp(against - odds));
}

static int judge_column(struct nrg_solver *s, size_t which, size_t column, double all_w)
{
    size_t p = s->n_bound;
    while (p < s->m && s->index[p] != column)
        p++;
    if (p == s->m || s->dependent[p] || !(all_w > 0))
        return 0;
    double against = column == NRG_COLUMN_BEND_IDLE ? STRAIGHT : 0;
    double drifted = fmax(probability(s, p, all_w, against), LEAST_KEPT), other = 1 - drifted;
    s->drift[which].untold = fmin(2 * sqrt(drifted * other), fmax(drifted, other));
    nrg_solver_narrow(s, s->covariance, p, drifted); /* not known as far as there was one */
    return nrg_solver_draw(s, p, drifted, s->drift[which].moved);
}

int nrg_solver_judge_drift(struct nrg_solver *s)
{
    const struct nrg_regress_options *o = &s->r->options;
    int rc = judge_column(s, 1, NRG_COLUMN_BEND_IDLE, o->idle_bend_w);
    return rc ? rc : judge_column(s, 0, NRG_COLUMN_DRIFT_IDLE, o->idle_drift_w);
}

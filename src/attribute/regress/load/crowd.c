/*
 * Others' watts where a baseline had them in it and CPUs are hardly ever idle. Then idle power and
 * others are always there together: others run whenever the workload does not, so that readings
 * tell the difference between what both draw, and neither by itself. What seems to tell them apart
 * are errors of CPU times, which make others' watts too small, and sure to be so.
 *
 * How much is told is known from the CPUs' idle time (cells/full.c). A column that scatters by more
 * than that is made of errors: of its power, the part r = told / seen is found, and rows know the
 * power to r² of what they seem to (regression dilution). Besides, a CPU second of others draws
 * something between nothing and all of the baseline: the middle of that is the guess, as it is of
 * idle power that nobody measured (idle.c). The column is held to what both say, and what that may
 * be off by is in the intervals of all classes, with its sign.
 */
#include <math.h>

#include "attribute/regress/internal.h"
#include "base/stats.h"

#define HELD 1e6 /* times as sure as what is known of it */

static size_t place_of_others(const struct nrg_solver *s)
{
    uint32_t column = s->r->column_of[s->r->options.others_class];
    size_t p = 0;
    while (p < s->n_classes && (!column || s->index[p] != column))
        p++;
    return p;
}

/* What is known of a power: how well (the inverse of its variance), and that times the power. */
struct known {
    double weight, sum;
};

/* Others draw something between nothing and all of the baseline. */
static struct known by_range(const struct nrg_solver *s)
{
    double most_w = s->r->options.others_most_w, weight = s->left * 12 / (most_w * most_w);
    return (struct known){weight, weight * most_w / 2};
}

/* Baselines in which others were not as busy tell it, as far as idle power did not drift. */
static struct known by_baselines(const struct nrg_solver *s)
{
    const struct nrg_regress_options *o = &s->r->options;
    double drift_w = nrg_regress_idle_deviation_w(s->r, NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_LINE);
    double off_w = hypot(sqrt(2) * o->idle_error_w, drift_w), more = o->busy_after;
    if (!o->seen_twice || !(off_w > 0))
        return (struct known){0, 0};
    return (struct known){more * more / (off_w * off_w), more * o->idle_after_w / (off_w * off_w)};
}

/* What rows know of it, of which CPUs that were idle tell so much; all of it: they know it. */
static struct known by_rows(struct known seen, double told)
{
    double part = seen.weight > 0 ? fmin(told / seen.weight, 1) : 0;
    return (struct known){seen.weight * part * part, seen.sum * part};
}

/* What idle CPUs tell of others' power at most: each cell is known as well as a row is. */
static double told_by_idle(const struct nrg_solver *s)
{
    return s->r->options.idle_told_s2 * s->sum.weight / (double)s->sum.rows;
}

static void hold(struct nrg_solver *s, size_t column, struct known known)
{
    double power_w = fmin(fmax(known.sum / known.weight, 0), s->r->options.others_most_w);
    double weight = HELD * known.weight;
    s->sum.a[nrg_packed(column, column)] += weight;
    s->sum.b[column] += weight * power_w;
    s->sum.yy += weight * power_w * power_w;
    s->others_off_w =
        nrg_student_half(s->r->options.confidence, s->freedom) * sqrt(s->left / known.weight);
}

bool nrg_solver_hold_others(struct nrg_solver *s)
{
    size_t p = place_of_others(s);
    if (p == s->n_classes || s->dependent[p] || !(s->r->options.others_most_w > 0) ||
        !(s->left > 0))
        return false;
    double weight = 1 / (s->inverse[nrg_packed(p, p)] * s->scale[p] * s->scale[p]);
    struct known range = by_range(s), baselines = by_baselines(s);
    struct known seen = {fmax(weight - baselines.weight, 0),
                         weight * s->free_beta[p] * s->scale[p] - baselines.sum};
    double told = told_by_idle(s);
    if (told >= seen.weight)
        return false;
    struct known rows = by_rows(seen, told);
    hold(s, s->index[p],
         (struct known){range.weight + baselines.weight + rows.weight,
                        range.sum + baselines.sum + rows.sum});
    return true;
}

double nrg_solver_by_others_w(const struct nrg_solver *s, size_t p)
{
    size_t others = place_of_others(s);
    if (!(s->others_off_w > 0) || others == s->n_classes)
        return 0;
    double own = s->inverse[nrg_packed(others, others)] * s->scale[others];
    return own > 0 ? s->others_off_w * s->inverse[nrg_packed(others, p)] * s->scale[p] / own : 0;
}

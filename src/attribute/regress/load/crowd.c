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
 *
 * The same where others were not in the baseline, but have as many CPUs in each cell, beside a
 * workload that never rests: a service that runs as long as it does. Then a CPU second of others is
 * taken to draw half to twice as much as one of the workload's, as energy/program.c has it.
 */
#include <math.h>

#include "attribute/regress/internal.h"
#include "base/stats.h"

#define OTHERS_WATTS 2.0  /* times, or a part of, the workload's watts per CPU second */
#define LEAST_CPUS   0.02 /* of others: less does not matter */
#define SURELY       0.1  /* of what errors of CPU times may be: less is nothing else */
#define TICK_S       4e-3 /* of most kernels: CPU time is late by it, at both ends of a cell */

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

/* Of the square of others' column, so much may be that CPU times are late. */
static double late_part(const struct nrg_solver *s, double cpus)
{
    double cell_s = s->r->sum_s / (double)s->r->options.n_cells;
    return 2 * TICK_S * TICK_S / (3 * cell_s * cell_s * cpus);
}

/* What a CPU second of others draws, if it is so many times one of the workload's. */
static double others_watts(const struct nrg_solver *s, size_t p, double times)
{
    double energy_j = 0, own_s = 0, others_s = s->r->time_s[s->index[p]];
    for (size_t q = 0; q < s->n_classes; q++) {
        energy_j += s->free_beta[q] * s->scale[q] * s->r->time_s[s->index[q]];
        own_s += q == p ? 0 : s->r->time_s[s->index[q]];
    }
    return fmax(energy_j, 0) / (others_s + own_s / times);
}

bool nrg_solver_hold_others(struct nrg_solver *s)
{
    size_t p = nrg_solver_place_of(s, NRG_OTHERS);
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
    double all = range.weight + baselines.weight + rows.weight;
    double power_w = (range.sum + baselines.sum + rows.sum) / all;
    nrg_solver_hold(s, NRG_OTHERS, fmin(fmax(power_w, 0), s->r->options.others_most_w),
                    s->left / all);
    return true;
}

/* What tells others from the rest of the columns is not far below that. */
static bool is_told(const struct nrg_solver *s, size_t p, double cpus)
{
    bool alone = s->root[p] == p && s->next[p] == SIZE_MAX;
    return alone && !s->dependent[p] &&
           1 / s->inverse[nrg_packed(p, p)] > SURELY * late_part(s, cpus);
}

bool nrg_solver_hold_steady(struct nrg_solver *s)
{
    size_t p = nrg_solver_place_of(s, NRG_OTHERS);
    double cpus = p < s->n_classes ? s->r->time_s[s->index[p]] / s->r->sum_s : 0;
    if (!(cpus > LEAST_CPUS) || s->crowded || !s->r->options.n_cells || is_told(s, p, cpus))
        return false;
    double most_w = others_watts(s, p, OTHERS_WATTS);
    double least_w = others_watts(s, p, 1 / OTHERS_WATTS);
    double t = nrg_student_half(s->r->options.confidence, s->freedom);
    double off_w = (most_w - least_w) / 2 / t;
    if (off_w > 0)
        nrg_solver_hold(s, NRG_OTHERS, (most_w + least_w) / 2, off_w * off_w);
    return off_w > 0;
}

/*
 * How far idle power is from what a baseline said, by the cells in which the program rests while
 * others run: what they drew less what others did. When in a cell others ran is not known, nor to
 * which of two cells a tick of theirs belongs, so that single cells are off by a watt; but not
 * always to the same side. Each rest is one figure, and how far they are from a line over time is
 * what they are off by. As long as that line does not rise or fall by more than by chance, idle
 * power did not drift within the run, and is off by what it says in the middle.
 */
#include "attribute/idle_rests.h"

#include <math.h>

#include "attribute/recorder.h"
#include "base/stats.h"

#define LEAST_RESTS 4    /* of a run: a line through three of them says little of its error */
#define RESTING     0.01 /* CPUs: as little as a program that waits uses */
#define CONFIDENCE  0.95

/* Sums over rests, for a line through what each drew beyond idle power, over time from the middle
 * of the run on. Each counts by how well it is known. */
struct rests {
    double n, weight, sum_t, sum_t2, sum_w, sum_wt, squares;
};

static double own_s(const struct nrg_cells *c, size_t k)
{
    return fmax(c->busy_s[k] - c->other_s[k], 0);
}

static bool is_rest(const struct nrg_cells *c, size_t k)
{
    return !c->outside[k] && own_s(c, k) < RESTING * nrg_cells_length_s(c, k);
}

/* What a cell drew beyond idle power, others and the little that the program did. */
static double left_j(const struct nrg_engine *e, const struct nrg_part *part, size_t k)
{
    double w = part->most_w[k] - part->out->idle_w - (double)part->level[k].all_w;
    return w * nrg_cells_length_s(&e->cells, k) - own_s(&e->cells, k) * nrg_cpu_watts(e, part);
}

static double middle_s(const struct nrg_cells *c, size_t from, size_t to)
{
    double run = (double)(c->begin_ns[0] / 2 + c->begin_ns[c->n] / 2);
    return ((double)(c->begin_ns[from] / 2 + c->begin_ns[to] / 2) - run) * 1e-9;
}

/* What a rest's energy is off by where it begins or ends, between cell k and the next: others'
 * ticks, of which one may be in either, and a counter's update. */
static double edge_j2(const struct nrg_part *part, size_t k)
{
    double ticks_j = fmax((double)part->level[k].edge_j, (double)part->level[k + 1].edge_j);
    double phase_j = part->most_w[k + 1] * part->update_s;
    return ticks_j * ticks_j + phase_j * phase_j / 12;
}

static void add_rest(struct rests *rests, double w, double variance, double t)
{
    double weight = 1 / variance;
    rests->n++;
    rests->weight += weight;
    rests->sum_t += weight * t;
    rests->sum_t2 += weight * t * t;
    rests->sum_w += weight * w;
    rests->sum_wt += weight * w * t;
    rests->squares += weight * w * w;
}

/* One rest, without its first and last cell: a counter shows in the one what was used before it,
 * and CPU times that are a tick old hide in the other that it is over. Returns where it ends. */
static size_t look_at_rest(const struct nrg_engine *e, const struct nrg_part *part, size_t first,
                           struct rests *rests)
{
    const struct nrg_cells *c = &e->cells;
    size_t end = first;
    double s = 0, j = 0;
    while (end < c->n && is_rest(c, end))
        end++;
    for (size_t k = first + 1; k + 1 < end; k++) {
        s += nrg_cells_length_s(c, k);
        j += left_j(e, part, k);
    }
    double variance_j2 = s > 0 ? edge_j2(part, first) + edge_j2(part, end - 2) : 0;
    if (variance_j2 > 0)
        add_rest(rests, j / s, variance_j2 / (s * s), middle_s(c, first + 1, end - 1));
    return end;
}

static struct rests find_rests(const struct nrg_engine *e, const struct nrg_part *part)
{
    struct rests rests = {0};
    for (size_t k = 0; k < e->cells.n;)
        k = is_rest(&e->cells, k) ? look_at_rest(e, part, k, &rests) : k + 1;
    return rests;
}

double nrg_part_off_in_rests_w(const struct nrg_engine *e, const struct nrg_part *part)
{
    const struct nrg_cells *c = &e->cells;
    if (!part->level || !c->busy_s || !c->other_s || part->pool || part->tl->is_gauge)
        return INFINITY;
    struct rests r = find_rests(e, part);
    double det = r.weight * r.sum_t2 - r.sum_t * r.sum_t, freedom = r.n - 2;
    if (r.n < LEAST_RESTS || !(det > 0))
        return INFINITY;
    double slope = (r.weight * r.sum_wt - r.sum_t * r.sum_w) / det;
    double off_w = (r.sum_w - slope * r.sum_t) / r.weight; /* in the middle of the run */
    double left = fmax(r.squares - off_w * r.sum_w - slope * r.sum_wt, 0) / freedom;
    double run_s = (double)(c->begin_ns[c->n] - c->begin_ns[0]) * 1e-9;
    double slope_error = sqrt(r.weight / det), off_error_w = sqrt(r.sum_t2 / det);
    /* At least what ticks and updates make of them. */
    double wide = fmax(e->z, nrg_student_half(CONFIDENCE, freedom) * sqrt(left));
    if (fabs(slope) > wide * slope_error)
        return INFINITY;
    return fabs(off_w) + wide * hypot(off_error_w, slope_error * run_s / sqrt(12));
}

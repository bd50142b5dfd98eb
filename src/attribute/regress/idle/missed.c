/*
 * What a walk of idle power (walk.c) misses: it goes straight within a block of rows, and idle
 * power bends there. Wherever it is told from the load, beside a baseline and where a load stops or
 * starts, it is then off by what a line misses, and the load by as much on the other side.
 */
#include <math.h>
#include <string.h>

#include "attribute/regress/internal.h"

/* Where idle power is at the borders of blocks, but for what it is off by everywhere. */
static void find_course(const struct nrg_solver *s, double *course_w)
{
    const struct nrg_regress_options *o = &s->r->options;
    for (size_t g = 0; g <= s->walk.blocks; g++) {
        double shapes[NRG_IDLE_SHAPES];
        int64_t t_ns =
            o->begin_ns + (int64_t)(s->walk.course.at[g] * (double)(o->end_ns - o->begin_ns));
        nrg_idle_shapes(&o->course, t_ns, shapes);
        course_w[g] = s->walk.course.w[g];
        for (size_t p = s->n_bound; p < s->m; p++) {
            size_t shape = s->index[p] - NRG_COLUMN_IDLE_SHAPES;
            if (shape < NRG_IDLE_SHAPES)
                course_w[g] += s->free_beta[p] * s->scale[p] * shapes[shape];
        }
    }
}

/* How much it bends within a block, in watts per square of the run; and how far it goes from block
 * to block, as the variance of a walk over the run. */
static double bend_w(const struct nrg_solver *s, double *walked_w2)
{
    const double *at = s->walk.course.at;
    double w[NRG_REGRESS_BLOCKS + 1], sum = 0;
    find_course(s, w);
    *walked_w2 = 0;
    for (size_t g = 0; g < s->walk.blocks; g++)
        *walked_w2 += (w[g + 1] - w[g]) * (w[g + 1] - w[g]);
    for (size_t g = 1; g < s->walk.blocks; g++) {
        double before = (w[g] - w[g - 1]) / (at[g] - at[g - 1]);
        double after = (w[g + 1] - w[g]) / (at[g + 1] - at[g]);
        double bend = 2 * (after - before) / (at[g + 1] - at[g - 1]);
        sum += bend * bend;
    }
    return sqrt(sum / (double)(s->walk.blocks - 1));
}

/*
 * Where a baseline holds it, idle power is carried on from the block beside along a line, and it
 * bends: by how much it is then off there, from what a line through the block's rows misses.
 */
static double missed_at_end_w(const struct nrg_solver *s, double bend)
{
    const struct nrg_walk *w = &s->walk;
    bool after = s->r->options.course.seen == NRG_IDLE_AFTER;
    double near = after ? 0 : w->rows_at,
           far = after ? 1 - w->course.at[w->blocks - 1] : w->course.at[1];
    double middle = (near + far) / 2, half = (far - near) / 2;
    return bend / 2 * (middle * middle - half * half / 3);
}

/* The same where a load stops or starts: the blocks before and after it go on up to there. */
static double missed_inside_w(const struct nrg_solver *s, double bend)
{
    double half = 0.5 / (double)s->walk.blocks;
    return bend / 2 * half * half * 2 / 3 * M_SQRT2;
}

/* What a block's rows see of it when idle power is off and classes make up for that. */
static double seen_by(const struct nrg_solver *s, const struct nrg_gram *block, const double *u)
{
    double sum = 0;
    for (size_t p = 0; p < s->m; p++)
        for (size_t q = 0; u[p] != 0 && q < s->m; q++)
            sum += u[q] != 0 && s->index[p] < block->n && s->index[q] < block->n
                       ? u[p] * u[q] * block->a[nrg_packed(s->index[p], s->index[q])]
                       : 0;
    return sum;
}

/* From the baseline to what is looked at, as a part of that. */
static double way(const struct nrg_solver *s)
{
    const struct nrg_regress_options *o = &s->r->options;
    int64_t way_ns = o->course.seen == NRG_IDLE_AFTER ? o->course.after_ns : o->course.before_ns;
    return fmax((double)way_ns / (double)(o->end_ns - o->begin_ns), 0);
}

/* The more places tell idle power from load, the less one counts: blocks, and the baseline. */
static double missed_w2(const struct nrg_solver *s, const double *u)
{
    double walked_w2, bend = bend_w(s, &walked_w2);
    double w = s->r->options.idle_error_w, sum = 1 / (w * w);
    double missed = hypot(missed_at_end_w(s, bend), sqrt(walked_w2 * way(s))) * sum;
    double square = missed * missed;
    for (size_t g = 0; g < s->walk.blocks; g++) {
        double told = seen_by(s, &s->r->block[g], u);
        sum += told;
        missed = missed_inside_w(s, bend) * told;
        square += missed * missed;
    }
    return square / (sum * sum);
}

/* What classes draw less where idle power is 1 W more all the time; per column. */
static void make_up(struct nrg_solver *s, size_t off, double *u)
{
    nrg_solver_fill(s, &s->sum, s->factor, u); /* classes are the first columns */
    memset(u, 0, s->m * sizeof *u);
    for (size_t p = 0; p < s->n_classes; p++)
        u[p] = -s->factor[nrg_packed(p, off)] / s->scale[off];
    nrg_gram_factor(s->factor, s->n_classes, NULL, NULL, false);
    nrg_gram_solve(s->factor, s->n_classes, u, false);
    for (size_t p = 0; p < s->n_classes; p++)
        u[p] *= s->scale[p];
    u[off] = 1;
}

void nrg_solver_miss_ends(struct nrg_solver *s)
{
    size_t off = s->n_bound;
    double *u = s->work;
    while (off < s->m && s->index[off] != NRG_COLUMN_IDLE_OFF)
        off++;
    if (off == s->m)
        return;
    make_up(s, off, u);
    double missed2 = missed_w2(s, u);
    for (size_t p = 0; p < s->m; p++)
        for (size_t q = 0; q <= p; q++)
            s->covariance[nrg_packed(p, q)] += missed2 * u[p] * u[q] / (s->scale[p] * s->scale[q]);
}

/*
 * What is common to the calls of all classes. How much of a call's energy comes with the call and
 * not with its time has a column per class (fit.h), which readings can't tell well of short
 * classes. But a program's calls are alike: where a call uses the same whatever it lasts that is so
 * of most of them, and where threads wait it depends on how a class's power compares with that of
 * its neighbours. So the columns of calls follow a line over the powers of their classes, and each
 * is drawn to that line as far as the others lie on it.
 */
#include <math.h>

#include "attribute/regress/internal.h"

#define LEAST_CLASSES 5
#define LEAST_OFF     0.05 /* of the mean power, that a class may be off the line */
#define TURNS         8

/* Sums over classes with a column of calls; x: power, y: what is the calls', both in W. */
struct line {
    double n, at_0, slope, off2;
};

/* Position of the calls of class p among the solved columns; m: none. */
static size_t calls_of(const struct nrg_solver *s, size_t p)
{
    uint32_t column = s->r->calls_column_of[s->r->class_of[s->index[p]]];
    size_t q = s->n_bound;
    while (q < s->m && (!column || s->index[q] != column))
        q++;
    return q < s->m && !s->dependent[p] && !s->dependent[q] ? q : s->m;
}

static double variance_w2(const struct nrg_solver *s, size_t p)
{
    return s->left * s->inverse[nrg_packed(p, p)] * s->scale[p] * s->scale[p];
}

/* One turn of weighted least squares, and of how far classes are off it beyond their errors. */
static void fit_line(const struct nrg_solver *s, struct line *line, double least2)
{
    double w0 = 0, wx = 0, wy = 0, wxx = 0, wxy = 0, beyond = 0, weight = 0;
    line->n = 0;
    for (size_t p = 0; p < s->n_classes; p++) {
        size_t q = calls_of(s, p);
        if (q == s->m)
            continue;
        double x = s->free_beta[p] * s->scale[p], y = s->free_beta[q] * s->scale[q];
        double own = variance_w2(s, q) + line->slope * line->slope * variance_w2(s, p);
        double w = 1 / (own + line->off2), e = y - line->at_0 - line->slope * x;
        line->n++;
        w0 += w;
        wx += w * x;
        wy += w * y;
        wxx += w * x * x;
        wxy += w * x * y;
        beyond += w * w * (e * e - own);
        weight += w * w;
    }
    double det = w0 * wxx - wx * wx;
    if (!(det > 1e-9 * w0 * wxx))
        return;
    line->off2 = fmax(beyond / weight, least2);
    line->slope = (w0 * wxy - wx * wy) / det;
    line->at_0 = (wy - line->slope * wx) / w0;
}

/* As a row: calls - slope * power = at_0. */
static void add_row(struct nrg_solver *s, const struct line *line, size_t p, size_t q)
{
    double w = s->left / line->off2, k = line->slope;
    size_t i = s->index[p], j = s->index[q];
    s->sum.a[nrg_packed(j, j)] += w;
    s->sum.a[nrg_packed(i, j)] -= w * k;
    s->sum.a[nrg_packed(i, i)] += w * k * k;
    s->sum.b[j] += w * line->at_0;
    s->sum.b[i] -= w * k * line->at_0;
    s->sum.yy += w * line->at_0 * line->at_0;
}

bool nrg_solver_join_calls(struct nrg_solver *s)
{
    double least_w = LEAST_OFF * nrg_solver_mean_power(s);
    struct line line = {.off2 = least_w * least_w};
    if (!s->r->options.calls || !(least_w > 0) || !(s->left > 0))
        return false;
    line.off2 *= 100;
    for (int turn = 0; turn < TURNS; turn++)
        fit_line(s, &line, least_w * least_w);
    if (line.n < LEAST_CLASSES)
        return false;
    for (size_t p = 0; p < s->n_classes; p++) {
        size_t q = calls_of(s, p);
        if (q < s->m)
            add_row(s, &line, p, q);
    }
    return true;
}

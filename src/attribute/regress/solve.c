/*
 * The solution. Powers are not negative; the same is solved without that condition, because only
 * intervals around that solution cover the truth whatever it is.
 *
 * Classes that can't be told apart: a column that others explain, but for rounding of numbers and
 * of time stamps, makes one group with those that explain it. What a group used is known all the
 * same, as the sum is the same however it is split.
 */
#include "attribute/regress/internal.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define DEPENDENT    1e-9  /* of a column's square that is its own: less is rounding */
#define KNOWN_BEFORE 1e-13 /* the same of idle's error, which more than the readings says */
#define NOT_KNOWN    2.0   /* more than any column has */
#define STAMP_NOISE  4.0   /* so many times what rounding of time stamps explains: not its own */
#define WELL_KNOWN   0.3   /* deviation / mean power */
#define LEAST_SPREAD 0.3
#define WAITED       0.02 /* of its time: less is not known to be waiting */

void nrg_solver_release(struct nrg_solver *s)
{
    nrg_gram_release(&s->sum);
    nrg_arena_release(&s->memory);
}

/* What is known of idle power besides the readings. Rows weigh by the inverse of their variance. */
static void add_priors(struct nrg_solver *s)
{
    for (size_t i = NRG_COLUMN_AWAKE; i <= NRG_COLUMN_IDLE_OFF; i++) {
        double w = nrg_regress_idle_deviation_w(s->r, i), *a = &s->sum.a[nrg_packed(i, i)];
        if (w > 0 && *a > 0)
            *a += 1 / (w * w);
    }
    nrg_regress_anchor(s->r, &s->sum);
}

/* The first reading of a running average is off by as much as any other. */
static void add_start_prior(struct nrg_solver *s)
{
    const struct nrg_regress *r = s->r;
    double mean_w = r->sum_y / r->sum_s;
    double variance = r->noise.floor2 + r->noise.slope2 * mean_w * mean_w;
    double *a = &s->sum.a[nrg_packed(NRG_COLUMN_START, NRG_COLUMN_START)];
    if (*a > 0 && variance > 0)
        *a += 1 / variance;
}

/* Watts mostly go with the pace, by as much as that or twice: less is known of it before. */
static void add_pace_prior(struct nrg_solver *s)
{
    const struct nrg_regress *r = s->r;
    double idle_w = isnan(r->options.idle_w) ? 0 : r->options.idle_w;
    double mean_w = r->sum_y / r->sum_s - idle_w;
    double *a = &s->sum.a[nrg_packed(NRG_COLUMN_PACE, NRG_COLUMN_PACE)];
    if (*a > 0 && mean_w > 0)
        *a += 1 / (mean_w * mean_w);
}

/* Rows correct what CPU times say of where calls wait, as far as these leave it open. */
static void add_shape_prior(struct nrg_solver *s)
{
    const struct nrg_waits *w = &s->r->waits;
    double factor[NRG_WAIT_SHAPES * (NRG_WAIT_SHAPES + 1) / 2],
        known[sizeof factor / sizeof *factor];
    memcpy(factor, w->shape_error2, sizeof factor);
    if (!w->used || !(s->sum.a[nrg_packed(NRG_COLUMN_WAITS, NRG_COLUMN_WAITS)] > 0) ||
        nrg_gram_factor(factor, NRG_WAIT_SHAPES, NULL, NULL, false) < NRG_WAIT_SHAPES)
        return;
    nrg_gram_invert(factor, NRG_WAIT_SHAPES, known);
    for (size_t i = 0; i < NRG_WAIT_SHAPES; i++)
        for (size_t k = 0; k <= i; k++)
            s->sum.a[nrg_packed(NRG_COLUMN_WAITS + i, NRG_COLUMN_WAITS + k)] +=
                known[nrg_packed(i, k)];
}

int nrg_solver_init(struct nrg_solver *s, const struct nrg_regress *r)
{
    size_t n = r->n_columns, cells = n * (n + 1) / 2;
    *s = (struct nrg_solver){.r = r};
    int rc = nrg_gram_grow(&s->sum, n);
    for (size_t i = 0; !rc && i < r->n_blocks; i++)
        nrg_gram_join(&s->sum, &r->block[i]);
    if (!rc)
        add_priors(s);
    if (!rc)
        add_start_prior(s);
    if (!rc)
        add_pace_prior(s);
    if (!rc)
        add_shape_prior(s);
    if (!rc)
        nrg_solver_expect_places(s);
    if (!rc)
        nrg_solver_expect_within(s);
    size_t **counts[] = {&s->index, &s->root, &s->next};
    double **columns[] = {&s->scale, &s->floor, &s->beta, &s->free_beta, &s->ratio, &s->before};
    double **matrices[] = {&s->inverse, &s->factor, &s->covariance};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        *counts[i] = nrg_arena_array(&s->memory, n, sizeof **counts[i]);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        *columns[i] = nrg_arena_array(&s->memory, n, sizeof **columns[i]);
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        *matrices[i] = nrg_arena_array(&s->memory, cells, sizeof **matrices[i]);
    for (size_t i = 0; i <= NRG_DOUBT_AWAKE; i++)
        s->drift[i].moved = nrg_arena_array(&s->memory, n, sizeof *s->drift[i].moved);
    s->work = nrg_arena_array(&s->memory, 2 * n, sizeof *s->work);
    s->dependent = nrg_arena_array(&s->memory, n, sizeof *s->dependent);
    return rc || s->memory.failed ? -ENOMEM : 0;
}

/*
 * Rounded time stamps add variation to columns, which would draw their powers towards one another.
 * This is how much per edge of a slice. A gauge that averages sees a part of it in many rows, and
 * whitening adds rows up.
 */
static double edge_noise(const struct nrg_solver *s)
{
    const struct nrg_regress *r = s->r;
    const struct nrg_noise *noise = &r->noise;
    double grain_s = (double)r->grain_ns / 1e9, rows = (double)s->sum.rows;
    double square = grain_s * grain_s / 12 * s->sum.weight / rows,
           across = noise->theta - noise->phi;
    square *= 1 + across * across / (1 - noise->theta * noise->theta);
    if (r->options.timeline->is_gauge) {
        double h_s = r->sum_s / rows, memory_s = nrg_kernel_memory_s(&r->kernel);
        double seen_s = r->kernel.kind == NRG_KERNEL_EXP   ? 2 * memory_s
                        : r->kernel.kind == NRG_KERNEL_BOX ? memory_s
                                                           : h_s;
        square /= h_s * fmax(seen_s, h_s);
    }
    return r->grain_ns > 1 && rows > 0 ? square : 0;
}

static void pick_columns(struct nrg_solver *s, bool idle)
{
    s->edge = edge_noise(s);
    s->n_classes = nrg_regress_pick(s->r->is_calls, &s->sum, false, s->index, 0);
    s->n_bound =
        nrg_gram_pick(&s->sum, NRG_COLUMN_IDLE, NRG_COLUMN_IDLE + idle, s->index, s->n_classes);
    s->idle = s->n_bound > s->n_classes;
    s->m = nrg_gram_pick(&s->sum, 0, NRG_COLUMN_IDLE, s->index, s->n_bound);
    s->m = nrg_regress_pick(s->r->is_calls, &s->sum, true, s->index, s->m);
    for (size_t p = 0; p < s->m; p++) {
        size_t i = s->index[p];
        double edges = i < s->r->edges.n ? s->r->edges.a[nrg_packed(i, i)] : 0;
        s->scale[p] = 1 / sqrt(s->sum.a[nrg_packed(i, i)]);
        double known = s->idle_doubted ? NOT_KNOWN : KNOWN_BEFORE;
        double least = i == NRG_COLUMN_IDLE_OFF ? known : DEPENDENT;
        s->floor[p] = fmax(least, STAMP_NOISE * s->edge * edges * s->scale[p] * s->scale[p]);
        s->root[p] = p;
        s->next[p] = SIZE_MAX;
    }
}

static void fill_columns(const struct nrg_solver *s, const struct nrg_gram *from, double *a,
                         double *b)
{
    double *row = a;
    for (size_t p = 0; p < s->m; row += ++p) {
        size_t i = s->index[p];
        b[p] = i < from->n ? from->b[i] * s->scale[p] : 0;
        for (size_t q = 0; q <= p; q++) {
            size_t j = s->index[q];
            bool there = i < from->n && j < from->n;
            row[q] = there ? from->a[nrg_packed(i, j)] * s->scale[p] * s->scale[q] : 0;
        }
    }
}

static void take_edges(const struct nrg_solver *s, double part, double *a)
{
    const struct nrg_gram *edges = &s->r->edges;
    double *row = a;
    for (size_t p = 0; s->edge > 0 && p < s->m; row += ++p) {
        size_t i = s->index[p];
        for (size_t q = 0; i < edges->n && q <= p; q++)
            if (s->index[q] < edges->n)
                row[q] -= part * s->edge * edges->a[nrg_packed(i, s->index[q])] * s->scale[p] *
                          s->scale[q];
    }
}

void nrg_solver_fill(const struct nrg_solver *s, const struct nrg_gram *from, double *a, double *b)
{
    fill_columns(s, from, a, b);
    take_edges(s, (double)from->rows / (double)s->sum.rows, a);
}

static void join_groups(struct nrg_solver *s, size_t p, size_t q)
{
    size_t a = s->root[p], b = s->root[q], last = a < b ? a : b;
    if (a == b)
        return;
    while (s->next[last] != SIZE_MAX)
        last = s->next[last];
    s->next[last] = a < b ? b : a;
    for (size_t i = a < b ? b : a; i != SIZE_MAX; i = s->next[i])
        s->root[i] = a < b ? a : b;
}

/* Classes alone: idle and the rest are left out of the fit when others explain them. */
static void make_groups(struct nrg_solver *s)
{
    for (size_t p = 0; p < s->n_classes; p++) {
        if (!s->dependent[p])
            continue;
        double most = 0;
        nrg_gram_parts(s->factor, p, s->work);
        for (size_t q = 0; q < p; q++)
            most = fmax(most, fabs(s->work[q]));
        for (size_t q = 0; q < p; q++)
            if (fabs(s->work[q]) > NRG_GROUP_MEMBER * most)
                join_groups(s, p, q);
    }
}

/* What is known of a power before any reading: the mean and spread of the other classes. */
struct likely {
    double mean_w, spread_w;
};

/* From the classes that are well known, as far as they differ by more than their errors. */
static struct likely find_likely(const struct nrg_solver *s)
{
    double j = 0, time_s = 0, n = 0, square = 0;
    for (size_t p = 0; p < s->n_classes; p++) {
        double class_s = s->r->time_s[s->index[p]];
        j += s->free_beta[p] * s->scale[p] * class_s;
        time_s += class_s;
    }
    struct likely likely = {time_s > 0 && j > 0 ? j / time_s : 0, 0};
    for (size_t p = 0; p < s->n_classes; p++) {
        double variance = s->left * s->inverse[nrg_packed(p, p)] * s->scale[p] * s->scale[p];
        double off_w = s->free_beta[p] * s->scale[p] - likely.mean_w;
        if (s->dependent[p] || variance > WELL_KNOWN * WELL_KNOWN * likely.mean_w * likely.mean_w)
            continue;
        n++;
        square += off_w * off_w - variance;
    }
    likely.spread_w = n < 5 ? likely.mean_w : sqrt(fmax(square / n, 0));
    likely.spread_w = fmax(likely.spread_w, LEAST_SPREAD * likely.mean_w);
    return likely;
}

/*
 * Powers that are not negative. Readings do not determine the powers of short classes: these would
 * take any value, and their neighbours one that compensates. So each class is drawn towards the
 * mean of all. Intervals are made without this, and so hold for any powers.
 */
static int solve_bound(struct nrg_solver *s)
{
    struct likely likely = find_likely(s);
    double *a = s->factor, *b = s->work; /* the factor is of no more use */
    fill_columns(s, &s->sum, a, b);
    nrg_solver_loosen_alike(s, a, b);
    /* Where classes can't be told apart, the edges may take more than there is. */
    if (s->rank == s->m)
        take_edges(s, 1, a);
    for (size_t p = 0; likely.mean_w > 0 && s->left > 0 && p < s->n_classes; p++) {
        double hold = s->left / (likely.spread_w * likely.spread_w) * s->scale[p] * s->scale[p];
        a[nrg_packed(p, p)] += hold;
        b[p] += hold * likely.mean_w / s->scale[p];
    }
    for (size_t p = s->n_bound; p < s->m; p++) /* left out, as without that condition */
        a[nrg_packed(p, p)] += s->dependent[p];
    return nrg_nnls(a, b, s->m, s->n_bound, NRG_RIDGE, s->beta);
}

static void factor(struct nrg_solver *s, bool idle)
{
    pick_columns(s, idle);
    nrg_solver_fill(s, &s->sum, s->factor, s->free_beta);
    s->rank = nrg_gram_factor(s->factor, s->m, s->floor, s->dependent, false);
}

int nrg_solver_solve(struct nrg_solver *s, bool idle)
{
    factor(s, idle);
    if (nrg_solver_take_alike(s))
        factor(s, idle);
    if (s->memory.failed)
        return -ENOMEM;
    s->freedom = (double)s->sum.rows - (double)s->rank;
    if (s->freedom < 1 || !s->n_classes)
        return -ENODATA;
    make_groups(s);
    for (size_t p = 0; p < s->m; p++) /* rows of dependent columns are of no more use */
        for (size_t q = 0; s->dependent[p] && q <= p; q++)
            s->factor[nrg_packed(p, q)] = 0;
    nrg_gram_solve(s->factor, s->m, s->free_beta, false);
    nrg_gram_invert(s->factor, s->m, s->inverse);
    memset(s->work, 0, 2 * s->sum.n * sizeof *s->work);
    for (size_t p = 0; p < s->m; p++)
        s->work[s->index[p]] = s->free_beta[p] * s->scale[p];
    s->left = nrg_gram_residual(&s->sum, s->work) / s->freedom;
    return solve_bound(s);
}

/* A prior on column p makes what is known of the others better, as far as they depend on it. */
void nrg_solver_narrow(const struct nrg_solver *s, double *matrix, size_t p, double kept)
{
    double own = matrix[nrg_packed(p, p)];
    for (size_t a = 0; a < s->m; a++)
        s->work[a] = matrix[nrg_packed(a, p)];
    for (size_t a = 0; own > 0 && a < s->m; a++)
        for (size_t b = 0; b <= a; b++)
            matrix[nrg_packed(a, b)] -= (1 - kept) * s->work[a] * s->work[b] / own;
}

int nrg_solver_draw(struct nrg_solver *s, size_t p, double kept, double *moved)
{
    size_t i = s->index[p];
    double own = s->inverse[nrg_packed(p, p)], value = s->free_beta[p];
    for (size_t q = 0; own > 0 && q < s->m; q++) {
        moved[q] = s->inverse[nrg_packed(p, q)] / own * value;
        s->free_beta[q] -= (1 - kept) * moved[q];
    }
    s->sum.a[nrg_packed(i, i)] += own > 0 ? (1 / kept - 1) / own / (s->scale[p] * s->scale[p]) : 0;
    nrg_solver_narrow(s, s->inverse, p, kept);
    return solve_bound(s);
}

double nrg_solver_mean_power(const struct nrg_solver *s)
{
    double energy_j = 0, time_s = 0;
    for (size_t p = 0; p < s->n_classes; p++) {
        energy_j += s->beta[p] * s->scale[p] * s->r->time_s[s->index[p]];
        time_s += s->r->time_s[s->index[p]];
    }
    return time_s > 0 ? energy_j / time_s : 0;
}

double nrg_regress_waited(const struct nrg_regress *r, size_t column)
{
    bool found = r->waits.used && r->waits.scale[column] > 0;
    double waited = 1 - r->mean_rate[column] * (found ? r->waits.scale[column] : 1);
    return waited > WAITED && !r->options.shares ? waited : 0;
}

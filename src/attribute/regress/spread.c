/*
 * How uncertain the solution is. The plain variance of least squares (scatter of what is left,
 * times the inverse) is corrected by how much blocks of time scatter more or less than it says:
 * rows that depend on their neighbours, or noise that differs between classes, show there. A
 * block's own share in the fit is taken out by leaving it out of the fit (on one side of the
 * product), which makes the scatter right on average. The correction of a class is drawn to that of
 * all classes as far as blocks are too few to tell them apart.
 *
 * An error that repeats every time does not show as scatter between blocks: rounding of a gauge,
 * and what was known of idle power before any reading. Both are added here.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/regress/internal.h"
#include "base/stats.h"

#define LEFT_OUT_LOST 1e-7
#define MAX_LEFT_OUT  1e10 /* multiplications; beyond, blocks stay in */
#define LEAST_RATIO   0.02
#define ONE_BLOCK     0.8  /* of what is known of idle power */
#define HARDLY_RESTS  1e-3 /* of a block's square: less may be the error of CPU times */
#define MOST_RATIO    1e4  /* beyond, columns are hardly told apart */
#define MOST_PRIOR    200.0
#define OVERLAP       1.5
#define ROUNDING_ONE  0.243 /* of a step: 95 % of rounding is within 1.96 times this */
#define ROUNDING_TWO  0.285 /* the same of two together, each */

/* b becomes b - a * solution: how far the block's rows pull the solution, before any inverse. */
static void score_block(const struct nrg_solver *s, const double *a, double *b)
{
    for (size_t p = 0; p < s->m; p++) {
        double sum = 0;
        for (size_t q = 0; q < s->m; q++)
            sum += a[nrg_packed(p, q)] * s->free_beta[q];
        b[p] = s->dependent[p] ? 0 : b[p] - sum;
    }
}

static void multiply_inverse(const struct nrg_solver *s, const double *x, double *y)
{
    for (size_t p = 0; p < s->m; p++) {
        y[p] = 0;
        for (size_t q = 0; q < s->m; q++)
            y[p] += s->inverse[nrg_packed(p, q)] * x[q];
    }
}

static size_t place_of_off(const struct nrg_solver *s)
{
    size_t off = s->n_bound;
    while (off < s->m && s->index[off] != NRG_COLUMN_IDLE_OFF)
        off++;
    return off;
}

/* How much a block's rows, whose matrix is `a`, say of a column, beyond what others make up for. */
static double information(const struct nrg_solver *s, const double *a, size_t column)
{
    double sum = 0, own = s->inverse[nrg_packed(column, column)];
    for (size_t p = 0; p < s->m; p++)
        for (size_t q = 0; q < s->m; q++)
            sum += a[nrg_packed(p, q)] * s->inverse[nrg_packed(p, column)] *
                   s->inverse[nrg_packed(q, column)];
    return sum / (own * own);
}

int nrg_solver_doubt_idle(struct nrg_solver *s)
{
    size_t off = place_of_off(s), cells = s->m * (s->m + 1) / 2;
    double sum = 0, most = 0, part = 0;
    if (!s->r->options.idle_guessed || off == s->m || s->dependent[off])
        return 0;
    double *a = malloc((cells + 1) * sizeof *a);
    if (!a)
        return -ENOMEM;
    for (size_t g = 0; g < s->r->n_blocks; g++) {
        nrg_solver_fill(s, &s->r->block[g], a, s->work);
        double told = information(s, a, off);
        sum += told;
        if (told > most)
            part = told / a[nrg_packed(off, off)];
        most = fmax(most, told);
    }
    free(a);
    s->idle_doubted = most > ONE_BLOCK * sum && part < HARDLY_RESTS;
    return 0;
}

/*
 * How far the solution moves when idle power is off by one deviation of what was known of it before
 * any reading. Where rows correct idle power, the product of two of these is in the inverse, and
 * not the rows'; where they say nothing of it (threads that never rest), it comes on top of theirs.
 */
static void find_before(struct nrg_solver *s)
{
    size_t off = place_of_off(s);
    memset(s->before, 0, s->m * sizeof *s->before);
    s->before_told = off < s->m && !s->dependent[off];
    if (off == s->m)
        return;
    double off_w = s->r->options.idle_error_w, one = s->scale[off] / off_w;
    for (size_t p = 0; p < s->m; p++)
        s->work[p] = p == off ? 0
                              : s->sum.a[nrg_packed(s->index[p], NRG_COLUMN_IDLE_OFF)] *
                                    s->scale[p] * s->scale[off];
    if (!s->before_told)
        multiply_inverse(s, s->work, s->before);
    for (size_t p = 0; p < s->m; p++)
        s->before[p] = s->before_told ? s->inverse[nrg_packed(p, off)] * one : s->before[p] / one;
}

/* Plain variance by the rows alone. */
static double by_rows(const struct nrg_solver *s, size_t p, size_t q)
{
    double before = s->before_told ? s->before[p] * s->before[q] : 0;
    return s->left * (s->inverse[nrg_packed(p, q)] - before);
}

/* Solves for b with all rows but those of the block, whose matrix is `a`. */
static void leave_out(struct nrg_solver *s, double *a, const double *all, bool *lost, double *b)
{
    for (size_t p = 0; p < s->m; p++) {
        s->floor[p] = LEFT_OUT_LOST;
        for (size_t q = 0; q <= p; q++) {
            size_t at = nrg_packed(p, q);
            a[at] = s->dependent[p] || s->dependent[q] ? 0 : all[at] - a[at];
        }
    }
    nrg_gram_factor(a, s->m, s->floor, lost, false);
    for (size_t p = 0; p < s->m; p++)
        for (size_t q = 0; lost[p] && q <= p; q++)
            a[nrg_packed(p, q)] = 0;
    nrg_gram_solve(a, s->m, b, false);
}

/* Adds what one block says of each column's variance to ratio. */
static void add_block(struct nrg_solver *s, size_t g, double *a, const double *all, bool *lost)
{
    double *b = s->work, *moved = s->work + s->m, m = (double)s->m;
    nrg_solver_fill(s, &s->r->block[g], a, b);
    nrg_solver_walk_block(s, g, b);
    score_block(s, a, b);
    multiply_inverse(s, b, moved);
    if ((double)s->r->n_blocks * m * m * m / 3 < MAX_LEFT_OUT)
        leave_out(s, a, all, lost, b);
    else
        memcpy(b, moved, s->m * sizeof *b);
    for (size_t p = 0; p < s->m; p++)
        s->ratio[p] += b[p] * moved[p];
}

/* Blocks in which a column has its part; 0 when one block has most of it. */
static double blocks_of(const struct nrg_solver *s, size_t p)
{
    size_t i = s->index[p];
    double all = s->sum.a[nrg_packed(i, i)], square = 0;
    for (size_t g = 0; g < s->r->n_blocks; g++) {
        const struct nrg_gram *block = &s->r->block[g];
        double part = i < block->n ? block->a[nrg_packed(i, i)] / all : 0;
        if (part > 0.5)
            return 0;
        square += part * part;
    }
    double blocks = square > 0 ? 1 / square - 1 : 0;
    return s->dependent[p] || blocks < 2 ? 0 : blocks;
}

struct common {
    double mean;  /* of the ratios */
    double prior; /* how many blocks' worth it is */
};

/* The less the ratios scatter beyond chance, the more their mean counts. */
static struct common find_common(const struct nrg_solver *s, const double *blocks)
{
    double n = 0, mean = 0, square = 0, chance = 0;
    for (size_t p = 0; p < s->m; p++) {
        if (!(blocks[p] > 0))
            continue;
        n++;
        mean += s->ratio[p];
        square += s->ratio[p] * s->ratio[p];
        chance += 2 / blocks[p];
    }
    if (n < 2)
        return (struct common){n > 0 ? mean : 1, 4};
    mean /= n;
    double spread = (square / n / (mean * mean) - 1) * n / (n - 1) - chance / n;
    return (struct common){mean, spread > 2 / MOST_PRIOR ? 2 / spread : MOST_PRIOR};
}

/* One t serves all: a column whose variance is known less well has a larger variance instead. */
static void moderate_ratios(struct nrg_solver *s)
{
    double *blocks = s->work, mean_freedom = 0, confidence = s->r->options.confidence;
    for (size_t p = 0; p < s->m; p++) {
        s->ratio[p] = fmin(fmax(s->ratio[p], LEAST_RATIO), MOST_RATIO);
        blocks[p] = blocks_of(s, p);
    }
    struct common common = find_common(s, blocks);
    for (size_t p = 0; p < s->m; p++)
        mean_freedom += fmin(s->freedom, common.prior + blocks[p]) / (double)s->m;
    double t = nrg_student_half(confidence, mean_freedom);
    for (size_t p = 0; p < s->m; p++) {
        double all = common.prior + blocks[p];
        double wider = nrg_student_half(confidence, fmin(s->freedom, all)) / t;
        s->ratio[p] = (common.prior * common.mean + blocks[p] * s->ratio[p]) / all;
        s->ratio[p] *= wider * wider;
    }
    s->freedom = mean_freedom;
}

/* Rounding that comes back every step does not average out over them: how many times the variance
 * of what rows say. That of readings that saw one power alone counts by itself: add_rounding. */
static double rounded_alike(const struct nrg_solver *s)
{
    const struct nrg_regress *r = s->r;
    double w_mean = r->sum_y / r->sum_s, q2 = r->quantum * r->quantum / 12;
    double all = s->left * (r->noise.floor2 + r->noise.slope2 * w_mean * w_mean);
    double mixed = fmax(1 - r->pure_rows / (double)s->sum.rows, 0);
    return all > 0 ? 1 + fmin(q2 / all, 1) * r->repeats * mixed : 1;
}

/*
 * Of a running mean of m updates, rows are nearly differences: what one update has more than that m
 * before it. What they are off by is then against that of the row m before by a half, and so are
 * their columns: the sum's variance is 1 + 2/2/2 times that of rows on their own. Blocks are too
 * short to see it.
 */
static double overlapping(const struct nrg_solver *s)
{
    return s->r->published.mean_updates > 0 && s->r->noise.phi > 0 ? OVERLAP : 1;
}

static int find_ratios(struct nrg_solver *s)
{
    size_t cells = s->m * (s->m + 1) / 2;
    double *a = malloc((2 * cells + 1) * sizeof *a);
    bool *lost = malloc(s->m + 1);
    int rc = a && lost ? 0 : -ENOMEM;
    memset(s->ratio, 0, s->m * sizeof *s->ratio);
    if (!rc)
        nrg_solver_fill(s, &s->sum, a + cells, s->work);
    for (size_t g = 0; !rc && g < s->r->n_blocks; g++)
        add_block(s, g, a, a + cells, lost);
    for (size_t p = 0; p < s->m; p++) {
        double plain = by_rows(s, p, p);
        s->ratio[p] = s->r->n_blocks > 2 && plain > 0 ? s->ratio[p] / plain : 1;
    }
    moderate_ratios(s);
    for (size_t p = 0; p < s->m; p++)
        s->ratio[p] = overlapping(s) * fmax(s->ratio[p], rounded_alike(s));
    free(a);
    free(lost);
    return rc;
}

/* How far the solution moves when all readings that saw one column alone are off by this. */
static void move_by_rounding(struct nrg_solver *s, size_t p, double off, double *moved)
{
    const struct nrg_pure *pure = &s->r->pure[s->index[p]];
    memset(s->work, 0, s->m * sizeof *s->work);
    for (size_t q = s->n_classes; q < s->m; q++)
        if (s->index[q] < NRG_COLUMN_CLASSES && !s->dependent[q])
            s->work[q] = pure->common[s->index[q]] * off * s->scale[q];
    s->work[p] = pure->own * off * s->scale[p];
    multiply_inverse(s, s->work, moved);
}

/*
 * Rounding of readings that saw one power alone is the same in all of them, unless noise blurs it:
 * up to half a step, which moves the class and, as they are below all of them, idle and its drift.
 */
static void add_rounding(struct nrg_solver *s)
{
    const struct nrg_regress *r = s->r;
    double q = r->quantum, blur2 = r->pure_rows > 0 ? r->pure_e2 / r->pure_rows : 0;
    double off = q * (s->idle ? ROUNDING_TWO : ROUNDING_ONE);
    double *moved = s->work + s->m;
    if (q > 0)
        off *= exp(-2 * M_PI * M_PI * blur2 / (q * q));
    for (size_t p = 0; q > 0 && p < s->n_bound; p++) {
        if (!(r->pure[s->index[p]].own > 0) || s->dependent[p])
            continue;
        move_by_rounding(s, p, off, moved);
        for (size_t a = 0; a < s->m; a++)
            for (size_t b = 0; b <= a; b++)
                s->covariance[nrg_packed(a, b)] += moved[a] * moved[b];
    }
}

int nrg_solver_spread(struct nrg_solver *s)
{
    find_before(s);
    int rc = find_ratios(s);
    for (size_t p = 0; !rc && p < s->m; p++)
        for (size_t q = 0; q <= p; q++)
            s->covariance[nrg_packed(p, q)] =
                by_rows(s, p, q) * sqrt(s->ratio[p] * s->ratio[q]) + s->before[p] * s->before[q];
    if (!rc)
        add_rounding(s);
    if (!rc)
        nrg_solver_add_walk(s);
    return rc;
}

double nrg_solver_covariance(const struct nrg_solver *s, size_t p, size_t q)
{
    return s->covariance[nrg_packed(p, q)] * s->scale[p] * s->scale[q];
}

/*
 * See effect.h. The design has two or three columns (one, side, time), so its normal equations are
 * solved by base/linalg.h and everything else is sums over runs.
 */
#include "compare/effect.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/linalg.h"
#include "base/mem.h"
#include "base/stats.h"
#include "sensors/channel.h"

enum { ONE, SIDE, TIME, COLUMNS };
#define LEAST_FOR_DRIFT 3 /* runs of a side */
#define PAUSE           3 /* times the usual distance between runs: what is longer is one */
#define SKEWED          1.5
#define LEAST_FOR_OWN   10 /* runs of a side: from here on they show what sensors add */
#define LEAST_FOR_SKEW  8  /* values: below, skewness says nothing */

struct line {
    double x[COLUMNS], y;
    double fit, leverage, weight; /* weight: share of the line in the difference */
    const struct nrg_compare_value *from;
};

struct design {
    struct line *lines;
    size_t n, n_b, columns;
    double inverse[COLUMNS * (COLUMNS + 1) / 2];
    double beta[COLUMNS];
    double span;     /* of time, last minus first */
    double *scratch; /* room for two numbers a line */
};

/* ---- values that can be used ---- */

static bool usable(const struct nrg_compare_value *o)
{
    return isfinite(o->value) && o->value > 0;
}

static size_t take(struct design *d, struct nrg_sample sample, double side)
{
    size_t before = d->n;
    for (size_t i = 0; i < sample.n; i++)
        if (usable(&sample.items[i]))
            d->lines[d->n++] = (struct line){
                .x = {1, side, 0}, .y = log(sample.items[i].value), .from = &sample.items[i]};
    return d->n - before;
}

/* Distance between runs that a quarter of them exceed. */
static double usual_distance(const double *sorted, size_t n, double *scratch)
{
    for (size_t i = 1; i < n; i++)
        scratch[i - 1] = sorted[i] - sorted[i - 1];
    nrg_sort(scratch, n - 1);
    return scratch[(n - 2) * 3 / 4];
}

/* What drifts while runs follow each other was seen; what happened in a pause between two sessions
 * was not, and a line through the runs of an hour says nothing of the next day. So a pause is cut
 * to a few times the usual distance. `scratch`: room for twice the lines. */
static void cut_pauses(struct design *d, double *scratch)
{
    double *sorted = scratch, *where = scratch + d->n;
    for (size_t i = 0; i < d->n; i++)
        sorted[i] = d->lines[i].x[TIME];
    nrg_sort(sorted, d->n);
    double longest = PAUSE * usual_distance(sorted, d->n, where);
    if (!(longest > 0))
        return;
    where[0] = 0;
    for (size_t i = 1; i < d->n; i++)
        where[i] = where[i - 1] + fmin(longest, sorted[i] - sorted[i - 1]);
    for (size_t i = 0; i < d->n; i++) {
        size_t at = 0;
        while (at + 1 < d->n && sorted[at] < d->lines[i].x[TIME])
            at++;
        d->lines[i].x[TIME] = where[at];
    }
}

/* Times relative to their mean, in units of their whole span. */
static void scale_time(struct design *d)
{
    double mean = 0, first = INFINITY, last = -INFINITY;
    for (size_t i = 0; i < d->n; i++) {
        double t = d->lines[i].x[TIME];
        mean += t / (double)d->n;
        first = fmin(first, t);
        last = fmax(last, t);
    }
    d->span = last - first;
    for (size_t i = 0; d->span > 0 && i < d->n; i++)
        d->lines[i].x[TIME] = (d->lines[i].x[TIME] - mean) / d->span;
}

/* False: times are not known, or all the same. */
static bool place_in_time(struct design *d)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->lines[i].from->t_ns == NRG_MISSING)
            return false;
        /* differences of two large numbers, so the first run is the origin */
        d->lines[i].x[TIME] = (double)(d->lines[i].from->t_ns - d->lines[0].from->t_ns);
    }
    cut_pauses(d, d->scratch);
    scale_time(d);
    return d->span > 0;
}

/* ---- least squares ---- */

static double product(const struct design *d, const double *x, const double *y)
{
    double sum = 0;
    for (size_t i = 0; i < d->columns; i++)
        for (size_t j = 0; j < d->columns; j++)
            sum += x[i] * d->inverse[nrg_packed(i, j)] * y[j];
    return sum;
}

static int solve(struct design *d)
{
    struct nrg_gram gram = {0};
    size_t rank = 0;
    bool dependent[COLUMNS];
    double floor[COLUMNS] = {1e-9, 1e-9, 1e-9};
    int rc = nrg_gram_grow(&gram, d->columns);
    for (size_t i = 0; !rc && i < d->n; i++)
        nrg_gram_add(&gram, d->lines[i].x, NULL, 0, d->lines[i].y, 1);
    if (!rc)
        rc = nrg_gram_least_squares(&gram, d->beta, &rank);
    if (!rc && nrg_gram_factor(gram.a, d->columns, floor, dependent, true) < d->columns)
        rc = -EDOM;
    if (!rc)
        nrg_gram_invert(gram.a, d->columns, d->inverse);
    nrg_gram_release(&gram);
    for (size_t i = 0; !rc && i < d->n; i++) {
        struct line *l = &d->lines[i];
        l->fit = 0;
        for (size_t j = 0; j < d->columns; j++)
            l->fit += d->beta[j] * l->x[j];
        l->leverage = product(d, l->x, l->x);
        l->weight = product(d, (double[COLUMNS]){0, 1, 0}, l->x);
    }
    return rc;
}

/* ---- the interval ---- */

/* What of the residual's variance is left after fitting. */
static double freedom_left(const struct line *l)
{
    return fmax(1 - l->leverage, 1e-9);
}

/* Factor of a squared residual in the variance of the difference. */
static double factor_of(const struct line *l)
{
    return l->weight * l->weight / freedom_left(l);
}

static double variance(const struct design *d)
{
    double sum = 0;
    for (size_t i = 0; i < d->n; i++) {
        double residual = d->lines[i].y - d->lines[i].fit;
        sum += factor_of(&d->lines[i]) * residual * residual;
    }
    return sum;
}

/* Variance of a side's runs; NAN: there are too few. */
static double side_variance(const struct design *d, double side)
{
    double sum = 0, left = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct line *l = &d->lines[i];
        if (l->x[SIDE] != side)
            continue;
        sum += (l->y - l->fit) * (l->y - l->fit);
        left += 1 - l->leverage;
    }
    return left > 1e-9 ? sum / left : NAN;
}

/* ---- its degrees of freedom ---- */

struct matrix {
    double at[COLUMNS][COLUMNS];
};

static void add_products(struct matrix *sum, const double *x, double factor)
{
    for (size_t i = 0; i < COLUMNS; i++)
        for (size_t j = 0; j < COLUMNS; j++)
            sum->at[i][j] += factor * x[i] * x[j];
}

static struct matrix combine(const struct matrix *a, double p, const struct matrix *b, double q)
{
    struct matrix sum;
    for (size_t i = 0; i < COLUMNS; i++)
        for (size_t j = 0; j < COLUMNS; j++)
            sum.at[i][j] = p * a->at[i][j] + q * b->at[i][j];
    return sum;
}

static struct matrix multiply(const struct matrix *a, const struct matrix *b)
{
    struct matrix product = {0};
    for (size_t i = 0; i < COLUMNS; i++)
        for (size_t j = 0; j < COLUMNS; j++)
            for (size_t k = 0; k < COLUMNS; k++)
                product.at[i][j] += a->at[i][k] * b->at[k][j];
    return product;
}

/* Trace of A B A C. */
static double trace_of(const struct matrix *a, const struct matrix *b, const struct matrix *c)
{
    struct matrix left = multiply(a, b), right = multiply(a, c), all = multiply(&left, &right);
    double trace = 0;
    for (size_t i = 0; i < COLUMNS; i++)
        trace += all.at[i][i];
    return trace;
}

static double form(const struct matrix *m, const double *x)
{
    double sum = 0;
    for (size_t i = 0; i < COLUMNS; i++)
        for (size_t j = 0; j < COLUMNS; j++)
            sum += x[i] * m->at[i][j] * x[j];
    return sum;
}

/*
 * Residuals of runs i and j, of sides s and t whose runs have the variances o, have the covariance
 * x' G x', and o more where they are the same, with G = W - (o_s + o_t) V and W = V X'OX V. Unused
 * columns are zeros.
 */
struct covariance {
    double of_side[2];
    struct matrix between[2][2];
    struct matrix factors[2]; /* by side, sum of x x' times the factors of its residuals */
};

static void find_covariance(const struct design *d, struct covariance *c)
{
    struct matrix v = {0}, products[2] = {0};
    *c = (struct covariance){.of_side = {side_variance(d, 0), side_variance(d, 1)}};
    if (!(c->of_side[0] + c->of_side[1] > 0)) /* all runs are alike */
        c->of_side[0] = c->of_side[1] = 1;
    for (size_t i = 0; i < d->n; i++) {
        const struct line *l = &d->lines[i];
        add_products(&products[l->x[SIDE] > 0], l->x, 1);
        add_products(&c->factors[l->x[SIDE] > 0], l->x, factor_of(l));
    }
    for (size_t i = 0; i < d->columns; i++)
        for (size_t j = 0; j < d->columns; j++)
            v.at[i][j] = d->inverse[nrg_packed(i, j)];
    struct matrix middle = combine(&products[0], c->of_side[0], &products[1], c->of_side[1]);
    struct matrix half = multiply(&v, &middle), w = multiply(&half, &v);
    for (int s = 0; s < 2; s++)
        for (int t = 0; t < 2; t++)
            c->between[s][t] = combine(&w, 1, &v, -c->of_side[s] - c->of_side[t]);
}

/*
 * Those of a chi squared with the mean and the variance that the sum of squared residuals has if
 * the sides vary as they were seen to: of two samples without a drift, Welch's. Taking the sides to
 * vary alike instead would call one program different from itself in 8 of 100 comparisons of four
 * runs where one side varies ten times as much as the other.
 */
static double freedom(const struct design *d)
{
    struct covariance c;
    double mean = 0, spread = 0;
    find_covariance(d, &c);
    for (size_t i = 0; i < d->n; i++) {
        const struct line *l = &d->lines[i];
        int s = l->x[SIDE] > 0;
        double factor = factor_of(l), own = c.of_side[s], rest = form(&c.between[s][s], l->x);
        mean += factor * (own + rest);
        spread += factor * factor * own * (own + 2 * rest);
    }
    for (int s = 0; s < 2; s++)
        for (int t = 0; t < 2; t++)
            spread += trace_of(&c.between[s][t], &c.factors[t], &c.factors[s]);
    return spread > 0 && mean > 0 ? fmax(1, mean * mean / spread) : 1;
}

/* Variance of the difference if runs scattered by the sensors' own error alone: ± own, anything
 * between equally likely. */
static double own_variance(const struct design *d)
{
    double sum = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct line *l = &d->lines[i];
        sum += l->weight * l->weight * l->from->own * l->from->own / 3;
    }
    return sum;
}

/* How far the ratio moves when all runs are at the low, or all at the high end of their band. */
static void common_rest(const struct design *d, double *down, double *up)
{
    double low = 0, high = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct line *l = &d->lines[i];
        low += l->weight * log(l->from->low > 0 ? l->from->low : 1);
        high += l->weight * log(l->from->high > 0 ? l->from->high : 1);
    }
    *down = fmin(0, fmin(low, high));
    *up = fmax(0, fmax(low, high));
}

static double side_scatter(const struct design *d, double side)
{
    double own = 0, n = 0, seen = side_variance(d, side);
    for (size_t i = 0; i < d->n; i++) {
        const struct line *l = &d->lines[i];
        if (l->x[SIDE] != side)
            continue;
        own += l->from->own * l->from->own / 3;
        n++;
    }
    bool few = n < LEAST_FOR_OWN && !isnan(seen);
    return sqrt(few ? fmax(seen, own / n) : seen);
}

static bool is_skewed(const struct design *d)
{
    double second = 0, third = 0, n = (double)d->n;
    for (size_t i = 0; i < d->n; i++) {
        double r = d->lines[i].y - d->lines[i].fit;
        second += r * r / n;
        third += r * r * r / n;
    }
    return d->n >= LEAST_FOR_SKEW && second > 0 && fabs(third / pow(second, 1.5)) > SKEWED;
}

static void find_interval(struct nrg_effect *e, const struct design *d, double confidence)
{
    double down, up, delta = d->beta[SIDE], error = sqrt(variance(d)), own = sqrt(own_variance(d));
    common_rest(d, &down, &up);
    e->freedom = freedom(d);
    double half =
        fmax(nrg_student_half(confidence, e->freedom) * error, nrg_normal_half(confidence) * own);
    e->low = exp(delta + down - half);
    e->high = exp(delta + up + half);
    double beyond = fmax(0, delta > 0 ? delta + down : -delta - up);
    double by_scatter = error > 0    ? nrg_student_tails(beyond / error, e->freedom)
                        : beyond > 0 ? 0
                                     : 1;
    double by_sensor = own > 0 ? nrg_student_tails(beyond / own, INFINITY) : 0;
    e->p_value = fmax(by_scatter, by_sensor);
    e->verdict = e->high < 1 ? NRG_EFFECT_LESS : e->low > 1 ? NRG_EFFECT_MORE : NRG_EFFECT_NONE;
}

/* ---- all of it ---- */

static double side_mean(const struct design *d, double side)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < d->n; i++)
        if (d->lines[i].x[SIDE] == side) {
            sum += d->lines[i].y;
            n++;
        }
    return n > 0 ? exp(sum / n) : NAN;
}

/* With the drift where that can be fitted; what it costs is told by `design`. */
static int fit(struct nrg_effect *e, struct design *d)
{
    bool drift = e->n_a >= LEAST_FOR_DRIFT && e->n_b >= LEAST_FOR_DRIFT && place_in_time(d);
    double apart = 1 / (double)e->n_a + 1 / (double)e->n_b;
    d->columns = drift ? COLUMNS : TIME;
    int rc = solve(d);
    if (rc == -EDOM) { /* time tells the sides apart exactly */
        d->columns = TIME;
        rc = solve(d);
    }
    if (rc)
        return rc;
    e->drift = d->columns == COLUMNS ? expm1(d->beta[TIME]) : NAN;
    e->design = d->inverse[nrg_packed(SIDE, SIDE)] / apart;
    e->ratio = exp(d->beta[SIDE]);
    e->a = exp(d->beta[ONE]); /* in the middle of the time */
    e->b = e->a * e->ratio;
    return 0;
}

static int rank_lines(struct nrg_effect *e, const struct design *d)
{
    double *values = nrg_calloc(d->n + 1, sizeof *values);
    if (!values)
        return -ENOMEM;
    double drift = isnan(e->drift) ? 0 : d->beta[TIME];
    for (size_t i = 0; i < d->n; i++)
        values[i] = d->lines[i].y - drift * d->lines[i].x[TIME];
    int rc = nrg_rank_test(values, e->n_a, values + e->n_a, e->n_b, &e->p_rank);
    free(values);
    return rc;
}

int nrg_effect_find(struct nrg_effect *e, struct nrg_sample a, struct nrg_sample b,
                    double confidence)
{
    struct design d = {.lines = nrg_calloc(a.n + b.n + 1, sizeof *d.lines),
                       .scratch = nrg_calloc(2 * (a.n + b.n) + 1, sizeof *d.scratch)};
    *e = (struct nrg_effect){.ratio = NAN,
                             .low = NAN,
                             .high = NAN,
                             .p_value = NAN,
                             .p_rank = NAN,
                             .freedom = NAN,
                             .scatter_a = NAN,
                             .scatter_b = NAN,
                             .seen_a = NAN,
                             .seen_b = NAN,
                             .drift = NAN,
                             .design = 1};
    if (!d.lines || !d.scratch) {
        free(d.lines);
        free(d.scratch);
        return -ENOMEM;
    }
    e->n_a = take(&d, a, 0);
    e->n_b = take(&d, b, 1);
    e->a = side_mean(&d, 0);
    e->b = side_mean(&d, 1);
    e->ratio = e->b / e->a;
    int rc = 0;
    if (e->n_a >= 2 && e->n_b >= 2) {
        rc = fit(e, &d);
        if (!rc) {
            find_interval(e, &d, confidence);
            e->seen_a = sqrt(side_variance(&d, 0));
            e->seen_b = sqrt(side_variance(&d, 1));
            e->scatter_a = side_scatter(&d, 0);
            e->scatter_b = side_scatter(&d, 1);
            e->skewed = is_skewed(&d);
            rc = rank_lines(e, &d);
        }
    }
    free(d.lines);
    free(d.scratch);
    return rc;
}

/*
 * The fit of waits.c: least squares of the CPU times of cells on what calls came in them, again and
 * again, each time with how far classes were found to be apart and how uncertain a cell is.
 *
 * Cells tell little of classes whose calls are short. But how much the lengths of its calls scatter
 * is known of each class, and waits make lengths scatter: so `busy` and `longer` follow a line over
 * that, as far as the classes that cells know do, and classes are drawn to the line.
 *
 * Columns: how far classes are from their lines, of busy and of longer; places of waits in calls;
 * the bend; the two lines, each with its height and slope.
 */
#include "attribute/regress/waits/waits.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define TURNS       10
#define SHAPES      NRG_WAIT_SHAPES
#define SHAPE_PRIOR 0.5 /* of the calls that wait at one of the places, a deviation */
#define BEND_PRIOR  0.3 /* of how CPU time goes with length, a deviation */
#define LINE_PRIOR  0.3 /* of the lines' heights, a deviation */
#define SLOPE_PRIOR 1.0 /* of the lines' slopes, a deviation */
#define SCATTERED   0.2 /* deviation of lengths, of their mean, that is in the middle */
#define TAILS       4.0 /* degrees of freedom: how far one class may be from the others */
#define APART       0.03 /* of classes from their line, a deviation, before any cell: by simulation */
#define APART_WORTH 2.0  /* classes that it counts as */
#define READ_OFF_S  2e-5 /* of CPU times */
#define LEAST_ALPHA 1e-3
#define MOST_GAMMA  4.0  /* far more than calls that wait anywhere */
#define FAR         25.0 /* variances: squares beyond are cut */

static size_t columns_of(const struct nrg_wait_fit *f)
{
    return 2 * f->w->n_places + NRG_WAIT_COMMON;
}

/* The first of the two columns of a line: of busy, of longer. */
static size_t line_of(const struct nrg_wait_fit *f, size_t kind)
{
    return 2 * f->w->n_places + SHAPES + 1 + 2 * kind;
}

static void set_scatter(struct nrg_wait_fit *f)
{
    for (size_t i = 0; i < f->w->n_places; i++) {
        double call_s = f->w->call_s[i];
        double part = call_s > 0 ? sqrt(f->w->length2[i]) / call_s : 0;
        f->scatter[i] = part / (part + SCATTERED) - 0.5;
    }
}

/* What all classes have of a line is the sum of what they have. */
static void fill_lines(struct nrg_wait_fit *f)
{
    for (size_t kind = 0; kind < 2; kind++) {
        double *line = f->x + line_of(f, kind);
        for (size_t i = 0; i < f->w->n_places; i++) {
            double own = f->x[kind * f->w->n_places + i];
            line[0] += own;
            line[1] += own * f->scatter[i];
        }
    }
}

/* The row of a group into x; 0 before. Returns the variance of what it is off by. */
static double fill_row(struct nrg_wait_fit *f, size_t n, double *whole2, double *cut2)
{
    const struct nrg_waits *w = f->w;
    size_t places = w->n_places;
    memset(f->x, 0, columns_of(f) * sizeof *f->x);
    *whole2 = *cut2 = 0;
    for (size_t i = 0; i < n; i++) {
        const struct nrg_wait_piece *p = &f->pieces[i];
        double begin[SHAPES], end[SHAPES], mean_s = w->call_s[p->place] * (p->to - p->from);
        mean_s = p->calls > 0 ? mean_s : p->length_s;
        f->x[p->place] += mean_s;
        f->x[places + p->place] += p->length_s - mean_s;
        if (p->calls > 0)
            f->x[2 * places + SHAPES] +=
                (p->to - p->from) * (fabs(p->call_s - w->call_s[p->place]) - w->off_s[p->place]);
        *whole2 += p->whole2;
        *cut2 += p->cut2;
        if (!(p->cut2 > 0))
            continue;
        nrg_wait_work(p->from, p->lacks_s / p->call_s, begin);
        nrg_wait_work(p->to, p->lacks_s / p->call_s, end);
        for (size_t k = 0; k < SHAPES; k++)
            f->x[2 * places + k] += p->call_s * (end[k] - begin[k]);
    }
    fill_lines(f);
    return w->alpha * *whole2 + w->gamma * *cut2 + READ_OFF_S * READ_OFF_S;
}

/*
 * How much a class counts as one of the others: most are alike, but what is around the calls that
 * wait may never do so. Student's t in place of the normal distribution.
 */
static double likeness(const struct nrg_wait_fit *f, size_t kind, size_t at)
{
    double off = f->solved ? f->beta[at] / f->apart[kind] : 0;
    return f->solved ? (TAILS + 1) / (TAILS + off * off) : 1;
}

/* What is known before the cells are looked at: a mean, and a deviation from it. */
struct known {
    double mean, deviation;
};

static struct known known_of(const struct nrg_wait_fit *f, size_t column)
{
    size_t places = f->w->n_places, kind = column / places, at = column - 2 * places;
    const struct known lines[] = {
        {f->rate, LINE_PRIOR}, {0, SLOPE_PRIOR}, {f->rate / 2, LINE_PRIOR}, {0, SLOPE_PRIOR}};
    if (column < 2 * places)
        return (struct known){0, f->apart[kind] / sqrt(likeness(f, kind, column))};
    if (at < SHAPES)
        return (struct known){1.0 / SHAPES, SHAPE_PRIOR};
    return at > SHAPES ? lines[column - line_of(f, 0)] : (struct known){0, BEND_PRIOR};
}

static void add_prior(struct nrg_wait_fit *f)
{
    for (size_t i = 0; i < columns_of(f); i++) {
        struct known known = known_of(f, i);
        double weight = 1 / (known.deviation * known.deviation);
        f->gram.a[nrg_packed(i, i)] += weight;
        f->gram.b[i] += weight * known.mean;
    }
}

static void solve_fit(struct nrg_wait_fit *f)
{
    size_t n = columns_of(f), cells = n * (n + 1) / 2;
    memcpy(f->factor, f->gram.a, cells * sizeof *f->factor);
    for (size_t i = 0; i < n; i++)
        f->unit[i] = 1 / sqrt(f->gram.a[nrg_packed(i, i)]);
    for (size_t i = 0; i < n; i++) {
        f->beta[i] = f->gram.b[i] * f->unit[i];
        for (size_t k = 0; k <= i; k++)
            f->factor[nrg_packed(i, k)] *= f->unit[i] * f->unit[k];
    }
    nrg_gram_factor(f->factor, n, NULL, NULL, false);
    nrg_gram_solve(f->factor, n, f->beta, false);
    nrg_gram_invert(f->factor, n, f->inverse);
    for (size_t i = 0; i < n; i++) {
        f->beta[i] *= f->unit[i];
        for (size_t k = 0; k <= i; k++)
            f->inverse[nrg_packed(i, k)] *= f->unit[i] * f->unit[k];
    }
}

/* How far classes are from their line, errors included. */
static void find_apart(struct nrg_wait_fit *f, size_t kind)
{
    double square = APART_WORTH * APART * APART, n = (double)f->w->n_places;
    for (size_t i = 0; i < f->w->n_places; i++) {
        size_t at = kind * f->w->n_places + i;
        double off = f->beta[at];
        square += likeness(f, kind, at) * (off * off + f->inverse[nrg_packed(at, at)]);
    }
    f->apart[kind] = sqrt(square / (n + APART_WORTH));
}

/* Of a class: its line and how far it is from it. */
static double figure_of(const struct nrg_wait_fit *f, size_t kind, size_t place)
{
    const double *line = f->beta + line_of(f, kind);
    return f->beta[kind * f->w->n_places + place] + line[0] + line[1] * f->scatter[place];
}

static double busy_covariance(const struct nrg_wait_fit *f, size_t a, size_t b)
{
    size_t line = line_of(f, 0), of[2][3] = {{a, line, line + 1}, {b, line, line + 1}};
    double part[2][3] = {{1, 1, f->scatter[a]}, {1, 1, f->scatter[b]}}, sum = 0;
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++)
            sum += part[0][i] * part[1][k] * f->inverse[nrg_packed(of[0][i], of[1][k])];
    return sum;
}

/* alpha and gamma by least squares of squares, each weighted by its variance so far. */
static void add_square(struct nrg_wait_fit *f, double e2, double v, double whole2, double cut2)
{
    double x[3] = {whole2, cut2, fmin(e2, FAR * v)};
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 3; k++)
            f->known[i][k] += x[i] * x[k] / (v * v);
}

static void set_variances(struct nrg_wait_fit *f)
{
    double(*k)[3] = f->known, det = k[0][0] * k[1][1] - k[0][1] * k[1][0];
    double alpha = (k[0][2] * k[1][1] - k[1][2] * k[0][1]) / det;
    double gamma = (k[1][2] * k[0][0] - k[0][2] * k[1][0]) / det;
    if (!(det > 0) || !(alpha > 0) || !(gamma > 0)) {
        bool cut = det > 0 && alpha <= 0;
        alpha = cut || !(k[0][0] > 0) ? 0 : k[0][2] / k[0][0];
        gamma = cut ? k[1][2] / k[1][1] : 0;
    }
    f->w->alpha = fmax(alpha, LEAST_ALPHA);
    f->w->gamma = fmin(fmax(gamma, 1e-3), MOST_GAMMA);
    memset(f->known, 0, sizeof f->known);
}

static int each_group(struct nrg_wait_fit *f, bool squares)
{
    int rc = 0;
    for (size_t g = 0; !rc && g < f->n_groups; g += f->stride) {
        size_t n;
        double cpu_s, whole2, cut2;
        rc = nrg_wait_group(f, g, &n, &cpu_s);
        if (rc || !n)
            continue;
        double v = fill_row(f, n, &whole2, &cut2), e = cpu_s;
        if (!squares) {
            nrg_gram_add(&f->gram, f->x, NULL, 0, cpu_s, 1 / v);
            continue;
        }
        for (size_t i = 0; i < columns_of(f); i++)
            e -= f->x[i] * f->beta[i];
        add_square(f, e * e, v, whole2, cut2);
    }
    return rc;
}

static int fit_turn(struct nrg_wait_fit *f)
{
    struct nrg_waits *w = f->w;
    nrg_gram_clear(&f->gram);
    int rc = each_group(f, false);
    if (rc)
        return rc;
    add_prior(f);
    solve_fit(f);
    rc = each_group(f, true);
    for (size_t i = 0; i < w->n_places; i++) {
        w->busy[i] = fmin(fmax(figure_of(f, 0, i), NRG_LEAST_BUSY), 1);
        w->longer[i] = fmin(fmax(figure_of(f, 1, i), 0), 1);
    }
    memcpy(w->shape, f->beta + 2 * w->n_places, sizeof w->shape);
    w->bend = f->beta[2 * w->n_places + SHAPES];
    find_apart(f, 0);
    find_apart(f, 1);
    f->solved = true;
    set_variances(f);
    return rc;
}

int nrg_wait_learn(struct nrg_wait_fit *f, double rate)
{
    struct nrg_waits *w = f->w;
    int rc = nrg_gram_grow(&f->gram, columns_of(f));
    set_scatter(f);
    for (size_t i = 0; i < w->n_places; i++) {
        w->busy[i] = rate;
        w->longer[i] = rate / 2;
    }
    f->rate = rate;
    f->apart[0] = f->apart[1] = APART;
    w->alpha = 1;
    w->gamma = 0.3;
    for (int turn = 0; !rc && turn < TURNS; turn++)
        rc = fit_turn(f);
    for (size_t i = 0; i < w->n_places; i++)
        for (size_t k = 0; k <= i; k++)
            w->error2[nrg_packed(i, k)] = busy_covariance(f, i, k);
    for (size_t i = 0; i < SHAPES; i++)
        for (size_t k = 0, at = 2 * w->n_places; k <= i; k++)
            w->shape_error2[nrg_packed(i, k)] = f->inverse[nrg_packed(at + i, at + k)];
    return rc;
}

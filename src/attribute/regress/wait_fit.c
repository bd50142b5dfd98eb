/*
 * The fit of waits.c: least squares of the CPU times of cells on what calls came in them, again and
 * again, each time with how far classes were found to be apart and how uncertain a cell is.
 */
#include "attribute/regress/waits.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define TURNS       10
#define SHAPES      NRG_WAIT_SHAPES
#define SHAPE_PRIOR 0.5   /* of the calls that wait at one of the places, a deviation */
#define BEND_PRIOR  0.3   /* of how CPU time goes with length, a deviation */
#define TAILS       2.0   /* degrees of freedom: how far one class may be from the others */
#define LEAST_APART 0.005 /* of busy and longer between classes, a deviation */
#define READ_OFF_S  2e-5  /* of CPU times */
#define MOST_GAMMA  4.0   /* far more than calls that wait anywhere */
#define FAR         25.0  /* variances: squares beyond are cut */

static size_t columns_of(const struct nrg_wait_fit *f)
{
    return 2 * f->w->n_places + SHAPES + 1;
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
    return w->alpha * *whole2 + w->gamma * *cut2 + READ_OFF_S * READ_OFF_S;
}

/*
 * How much a class counts as one of the others: most are alike, but what is around the calls that
 * wait may never do so. Student's t in place of the normal distribution.
 */
static double likeness(const struct nrg_wait_fit *f, size_t kind, size_t at)
{
    double off = f->solved ? (f->beta[at] - f->mean[kind]) / f->apart[kind] : 0;
    return f->solved ? (TAILS + 1) / (TAILS + off * off) : 1;
}

/* What is known before the cells are looked at: classes are alike, and shapes are not wild. */
static void add_prior(struct nrg_wait_fit *f)
{
    size_t places = f->w->n_places;
    for (size_t i = 0; i < columns_of(f); i++) {
        size_t kind = i < 2 * places ? i / places : 2 + (i == 2 * places + SHAPES);
        const double prior[] = {f->mean[0], f->mean[1], 1.0 / SHAPES, 0};
        const double deviations[] = {f->apart[0], f->apart[1], SHAPE_PRIOR, BEND_PRIOR};
        double deviation = deviations[kind];
        double weight = (kind < 2 ? likeness(f, kind, i) : 1) / (deviation * deviation);
        f->gram.a[nrg_packed(i, i)] += weight;
        f->gram.b[i] += weight * prior[kind];
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

/* Mean of a figure over the classes, and how far they are apart, errors included. */
static void find_apart(struct nrg_wait_fit *f, size_t kind)
{
    const struct nrg_waits *w = f->w;
    double sum = 0, weight = 0, square = 0;
    for (size_t i = 0; i < w->n_places; i++) {
        size_t at = kind * w->n_places + i;
        double own = (kind ? 1 : w->open_s[i]) * likeness(f, kind, at);
        sum += own * f->beta[at];
        weight += own;
    }
    f->mean[kind] = sum / weight;
    for (size_t i = 0; i < w->n_places; i++) {
        size_t at = kind * w->n_places + i;
        double off = f->beta[at] - f->mean[kind];
        square += likeness(f, kind, at) * (off * off + f->inverse[nrg_packed(at, at)]) /
                  (double)w->n_places;
    }
    f->apart[kind] = fmax(sqrt(square), LEAST_APART);
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
    f->w->alpha = fmax(alpha, 1e-5);
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
        w->busy[i] = fmin(fmax(f->beta[i], NRG_LEAST_BUSY), 1);
        w->longer[i] = fmin(fmax(f->beta[w->n_places + i], 0), 1);
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
    for (size_t i = 0; i < w->n_places; i++) {
        w->busy[i] = rate;
        w->longer[i] = rate / 2;
    }
    f->mean[0] = rate;
    f->mean[1] = rate / 2;
    f->apart[0] = f->apart[1] = 0.1;
    w->alpha = 0.01;
    w->gamma = 0.3;
    for (int turn = 0; !rc && turn < TURNS; turn++)
        rc = fit_turn(f);
    for (size_t i = 0; i < w->n_places; i++)
        for (size_t k = 0; k <= i; k++)
            w->error2[nrg_packed(i, k)] = f->inverse[nrg_packed(i, k)];
    for (size_t i = 0; i < SHAPES; i++)
        for (size_t k = 0, at = 2 * w->n_places; k <= i; k++)
            w->shape_error2[nrg_packed(i, k)] = f->inverse[nrg_packed(at + i, at + k)];
    return rc;
}

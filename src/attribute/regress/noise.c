/*
 * The noise of readings, found from the residuals of a first fit: how they grow with the energy of
 * an interval, and how they depend on the reading before. Weights and whitening from it make the
 * powers more certain; the intervals do not rely on it (spread.c).
 */
#include "attribute/regress/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define MAX_ROWS      200000 /* of the first fit */
#define OUTLIER       5.0    /* deviations: beyond, a row loses weight */
#define MAX_WORK      4e9    /* multiplications of a pass */
#define LEAST_NEW     0.05   /* of a row's variance: what the row before does not tell */
#define WORTH_IT      0.03   /* least gain of whitening, which makes rows dense */
#define THETAS        10  /* that are tried; an even number, for processors that do two at once */
#define WHITEN_ROWS   256 /* after which it is looked whether any can still be best */
#define PAIRS         3000
#define NEVER_APART   0.3 /* correlation of rounding that is this high at every distance */
#define MAX_LAG       3000
#define MOST_STEPS    1e15 /* that readings differ by: beyond, a double has no parts of them */
#define STEPS         200  /* that are looked at, for how alike they round */
#define MOST_BORDER   0.45 /* of a row's variance, at either end */
#define CLIP          25.0 /* squares of residuals beyond this many variances are clipped */
#define LEAST_OF_MEAN 1e-3 /* of the mean variance: the least that a variance is */

void nrg_whitener_release(struct nrg_whitener *w)
{
    free(w->last);
    free(w->white);
    *w = (struct nrg_whitener){0};
}

static int grow_whitener(struct nrg_whitener *w, size_t n)
{
    if (nrg_reserve(&w->last, &w->cap_last, n, sizeof *w->last) ||
        nrg_reserve(&w->white, &w->cap_white, n, sizeof *w->white))
        return -ENOMEM;
    for (; w->n < n; w->n++)
        w->last[w->n] = w->white[w->n] = 0;
    return 0;
}

/* Energy of calls that the border of two rows cuts is missing in one and too much in the other. */
static void take_cut(struct nrg_whitener *w, const struct nrg_rowgen *gen, double *variance)
{
    double common = w->primed && !gen->restart ? w->cut * gen->cut_begin2 + w->border2 : 0;
    w->theta = w->variance > 0 ? common / w->variance : 0;
    *variance = fmax(*variance - w->theta * common, LEAST_NEW * *variance);
    w->variance = *variance;
}

/* The n values of a row from number `at` on; `first`: of a stretch. */
static void whiten_values(struct nrg_whitener *w, size_t at, double *values, size_t n, bool first)
{
    double *last = w->last + at, *white = w->white + at, phi = first ? 0 : w->phi,
           theta = first ? 0 : w->theta, kept = first && w->phi > 0 ? 0 : 1;
    for (size_t i = 0; i < n; i++) {
        double now = values[i];
        values[i] = now - phi * last[i] + theta * white[i];
        last[i] = now;
        white[i] = kept * values[i];
    }
}

int nrg_whiten(struct nrg_whitener *w, struct nrg_rowgen *gen, double *variance)
{
    if (w->cut > 0)
        take_cut(w, gen, variance);
    else if (w->phi == 0 && w->theta == 0)
        return 1;
    int rc = grow_whitener(w, gen->n + 1);
    if (rc)
        return rc;
    bool first = !w->primed || gen->restart;
    whiten_values(w, 0, &gen->y, 1, first);
    whiten_values(w, 1, gen->x, gen->n, first);
    w->primed = true;
    gen->dense = true;
    return first && w->phi > 0 ? 0 : 1;
}

double nrg_noise_variance(const struct nrg_noise *noise, double expected,
                          const struct nrg_rowgen *gen)
{
    return noise->floor2 + noise->slope2 * expected * expected +
           (noise->cut + noise->unsure) * (gen->cut_begin2 + gen->cut_end2);
}

double nrg_noise_weight(double v, double white_e)
{
    double off = white_e * white_e / v;
    return off > OUTLIER * OUTLIER ? OUTLIER * OUTLIER / (off * v) : 1 / v;
}

/* Residuals of the first fit. */
struct leftover {
    struct nrg_arena memory;     /* of the arrays */
    double *e, *expected, *cut2; /* cut2: of both ends */
    double *idle, *load;         /* of what is expected: idle's column, and what classes have */
    uint8_t *restart;
    size_t n;
};

/* The second time with the noise that the first fit showed. */
static int fit_prior(struct nrg_regress *r, size_t max_rows)
{
    struct nrg_gram sum = {0};
    bool again = r->prior;
    struct nrg_pass pass = {.kernel = r->kernel,
                            .n_columns = r->n_columns,
                            .max_rows = max_rows,
                            .phi = again ? r->noise.phi : r->first_phi,
                            .theta = again ? r->noise.theta : 0,
                            .cut = again ? r->noise.cut : 0,
                            .border2 = again ? r->noise.border2 : 0,
                            .weigh = again,
                            .kept = true};
    int rc = nrg_regress_sum_rows(r, &pass, &sum);
    if (!rc && !again)
        r->prior = nrg_arena_array(&r->memory, r->n_columns, sizeof *r->prior);
    if (!rc && !r->prior)
        rc = -ENOMEM;
    if (!rc)
        rc = nrg_regress_powers(r, &sum, r->is_calls, r->prior);
    r->n_prior = r->n_columns;
    if (!isnan(r->options.idle_w) && r->prior)
        r->prior[NRG_COLUMN_IDLE] = r->options.idle_w;
    nrg_gram_release(&sum);
    return rc;
}

static int take_leftover(struct nrg_regress *r, size_t max_rows, struct leftover *left)
{
    struct nrg_rowgen gen;
    size_t room = r->rows_expected < max_rows ? r->rows_expected : max_rows;
    left->e = nrg_arena_array(&left->memory, room + 1, sizeof *left->e);
    left->expected = nrg_arena_array(&left->memory, room + 1, sizeof *left->expected);
    left->cut2 = nrg_arena_array(&left->memory, room + 1, sizeof *left->cut2);
    left->idle = nrg_arena_array(&left->memory, room + 1, sizeof *left->idle);
    left->load = nrg_arena_array(&left->memory, room + 1, sizeof *left->load);
    left->restart = nrg_arena_array(&left->memory, room + 1, 1);
    if (left->memory.failed)
        return -ENOMEM;
    int rc = 0;
    nrg_rowgen_init(&gen, &r->options, &r->kernel, NULL, nrg_regress_sees_drift(r, max_rows));
    nrg_regress_keep_rows(r, &gen);
    while ((rc = nrg_rowgen_next(&gen, &r->slices, r->ready_ns, r->n_columns)) > 0 &&
           left->n < room) {
        double expected = nrg_regress_expected(r, &gen);
        left->e[left->n] = gen.y - expected;
        left->expected[left->n] = expected;
        left->cut2[left->n] = gen.cut_begin2 + gen.cut_end2;
        left->idle[left->n] = gen.x[NRG_COLUMN_IDLE];
        left->load[left->n] = nrg_regress_load(r, &gen, expected);
        left->restart[left->n++] = gen.restart;
    }
    nrg_rowgen_release(&gen);
    return rc < 0 ? rc : nrg_regress_take_off_course(r, left->e, left->idle, left->load, left->n);
}

/* Least squares of e^2 on 1 and expected^2 (or what calls may have used on the other side of a
 * row's ends), each weighted by the variance so far. */
static void fit_variance_once(const struct leftover *left, struct nrg_noise *noise, double least,
                              bool cut)
{
    double a00 = 0, a01 = 0, a11 = 0, b0 = 0, b1 = 0;
    for (size_t i = 0; i < left->n; i++) {
        double m2 = cut ? left->cut2[i] : left->expected[i] * left->expected[i];
        double v = fmax(noise->floor2 + noise->slope2 * m2, least);
        double e2 = fmin(left->e[i] * left->e[i], CLIP * v), w = 1 / (v * v);
        a00 += w;
        a01 += w * m2;
        a11 += w * m2 * m2;
        b0 += w * e2;
        b1 += w * e2 * m2;
    }
    double det = a00 * a11 - a01 * a01;
    noise->floor2 = det > 1e-9 * a00 * a11 ? (b0 * a11 - b1 * a01) / det : b0 / a00;
    noise->slope2 = det > 1e-9 * a00 * a11 ? (b1 * a00 - b0 * a01) / det : 0;
    if (noise->slope2 < 0)
        *noise = (struct nrg_noise){.floor2 = b0 / a00};
    else if (noise->floor2 < 0)
        *noise = (struct nrg_noise){.slope2 = b1 / a11};
}

static void fit_variance(const struct leftover *left, struct nrg_noise *noise, bool cut)
{
    double mean = 0;
    for (size_t i = 0; i < left->n; i++)
        mean += left->e[i] * left->e[i] / (double)left->n;
    *noise = (struct nrg_noise){.floor2 = mean};
    for (int turn = 0; mean > 0 && turn < 4; turn++)
        fit_variance_once(left, noise, LEAST_OF_MEAN * mean, cut);
    noise->floor2 = fmax(noise->floor2, LEAST_OF_MEAN * mean);
}

/* One phi with all thetas, side by side: a row has to wait for the one before it, so a single pair
 * would leave the processor idle. */
struct whitened {
    double phi, white[THETAS], sum[THETAS]; /* sum: of the squares of u */
};

static const double thetas[THETAS] = {0, 0.15, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.98};

static void whiten_rows(const struct leftover *left, size_t from, size_t to, struct whitened *w)
{
    double last = from ? left->e[from - 1] : 0;
    for (size_t i = from; i < to; i++) {
        double e = left->e[i], fresh = e - w->phi * last;
        last = e;
        if (!i || left->restart[i]) {
            for (size_t q = 0; q < THETAS; q++)
                w->white[q] = w->phi > 0 ? 0 : e;
            continue;
        }
        for (size_t q = 0; q < THETAS; q++) {
            double u = fresh + thetas[q] * w->white[q], u2 = u * u;
            w->white[q] = u;
            w->sum[q] += u2 < CLIP * CLIP ? u2 : CLIP * CLIP;
        }
    }
}

static double least_sum(const struct whitened *w)
{
    double least = w->sum[0];
    for (size_t q = 1; q < THETAS; q++)
        least = fmin(least, w->sum[q]);
    return least;
}

/* most: of phi. */
static void fit_memory(const struct leftover *left, double most, struct nrg_noise *noise)
{
    static const double phis[] = {0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999};
    double best = INFINITY;
    for (size_t p = 0; p < sizeof phis / sizeof *phis && phis[p] < most; p++) {
        struct whitened w = {.phi = phis[p]};
        for (size_t i = 0; i < left->n && least_sum(&w) < best; i += WHITEN_ROWS)
            whiten_rows(left, i, left->n - i < WHITEN_ROWS ? left->n : i + WHITEN_ROWS, &w);
        if (!p)
            best = w.sum[0] * (1 - WORTH_IT);
        for (size_t q = 0; q < THETAS; q++) {
            if (phis[p] == thetas[q] || !(w.sum[q] < best))
                continue;
            best = w.sum[q];
            noise->phi = phis[p];
            noise->theta = thetas[q];
        }
    }
}

/* Most residuals are less than half a step of the sensor. */
static bool only_rounding(const struct leftover *left, double quantum)
{
    size_t within = 0;
    for (size_t i = 0; i < left->n; i++)
        within += fabs(left->e[i]) < 0.55 * quantum;
    return within > left->n / 10 * 9;
}

/*
 * Errors that grow with the power and come back in the next interval are wrong time stamps of the
 * sensor: what it showed was of a moment somewhere around, so that is what rows must say.
 */
static void blur_level(struct nrg_regress *r)
{
    const struct nrg_noise *n = &r->noise;
    struct nrg_kernel *k = &r->kernel;
    double mean = r->rows_expected ? r->energy_j / (double)r->rows_expected : 0;
    if (r->options.timeline->is_gauge || k->kind != NRG_KERNEL_LEVEL ||
        nrg_kernel_memory_s(k) > 0 || n->phi > 0 || n->theta < 0.4 ||
        n->slope2 * mean * mean < 4 * n->floor2)
        return;
    double off_s = sqrt(n->slope2 / 2) * r->energy_s / (double)r->rows_expected;
    *k = nrg_kernel_moved(*k, -sqrt(3) * off_s, 2 * sqrt(3) * off_s);
}

/* Whitens both series; the first of a stretch is left out. */
static void whiten_leftover(struct leftover *left, double phi, double theta)
{
    double e = 0, m = 0, last_e = 0, last_m = 0;
    size_t kept = 0;
    for (size_t i = 0; i < left->n; i++) {
        bool first = !i || left->restart[i];
        double now_e = left->e[i], now_m = left->expected[i];
        e = first ? 0 : now_e - phi * last_e + theta * e;
        m = first ? 0 : now_m - phi * last_m + theta * m;
        last_e = now_e;
        last_m = now_m;
        if (first)
            continue;
        left->e[kept] = e;
        left->cut2[kept] = left->cut2[i];
        left->expected[kept++] = m;
    }
    left->n = kept;
}

/* What rows that nothing cuts have in common with their neighbours, on the other side: the age of a
 * counter's readings. */
static double fit_border(const struct leftover *left, double floor2)
{
    double n = 0, sum = 0, most = sqrt(CLIP * floor2);
    for (size_t i = 1; i < left->n; i++) {
        if (left->restart[i] || left->cut2[i] > 0 || left->cut2[i - 1] > 0)
            continue;
        double e = fmin(fmax(left->e[i], -most), most),
               last = fmin(fmax(left->e[i - 1], -most), most);
        n++;
        sum -= e * last;
    }
    return n > 0 ? fmin(fmax(sum / n, 0), MOST_BORDER * floor2) : 0;
}

/* Log of the likelihood of what is left, times -2. */
static double unlikely(const struct leftover *left, const struct nrg_noise *noise, bool cut)
{
    double sum = 0;
    for (size_t i = 0; i < left->n; i++) {
        double m2 = cut ? left->cut2[i] : left->expected[i] * left->expected[i];
        double v = noise->floor2 + noise->slope2 * m2;
        sum += v > 0 ? log(v) + fmin(left->e[i] * left->e[i] / v, CLIP) : 0;
    }
    return sum;
}

/* Whether noise grows with what is not known of when others ran, rather than with a row's energy.
 */
static bool others_hide(struct nrg_regress *r, const struct leftover *left)
{
    struct nrg_noise plain, others;
    if (!r->others_unsure || r->waits.used)
        return false;
    fit_variance(left, &plain, false);
    fit_variance(left, &others, true);
    r->others_unsure = unlikely(left, &others, true) < unlikely(left, &plain, false);
    return r->others_unsure;
}

static void set_variance(struct nrg_regress *r, const struct leftover *left)
{
    double phi = r->noise.phi, theta = r->noise.theta;
    bool unsure = others_hide(r, left), cut = nrg_regress_cuts_calls(r);
    fit_variance(left, &r->noise, cut || unsure);
    if (cut || unsure) {
        *(cut ? &r->noise.cut : &r->noise.unsure) = r->noise.slope2;
        r->noise.slope2 = 0;
    }
    if (cut && unsure)
        r->noise.border2 = fit_border(left, r->noise.floor2);
    r->noise.phi = phi;
    r->noise.theta = theta;
    r->noise.floor2 = fmax(r->noise.floor2, r->quantum * r->quantum / 12);
    if (!(r->noise.floor2 > 0))
        r->noise.floor2 = 1;
}

/* More rows are far off than chance explains: they may have biased the prior, and so all else. */
static bool has_outliers(const struct leftover *left)
{
    size_t far = 0;
    for (size_t i = 0; i < left->n; i++)
        far += fabs(left->e[i]) > 4;
    return far > left->n / 1000 + 1;
}

/*
 * A program that does the same every step makes an averaging sensor show the same, and round it the
 * same way, every step: such errors add up as if there were fewer steps. The correlation of the
 * rounding of two readings follows from their expected values: 1 - 6 d (1 - d), where d is the part
 * of a quantisation step that they differ by. The distance with the highest correlation is the
 * program's own period.
 */
static double rounding_correlation(const struct leftover *left, double quantum, size_t lag)
{
    size_t from = left->n / 4, pairs = 0, stride = left->n / 2 / PAIRS + 1;
    double sum = 0, per_w = 1 / quantum;
    for (size_t i = from; i + lag < left->n && pairs < PAIRS; i += stride) {
        double steps = fabs(left->expected[i + lag] - left->expected[i]) * per_w;
        double part = steps < MOST_STEPS ? steps - (double)(int64_t)steps : 0;
        sum += 1 - 6 * part * (1 - part);
        pairs++;
    }
    return pairs ? sum / (double)pairs - 2 / sqrt((double)pairs) : 0;
}

/* Sum of the correlations of a reading's rounding with those of all other steps, which are so many
 * readings apart: less and less alike where steps differ in length. Beyond what is looked at, as
 * they are in the farther half of it. */
static double alike_in_sum(const struct leftover *left, double quantum, size_t apart,
                           size_t longest)
{
    double steps = (double)left->n / (double)apart, sum = 0, far = 0, n_far = 0;
    double last = 0;
    for (size_t lag = apart; lag < longest && last < STEPS; lag += apart) {
        double now = rounding_correlation(left, quantum, lag);
        last++;
        sum += 2 * (1 - last / steps) * now;
        if (lag > longest / 2 || last > STEPS / 2) {
            far += now;
            n_far++;
        }
    }
    double rest = fmax(steps - last - 1, 0);
    return fmax(sum, 0) + (n_far > 0 ? fmax(far / n_far, 0) * rest * rest / steps : 0);
}

static double same_rounding(const struct leftover *left, double quantum, bool averages)
{
    size_t longest = left->n / 4 < MAX_LAG ? left->n / 4 : MAX_LAG, at = 0;
    double noise2 = 0, most = 0, lowest = 1; /* neighbours are alike in any case */
    for (size_t lag = 1; lag < longest; lag++) {
        double now = rounding_correlation(left, quantum, lag);
        lowest = fmin(lowest, now);
        if (averages && now > lowest + 0.05 && now > most) {
            most = now;
            at = lag;
        }
    }
    if (lowest > NEVER_APART && longest > 1) /* a load so steady that nothing averages out */
        at = 1;
    for (size_t i = 0; i < left->n; i++)
        noise2 += left->e[i] * left->e[i] / (double)left->n;
    noise2 = fmax(noise2 - quantum * quantum / 12, 0);
    double blurred = exp(-4 * M_PI * M_PI * noise2 / (quantum * quantum));
    return at ? blurred * alike_in_sum(left, quantum, at, longest) : 0;
}

static int learn_noise(struct nrg_regress *r, size_t max_rows, bool whitening, bool *outliers)
{
    struct leftover left = {0};
    int rc = take_leftover(r, max_rows, &left);
    *outliers = false;
    if (!rc && left.n > 2 * r->n_columns) {
        set_variance(r, &left);
        nrg_regress_learn_sums(r, left.e, left.n);
        /* Rounding alone looks as if it had a memory where power does not change. */
        whitening = whitening && !only_rounding(&left, r->quantum) && !nrg_regress_cuts_calls(r);
        if (r->quantum > 0)
            r->repeats = same_rounding(&left, r->quantum,
                                       nrg_kernel_memory_s(&r->kernel) * 1e9 >
                                           (double)r->options.timeline->period_ns);
        for (size_t i = 0; i < left.n; i++)
            left.e[i] /=
                sqrt(r->noise.floor2 + r->noise.slope2 * left.expected[i] * left.expected[i] +
                     (r->noise.cut + r->noise.unsure) * left.cut2[i]);
        *outliers = has_outliers(&left);
        if (whitening)
            fit_memory(&left, nrg_regress_most_memory(r, left.n), &r->noise);
    }
    nrg_arena_release(&left.memory);
    return rc;
}

/* With phi, noise grows with the part of a row that is new. */
static int learn_fresh(struct nrg_regress *r, size_t max_rows)
{
    struct leftover left = {0};
    int rc = take_leftover(r, max_rows, &left);
    whiten_leftover(&left, r->noise.phi, r->noise.theta);
    if (!rc && left.n > 2 * r->n_columns)
        set_variance(r, &left);
    nrg_arena_release(&left.memory);
    return rc;
}

int nrg_regress_try_otherwise(struct nrg_regress *r)
{
    struct nrg_gram sum = {0};
    struct nrg_pass pass = {.kernel = r->kernel,
                            .n_columns = r->n_columns,
                            .max_rows = MAX_ROWS,
                            .phi = r->noise.phi,
                            .theta = r->noise.theta,
                            .cut = r->noise.cut,
                            .border2 = r->noise.border2,
                            .weigh = true};
    r->otherwise = nrg_arena_array(&r->memory, r->n_columns, sizeof *r->otherwise);
    if (!r->otherwise || !r->prior)
        return r->otherwise ? 0 : -ENOMEM;
    r->n_otherwise = r->n_columns;
    int rc = nrg_regress_sum_rows(r, &pass, &sum);
    if (!rc)
        rc = nrg_regress_powers(r, &sum, r->is_calls, r->otherwise);
    nrg_gram_release(&sum);
    return rc;
}

int nrg_regress_choose_noise(struct nrg_regress *r)
{
    double columns = (double)r->n_columns, dense = columns * columns / 2;
    bool sparse = r->kernel.kind == NRG_KERNEL_LEVEL;
    size_t max_rows = sparse || dense * MAX_ROWS < MAX_WORK ? MAX_ROWS : (size_t)(MAX_WORK / dense);
    r->noise = (struct nrg_noise){.floor2 = 1};
    nrg_kept_rows_forget(r->kept);
    if (max_rows < 4 * r->n_columns)
        return 0; /* too costly: all rows weigh the same */
    int rc = fit_prior(r, max_rows);
    bool outliers = false, whitening = (double)r->rows_expected * dense < 5 * MAX_WORK;
    if (!rc)
        rc = learn_noise(r, max_rows, whitening, &outliers);
    if (!rc && outliers) {
        r->noise.phi = r->noise.theta = 0;
        rc = fit_prior(r, max_rows);
        if (!rc)
            rc = learn_noise(r, max_rows, whitening, &outliers);
    }
    blur_level(r);
    if (!rc)
        rc = fit_prior(r, max_rows);
    if (!rc && r->noise.phi > 0)
        rc = learn_fresh(r, max_rows);
    return rc;
}

/*
 * How the sensor sees the past, found out by trying: the kernel that leaves least unexplained.
 *
 * Trials use at most TRIAL_COLUMNS columns (the classes with most time, the others put together)
 * and TRIAL_ROWS readings, so that their cost does not grow with the recording. A kernel with
 * memory must explain clearly more than one without, because there are many of them to pick from.
 */
#include "attribute/regress/internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define TRIAL_COLUMNS 64
#define TRIAL_ROWS    16000
#define COARSE_ROWS   6000
#define CLEARLY       25.0 /* rows * log of the ratio of what is left; odds of 1 to 10^5 */
#define CLEARLY_PART  0.02 /* and this part of it */
#define LONGEST_S     8.0
#define INSTANT_S     1e-6
#define REFINEMENTS   10

struct trial {
    struct nrg_kernel kernel;
    double phi;  /* noise that lasts: see struct nrg_noise */
    double rest; /* mean square of what is left */
    double rows;
};

struct trials {
    const struct nrg_regress *r;
    uint32_t *map;
    size_t n_columns, max_rows;
    struct nrg_gram sum;
    double *beta;
};

double nrg_regress_expected(const struct nrg_regress *r, const struct nrg_rowgen *gen)
{
    double sum = 0;
    for (size_t i = 0; r->prior && i < r->n_prior && i < gen->n; i++)
        sum += gen->x[i] * r->prior[i];
    return sum;
}

/* 1: added; 0: left out; -errno. */
static int add_row(const struct nrg_regress *r, struct nrg_rowgen *gen, struct nrg_whitener *white,
                   bool weigh, struct nrg_gram *sum)
{
    double idle_w = isnan(r->options.idle_w) ? 0 : r->options.idle_w, weight = 1;
    double expected = weigh ? nrg_regress_expected(r, gen) : 0;
    int rc = nrg_whiten(white, gen);
    if (rc <= 0)
        return rc;
    if (weigh) {
        double fresh = nrg_regress_expected(r, gen);
        weight = nrg_noise_weight(&r->noise, white->phi > 0 ? fresh : expected, gen->y - fresh);
    }
    nrg_gram_add(sum, gen->x, gen->dense ? NULL : gen->touched, gen->n_touched,
                 gen->y - idle_w * gen->x[NRG_COLUMN_IDLE], weight);
    return 1;
}

bool nrg_regress_sees_drift(const struct nrg_regress *r, size_t max_rows)
{
    return r->plenty && r->ready_ns == INT64_MAX && max_rows >= r->rows_expected;
}

int nrg_regress_sum_rows(const struct nrg_regress *r, const struct nrg_pass *pass,
                         struct nrg_gram *sum)
{
    struct nrg_rowgen gen;
    struct nrg_whitener white = {.phi = pass->phi, .theta = pass->theta};
    int rc = nrg_rowgen_init(&gen, &r->options, &pass->kernel, pass->map,
                             nrg_regress_sees_drift(r, pass->max_rows));
    if (!rc)
        rc = nrg_gram_grow(sum, pass->n_columns);
    nrg_gram_clear(sum);
    for (size_t row = 0; rc >= 0 && row < pass->max_rows; row++) {
        rc = nrg_rowgen_next(&gen, &r->slices, r->ready_ns, pass->n_columns);
        if (rc <= 0)
            break;
        rc = add_row(r, &gen, &white, pass->weigh, sum);
    }
    nrg_rowgen_release(&gen);
    nrg_whitener_release(&white);
    return rc < 0 ? rc : 0;
}

/* Columns that have something in them: first those that can't be negative. */
static size_t pick_columns(const struct nrg_regress *r, const struct nrg_gram *sum, size_t *index,
                           size_t *n_bound)
{
    size_t m = 0, from = isnan(r->options.idle_w) ? NRG_COLUMN_IDLE : NRG_COLUMN_CLASSES;
    for (size_t i = from; i < sum->n; i++)
        if (sum->a[nrg_packed(i, i)] > 0)
            index[m++] = i;
    *n_bound = m;
    for (size_t i = 0; i < NRG_COLUMN_IDLE; i++)
        if (sum->a[nrg_packed(i, i)] > 0)
            index[m++] = i;
    return m;
}

int nrg_regress_powers(const struct nrg_regress *r, const struct nrg_gram *sum, double *beta)
{
    size_t n = sum->n, cells = n * (n + 1) / 2, n_bound;
    double *a = calloc(cells + 3 * n + 1, sizeof *a);
    size_t *index = calloc(n + 1, sizeof *index);
    int rc = a && index ? 0 : -ENOMEM;
    if (!rc) {
        double *b = a + cells, *scale = b + n, *x = scale + n;
        size_t m = pick_columns(r, sum, index, &n_bound);
        for (size_t p = 0; p < m; p++) {
            scale[p] = 1 / sqrt(sum->a[nrg_packed(index[p], index[p])]);
            b[p] = sum->b[index[p]] * scale[p];
            for (size_t q = 0; q <= p; q++)
                a[nrg_packed(p, q)] = sum->a[nrg_packed(index[p], index[q])] * scale[p] * scale[q];
        }
        rc = nrg_gram_nonnegative(a, b, m, n_bound, x);
        memset(beta, 0, n * sizeof *beta);
        for (size_t p = 0; !rc && p < m; p++)
            beta[index[p]] = x[p] * scale[p];
    }
    free(a);
    free(index);
    return rc;
}

static int try_kernel(struct trials *t, struct trial *trial)
{
    struct nrg_pass pass = {.kernel = trial->kernel,
                            .map = t->map,
                            .n_columns = t->n_columns,
                            .max_rows = t->max_rows,
                            .phi = trial->phi};
    int rc = nrg_regress_sum_rows(t->r, &pass, &t->sum);
    if (!rc)
        rc = nrg_regress_powers(t->r, &t->sum, t->beta);
    trial->rows = (double)t->sum.rows - (double)t->n_columns;
    trial->rest =
        !rc && trial->rows > 0 ? nrg_gram_residual(&t->sum, t->beta) / trial->rows : INFINITY;
    return rc;
}

static int try_better(struct trials *t, struct trial *best, struct nrg_kernel kernel)
{
    struct trial trial = {.kernel = kernel, .phi = best->phi};
    int rc = try_kernel(t, &trial);
    if (!rc && trial.rest < best->rest)
        *best = trial;
    return rc;
}

static struct nrg_kernel make_kernel(enum nrg_kernel_kind kind, double late_s, double memory_s)
{
    struct nrg_kernel none = {.kind = kind};
    return nrg_kernel_moved(none, late_s, memory_s);
}

/* The kernel with another width about the same middle; of an average, another time constant. */
static struct nrg_kernel widened(struct nrg_kernel kernel, double width_s)
{
    double more_s = width_s - nrg_kernel_memory_s(&kernel);
    return nrg_kernel_moved(kernel, kernel.kind == NRG_KERNEL_EXP ? 0 : -more_s / 2, more_s);
}

/* Steps in both directions of both figures, made smaller whenever none of them helps. */
static int refine(struct trials *t, struct trial *best, double shift_s, double factor)
{
    int rc = 0;
    for (int round = 0; !rc && round < REFINEMENTS && isfinite(best->rest); round++) {
        double before = best->rest, memory_s = nrg_kernel_memory_s(&best->kernel);
        struct nrg_kernel from = best->kernel;
        bool wide = memory_s > 0 && factor > 1;
        if (wide && memory_s * factor < LONGEST_S)
            rc = try_better(t, best, widened(from, memory_s * factor));
        if (!rc && wide)
            rc = try_better(t, best, widened(from, memory_s / factor));
        from = best->kernel;
        if (!rc && shift_s > 0)
            rc = try_better(t, best, nrg_kernel_moved(from, shift_s, 0));
        if (!rc && shift_s > 0)
            rc = try_better(t, best, nrg_kernel_moved(from, -shift_s, 0));
        if (best->rest > before * (1 - 1e-3)) {
            shift_s /= 3;
            factor = cbrt(factor);
        }
    }
    return rc;
}

/*
 * Time constants: what is left falls smoothly towards the right one. Noise of what is averaged
 * lasts as long as the average does (`lasting`), noise of the readings does not.
 */
static int search_average(struct trials *t, double period_s, double longest_s, bool lasting,
                          struct trial *best)
{
    int rc = 0;
    t->max_rows = COARSE_ROWS;
    *best = (struct trial){.rest = INFINITY};
    for (double s = period_s / 2; !rc && s <= longest_s; s *= 2) {
        struct trial trial = {.kernel = make_kernel(NRG_KERNEL_EXP, 0, s),
                              .phi = lasting ? exp(-period_s / s) : 0};
        rc = try_kernel(t, &trial);
        if (!rc && trial.rest < best->rest)
            *best = trial;
    }
    t->max_rows = TRIAL_ROWS;
    if (!rc && isfinite(best->rest))
        rc = try_kernel(t, best);
    return rc ? rc : refine(t, best, 0, 1.4);
}

/* What is left of the same kernel may be less when noise lasts. */
static int try_lasting(struct trials *t, double period_s, struct trial *best)
{
    double memory_s = nrg_kernel_memory_s(&best->kernel);
    double phi[] = {0.9, 0.99, exp(-period_s / fmax(memory_s, period_s / 10))};
    int rc = 0;
    for (size_t i = 0; !rc && isfinite(best->rest) && i < sizeof phi / sizeof *phi; i++) {
        struct trial trial = {.kernel = best->kernel, .phi = phi[i]};
        rc = try_kernel(t, &trial);
        if (!rc && trial.rest < best->rest)
            *best = trial;
    }
    return rc;
}

/* Windows must be met closely to be seen at all, but are round numbers, or of whole periods. */
static int search_window(struct trials *t, double period_s, double longest_s, struct trial *best)
{
    static const double round[] = {1, 1.5, 2, 2.5, 3, 4, 5, 6, 8};
    int rc = 0;
    t->max_rows = COARSE_ROWS;
    for (double decade = 1e-3; decade <= longest_s; decade *= 10)
        for (size_t i = 0; !rc && i < sizeof round / sizeof *round; i++)
            if (round[i] * decade >= period_s / 8 && round[i] * decade <= longest_s)
                rc = try_better(t, best, make_kernel(NRG_KERNEL_BOX, 0, round[i] * decade));
    for (int i = 2; !rc && i <= 10 && i * period_s <= longest_s; i++)
        rc = try_better(t, best, make_kernel(NRG_KERNEL_BOX, 0, i * period_s));
    t->max_rows = TRIAL_ROWS;
    if (!rc && isfinite(best->rest))
        rc = try_kernel(t, best);
    return rc ? rc : refine(t, best, 0, 1.05);
}

static bool clearly_better(const struct trial *trial, const struct trial *base, double part)
{
    return isfinite(trial->rest) && trial->rest < (1 - part) * base->rest &&
           trial->rows * log(base->rest / fmax(trial->rest, 1e-300)) > CLEARLY;
}

/* Prompt, but not exactly: readings that come late, updates of unknown age, stamps that are off. */
static int search_late(struct trials *t, double period_s, struct trial *best)
{
    double update_s = (double)t->r->options.channel->update_ns / 1e9;
    struct nrg_kernel from = best->kernel;
    int rc = 0;
    for (double s = 32e-6; !rc && s <= fmin(2 * period_s, 2.1e-3); s *= 2) {
        rc = try_better(t, best, nrg_kernel_moved(from, s, 0));
        if (!rc)
            rc = try_better(t, best, nrg_kernel_moved(from, -s, 0));
    }
    if (!rc)
        rc = refine(t, best, fmin(64e-6, period_s / 4), 1);
    struct trial wide = *best;
    from = best->kernel;
    for (double s = period_s / 64; !rc && s <= 1.1 * period_s; s *= 2)
        rc = try_better(t, &wide, widened(from, s));
    if (!rc && update_s > 0 && update_s < 4 * period_s)
        rc = try_better(t, &wide, make_kernel(from.kind, 0, update_s));
    double memory_s = nrg_kernel_memory_s(&wide.kernel);
    if (!rc && clearly_better(&wide, best, CLEARLY_PART / 10)) {
        rc = refine(t, &wide, fmin(memory_s, period_s) / 4, 1.4);
        *best = wide;
    }
    return rc;
}

static int by_time(const void *a, const void *b)
{
    const double *x = *(const double *const *)a, *y = *(const double *const *)b;
    return *x > *y ? -1 : *x < *y;
}

/* Time of each column in the held slices decides which stay on their own. */
static int make_map(struct trials *t)
{
    const struct nrg_regress *r = t->r;
    size_t n = r->n_columns;
    double *time = calloc(n, sizeof *time);
    const double **order = calloc(n, sizeof *order);
    t->map = calloc(n, sizeof *t->map);
    int rc = time && order && t->map ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < r->slices.n; i++) {
        const struct nrg_slice *s = &r->slices.items[i];
        time[s->column] += (double)(s->end_ns - s->begin_ns);
    }
    for (size_t i = 0; !rc && i < n; i++)
        order[i] = &time[i];
    if (!rc)
        qsort(order + NRG_COLUMN_CLASSES, n - NRG_COLUMN_CLASSES, sizeof *order, by_time);
    for (size_t i = 0; !rc && i < n; i++)
        t->map[order[i] - time] = (uint32_t)(i < TRIAL_COLUMNS ? i : TRIAL_COLUMNS);
    t->n_columns = n < TRIAL_COLUMNS + 1 ? n : TRIAL_COLUMNS + 1;
    free(time);
    free(order);
    return rc;
}

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Median time between readings; from some of them, spread over the whole. Never 0, not even of a
 * single reading: searches go up from it. */
static double reading_period_s(const struct nrg_timeline *tl)
{
    int64_t step[501];
    size_t n = 0, stride = tl->n > 501 ? tl->n / 501 + 1 : 1;
    for (size_t i = 0; i + 1 < tl->n && n < 501; i += stride)
        step[n++] = tl->t_ns[i + 1] - tl->t_ns[i];
    if (!n)
        return 1e-9;
    qsort(step, n, sizeof *step, compare_i64);
    return fmax(1, (double)step[n / 2]) / 1e9;
}

static void take(struct nrg_regress *r, const struct trial *trial, const char *source)
{
    r->kernel = trial->kernel;
    r->first_phi = trial->phi;
    double period_s = (double)r->options.timeline->period_ns / 1e9;
    if (!strcmp(source, "fitted") && fabs(nrg_kernel_lag_s(&r->kernel)) < period_s / 50 &&
        nrg_kernel_memory_s(&r->kernel) < period_s / 50)
        source = "none"; /* nothing that anybody would call a lag */
    nrg_copy(r->lag_source, sizeof r->lag_source, source);
}

/* A reading is of that instant, or the mean since the last: files do not say which. */
static int try_prompt(struct trials *t, struct trial *best)
{
    best->rest = INFINITY;
    int rc = try_better(t, best, (struct nrg_kernel){.kind = NRG_KERNEL_LEVEL});
    if (!rc && t->r->options.timeline->gauge)
        rc = try_better(
            t, best,
            (struct nrg_kernel){.kind = NRG_KERNEL_BOX, .near_s = -INSTANT_S, .far_s = INSTANT_S});
    return rc;
}

/* The driver knows how long, and not always which shape. */
static int try_known(struct trials *t, double lag_s, struct trial *best)
{
    best->rest = INFINITY;
    int rc = try_better(t, best, make_kernel(NRG_KERNEL_EXP, 0, lag_s));
    if (!rc && t->r->options.timeline->gauge)
        rc = try_better(t, best, make_kernel(NRG_KERNEL_BOX, 0, 2 * lag_s));
    if (!rc && t->r->options.timeline->gauge)
        rc = try_better(t, best, make_kernel(NRG_KERNEL_BOX, 0, lag_s));
    return rc;
}

/*
 * A change of the load has shown the time constant. Under a steady load readings tell little of
 * it, so it is only moved where that explains clearly more.
 */
static int start_from_seen(struct trials *t, struct nrg_regress *r)
{
    struct trial seen = {0};
    int rc = try_known(t, r->options.seen_lag_s, &seen);
    struct trial better = seen;
    if (!rc)
        rc = refine(t, &better, 0, 1.05);
    if (!rc)
        take(r, clearly_better(&better, &seen, CLEARLY_PART) ? &better : &seen, "fitted");
    return rc;
}

static int find_out(struct trials *t, struct nrg_regress *r, const struct trial *prompt)
{
    const struct nrg_timeline *tl = r->options.timeline;
    double period_s = reading_period_s(tl);
    double span_s = (double)(tl->t_ns[tl->n - 1] - tl->t_ns[0]) / 1e9;
    double longest_s = fmin(LONGEST_S, span_s / 8);
    /* What explains all but the sensor's own steps needs no better. */
    bool search = tl->gauge && prompt->rest > r->quantum * r->quantum;
    struct trial late = *prompt, average = {.rest = INFINITY}, window = average, slow = average;
    int rc = search_late(t, period_s, &late);
    if (!rc && search)
        rc = search_average(t, period_s, longest_s, false, &average);
    if (!rc && search)
        rc = search_average(t, period_s, longest_s, true, &slow);
    if (!rc && search)
        rc = search_window(t, period_s, longest_s, &window);
    struct trial lasting = late;
    if (!rc && search)
        rc = try_lasting(t, period_s, &lasting);
    const struct trial *best = average.rest < window.rest ? &average : &window;
    best = slow.rest < best->rest ? &slow : best;
    /* Noise that lasts is more often a sensor that averages than anything else. */
    if (!rc && clearly_better(best, &late, CLEARLY_PART) &&
        !clearly_better(&lasting, best, CLEARLY_PART))
        take(r, best, "fitted");
    else if (!rc && clearly_better(&late, prompt, CLEARLY_PART / 10))
        take(r, &late, "fitted");
    return rc;
}

static int choose(struct trials *t, struct nrg_regress *r)
{
    const struct nrg_regress_options *o = &r->options;
    double lag_s = o->lag == NRG_LAG_GIVEN  ? o->lag_s
                   : o->lag == NRG_LAG_NONE ? 0
                   : o->channel->lag_ns > 0 ? (double)o->channel->lag_ns / 1e9
                   : isfinite(o->lag_s)     ? o->lag_s
                                            : 0;
    struct trial best = {0};
    if (lag_s > 0 && o->lag == NRG_LAG_GIVEN) {
        best = (struct trial){.kernel = make_kernel(NRG_KERNEL_EXP, 0, lag_s)};
        take(r, &best, "given");
        return 0;
    }
    if (lag_s > 0) {
        int rc = try_known(t, lag_s, &best);
        if (!rc)
            take(r, &best, "driver");
        return rc;
    }
    if (o->lag == NRG_LAG_AUTO && o->seen_lag_s > 0 && o->timeline->gauge)
        return start_from_seen(t, r);
    int rc = try_prompt(t, &best);
    if (rc)
        return rc;
    take(r, &best, "none");
    return o->lag == NRG_LAG_AUTO ? find_out(t, r, &best) : 0;
}

int nrg_regress_choose_kernel(struct nrg_regress *r)
{
    struct trials t = {.r = r, .max_rows = TRIAL_ROWS};
    int rc = make_map(&t);
    if (!rc)
        t.beta = calloc(t.n_columns + 1, sizeof *t.beta);
    if (!rc && !t.beta)
        rc = -ENOMEM;
    if (!rc)
        rc = choose(&t, r);
    nrg_gram_release(&t.sum);
    free(t.map);
    free(t.beta);
    return rc;
}

/*
 * How the sensor sees the past, found by trying: the kernel with the smallest residuals.
 *
 * Trials use at most TRIAL_COLUMNS columns (the classes with most time, the others put together)
 * and TRIAL_ROWS readings, so that their cost does not grow with the recording. A kernel with
 * memory must explain clearly more than one without, because there are many of them to pick from.
 */
#include "attribute/regress/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define TRIAL_COLUMNS 64
#define TRIAL_ROWS    16000
#define TRIAL_SLICES  50000.0
#define LEAST_ROWS    2000.0
#define COARSE_ROWS   6000
#define CLEARLY       25.0 /* rows * log of the ratio of what is left; odds of 1 to 10^5 */
#define CLEARLY_PART  0.02 /* and this part of it */
#define LONGEST_S     8.0
#define INSTANT_S     1e-6
#define REFINEMENTS   10
#define LASTING       0.1 /* of what is left: noise that lasts must explain it */
#define OLDEST_S      5.0
#define SOON_S        2.1e-3 /* readings are seldom later without being of an earlier update */
#define AGES          16     /* delays that are tried, up to the oldest */
#define UPDATE_AGES   16     /* of an update */
#define FEW_AGES      4
#define WINDOW_AGES   24 /* the same of a window that is known */

struct trial {
    struct nrg_kernel kernel;
    double phi;  /* noise that lasts: see struct nrg_noise */
    double rest; /* mean square of what is left */
    double rows;
};

struct trials {
    const struct nrg_regress *r;
    struct nrg_arena memory; /* of map, is_calls and beta */
    uint32_t *map;
    bool *is_calls;                   /* per column of the trial */
    size_t n_columns, rows, max_rows; /* rows: of a trial that is not coarse */
    size_t observed;                  /* no trial has more rows than that */
    struct nrg_gram sum;
    double *beta;
    struct nrg_prefix prefix;
};

/* It need not be told by how much it is worse than the best one. */
static int try_kernel(struct trials *t, struct trial *trial, double best_rest)
{
    size_t most_rows = t->max_rows < t->observed ? t->max_rows : t->observed;
    struct nrg_pass pass = {.kernel = trial->kernel,
                            .map = t->map,
                            .n_columns = t->n_columns,
                            .max_rows = t->max_rows,
                            .phi = trial->phi,
                            .is_calls = t->is_calls,
                            .prefix = &t->prefix};
    if (isfinite(best_rest) && most_rows > t->n_columns)
        pass.most_left = best_rest * (double)(most_rows - t->n_columns);
    trial->rest = INFINITY;
    int rc = nrg_regress_sum_rows(t->r, &pass, &t->sum);
    if (rc == -EDOM)
        return 0;
    if (!rc)
        rc = nrg_regress_powers(t->r, &t->sum, t->is_calls, t->beta);
    trial->rows = (double)t->sum.rows - (double)t->n_columns;
    if (!rc && trial->rows > 0)
        trial->rest = nrg_gram_residual(&t->sum, t->beta) / trial->rows;
    return rc;
}

/* Keeps the trial where it leaves less than the best so far. */
static int try_with_phi(struct trials *t, struct trial *best, struct nrg_kernel kernel, double phi)
{
    struct trial trial = {.kernel = kernel, .phi = phi};
    int rc = try_kernel(t, &trial, best->rest);
    if (!rc && trial.rest < best->rest)
        *best = trial;
    return rc;
}

static int try_better(struct trials *t, struct trial *best, struct nrg_kernel kernel)
{
    return try_with_phi(t, best, kernel, best->phi);
}

static struct nrg_kernel make_kernel(enum nrg_kernel_kind kind, double late_s, double memory_s)
{
    struct nrg_kernel none = {.kind = kind};
    return nrg_kernel_moved(none, late_s, memory_s);
}

static bool clearly_better(const struct trial *trial, const struct trial *base, double part)
{
    return isfinite(trial->rest) && trial->rest < (1 - part) * base->rest &&
           trial->rows * log(base->rest / fmax(trial->rest, 1e-300)) > CLEARLY;
}

/* The kernel with another width about the same middle; of an average, another time constant. */
static struct nrg_kernel widened(struct nrg_kernel kernel, double width_s)
{
    double more_s = width_s - nrg_kernel_memory_s(&kernel);
    return nrg_kernel_moved(kernel, kernel.kind == NRG_KERNEL_EXP ? 0 : -more_s / 2, more_s);
}

/* Steps in both directions of both figures, made smaller whenever none of them helps. */
static int refine_kernel(struct trials *t, struct trial *best, double shift_s, double factor)
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
        bool early = from.kind == NRG_KERNEL_EXP && from.near_s < shift_s; /* than it happened */
        if (!rc && shift_s > 0 && !early)
            rc = try_better(t, best, nrg_kernel_moved(from, -shift_s, 0));
        if (best->rest > before * (1 - 1e-3)) {
            shift_s /= 3;
            factor = cbrt(factor);
        }
    }
    return rc;
}

/*
 * An average is of the sensor's last update: calls that are as short as that is old would else have
 * their neighbours' energy. Readings in step with the updates are all as old, others anything up to
 * an update, by chance: then rows have what they show in the mean. Clearly better, or it is prompt;
 * clearer where nothing says that there are updates. factor: of the time constant, 1 if it is
 * known.
 */
static int search_age(struct trials *t, double factor, struct trial *best)
{
    const struct nrg_timeline *tl = t->r->options.timeline;
    double oldest_s = fmin((double)(tl->update_ns ? tl->update_ns : tl->period_ns) / 1e9, OLDEST_S);
    struct trial late = *best;
    bool may_be = tl->is_gauge && best->kernel.kind == NRG_KERNEL_EXP && isfinite(best->rest);
    int rc = 0;
    for (int i = 1; !rc && may_be && i <= AGES; i++)
        rc = try_better(t, &late, nrg_kernel_moved(best->kernel, oldest_s * i / AGES, 0));
    for (double s = oldest_s; !rc && may_be && s > oldest_s / AGES; s /= 2) {
        struct nrg_kernel any = best->kernel;
        any.far_s += s;
        rc = try_better(t, &late, any);
    }
    if (!rc && may_be)
        rc = refine_kernel(t, &late, oldest_s / AGES, factor);
    if (clearly_better(&late, best, tl->update_ns ? CLEARLY_PART / 10 : CLEARLY_PART))
        *best = late;
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
    t->max_rows = t->rows < COARSE_ROWS ? t->rows : COARSE_ROWS;
    *best = (struct trial){.rest = INFINITY};
    for (double s = period_s / 2; !rc && s <= longest_s; s *= 2)
        rc = try_with_phi(t, best, make_kernel(NRG_KERNEL_EXP, 0, s),
                          lasting ? exp(-period_s / s) : 0);
    t->max_rows = t->rows;
    if (!rc && isfinite(best->rest))
        rc = try_kernel(t, best, INFINITY);
    if (!rc)
        rc = refine_kernel(t, best, 0, 1.4);
    return rc ? rc : search_age(t, 1.02, best);
}

/* The same kernel may leave smaller residuals with noise that lasts. */
static int try_lasting(struct trials *t, double period_s, struct trial *best)
{
    double memory_s = nrg_kernel_memory_s(&best->kernel);
    double phi[] = {0.9, 0.99, exp(-period_s / fmax(memory_s, period_s / 10))};
    int rc = 0;
    for (size_t i = 0; !rc && isfinite(best->rest) && i < sizeof phi / sizeof *phi; i++)
        rc = try_with_phi(t, best, best->kernel, phi[i]);
    return rc;
}

/* A window shows only when its length is nearly right, but lengths are round numbers or whole
 * periods. */
static int search_window(struct trials *t, double period_s, double longest_s, struct trial *best)
{
    static const double round[] = {1, 1.5, 2, 2.5, 3, 4, 5, 6, 8};
    int rc = 0;
    t->max_rows = t->rows < COARSE_ROWS ? t->rows : COARSE_ROWS;
    for (double decade = 1e-3; decade <= longest_s; decade *= 10)
        for (size_t i = 0; !rc && i < sizeof round / sizeof *round; i++)
            if (round[i] * decade >= period_s / 8 && round[i] * decade <= longest_s)
                rc = try_better(t, best, make_kernel(NRG_KERNEL_BOX, 0, round[i] * decade));
    for (int i = 2; !rc && i <= 10 && i * period_s <= longest_s; i++)
        rc = try_better(t, best, make_kernel(NRG_KERNEL_BOX, 0, i * period_s));
    t->max_rows = t->rows;
    if (!rc && isfinite(best->rest))
        rc = try_kernel(t, best, INFINITY);
    return rc ? rc : refine_kernel(t, best, 0, 1.05);
}

/* How far apart the ages of readings may be. A counter's is at most one update; what others do is
 * known per cell only, and would look smoother through a wider kernel. */
static double widest_level_s(const struct nrg_regress *r, double period_s)
{
    double update_s = (double)r->options.channel->update_ns / 1e9;
    bool gauge = r->options.timeline->is_gauge;
    return gauge || !(update_s > 0) ? period_s : fmin(period_s, 2 * update_s);
}

/* A counter whose updates were found: the grid has taken up any short delay, and try_ages has tried
 * longer ones. */
static bool knows_delay(const struct nrg_regress *r, const struct trial *best)
{
    return r->options.updates.sought && !r->options.timeline->is_gauge &&
           !(nrg_kernel_lag_s(&best->kernel) > 0);
}

/* Readings that come late, or that are of an earlier update. */
static int search_delay(struct trials *t, double period_s, struct trial *best)
{
    double update_s = (double)t->r->options.channel->update_ns / 1e9;
    struct nrg_kernel from = best->kernel;
    bool gauge = t->r->options.timeline->is_gauge;
    double oldest_s = fmin(update_s + (gauge ? period_s : 0), OLDEST_S);
    double step_s = fmin(64e-6, period_s / 4);
    int rc = 0;
    double most_s = fmin(2 * period_s, !gauge && update_s > 0 ? fmin(update_s, SOON_S) : SOON_S);
    for (double s = 32e-6; !rc && s <= most_s; s *= 2) {
        rc = try_better(t, best, nrg_kernel_moved(from, s, 0));
        if (!rc)
            rc = try_better(t, best, nrg_kernel_moved(from, -s, 0));
    }
    /* A reading is at most an update old; a gauge's may be a mean since the reading before. */
    bool old = oldest_s > 4e-3;
    for (double s = SOON_S; !rc && old && s < oldest_s / AGES; s *= 1.5)
        rc = try_better(t, best, nrg_kernel_moved(from, s, 0));
    for (int i = 1; !rc && old && i <= AGES; i++)
        rc = try_better(t, best, nrg_kernel_moved(from, oldest_s * i / AGES, 0));
    double late_s = best->kernel.near_s - from.near_s;
    if (late_s >= SOON_S) /* so far from one that was tried to the next, about */
        step_s = fmin(oldest_s / (2 * AGES), late_s / 4);
    return rc ? rc : refine_kernel(t, best, step_s, 1);
}

/* Prompt, but not exactly: readings that come late, updates of unknown age, stamps that are off. */
static int search_late(struct trials *t, double period_s, struct trial *best)
{
    double update_s = (double)t->r->options.channel->update_ns / 1e9;
    int rc = knows_delay(t->r, best) ? 0 : search_delay(t, period_s, best);
    struct trial wide = *best;
    struct nrg_kernel from = best->kernel;
    double widest_s = widest_level_s(t->r, period_s);
    for (double s = widest_s / 64; !rc && s <= 1.1 * widest_s; s *= 2)
        rc = try_better(t, &wide, widened(from, s));
    if (!rc && update_s > 0 && update_s < 4 * period_s)
        rc = try_better(t, &wide, make_kernel(from.kind, 0, update_s));
    double memory_s = nrg_kernel_memory_s(&wide.kernel);
    if (!rc && clearly_better(&wide, best, CLEARLY_PART / 10)) {
        rc = refine_kernel(t, &wide, fmin(memory_s, period_s) / 4, 1.4);
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
    t->n_columns = n < TRIAL_COLUMNS + 1 ? n : TRIAL_COLUMNS + 1;
    t->map = nrg_arena_array(&t->memory, n, sizeof *t->map);
    t->beta = nrg_arena_array(&t->memory, t->n_columns + 1, sizeof *t->beta);
    t->is_calls = nrg_arena_array(&t->memory, t->n_columns + 1, sizeof *t->is_calls);
    double *time = nrg_arena_array(&t->memory, n, sizeof *time);
    const double **order = nrg_arena_array(&t->memory, n, sizeof *order);
    if (t->memory.failed)
        return -ENOMEM;
    for (size_t i = 0; i < r->slices.n; i++) {
        const struct nrg_regress_slice *s = &r->slices.items[i];
        time[s->column] += (double)(s->end_ns - s->begin_ns);
        if (r->options.calls)
            time[s->calls_column] += (double)(s->end_ns - s->begin_ns) / 2; /* after the class */
    }
    for (size_t i = 0; r->options.together && i < NRG_TOGETHER; i++)
        time[r->options.together->first + i] = INFINITY;
    for (size_t i = 0; i < n; i++)
        order[i] = &time[i];
    qsort(order + NRG_COLUMN_CLASSES, n - NRG_COLUMN_CLASSES, sizeof *order, by_time);
    for (size_t i = 0; i < n; i++)
        t->map[order[i] - time] = (uint32_t)(i < TRIAL_COLUMNS ? i : TRIAL_COLUMNS);
    for (size_t i = 0; i < n && i < TRIAL_COLUMNS; i++)
        t->is_calls[i] = r->is_calls[order[i] - time];
    return 0;
}

static void take_trial(struct nrg_regress *r, const struct trial *trial, const char *source)
{
    r->kernel = trial->kernel;
    r->first_phi = trial->phi;
    double period_s = (double)r->options.timeline->period_ns / 1e9;
    if (!strcmp(source, "fitted") && fabs(nrg_kernel_lag_s(&r->kernel)) < period_s / 50 &&
        nrg_kernel_memory_s(&r->kernel) < period_s / 50)
        source = "none"; /* too short to be called a lag */
    nrg_copy(r->lag_source, sizeof r->lag_source, source);
}

/* Threads that wait late in their calls look like a sensor that is early: then no age is believed
 * that updates do not explain. */
static bool knows_age(const struct nrg_regress *r)
{
    return (r->options.waits_w || r->waits.used) && !r->options.timeline->is_gauge &&
           r->options.channel->update_ns > 0;
}

/* Readings that are all as old: up to an update, in steps, then closer about the best. */
static int try_same_ages(struct trials *t, double update_s, int steps, struct trial *best)
{
    double step_s = update_s / steps;
    int rc = 0;
    for (int i = 1; !rc && i <= steps; i++)
        rc = try_better(t, best, make_kernel(NRG_KERNEL_LEVEL, step_s * i, 0));
    for (; !rc && steps < UPDATE_AGES; steps *= 2) {
        double at_s = best->kernel.near_s;
        step_s /= 2;
        if (at_s > 0)
            rc = try_better(t, best, make_kernel(NRG_KERNEL_LEVEL, at_s - step_s, 0));
        if (!rc && at_s < update_s)
            rc = try_better(t, best, make_kernel(NRG_KERNEL_LEVEL, at_s + step_s, 0));
    }
    return rc;
}

/* A counter's reading is as old as its last update: always the same, where it is read in step with
 * its updates, or anything between. Short updates hardly differ from one age to the next. That it
 * is the same must show clearly where threads wait. */
static int try_ages(struct trials *t, struct trial *best)
{
    double update_s = (double)t->r->options.channel->update_ns / 1e9;
    struct trial any = {.rest = INFINITY};
    if (!(update_s > 0))
        return 0;
    int rc = try_same_ages(t, update_s, t->r->published.used ? UPDATE_AGES : FEW_AGES, best);
    if (!rc)
        rc = try_better(t, &any, make_kernel(NRG_KERNEL_LEVEL, 0, update_s));
    bool doubted = knows_age(t->r) && !clearly_better(best, &any, CLEARLY_PART);
    *best = doubted || any.rest <= best->rest ? any : *best;
    return rc;
}

/* The mean of as long as the driver says, or of whole ms where it does not, which is not the time
 * between two updates: these are on a clock of their own. */
static int try_said_mean(struct trials *t, struct trial *best)
{
    const struct nrg_channel *c = t->r->options.channel;
    double found_s = round(t->r->published.update_s * 1e3) / 1e3;
    int64_t said_ns = c->window_ns > 0 ? c->window_ns : c->update_ns;
    double mean_s = said_ns > 0 ? (double)said_ns / 1e9 : found_s;
    bool known = t->r->published.used && mean_s > 0;
    return known ? try_better(t, best, make_kernel(NRG_KERNEL_BOX, 0, mean_s)) : 0;
}

/* A reading is of that instant, or the mean since the last: files do not say which. */
static int try_prompt(struct trials *t, struct trial *best)
{
    static const double phis[] = {0.4, 0.7, 0.9};
    *best = (struct trial){.rest = INFINITY};
    int rc = try_better(t, best, (struct nrg_kernel){.kind = NRG_KERNEL_LEVEL});
    if (!rc && !t->r->options.timeline->is_gauge)
        rc = try_ages(t, best);
    /* What others do within a cell is not known, and lasts: as noise that is independent from row
     * to row it would make any delay look better or worse than it is. */
    for (size_t i = 0; !rc && !t->r->options.timeline->is_gauge && i < sizeof phis / sizeof *phis;
         i++) {
        struct trial lasting = *best;
        rc = try_with_phi(t, &lasting, best->kernel, phis[i]);
        if (!rc && lasting.rest < (1 - LASTING) * best->rest)
            *best = lasting;
    }
    if (!rc && t->r->options.timeline->is_gauge)
        rc = try_better(
            t, best,
            (struct nrg_kernel){.kind = NRG_KERNEL_BOX, .near_s = -INSTANT_S, .far_s = INSTANT_S});
    if (!rc && t->r->options.timeline->is_gauge)
        rc = try_said_mean(t, best);
    return rc;
}

/* The driver states how long the sensor averages, not always the shape. */
static int try_known(struct trials *t, double lag_s, struct trial *best)
{
    best->rest = INFINITY;
    int rc = try_better(t, best, make_kernel(NRG_KERNEL_EXP, 0, lag_s));
    if (!rc && t->r->options.timeline->is_gauge)
        rc = try_better(t, best, make_kernel(NRG_KERNEL_BOX, 0, 2 * lag_s));
    if (!rc && t->r->options.timeline->is_gauge)
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
        rc = refine_kernel(t, &better, 0, 1.05);
    struct trial best = clearly_better(&better, &seen, CLEARLY_PART) ? better : seen;
    if (!rc)
        rc = search_age(t, 1.02, &best);
    if (!rc)
        take_trial(r, &best, "fitted");
    return rc;
}

static int search_kernel(struct trials *t, struct nrg_regress *r, const struct trial *prompt)
{
    const struct nrg_timeline *tl = r->options.timeline;
    double period_s = nrg_reading_period_s(tl);
    double span_s = (double)(nrg_point_ns(tl, tl->n - 1) - nrg_point_ns(tl, 0)) / 1e9;
    double longest_s = fmin(LONGEST_S, span_s / 8);
    /* A kernel that leaves only the sensor's own quantisation needs no better. */
    bool search = tl->is_gauge && prompt->rest > r->quantum * r->quantum;
    struct trial late = *prompt, average = {.rest = INFINITY}, window = average, slow = average;
    int rc = knows_age(r) ? 0 : search_late(t, period_s, &late);
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
        take_trial(r, best, "fitted");
    else if (!rc && clearly_better(&late, prompt, CLEARLY_PART / 10))
        take_trial(r, &late, "fitted");
    return rc;
}

/* Updates that jitter show a moment somewhere about their grid's: a window that is wider than the
 * sensor's own. */
static int search_jitter(struct trials *t, double widest_s, struct trial *best)
{
    struct trial wide = *best;
    double window_s = nrg_kernel_memory_s(&best->kernel);
    int rc = 0;
    for (double s = window_s / 8; !rc && s <= widest_s; s *= 2)
        rc = try_better(t, &wide, widened(best->kernel, s));
    if (rc || !clearly_better(&wide, best, CLEARLY_PART))
        return rc;
    *best = wide;
    return refine_kernel(t, best, nrg_kernel_memory_s(&wide.kernel) / 8, 1.4);
}

/*
 * It is known for how long of each update the sensor looks; by when, it is not: the window may have
 * ended up to the rest of an update ago.
 */
static int search_known_window(struct trials *t, struct nrg_regress *r)
{
    double window_s = r->published.window_s, rest_s = r->published.update_s - window_s;
    double step_s = fmin(window_s / 4, rest_s / WINDOW_AGES);
    struct trial prompt = {.rest = INFINITY};
    int rc = try_better(t, &prompt, make_kernel(NRG_KERNEL_BOX, 0, window_s));
    struct trial late = prompt;
    for (int i = 1; !rc && i <= WINDOW_AGES; i++)
        rc = try_better(t, &late, make_kernel(NRG_KERNEL_BOX, rest_s * i / WINDOW_AGES, window_s));
    if (!rc)
        rc = refine_kernel(t, &late, step_s, 1);
    if (!rc)
        rc = refine_kernel(t, &prompt, step_s / 8, 1);
    struct trial best = clearly_better(&late, &prompt, CLEARLY_PART) ? late : prompt;
    if (!rc)
        rc = search_jitter(t, r->published.update_s / 2, &best);
    if (!rc)
        take_trial(r, &best, "driver");
    return rc;
}

/* It is known of how many updates the sensor shows the mean. These are as long as their grid says,
 * or the mean is of whole ms, by another clock. */
static int try_running_mean(struct trials *t, struct nrg_regress *r)
{
    static const double phis[] = {0, 0.9, NRG_MEAN_PHI, 0.999};
    const struct nrg_updates_found *found = &r->options.updates;
    bool placed = found->sought && found->period_s > 0;
    double mean_s = r->published.mean_updates * (placed ? found->period_s : r->published.update_s);
    double means_s[] = {mean_s, round(mean_s * 1e3) / 1e3};
    struct trial best = {.rest = INFINITY};
    int rc = 0;
    for (size_t i = 0; !rc && i < 2 * sizeof phis / sizeof *phis; i++)
        rc = try_with_phi(t, &best, make_kernel(NRG_KERNEL_BOX, 0, means_s[i % 2]), phis[i / 2]);
    if (!rc) /* a grid was found with the one: the other has its middle there */
        rc = refine_kernel(t, &best, fabs(means_s[1] - means_s[0]), 1);
    if (!rc)
        take_trial(r, &best, r->options.channel->window_ns ? "driver" : "fitted");
    return rc;
}

static int choose_by_lag(struct trials *t, struct nrg_regress *r)
{
    const struct nrg_regress_options *o = &r->options;
    double lag_s = o->lag == NRG_LAG_GIVEN  ? o->lag_s
                   : o->lag == NRG_LAG_NONE ? 0
                   : o->channel->lag_ns > 0 ? (double)o->channel->lag_ns / 1e9
                   : isfinite(o->lag_s)     ? o->lag_s
                                            : 0;
    struct trial best = {0};
    if (o->lag == NRG_LAG_AUTO && r->published.mean_updates > 0)
        return try_running_mean(t, r);
    if (lag_s > 0 && o->lag == NRG_LAG_GIVEN) {
        best = (struct trial){.kernel = make_kernel(NRG_KERNEL_EXP, 0, lag_s)};
        take_trial(r, &best, "given");
        return 0;
    }
    if (lag_s > 0) {
        int rc = try_known(t, lag_s, &best);
        if (!rc)
            rc = search_age(t, 1, &best);
        if (!rc)
            take_trial(r, &best, "driver");
        return rc;
    }
    if (o->lag == NRG_LAG_AUTO && nrg_regress_sees_window(r))
        return search_known_window(t, r);
    if (o->lag == NRG_LAG_AUTO && o->seen_lag_s > 0 && o->timeline->is_gauge)
        return start_from_seen(t, r);
    int rc = try_prompt(t, &best);
    if (rc)
        return rc;
    take_trial(r, &best, "none");
    return o->lag == NRG_LAG_AUTO ? search_kernel(t, r, &best) : 0;
}

/* A trial costs as many rows as it has, and as many slices as they hold. */
static size_t trial_rows(const struct nrg_regress *r)
{
    double per_row = r->rows_expected ? (double)r->slices.n / (double)r->rows_expected : 0;
    double rows = per_row > 0 ? TRIAL_SLICES / per_row : TRIAL_ROWS;
    return (size_t)fmin(fmax(rows, LEAST_ROWS), TRIAL_ROWS);
}

static size_t count_observations(const struct nrg_regress *r)
{
    struct nrg_observer observer;
    struct nrg_observation seen;
    size_t n = 0;
    nrg_observer_init(&observer, &r->options);
    while (nrg_observe(&observer, &seen))
        n++;
    return n;
}

int nrg_regress_choose_kernel(struct nrg_regress *r)
{
    struct trials t = {.r = r, .rows = trial_rows(r), .observed = count_observations(r)};
    t.max_rows = t.rows;
    int rc = make_map(&t);
    if (!rc)
        rc = nrg_prefix_make(&t.prefix, &r->slices, &r->options, t.map, t.n_columns,
                             r->rows_expected);
    if (!rc)
        rc = choose_by_lag(&t, r);
    nrg_prefix_release(&t.prefix);
    nrg_gram_release(&t.sum);
    nrg_arena_release(&t.memory);
    return rc;
}

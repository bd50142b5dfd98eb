/*
 * See trials.h. Trials use at most TRIAL_COLUMNS columns (the classes with most time, the others
 * put together) and TRIAL_ROWS readings, so that their cost does not grow with the recording.
 */
#include "attribute/regress/trials.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define TRIAL_COLUMNS 64
#define TRIAL_ROWS    16000
#define TRIAL_SLICES  50000.0
#define LEAST_ROWS    2000.0
#define REFINEMENTS   10
#define UNTOLD        0.04 /* gain of a step: a fifth of a standard error */

int nrg_try_kernel(struct nrg_trials *t, struct nrg_trial *trial, double best_rest)
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

int nrg_try_with_phi(struct nrg_trials *t, struct nrg_trial *best, struct nrg_kernel kernel,
                     double phi)
{
    struct nrg_trial trial = {.kernel = kernel, .phi = phi};
    int rc = nrg_try_kernel(t, &trial, best->rest);
    if (!rc && trial.rest < best->rest)
        *best = trial;
    return rc;
}

int nrg_try_better(struct nrg_trials *t, struct nrg_trial *best, struct nrg_kernel kernel)
{
    return nrg_try_with_phi(t, best, kernel, best->phi);
}

double nrg_trial_gain(const struct nrg_trial *trial, const struct nrg_trial *base)
{
    bool told = isfinite(trial->rest) && isfinite(base->rest);
    return told ? trial->rows * log(base->rest / fmax(trial->rest, 1e-300)) : 0;
}

bool nrg_clearly_better(const struct nrg_trial *trial, const struct nrg_trial *base, double part)
{
    return isfinite(trial->rest) && trial->rest < (1 - part) * base->rest &&
           nrg_trial_gain(trial, base) > NRG_TRIAL_CLEARLY;
}

struct nrg_kernel nrg_kernel_widened(struct nrg_kernel kernel, double width_s)
{
    double more_s = width_s - nrg_kernel_memory_s(&kernel);
    return nrg_kernel_moved(kernel, kernel.kind == NRG_KERNEL_EXP ? 0 : -more_s / 2, more_s);
}

/* Steps of a refinement, and whether the last ones made a difference that readings can tell. */
struct steps {
    double shift_s, factor;
    bool told;
};

static int try_step(struct nrg_trials *t, struct nrg_trial *best, struct nrg_kernel kernel,
                    struct steps *steps)
{
    struct nrg_trial trial = {.kernel = kernel, .phi = best->phi};
    int rc = nrg_try_kernel(t, &trial, best->rest);
    steps->told |= !isfinite(trial.rest) || fabs(nrg_trial_gain(&trial, best)) > UNTOLD;
    if (!rc && trial.rest < best->rest)
        *best = trial;
    return rc;
}

/* A step in both directions of both figures. */
static int try_steps(struct nrg_trials *t, struct nrg_trial *best, struct steps *steps)
{
    double memory_s = nrg_kernel_memory_s(&best->kernel), shift_s = steps->shift_s;
    struct nrg_kernel from = best->kernel;
    bool wide = memory_s > 0 && steps->factor > 1;
    int rc = 0;
    steps->told = false;
    if (wide && memory_s * steps->factor < NRG_TRIAL_LONGEST_S)
        rc = try_step(t, best, nrg_kernel_widened(from, memory_s * steps->factor), steps);
    if (!rc && wide)
        rc = try_step(t, best, nrg_kernel_widened(from, memory_s / steps->factor), steps);
    from = best->kernel;
    if (!rc && shift_s > 0)
        rc = try_step(t, best, nrg_kernel_moved(from, shift_s, 0), steps);
    bool early = from.kind == NRG_KERNEL_EXP && from.near_s < shift_s; /* than it happened */
    if (!rc && shift_s > 0 && !early)
        rc = try_step(t, best, nrg_kernel_moved(from, -shift_s, 0), steps);
    return rc;
}

int nrg_refine_kernel(struct nrg_trials *t, struct nrg_trial *best, double shift_s, double factor)
{
    struct steps steps = {shift_s, factor, true};
    int rc = 0;
    for (int round = 0; !rc && steps.told && round < REFINEMENTS && isfinite(best->rest); round++) {
        double before = best->rest;
        rc = try_steps(t, best, &steps);
        if (best->rest > before * (1 - 1e-3)) {
            steps.shift_s /= 3;
            steps.factor = cbrt(steps.factor);
        }
    }
    return rc;
}

static int by_time(const void *a, const void *b)
{
    const double *x = *(const double *const *)a, *y = *(const double *const *)b;
    return *x > *y ? -1 : *x < *y;
}

/* Time of each column in the held slices decides which stay on their own. */
static int make_map(struct nrg_trials *t)
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

int nrg_trials_make(struct nrg_trials *t, const struct nrg_regress *r)
{
    *t = (struct nrg_trials){.r = r, .rows = trial_rows(r), .observed = count_observations(r)};
    t->max_rows = t->rows;
    int rc = make_map(t);
    return rc ? rc
              : nrg_prefix_make(&t->prefix, &r->slices, &r->options, t->map, t->n_columns,
                                r->rows_expected);
}

void nrg_trials_release(struct nrg_trials *t)
{
    nrg_prefix_release(&t->prefix);
    nrg_gram_release(&t->sum);
    nrg_arena_release(&t->memory);
}

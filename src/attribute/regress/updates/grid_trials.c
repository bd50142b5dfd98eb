/* See grid_trials.h. */
#include "attribute/regress/updates/grid_trials.h"

#include <errno.h>
#include <math.h>

#include "base/checked.h"

#define AROUND        1.2  /* steps of a region, to both sides */
#define LOOKS         3    /* rasters about the best start of a window */
#define STEP_TRIALS   9    /* of a step to all sides */
#define JUMP_HALVINGS 3    /* at once, after a jump to where least is left */
#define STEPS         60   /* most, of one start */
#define MORE_ROWS     1.01 /* than another one, that a trial may have */
#define GRID_ROWS     4000
#define THIN_ROWS     10     /* per column: as many do for the first trials */
#define GRID_SLICES   200000 /* of a trial */

void nrg_grid_set_times(struct nrg_regress *r, double phase_s, double period_s, double first_ns)
{
    struct nrg_timeline *own = &r->published.timeline;
    for (size_t i = 0; i < own->n; i++)
        own->t_ns[i] =
            nrg_round_within(first_ns + (phase_s + period_s * r->published.updates[i].number) * 1e9,
                             0, NRG_MAX_TIME_NS);
}

size_t nrg_grid_rows(const struct nrg_regress *r)
{
    size_t per_row = r->slices.n / r->published.timeline.n + 1, rows = GRID_SLICES / per_row;
    return rows < GRID_ROWS ? rows : GRID_ROWS;
}

/* What of each update a sensor sees that is not known: all since the one before, or a part of it.
 */
static const double seen_parts[] = {1, 0.25, 0.5};
#define SEEN_PARTS (sizeof seen_parts / sizeof *seen_parts)

struct nrg_kernel nrg_grid_kernel(const struct nrg_regress *r, const struct nrg_grid_trial *grid)
{
    struct nrg_kernel part = {.kind = NRG_KERNEL_BOX,
                              .far_s = seen_parts[grid->part] * grid->period_s};
    if (nrg_regress_sees_window(r))
        part.far_s = r->published.window_s;
    else if (r->published.mean_updates > 0)
        part.far_s = r->published.mean_updates * grid->period_s;
    else if (grid->part == 0)
        part = (struct nrg_kernel){.kind = NRG_KERNEL_LEVEL};
    return part;
}

/* Every so many rows; 0: all. A grid that leaves more than another one, if there is one, need not
 * be known: its rest is INFINITY. */
static int try_against(struct nrg_regress *r, double first_ns, size_t stride,
                       const struct nrg_grid_trial *other, struct nrg_grid_trial *grid)
{
    bool bound = other && isfinite(other->rest);
    double rest, most_left = bound ? MORE_ROWS * other->rest * other->rows : 0;
    nrg_grid_set_times(r, grid->phase_s, grid->period_s, first_ns);
    r->kernel = nrg_grid_kernel(r, grid);
    int rc = nrg_regress_rest(r, nrg_grid_rows(r), stride, most_left, &rest, &grid->rows);
    grid->rest = !rc && grid->rows > 0 ? rest / grid->rows : INFINITY;
    return rc == -EDOM ? 0 : rc;
}

int nrg_grid_try(struct nrg_regress *r, double first_ns, size_t stride, struct nrg_grid_trial *grid)
{
    return try_against(r, first_ns, stride, NULL, grid);
}

int nrg_grid_try_parts(struct nrg_regress *r, double first_ns, size_t stride,
                       const struct nrg_grid_trial *other, struct nrg_grid_trial *grid)
{
    bool known = !r->options.timeline->is_gauge || nrg_regress_sees_window(r) ||
                 r->published.mean_updates > 0;
    struct nrg_grid_trial trial = *grid;
    int rc = 0;
    grid->rest = INFINITY;
    for (trial.part = 0; !rc && trial.part < (known ? 1 : SEEN_PARTS); trial.part++) {
        rc = try_against(r, first_ns, stride, other, &trial);
        if (!rc && trial.rest < grid->rest)
            *grid = trial;
    }
    return rc;
}

size_t nrg_grid_thinned(const struct nrg_regress *r)
{
    size_t rows = r->published.timeline.n, most = nrg_grid_rows(r),
           enough = THIN_ROWS * r->n_columns;
    rows = rows < most ? rows : most;
    return rows < 2 * enough ? 0 : rows / enough;
}

/* So far from the middle of a region, in parts of how far it goes. */
static struct nrg_grid_trial grid_at(const struct nrg_grid_region *region, double period,
                                     double phase)
{
    double at_p = region->half_period_s * period, at_s = region->half_phase_s * phase;
    return (struct nrg_grid_trial){.period_s = region->middle.period_s + at_p,
                                   .phase_s = region->middle.phase_s + at_s - at_p * region->turn,
                                   .part = region->middle.part,
                                   .rest = INFINITY};
}

/* Number i of a region's trials. */
static struct nrg_grid_trial trial_of(const struct nrg_grid_region *region, int i)
{
    double half = region->trials / 2;
    return grid_at(region, i % region->trials / half - 1, i / region->trials / half - 1);
}

int nrg_grid_try_region(struct nrg_regress *r, double first_ns,
                        const struct nrg_grid_region *region, size_t stride,
                        struct nrg_grid_trial *best, struct nrg_grid_trial *trials)
{
    int n = region->trials * region->trials, rc = 0;
    for (int i = 0; !rc && i < n; i++) {
        trials[i] = trial_of(region, i);
        rc = nrg_grid_try_parts(r, first_ns, stride, best, &trials[i]);
        if (!rc && best && trials[i].rest < best->rest)
            *best = trials[i];
    }
    return rc;
}

/* True when none of the trials beside it leaves less. */
static bool is_lowest(const struct nrg_grid_region *region, const struct nrg_grid_trial *trials,
                      int i)
{
    int n = region->trials, row = i / n, column = i % n;
    for (int y = row > 0 ? row - 1 : 0; y <= row + 1 && y < n; y++)
        for (int x = column > 0 ? column - 1 : 0; x <= column + 1 && x < n; x++)
            if (trials[y * n + x].rest < trials[i].rest)
                return false;
    return true;
}

size_t nrg_grid_take_lowest(const struct nrg_grid_region *region,
                            const struct nrg_grid_trial *trials, struct nrg_grid_trial *lowest,
                            size_t most)
{
    size_t n = 0;
    for (int i = 0; i < region->trials * region->trials; i++) {
        if (!isfinite(trials[i].rest) || !is_lowest(region, trials, i))
            continue;
        size_t at = n < most ? n++ : most;
        for (; at && trials[i].rest < lowest[at - 1].rest; at--)
            if (at < most)
                lowest[at] = lowest[at - 1];
        if (at < most)
            lowest[at] = trials[i];
    }
    return n;
}

/* What the eight grids a step away leave, and the one where it stands. The best of them is taken
 * where it leaves less. */
static int step_grid(struct nrg_regress *r, double first_ns, const struct nrg_grid_region *steps,
                     struct nrg_grid_trial *best, double rest[STEP_TRIALS], bool *better)
{
    int rc = 0;
    *better = false;
    for (int i = 0; !rc && i < STEP_TRIALS; i++) {
        struct nrg_grid_trial trial = trial_of(steps, i);
        rest[i] = steps->middle.rest;
        if (i == STEP_TRIALS / 2) /* the middle is where it stands */
            continue;
        rc = nrg_grid_try(r, first_ns, 0, &trial);
        rest[i] = trial.rest;
        if (rc || !(trial.rest < best->rest))
            continue;
        *best = trial;
        *better = true;
    }
    return rc;
}

/* Where a parabola through what these leave is lowest, in steps; false: it is not within one. */
static bool find_lowest(const double rest[STEP_TRIALS], double *period, double *phase)
{
    double slope_p = (rest[5] - rest[3]) / 2, slope_s = (rest[7] - rest[1]) / 2;
    double bend_p = rest[5] + rest[3] - 2 * rest[4], bend_s = rest[7] + rest[1] - 2 * rest[4];
    double cross = (rest[8] - rest[6] - rest[2] + rest[0]) / 4;
    double det = bend_p * bend_s - cross * cross;
    *period = (cross * slope_s - bend_s * slope_p) / det;
    *phase = (cross * slope_p - bend_p * slope_s) / det;
    return bend_p > 0 && bend_s > 0 && det > 0 && fabs(*period) <= 1 && fabs(*phase) <= 1;
}

/* The grid where a parabola is lowest, where it does leave less. */
static int jump_grid(struct nrg_regress *r, double first_ns, const struct nrg_grid_region *steps,
                     const double rest[STEP_TRIALS], struct nrg_grid_trial *best, bool *better)
{
    double period, phase;
    *better = false;
    if (!find_lowest(rest, &period, &phase))
        return 0;
    struct nrg_grid_trial trial = grid_at(steps, period, phase);
    int rc = nrg_grid_try(r, first_ns, 0, &trial);
    *better = !rc && trial.rest < best->rest;
    if (*better)
        *best = trial;
    return rc;
}

int nrg_grid_refine(struct nrg_regress *r, double first_ns, struct nrg_grid_region region,
                    int halvings, struct nrg_grid_trial *best)
{
    double rounding = r->quantum * r->quantum / 12, half = region.trials / 2;
    int rc = 0;
    region.trials = 3;
    region.half_period_s /= 2 * half;
    region.half_phase_s /= 2 * half;
    for (int step = 0; !rc && halvings > 0 && step < STEPS; step++) {
        bool better;
        double rest[STEP_TRIALS];
        region.middle = *best;
        rc = step_grid(r, first_ns, &region, best, rest, &better);
        if (rc || better)
            continue;
        rc = jump_grid(r, first_ns, &region, rest, best, &better);
        int shorter = better ? JUMP_HALVINGS : 1;
        halvings = best->rest > rounding ? halvings - shorter : 0;
        region.half_period_s = ldexp(region.half_period_s, -shorter);
        region.half_phase_s = ldexp(region.half_phase_s, -shorter);
    }
    return rc;
}

int nrg_grid_look_around(struct nrg_regress *r, double first_ns, struct nrg_grid_region *region,
                         struct nrg_grid_trial *best)
{
    struct nrg_grid_trial trials[NRG_GRID_TRIALS * NRG_GRID_TRIALS];
    int rc = 0;
    for (int round = 0; !rc && round < LOOKS; round++) {
        double part = AROUND * 2 / (region->trials - 1);
        region->trials = NRG_GRID_TRIALS;
        region->middle = *best;
        region->half_period_s *= part;
        region->half_phase_s *= part;
        rc = nrg_grid_try_region(r, first_ns, region, 0, best, trials);
    }
    return rc;
}

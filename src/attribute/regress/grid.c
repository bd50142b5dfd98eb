/*
 * When a device published what it shows. Updates come on a grid of the device's own. Its phase and
 * its period are sought within what the brackets of news allow (publish.c), as those with which
 * activity explains the readings best: a period that is off by 100 ppm costs as much as not knowing
 * it. A gauge may show one moment of each update, and updates may jitter about their grid: then
 * what it shows is blurred, and the grid is found through a wide window first.
 */
#include <math.h>

#include "attribute/regress/internal.h"
#include "base/checked.h"

#define MOST_UPDATES  (1 << 16)
#define BRACKETS      0.6   /* of one, to both sides: where updates that jitter may lie */
#define UNEXPLAINED   0.02  /* of the variance of readings: less is no reason to look further */
#define TELLS_LITTLE  0.25  /* the same: updates jitter by as much as classes last */
#define CLEARLY       0.9   /* of what is left otherwise */
#define JITTERS       0.125 /* of an update: what one shows that jitters is blurred so far */
#define WORTH_IT      1.5   /* the same of a start that is followed up */
#define INSTANT       0.005 /* of an update */
#define TRIALS        7     /* of each, phase and period, in a round */
#define WINDOW_TRIALS 21    /* the same of a part-time sensor, in the first round */
#define STARTS        8     /* of the first round, that are followed up */
#define ROUNDS        5
#define WINDOW_ROUNDS 12  /* the same of the best of its starts */
#define ONLY_ROUNDING 1.2 /* what is left: no other grid can be better */
#define NARROWER      1.2 /* the next round: so many steps of this one to both sides */
#define GRID_ROWS     4000
#define GRID_COLUMNS  128    /* more make the search too long */
#define GRID_SLICES   200000 /* of a trial */

static void set_times(struct nrg_regress *r, double phase_s, double period_s, double first_ns)
{
    struct nrg_timeline *own = &r->published.timeline;
    for (size_t i = 0; i < own->n; i++)
        own->t_ns[i] =
            nrg_round_within(first_ns + (phase_s + period_s * r->published.updates[i].number) * 1e9,
                             0, NRG_MAX_TIME_NS);
}

struct grid {
    double phase_s, period_s;
    double rest; /* what its best kernel leaves */
    struct nrg_kernel kernel;
};

/* A trial costs its rows, and the slices that they hold. */
static size_t grid_rows(const struct nrg_regress *r)
{
    size_t per_row = r->slices.n / r->published.timeline.n + 1, rows = GRID_SLICES / per_row;
    return rows < GRID_ROWS ? rows : GRID_ROWS;
}

/* What kernels a device on a grid may have: all since the update before, or a part of it. */
static int try_grid(struct nrg_regress *r, double first_ns, struct grid *grid)
{
    const struct nrg_kernel kernels[] = {
        {.kind = NRG_KERNEL_LEVEL},
        {.kind = NRG_KERNEL_BOX, .far_s = grid->period_s / 4},
        {.kind = NRG_KERNEL_BOX, .far_s = grid->period_s / 2},
    };
    const struct nrg_kernel known = {.kind = NRG_KERNEL_BOX, .far_s = r->published.window_s};
    bool gauge = r->options.timeline->is_gauge, window = nrg_regress_sees_window(r);
    int rc = 0;
    grid->rest = INFINITY;
    set_times(r, grid->phase_s, grid->period_s, first_ns);
    for (size_t i = 0; !rc && i < (gauge && !window ? sizeof kernels / sizeof *kernels : 1); i++) {
        double rest, rows;
        r->kernel = window ? known : kernels[i];
        rc = nrg_regress_rest(r, grid_rows(r), &rest, &rows);
        if (!rc && rows > 0 && rest / rows < grid->rest) {
            grid->rest = rest / rows;
            grid->kernel = r->kernel;
        }
    }
    return rc;
}

/* A part of what brackets allow, in which grids are tried. */
struct region {
    struct grid middle;
    double half_period_s, half_phase_s, turn; /* a change of the period turns the grid about turn */
    int trials;                               /* of each, phase and period */
};

/* Number i of a region's trials. */
static struct grid trial_of(const struct region *region, int i)
{
    int half = region->trials / 2;
    double at_p = region->half_period_s * (i % region->trials - half) / half;
    double at_s = region->half_phase_s * (i / region->trials - half) / half;
    return (struct grid){.period_s = region->middle.period_s + at_p,
                         .phase_s = region->middle.phase_s + at_s - at_p * region->turn,
                         .rest = INFINITY};
}

static int try_region(struct nrg_regress *r, double first_ns, const struct region *region,
                      struct grid *trials)
{
    int n = region->trials * region->trials, rc = 0;
    for (int i = 0; !rc && i < n; i++) {
        trials[i] = trial_of(region, i);
        rc = try_grid(r, first_ns, &trials[i]);
    }
    return rc;
}

/* True when none of the trials beside it leaves less. */
static bool is_lowest(const struct region *region, const struct grid *trials, int i)
{
    int n = region->trials, row = i / n, column = i % n;
    for (int y = row > 0 ? row - 1 : 0; y <= row + 1 && y < n; y++)
        for (int x = column > 0 ? column - 1 : 0; x <= column + 1 && x < n; x++)
            if (trials[y * n + x].rest < trials[i].rest)
                return false;
    return true;
}

/* The lowest of the trials that are lower than those beside them, in order; how many there are. */
static size_t take_lowest(const struct region *region, const struct grid *trials,
                          struct grid *lowest, size_t most)
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

/* Rounds of trials about the best so far, each in a smaller part, unless it lies at the edge. */
static int refine_grid(struct nrg_regress *r, double first_ns, struct region region, int rounds,
                       struct grid *best)
{
    double rounding = r->quantum * r->quantum / 12, part = NARROWER * 2 / (region.trials - 1);
    struct grid trials[TRIALS * TRIALS];
    int rc = 0;
    region.trials = TRIALS;
    for (int round = 1; !rc && round < rounds && best->rest > rounding; round++) {
        bool edge = false;
        region.half_period_s *= part;
        region.half_phase_s *= part;
        region.middle = *best;
        rc = try_region(r, first_ns, &region, trials);
        for (int i = 0; !rc && i < TRIALS * TRIALS; i++)
            if (trials[i].rest < best->rest) {
                *best = trials[i];
                edge = i / TRIALS % (TRIALS - 1) == 0 || i % TRIALS % (TRIALS - 1) == 0;
            }
        part = edge ? 1 : NARROWER * 2 / (TRIALS - 1);
    }
    return rc;
}

/* Grids that the readings allow. */
struct allowed {
    struct nrg_update_grid grid;
    double first_ns, turn; /* of the first update, and the number of the middle one */
};

/*
 * A sensor that looks part of the time sees other classes with every grid, and some wrong grids
 * explain what it saw better than their neighbours do: several are followed up.
 */
static int search_grid(struct nrg_regress *r, const struct allowed *allowed, double limit,
                       struct grid *found)
{
    struct grid trials[WINDOW_TRIALS * WINDOW_TRIALS], best[STARTS] = {{.rest = INFINITY}};
    bool window = nrg_regress_sees_window(r);
    double first_ns = allowed->first_ns;
    const struct nrg_update_grid *grid = &allowed->grid;
    struct region region = {.middle = {.phase_s = grid->origin_s, .period_s = grid->period_s},
                            .half_period_s = grid->half_period_s,
                            .half_phase_s = grid->half_origin_s,
                            .turn = allowed->turn,
                            .trials = window ? WINDOW_TRIALS : TRIALS};
    int rc = try_region(r, first_ns, &region, trials);
    size_t starts = rc ? 0 : take_lowest(&region, trials, best, window ? STARTS : 1);
    double enough = ONLY_ROUNDING * r->quantum * r->quantum / 12;
    size_t winner = 0;
    for (size_t i = 0; !rc && i < starts && (!i || best[0].rest > enough); i++) {
        if (best[i].rest > limit)
            continue;
        rc = refine_grid(r, first_ns, region, window && !i ? WINDOW_ROUNDS : ROUNDS, &best[i]);
        if (best[i].rest < best[0].rest) {
            best[0] = best[i];
            winner = i;
        }
    }
    if (!rc && winner && best[0].rest > enough)
        rc = refine_grid(r, first_ns, region, WINDOW_ROUNDS, &best[0]);
    *found = best[0];
    return rc;
}

/* The mean square of how far readings are from their mean. */
static double variance_of(const struct nrg_timeline *own)
{
    double mean = 0, square = 0, n = (double)own->n;
    for (size_t i = 0; i < own->n; i++)
        mean += own->own_gauge[i] / n;
    for (size_t i = 0; i < own->n; i++)
        square += (own->own_gauge[i] - mean) * (own->own_gauge[i] - mean) / n;
    return square;
}

/* True where the grid explains readings so far, or where the driver says that the gauge sees all.
 */
static bool is_explained(const struct nrg_regress *r, const struct grid *best)
{
    const struct nrg_channel *c = r->options.channel;
    return !r->options.timeline->is_gauge || (c->window_ns > 0 && c->window_ns >= c->update_ns) ||
           best->rest < UNEXPLAINED * variance_of(&r->published.timeline);
}

/* A grid that was found through a wide window, through narrower ones, as long as less is left. */
static int sharpen(struct nrg_regress *r, const struct allowed *allowed, double least_s,
                   struct grid *best)
{
    int rc = 0;
    for (double s = r->published.window_s / 2; !rc && s >= least_s; s /= 2) {
        struct grid finer = *best;
        struct region region = {.half_period_s = 2 * s / fmax(allowed->turn, 1),
                                .half_phase_s = 2 * s,
                                .turn = allowed->turn,
                                .trials = TRIALS};
        double before_s = r->published.window_s;
        r->published.window_s = s;
        finer.rest = INFINITY;
        rc = refine_grid(r, allowed->first_ns, region, ROUNDS, &finer);
        if (rc || finer.rest > best->rest) {
            r->published.window_s = before_s;
            break;
        }
        *best = finer;
    }
    return rc;
}

/* A gauge whose driver does not say what it shows may show one moment of each update; and updates
 * may jitter. Such are sought where what is known leaves much. */
static int search_windows(struct nrg_regress *r, const struct allowed *allowed, struct grid *best)
{
    static const double windows[] = {INSTANT, JITTERS};
    int rc = 0;
    for (size_t i = 0; !rc && i < 2 && !is_explained(r, best); i++) {
        struct grid trial;
        double before_s = r->published.window_s, window_s = windows[i] * r->published.update_s;
        if (window_s <= before_s)
            continue;
        r->published.window_s = window_s;
        rc = search_grid(r, allowed, WORTH_IT * best->rest, &trial);
        if (!rc)
            rc = sharpen(r, allowed, fmax(before_s, INSTANT * r->published.update_s), &trial);
        if (!rc && trial.rest < CLEARLY * best->rest)
            *best = trial;
        else
            r->published.window_s = before_s;
    }
    return rc;
}

/* Updates that jitter are about a line, which may lie anywhere in their brackets. */
static void allow_jitter(struct nrg_regress *r, const struct nrg_update *u, size_t n,
                         struct nrg_update_grid *grid)
{
    double bracket_s = u[0].high_s - u[0].low_s;
    grid->half_origin_s = BRACKETS * bracket_s;
    grid->half_period_s = 2 * grid->half_origin_s / fmax(u[n - 1].number, 1);
    if (nrg_regress_sees_window(r))
        r->published.window_s = fmax(r->published.window_s, JITTERS * r->published.update_s);
}

int nrg_regress_find_updates(struct nrg_regress *r)
{
    struct nrg_timeline *own = &r->published.timeline;
    if (!r->published.used || own->n < 30 || r->n_columns > GRID_COLUMNS)
        return 0;
    size_t n = own->n < MOST_UPDATES ? own->n : MOST_UPDATES;
    const struct nrg_update *updates = r->published.updates;
    struct allowed allowed = {.first_ns = (double)own->t_ns[0], .turn = updates[n - 1].number / 2};
    double window_s = r->published.window_s;
    bool found = nrg_update_grid_find(updates, n, &allowed.grid);
    if (found && !allowed.grid.regular && own->is_gauge)
        allow_jitter(r, updates, n, &allowed.grid);
    if (found && (allowed.grid.regular || own->is_gauge)) {
        struct grid best;
        int rc = search_grid(r, &allowed, INFINITY, &best);
        if (!rc && window_s > 0 && window_s < r->published.window_s)
            rc = sharpen(r, &allowed, window_s, &best);
        if (!rc)
            rc = search_windows(r, &allowed, &best);
        set_times(r, best.phase_s, best.period_s, allowed.first_ns);
        r->kernel = best.kernel;
        r->published.lost = !rc && !allowed.grid.regular && nrg_regress_sees_window(r) &&
                            best.rest > TELLS_LITTLE * variance_of(own);
        return rc;
    }
    /* the middle of each bracket, then: the kernel says how wide it is */
    for (size_t i = 0; i < own->n; i++)
        own->t_ns[i] = r->published.before_ns[i] + (own->t_ns[i] - r->published.before_ns[i]) / 2;
    return 0;
}

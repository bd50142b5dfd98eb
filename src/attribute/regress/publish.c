/*
 * When a device published what it shows. A sensor that updates every 100 ms and is read every 20 ms
 * shows each value several times: only the first reading of it is news, and the update lies between
 * the last reading of the old value and that one. Updates come on a grid of the device's own. Its
 * phase and its period are sought within what these brackets allow, as those with which activity
 * explains the readings best: a period that is off by 100 ppm costs as much as not knowing it.
 *
 * Readings that are as fast as the sensor, or slower, are left as they are.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/regress/internal.h"
#include "base/checked.h"
#include "base/stats.h"

#define SLOWER        2.5 /* updates that last so many readings are found */
#define MOST_UPDATES  (1 << 16)
#define REGULAR       0.8 /* of the news */
#define TRIALS        7   /* of each, phase and period, in a round */
#define WINDOW_TRIALS 21  /* the same of a part-time sensor, in the first round */
#define STARTS        8   /* of the first round, that are followed up */
#define ROUNDS        5
#define WINDOW_ROUNDS 12
#define ONLY_ROUNDING 1.2 /* what is left: no other grid can be better */
#define NARROWER      1.2 /* the next round: so many steps of this one to both sides */
#define GRID_ROWS     4000
#define GRID_COLUMNS  128    /* more make the search too long */
#define GRID_SLICES   200000 /* of a trial */

static size_t count_news(const struct nrg_timeline *tl)
{
    size_t n = 0;
    for (size_t i = 1; i < tl->n; i++)
        n += nrg_update_is_news(tl, i);
    return n;
}

/* The new values alone, at the times of their first readings. */
static int take_news(struct nrg_regress *r, const struct nrg_timeline *tl, size_t n)
{
    struct nrg_timeline *own = &r->published.timeline;
    *own = *tl;
    own->n = 0;
    own->t_ns = nrg_arena_array(&r->memory, n + 1, sizeof *own->t_ns);
    own->sum_j = nrg_arena_array(&r->memory, n + 1, sizeof *own->sum_j);
    own->gap = nrg_arena_array(&r->memory, n + 1, sizeof *own->gap);
    own->own_gauge =
        tl->is_gauge ? nrg_arena_array(&r->memory, n + 1, sizeof *own->own_gauge) : NULL;
    r->published.before_ns = nrg_arena_array(&r->memory, n + 1, sizeof *r->published.before_ns);
    if (r->memory.failed)
        return -ENOMEM;
    for (size_t i = 1; i < tl->n; i++) {
        if (own->n)
            own->gap[own->n - 1] |= nrg_point_gap(tl, i - 1);
        if (!nrg_update_is_news(tl, i))
            continue;
        r->published.before_ns[own->n] = nrg_point_ns(tl, i - 1);
        own->t_ns[own->n] = nrg_point_ns(tl, i);
        own->sum_j[own->n] = nrg_point_j(tl, i);
        if (own->own_gauge)
            own->own_gauge[own->n] = nrg_point_gauge(tl, i);
        own->gap[own->n++] = 0;
    }
    return 0;
}

static double middle_s(const struct nrg_regress *r, size_t i)
{
    const struct nrg_timeline *own = &r->published.timeline;
    return ((double)(r->published.before_ns[i] - own->t_ns[0]) / 2 +
            (double)(own->t_ns[i] - own->t_ns[0]) / 2) /
           1e9;
}

static double median_update_s(const struct nrg_regress *r)
{
    const struct nrg_timeline *own = &r->published.timeline;
    double steps[1001];
    size_t n = own->n - 1 < 1001 ? own->n - 1 : 1001;
    for (size_t i = 0; i < n; i++)
        steps[i] = middle_s(r, i + 1) - middle_s(r, i);
    nrg_sort(steps, n);
    double median = steps[n / 2], sum = 0, kept = 0;
    for (size_t i = 0; i < n; i++)
        if (fabs(steps[i] - median) < median / 2) {
            sum += steps[i];
            kept++;
        }
    return kept > 0 ? sum / kept : median;
}

/*
 * News on a grid come about as far apart each time, to a reading. A steady power that is rounded
 * shows the same value several times, too, but at any distance.
 */
static bool is_regular(const struct nrg_regress *r, double reading_s)
{
    const struct nrg_timeline *own = &r->published.timeline;
    double update_s = median_update_s(r), most_s = fmin(1.2 * reading_s, update_s / 3);
    size_t regular = 0;
    for (size_t i = 0; i + 1 < own->n; i++)
        regular += fabs((double)(own->t_ns[i + 1] - own->t_ns[i]) / 1e9 - update_s) < most_s;
    return (double)regular > REGULAR * (double)(own->n - 1);
}

int nrg_regress_take_news(struct nrg_regress *r)
{
    const struct nrg_timeline *tl = r->options.timeline;
    size_t news = count_news(tl);
    double update_s = (double)r->options.channel->update_ns / 1e9;
    if (tl->n < 3 || news < 8 || (double)(tl->n - 1) < SLOWER * (double)news)
        return 0;
    double span_s = (double)(nrg_point_ns(tl, tl->n - 1) - nrg_point_ns(tl, 0)) / 1e9;
    double reading_s = span_s / (double)(tl->n - 1);
    if (r->options.channel->lag_ns > 0 || (update_s > 0 && reading_s * SLOWER > update_s))
        return 0; /* it is read slower than it updates: values are equal by chance */
    int rc = take_news(r, tl, news);
    if (!rc && is_regular(r, reading_s)) {
        r->options.timeline = &r->published.timeline;
        r->published.timeline.period_ns = (int64_t)(span_s / (double)news * 1e9);
        r->published.used = true;
    }
    return rc;
}

/* Between which readings each update came, and which one it is. */
static int number_updates(struct nrg_regress *r)
{
    const struct nrg_timeline *own = &r->published.timeline;
    struct nrg_update *updates = nrg_arena_array(&r->memory, own->n, sizeof *updates);
    r->published.updates = updates;
    if (!updates)
        return -ENOMEM;
    for (size_t i = 0; i < own->n; i++)
        updates[i] = (struct nrg_update){(double)(r->published.before_ns[i] - own->t_ns[0]) / 1e9,
                                         (double)(own->t_ns[i] - own->t_ns[0]) / 1e9, 0};
    nrg_updates_number(updates, own->n, median_update_s(r));
    return 0;
}

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
    const struct nrg_kernel known = {.kind = NRG_KERNEL_BOX,
                                     .far_s = (double)r->options.channel->window_ns / 1e9};
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

/*
 * A sensor that looks part of the time sees other classes with every grid, and some wrong grids
 * explain what it saw better than their neighbours do: several are followed up.
 */
static int search_grid(struct nrg_regress *r, const struct nrg_update_grid *allowed, double turn,
                       double first_ns)
{
    struct grid trials[WINDOW_TRIALS * WINDOW_TRIALS], best[STARTS] = {{.rest = INFINITY}};
    bool window = nrg_regress_sees_window(r);
    struct region region = {.middle = {.phase_s = allowed->origin_s, .period_s = allowed->period_s},
                            .half_period_s = allowed->half_period_s,
                            .half_phase_s = allowed->half_origin_s,
                            .turn = turn,
                            .trials = window ? WINDOW_TRIALS : TRIALS};
    int rc = try_region(r, first_ns, &region, trials);
    size_t starts = rc ? 0 : take_lowest(&region, trials, best, window ? STARTS : 1);
    double enough = ONLY_ROUNDING * r->quantum * r->quantum / 12;
    for (size_t i = 0; !rc && i < starts && (!i || best[0].rest > enough); i++) {
        rc = refine_grid(r, first_ns, region, window ? WINDOW_ROUNDS : ROUNDS, &best[i]);
        if (best[i].rest < best[0].rest)
            best[0] = best[i];
    }
    set_times(r, best[0].phase_s, best[0].period_s, first_ns);
    r->kernel = best[0].kernel;
    return rc;
}

int nrg_regress_find_updates(struct nrg_regress *r)
{
    struct nrg_timeline *own = &r->published.timeline;
    struct nrg_update_grid grid;
    if (!r->published.used || own->n < 30 || r->n_columns > GRID_COLUMNS)
        return 0;
    size_t n = own->n < MOST_UPDATES ? own->n : MOST_UPDATES;
    int rc = number_updates(r);
    if (rc)
        return rc;
    const struct nrg_update *updates = r->published.updates;
    double first_ns = (double)own->t_ns[0];
    if (nrg_update_grid_find(updates, n, &grid) && grid.regular)
        return search_grid(r, &grid, updates[n - 1].number / 2, first_ns);
    /* the middle of each bracket, then: the kernel says how wide it is */
    for (size_t i = 0; i < own->n; i++)
        own->t_ns[i] = r->published.before_ns[i] + (own->t_ns[i] - r->published.before_ns[i]) / 2;
    return 0;
}

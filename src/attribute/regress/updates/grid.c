/*
 * When a device published what it shows. Updates come on a grid of the device's own. Its phase and
 * its period are sought within what the brackets of news allow (publish.c), as those with which
 * activity explains the readings best: a period that is off by 100 ppm costs as much as not knowing
 * it. A gauge may show one moment of each update, and updates may jitter about their grid: then
 * what it shows is blurred, and the grid is found through a wide window first.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "attribute/regress/updates/grid_trials.h"
#include "base/mem.h"

#define MOST_UPDATES  (1 << 16)
#define BRACKETS      0.6   /* of one, to both sides: where updates that jitter may lie */
#define UNEXPLAINED   0.02  /* of the variance of readings: less is no reason to look further */
#define TELLS_LITTLE  0.25  /* the same: updates jitter by as much as classes last */
#define CLEARLY       0.9   /* of what is left otherwise */
#define JITTERS       0.125 /* of an update: what one shows that jitters is blurred so far */
#define WORTH_IT      1.5   /* the same of a start that is followed up */
#define INSTANT       0.005 /* of an update */
#define NEAR          0.05  /* of a mean, to both sides: where it is sought */
#define MEANS         25    /* the same, in the first round */
#define ENDS          3     /* of a mean that are moved: one, both, the other */
#define FINEST        1e-5  /* of a mean */
#define ROUNDS        2     /* of a grid and a mean */
#define WIDE          0.125 /* the same: phases that are so far apart have several valleys, too */
#define WINDOW_TRIALS 21    /* the same of a part-time sensor, in the first round */
#define STARTS        8     /* of the first round, that are followed up */
#define HALVINGS      8     /* of steps, until a grid is found */
#define MORE_HALVINGS 15    /* the same of the best of its starts */
#define ONLY_ROUNDING 1.2   /* what is left: no other grid can be better */
#define ELSEWHERE     0.02  /* of a window: grids that are so far apart are not the same */
#define SURELY        25.0  /* rows * log of the ratio of what two grids leave */
#define GRID_COLUMNS  128   /* more make the search too long */

/* Grids that the readings allow. */
struct allowed {
    struct nrg_update_grid grid;
    double first_ns, turn; /* of the first update, and the number of the middle one */
};

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

/* Of a sensor that looks part of the time, a start that may explain as much as the best grid. */
static bool may_rival(const struct nrg_regress *r, const struct nrg_grid_trial *start)
{
    return nrg_regress_sees_window(r) &&
           start->rest < UNEXPLAINED * variance_of(&r->published.timeline);
}

/* True where two grids have their windows at other places, and readings do not tell which is right:
 * those of a load that is in step with the sensor are the same wherever it looked. */
static bool rivals(const struct nrg_regress *r, const struct allowed *allowed,
                   const struct nrg_grid_trial *a, const struct nrg_grid_trial *b)
{
    double first_s = fabs(a->phase_s - b->phase_s);
    double last_s = fabs(a->phase_s - b->phase_s + 2 * allowed->turn * (a->period_s - b->period_s));
    return fmax(first_s, last_s) > ELSEWHERE * r->published.window_s &&
           (double)r->published.timeline.n * log(b->rest / a->rest) < SURELY;
}

/*
 * A sensor that looks part of the time sees other classes with every grid, and some wrong grids
 * explain what it saw better than their neighbours do: several are followed up.
 */
static int search_grid(struct nrg_regress *r, const struct allowed *allowed, double limit,
                       struct nrg_grid_trial *found)
{
    struct nrg_grid_trial trials[WINDOW_TRIALS * WINDOW_TRIALS],
        best[STARTS] = {{.rest = INFINITY}};
    double first_ns = allowed->first_ns;
    const struct nrg_update_grid *grid = &allowed->grid;
    bool window = nrg_regress_sees_window(r) || grid->half_origin_s > WIDE * grid->period_s;
    struct nrg_grid_region region = {
        .middle = {.phase_s = grid->origin_s, .period_s = grid->period_s},
        .half_period_s = grid->half_period_s,
        .half_phase_s = grid->half_origin_s,
        .turn = allowed->turn,
        .trials = window ? WINDOW_TRIALS : NRG_GRID_TRIALS};
    struct nrg_grid_trial lowest = {.rest = INFINITY};
    size_t stride = nrg_grid_thinned(r);
    int rc = nrg_grid_try_region(r, first_ns, &region, stride, window ? NULL : &lowest, trials);
    size_t starts = rc ? 0 : nrg_grid_take_lowest(&region, trials, best, window ? STARTS : 1);
    double enough = ONLY_ROUNDING * r->quantum * r->quantum / 12;
    size_t winner = 0;
    for (size_t i = 0; !rc && i < starts; i++) {
        if (i && best[0].rest <= enough && !may_rival(r, &best[i]))
            continue;
        if (stride)
            rc = nrg_grid_try_parts(r, first_ns, 0, NULL, &best[i]);
        if (rc || best[i].rest > limit)
            continue;
        struct nrg_grid_region about = region;
        if (window && !i)
            rc = nrg_grid_look_around(r, first_ns, &about, &best[i]);
        if (!rc)
            rc = nrg_grid_refine(r, first_ns, about, window && !i ? MORE_HALVINGS : HALVINGS,
                                 &best[i]);
        if (best[i].rest < best[0].rest) {
            struct nrg_grid_trial before = best[0];
            best[0] = best[i];
            best[i] = before;
            winner = i;
        }
    }
    if (!rc && winner && best[0].rest > enough)
        rc = nrg_grid_refine(r, first_ns, region, MORE_HALVINGS, &best[0]);
    for (size_t i = 1; !rc && i < starts; i++)
        best[0].rival |= may_rival(r, &best[i]) && rivals(r, allowed, &best[0], &best[i]);
    *found = best[0];
    return rc;
}

/* True where the grid explains readings so far, or where the driver says that the gauge sees all.
 */
static bool is_explained(const struct nrg_regress *r, const struct nrg_grid_trial *best)
{
    const struct nrg_channel *c = r->options.channel;
    return !r->options.timeline->is_gauge || (c->window_ns > 0 && c->window_ns >= c->update_ns) ||
           best->rest < UNEXPLAINED * variance_of(&r->published.timeline);
}

/* A grid that was found through a wide window, through narrower ones, as long as less is left. */
static int sharpen(struct nrg_regress *r, const struct allowed *allowed, double least_s,
                   struct nrg_grid_trial *best)
{
    int rc = 0;
    for (double s = r->published.window_s / 2; !rc && s >= least_s; s /= 2) {
        struct nrg_grid_trial finer = *best;
        struct nrg_grid_region region = {.half_period_s = 2 * s / fmax(allowed->turn, 1),
                                         .half_phase_s = 2 * s,
                                         .turn = allowed->turn,
                                         .trials = NRG_GRID_TRIALS};
        double before_s = r->published.window_s;
        r->published.window_s = s;
        finer.rest = INFINITY;
        rc = nrg_grid_refine(r, allowed->first_ns, region, HALVINGS, &finer);
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
static int search_windows(struct nrg_regress *r, const struct allowed *allowed,
                          struct nrg_grid_trial *best)
{
    static const double windows[] = {INSTANT, JITTERS};
    int rc = 0;
    for (size_t i = 0; !rc && i < 2 && !is_explained(r, best); i++) {
        struct nrg_grid_trial trial;
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

/* Of how many updates a gauge may show the mean that readings explain best, with the grid so far;
 * 0: of no more than one. */
static int guess_mean(struct nrg_regress *r, const struct allowed *allowed,
                      struct nrg_grid_trial *best)
{
    double most = (double)NRG_LONGEST_MEAN_NS / 1e9 / r->published.update_s, found = 0;
    struct nrg_grid_trial start = {.phase_s = allowed->grid.origin_s,
                                   .period_s = allowed->grid.period_s};
    int rc = 0;
    for (double n = 2; !rc && n < most + 0.5; n++) {
        struct nrg_grid_trial trial = start;
        r->published.mean_updates = n;
        rc = nrg_grid_try(r, allowed->first_ns, 0, &trial);
        if (rc || !(trial.rest < best->rest))
            continue;
        best->rest = trial.rest;
        found = n;
    }
    r->published.mean_updates = found;
    return rc;
}

/* A mean, and the grid on which it leaves so much. */
struct mean {
    double updates;
    struct nrg_grid_trial grid;
};

/* Takes a mean of so many updates more than `from` where it leaves less. `end`: which part of that
 * is added where the update is, the rest at the other end. */
static int try_mean(struct nrg_regress *r, const struct allowed *allowed, size_t stride,
                    struct mean from, double more, double end, struct mean *best)
{
    r->published.mean_updates = from.updates += more;
    from.grid.phase_s += end * more * from.grid.period_s;
    int rc = nrg_grid_try(r, allowed->first_ns, stride, &from.grid);
    if (!rc && from.grid.rest < best->grid.rest)
        *best = from;
    return rc;
}

/* Nobody says the length of a mean exactly, and calls are found by both of its ends: what is left
 * has many valleys, as narrow as they. */
static int scan_means(struct nrg_regress *r, const struct allowed *allowed, struct mean *best)
{
    const struct mean from = *best;
    double step = NEAR / MEANS * from.updates;
    size_t stride = nrg_grid_thinned(r);
    int rc = 0;
    best->grid.rest = INFINITY;
    for (int i = -MEANS * ENDS; !rc && i <= MEANS * ENDS; i++)
        rc =
            try_mean(r, allowed, stride, from, i / ENDS * step, abs(i % ENDS) / (ENDS - 1.0), best);
    r->published.mean_updates = best->updates;
    return rc ? rc : nrg_grid_try(r, allowed->first_ns, 0, &best->grid);
}

/* The mean about one that leaves least, and the grid with it. */
static int settle_mean(struct nrg_regress *r, const struct allowed *allowed, struct mean *best)
{
    double step = NEAR / MEANS * best->updates;
    int rc = 0;
    while (!rc && (step /= 2) > FINEST * best->updates)
        for (int i = 0; !rc && i < 2 * ENDS; i++)
            rc = try_mean(r, allowed, 0, *best, i % 2 ? step : -step, i / 2 / (ENDS - 1.0), best);
    r->published.mean_updates = best->updates;
    return rc;
}

static int search_mean_grid(struct nrg_regress *r, const struct allowed *allowed,
                            struct nrg_grid_trial *found)
{
    struct nrg_grid_region region = {.half_period_s = allowed->grid.half_period_s,
                                     .half_phase_s = allowed->grid.half_origin_s,
                                     .turn = allowed->turn,
                                     .trials = NRG_GRID_TRIALS};
    struct mean best = {.updates = r->published.mean_updates};
    int rc = search_grid(r, allowed, INFINITY, &best.grid);
    if (!rc)
        rc = scan_means(r, allowed, &best);
    for (int i = 0; !rc && i < ROUNDS; i++) {
        rc = settle_mean(r, allowed, &best);
        if (!rc)
            rc = nrg_grid_refine(r, allowed->first_ns, region, HALVINGS, &best.grid);
    }
    *found = best.grid;
    return rc;
}

/* A gauge whose driver does not say what it shows may show a running mean, where its readings never
 * change faster than such a one. */
static int search_means(struct nrg_regress *r, const struct allowed *allowed,
                        struct nrg_grid_trial *best)
{
    double window_s = r->published.window_s;
    struct nrg_grid_trial trial = {.rest = INFINITY};
    if (r->options.channel->window_ns || !r->published.timeline.mean_ns || is_explained(r, best))
        return 0;
    r->published.window_s = 0;
    r->first_phi = NRG_MEAN_PHI;
    int rc = guess_mean(r, allowed, &trial);
    if (!rc && r->published.mean_updates > 0)
        rc = search_mean_grid(r, allowed, &trial);
    if (!rc && r->published.mean_updates > 0 && trial.rest < CLEARLY * best->rest) {
        *best = trial;
        return 0;
    }
    r->published.window_s = window_s;
    r->published.mean_updates = r->first_phi = 0;
    return rc;
}

/* Updates that jitter are about a line, which may lie anywhere in their brackets. */
static void allow_jitter(struct nrg_regress *r, struct nrg_update_grid *grid)
{
    const struct nrg_update *first = r->published.updates;
    double last = first[r->published.timeline.n - 1].number;
    grid->half_origin_s = BRACKETS * (first->high_s - first->low_s);
    grid->half_period_s = 2 * grid->half_origin_s / fmax(last, 1);
    if (nrg_regress_sees_window(r))
        r->published.window_s = fmax(r->published.window_s, JITTERS * r->published.update_s);
}

/* Updates as a regression before found them: its first one may have been another. */
static void take_updates(struct nrg_regress *r)
{
    const struct nrg_updates_found *found = &r->options.updates;
    const struct nrg_update *first = &r->published.updates[0];
    int64_t first_ns = r->published.timeline.t_ns[0];
    double phase_s = (double)(found->from_ns - first_ns) / 1e9 + found->phase_s;
    double off_s = (first->low_s + first->high_s) / 2 - phase_s;
    phase_s += round(off_s / found->period_s) * found->period_s;
    nrg_grid_set_times(r, phase_s, found->period_s, (double)first_ns);
    r->published.window_s = found->window_s;
    r->published.mean_updates = found->mean_updates;
    r->published.lost = found->lost;
}

struct nrg_updates_found nrg_regress_updates(const struct nrg_regress *r)
{
    return r->options.updates;
}

/* Each update in the middle of its bracket: the kernel says how wide it is. */
static void set_middles(struct nrg_regress *r)
{
    struct nrg_timeline *own = &r->published.timeline;
    for (size_t i = 0; i < own->n; i++) {
        const struct nrg_update *u = &r->published.updates[i];
        own->t_ns[i] = r->published.before_ns[i] + (int64_t)((u->high_s - u->low_s) / 2 * 1e9);
    }
}

/* What that leaves. */
static int try_middles(struct nrg_regress *r, double *left)
{
    double rest, rows;
    set_middles(r);
    r->kernel = (struct nrg_kernel){.kind = NRG_KERNEL_LEVEL};
    int rc = nrg_regress_rest(r, nrg_grid_rows(r), 0, 0, &rest, &rows);
    *left = !rc && rows > 0 ? rest / rows : INFINITY;
    return rc;
}

/* The grid that explains most. *found: not where a counter's updates wander so far from any that
 * their brackets explain more. */
static int find_grid(struct nrg_regress *r, const struct allowed *allowed,
                     struct nrg_grid_trial *best, bool *found)
{
    bool jitters = !allowed->grid.regular, counter = !r->options.timeline->is_gauge;
    double window_s = r->published.window_s, middles = INFINITY;
    struct allowed about = *allowed;
    int rc = jitters && counter ? try_middles(r, &middles) : 0;
    if (jitters)
        allow_jitter(r, &about.grid);
    if (!rc)
        rc = r->published.mean_updates > 0 ? search_mean_grid(r, &about, best)
                                           : search_grid(r, &about, INFINITY, best);
    if (!rc && window_s > 0 && window_s < r->published.window_s)
        rc = sharpen(r, &about, window_s, best);
    if (!rc)
        rc = search_windows(r, &about, best);
    if (!rc)
        rc = search_means(r, &about, best);
    *found = !rc && !(middles < best->rest);
    return rc;
}

static void take_grid(struct nrg_regress *r, const struct allowed *allowed,
                      const struct nrg_grid_trial *best)
{
    nrg_grid_set_times(r, best->phase_s, best->period_s, allowed->first_ns);
    r->kernel = nrg_grid_kernel(r, best);
    bool blurred = !allowed->grid.regular && nrg_regress_sees_window(r) &&
                   best->rest > TELLS_LITTLE * variance_of(&r->published.timeline);
    r->published.lost = blurred || best->rival;
    r->options.updates = (struct nrg_updates_found){.sought = true,
                                                    .lost = r->published.lost,
                                                    .from_ns = (int64_t)allowed->first_ns,
                                                    .phase_s = best->phase_s,
                                                    .period_s = best->period_s,
                                                    .window_s = r->published.window_s,
                                                    .mean_updates = r->published.mean_updates};
}

/* The same with sums that all trials share. */
static int find_grid_by_sums(struct nrg_regress *r, const struct allowed *allowed,
                             struct nrg_grid_trial *best, bool *found)
{
    struct nrg_prefix sums = {0};
    uint32_t *map = nrg_calloc(r->n_columns, sizeof *map);
    int rc = map ? 0 : -ENOMEM;
    for (uint32_t i = 0; !rc && i < r->n_columns; i++)
        map[i] = i;
    if (!rc && !r->options.awake) /* sums have nothing of waits */
        rc = nrg_prefix_make(&sums, &r->slices, &r->options, map, r->n_columns,
                             r->published.timeline.n);
    r->grid_sums = &sums;
    if (!rc)
        rc = find_grid(r, allowed, best, found);
    r->grid_sums = NULL;
    nrg_prefix_release(&sums);
    free(map);
    return rc;
}

int nrg_regress_find_updates(struct nrg_regress *r)
{
    struct nrg_timeline *own = &r->published.timeline;
    if (!r->published.used || own->n < 30 || r->n_columns > GRID_COLUMNS)
        return 0;
    if (r->options.updates.sought) {
        take_updates(r);
        return 0;
    }
    size_t n = own->n < MOST_UPDATES ? own->n : MOST_UPDATES;
    const struct nrg_update *updates = r->published.updates;
    struct allowed allowed = {.first_ns = (double)own->t_ns[0], .turn = updates[n - 1].number / 2};
    struct nrg_grid_trial best = {.rest = INFINITY};
    bool found = nrg_update_grid_find(updates, n, &allowed.grid);
    int rc = found ? find_grid_by_sums(r, &allowed, &best, &found) : 0;
    if (found)
        take_grid(r, &allowed, &best);
    else
        set_middles(r);
    return rc;
}

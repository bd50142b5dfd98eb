/*
 * How the sensor sees the past, found by trying: the kernel with the smallest residuals. A kernel
 * with memory must explain clearly more than one without, because there are many of them to pick
 * from.
 */
#include "attribute/regress/trials.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define COARSE_ROWS  6000
#define CLEARLY_PART 0.02 /* and this part of it */
#define INSTANT_S    1e-6
#define LASTING      0.1 /* of what is left: noise that lasts must explain it */
#define OLDEST_S     5.0
#define SOON_S       2.1e-3 /* readings are seldom later without being of an earlier update */
#define AGES         16     /* delays that are tried, up to the oldest */
#define LEAST_WIDER  1.05   /* times as old: less makes no difference */
#define UPDATE_AGES  16     /* of an update */
#define FEW_AGES     4
#define WINDOW_AGES  24 /* the same of a window that is known */

static struct nrg_kernel make_kernel(enum nrg_kernel_kind kind, double late_s, double memory_s)
{
    struct nrg_kernel none = {.kind = kind};
    return nrg_kernel_moved(none, late_s, memory_s);
}

/* What readings of an age between none and the first two steps would gain: along a parabola. */
static double foretold_gain(const double gain[2])
{
    double bend = gain[0] - gain[1] / 2, slope = gain[0] + bend;
    return !(slope > 0) ? 0 : bend > 0 ? slope * slope / (4 * bend) : INFINITY;
}

/* Ages that are all the same, in fewer rows: *late, the best of them. Returns what one between
 * those that were tried would gain, at least, over `prompt`. */
static int try_late(struct nrg_trials *t, const struct nrg_trial *prompt, double oldest_s,
                    struct nrg_trial *late, double *gain)
{
    double gains[2] = {0};
    bool told = true;
    int rc = 0;
    *late = *prompt;
    for (int i = 1; !rc && i <= AGES; i++) {
        struct nrg_trial trial = {
            .kernel = nrg_kernel_moved(prompt->kernel, oldest_s * i / AGES, 0), .phi = prompt->phi};
        rc = nrg_try_kernel(t, &trial, late->rest);
        if (i <= 2)
            gains[i - 1] = nrg_trial_gain(&trial, prompt);
        told &= i > 2 || isfinite(trial.rest);
        if (!rc && trial.rest < late->rest)
            *late = trial;
    }
    *gain = late->rest < prompt->rest || !told ? INFINITY : foretold_gain(gains);
    return rc;
}

/* The same of any age up to so much. */
static int try_any_age(struct nrg_trials *t, const struct nrg_trial *prompt, double oldest_s,
                       struct nrg_trial *any)
{
    int rc = 0;
    *any = *prompt;
    for (double s = oldest_s; !rc && s > oldest_s / AGES; s /= 2) {
        struct nrg_kernel kernel = prompt->kernel;
        kernel.far_s += s;
        rc = nrg_try_better(t, any, kernel);
    }
    return rc;
}

/* One of fewer rows, in all of them, and from there to the best. */
static int refine_age(struct nrg_trials *t, const struct nrg_trial *prompt, double step_s,
                      double factor, struct nrg_trial *late)
{
    int rc = nrg_try_kernel(t, late, INFINITY);
    if (!rc && prompt->rest < late->rest)
        *late = *prompt;
    return rc ? rc : nrg_refine_kernel(t, late, step_s, factor);
}

/* How old the oldest are, where no driver says it: between those that were tried, which are each
 * half of the one before. */
static int refine_any_age(struct nrg_trials *t, double factor, struct nrg_trial *any)
{
    int rc = 0;
    for (double f = M_SQRT2; !rc && f > LEAST_WIDER; f = sqrt(f)) {
        struct nrg_kernel wider = any->kernel, narrower = any->kernel;
        double width_s = wider.far_s - wider.near_s;
        wider.far_s = wider.near_s + width_s * f;
        narrower.far_s = narrower.near_s + width_s / f;
        rc = nrg_try_better(t, any, wider);
        if (!rc)
            rc = nrg_try_better(t, any, narrower);
    }
    return rc ? rc : nrg_refine_kernel(t, any, 0, factor);
}

/* Ages of both kinds in fewer rows, and what they may gain in all of them. */
static int find_ages(struct nrg_trials *t, double oldest_s, const struct nrg_trial *best,
                     struct nrg_trial *late, struct nrg_trial *any, double *gain)
{
    struct nrg_trial prompt = *best;
    t->max_rows = t->rows < COARSE_ROWS ? t->rows : COARSE_ROWS;
    int rc = nrg_try_kernel(t, &prompt, INFINITY);
    if (!rc)
        rc = try_late(t, &prompt, oldest_s, late, gain);
    if (!rc)
        rc = try_any_age(t, &prompt, oldest_s, any);
    t->max_rows = t->rows;
    if (!rc)
        *gain = any->rest < prompt.rest ? INFINITY : *gain * best->rows / fmax(prompt.rows, 1);
    return rc;
}

/*
 * An average is of the sensor's last update: calls that are as short as that is old would else have
 * their neighbours' energy. Readings in step with the updates are all as old, others anything up to
 * an update, by chance: then rows have what they show in the mean. Each has a time constant of its
 * own, so both go to their best before they are compared. Clearly better, or it is prompt; clearer
 * where nothing says that there are updates. factor: of the time constant, 1 if it is known.
 */
static int search_age(struct nrg_trials *t, double factor, struct nrg_trial *best)
{
    const struct nrg_timeline *tl = t->r->options.timeline;
    double oldest_s = fmin((double)(tl->update_ns ? tl->update_ns : tl->period_ns) / 1e9, OLDEST_S);
    struct nrg_trial late, any;
    double gain = 0;
    if (!tl->is_gauge || best->kernel.kind != NRG_KERNEL_EXP || !isfinite(best->rest))
        return 0;
    int rc = find_ages(t, oldest_s, best, &late, &any, &gain);
    if (rc || gain < NRG_TRIAL_CLEARLY / 10) /* nor can it become clear */
        return rc;
    rc = refine_age(t, best, oldest_s / AGES, factor, &late);
    if (!rc)
        rc = refine_age(t, best, oldest_s / AGES, factor, &any);
    if (!rc && !tl->update_ns)
        rc = refine_any_age(t, factor, &any);
    if (!rc && any.rest < late.rest)
        late = any;
    if (!rc && nrg_clearly_better(&late, best, tl->update_ns ? CLEARLY_PART / 10 : CLEARLY_PART))
        *best = late;
    return rc;
}

/*
 * Time constants: what is left falls smoothly towards the right one. Noise of what is averaged
 * lasts as long as the average does (`lasting`), noise of the readings does not.
 */
static int search_average(struct nrg_trials *t, double period_s, double longest_s, bool lasting,
                          struct nrg_trial *best)
{
    int rc = 0;
    t->max_rows = t->rows < COARSE_ROWS ? t->rows : COARSE_ROWS;
    *best = (struct nrg_trial){.rest = INFINITY};
    for (double s = period_s / 2; !rc && s <= longest_s; s *= 2)
        rc = nrg_try_with_phi(t, best, make_kernel(NRG_KERNEL_EXP, 0, s),
                              lasting ? exp(-period_s / s) : 0);
    t->max_rows = t->rows;
    if (!rc && isfinite(best->rest))
        rc = nrg_try_kernel(t, best, INFINITY);
    if (!rc)
        rc = nrg_refine_kernel(t, best, 0, 1.4);
    return rc ? rc : search_age(t, 1.02, best);
}

/* The same kernel may leave smaller residuals with noise that lasts. */
static int try_lasting(struct nrg_trials *t, double period_s, struct nrg_trial *best)
{
    double memory_s = nrg_kernel_memory_s(&best->kernel);
    double phi[] = {0.9, 0.99, exp(-period_s / fmax(memory_s, period_s / 10))};
    int rc = 0;
    for (size_t i = 0; !rc && isfinite(best->rest) && i < sizeof phi / sizeof *phi; i++)
        rc = nrg_try_with_phi(t, best, best->kernel, phi[i]);
    return rc;
}

/* A window shows only when its length is nearly right, but lengths are round numbers or whole
 * periods. */
static int search_window(struct nrg_trials *t, double period_s, double longest_s,
                         struct nrg_trial *best)
{
    static const double round[] = {1, 1.5, 2, 2.5, 3, 4, 5, 6, 8};
    int rc = 0;
    t->max_rows = t->rows < COARSE_ROWS ? t->rows : COARSE_ROWS;
    for (double decade = 1e-3; decade <= longest_s; decade *= 10)
        for (size_t i = 0; !rc && i < sizeof round / sizeof *round; i++)
            if (round[i] * decade >= period_s / 8 && round[i] * decade <= longest_s)
                rc = nrg_try_better(t, best, make_kernel(NRG_KERNEL_BOX, 0, round[i] * decade));
    for (int i = 2; !rc && i <= 10 && i * period_s <= longest_s; i++)
        rc = nrg_try_better(t, best, make_kernel(NRG_KERNEL_BOX, 0, i * period_s));
    t->max_rows = t->rows;
    if (!rc && isfinite(best->rest))
        rc = nrg_try_kernel(t, best, INFINITY);
    return rc ? rc : nrg_refine_kernel(t, best, 0, 1.05);
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
static bool knows_delay(const struct nrg_regress *r, const struct nrg_trial *best)
{
    return r->options.updates.sought && !r->options.timeline->is_gauge &&
           !(nrg_kernel_lag_s(&best->kernel) > 0);
}

/* Readings that come late, or that are of an earlier update. */
static int search_delay(struct nrg_trials *t, double period_s, struct nrg_trial *best)
{
    double update_s = (double)t->r->options.channel->update_ns / 1e9;
    struct nrg_kernel from = best->kernel;
    bool gauge = t->r->options.timeline->is_gauge;
    double oldest_s = fmin(update_s + (gauge ? period_s : 0), OLDEST_S);
    double step_s = fmin(64e-6, period_s / 4);
    int rc = 0;
    double most_s = fmin(2 * period_s, !gauge && update_s > 0 ? fmin(update_s, SOON_S) : SOON_S);
    for (double s = 32e-6; !rc && s <= most_s; s *= 2) {
        rc = nrg_try_better(t, best, nrg_kernel_moved(from, s, 0));
        if (!rc)
            rc = nrg_try_better(t, best, nrg_kernel_moved(from, -s, 0));
    }
    /* A reading is at most an update old; a gauge's may be a mean since the reading before. */
    bool old = oldest_s > 4e-3;
    for (double s = SOON_S; !rc && old && s < oldest_s / AGES; s *= 1.5)
        rc = nrg_try_better(t, best, nrg_kernel_moved(from, s, 0));
    for (int i = 1; !rc && old && i <= AGES; i++)
        rc = nrg_try_better(t, best, nrg_kernel_moved(from, oldest_s * i / AGES, 0));
    double late_s = best->kernel.near_s - from.near_s;
    if (late_s >= SOON_S) /* so far from one that was tried to the next, about */
        step_s = fmin(oldest_s / (2 * AGES), late_s / 4);
    return rc ? rc : nrg_refine_kernel(t, best, step_s, 1);
}

/* Prompt, but not exactly: readings that come late, updates of unknown age, stamps that are off. */
static int search_late(struct nrg_trials *t, double period_s, struct nrg_trial *best)
{
    double update_s = (double)t->r->options.channel->update_ns / 1e9;
    int rc = knows_delay(t->r, best) ? 0 : search_delay(t, period_s, best);
    struct nrg_trial wide = *best;
    struct nrg_kernel from = best->kernel;
    double widest_s = widest_level_s(t->r, period_s);
    for (double s = widest_s / 64; !rc && s <= 1.1 * widest_s; s *= 2)
        rc = nrg_try_better(t, &wide, nrg_kernel_widened(from, s));
    if (!rc && update_s > 0 && update_s < 4 * period_s)
        rc = nrg_try_better(t, &wide, make_kernel(from.kind, 0, update_s));
    double memory_s = nrg_kernel_memory_s(&wide.kernel);
    if (!rc && nrg_clearly_better(&wide, best, CLEARLY_PART / 10)) {
        rc = nrg_refine_kernel(t, &wide, fmin(memory_s, period_s) / 4, 1.4);
        *best = wide;
    }
    return rc;
}

static void take_trial(struct nrg_regress *r, const struct nrg_trial *trial, const char *source)
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

/* Readings that are all as old: up to an update, in steps. */
static int try_same_ages(struct nrg_trials *t, double update_s, int steps, struct nrg_trial *best)
{
    int rc = 0;
    for (int i = 1; !rc && i <= steps; i++)
        rc = nrg_try_better(t, best, make_kernel(NRG_KERNEL_LEVEL, update_s * i / steps, 0));
    return rc;
}

/* Then closer about the best. */
static int try_closer_ages(struct nrg_trials *t, double update_s, int steps, struct nrg_trial *best)
{
    int rc = 0;
    for (steps *= 2; !rc && steps <= UPDATE_AGES; steps *= 2) {
        double at_s = best->kernel.near_s, step_s = update_s / steps;
        if (at_s > 0)
            rc = nrg_try_better(t, best, make_kernel(NRG_KERNEL_LEVEL, at_s - step_s, 0));
        if (!rc && at_s < update_s)
            rc = nrg_try_better(t, best, make_kernel(NRG_KERNEL_LEVEL, at_s + step_s, 0));
    }
    return rc;
}

/* A counter's reading is as old as its last update: always the same, where it is read in step with
 * its updates, or anything between. Short updates hardly differ from one age to the next. That it
 * is the same must show clearly where threads wait: so much that the first steps show some of it.
 */
static int try_ages(struct nrg_trials *t, struct nrg_trial *best)
{
    double update_s = (double)t->r->options.channel->update_ns / 1e9;
    int steps = t->r->published.used ? UPDATE_AGES : FEW_AGES;
    struct nrg_trial any = {.rest = INFINITY};
    if (!(update_s > 0))
        return 0;
    int rc = nrg_try_better(t, &any, make_kernel(NRG_KERNEL_LEVEL, 0, update_s));
    if (!rc)
        rc = try_same_ages(t, update_s, steps, best);
    bool hopeless = knows_age(t->r) && nrg_trial_gain(best, &any) < NRG_TRIAL_CLEARLY / 10;
    if (!rc && !hopeless)
        rc = try_closer_ages(t, update_s, steps, best);
    bool doubted = knows_age(t->r) && !nrg_clearly_better(best, &any, CLEARLY_PART);
    *best = doubted || any.rest <= best->rest ? any : *best;
    return rc;
}

/* The mean of as long as the driver says, or of whole ms where it does not, which is not the time
 * between two updates: these are on a clock of their own. */
static int try_said_mean(struct nrg_trials *t, struct nrg_trial *best)
{
    const struct nrg_channel *c = t->r->options.channel;
    double found_s = round(t->r->published.update_s * 1e3) / 1e3;
    int64_t said_ns = c->window_ns > 0 ? c->window_ns : c->update_ns;
    double mean_s = said_ns > 0 ? (double)said_ns / 1e9 : found_s;
    bool known = t->r->published.used && mean_s > 0;
    return known ? nrg_try_better(t, best, make_kernel(NRG_KERNEL_BOX, 0, mean_s)) : 0;
}

/* A reading is of that instant, or the mean since the last: files do not say which. */
static int try_prompt(struct nrg_trials *t, struct nrg_trial *best)
{
    static const double phis[] = {0.4, 0.7, 0.9};
    *best = (struct nrg_trial){.rest = INFINITY};
    int rc = nrg_try_better(t, best, (struct nrg_kernel){.kind = NRG_KERNEL_LEVEL});
    if (!rc && !t->r->options.timeline->is_gauge)
        rc = try_ages(t, best);
    /* What others do within a cell is not known, and lasts: as noise that is independent from row
     * to row it would make any delay look better or worse than it is. */
    for (size_t i = 0; !rc && !t->r->options.timeline->is_gauge && i < sizeof phis / sizeof *phis;
         i++) {
        struct nrg_trial lasting = *best;
        rc = nrg_try_with_phi(t, &lasting, best->kernel, phis[i]);
        if (!rc && lasting.rest < (1 - LASTING) * best->rest)
            *best = lasting;
    }
    if (!rc && t->r->options.timeline->is_gauge)
        rc = nrg_try_better(
            t, best,
            (struct nrg_kernel){.kind = NRG_KERNEL_BOX, .near_s = -INSTANT_S, .far_s = INSTANT_S});
    if (!rc && t->r->options.timeline->is_gauge)
        rc = try_said_mean(t, best);
    return rc;
}

/* The driver states how long the sensor averages, not always the shape. */
static int try_known(struct nrg_trials *t, double lag_s, struct nrg_trial *best)
{
    best->rest = INFINITY;
    int rc = nrg_try_better(t, best, make_kernel(NRG_KERNEL_EXP, 0, lag_s));
    if (!rc && t->r->options.timeline->is_gauge)
        rc = nrg_try_better(t, best, make_kernel(NRG_KERNEL_BOX, 0, 2 * lag_s));
    if (!rc && t->r->options.timeline->is_gauge)
        rc = nrg_try_better(t, best, make_kernel(NRG_KERNEL_BOX, 0, lag_s));
    return rc;
}

/*
 * A change of the load has shown the time constant. Under a steady load readings tell little of
 * it, so it is only moved where that explains clearly more.
 */
static int start_from_seen(struct nrg_trials *t, struct nrg_regress *r)
{
    struct nrg_trial seen = {0};
    int rc = try_known(t, r->options.seen_lag_s, &seen);
    struct nrg_trial better = seen;
    if (!rc)
        rc = nrg_refine_kernel(t, &better, 0, 1.05);
    struct nrg_trial best = nrg_clearly_better(&better, &seen, CLEARLY_PART) ? better : seen;
    if (!rc)
        rc = search_age(t, 1.02, &best);
    if (!rc)
        take_trial(r, &best, "fitted");
    return rc;
}

static int search_kernel(struct nrg_trials *t, struct nrg_regress *r,
                         const struct nrg_trial *prompt)
{
    const struct nrg_timeline *tl = r->options.timeline;
    double period_s = nrg_reading_period_s(tl);
    double span_s = (double)(nrg_point_ns(tl, tl->n - 1) - nrg_point_ns(tl, 0)) / 1e9;
    double longest_s = fmin(NRG_TRIAL_LONGEST_S, span_s / 8);
    /* A kernel that leaves only what rounding does, steps / sqrt(12), needs no better. */
    bool search = tl->is_gauge && prompt->rest > r->quantum * r->quantum / 12;
    struct nrg_trial late = *prompt, average = {.rest = INFINITY}, window = average, slow = average;
    int rc = knows_age(r) ? 0 : search_late(t, period_s, &late);
    if (!rc && search)
        rc = search_average(t, period_s, longest_s, false, &average);
    if (!rc && search)
        rc = search_average(t, period_s, longest_s, true, &slow);
    if (!rc && search)
        rc = search_window(t, period_s, longest_s, &window);
    struct nrg_trial lasting = late;
    if (!rc && search)
        rc = try_lasting(t, period_s, &lasting);
    const struct nrg_trial *best = average.rest < window.rest ? &average : &window;
    best = slow.rest < best->rest ? &slow : best;
    /* Noise that lasts is more often a sensor that averages than anything else. */
    if (!rc && nrg_clearly_better(best, &late, CLEARLY_PART) &&
        !nrg_clearly_better(&lasting, best, CLEARLY_PART))
        take_trial(r, best, "fitted");
    else if (!rc && nrg_clearly_better(&late, prompt, CLEARLY_PART / 10))
        take_trial(r, &late, "fitted");
    return rc;
}

/* Updates that jitter show a moment somewhere about their grid's: a window that is wider than the
 * sensor's own. */
static int search_jitter(struct nrg_trials *t, double widest_s, struct nrg_trial *best)
{
    struct nrg_trial wide = *best;
    double window_s = nrg_kernel_memory_s(&best->kernel);
    int rc = 0;
    for (double s = window_s / 8; !rc && s <= widest_s; s *= 2)
        rc = nrg_try_better(t, &wide, nrg_kernel_widened(best->kernel, s));
    if (rc || !nrg_clearly_better(&wide, best, CLEARLY_PART))
        return rc;
    *best = wide;
    return nrg_refine_kernel(t, best, nrg_kernel_memory_s(&wide.kernel) / 8, 1.4);
}

/*
 * It is known for how long of each update the sensor looks; by when, it is not: the window may have
 * ended up to the rest of an update ago.
 */
static int search_known_window(struct nrg_trials *t, struct nrg_regress *r)
{
    double window_s = r->published.window_s, rest_s = r->published.update_s - window_s;
    double step_s = fmin(window_s / 4, rest_s / WINDOW_AGES);
    struct nrg_trial prompt = {.rest = INFINITY};
    int rc = nrg_try_better(t, &prompt, make_kernel(NRG_KERNEL_BOX, 0, window_s));
    struct nrg_trial late = prompt;
    for (int i = 1; !rc && i <= WINDOW_AGES; i++)
        rc = nrg_try_better(t, &late,
                            make_kernel(NRG_KERNEL_BOX, rest_s * i / WINDOW_AGES, window_s));
    if (!rc)
        rc = nrg_refine_kernel(t, &late, step_s, 1);
    if (!rc)
        rc = nrg_refine_kernel(t, &prompt, step_s / 8, 1);
    struct nrg_trial best = nrg_clearly_better(&late, &prompt, CLEARLY_PART) ? late : prompt;
    if (!rc)
        rc = search_jitter(t, r->published.update_s / 2, &best);
    if (!rc)
        take_trial(r, &best, "driver");
    return rc;
}

/* It is known of how many updates the sensor shows the mean. These are as long as their grid says,
 * or the mean is of whole ms, by another clock. */
static int try_running_mean(struct nrg_trials *t, struct nrg_regress *r)
{
    static const double phis[] = {0, 0.9, NRG_MEAN_PHI, 0.999};
    const struct nrg_updates_found *found = &r->options.updates;
    bool placed = found->sought && found->period_s > 0;
    double mean_s = r->published.mean_updates * (placed ? found->period_s : r->published.update_s);
    double means_s[] = {mean_s, round(mean_s * 1e3) / 1e3};
    struct nrg_trial best = {.rest = INFINITY};
    int rc = 0;
    for (size_t i = 0; !rc && i < 2 * sizeof phis / sizeof *phis; i++)
        rc =
            nrg_try_with_phi(t, &best, make_kernel(NRG_KERNEL_BOX, 0, means_s[i % 2]), phis[i / 2]);
    if (!rc) /* a grid was found with the one: the other has its middle there */
        rc = nrg_refine_kernel(t, &best, fabs(means_s[1] - means_s[0]), 1);
    if (!rc)
        take_trial(r, &best, r->options.channel->window_ns ? "driver" : "fitted");
    return rc;
}

static int choose_by_lag(struct nrg_trials *t, struct nrg_regress *r)
{
    const struct nrg_regress_options *o = &r->options;
    double lag_s = o->lag == NRG_LAG_GIVEN  ? o->lag_s
                   : o->lag == NRG_LAG_NONE ? 0
                   : o->channel->lag_ns > 0 ? (double)o->channel->lag_ns / 1e9
                   : isfinite(o->lag_s)     ? o->lag_s
                                            : 0;
    struct nrg_trial best = {0};
    if (o->lag == NRG_LAG_AUTO && r->published.mean_updates > 0)
        return try_running_mean(t, r);
    if (lag_s > 0 && o->lag == NRG_LAG_GIVEN) {
        best = (struct nrg_trial){.kernel = make_kernel(NRG_KERNEL_EXP, 0, lag_s)};
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

int nrg_regress_choose_kernel(struct nrg_regress *r)
{
    struct nrg_trials t;
    int rc = nrg_trials_make(&t, r);
    if (!rc)
        rc = choose_by_lag(&t, r);
    nrg_trials_release(&t);
    return rc;
}

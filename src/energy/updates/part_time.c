/*
 * A sensor that looks part of the time: its value is the mean of window_ns of every update_ns, and
 * the rest is never seen (an A100 shows 25 of 100 ms). The energy takes the rest to be alike. What
 * may be wrong with that, as far as readings and spans tell:
 *
 *   scatter    Power that changes from update to update was caught at random: the standard error
 *              of the sum, from differences of readings one to four updates apart (the largest;
 *              neighbours may be alike), so that slow changes of the load are no scatter.
 *   classes    Where spans are known and the moments of updates can be told, unseen.c says which
 *              part of the spans' time the windows missed, on balance. That time had any power
 *              between idle (as the baseline showed it, else 0) and the board's limit.
 *   creeping   Without that, readings that change slowly and steadily may be a slow load, or a
 *              fast one that is nearly in step with the sensor and drifts through its window. The
 *              time not seen then had any power between those that were read, or half as far
 *              beyond; less of that time where they creep for less than a quarter of the run.
 *
 * Not covered: a load exactly in step, without spans. Its readings are those of a constant one.
 */
#include "energy/internal.h"

#include <math.h>
#include <string.h>

#include "base/stats.h"

#define BLOCK        16 /* readings: 1.6 s of an A100 */
#define CREEPING     0.3
#define CREEPING_ALL 0.25 /* part of a run that puts all of it in doubt */
#define LEAST        4    /* readings that can say something */
#define MOST_STEPS   1000000
#define APART        4
#define QUANTILE_95  1.96
#define NO_LIMIT     2 /* times the highest reading, where the board's limit is not known */
#define TAIL         0.025
#define BEYOND       0.5

/* What readings once per update show. */
struct scatter {
    double block[BLOCK];
    size_t in_block;
    size_t n, n_creeping;
    double past_w[APART], squares[APART], pairs[APART]; /* by distance */
    double low_w, high_w;
};

bool nrg_is_part_time(const struct nrg_channel *c)
{
    return c->kind == NRG_GAUGE && c->quantity == NRG_POWER && c->window_ns > 0 &&
           c->window_ns < c->update_ns;
}

/* How much of all the three largest steps are. Sorts them. */
static double three_largest(double *steps, size_t n)
{
    double all = 0;
    for (size_t i = 0; i < n; i++)
        all += steps[i];
    nrg_sort(steps, n);
    return all > 0 ? (steps[n - 1] + steps[n - 2] + steps[n - 3]) / all : 1;
}

/* A block creeps when it varies by many small steps: phases of a load make few large ones, and
 * scatter goes up and down. */
static bool is_creeping(const double *w)
{
    double steps[BLOCK - 1], mean = 0, variance = 0, scatter = 0;
    for (size_t i = 0; i < BLOCK; i++)
        mean += w[i] / BLOCK;
    for (size_t i = 0; i < BLOCK; i++)
        variance += (w[i] - mean) * (w[i] - mean) / BLOCK;
    for (size_t i = 0; i < BLOCK - 1; i++) {
        steps[i] = fabs(w[i + 1] - w[i]);
        scatter += steps[i] * steps[i] / (2 * (BLOCK - 1));
    }
    return scatter < CREEPING * variance && three_largest(steps, BLOCK - 1) < 0.5;
}

static void add_block(struct scatter *s)
{
    s->in_block = 0;
    if (is_creeping(s->block))
        s->n_creeping += BLOCK;
}

static void add_reading(struct scatter *s, double power_w)
{
    for (size_t i = 0; i < APART; i++) {
        double apart = power_w - s->past_w[i];
        s->squares[i] += isnan(apart) ? 0 : apart * apart / 2;
        s->pairs[i] += !isnan(apart);
    }
    for (size_t i = APART - 1; i > 0; i--)
        s->past_w[i] = s->past_w[i - 1];
    s->past_w[0] = power_w;
    if (isnan(power_w)) {
        s->in_block = 0;
        return;
    }
    s->n++;
    s->low_w = fmin(s->low_w, power_w);
    s->high_w = fmax(s->high_w, power_w);
    s->block[s->in_block++] = power_w;
    if (s->in_block == BLOCK)
        add_block(s);
}

/* Half of the mean square of differences of readings that are so many apart. */
static double apart_w2(const struct scatter *s, size_t apart)
{
    return s->pairs[apart - 1] > 0 ? s->squares[apart - 1] / s->pairs[apart - 1] : 0;
}

static double variance_w2(const struct scatter *s)
{
    double most = 0;
    for (size_t i = 0; i < APART; i++)
        if (s->pairs[i] >= LEAST)
            most = fmax(most, apart_w2(s, i + 1));
    return most;
}

/* Readings `step_ns` apart. A sensor that averages its values needs more than one update. */
static struct scatter scan_readings(const struct nrg_timeline *tl, const struct nrg_summary *s,
                                    int64_t step_ns)
{
    struct scatter scatter = {.low_w = INFINITY, .high_w = -INFINITY};
    for (size_t i = 0; i < APART; i++)
        scatter.past_w[i] = NAN;
    /* A recording may say anything of its sensor. */
    int64_t least_ns = (s->end_ns - s->begin_ns) / MOST_STEPS + 1;
    step_ns = step_ns > least_ns ? step_ns : least_ns;
    for (int64_t t = s->begin_ns + step_ns / 2; t < s->end_ns; t += step_ns)
        add_reading(&scatter, nrg_timeline_gauge_at(tl, t));
    return scatter;
}

/*
 * A gauge shows an instant, or a mean of part of the time, or nobody knows: then it may be an
 * instant. What power did between readings was caught at random. Phases of a load make readings
 * differ the more the further apart they are, so what two neighbours would differ by if they were
 * no time apart is chance alone; the trapezoids' own error has the phases. A program that is nearly
 * in step with the readings is caught at the same places for a while, which spans show.
 */
double nrg_sampling_doubt_j(struct nrg_frame *frame, const struct nrg_channel *c,
                            const struct nrg_timeline *tl, const struct nrg_summary *s)
{
    double seen = (double)c->window_ns / fmax((double)tl->period_ns, 1);
    if (nrg_is_part_time(c) || seen >= 1 || c->lag_ns > 0)
        return 0; /* the first has more doubt; a filter forgets nothing */
    struct scatter scatter = scan_readings(tl, s, tl->period_ns);
    double chance_w2 = fmax(0, 2 * apart_w2(&scatter, 1) - apart_w2(&scatter, 2));
    double sd_w = nrg_timeline_gauge_sd(tl, s->begin_ns, s->end_ns);
    if (scatter.n <= LEAST || !(sd_w > 0))
        return 0;
    double uneven = nrg_uneven_moments(frame, c, tl, s);
    double variance_w2 = chance_w2 + fmax(uneven - 1, 0) * sd_w * sd_w;
    return QUANTILE_95 * sqrt(variance_w2 * (1 - seen) / (double)scatter.n) * s->duration_s;
}

/* The lowest power of the baseline, 0 without one. */
static double idle_w(const struct nrg_frame *frame, const struct nrg_timeline *tl)
{
    size_t n;
    const struct nrg_run *runs = nrg_recording_runs(frame->recording, &n);
    double low = INFINITY;
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; !strcmp(runs[r].kind, "baseline") && i < tl->n; i++)
            if (nrg_point_ns(tl, i) >= runs[r].begin_ns && nrg_point_ns(tl, i) <= runs[r].end_ns)
                low = fmin(low, nrg_point_gauge(tl, i));
    return isfinite(low) ? low : 0;
}

static struct nrg_power_range possible_range(const struct nrg_frame *frame,
                                             const struct nrg_channel *c,
                                             const struct nrg_timeline *tl)
{
    struct nrg_power_range range = {.low_w = idle_w(frame, tl)};
    for (size_t i = 0; i < tl->n; i++)
        range.high_w = fmax(range.high_w, nrg_point_gauge(tl, i));
    range.high_w = c->limit_w > range.high_w ? c->limit_w : NO_LIMIT * range.high_w;
    return range;
}

/* 95 % of the possible range, for the time that spans say was missed. */
static void doubt_classes(struct nrg_doubt *doubt, const struct nrg_power_range *range,
                          const struct nrg_summary *s, double mean_w)
{
    double time_s = doubt->missed * s->duration_s, tail_w = TAIL * (range->high_w - range->low_w);
    doubt->below_j = fmax(doubt->below_j, (mean_w - range->low_w - tail_w) * time_s);
    doubt->above_j = fmax(doubt->above_j, (range->high_w - tail_w - mean_w) * time_s);
}

/* Readings are means, so power went beyond them: by half of their range, within what is possible.
 */
static void doubt_creeping(struct nrg_doubt *doubt, const struct scatter *scatter,
                           const struct nrg_power_range *range, double unseen_s, double mean_w)
{
    double beyond_w = BEYOND * (scatter->high_w - scatter->low_w);
    double low_w = fmax(scatter->low_w - beyond_w, fmin(range->low_w, scatter->low_w));
    double high_w = fmin(scatter->high_w + beyond_w, range->high_w);
    double share = (double)scatter->n_creeping / (double)scatter->n;
    double time_s = unseen_s * fmin(1, share / CREEPING_ALL);
    doubt->creeping = true;
    doubt->below_j += fmax(0, mean_w - low_w) * time_s;
    doubt->above_j += fmax(0, high_w - mean_w) * time_s;
}

struct nrg_doubt nrg_part_time_doubt(struct nrg_frame *frame, const struct nrg_channel *c,
                                     const struct nrg_timeline *tl, const struct nrg_summary *s,
                                     double mean_w)
{
    struct nrg_doubt doubt = {.missed = NAN};
    double unseen = 1 - (double)c->window_ns / (double)c->update_ns;
    int64_t step_ns = c->update_ns > 2 * c->lag_ns ? c->update_ns : 2 * c->lag_ns;
    struct scatter scatter = scan_readings(tl, s, step_ns);
    if (scatter.n <= LEAST) {
        doubt.below_j = doubt.above_j = unseen * fabs(mean_w) * s->duration_s;
        return doubt;
    }
    doubt.below_j = doubt.above_j =
        QUANTILE_95 * sqrt(variance_w2(&scatter) * unseen / (double)scatter.n) * s->duration_s;
    doubt.missed = nrg_unseen_share(frame, c, tl, s);
    struct nrg_power_range range = possible_range(frame, c, tl);
    if (!isnan(doubt.missed))
        doubt_classes(&doubt, &range, s, mean_w);
    else if (scatter.n_creeping)
        doubt_creeping(&doubt, &scatter, &range, unseen * s->duration_s, mean_w);
    return doubt;
}

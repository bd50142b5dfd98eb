/*
 * See clockwork.h. From the line (saw.c), phase, period and a delay that all readings have are
 * found by trying which leave least in a regression.
 */
#include <errno.h>
#include <math.h>

#include "attribute/regress/clockwork.h"
#include "base/checked.h"

#define MOST_UPDATES  1000 /* in a row: beyond, their ages weigh nothing */
#define PHASES        16   /* that are tried, all around */
#define PART_ROWS     800
#define FIRST_STEP    0.02 /* of a period */
#define SECOND_STEP   0.01
#define LAST_STEP     7e-4
#define STEP          0.3
#define WORTH_IT      0.05
#define ONLY_ROUNDING 1.15
#define KNOWN         1.3  /* frequencies that look alike are this much outside, at least */
#define FAR_BETTER    4    /* times less is left, or it is a clock that only seems to fit */
#define BETTER        1.2  /* the same where threads wait, which leaves most of it anyway */
#define CLOSE         0.06 /* of a period */
#define MOST_CLOSE    0.3  /* of all readings */
#define MORE_READINGS 64   /* than rows: where stretches begin */

static double part_of(const struct nrg_clockwork *c, double t_s)
{
    double turns = c->frequency * t_s + c->phase;
    return turns - floor(turns);
}

static double age_of(const struct nrg_clockwork *c, double t_s)
{
    return c->age_s * part_of(c, t_s) + c->delay_s;
}

/* On which side of an update a reading close to it is, jitter decides. */
static bool is_close(const struct nrg_saw *s, const struct nrg_clockwork *c, size_t i)
{
    double part = part_of(c, nrg_saw_seconds(s, s->read_ns[i]));
    return fmin(part, 1 - part) < CLOSE;
}

/* Readings become those of their updates, in the order that they have, but for those that are close
 * to one, where there are enough others: rows end with these. */
static void set_times(struct nrg_saw *s, const struct nrg_clockwork *c)
{
    struct nrg_timeline *own = &s->r->published.timeline;
    size_t n = 0, close = 0;
    for (size_t i = 0; i < s->n_read; i++)
        close += is_close(s, c, i);
    bool all = (double)close > MOST_CLOSE * (double)s->n_read;
    for (size_t i = 0; i < s->n_read; i++) {
        if (n)
            own->gap[n - 1] |= i ? s->gap[i - 1] : 0;
        if (!all && is_close(s, c, i))
            continue;
        double age_s = age_of(c, nrg_saw_seconds(s, s->read_ns[i]));
        int64_t t = s->read_ns[i] - nrg_round_within(age_s * 1e9, -NRG_NS_PER_S, NRG_NS_PER_S);
        own->t_ns[n] = n && t <= own->t_ns[n - 1] ? own->t_ns[n - 1] + 1 : t;
        own->sum_j[n] = s->sum_j[i];
        own->gap[n++] = 0;
    }
    own->n = n;
}

/* How far ages go is the period, unless another frequency may be the true one. */
static bool knows_period(const struct nrg_saw *s)
{
    return 2 * NRG_SAW_PERIOD_OFF / s->update_s < KNOWN / nrg_saw_row_s(s);
}

/* The best clockwork so far, and what its rows leave; rows: how many are looked at. */
struct found {
    struct nrg_clockwork c;
    double least;
    size_t rows;
};

/* Keeps a clockwork that leaves less than the best so far. */
static int try_better(struct nrg_saw *s, const struct nrg_clockwork *trial, struct found *best)
{
    double rest = 0, rows = 0;
    set_times(s, trial);
    int rc = nrg_regress_rest(s->r, best->rows, &rest, &rows);
    if (!rc && rows > 0 && rest / rows < best->least) {
        best->least = rest / rows;
        best->c = *trial;
    }
    return rc;
}

/* The same clockwork, so much of a period later: all along, and more towards the end. */
static struct nrg_clockwork turned(const struct nrg_saw *s, const struct found *from, double by,
                                   double more)
{
    size_t n = from->rows < s->n ? from->rows : s->n;
    double half_s = nrg_saw_length_s(s, n) / 2, faster = more / half_s;
    struct nrg_clockwork c = from->c;
    c.frequency += faster;
    c.phase += by - faster * (s->rows[0].from_s + half_s);
    if (knows_period(s))
        c.age_s = 1 / c.frequency;
    return c;
}

/* Steps to all sides, smaller where none helps. */
static int refine(struct nrg_saw *s, size_t rows, double by, struct found *best)
{
    const struct nrg_clockwork first = best->c;
    best->least = INFINITY;
    best->rows = rows;
    int rc = try_better(s, &first, best);
    while (!rc && by > LAST_STEP && best->least > s->enough_j2) {
        const struct found from = *best;
        for (int k = 0; !rc && k < 9; k++) {
            struct nrg_clockwork trial = turned(s, &from, by * (k % 3 - 1), by * (k / 3 - 1));
            rc = k == 4 ? 0 : try_better(s, &trial, best);
        }
        for (int k = 0; !rc && k < 2; k++) {
            struct nrg_clockwork trial = best->c;
            double more_s = by * s->update_s * (k ? -1 : 1);
            *(knows_period(s) ? &trial.delay_s : &trial.age_s) += more_s;
            rc = try_better(s, &trial, best);
        }
        by *= best->least < from.least * (1 - WORTH_IT) ? 1 : STEP;
    }
    return rc;
}

/* Phases all around, in a part of the run. */
static int try_phases(struct nrg_saw *s, const struct found *start, struct found *best)
{
    int rc = 0;
    for (int i = 0; !rc && i < PHASES; i++) {
        struct nrg_clockwork trial = turned(s, start, (double)i / PHASES, 0);
        rc = try_better(s, &trial, best);
    }
    return rc;
}

/*
 * Readings that come at regular times see a line at some frequency and at its mirror image alike,
 * but teeth that lean to the other side. Then closer in more of the run, and in all of it.
 */
static int find_phase(struct nrg_saw *s, struct found *best)
{
    struct found start = *best, mirror = *best;
    double reading_hz = 1e9 / (double)s->r->options.timeline->period_ns;
    mirror.c.frequency = round(2 * start.c.frequency / reading_hz) * reading_hz - start.c.frequency;
    bool in_band = fabs(mirror.c.frequency * s->update_s - 1) < NRG_SAW_PERIOD_OFF;
    best->rows = PART_ROWS;
    int rc = try_phases(s, &start, best);
    if (!rc && in_band)
        rc = try_phases(s, &mirror, best);
    for (size_t rows = 3 * PART_ROWS; !rc && rows < s->n; rows *= 3)
        rc = refine(s, rows, FIRST_STEP, best);
    if (!rc)
        rc = refine(s, NRG_SAW_MOST_ROWS, SECOND_STEP, best);
    set_times(s, &best->c);
    return rc;
}

/* The readings that end rows. */
static void take_readings(struct nrg_saw *s, size_t room)
{
    const struct nrg_timeline *tl = s->r->options.timeline;
    struct nrg_observer observer;
    struct nrg_observation seen;
    size_t before = 0;
    nrg_observer_init(&observer, &s->r->options);
    bool more = observer.next < tl->n;
    for (; more && s->n_read < room; more = nrg_observe(&observer, &seen)) {
        size_t at = observer.next;
        for (size_t i = before; s->n_read && i < at; i++)
            s->gap[s->n_read - 1] |= tl->gap[i];
        s->sum_j[s->n_read] = tl->sum_j[at];
        s->read_ns[s->n_read++] = tl->t_ns[at];
        before = at;
    }
}

static int start_saw(struct nrg_saw *s)
{
    struct nrg_regress *r = s->r;
    struct nrg_timeline *own = &r->published.timeline;
    size_t n = r->rows_expected + MORE_READINGS;
    *own = *r->options.timeline;
    own->t_ns = nrg_arena_array(&r->memory, n, sizeof *own->t_ns);
    own->sum_j = nrg_arena_array(&r->memory, n, sizeof *own->sum_j);
    own->gap = nrg_arena_array(&r->memory, n, sizeof *own->gap);
    s->rows = nrg_arena_array(&s->memory, n, sizeof *s->rows);
    s->read_ns = nrg_arena_array(&s->memory, n, sizeof *s->read_ns);
    s->sum_j = nrg_arena_array(&s->memory, n, sizeof *s->sum_j);
    s->gap = nrg_arena_array(&s->memory, n, sizeof *s->gap);
    if (s->memory.failed || r->memory.failed)
        return -ENOMEM;
    take_readings(s, n);
    s->first_ns = s->read_ns[0];
    return 0;
}

static int follow_line(struct nrg_saw *s, double *least)
{
    struct nrg_regress *r = s->r;
    struct found best = {.c = {.age_s = s->update_s}, .least = INFINITY, .rows = NRG_SAW_MOST_ROWS};
    double part = 0;
    int rc = nrg_saw_take_rows(s);
    if (!rc && s->n >= NRG_SAW_LEAST_ROWS)
        rc = nrg_saw_find_line(s, &best.c, &part);
    if (rc || !(part > NRG_SAW_LEAST_PART))
        return rc;
    r->options.timeline = &r->published.timeline;
    r->options.merged_ns = r->options.punctual_ns = 0;
    r->kernel = (struct nrg_kernel){.kind = NRG_KERNEL_LEVEL};
    rc = find_phase(s, &best);
    *least = best.least;
    return rc;
}

static bool may_have_clockwork(const struct nrg_regress *r)
{
    const struct nrg_timeline *tl = r->options.timeline;
    double update_s = (double)r->options.channel->update_ns / 1e9,
           row_s = r->rows_expected ? r->energy_s / (double)r->rows_expected : 0;
    return !tl->gauge && !r->published.used && r->options.lag == NRG_LAG_AUTO && update_s > 0 &&
           r->rows_expected >= NRG_SAW_LEAST_ROWS && r->rows_expected <= NRG_SAW_MOST_ROWS &&
           r->plenty && row_s > 2 * update_s && row_s < MOST_UPDATES * update_s &&
           r->kernel.kind == NRG_KERNEL_LEVEL;
}

void nrg_regress_forget_clockwork(struct nrg_regress *r)
{
    if (!r->as_read.n_classes)
        return;
    r->options.timeline = r->as_read.timeline;
    r->options.merged_ns = r->as_read.merged_ns;
    r->options.punctual_ns = r->as_read.punctual_ns;
    r->as_read.n_classes = 0;
    r->clock_gain = 0;
}

int nrg_regress_find_clockwork(struct nrg_regress *r)
{
    double quantum = r->options.channel->resolution;
    struct nrg_saw s = {.r = r,
                        .update_s = (double)r->options.channel->update_ns / 1e9,
                        .enough_j2 = ONLY_ROUNDING * quantum * quantum / 6};
    struct nrg_kernel kernel = r->kernel;
    struct nrg_regress_options options = r->options;
    double least = INFINITY, rest, rows;
    if (!may_have_clockwork(r))
        return 0;
    int rc = nrg_regress_rest(r, NRG_SAW_MOST_ROWS, &rest, &rows);
    if (!rc)
        rc = nrg_regress_first_powers(r, NRG_SAW_MOST_ROWS);
    if (!rc)
        rc = start_saw(&s);
    if (!rc)
        rc = follow_line(&s, &least);
    if (!(rest / rows > (r->waits.used ? BETTER : FAR_BETTER) * least)) {
        r->options = options;
        r->kernel = kernel;
    } else {
        r->as_read = options;
        r->clock_gain = rest / rows / least;
    }
    r->prior = NULL;
    nrg_arena_release(&s.memory);
    return rc;
}

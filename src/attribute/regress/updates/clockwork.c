/*
 * See clockwork.h. From the line (saw.c), phase, period and a delay that all readings have are
 * found by trying which leave least, with powers that are fitted again in between.
 */
#include <errno.h>
#include <math.h>

#include "attribute/regress/updates/clockwork.h"
#include "base/checked.h"

#define MOST_UPDATES  1000 /* in a row: beyond, their ages weigh nothing */
#define PHASES        16   /* that are tried, all around */
#define AGES          8
#define PART_ROWS     800
#define ALMOST        4    /* times what rounding leaves */
#define FIRST_STEP    0.02 /* of a period */
#define SECOND_STEP   0.01
#define LAST_STEP     4e-3
#define STEP          0.3
#define WORTH_IT      0.05
#define WORTH_LITTLE  1e-4
#define FITS          6 /* of powers */
#define ONLY_ROUNDING 1.15
#define KNOWN         1.3  /* frequencies that look alike are this much outside, at least */
#define FAR_BETTER    4    /* times less is left, or it is a clock that only seems to fit */
#define BETTER        1.05 /* the same where threads wait, which leaves most of it anyway, */
#define CLEARLY       70.0 /* and rows * log of that: programs have lines of their own */
#define AT_MOST       2    /* times what ages explain on average */
#define MORE_READINGS 64   /* than rows: where stretches begin */
#define LESS          0.8  /* of what is left: so much do readings of one age explain */
#define ENOUGH_ROWS   3000

/* Readings become those of their updates, in the order that they have, but for those that are close
 * to one, where there are enough others: rows end with these. */
static void set_times(struct nrg_saw *s, const struct nrg_clockwork *c)
{
    struct nrg_timeline *own = &s->r->published.timeline;
    size_t n = 0, close = 0;
    for (size_t i = 0; i < s->n_read; i++)
        close += nrg_clockwork_is_close(nrg_clockwork_part(c, s->readings[i].t_s));
    bool all = (double)close > NRG_SAW_MOST_CLOSE * (double)s->n_read;
    for (size_t i = 0; i < s->n_read; i++) {
        const struct nrg_saw_reading *now = &s->readings[i];
        double part = nrg_clockwork_part(c, now->t_s), age_s = c->age_s * part + c->delay_s;
        if (n)
            own->gap[n - 1] |= i ? now[-1].gap : 0;
        if (!all && nrg_clockwork_is_close(part))
            continue;
        int64_t t = s->read_ns[i] - nrg_round_within(age_s * 1e9, -NRG_NS_PER_S, NRG_NS_PER_S);
        own->t_ns[n] = n && t <= own->t_ns[n - 1] ? own->t_ns[n - 1] + 1 : t;
        own->sum_j[n] = now->sum_j;
        s->kept[n] = i;
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
static void try_better(const struct nrg_saw *s, const struct nrg_clockwork *trial,
                       struct found *best)
{
    double left = nrg_saw_left(s, trial, best->rows);
    if (left < best->least) {
        best->least = left;
        best->c = *trial;
    }
}

/* The same clockwork, so much of a period later: all along, and more towards the end. */
static struct nrg_clockwork turned(const struct nrg_saw *s, const struct found *from, double by,
                                   double more)
{
    size_t n = from->rows < s->n ? from->rows : s->n;
    double half_s = nrg_saw_length_s(s, n) / 2, faster = more / half_s;
    struct nrg_clockwork c = from->c;
    c.frequency += faster;
    c.phase += by - faster * (s->readings[0].t_s + half_s);
    if (knows_period(s))
        c.age_s = 1 / c.frequency;
    return c;
}

/* Of what is left: where threads wait, that leaves most of it, and a clock can't take it away. */
static double worth_it(const struct nrg_saw *s)
{
    return s->r->waits.used ? WORTH_LITTLE : WORTH_IT;
}

/* Steps to all sides, smaller where none helps. */
static void refine(const struct nrg_saw *s, size_t rows, double by, struct found *best)
{
    const struct nrg_clockwork first = best->c;
    best->least = INFINITY;
    best->rows = rows;
    try_better(s, &first, best);
    while (by > LAST_STEP && best->least > s->enough_j2) {
        const struct found from = *best;
        for (int k = 0; k < 9; k++) {
            struct nrg_clockwork trial = turned(s, &from, by * (k % 3 - 1), by * (k / 3 - 1));
            if (k != 4)
                try_better(s, &trial, best);
        }
        for (int k = 0; k < 2; k++) {
            struct nrg_clockwork trial = best->c;
            double more_s = by * s->update_s * (k ? -1 : 1);
            *(knows_period(s) ? &trial.delay_s : &trial.age_s) += more_s;
            trial.delay_s = nrg_saw_delay_within(s, trial.delay_s);
            try_better(s, &trial, best);
        }
        by *= best->least < from.least * (1 - worth_it(s)) ? 1 : STEP;
    }
}

/* Phases all around, in a part of the run. */
static void try_phases(const struct nrg_saw *s, const struct found *start, struct found *best)
{
    for (int i = 0; i < PHASES; i++) {
        struct nrg_clockwork trial = turned(s, start, (double)i / PHASES, 0);
        try_better(s, &trial, best);
    }
}

/*
 * Readings that come at regular times see a line at some frequency and at its mirror image alike,
 * but teeth that lean to the other side. Then closer in more of the run, and in all of it.
 */
static void find_phase(const struct nrg_saw *s, struct found *best)
{
    struct found start = *best, mirror = *best;
    double reading_hz = 1e9 / (double)s->r->options.timeline->period_ns;
    mirror.c.frequency = round(2 * start.c.frequency / reading_hz) * reading_hz - start.c.frequency;
    bool in_band = fabs(mirror.c.frequency * s->update_s - 1) < NRG_SAW_PERIOD_OFF;
    best->least = INFINITY;
    best->rows = s->r->waits.used ? s->n : PART_ROWS;
    try_phases(s, &start, best);
    if (in_band)
        try_phases(s, &mirror, best);
    for (size_t rows = 3 * PART_ROWS; rows < s->n; rows *= 3)
        refine(s, rows, FIRST_STEP, best);
    refine(s, NRG_SAW_MOST_ROWS, SECOND_STEP, best);
}

static void list_reading(struct nrg_saw *s, size_t at, bool gap_before)
{
    struct nrg_reading_point read = nrg_point_at(s->r->options.timeline, at);
    if (s->n_read)
        s->readings[s->n_read - 1].gap = gap_before;
    s->read_ns[s->n_read] = read.t_ns;
    s->readings[s->n_read++] =
        (struct nrg_saw_reading){.t_s = nrg_saw_seconds(s, read.t_ns), .sum_j = read.sum_j};
}

/* The readings that begin and end rows; with a stride, between blocks of them is a gap. */
static void list_readings(struct nrg_saw *s, size_t stride)
{
    const struct nrg_timeline *tl = s->r->options.timeline;
    struct nrg_observer observer;
    struct nrg_observation seen;
    size_t most = s->r->rows_expected + MORE_READINGS - 2, last = SIZE_MAX;
    nrg_observer_init(&observer, &s->r->options);
    s->first_ns = observer.next < tl->n ? nrg_point_ns(tl, observer.next) : 0;
    s->n_read = 0;
    s->used_j = NULL;
    s->stride = stride;
    for (size_t row = 0, from = observer.next; s->n_read < most && nrg_observe(&observer, &seen);
         row++, from = observer.next) {
        bool gap = false;
        if (!nrg_row_is_taken(row, stride, NRG_SAW_BLOCK))
            continue;
        for (size_t i = from; i < observer.next; i++)
            gap |= nrg_point_gap(tl, i);
        if (from != last)
            list_reading(s, from, true);
        list_reading(s, last = observer.next, gap);
    }
}

static int start_saw(struct nrg_saw *s)
{
    struct nrg_regress *r = s->r;
    struct nrg_timeline *own = &r->published.timeline;
    size_t n = r->rows_expected + MORE_READINGS;
    nrg_borders_forget(&r->borders);
    *own = *r->options.timeline;
    own->t_ns = nrg_arena_array(&r->memory, n, sizeof *own->t_ns);
    own->sum_j = nrg_arena_array(&r->memory, n, sizeof *own->sum_j);
    own->gap = nrg_arena_array(&r->memory, n, sizeof *own->gap);
    s->readings = nrg_arena_array(&s->memory, n, sizeof *s->readings);
    s->read_ns = nrg_arena_array(&s->memory, n, sizeof *s->read_ns);
    s->kept = nrg_arena_array(&s->memory, n, sizeof *s->kept);
    s->ends = nrg_arena_array(&s->memory, n, sizeof *s->ends);
    if (s->memory.failed || r->memory.failed)
        return -ENOMEM;
    return 0;
}

/* Two columns: all updates earlier, and more so by their lever. */
static void bend_row(struct nrg_rowgen *gen, const void *of)
{
    const struct nrg_saw *s = of;
    const struct nrg_timeline *own = &s->r->published.timeline;
    size_t to = gen->observer.next, from = to - 1;
    while (from && own->t_ns[from] > gen->seen.from_ns)
        from--;
    nrg_rowgen_set(gen, NRG_COLUMN_SHIFT, s->ends[from].power_w - s->ends[to].power_w);
    nrg_rowgen_set(gen, NRG_COLUMN_MEMORY, s->ends[from].lever_w - s->ends[to].lever_w);
}

/* What of a clockwork is fitted beside its phase: its frequency, or how old readings get. */
enum lever { LEVER_NONE, LEVER_FREQUENCY, LEVER_AGE };

static double middle_s(const struct nrg_saw *s)
{
    return s->readings[0].t_s + nrg_saw_length_s(s, s->n) / 2;
}

static void set_ends(struct nrg_saw *s, const struct nrg_clockwork *c, enum lever lever)
{
    const struct nrg_timeline *own = &s->r->published.timeline;
    for (size_t k = 0; k < own->n; k++) {
        size_t i = s->kept[k];
        double t_s = s->readings[i].t_s, part = nrg_clockwork_part(c, t_s);
        double power_w = i < s->n ? nrg_saw_power_w(s, i, c->age_s * part + c->delay_s) : 0;
        double by = lever == LEVER_AGE ? part : lever == LEVER_FREQUENCY ? t_s - middle_s(s) : 0;
        s->ends[k] = (struct nrg_saw_end){power_w, power_w * by};
    }
}

/* All readings are older by older_s, and `more` by the lever. Where teeth end was seen clearly, how
 * old readings are in the mean was not: powers were fitted to that. So it is a delay. */
static void move_clockwork(const struct nrg_saw *s, struct nrg_clockwork *c, enum lever lever,
                           double older_s, double more)
{
    c->delay_s = nrg_saw_delay_within(s, c->delay_s + older_s);
    if (lever == LEVER_AGE)
        c->age_s += more;
    if (lever != LEVER_FREQUENCY)
        return;
    c->frequency += more / c->age_s;
    c->phase -= more / c->age_s * middle_s(s);
    if (knows_period(s))
        c->age_s = 1 / c->frequency;
}

/* The clockwork that a regression would rather have, and what that would leave. */
static int fit_clockwork(struct nrg_saw *s, enum lever lever, struct found *found)
{
    struct nrg_regress *r = s->r;
    struct nrg_clockwork *c = &found->c;
    const struct nrg_regress_options as_read = r->options;
    struct nrg_pass pass = {.kernel = {.kind = NRG_KERNEL_LEVEL},
                            .n_columns = r->n_columns,
                            .max_rows = found->rows,
                            .phi = r->first_phi,
                            .bend = bend_row,
                            .of = s};
    double rest, rows;
    set_times(s, c);
    set_ends(s, c, lever);
    r->options.timeline = &r->published.timeline;
    r->options.merged_ns = r->options.punctual_ns = 0;
    int rc = nrg_regress_fit(r, &pass, r->prior, &rest, &rows);
    r->options = as_read;
    double older_s = r->prior[NRG_COLUMN_SHIFT], more = r->prior[NRG_COLUMN_MEMORY];
    r->prior[NRG_COLUMN_SHIFT] = r->prior[NRG_COLUMN_MEMORY] = 0;
    found->least = !rc && rows > 0 ? rest / rows : INFINITY;
    move_clockwork(s, c, lever, older_s, more);
    return rc;
}

/* Powers were those of readings of unknown age: with the clockwork they are found more closely, and
 * the other way round. */
static int settle(struct nrg_saw *s, struct found *best)
{
    struct found found = *best;
    struct nrg_clockwork at = best->c;
    found.rows = NRG_SAW_MOST_ROWS;
    best->least = INFINITY;
    for (int i = 0; i < FITS; i++) {
        enum lever lever = !(found.c.frequency > 0)    ? LEVER_NONE
                           : i % 2 && !knows_period(s) ? LEVER_AGE
                                                       : LEVER_FREQUENCY;
        const struct nrg_clockwork now = found.c;
        double before = best->least;
        int rc = fit_clockwork(s, lever, &found);
        if (rc)
            return rc;
        if (!(found.least < before)) {
            best->c = at; /* the last step went too far */
            break;
        }
        at = now;
        *best = found;
        if (i && found.least > (1 - WORTH_IT) * before)
            break;
    }
    return 0;
}

/* With powers that the clockwork gave, where teeth end is seen more clearly. */
static int settle_again(struct nrg_saw *s, struct found *best)
{
    struct found again = *best;
    int rc = nrg_saw_take_readings(s);
    if (rc)
        return rc;
    refine(s, NRG_SAW_MOST_ROWS, SECOND_STEP, &again);
    rc = settle(s, &again);
    if (again.least < best->least)
        *best = again;
    return rc;
}

/* Whether ages of which nothing is known make enough of what is left for a clockwork to count. */
static bool ages_matter(const struct nrg_saw *s, double left, double factor)
{
    double sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += s->readings[i].power_w * s->readings[i].power_w;
    double ages_j2 = sum / (double)s->n * s->update_s * s->update_s / 6;
    return left < AT_MOST * ages_j2 * factor / (factor - 1);
}

/* A counter that is in step with the readings, or always fresh: they are all as old. */
static int try_same_age(struct nrg_saw *s, double left, double factor, struct found *same,
                        struct found *best)
{
    *same = (struct found){.least = INFINITY};
    for (int i = 0; i <= AGES; i++) {
        struct found found = {.c = {.age_s = s->update_s, .delay_s = s->update_s * i / AGES},
                              .rows = 2 * PART_ROWS};
        int rc = fit_clockwork(s, LEVER_NONE, &found);
        if (rc)
            return rc;
        if (found.least < same->least)
            *same = found;
    }
    if (same->least * factor > left)
        return 0;
    struct found settled = *same;
    int rc = settle(s, &settled);
    if (settled.least < best->least)
        *best = settled;
    return rc;
}

struct look {
    int (*find)(const struct nrg_saw *s, double kept, struct nrg_clockwork *best, double *part);
    double kept;
};

/* Looks for a line that explains what is left. */
static int follow_line(struct nrg_saw *s, const struct look *look, double left, double factor,
                       struct found *best)
{
    struct found found = {.c = {.age_s = s->update_s}, .rows = s->n};
    double part = 0;
    int rc = look->find(s, look->kept, &found.c, &part);
    if (rc || !(part > nrg_saw_least_part(s)))
        return rc;
    find_phase(s, &found);
    if (found.least > left)
        return 0;
    rc = settle(s, &found);
    if (!rc && found.least * factor < left && found.least > ALMOST * s->enough_j2)
        rc = settle_again(s, &found);
    if (found.least < best->least)
        *best = found;
    return rc;
}

/* A line that powers hide which were found with readings of any age shows with those of readings
 * that are all as old. */
static int look_again(struct nrg_saw *s, const struct look *look, const struct found *same,
                      double left, double factor, struct found *best)
{
    struct found found = *same;
    found.rows = NRG_SAW_MOST_ROWS;
    int rc = fit_clockwork(s, LEVER_NONE, &found);
    if (!rc)
        rc = nrg_saw_take_readings(s);
    return rc ? rc : follow_line(s, look, left, factor, best);
}

/* One way after the other. `left` is what a regression leaves that knows no ages; a clockwork must
 * leave `factor` times less. */
static int search(struct nrg_saw *s, double left, double factor, struct found *best)
{
    static const struct look looks[] = {{nrg_saw_find_line, 0},
                                        {nrg_saw_find_line, 0.9},
                                        {nrg_saw_find_line, 0.99},
                                        {nrg_saw_find_slow_line, 0.9},
                                        {nrg_saw_find_slow_line, 0.99}};
    size_t most = s->stride > 1 || s->r->waits.used ? 2 : sizeof looks / sizeof *looks;
    int rc = nrg_saw_take_readings(s);
    if (rc || s->n < NRG_SAW_LEAST_ROWS || !ages_matter(s, left, factor))
        return rc;
    for (size_t i = 0; !rc && i < most; i++) {
        struct found same = {.least = INFINITY};
        rc = follow_line(s, &looks[i], left, factor, best);
        if (!rc && !i && most > 2 && best->least > ALMOST * s->enough_j2)
            rc = try_same_age(s, left, factor, &same, best);
        if (!rc && same.least < LESS * left)
            rc = look_again(s, &looks[i], &same, left, factor, best);
        if (best->least * factor < left)
            break;
    }
    return rc;
}

/* The same in some of the rows, after a fit that knows no ages; *left: by that. */
static int fit_and_search(struct nrg_saw *s, size_t stride, double factor, double *left,
                          struct found *best)
{
    struct nrg_regress *r = s->r;
    list_readings(s, stride);
    struct nrg_pass pass = {.kernel = r->kernel,
                            .n_columns = r->n_columns,
                            .max_rows = NRG_SAW_MOST_ROWS,
                            .stride = s->stride,
                            .block = NRG_SAW_BLOCK,
                            .phi = r->first_phi};
    double rest = 0, rows = 1;
    *best = (struct found){.least = INFINITY};
    int rc = nrg_regress_fit(r, &pass, r->prior, &rest, &rows);
    *left = rows > 0 ? rest / rows : 0;
    return rc ? rc : search(s, *left, factor, best);
}

/* Of many rows, some do for a clock that is out of step with the readings: every so many blocks. */
static size_t thinned(const struct nrg_regress *r)
{
    bool all = r->first_phi > 0 || r->waits.used; /* a row needs the one before, or leaves much */
    return r->rows_expected < 3 * ENOUGH_ROWS || all ? 1 : r->rows_expected / ENOUGH_ROWS;
}

/* How many times less a clockwork must leave. */
static double needed_gain(const struct nrg_regress *r)
{
    return r->waits.used ? fmax(BETTER, exp(CLEARLY / (double)(r->rows_expected + 1))) : FAR_BETTER;
}

bool nrg_regress_may_have_clockwork(const struct nrg_regress *r)
{
    const struct nrg_timeline *tl = r->options.timeline;
    double update_s = (double)r->options.channel->update_ns / 1e9,
           row_s = r->rows_expected ? r->energy_s / (double)r->rows_expected : 0;
    return !tl->is_gauge && !r->published.used && r->options.lag == NRG_LAG_AUTO && update_s > 0 &&
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
    struct found best = {.least = INFINITY};
    double left = 0, factor = needed_gain(r);
    if (!nrg_regress_may_have_clockwork(r))
        return 0;
    r->n_prior = r->n_columns;
    r->prior = nrg_arena_array(&s.memory, r->n_columns, sizeof *r->prior);
    int rc = r->prior ? start_saw(&s) : -ENOMEM;
    size_t stride = thinned(r);
    if (!rc && stride > 1)
        rc = fit_and_search(&s, stride, factor, &left, &best);
    if (!rc && !(best.least < ALMOST * s.enough_j2))
        rc = fit_and_search(&s, 1, factor, &left, &best);
    r->kernel = kernel;
    if (!rc && left > factor * best.least) {
        list_readings(&s, 1);
        set_times(&s, &best.c);
        r->as_read = r->options;
        r->options.timeline = &r->published.timeline;
        r->options.merged_ns = r->options.punctual_ns = 0;
        r->kernel = (struct nrg_kernel){.kind = NRG_KERNEL_LEVEL};
        r->clock_gain = left / best.least;
    }
    r->prior = NULL;
    nrg_arena_release(&s.memory);
    return rc;
}

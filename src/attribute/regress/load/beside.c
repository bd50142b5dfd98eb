/*
 * Watts of the workload's processes without spans, such as workers that load data. Their CPU time
 * is known per cell, and rows are often shorter. When in its cell a worker ran is then a guess
 * (in_step.c), and a column of guesses has too few watts: what it lacks is taken for that of the
 * spans beside it.
 *
 * In sum over a cell there is nothing to guess. So rows are added up to cells, from the reading
 * next to a cell's begin to the one next to its end, and the watts are found from these. They are
 * few, so classes that follow one another are one column here: what their powers differ by is
 * noise. The regression of all classes then holds workers to the watts that were found, and
 * intervals have what these may be off by. (Of others it is not done: where ticks say how much CPU
 * time they had, cells are no more certain than rows.)
 *
 * What a package draws once, as soon as any CPU is awake, is shared by those that are. A worker's
 * watts here are what it draws besides the spans, which hardly ever rest, so readings do not tell
 * its share: it is taken to be between nothing and that of MOST_ONCE of what spans draw.
 */
#include "attribute/regress/internal.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/stats.h"

#define MOST_PARTS  24
#define PART_CELLS  20   /* cells per part, at least */
#define LEAST_CELLS 100  /* as in when.c */
#define MOST_ONCE   0.2  /* of what a CPU second of spans draws */
#define TICK_S      4e-3 /* of most kernels */
#define SHORT_ROWS  0.5  /* of a cell: longer rows hold most of one, whenever it ran in it */
#define LEAST_TIME  0.02 /* CPUs: who has less can't be told */
#define SURE        3.0  /* standard errors: what power is told of at all */
#define HELD        1e6  /* times as sure as what is known of it */
#define LEAST_HELD  1e-3 /* of its column: enough, where rows leave nothing */

struct sums {
    const struct nrg_regress *r;
    struct nrg_arena memory;
    uint32_t *part; /* per column: where it goes; 0: nowhere */
    size_t n;       /* columns of the sum */
    size_t parts;   /* of these, those of spans, from the first class on */
    double *cell, y;
    double *time_s; /* of all cells */
    size_t next;    /* border of cells */
    struct nrg_gram gram;
};

static bool is_span(const struct nrg_regress *r, size_t column)
{
    size_t class_ = r->class_of[column];
    return class_ < r->options.spans || class_ >= r->options.n_whole;
}

/* How long slices of each class of spans are; returns their sum. */
static double sum_spans(const struct nrg_regress *r, double *time_s)
{
    double sum_s = 0;
    for (size_t i = 0; i < r->slices.n; i++) {
        const struct nrg_regress_slice *slice = &r->slices.items[i];
        double length_s = (double)(slice->end_ns - slice->begin_ns) * 1e-9;
        if (!is_span(r, slice->column))
            continue;
        time_s[slice->column] += length_s;
        sum_s += length_s;
    }
    return sum_s;
}

/* Parts of equal time, of columns in the order in which they come first. */
static void divide_spans(struct sums *s, const double *time_s, double sum_s)
{
    const struct nrg_regress *r = s->r;
    double done_s = 0;
    for (size_t i = 0; i < r->slices.n; i++) {
        size_t column = r->slices.items[i].column;
        if (s->part[column] || !(time_s[column] > 0))
            continue;
        size_t part = (size_t)(done_s / sum_s * (double)s->parts);
        s->part[column] = (uint32_t)(NRG_COLUMN_CLASSES + (part < s->parts ? part : s->parts - 1));
        done_s += time_s[column];
    }
}

/* What is no span has a column of its own: workers, others, and work outside of spans. */
static int make_parts(struct sums *s, size_t cells)
{
    const struct nrg_regress *r = s->r;
    double *time_s = nrg_arena_array(&s->memory, r->n_columns, sizeof *time_s);
    s->part = nrg_arena_array(&s->memory, r->n_columns, sizeof *s->part);
    if (s->memory.failed)
        return -ENOMEM;
    s->parts = cells / PART_CELLS < MOST_PARTS ? cells / PART_CELLS : MOST_PARTS;
    divide_spans(s, time_s, sum_spans(r, time_s));
    s->n = NRG_COLUMN_CLASSES + s->parts;
    for (size_t i = NRG_COLUMN_CLASSES; i < r->n_columns; i++)
        if (!r->is_calls[i] && !s->part[i])
            s->part[i] = (uint32_t)s->n++;
    for (size_t i = NRG_COLUMN_AWAKE; i < NRG_COLUMN_CLASSES; i++)
        s->part[i] = (uint32_t)i;
    s->cell = nrg_arena_array(&s->memory, s->n, sizeof *s->cell);
    s->time_s = nrg_arena_array(&s->memory, s->n, sizeof *s->time_s);
    return s->memory.failed ? -ENOMEM : nrg_gram_grow(&s->gram, s->n);
}

static void add_row(struct sums *s, const struct nrg_rowgen *gen)
{
    s->y += gen->y;
    for (size_t i = 0; i < gen->n; i++)
        if (s->part[i])
            s->cell[s->part[i]] += gen->x[i];
}

static void end_cell(struct sums *s, bool whole)
{
    double idle_w = s->r->options.idle_w;
    if (whole) {
        nrg_gram_add(&s->gram, s->cell, NULL, s->n, s->y - idle_w * s->cell[NRG_COLUMN_IDLE], 1);
        nrg_add_scaled(s->time_s, s->cell, 1, s->n);
    }
    memset(s->cell, 0, s->n * sizeof *s->cell);
    s->y = 0;
}

/* Cells that are over before the row begins have rows missing, and so has the one that it is in. */
static bool skip_cells(struct sums *s, int64_t until_ns)
{
    size_t before = s->next;
    while (s->next <= s->r->options.n_cells && s->r->options.cell_ns[s->next] < until_ns)
        s->next++;
    return s->next > before;
}

static int sum_cells(struct sums *s)
{
    const struct nrg_regress *r = s->r;
    const struct nrg_regress_options *o = &r->options;
    struct nrg_rowgen gen;
    bool whole = false;
    int rc;
    nrg_rowgen_init(&gen, o, &r->kernel, NULL, nrg_regress_sees_drift(r, SIZE_MAX));
    nrg_regress_keep_rows(r, &gen);
    while ((rc = nrg_rowgen_next(&gen, &r->slices, r->ready_ns, r->n_columns)) > 0) {
        int64_t half_ns = (gen.seen.to_ns - gen.seen.from_ns) / 2;
        if (skip_cells(s, gen.seen.from_ns - half_ns) || gen.restart)
            whole = false;
        add_row(s, &gen);
        if (s->next <= o->n_cells && gen.seen.to_ns >= o->cell_ns[s->next] - half_ns) {
            end_cell(s, whole);
            whole = true;
            s->next++;
        }
    }
    nrg_rowgen_release(&gen);
    return rc;
}

/* Watts of a CPU second of the spans, and how many CPUs they have. */
static double span_watts(const struct sums *s, const double *beta, double *cpus)
{
    double energy_j = 0, time_s = 0;
    for (size_t i = NRG_COLUMN_CLASSES; i < NRG_COLUMN_CLASSES + s->parts; i++) {
        energy_j += beta[i] * s->time_s[i];
        time_s += s->time_s[i];
    }
    *cpus = time_s / s->time_s[NRG_COLUMN_IDLE];
    return time_s > 0 ? energy_j / time_s : 0;
}

/* A worker's share of what is drawn once, at most. */
static double shared_once_w(const struct sums *s, const double *beta)
{
    double cpus, w = span_watts(s, beta, &cpus);
    return MOST_ONCE * w * fmin(cpus, 1) / (1 + fmax(cpus, 1));
}

/* Of a column's square, how much is that CPU time of who runs is shown as of the last tick, at
 * most: at both ends of a cell. */
static double late2(const struct sums *s, size_t at)
{
    double cpus = s->time_s[at] / s->time_s[NRG_COLUMN_IDLE];
    return 2 * cpus * TICK_S * TICK_S / 3 * (double)s->gram.rows;
}

/* Watts of the process in column `at`; `own2` of its square no other column explains. */
static struct nrg_workers_watts with_doubt(const struct sums *s, const double *beta, size_t at,
                                           double own2, double error_w)
{
    double once_w = shared_once_w(s, beta) / 2, late_w = beta[at] * late2(s, at) / own2 / 2;
    return (struct nrg_workers_watts){
        .power_w = beta[at] + once_w, .error_w = hypot(error_w, late_w), .once_w = once_w};
}

/* The standard error follows from how much more is left without the column. */
static int find_watts(struct sums *s, size_t at, struct nrg_workers_watts *found)
{
    struct nrg_regress local = *s->r;
    double *beta = nrg_arena_array(&s->memory, 2 * s->n, sizeof *beta), with = 0, without = 0;
    double *own = &s->gram.a[nrg_packed(at, at)], square = *own;
    double cells = (double)s->gram.rows, spare = cells - (double)s->n;
    local.is_calls = nrg_arena_array(&s->memory, s->n, sizeof *local.is_calls);
    if (s->memory.failed)
        return -ENOMEM;
    int rc = nrg_regress_held_powers(&local, &s->gram, beta, &with);
    *own = 0;
    if (!rc)
        rc = nrg_regress_held_powers(&local, &s->gram, beta + s->n, &without);
    *own = square;
    double error2 = with / spare, more = fmax(without - with, 0);
    if (!rc && more > SURE * SURE * error2)
        *found =
            with_doubt(s, beta, at, more / (beta[at] * beta[at]), beta[at] * sqrt(error2 / more));
    return rc;
}

int nrg_regress_find_workers(struct nrg_regress *r)
{
    struct sums s = {.r = r};
    size_t cells = r->options.n_cells, column = r->column_of[r->options.workers_class];
    if (!column || cells < LEAST_CELLS || r->ready_ns != INT64_MAX ||
        r->options.timeline->is_gauge || nrg_regress_row_per_cell(r) > SHORT_ROWS ||
        isnan(r->options.idle_w))
        return 0;
    int rc = make_parts(&s, cells);
    if (!rc)
        rc = sum_cells(&s);
    if (!rc && s.gram.rows > LEAST_CELLS + s.n &&
        s.time_s[s.part[column]] > LEAST_TIME * s.time_s[NRG_COLUMN_IDLE])
        rc = find_watts(&s, s.part[column], &r->workers);
    nrg_gram_release(&s.gram);
    nrg_arena_release(&s.memory);
    return rc;
}

size_t nrg_solver_place_of(const struct nrg_solver *s, size_t kind)
{
    const struct nrg_regress_options *o = &s->r->options;
    uint32_t column = s->r->column_of[kind == NRG_WORKERS ? o->workers_class : o->others_class];
    size_t p = 0;
    while (p < s->n_classes && (!column || s->index[p] != column))
        p++;
    return p;
}

void nrg_solver_hold(struct nrg_solver *s, size_t kind, double power_w, double variance)
{
    size_t column = s->index[nrg_solver_place_of(s, kind)];
    double *own = &s->sum.a[nrg_packed(column, column)];
    double weight = fmax(HELD * s->left / variance, LEAST_HELD * *own);
    *own += weight;
    s->sum.b[column] += weight * power_w;
    s->sum.yy += weight * power_w * power_w;
    s->held_off_w[kind] = nrg_student_half(s->r->options.confidence, s->freedom) * sqrt(variance);
}

bool nrg_solver_hold_workers(struct nrg_solver *s)
{
    const struct nrg_workers_watts *found = &s->r->workers;
    size_t p = nrg_solver_place_of(s, NRG_WORKERS);
    if (!(found->error_w > 0) || p == s->n_classes || s->dependent[p] || !(s->left > 0))
        return false;
    nrg_solver_hold(s, NRG_WORKERS, found->power_w, found->error_w * found->error_w);
    s->held_off_w[NRG_WORKERS] += found->once_w;
    return true;
}

double nrg_solver_by_held_w(const struct nrg_solver *s, size_t kind, size_t p)
{
    if (!(s->held_off_w[kind] > 0))
        return 0;
    size_t held = nrg_solver_place_of(s, kind);
    if (held == s->n_classes)
        return 0;
    double own = s->inverse[nrg_packed(held, held)] * s->scale[held];
    return own > 0 ? s->held_off_w[kind] * s->inverse[nrg_packed(held, p)] * s->scale[p] / own : 0;
}

/*
 * What a first fit leaves of rows, slowly: idle power that goes its own way (walk.c), or the load.
 * Idle power has as much in each row, a load more where it draws more, so rows of different load
 * tell the two apart. Idle's is taken off what is left, so that it is not taken for noise that
 * lasts, which would hide where idle power begins and ends; and before a counter's clock is sought,
 * it becomes a shape of its own.
 */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/regress/internal.h"
#include "base/mem.h"
#include "energy/idle.h"

#define ROUNDS       4   /* in which a smooth curve comes to the means of pieces */
#define FEW          8   /* one piece in so many */
#define BUSY         0.5 /* of the mean load */
#define POINTS       4   /* per piece, of a shape */
#define PIECE_ROWS   16  /* of a piece of the run, at least */
#define LEAST_PIECES 16
#define SHORTER      8 /* than a piece, so many times, is noise that lasts */
#define MAX_ROWS     200000
#define LIKELIER     3.0 /* log odds, that it is idle power's and not the load's */

/* What a first fit leaves, row by row. */
struct rows {
    struct nrg_arena memory;
    double *e, *idle, *load, mean_load;
    int64_t *t_ns;
    size_t n;
};

/* Pieces of the run: a smooth curve whose mean in each is that of its rows. */
struct pieces {
    size_t rows, n;
    double *level; /* in the middle of each */
};

/* Beyond the ends, along a parabola. */
static double level_of(const struct pieces *p, ptrdiff_t i)
{
    const double *l = p->level, *end = l + p->n - 1;
    if (i < 0)
        return 3 * l[0] - 3 * l[1] + l[2];
    if ((size_t)i >= p->n)
        return 3 * end[0] - 3 * end[-1] + end[-2];
    return l[i];
}

/* Four levels around a stretch of the curve, which lies between the two in the middle. */
struct stretch {
    double from, a, b, c, d;
};

static struct stretch stretch_at(const struct pieces *p, double at)
{
    double last = (double)p->n - 2, from = floor(at);
    from = from < 0 ? 0 : from > last ? last : from;
    ptrdiff_t i = (ptrdiff_t)from;
    return (struct stretch){from, level_of(p, i - 1), level_of(p, i), level_of(p, i + 1),
                            level_of(p, i + 2)};
}

/* Through the levels (Catmull and Rom). */
static double curve_of(const struct stretch *s, double at)
{
    double t = at - s->from, a = s->a, b = s->b, c = s->c, d = s->d;
    return b + t / 2 * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
}

/* At a part of all rows. */
static double level_at(const struct pieces *p, double part)
{
    double at = part * (double)p->n - 0.5;
    struct stretch s = stretch_at(p, at);
    return curve_of(&s, at);
}

/* The same row by row, which share stretches; begins with a stretch of nothing. */
static inline double curve_at(const struct pieces *p, size_t row, struct stretch *s)
{
    double at = ((double)row + 0.5) / (double)p->rows * (double)p->n - 0.5;
    if (!(at < s->from + 1))
        *s = stretch_at(p, at);
    return curve_of(s, at);
}

#define NO_STRETCH ((struct stretch){.from = -INFINITY})

/* Rows in which the load is as usual: where it rests, a load that a first fit has too small or too
 * large looks like idle power that jumps. */
static bool is_busy(const struct rows *rows, size_t i)
{
    return rows->load[i] > BUSY * rows->mean_load;
}

/* Least squares of what is left in each piece; rest: the sum of squares of each before. The first
 * time, levels are 0. */
static void improve_pieces(struct pieces *p, double *more, const struct rows *rows, const double *x,
                           double *rest, bool first)
{
    struct stretch stretch = NO_STRETCH;
    double xx = 0, xe = 0;
    memset(rest, 0, p->n * sizeof *rest);
    for (size_t i = 0, piece = 0; i < p->rows; i++) {
        if (is_busy(rows, i)) {
            double off = rows->e[i] - (first ? 0 : curve_at(p, i, &stretch) * x[i]);
            rest[piece] += off * off;
            xx += x[i] * x[i];
            xe += x[i] * off;
        }
        if ((i + 1) * p->n < (piece + 1) * p->rows)
            continue;
        more[piece] = xx > 0 ? xe / xx : NAN;
        piece++;
        xx = xe = 0;
    }
}

/* A piece without such rows goes on as the two before it, half as steep; or else those after it. */
static void add_more(struct pieces *p, const double *more)
{
    double *l = p->level;
    for (size_t i = 0; i < p->n; i++) {
        double on = i > 1 ? l[i - 1] + (l[i - 1] - l[i - 2]) / 2 : i ? l[0] : NAN;
        l[i] = isnan(more[i]) ? on : l[i] + more[i];
    }
    for (size_t i = p->n; i-- > 0;)
        if (isnan(l[i]))
            l[i] = i + 2 < p->n ? l[i + 1] + (l[i + 1] - l[i + 2]) / 2 : 0;
}

/* What is left in each piece, before and after. */
static void fit_pieces(struct pieces *p, const struct rows *rows, const double *x, double *before,
                       double *after)
{
    double more[NRG_REGRESS_BLOCKS];
    memset(p->level, 0, p->n * sizeof *p->level);
    for (int round = 0; round < ROUNDS; round++) {
        improve_pieces(p, more, rows, x, round ? after : before, !round);
        add_more(p, more);
    }
}

/* Pieces that alone would make a course are none: a program that starts up. Returns how many. */
static size_t leave_out(const struct pieces *p, double *all, double *by_idle, size_t *left_out)
{
    size_t n = p->n / FEW;
    for (size_t k = 0; k < n; k++) {
        size_t most = 0;
        for (size_t i = 1; i < p->n; i++)
            if (all[i] - by_idle[i] > all[most] - by_idle[most])
                most = i;
        all[most] = by_idle[most] = 0;
        left_out[k] = most;
    }
    return n;
}

static double sum_of(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    return sum;
}

static size_t count_pieces(size_t rows)
{
    size_t n = rows / PIECE_ROWS;
    return n < NRG_REGRESS_BLOCKS ? n : NRG_REGRESS_BLOCKS;
}

double nrg_regress_most_memory(const struct nrg_regress *r, size_t n)
{
    return isfinite(r->course_odds) ? 1 - SHORTER * (double)count_pieces(n) / (double)n : 1;
}

static double mean_distance(const struct pieces *p)
{
    double sum = 0;
    for (size_t i = 0; i < p->n; i++)
        sum += fabs(p->level[i]) / (double)p->n;
    return sum;
}

/* How idle power goes its own way, if it does, and by more than one baseline differs from the next:
 * log odds against a load that does, which is only looked at then. */
static double fit_course(const struct nrg_regress *r, struct pieces *p, struct rows *rows)
{
    double all[NRG_REGRESS_BLOCKS], by_load[NRG_REGRESS_BLOCKS], by_idle[NRG_REGRESS_BLOCKS];
    double n = (double)rows->n, level[NRG_REGRESS_BLOCKS];
    struct pieces of_load = {.rows = p->rows, .n = p->n, .level = level};
    rows->mean_load = sum_of(rows->load, rows->n) / n;
    fit_pieces(p, rows, rows->idle, all, by_idle);
    size_t left_out[NRG_REGRESS_BLOCKS / FEW], n_left_out = leave_out(p, all, by_idle, left_out);
    double before = sum_of(all, p->n), idle = sum_of(by_idle, p->n);
    double far_w = mean_distance(p);
    if (!(far_w > NRG_BASELINE_ERROR * r->options.idle_w &&
          far_w < nrg_regress_furthest_idle_w(r) && idle > 0 &&
          n * log(before / idle) > (double)p->n * log(n)))
        return -INFINITY;
    fit_pieces(&of_load, rows, rows->load, all, by_load);
    for (size_t i = 0; i < n_left_out; i++)
        by_load[left_out[i]] = 0;
    double odds = n / 2 * log(sum_of(by_load, p->n) / idle);
    return odds > LIKELIER ? odds : -INFINITY;
}

int nrg_regress_take_off_course(struct nrg_regress *r, double *e, double *idle, double *load,
                                size_t n)
{
    struct rows rows = {.e = e, .idle = idle, .load = load, .n = n};
    struct pieces p = {.rows = n, .n = count_pieces(n)};
    r->course_odds = -INFINITY;
    if (p.n < LEAST_PIECES || !nrg_regress_idle_may_walk(r))
        return 0;
    p.level = nrg_calloc(p.n, sizeof *p.level);
    if (!p.level)
        return -ENOMEM;
    r->course_odds = fmax(fit_course(r, &p, &rows), r->course_seen);
    struct stretch stretch = NO_STRETCH;
    for (size_t i = 0; isfinite(r->course_odds) && i < n; i++)
        e[i] -= curve_at(&p, i, &stretch) * idle[i];
    free(p.level);
    return 0;
}

static int take_rows(const struct nrg_regress *r, const struct nrg_kernel *kernel,
                     struct rows *rows)
{
    struct nrg_rowgen gen;
    size_t room = r->rows_expected + 1;
    double **columns[] = {&rows->e, &rows->idle, &rows->load};
    for (size_t i = 0; i < 3; i++)
        *columns[i] = nrg_arena_array(&rows->memory, room, sizeof(double));
    rows->t_ns = nrg_arena_array(&rows->memory, room, sizeof *rows->t_ns);
    if (rows->memory.failed)
        return -ENOMEM;
    int rc = 0;
    nrg_rowgen_init(&gen, &r->options, kernel, NULL, true);
    while (rows->n < r->rows_expected &&
           (rc = nrg_rowgen_next(&gen, &r->slices, r->ready_ns, r->n_columns)) > 0) {
        double expected = nrg_regress_expected(r, &gen);
        rows->e[rows->n] = gen.y - expected;
        rows->idle[rows->n] = gen.x[NRG_COLUMN_IDLE];
        rows->load[rows->n] = nrg_regress_load(r, &gen, expected);
        rows->t_ns[rows->n++] = nrg_rowgen_moment_ns(&gen);
    }
    nrg_rowgen_release(&gen);
    return rc < 0 ? rc : 0;
}

/* The course as a shape of its own, as a temperature would be: 0 where a baseline holds it. */
static int keep_course(struct nrg_regress *r, const struct pieces *p, const struct rows *rows)
{
    const struct nrg_regress_options *o = &r->options;
    size_t n = POINTS * p->n + 1;
    int64_t *t_ns = nrg_arena_array(&r->memory, n, sizeof *t_ns);
    double *part = nrg_arena_array(&r->memory, n, sizeof *part), most_w = 0;
    if (r->memory.failed)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        double at = (double)i / (double)(n - 1);
        t_ns[i] = i + 1 < n ? rows->t_ns[i * p->rows / (n - 1)] : o->end_ns;
        part[i] = level_at(p, at);
    }
    t_ns[0] = o->begin_ns;
    double held_w = part[o->course.seen == NRG_IDLE_AFTER ? n - 1 : 0];
    for (size_t i = 0; i < n; i++)
        most_w = fmax(most_w, fabs(part[i] - held_w));
    if (!(most_w > 0)) /* it went nowhere */
        return 0;
    for (size_t i = 0; i < n; i++)
        part[i] = (part[i] - held_w) / most_w;
    r->own_course = (struct nrg_heat){t_ns, part, n, 0, part[n - 1]};
    r->options.course.heat = &r->own_course;
    r->options.idle_shape_w[NRG_IDLE_HEAT] = most_w;
    return 0;
}

/* Looks for a course in what a first fit leaves. */
static int seek(struct nrg_regress *r, bool keep)
{
    double update_s = (double)r->options.channel->update_ns / 1e9, rest, n;
    struct nrg_pass pass = {.kernel = {.kind = NRG_KERNEL_LEVEL, .far_s = update_s},
                            .n_columns = r->n_columns,
                            .max_rows = MAX_ROWS};
    struct rows rows = {0};
    r->prior = nrg_arena_array(&rows.memory, r->n_columns, sizeof *r->prior);
    r->n_prior = r->n_columns;
    struct pieces p = {.level = nrg_arena_array(&rows.memory, NRG_REGRESS_BLOCKS, sizeof(double))};
    int rc = rows.memory.failed ? -ENOMEM : nrg_regress_fit(r, &pass, r->prior, &rest, &n);
    if (!rc)
        rc = take_rows(r, &pass.kernel, &rows);
    p.rows = rows.n;
    p.n = count_pieces(rows.n);
    r->course_seen = !rc && p.n >= LEAST_PIECES ? fit_course(r, &p, &rows) : -INFINITY;
    if (!rc && keep && isfinite(r->course_seen))
        rc = keep_course(r, &p, &rows);
    r->prior = NULL;
    r->n_prior = 0;
    nrg_arena_release(&rows.memory);
    return rc;
}

/*
 * A course that no warm-up explains is no fast one: its shapes would follow the course where they
 * can, and leave the baseline where they can't. What a thermometer shows is not sought again.
 */
int nrg_regress_seek_course(struct nrg_regress *r)
{
    double *shape_w = r->options.idle_shape_w;
    r->course_seen = -INFINITY;
    if (!nrg_regress_idle_may_walk(r) || !nrg_regress_sees_drift(r, MAX_ROWS))
        return 0;
    int rc = seek(r, false);
    if (rc || !isfinite(r->course_seen))
        return rc;
    for (size_t i = NRG_IDLE_FAST; i < NRG_IDLE_HEAT; i++)
        shape_w[i] = 0;
    r->course_seen = -INFINITY;
    return shape_w[NRG_IDLE_HEAT] > 0 ? 0 : seek(r, true);
}

/*
 * Watts that change with how fast the program gets on. A core of another kind (E instead of P), a
 * lower clock, a busy hyperthread beside: all that a thread does takes longer then, and a CPU
 * second of it draws less, by a half or more. No counter of the kernel's says so, but the calls do:
 * how long they take against others of their class, all of them together. A regression with one
 * power per class takes such watts for idle power that went its own way.
 *
 * The pace at a moment is z = (what the calls about it would take at their mean lengths) / (what
 * they took) - 1. The column is CPU time * z. In the mean of a class z is 0, since it counts
 * against that class's own calls, so a class's energy stays its power * its CPU time.
 *
 * Where it is other processes that slow it down (a hyperthread, memory), readings show only what
 * their CPU second draws beyond what the program's draws less meanwhile: as little as nothing, or
 * as the pace says. Then there is no column; half of that is taken to be theirs, and intervals have
 * both ends.
 *
 * Single calls scatter by themselves, and that is no pace: z is the mean over as many as it takes
 * for that to be a small part of how z varies, which the difference of every other call tells.
 * Where pace does not vary by itself there is no column. A call of several times the usual length
 * (the first step, which compiles) is something else, and has no pace.
 */
#include <errno.h>
#include <math.h>

#include "attribute/regress/internal.h"
#include "base/checked.h"

#define OUTLIER    3.0 /* times the usual length */
#define MOST_BINS  131072
#define LEAST_BINS 64        /* windows in a run */
#define LONGEST_S  1.0       /* window */
#define NOISE      0.02      /* of the variance of z that single calls make, at most */
#define LEAST_SD   0.02      /* of z */
#define CELL_NS    100000000 /* others' CPU time is known of about that */
#define BY_OTHERS  0.5       /* of how the pace varies: more, and it is they */

/* CPU time of calls in stretches of the run, and what it would be at their mean lengths; every
 * other call apart. */
struct bins {
    int64_t begin_ns, width_ns;
    size_t n;
    double *took[2], *usual[2], *others;
};

/* Per column of calls: log of the usual length, and the mean of those that are about that. */
struct usual {
    double *calls, *length_s;
    float *last; /* calls per second of the last slice: those of one call have the same */
    bool *half;
};

static double call_s(const struct nrg_regress_slice *s)
{
    return (double)s->rate / (double)s->calls_per_s;
}

static bool has_pace(const struct nrg_regress_slice *s)
{
    return s->calls_column && s->rate > 0 && s->calls_per_s > 0;
}

static void find_usual(const struct nrg_regress *r, struct usual *u, double *log_sum)
{
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < r->slices.n; i++) {
            const struct nrg_regress_slice *s = &r->slices.items[i];
            if (!has_pace(s))
                continue;
            double calls = (double)s->calls_per_s * (double)(s->end_ns - s->begin_ns) / 1e9;
            double off = log(call_s(s)) - (turn ? log_sum[s->calls_column] : 0);
            if (turn && fabs(off) > log(OUTLIER))
                continue;
            u->calls[s->calls_column] += calls;
            u->length_s[s->calls_column] += calls * (turn ? call_s(s) : off);
        }
        for (size_t i = 0; i < r->n_columns; i++) {
            double mean = u->calls[i] > 0 ? u->length_s[i] / u->calls[i] : 0;
            if (turn) {
                u->length_s[i] = mean;
                continue;
            }
            log_sum[i] = mean;
            u->calls[i] = u->length_s[i] = 0;
        }
    }
}

static void add_slice(const struct bins *b, const struct nrg_regress_slice *s, double *to,
                      double *to_usual, double usual)
{
    for (int64_t t = s->begin_ns > b->begin_ns ? s->begin_ns : b->begin_ns; t < s->end_ns;) {
        size_t i = (size_t)((t - b->begin_ns) / b->width_ns);
        int64_t end = b->begin_ns + (int64_t)(i + 1) * b->width_ns;
        end = end < s->end_ns ? end : s->end_ns;
        if (i >= b->n)
            return;
        double took_s = (double)s->rate * (double)(end - t) / 1e9;
        to[i] += took_s;
        if (to_usual)
            to_usual[i] += took_s * usual;
        t = end;
    }
}

/* All slices of a call are in one half. */
static size_t half_of(const struct usual *u, const struct nrg_regress_slice *s)
{
    if (s->calls_per_s != u->last[s->calls_column])
        u->half[s->calls_column] = !u->half[s->calls_column];
    u->last[s->calls_column] = s->calls_per_s;
    return u->half[s->calls_column];
}

static void fill_bins(const struct nrg_regress *r, const struct usual *u, struct bins *b)
{
    uint32_t others = r->column_of[r->options.others_class];
    for (size_t i = 0; i < r->slices.n; i++) {
        const struct nrg_regress_slice *s = &r->slices.items[i];
        if (others && s->column == others)
            add_slice(b, s, b->others, NULL, 0);
        if (!has_pace(s))
            continue;
        double usual = u->length_s[s->calls_column] / call_s(s);
        bool other = !(usual > 1 / OUTLIER && usual < OUTLIER);
        size_t half = half_of(u, s);
        add_slice(b, s, b->took[half], b->usual[half], other ? 1 : usual);
    }
}

/* Sums from one bin to another. */
struct window {
    double took[2], usual[2];
};

static void move(struct window *w, const struct bins *b, size_t i, double sign)
{
    for (size_t h = 0; h < 2; h++) {
        w->took[h] += sign * b->took[h][i];
        w->usual[h] += sign * b->usual[h][i];
    }
}

static double z_of(const struct window *w)
{
    double took = w->took[0] + w->took[1];
    return took > 0 ? (w->usual[0] + w->usual[1]) / took - 1 : 0;
}

/* How z varies over windows of so many bins, and how much of that single calls make. */
struct varies {
    double z2, noise2;
};

static struct varies look(const struct bins *b, size_t width)
{
    double z2 = 0, noise2 = 0, told_s = 0, all_s = 0;
    for (size_t from = 0; from + width <= b->n; from += width) {
        struct window w = {0};
        for (size_t i = from; i < from + width; i++)
            move(&w, b, i, 1);
        double took = w.took[0] + w.took[1];
        all_s += took;
        if (!(w.took[0] > 0) || !(w.took[1] > 0))
            continue;
        double part = w.took[0] / took;
        double off = w.usual[0] / w.took[0] - w.usual[1] / w.took[1], z = z_of(&w);
        noise2 += took * part * (1 - part) * off * off;
        z2 += took * z * z;
        told_s += took;
    }
    return told_s > all_s / 2 ? (struct varies){z2 / told_s, noise2 / told_s} : (struct varies){0};
}

/* The shortest window in which single calls do not matter; 0: none. */
static size_t choose_width(const struct bins *b)
{
    for (size_t width = 1;
         width * LEAST_BINS <= b->n && (double)width * (double)b->width_ns <= LONGEST_S * 1e9;
         width *= 2) {
        struct varies v = look(b, width);
        if (v.z2 - v.noise2 > LEAST_SD * LEAST_SD && v.noise2 < NOISE * v.z2)
            return width;
    }
    return 0;
}

/* The column up to each border of bins. */
static void add_up(const struct bins *b, size_t width, double *sum)
{
    struct window w = {0};
    size_t begin = 0, end = 0;
    for (size_t i = 0; i < b->n; i++) {
        size_t to = i + width / 2 + 1 < b->n ? i + width / 2 + 1 : b->n;
        for (; end < to; end++)
            move(&w, b, end, 1);
        for (; begin + width / 2 < i; begin++)
            move(&w, b, begin, -1);
        sum[i + 1] = sum[i] + (b->took[0][i] + b->took[1][i]) * z_of(&w);
    }
}

/*
 * Work that the program does less per CPU second of others, where it is these that slow it down; 0:
 * it is not. By least squares over cells.
 */
static double slowed_by_others(const struct bins *b, const double *sum)
{
    size_t width = (size_t)(CELL_NS / b->width_ns) + 1;
    double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
    for (size_t from = 0; from + width <= b->n; from += width) {
        double work = sum[from + width] - sum[from], others = 0;
        for (size_t i = from; i < from + width; i++)
            others += b->others[i];
        n++;
        x += others;
        y += work;
        xx += others * others;
        xy += others * work;
        yy += work * work;
    }
    xx -= n > 0 ? x * x / n : 0;
    xy -= n > 0 ? x * y / n : 0;
    yy -= n > 0 ? y * y / n : 0;
    return xy < 0 && xy * xy > BY_OTHERS * xx * yy ? -xy / xx : 0;
}

static int make_column(struct nrg_regress *r, struct nrg_arena *memory, struct bins *b)
{
    struct usual u = {.calls = nrg_arena_array(memory, r->n_columns, sizeof *u.calls),
                      .length_s = nrg_arena_array(memory, r->n_columns, sizeof *u.length_s),
                      .last = nrg_arena_array(memory, r->n_columns, sizeof *u.last),
                      .half = nrg_arena_array(memory, r->n_columns, sizeof *u.half)};
    double *logs = nrg_arena_array(memory, r->n_columns, sizeof *logs);
    for (size_t h = 0; h < 2; h++) {
        b->took[h] = nrg_arena_array(memory, b->n, sizeof(double));
        b->usual[h] = nrg_arena_array(memory, b->n, sizeof(double));
    }
    b->others = nrg_arena_array(memory, b->n, sizeof(double));
    if (memory->failed)
        return -ENOMEM;
    for (size_t i = 0; i < r->n_columns; i++)
        u.half[i] = i % 2;
    find_usual(r, &u, logs);
    fill_bins(r, &u, b);
    size_t width = choose_width(b);
    if (!width)
        return 0;
    r->pace.sum_s = nrg_arena_array(&r->memory, b->n + 1, sizeof(double));
    if (!r->pace.sum_s)
        return -ENOMEM;
    add_up(b, width, r->pace.sum_s);
    r->pace.begin_ns = b->begin_ns;
    r->pace.width_ns = b->width_ns;
    r->pace.n = b->n;
    r->pace.by_others = slowed_by_others(b, r->pace.sum_s);
    r->options.pace = r->pace.by_others > 0 ? NULL : &r->pace;
    return 0;
}

int nrg_regress_find_pace(struct nrg_regress *r)
{
    const struct nrg_regress_options *o = &r->options;
    double run_ns = (double)(o->end_ns - o->begin_ns);
    double row_ns = r->rows_expected ? run_ns / (double)r->rows_expected : run_ns;
    if (o->timeline->is_gauge || r->waits.used || r->ready_ns != INT64_MAX || !(run_ns > 0))
        return 0;
    struct bins b = {.begin_ns = o->begin_ns,
                     .width_ns = (int64_t)fmax(row_ns, run_ns / MOST_BINS) + 1};
    b.n = (size_t)((o->end_ns - o->begin_ns) / b.width_ns) + 1;
    struct nrg_arena memory = {0};
    int rc = make_column(r, &memory, &b);
    nrg_arena_release(&memory);
    return rc;
}

/* Up to a moment. */
static double pace_at(const struct nrg_run_pace *p, int64_t t_ns)
{
    double at = (double)(t_ns - p->begin_ns) / (double)p->width_ns;
    at = fmin(fmax(at, 0), (double)p->n);
    size_t i = (size_t)at < p->n ? (size_t)at : p->n - 1;
    return p->sum_s[i] + (at - (double)i) * (p->sum_s[i + 1] - p->sum_s[i]);
}

double nrg_pace_between(const struct nrg_run_pace *p, int64_t from_ns, int64_t to_ns)
{
    return pace_at(p, to_ns) - pace_at(p, from_ns);
}

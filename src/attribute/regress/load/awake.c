/*
 * What is drawn while threads wait inside of their calls. A baseline shows a machine that sleeps
 * deeply. A thread that waits for a moment leaves its CPU in a shallow sleep, with the package
 * awake around it; or it waits because another process has its CPU. So a row in which threads
 * waited draws more than idle power, and a regression without a term for that takes idle power to
 * be higher in all rows: for a program that never rests, waits are all that tells idle power from
 * its load. (Found with an independent simulator: 2 % of such waits, and steps were 31 % too low at
 * +-3 %, with idle power the same in the baselines before and after.)
 *
 * The column is the time that threads wait in the row. A class's part, in the mean of its CPU time,
 * is taken off as so much of its CPU time: over the run the column is 0 in each class, and a
 * class's energy is its power * its CPU time whatever the column's power is, what it drew in its
 * waits included. Whether idle power moved or waits draw something is judged in drift.c.
 *
 * Whose it is shows in the CPU time of others: who has the thread's CPU, or is asked by it and
 * answers, has more of it where threads wait more.
 */
#include <errno.h>
#include <math.h>

#include "attribute/regress/internal.h"
#include "base/mem.h"

#define LEAST_WAITS 1e-3 /* of the CPU time: less tells nothing */
#define BUSY        0.3  /* CPUs of others in a baseline: more, and it does not show idle power */
#define BIN_NS      100000000
#define LEAST_BINS  20
#define MOST_BINS   1000000
#define ERRORS      2   /* standard errors */
#define OFF         0.1 /* what is drawn in waits is not known better */

/* Time that threads wait and work, per column of a class. */
static void add_slices(const struct nrg_regress *r, double *wait_s, double *work_s)
{
    for (size_t i = 0; i < r->slices.n; i++) {
        const struct nrg_regress_slice *s = &r->slices.items[i];
        double length_s = (double)(s->end_ns - s->begin_ns) / 1e9;
        if (!s->calls_column)
            continue;
        wait_s[s->column] += length_s * nrg_slice_waits(&r->options, s);
        work_s[s->column] += length_s * (double)s->rate;
    }
}

/* CPU time of others, and time that threads wait, in stretches of a run. */
struct bins {
    int64_t begin_ns;
    size_t n;
    double *waits_s, *others_s;
};

static void add_to_bins(const struct bins *b, double *to_s, const struct nrg_regress_slice *s,
                        double rate)
{
    for (int64_t t = s->begin_ns > b->begin_ns ? s->begin_ns : b->begin_ns; t < s->end_ns;) {
        size_t i = (size_t)((t - b->begin_ns) / BIN_NS);
        int64_t end = b->begin_ns + (int64_t)(i + 1) * BIN_NS;
        end = end < s->end_ns ? end : s->end_ns;
        if (i >= b->n)
            return;
        to_s[i] += rate * (double)(end - t) / 1e9;
        t = end;
    }
}

static void fill_bins(const struct nrg_regress *r, const struct bins *b)
{
    uint32_t others = r->column_of[r->options.others_class];
    for (size_t i = 0; i < r->slices.n; i++) {
        const struct nrg_regress_slice *s = &r->slices.items[i];
        if (s->calls_column)
            add_to_bins(b, b->waits_s, s, nrg_slice_waits(&r->options, s));
        else if (others && s->column == others)
            add_to_bins(b, b->others_s, s, (double)s->rate);
    }
}

/* Least squares of others' CPU time over waits: the slope, and its standard error. */
static double slope_of(const struct bins *b, double *error)
{
    double n = (double)b->n, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
    for (size_t i = 0; i < b->n; i++) {
        x += b->waits_s[i] / n;
        y += b->others_s[i] / n;
    }
    for (size_t i = 0; i < b->n; i++) {
        double dx = b->waits_s[i] - x, dy = b->others_s[i] - y;
        xx += dx * dx;
        xy += dx * dy;
        yy += dy * dy;
    }
    *error = xx > 0 ? sqrt(fmax(yy - xy * xy / xx, 0) / (n - 2) / xx) : INFINITY;
    return xx > 0 ? xy / xx : 0;
}

/* Part of the waits in which others had what was drawn; at most as far as they used a CPU. Ticks
 * hide when those ran who used little: of these it may be nothing or all. */
static int find_taken(struct nrg_regress *r, double waits_s)
{
    double most = fmin(r->options.others_busy * r->energy_s / waits_s, 1), error = INFINITY;
    size_t n = (size_t)((r->options.end_ns - r->options.begin_ns) / BIN_NS);
    struct bins b = {.begin_ns = r->options.begin_ns, .n = n < MOST_BINS ? n : MOST_BINS};
    r->awake_taken = most / 2;
    r->awake_taken_off = (1.0 / 2 + OFF) * most;
    if (r->options.others_hidden || b.n < LEAST_BINS)
        return 0;
    struct nrg_arena memory = {0};
    b.waits_s = nrg_arena_array(&memory, b.n, sizeof *b.waits_s);
    b.others_s = nrg_arena_array(&memory, b.n, sizeof *b.others_s);
    if (!memory.failed) {
        fill_bins(r, &b);
        double taken = fmin(fmax(slope_of(&b, &error), 0), most);
        r->awake_taken_off = fmin(ERRORS * error + OFF * taken, most);
        if (isfinite(error))
            r->awake_taken = taken;
    }
    int rc = memory.failed ? -ENOMEM : 0;
    nrg_arena_release(&memory);
    return rc;
}

/* Watts of a CPU's mean second above idle: the most that waits can be expected to draw. */
static double most_w(const struct nrg_regress *r, double work_s)
{
    double active_j = r->energy_j - r->options.idle_w * r->energy_s;
    return work_s > 0 && active_j > 0 ? active_j / work_s : 0;
}

int nrg_regress_find_awake(struct nrg_regress *r)
{
    size_t n = NRG_REGRESS_COLUMNS(&r->options);
    double waits_s = 0, works_s = 0;
    if (r->options.has_gaps || !(r->options.idle_w > 0) || r->options.idle_busy > BUSY)
        return 0;
    double *wait_s = nrg_arena_array(&r->memory, n, sizeof *wait_s);
    double *work_s = nrg_arena_array(&r->memory, n, sizeof *work_s);
    if (r->memory.failed)
        return -ENOMEM;
    add_slices(r, wait_s, work_s);
    for (size_t i = 0; i < n; i++) {
        waits_s += wait_s[i];
        works_s += work_s[i];
        wait_s[i] = work_s[i] > 0 ? wait_s[i] / work_s[i] : 0;
    }
    r->awake_w = most_w(r, works_s);
    if (!(waits_s > LEAST_WAITS * works_s) || !(r->awake_w > 0))
        return 0;
    r->options.awake = wait_s;
    return find_taken(r, waits_s);
}

void nrg_rowgen_set_awake(struct nrg_rowgen *gen, const double *awake)
{
    double sum = gen->x[NRG_COLUMN_AWAKE];
    size_t n = gen->dense ? gen->n : gen->n_touched;
    for (size_t i = 0; i < n; i++) {
        size_t column = gen->dense ? i : gen->touched[i];
        if (column >= NRG_COLUMN_CLASSES)
            sum -= gen->x[column] * awake[column];
    }
    nrg_rowgen_set(gen, NRG_COLUMN_AWAKE, sum);
}

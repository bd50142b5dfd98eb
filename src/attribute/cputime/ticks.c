/*
 * How far off the busy time is of which a modelled energy is made (cputime.h): /proc/stat's.
 *
 * Up to any moment it is rounded down to ticks. What one cell has too much its neighbour then has
 * too little (rounding.c). Many kernels also sample: they ask some hundred times a second who is
 * running and charge all the time since, so that the error of each cell is its own and grows with
 * the root of their number. Which of the two it is shows in a difference that should be 0: of sums
 * over ten cells, rounding leaves next to nothing.
 *
 * The difference is that of the model's energy from a smooth law of a busy time that was recorded
 * in ns; or, where that was recorded in ticks, too, of busy and idle time from the time that the
 * CPUs had. Where neither is known, errors of cells count as if they were independent.
 */
#include <errno.h>
#include <math.h>

#include "attribute/cputime/cputime.h"
#include "energy/recorder_use.h"

#define TICK_S2  (NRG_CPU_TICK_S * NRG_CPU_TICK_S / 12) /* variance of one counter's rounding */
#define COUNTERS 2.0  /* of busy time that are rounded, each for itself: user and system */
#define LEAST    0.2  /* of them: what can't be seen */
#define ALL      4.0  /* with those of idle time */
#define BENT     0.68 /* the estimate: share = (1 + BENT) u - BENT u^2, u: busy CPUs */
#define EVEN     1e-4 /* of the product of squares */
#define BLOCK    10   /* cells */
#define FEW      10   /* blocks are too few to tell */
#define ALIKE    0.25 /* of what lasts: the model's energy is off its law by less */
#define SAMPLED  2.0  /* of one counter's rounding, that lasts in a cell: then the kernel samples */

/* Differences of cells, one after the other. */
struct series {
    double n, sum, square;          /* of cells */
    double blocks, b_sum, b_square; /* of sums over BLOCK cells */
    double block;                   /* the sum in hand */
    size_t in_block;
};

static void add_cell(struct series *s, double off)
{
    s->n++;
    s->sum += off;
    s->square += off * off;
    s->block += off;
    if (++s->in_block < BLOCK)
        return;
    s->blocks++;
    s->b_sum += s->block;
    s->b_square += s->block * s->block;
    s->block = 0;
    s->in_block = 0;
}

static double variance(double n, double sum, double square)
{
    return n > 1 ? fmax(0, (square - sum * sum / n) / (n - 1)) : INFINITY;
}

/* Of one cell, as far as it does not cancel in its neighbours. INFINITY: too little is known. */
static double lasting_s2(const struct series *s, double counters)
{
    if (s->blocks < FEW)
        return INFINITY;
    double rounded_s2 = 2 * counters * TICK_S2;
    return fmax(0, (variance(s->blocks, s->b_sum, s->b_square) - rounded_s2) / BLOCK);
}

static bool is_inside(const struct nrg_cells *c, size_t k)
{
    return k && k + 1 < c->n && !c->outside[k - 1] && !c->outside[k] && !c->outside[k + 1];
}

/* Busy time of a cell: of the machine or, where nobody else runs, of the workload. */
static double busy_of(const struct nrg_cells *c, const float *workload_s, size_t k)
{
    return !is_inside(c, k) ? 0 : workload_s ? (double)workload_s[k] : c->busy_s[k];
}

/* The model's energy from a law of busy time, line b + bend b^2, in seconds of busy time. */
static struct series from_law(const struct nrg_cells *c, const double *active_j,
                              const float *workload_s)
{
    struct series s = {0};
    double b2 = 0, b3 = 0, b4 = 0, jb = 0, jb2 = 0, sum_s = 0, n = 0;
    for (size_t k = 0; k < c->n; k++) {
        double b = busy_of(c, workload_s, k);
        b2 += b * b;
        b3 += b * b * b;
        b4 += b * b * b * b;
        jb += active_j[k] * b;
        jb2 += active_j[k] * b * b;
        sum_s += b;
        n += b > 0;
    }
    double det = b2 * b4 - b3 * b3;
    bool even = !(det > EVEN * b2 * b4); /* busy time hardly varies: a line is enough */
    double line = even ? jb / b2 : (jb * b4 - jb2 * b3) / det;
    double bend = even ? 0 : (b2 * jb2 - b3 * jb) / det;
    double slope = line + 2 * bend * sum_s / fmax(n, 1);
    for (size_t k = 0; slope > 0 && k < c->n; k++) {
        double b = busy_of(c, workload_s, k);
        if (b > 0)
            add_cell(&s, (active_j[k] - line * b - bend * b * b) / slope);
    }
    return s;
}

/* Busy and idle time, from the time that the CPUs had. */
static struct series from_idle(const struct nrg_cells *c, const struct nrg_timeline *idle,
                               double cpus)
{
    struct series s = {0};
    for (size_t k = 0; idle && k < c->n; k++) {
        double idle_s = nrg_timeline_between(idle, c->begin_ns[k], c->begin_ns[k + 1], NULL);
        if (is_inside(c, k))
            add_cell(&s, c->busy_s[k] + idle_s - cpus * nrg_cells_length_s(c, k));
    }
    return s;
}

/* Variances of what is rounded and of what lasts; INFINITY: not known. */
struct errors {
    double rounded_s2, lasting_s2;
};

/* Busy time was recorded in ns. */
static struct errors of_fine(const struct nrg_cells *c, const double *active_j)
{
    struct series s = from_law(c, active_j, NULL);
    double lasting = lasting_s2(&s, COUNTERS);
    double all = variance(s.n, s.sum, s.square);
    return (struct errors){isfinite(lasting) ? fmax(0, all - lasting) / 2 : INFINITY, lasting};
}

/* Busy time was recorded in ticks. */
static struct errors of_ticks(const struct nrg_cpu_time *t, struct nrg_engine *e,
                              const float *workload_s, const double *active_j)
{
    size_t idle = nrg_frame_find(&e->frame, "cpu.idle", NRG_SECONDS);
    const struct nrg_timeline *idle_s =
        t->cpus < (double)NRG_CPU_MANY ? nrg_frame_timeline(&e->frame, idle) : NULL;
    struct series rounded = from_law(&e->cells, active_j, workload_s);
    struct series lasting = from_idle(&e->cells, idle_s, t->cpus);
    if (idle_s)
        nrg_frame_drop(&e->frame, idle);
    return (struct errors){variance(rounded.n, rounded.sum, rounded.square) / 2,
                           lasting_s2(&lasting, ALL)};
}

/* The kernel samples, and the model's energy follows the ticks that were recorded, not others. */
static bool samples_alike(const struct nrg_engine *e, const double *active_j, double lasting)
{
    if (!e->cells.busy_s || !nrg_busy_samples(&e->frame) || !isfinite(lasting) ||
        !(lasting > SAMPLED * TICK_S2))
        return false;
    struct series s = from_law(&e->cells, active_j, NULL);
    return lasting_s2(&s, COUNTERS) < ALIKE * lasting;
}

static void set_errors(struct nrg_cpu_time *t, struct nrg_engine *e, const float *workload_s,
                       const double *active_j)
{
    size_t busy = nrg_frame_find(&e->frame, "cpu.busy", NRG_SECONDS);
    struct errors off = {INFINITY, INFINITY};
    if (e->cells.busy_s) {
        double step_s = e->frame.channels[busy].channel.resolution;
        off = step_s > 0 && step_s < NRG_CPU_TICK_S / 2 ? of_fine(&e->cells, active_j)
                                                        : of_ticks(t, e, workload_s, active_j);
    }
    double counters = fmin(fmax(off.rounded_s2 / TICK_S2, LEAST), COUNTERS);
    t->rounding_s2 = counters * TICK_S2;
    t->ends_s2 = COUNTERS * TICK_S2;
    t->lasting_s2 = isfinite(off.lasting_s2) ? off.lasting_s2 : 2 * COUNTERS * TICK_S2;
    t->price_by_ticks = samples_alike(e, active_j, off.lasting_s2);
}

/*
 * Of energy per busy second. The model's u is busy time / the time that its ticks say the CPUs had,
 * busy and idle, which has the error of busy time, too: price = (1 + BENT - BENT u) / that time,
 * to the first order, and to the second in the mean. That is taken off; it may be up to twice as
 * much, since the model's windows are longer where its ticks are few.
 */
static void set_price_error(const struct nrg_cpu_time *t, struct nrg_cpu_tick_cell *cell, double u)
{
    double bent = BENT * (1 - u) / (1 + BENT - BENT * u), cpus_s = t->cpus * cell->length_s;
    cell->slope = cell->lasts = u * (1 + bent);
    cell->excess = cell->bend = (1 + 2 * bent) * t->lasting_s2 / (cpus_s * cpus_s);
}

static void set_cell(const struct nrg_cpu_time *t, struct nrg_cpu_tick_cell *cell)
{
    double u = fmin(1, cell->busy_s / (cell->length_s * t->cpus));
    double mean = 1 + BENT - BENT * u; /* share / u */
    double off_s2 = 2 * t->rounding_s2 + t->lasting_s2;
    cell->slope = 1 - BENT * u / mean;
    cell->lasts = 1;
    if (t->price_by_ticks) {
        set_price_error(t, cell, u);
        return;
    }
    cell->bend = BENT * u / mean * off_s2 / (cell->busy_s * cell->busy_s);
}

int nrg_cpu_ticks_init(struct nrg_cpu_time *t, struct nrg_engine *e, const float *workload_s,
                       const double *active_j)
{
    const struct nrg_cells *c = &e->cells;
    t->cells = nrg_arena_array(&t->memory, c->n + 1, sizeof *t->cells);
    if (!t->cells)
        return -ENOMEM;
    t->n_cells = c->n;
    set_errors(t, e, workload_s, active_j);
    for (size_t k = 0; k < c->n; k++) {
        double busy_s = c->busy_s ? c->busy_s[k] : (double)workload_s[k];
        t->cells[k].busy_s = fmax(busy_s, NRG_CPU_TICK_S);
        t->cells[k].length_s = nrg_cells_length_s(c, k);
        set_cell(t, &t->cells[k]);
    }
    return 0;
}

/*
 * How many CPU seconds a place uses per second that it is open, found from all slots together.
 *
 * One slot does not tell which of its places used the CPU time, but places come in other mixtures
 * in other slots: CPU time of a slot = sum over its places (calls * mean length * rate + how much
 * longer these calls were * another rate) + time outside of spans * its rate. Calls and not just
 * time, because a call that waits is longer and uses no more. Over the run the second term is 0.
 * Where threads read their CPU times themselves, it is a curve instead of a line (shapes.c).
 * Solved by least squares, weighted by 1 / length, with rates that are expected to be anywhere
 * between nothing and all threads (a ridge towards the mean), so that places which the slots can't
 * tell apart stay where they would be without a fit.
 *
 * Errors: residuals of a stretch of time belong together (a program waits in bursts), so each of
 * `blocks` stretches is a doubt of its own, and so is what is expected of each rate. Doubts are
 * independent of each other. The bounds of bounds.c hold in any case; this makes them closer.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/cputime/cputime.h"
#include "base/linalg.h"
#include "base/nnls.h"
#include "base/stats.h"

#define MAX_PLACES 256  /* with a rate of their own; the rest has one together */
#define FEW_PLACES 64   /* whose longer calls are told apart: the cost goes with the square */
#define LEAST      1e-9 /* of a column's diagonal: how much is expected at least */
#define FEW_BLOCKS 10   /* are too few for an error */
#define WIDER      1.1  /* of threads with spans: their waits are not alike in all blocks */
#define FINER      0.3  /* of a cell */

struct fit {
    struct nrg_cpu_time *times;
    struct nrg_cpu_rates *rates;
    size_t kind, n_places, n;
    struct nrg_gram gram;
    struct nrg_arena memory; /* of what follows */
    double *x;               /* of a slot, per column */
    uint32_t *touched;
    double *open_s, *calls; /* per place */
    double *expected;       /* per column */
    double *factor;         /* Cholesky of the system, scaled by `unit` */
    double *unit;           /* per column */
    double limit;           /* of a rate */
    double confidence;
    double variance; /* of a residual, weighted */
    double inside_s, outside_s, inside_cpu_s, outside_cpu_s;
    double slots, width_s; /* of this kind: how many, and how long they are together */
};

static size_t outside_column(const struct fit *f)
{
    return f->n - 1;
}

static bool is_knot(const struct fit *f, size_t column)
{
    return column >= nrg_cpu_shape(f->rates, 0, 1) && column < outside_column(f);
}

/* Columns of a slot; f->x is to be cleared by those touched. */
static size_t fill_row(struct fit *f, size_t i)
{
    const struct nrg_cpu_time *t = f->times;
    size_t n = 0;
    const struct nrg_cpu_rates *r = f->rates;
    bool rest = false;
    for (size_t j = t->slots[i].first; j < nrg_cpu_slot_end(t, i); j++) {
        size_t column = r->column_of[t->entries[j].place];
        double open_s = (double)t->entries[j].open_s;
        if (column == r->n_own) {
            f->x[column] += open_s;
            rest = true;
            continue;
        }
        double x[2 + NRG_CPU_KNOTS];
        nrg_cpu_shapes(r, column, &t->entries[j], x);
        f->x[column] = x[0]; /* a slot has one entry of a place */
        f->touched[n++] = (uint32_t)column;
        for (size_t k = 0; k < r->n_shapes; k++)
            f->x[nrg_cpu_shape(r, column, k)] += x[1 + k];
        for (size_t k = 0; !r->shared && k < r->n_shapes; k++)
            f->touched[n++] = (uint32_t)nrg_cpu_shape(r, column, k);
    }
    for (size_t k = 0; r->shared && k < r->n_shapes; k++)
        f->touched[n++] = (uint32_t)nrg_cpu_shape(r, 0, k);
    if (rest)
        f->touched[n++] = (uint32_t)r->n_own;
    f->x[outside_column(f)] = nrg_cpu_outside_s(&t->slots[i]);
    f->touched[n++] = (uint32_t)outside_column(f);
    return n;
}

static void clear_row(struct fit *f, size_t n)
{
    for (size_t k = 0; k < n; k++)
        f->x[f->touched[k]] = 0;
}

static double weight_of(const struct nrg_cpu_slot *slot)
{
    return 1 / (double)slot->width_s;
}

static void add_slots(struct fit *f)
{
    const struct nrg_cpu_time *t = f->times;
    for (size_t i = 0; i < t->n_slots; i++) {
        const struct nrg_cpu_slot *slot = &t->slots[i];
        if (slot->kind != f->kind)
            continue;
        size_t n = fill_row(f, i);
        nrg_gram_add(&f->gram, f->x, f->touched, n, (double)slot->cpu_s, weight_of(slot));
        clear_row(f, n);
        double cpu_s = fmax(0, (double)slot->cpu_s), in_s = nrg_cpu_in_spans(t, slot);
        f->inside_s += (double)slot->open_s;
        f->outside_s += nrg_cpu_outside_s(slot);
        f->inside_cpu_s += in_s;
        f->outside_cpu_s += cpu_s - in_s;
        f->limit = fmax(f->limit, fmin((double)slot->threads, t->cpus));
    }
}

static void sum_places(struct fit *f)
{
    const struct nrg_cpu_time *t = f->times;
    for (size_t i = 0; i < t->n_slots; i++) {
        if (t->slots[i].kind != f->kind)
            continue;
        f->slots++;
        f->width_s += (double)t->slots[i].width_s;
        for (size_t j = t->slots[i].first; j < nrg_cpu_slot_end(t, i); j++) {
            f->open_s[t->entries[j].place] += (double)t->entries[j].open_s;
            f->calls[t->entries[j].place] += (double)t->entries[j].calls;
        }
    }
}

/* Where threads read their CPU times themselves, slots are far shorter than cells. */
static bool reads_itself(const struct fit *f)
{
    const struct nrg_cpu_time *t = f->times;
    double cells_s = 0;
    for (size_t i = 0; i < t->n_cells; i++)
        cells_s += t->cells[i].length_s;
    return f->kind == NRG_CPU_THREAD && f->slots > 0 && t->n_cells &&
           f->width_s / f->slots < FINER * cells_s / (double)t->n_cells;
}

static int choose_shapes(struct fit *f)
{
    if (reads_itself(f))
        return nrg_cpu_shapes_choose(f->times, f->rates, f->kind, f->slots);
    f->rates->n_shapes = f->rates->n_own <= FEW_PLACES ? 1 : 0;
    return 0;
}

/* The places with most open time have columns of their own. */
static int choose_places(struct fit *f)
{
    struct nrg_cpu_rates *r = f->rates;
    double *sorted = nrg_arena_array(&f->memory, f->n_places + 1, sizeof *sorted);
    f->open_s = nrg_arena_array(&f->memory, f->n_places + 1, sizeof *f->open_s);
    f->calls = nrg_arena_array(&f->memory, f->n_places + 1, sizeof *f->calls);
    r->column_of = nrg_arena_array(&f->times->memory, f->n_places + 1, sizeof *r->column_of);
    r->place_of = nrg_arena_array(&f->times->memory, MAX_PLACES, sizeof *r->place_of);
    r->call_s = nrg_arena_array(&f->times->memory, MAX_PLACES, sizeof *r->call_s);
    if (f->memory.failed || f->times->memory.failed)
        return -ENOMEM;
    sum_places(f);
    memcpy(sorted, f->open_s, f->n_places * sizeof *sorted);
    nrg_sort(sorted, f->n_places);
    double least_s = f->n_places > MAX_PLACES ? sorted[f->n_places - MAX_PLACES] : 0;
    for (uint32_t place = 0; place < f->n_places; place++) {
        bool own = f->calls[place] > 0 && f->open_s[place] >= least_s && r->n_own < MAX_PLACES;
        r->column_of[place] = own ? (uint32_t)r->n_own : UINT32_MAX;
        if (!own)
            continue;
        r->call_s[r->n_own] = f->open_s[place] / f->calls[place];
        r->place_of[r->n_own++] = place;
    }
    for (size_t place = 0; place < f->n_places; place++)
        if (r->column_of[place] == UINT32_MAX)
            r->column_of[place] = (uint32_t)r->n_own;
    int rc = choose_shapes(f);
    f->n = r->n_own + r->n_shapes * (r->shared ? 1 : r->n_own) + 2;
    return rc;
}

/* What a rate would be if the thread waited outside of its spans rather than inside. */
static void set_expected(struct fit *f)
{
    double inside = f->inside_s > 0 ? f->inside_cpu_s / f->inside_s : 0;
    double outside = f->outside_s > 1e-6 * f->inside_s ? f->outside_cpu_s / f->outside_s : 0;
    if (!(f->limit < (double)NRG_CPU_MANY))
        f->limit = fmax(1, 2 * inside);
    for (size_t c = 0; c < f->n; c++)
        f->expected[c] = is_knot(f, c)            ? 0
                         : c == outside_column(f) ? fmin(f->limit, outside)
                                                  : fmin(f->limit, inside);
}

/* Residuals of a solution that is not negative, where nothing is expected. */
static int set_variance(struct fit *f)
{
    double *free_rate = nrg_arena_array(&f->memory, f->n, sizeof *free_rate);
    if (f->memory.failed)
        return -ENOMEM;
    int rc = nrg_gram_nonnegative(&f->gram, NULL, 0, 0, NRG_RIDGE, free_rate);
    f->variance = nrg_gram_residual(&f->gram, free_rate) / (double)(f->gram.rows - f->n);
    return rc;
}

/* Of what is expected of a rate: it may be off by all that a rate can be. */
static double expected_precision(const struct fit *f, size_t column)
{
    double deviation = f->limit, diagonal = f->gram.a[nrg_packed(column, column)];
    return fmax(f->variance / (deviation * deviation), LEAST * fmax(diagonal, LEAST));
}

static void solve_scaled(const struct fit *f, double *v)
{
    for (size_t c = 0; c < f->n; c++)
        v[c] *= f->unit[c];
    nrg_gram_solve(f->factor, f->n, v, false);
    for (size_t c = 0; c < f->n; c++)
        v[c] *= f->unit[c];
}

static void solve_rates(struct fit *f)
{
    double *rate = f->rates->rate;
    for (size_t c = 0; c < f->n; c++) {
        double precision = expected_precision(f, c);
        f->unit[c] = 1 / sqrt(f->gram.a[nrg_packed(c, c)] + precision);
        rate[c] = f->gram.b[c] + precision * f->expected[c];
    }
    for (size_t c = 0; c < f->n; c++)
        for (size_t k = 0; k <= c; k++) {
            double sum = f->gram.a[nrg_packed(c, k)] + (c == k ? expected_precision(f, c) : 0);
            f->factor[nrg_packed(c, k)] = sum * f->unit[c] * f->unit[k];
        }
    nrg_gram_factor(f->factor, f->n, NULL, NULL, false);
    solve_scaled(f, rate);
    for (size_t c = 0; c < f->n; c++)
        rate[c] = fmin(f->limit, fmax(is_knot(f, c) ? -f->limit : 0, rate[c]));
}

/* How far each block's residuals, and what was expected, may have moved the rates. */
static void set_doubts(struct fit *f)
{
    const struct nrg_cpu_time *t = f->times;
    struct nrg_cpu_rates *r = f->rates;
    bool seen[NRG_CPU_BLOCKS] = {false};
    size_t blocks = 0;
    for (size_t i = 0; i < t->n_slots; i++) {
        const struct nrg_cpu_slot *slot = &t->slots[i];
        if (slot->kind != f->kind)
            continue;
        size_t n = fill_row(f, i);
        double off_s = (double)slot->cpu_s, *moved = r->moved + slot->block * f->n;
        for (size_t k = 0; k < n; k++)
            off_s -= f->x[f->touched[k]] * r->rate[f->touched[k]];
        for (size_t k = 0; k < n; k++)
            moved[f->touched[k]] += weight_of(slot) * off_s * f->x[f->touched[k]];
        clear_row(f, n);
        blocks += !seen[slot->block];
        seen[slot->block] = true;
    }
    double rows = (double)f->gram.rows, some = (double)blocks;
    double lost = sqrt(rows / (rows - (double)f->n) * some / fmax(some - 1, 1));
    for (size_t k = 0; k < NRG_CPU_BLOCKS * f->n; k++)
        r->moved[k] *= lost;
    /* What was expected may be off by all that a rate can be. */
    for (size_t c = 0; c < f->n; c++)
        r->moved[(NRG_CPU_BLOCKS + c) * f->n + c] = expected_precision(f, c) * f->limit;
    for (size_t d = 0; d < NRG_CPU_BLOCKS + f->n; d++)
        solve_scaled(f, r->moved + d * f->n);
    r->n_doubts = blocks < FEW_BLOCKS ? 0 : NRG_CPU_BLOCKS + f->n;
    double wider = f->kind == NRG_CPU_THREAD ? WIDER : 1;
    r->t = nrg_student_half(f->confidence, some - 1) * wider;
}

/* Joules of the columns, if their rates were 1. */
static void set_work(struct fit *f, size_t n_parts)
{
    const struct nrg_cpu_time *t = f->times;
    for (size_t i = 0; i < t->n_slots; i++) {
        size_t n = t->slots[i].kind == f->kind ? fill_row(f, i) : 0;
        for (size_t k = 0; k < n; k++)
            for (size_t p = 0; p < n_parts; p++)
                f->rates->work_j[f->touched[k] * n_parts + p] +=
                    f->x[f->touched[k]] * (double)t->price[i * n_parts + p];
        clear_row(f, n);
    }
}

static int allocate(struct fit *f, size_t n_parts)
{
    struct nrg_arena *kept = &f->times->memory;
    struct nrg_cpu_rates *r = f->rates;
    size_t n = f->n;
    f->x = nrg_arena_array(&f->memory, n, sizeof *f->x);
    f->touched = nrg_arena_array(&f->memory, n, sizeof *f->touched);
    f->expected = nrg_arena_array(&f->memory, n, sizeof *f->expected);
    f->unit = nrg_arena_array(&f->memory, n, sizeof *f->unit);
    f->factor = nrg_arena_array(&f->memory, n * (n + 1) / 2, sizeof *f->factor);
    r->rate = nrg_arena_array(kept, n, sizeof *r->rate);
    r->moved = nrg_arena_array(kept, (NRG_CPU_BLOCKS + n) * n, sizeof *r->moved);
    r->work_j = nrg_arena_array(kept, n * n_parts + 1, sizeof *r->work_j);
    return f->memory.failed || kept->failed ? -ENOMEM : nrg_gram_grow(&f->gram, n);
}

static int fit_kind(struct fit *f, size_t n_parts)
{
    int rc = choose_places(f);
    if (!rc)
        rc = allocate(f, n_parts);
    if (rc)
        return rc;
    add_slots(f);
    if (f->gram.rows < 2 * f->n + FEW_BLOCKS) /* too few slots to tell */
        return 0;
    set_expected(f);
    rc = set_variance(f);
    if (rc)
        return rc;
    solve_rates(f);
    set_doubts(f);
    set_work(f, n_parts);
    f->rates->n = f->n;
    return 0;
}

int nrg_cpu_rates_fit(struct nrg_cpu_time *times, size_t n_places, size_t n_parts,
                      double confidence)
{
    int rc = 0;
    for (size_t kind = 0; !rc && kind < NRG_CPU_KINDS; kind++) {
        struct fit f = {.times = times,
                        .rates = &times->rates[kind],
                        .kind = kind,
                        .n_places = n_places,
                        .confidence = confidence};
        rc = fit_kind(&f, n_parts);
        nrg_gram_release(&f.gram);
        nrg_arena_release(&f.memory);
    }
    return rc;
}

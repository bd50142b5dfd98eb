/*
 * What a clockwork leaves: see clockwork.h. Let a reading show so much more than was expected by
 * then, and so much have been used since its update: the sum of both is what the counter was off by
 * at that update, and what a row leaves is the difference of two of these. Only the second changes
 * with the clockwork, and is looked up by age.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/regress/updates/clockwork.h"

#define CELLS 40   /* of age */
#define REACH 1.25 /* of an update: no reading is older */

/* Energy per second of a slice, by the powers that were found. */
static double slice_w(const struct nrg_regress *r, const struct nrg_regress_slice *s)
{
    double w = (double)s->rate * r->prior[s->column];
    if (r->options.calls && s->calls_column)
        w += ((double)s->calls_per_s * r->call_s[s->calls_column] - (double)s->rate) *
             r->prior[s->calls_column];
    return w;
}

/* Adds the slice's energy to the cells of age that it lies in; ages from `young` to `old`. */
static void add_slice(float *cells, double cell_s, double young, double old, double w)
{
    double from = fmax(young, 0) / cell_s, to = fmin(old / cell_s, CELLS);
    size_t k = (size_t)from, whole = (size_t)fmax(to, 0);
    if ((double)k < from && (double)k < to) {
        cells[k + 1] += (float)((fmin((double)(k + 1), to) - from) * cell_s * w);
        k++;
    }
    for (float cell_j = (float)(cell_s * w); k < whole; k++)
        cells[k + 1] += cell_j;
    if ((double)k < to)
        cells[k + 1] += (float)((to - (double)k) * cell_s * w);
}

/* What a reading at t_ns would have less if it were older: at the borders of the cells. */
static int take_used(struct nrg_saw *s, struct nrg_walker *walker, int64_t t_ns, float *cells)
{
    const struct nrg_regress *r = s->r;
    double cell_s = REACH * s->update_s / CELLS, at = nrg_row_position(&r->options, t_ns);
    double idle_w = r->prior[NRG_COLUMN_IDLE] + r->prior[NRG_COLUMN_IDLE_OFF];
    double shapes[NRG_IDLE_SHAPES];
    nrg_idle_shapes(&r->options.course, t_ns, shapes);
    for (size_t i = 0; i < NRG_IDLE_SHAPES; i++)
        idle_w += r->prior[NRG_COLUMN_IDLE_SHAPES + i] * shapes[i];
    double drift =
        r->prior[NRG_COLUMN_DRIFT] * at + r->prior[NRG_COLUMN_DRIFT2] * (at * at - 1.0 / 3);
    int64_t oldest_ns = t_ns - (int64_t)(REACH * s->update_s * 1e9);
    int rc = nrg_walker_open(walker, &r->slices, t_ns);
    for (size_t i = 0; !rc && i < walker->n_open;) {
        const struct nrg_regress_slice *slice = &walker->open[i];
        if (slice->end_ns <= oldest_ns) {
            walker->open[i] = walker->open[--walker->n_open];
            continue;
        }
        add_slice(cells, cell_s, (double)(t_ns - slice->end_ns) / 1e9,
                  (double)(t_ns - slice->begin_ns) / 1e9, slice_w(r, slice));
        i++;
    }
    for (size_t k = 1; k <= CELLS; k++)
        cells[k] = cells[k - 1] + (cells[k] + (float)(cell_s * idle_w)) / (float)(1 - drift);
    return rc;
}

/* Energy that was used in the last age_s before a reading. */
static inline double used_j(const struct nrg_saw *s, size_t i, double per_cell, double age_s)
{
    const float *cells = s->used_j + i * (CELLS + 1);
    double x = age_s * per_cell;
    size_t k = x < 1 ? 0 : x < CELLS - 1 ? (size_t)x : CELLS - 1;
    return (double)cells[k] + (x - (double)k) * (double)(cells[k + 1] - cells[k]);
}

double nrg_saw_power_w(const struct nrg_saw *s, size_t i, double age_s)
{
    double per_cell = CELLS / (REACH * s->update_s), half_s = 0.5 / per_cell;
    return (used_j(s, i, per_cell, age_s + half_s) - used_j(s, i, per_cell, age_s - half_s)) *
           per_cell;
}

static int take_ages(struct nrg_saw *s)
{
    struct nrg_walker walker = {0};
    double per_cell = CELLS / (REACH * s->update_s);
    int rc = 0;
    memset(s->used_j, 0, s->n_read * (CELLS + 1) * sizeof *s->used_j);
    for (size_t i = 0; !rc && i < s->n; i++) {
        rc = take_used(s, &walker, s->read_ns[i], s->used_j + i * (CELLS + 1));
        s->readings[i].power_w = fmax(used_j(s, i, per_cell, s->update_s) / s->update_s, 0);
    }
    free(walker.open);
    return rc;
}

int nrg_saw_take_readings(struct nrg_saw *s)
{
    const struct nrg_regress *r = s->r;
    const struct nrg_kernel prompt = {.kind = NRG_KERNEL_LEVEL};
    struct nrg_rowgen gen;
    double unsure = nrg_regress_unsure(r);
    int rc = 0;
    if (!s->used_j)
        s->used_j = nrg_arena_array(&s->memory, s->n_read * (CELLS + 1), sizeof *s->used_j);
    if (!s->used_j)
        return -ENOMEM;
    nrg_rowgen_init(&gen, &r->options, &prompt, NULL, nrg_regress_sees_drift(r, r->rows_expected));
    gen.stride = s->stride;
    gen.block = NRG_SAW_BLOCK;
    s->n = 0;
    while ((rc = nrg_rowgen_next(&gen, &r->slices, r->ready_ns, r->n_columns)) > 0) {
        for (; s->n < s->n_read && s->read_ns[s->n] < gen.seen.to_ns; s->n++)
            s->readings[s->n].joined = false;
        if (s->n == s->n_read)
            break;
        struct nrg_saw_reading *now = &s->readings[s->n];
        /* A row that others hide more than ages do, or an edge of the thread's work, says nothing
         * of these. */
        bool told = !gen.seen.edge && unsure * (gen.cut_begin2 + gen.cut_end2) < 1;
        now->joined = told && s->n && s->read_ns[s->n - 1] == gen.seen.from_ns;
        double before_j = now->joined && now[-1].joined ? now[-1].beyond_j : 0;
        if (now->joined)
            now[-1].beyond_j = before_j;
        now->beyond_j = before_j + gen.y - nrg_regress_expected(r, &gen);
        s->n++;
    }
    nrg_rowgen_release(&gen);
    return rc < 0 ? rc : take_ages(s);
}

/* What rows leave that end with some of the readings. */
struct left {
    double last_j, sum_j2, rows;
    bool started;
};

static inline void add_left(struct left *left, double off_j)
{
    double e = off_j - left->last_j;
    if (left->started) {
        left->sum_j2 += e * e;
        left->rows++;
    }
    left->last_j = off_j;
    left->started = true;
}

double nrg_saw_left(const struct nrg_saw *s, const struct nrg_clockwork *c, size_t n)
{
    struct left all = {0}, apart = {0};
    double per_cell = CELLS / (REACH * s->update_s), close = 0;
    n = n < s->n ? n : s->n;
    for (size_t i = 0; i < n; i++) {
        const struct nrg_saw_reading *now = &s->readings[i];
        double part = nrg_clockwork_part(c, now->t_s);
        double off_j = now->beyond_j + used_j(s, i, per_cell, c->age_s * part + c->delay_s);
        if (!now->joined)
            all.started = apart.started = false;
        add_left(&all, off_j);
        if (nrg_clockwork_is_close(part))
            close++;
        else
            add_left(&apart, off_j);
    }
    const struct left *used = close > NRG_SAW_MOST_CLOSE * (double)n ? &all : &apart;
    return used->rows > 0 ? used->sum_j2 / used->rows : INFINITY;
}

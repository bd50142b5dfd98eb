/*
 * See design.h. Slices that a row may see are kept open, in step with the rows, whose sights begin
 * and end in order: so a walk costs what rows see, whatever the length of the run.
 */
#include "attribute/model/design.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A walk over slices in step with the rows. */
struct walk {
    const struct nrg_facts *facts;
    const struct nrg_sensor *sensor;
    struct nrg_design *design;
    const double *power_w;
    size_t next;    /* slice */
    uint32_t *open; /* slices that rows may still see */
    size_t n_open, cap_open;
    struct nrg_row_cells row;
    struct nrg_arena memory;
};

static void place_columns(struct nrg_design *d, const struct nrg_facts *f)
{
    for (size_t b = 0; b < NRG_BLOCKS; b++)
        d->first[b + 1] = d->first[b] + nrg_model_blocks[b]->columns(f);
    d->k = d->first[NRG_BLOCKS];
}

static int begin_walk(struct walk *w)
{
    size_t k = w->design->k;
    w->row.x = nrg_arena_array(&w->memory, k + 1, sizeof *w->row.x);
    w->row.touched = nrg_arena_array(&w->memory, k + 1, sizeof *w->row.touched);
    w->row.mark = nrg_arena_array(&w->memory, k + 1, sizeof *w->row.mark);
    return w->memory.failed ? -ENOMEM : 0;
}

/* Opens what begins before `end_s`, and closes what ended by `begin_s`. */
static int move_on(struct walk *w, double begin_s, double end_s)
{
    const struct nrg_facts *f = w->facts;
    size_t left = 0;
    for (size_t i = 0; i < w->n_open; i++)
        if (f->slices[w->open[i]].end_s > begin_s)
            w->open[left++] = w->open[i];
    w->n_open = left;
    for (; w->next < f->n_slices && f->slices[w->next].begin_s < end_s; w->next++) {
        uint32_t number = (uint32_t)w->next;
        if (f->slices[number].end_s <= begin_s)
            continue;
        int rc = nrg_append(&w->open, &w->n_open, &w->cap_open, &number, sizeof number);
        if (rc)
            return rc;
    }
    return 0;
}

static double slice_w(const struct walk *w, const struct nrg_fact_slice *s)
{
    return w->power_w[s->class_] * (double)s->rate;
}

/* What the call that a moment cuts may have used more on one side of it than on the other. */
static double cut2(const struct walk *w, double at_s)
{
    double sum = 0;
    for (size_t i = 0; i < w->n_open; i++) {
        const struct nrg_fact_slice *s = &w->facts->slices[w->open[i]];
        double p = slice_w(w, s);
        if (s->begin_s < at_s && s->end_s > at_s && s->class_ < w->facts->spans)
            sum += p * p * (at_s - s->begin_s) * (s->end_s - at_s);
    }
    return sum;
}

/* Power at a moment, for the age of a reading: never less than a twentieth of the mean. */
static double power_at(const struct walk *w, double at_s)
{
    double sum = isnan(w->facts->idle_w) ? 0 : w->facts->idle_w;
    for (size_t i = 0; i < w->n_open; i++) {
        const struct nrg_fact_slice *s = &w->facts->slices[w->open[i]];
        if (s->begin_s <= at_s && s->end_s > at_s)
            sum += slice_w(w, s);
    }
    return fmax(sum, 0.05 * w->facts->mean_w);
}

static void see_slices(struct walk *w, const struct nrg_sight *sight, struct nrg_row_noise *noise)
{
    const struct nrg_facts *f = w->facts;
    for (size_t i = 0; i < w->n_open; i++) {
        const struct nrg_fact_slice *s = &f->slices[w->open[i]];
        struct nrg_model_seen seen = {.weight_s = nrg_sight_weight(sight, s->begin_s, s->end_s)};
        if (!(seen.weight_s > 0))
            continue;
        seen.middle_s = (fmax(s->begin_s, sight->begin_s) + fmin(s->end_s, sight->end_s)) / 2;
        for (size_t b = 0; b < NRG_BLOCKS; b++)
            if (nrg_model_blocks[b]->slice && w->design->first[b + 1] > w->design->first[b])
                nrg_model_blocks[b]->slice(f, w->design->first[b], s, seen, &w->row);
        double energy = slice_w(w, s) * seen.weight_s;
        if (s->class_ < f->spans)
            noise->calls2 += energy * energy;
        noise->others2 += (double)s->unsure2 * seen.weight_s * seen.weight_s;
    }
}

static void see_time(struct walk *w, const struct nrg_sight *sight)
{
    struct nrg_model_seen seen = {.weight_s = nrg_sight_weight(sight, sight->begin_s, sight->end_s),
                                  .middle_s = (sight->begin_s + sight->end_s) / 2};
    if (sight->memory_s > 0)
        seen.middle_s = sight->end_s - sight->memory_s;
    for (size_t b = 0; b < NRG_BLOCKS; b++)
        if (nrg_model_blocks[b]->time && w->design->first[b + 1] > w->design->first[b])
            nrg_model_blocks[b]->time(w->facts, w->design->first[b], seen, &w->row);
}

static int keep_row(struct walk *w, double y, double seconds, const struct nrg_row_noise *noise)
{
    struct nrg_design *d = w->design;
    int rc = 0;
    for (size_t i = 0; i < w->row.n_touched && !rc; i++) {
        uint32_t column = w->row.touched[i];
        struct nrg_design_cell cell = {column, w->row.x[column]};
        w->row.x[column] = 0;
        w->row.mark[column] = false;
        rc = nrg_append(&d->cells, &d->n_cells, &d->cap_cells, &cell, sizeof cell);
    }
    w->row.n_touched = 0;
    d->y[d->n] = y;
    d->seconds[d->n] = seconds;
    d->noise[d->n++] = *noise;
    d->start[d->n] = d->n_cells;
    return rc;
}

static double value_of(const struct nrg_facts *f, size_t i)
{
    return f->is_gauge ? f->value[i] : f->value[i + 1] - f->value[i];
}

static int make_row(struct walk *w, size_t i, bool after_gap)
{
    const struct nrg_facts *f = w->facts;
    struct nrg_sight sight = nrg_sensor_sight(w->sensor, f, i);
    struct nrg_row_noise noise = {.joined = !f->is_gauge && !after_gap};
    int rc = move_on(w, sight.begin_s, sight.end_s);
    if (rc)
        return rc;
    double seconds = nrg_sight_weight(&sight, sight.begin_s, sight.end_s);
    see_slices(w, &sight, &noise);
    see_time(w, &sight);
    if (!f->is_gauge) {
        double age = power_at(w, sight.end_s) * f->update_s;
        noise.age2 = age * age / 12;
        noise.cut2 = cut2(w, sight.end_s);
    }
    double white = f->mean_w * (f->is_gauge ? 1 : seconds);
    noise.white2 = white * white;
    /* Idle power that is known is taken off: its column is what there is more. */
    double idle = isnan(f->idle_w) ? 0 : f->idle_w;
    return keep_row(w, value_of(f, i) - idle * seconds, seconds, &noise);
}

static int make_room(struct nrg_design *d, size_t n)
{
    d->start = nrg_calloc(n + 2, sizeof *d->start);
    d->y = nrg_calloc(n + 1, sizeof *d->y);
    d->seconds = nrg_calloc(n + 1, sizeof *d->seconds);
    d->noise = nrg_calloc(n + 1, sizeof *d->noise);
    return d->start && d->y && d->seconds && d->noise ? 0 : -ENOMEM;
}

int nrg_design_make(struct nrg_design *d, const struct nrg_facts *f,
                    const struct nrg_sensor *sensor, const double *power_w)
{
    struct walk w = {.facts = f, .sensor = sensor, .design = d, .power_w = power_w};
    *d = (struct nrg_design){0};
    d->rounding2 = f->step * f->step / (f->is_gauge ? 12 : 6);
    place_columns(d, f);
    int rc = make_room(d, f->n);
    if (!rc)
        rc = begin_walk(&w);
    bool after_gap = true;
    for (size_t i = 0; !rc && i + !f->is_gauge < f->n; i++) {
        bool gap = !f->is_gauge && f->gap[i];
        if (!gap)
            rc = make_row(&w, i, after_gap);
        after_gap = gap;
    }
    free(w.open);
    nrg_arena_release(&w.memory);
    if (rc)
        nrg_design_release(d);
    return rc;
}

void nrg_design_release(struct nrg_design *d)
{
    free(d->start);
    free(d->y);
    free(d->seconds);
    free(d->cells);
    free(d->noise);
    for (size_t i = 0; i < d->n_extra; i++)
        free(d->extra[i]);
    *d = (struct nrg_design){0};
}

void nrg_design_predict(const struct nrg_design *d, const double *mean, double *y)
{
    for (size_t i = 0; i < d->n; i++) {
        y[i] = 0;
        for (size_t c = d->start[i]; c < d->start[i + 1]; c++)
            y[i] += d->cells[c].x * mean[d->cells[c].column];
    }
}

/* Variance of a row's end. */
static double end2(const struct nrg_design *d, const struct nrg_row_noise *noise, const double *h)
{
    return d->rounding2 + h[NRG_NOISE_AGE] * noise->age2 + h[NRG_NOISE_CUT] * noise->cut2;
}

static bool is_counter(const struct nrg_design *d)
{
    return d->n && d->noise[d->n - 1].age2 > 0;
}

static double row2(const struct nrg_design *d, const double *h, double others_w, size_t i)
{
    const struct nrg_row_noise *noise = &d->noise[i], *before = i ? &d->noise[i - 1] : noise;
    double variance = h[NRG_NOISE_WHITE] * noise->white2 + h[NRG_NOISE_CALLS] * noise->calls2 +
                      others_w * others_w * noise->others2;
    if (d->stray && d->stray[i])
        variance += noise->white2;
    return variance + (is_counter(d) ? end2(d, noise, h) + end2(d, before, h) : d->rounding2);
}

double nrg_design_deviation(const struct nrg_design *d, const double h[NRG_NOISES], double others_w,
                            size_t i)
{
    return sqrt(row2(d, h, others_w, i));
}

int nrg_design_sum(const struct nrg_design *d, const double h[NRG_NOISES], double others_w,
                   struct nrg_model_sums *sums)
{
    double *x = nrg_calloc(d->k + d->n_extra + 1, sizeof *x);
    bool counter = is_counter(d);
    if (!x)
        return -ENOMEM;
    for (size_t i = 0; i < d->n; i++) {
        bool joined = counter && d->noise[i].joined && i;
        memset(x, 0, d->k * sizeof *x);
        for (size_t e = 0; e < d->n_extra; e++)
            x[d->k + e] = d->extra[e][i];
        for (size_t c = d->start[i]; c < d->start[i + 1]; c++)
            x[d->cells[c].column] = d->cells[c].x;
        nrg_model_sums_add(sums, x, d->y[i], row2(d, h, others_w, i),
                           joined ? -end2(d, &d->noise[i - 1], h) : 0);
    }
    free(x);
    return 0;
}

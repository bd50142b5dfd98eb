/* See left_over.h. Slices are added to the intervals that they reach into, in order of time. */
#include "attribute/left_over.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

#define NORMAL_QUARTILE 0.6745 /* a median of absolute values, of a deviation */

/* Of the differences of neighbours: a reading that is early or late is in both, and in one twice.
 */
#define SQUARES_OF_BORDERS 6
#define SQUARES_ALONE      2

static bool has_numbers(const struct nrg_engine *e)
{
    for (size_t i = 0; i < e->catalog.n_names; i++)
        if (!strcmp(e->catalog.names[i].kind, NRG_KIND_STEP))
            return true;
    return e->walk.rows != &e->walk.paths;
}

static int make_room(struct nrg_engine *e, struct nrg_part *part, const struct nrg_timeline *tl)
{
    struct nrg_timeline *own = nrg_arena_alloc(&e->memory, sizeof *own);
    if (!own)
        return -ENOMEM;
    *own = *tl;
    own->packed = NULL;
    own->is_gauge = false;
    own->own_gauge = NULL;
    own->t_ns = nrg_arena_array(&e->memory, tl->n + 1, sizeof *own->t_ns);
    own->sum_j = nrg_arena_array(&e->memory, tl->n + 1, sizeof *own->sum_j);
    own->gap = nrg_arena_array(&e->memory, tl->n + 1, sizeof *own->gap);
    part->updated = own;
    return e->memory.failed ? -ENOMEM : 0;
}

int nrg_left_over_keep(struct nrg_engine *e, struct nrg_part *part, const struct nrg_timeline *tl)
{
    if (!has_numbers(e) || tl == part->tl || !tl->n)
        return 0;
    if (!part->updated || part->updated->n != tl->n) {
        int rc = make_room(e, part, tl);
        if (rc)
            return rc;
    }
    double sum_j = 0;
    for (size_t i = 0; i < tl->n; i++) {
        struct nrg_reading_point point = nrg_point_at(tl, i);
        double s = i ? (double)(point.t_ns - part->updated->t_ns[i - 1]) * 1e-9 : 0;
        sum_j = tl->is_gauge ? sum_j + point.gauge * s : point.sum_j;
        part->updated->t_ns[i] = point.t_ns;
        part->updated->sum_j[i] = sum_j;
        part->updated->gap[i] = point.gap;
    }
    return 0;
}

/* With a lag, a gauge's values are not the means of their updates. */
static const struct nrg_timeline *timeline_of(const struct nrg_part *part)
{
    bool mean = part->updated && !(part->tl->is_gauge && part->lag_s > 0);
    return mean ? part->updated : part->tl;
}

/* When the sensor's intervals begin, and where the last one ends; NULL: only how many there are. */
static size_t list_begins(const struct nrg_part *part, int64_t *begin_ns)
{
    const struct nrg_timeline *tl = timeline_of(part);
    struct nrg_grid grid;
    size_t n = 0, at = 0;
    nrg_grid_init(&grid, tl, part->width_ns);
    for (size_t to; (to = nrg_grid_end_of(&grid, at)) < tl->n; at = to, n++)
        if (begin_ns)
            begin_ns[n] = nrg_point_ns(tl, at);
    if (begin_ns && tl->n)
        begin_ns[n] = nrg_point_ns(tl, at);
    return n;
}

static double class_w(const struct nrg_engine *e, const struct nrg_part *part, uint32_t class_)
{
    const struct nrg_regress_class *classes = part->regressed.classes;
    double w = classes[class_].power_w;
    if (isnan(w) && class_ >= e->aged_class)
        w = classes[e->class_of[0]].power_w;
    return isnan(w) ? 0 : w;
}

/* What the model has of a slice goes to its intervals; `first`: none before is reached any more. */
static void add_slice(struct nrg_left_over *l, size_t first, const struct nrg_slice *slice,
                      double w)
{
    for (size_t i = first; i < l->n && l->begin_ns[i] < slice->end_ns; i++) {
        int64_t from_ns = l->begin_ns[i] > slice->begin_ns ? l->begin_ns[i] : slice->begin_ns;
        int64_t to_ns = l->begin_ns[i + 1] < slice->end_ns ? l->begin_ns[i + 1] : slice->end_ns;
        if (to_ns > from_ns)
            l->model_j[i] += (float)(w * (double)(to_ns - from_ns) * 1e-9);
    }
}

static void add_model(const struct nrg_engine *e, const struct nrg_part *part,
                      const struct nrg_slice_log *log, struct nrg_left_over *l)
{
    struct nrg_slice_reader reader;
    size_t first = 0;
    nrg_slice_reader_init(&reader, log);
    while (nrg_slice_read(&reader)) {
        const struct nrg_slice *slice = &reader.slice;
        bool gap = slice->class_ >= e->aged_class || slice->class_ == e->class_of[0];
        bool rates = !slice->pool && e->cells.has_rates;
        /* As the regression had it: nrg_slicer_hand_over. */
        if (slice->pool != part->pool || (gap && !part->idle_known && !rates))
            continue;
        double w = slice->rate * class_w(e, part, slice->class_);
        if (slice->class_ == e->other_class) /* idle power has nothing of them: take_others */
            w += part->trickle_w - part->trickle_busy * class_w(e, part, slice->class_);
        while (first < l->n && l->begin_ns[first + 1] <= slice->begin_ns)
            first++;
        add_slice(l, first, slice, w);
    }
}

/* What the classes are to explain of an interval: energy above idle, as the regression had it. NAN:
 * the interval is not only of the run, or all of it is idle. */
static double above_idle_j(const struct nrg_engine *e, const struct nrg_part *part, size_t *cell,
                           const struct nrg_span_ns *in, double energy_j)
{
    const struct nrg_cells *c = &e->cells;
    bool is_own = part->taken_off && timeline_of(part) == part->updated;
    double sum_j = in->begin_ns < c->begin_ns[0] || in->end_ns > c->begin_ns[c->n] ? NAN : 0;
    double power_w = energy_j * 1e9 / fmax((double)(in->end_ns - in->begin_ns), 1);
    while (*cell + 1 < c->n && c->begin_ns[*cell + 1] <= in->begin_ns)
        ++*cell;
    for (size_t k = *cell; k < c->n && c->begin_ns[k] < in->end_ns; k++) {
        int64_t begin_ns = c->begin_ns[k] > in->begin_ns ? c->begin_ns[k] : in->begin_ns;
        int64_t end_ns = c->begin_ns[k + 1] < in->end_ns ? c->begin_ns[k + 1] : in->end_ns;
        struct nrg_taken_off off =
            part->taken_off ? part->taken_off[k] : (struct nrg_taken_off){0, 1};
        double mine = off.mine > 0 ? off.mine : 1; /* no span is open: no others' */
        double own_w = is_own ? power_w : (power_w - off.idle_w) * mine;
        double w = own_w - (part->idle_w[k] - off.idle_w);
        sum_j += c->outside[k] ? NAN : w * (double)(end_ns - begin_ns) * 1e-9;
    }
    return sum_j;
}

/* When in its cell others ran is not known: what they may have had too much before a moment of it,
 * as a square. */
static double others_j2(const struct nrg_engine *e, double scatter_j, size_t cell, int64_t t_ns)
{
    const struct nrg_cells *c = &e->cells;
    double width_ns = fmax((double)(c->begin_ns[cell + 1] - c->begin_ns[cell]), 1);
    double at = fmin(fmax((double)(t_ns - c->begin_ns[cell]) / width_ns, 0), 1);
    return at * (1 - at) * scatter_j * scatter_j;
}

static double others_scatter_j(const struct nrg_engine *e, const struct nrg_part *part)
{
    if (part->pool || !e->cells.other_s)
        return 0;
    double w = class_w(e, part, (uint32_t)e->other_class);
    return w * nrg_others_scatter_s(&e->cells, nrg_busy_tick_s(e));
}

/* How much of the model's energies all readings leave, by the regression, which knows what a sensor
 * shows. One that averages over several intervals shows less of what differs between them. */
static double left_part2(const struct nrg_part *part, double energy_j2, double model_j2)
{
    double rms = part->regressed.residual;
    double averages = (double)part->channel->channel.window_ns / (double)part->width_ns;
    if (part->regressed.lag_s > 0 || !(model_j2 > 0))
        return INFINITY;
    return rms * rms * energy_j2 / model_j2 * fmax(averages, 1);
}

/* Compares; differences of neighbours show how far single readings are off. */
static void compare(const struct nrg_engine *e, const struct nrg_part *part,
                    struct nrg_left_over *l, double *changes_j, size_t *n_changes)
{
    struct nrg_energy_cursor cursor;
    struct nrg_energy_at last;
    double last_j = NAN, phase_s = part->updated ? 0 : part->update_s;
    double scatter_j = others_scatter_j(e, part), energy_j2 = 0, model_j2 = 0;
    size_t cell = 0;
    nrg_energy_cursor_init(&cursor, timeline_of(part), l->begin_ns[0], part->lag_s);
    last = nrg_energy_cursor_at(&cursor, l->begin_ns[0]);
    for (size_t i = 0; i < l->n; i++) {
        double width_ns = (double)(l->begin_ns[i + 1] - l->begin_ns[i]);
        struct nrg_energy_at at = nrg_energy_cursor_at(&cursor, l->begin_ns[i + 1]);
        double energy_j = at.energy_j - last.energy_j, model_j = (double)l->model_j[i];
        const struct nrg_span_ns in = {l->begin_ns[i], l->begin_ns[i + 1]};
        double left_j = above_idle_j(e, part, &cell, &in, energy_j) - model_j;
        bool known = at.covered_ns - last.covered_ns >= width_ns - NRG_UNCOVERED_NS;
        double phase_j = width_ns > 0 ? energy_j / (width_ns * 1e-9) * phase_s : 0;
        last = at;
        l->border_j2[i] = (float)(phase_j * phase_j / 12 + part->edge_noise_j2 +
                                  others_j2(e, scatter_j, cell, l->begin_ns[i]));
        if (!known || isnan(left_j) || !(model_j > 0)) {
            last_j = NAN;
            continue;
        }
        l->left[i] = (float)fmax(left_j / model_j, -1);
        if (!isnan(last_j))
            changes_j[(*n_changes)++] = fabs(left_j - last_j);
        last_j = left_j;
        energy_j2 += energy_j * energy_j;
        model_j2 += model_j * model_j;
    }
    l->left_part2 = left_part2(part, energy_j2, model_j2);
}

static void set_noise(const struct nrg_part *part, struct nrg_left_over *l, double *changes_j,
                      size_t n)
{
    double change_j = n ? nrg_median_of_many(changes_j, n) / NORMAL_QUARTILE : 0;
    double border_j2 = change_j * change_j / SQUARES_OF_BORDERS;
    if (part->tl->is_gauge)
        l->alone_j2 = change_j * change_j / SQUARES_ALONE;
    for (size_t i = 0; i < l->n && !part->tl->is_gauge; i++)
        l->border_j2[i] = (float)fmax((double)l->border_j2[i], border_j2);
}

int nrg_left_over_make(struct nrg_engine *e, struct nrg_part *part, const struct nrg_slice_log *log)
{
    size_t n_changes = 0;
    if (!has_numbers(e) || part->regressed.window)
        return 0;
    struct nrg_left_over *l = nrg_arena_alloc(&e->memory, sizeof *l);
    if (!l)
        return -ENOMEM;
    *l = (struct nrg_left_over){.n = list_begins(part, NULL)};
    if (!l->n)
        return 0;
    double *changes_j = nrg_calloc(l->n + 1, sizeof *changes_j);
    l->begin_ns = nrg_arena_array(&e->memory, l->n + 1, sizeof *l->begin_ns);
    l->model_j = nrg_arena_array(&e->memory, l->n, sizeof *l->model_j);
    l->left = nrg_arena_array(&e->memory, l->n, sizeof *l->left);
    l->border_j2 = nrg_arena_array(&e->memory, l->n, sizeof *l->border_j2);
    bool failed = !changes_j || e->memory.failed;
    if (!failed) {
        list_begins(part, l->begin_ns);
        add_model(e, part, log, l);
        compare(e, part, l, changes_j, &n_changes);
        set_noise(part, l, changes_j, n_changes);
        part->left_over = l;
    }
    free(changes_j);
    return failed ? -ENOMEM : 0;
}

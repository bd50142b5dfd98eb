/*
 * The walk that gives every stretch of every span its energy (flow.h) and its error
 * (row_error.h). A self stretch is the time in which a span is the innermost one of its track; what
 * a span uses is its self stretches and those of the spans inside it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/buckets.h"
#include "attribute/distribute.h"
#include "attribute/measured.h"
#include "base/mem.h"

/* How the interval of an event was divided there; NULL: by time. */
static const struct nrg_division *division_at(struct nrg_walk_state *w, size_t p, int64_t t_ns)
{
    const struct nrg_part *part = &w->e->parts[p];
    size_t *next = &w->divisions[p];
    while (*next < part->n_divisions && part->divisions[*next].t_ns < t_ns)
        ++*next;
    bool here = *next < part->n_divisions && part->divisions[*next].t_ns == t_ns;
    return here ? &part->divisions[*next] : NULL;
}

/* When in its cell others ran is not known: what they may have had too much or too little before
 * the edge, as a square. */
static double others_j2(const struct nrg_walk_state *w, const struct nrg_part *part, int64_t t_ns)
{
    const struct nrg_cells *c = &w->e->cells;
    size_t k = w->flows.cell;
    if (!part->level)
        return 0;
    const struct nrg_others_level *level = &part->level[k];
    double width_ns = fmax((double)(c->begin_ns[k + 1] - c->begin_ns[k]), 1);
    double at = fmin(fmax((double)(t_ns - c->begin_ns[k]) / width_ns, 0), 1);
    double unsteady_j = (double)level->unsteady_j, edge_j = (double)level->edge_j;
    return at * (1 - at) * unsteady_j * unsteady_j + edge_j * edge_j;
}

/* Where in the sensor's interval the event lies, and what interpolation may get wrong there. */
static void find_edge(struct nrg_walk_state *w, size_t p, int64_t t_ns)
{
    struct nrg_grid *grid = &w->grids[p];
    const struct nrg_part *part = &w->e->parts[p];
    nrg_grid_at(grid, t_ns);
    w->now[p] = (struct nrg_edge){.interval = grid->index};
    if (!grid->index || grid->end_ns == INT64_MAX)
        return;
    double width_ns = (double)(grid->end_ns - grid->begin_ns);
    double at = (double)(t_ns - grid->begin_ns) / width_ns;
    /* Idle energy that is shared is not divided between processes, nor is its error. */
    bool share = w->e->options->idle == NRG_IDLE_SHARE;
    double own_w = grid->energy_j * 1e9 / width_ns, mine = share ? 1 : w->flows.parts[p].mine;
    double change_w = fmax(fabs(grid->after_w - grid->before_w),
                           fmax(fabs(own_w - grid->before_w), fabs(own_w - grid->after_w)));
    double phase_j = own_w * part->update_s;
    if (part->slack_s > 0) {
        size_t i = grid->from; /* within the grid's interval, the reading before */
        while (i + 1 < grid->tl->n && nrg_point_ns(grid->tl, i + 1) <= t_ns)
            i++;
        w->now[p].power_w = grid->tl->is_gauge ? (float)nrg_point_gauge(grid->tl, i) : 0;
    }
    double off_j = at * (1 - at) * width_ns * 1e-9 * change_w;
    double variance_j2 = phase_j * phase_j / 12 + part->edge_noise_j2;
    const struct nrg_division *divided = division_at(w, p, t_ns);
    if (divided) {
        off_j = divided->off_j;
        variance_j2 = divided->variance_j2;
    }
    w->now[p].off_j = (float)(off_j * mine);
    w->now[p].variance_j2 = (float)(variance_j2 * mine * mine + others_j2(w, part, t_ns));
}

/* The grid's interval, or the one before it. */
static struct nrg_interval interval_of(const struct nrg_walk_state *w, size_t p, bool last)
{
    const struct nrg_grid *grid = &w->grids[p];
    const struct nrg_flow *flow = &w->flows.parts[p];
    int64_t begin_ns = last ? grid->last_begin_ns : grid->begin_ns;
    int64_t end_ns = last ? grid->begin_ns : grid->end_ns;
    uint32_t index = grid->index - last;
    if (!index || end_ns == INT64_MAX)
        return (struct nrg_interval){0};
    double width_s = (double)(end_ns - begin_ns) * 1e-9;
    double energy_j = last ? grid->last_energy_j : grid->energy_j;
    double mine_j = fmax(0, energy_j - (flow->idle_w + flow->others_w) * width_s) * flow->mine;
    return (struct nrg_interval){index, width_s, mine_j};
}

static void add_error(struct nrg_walk_state *w, size_t p, struct nrg_row_error *error,
                      const struct nrg_edge *begin, const struct nrg_walk_stretch *stretch,
                      int64_t t_ns, double work_s)
{
    const struct nrg_edge *end = &w->now[p];
    double ceiling_w = w->e->parts[p].ceiling_w, ns = (double)(t_ns - stretch->inside_ns);
    if (!(ns > 0))
        return;
    double share = work_s * 1e9 / ns, weight = share;
    if (w->e->options->idle == NRG_IDLE_SHARE)
        weight = fmax(share, 1 / fmax(1, (double)w->flows.pool_open[w->e->parts[p].pool]));
    weight = fmin(weight, 1);
    error->variance_j2 += ((double)begin->variance_j2 + (double)end->variance_j2) * weight * weight;
    nrg_row_error_widen(error, w->e->parts[p].slack_s *
                                   fabs((double)end->power_w - (double)begin->power_w) * weight);
    if (end->interval - begin->interval > 1) { /* whole intervals in between */
        nrg_row_error_widen(error, ((double)begin->off_j + (double)end->off_j) * weight);
        return;
    }
    struct nrg_interval here = interval_of(w, p, false);
    if (end->interval != begin->interval) {
        struct nrg_interval last = interval_of(w, p, true);
        double part_s = share * (double)(w->grids[p].begin_ns - stretch->inside_ns) * 1e-9;
        nrg_row_error_part(error, &last, part_s, ceiling_w);
        work_s -= part_s;
    }
    nrg_row_error_part(error, &here, work_s, ceiling_w);
}

/* nearest and window: readings, not energy between instants. */
static void add_reading(struct nrg_walk_state *w, size_t p, size_t track, struct nrg_row_part *row,
                        int64_t t_ns)
{
    struct nrg_readings *readings = &w->readings[p];
    double s = (double)(t_ns - w->tracks[track].self.begin_ns) * 1e-9, power_w;
    if (w->e->parts[p].method == NRG_METHOD_NEAREST)
        power_w = nrg_readings_nearest(readings, t_ns);
    else
        power_w = nrg_readings_mean(readings, w->self_reading[track * w->e->n_parts + p],
                                    nrg_readings_upto(readings, t_ns));
    row->unknown += isnan(power_w) ? 1 : 0;
    row->energy_j += isnan(power_w) ? 0 : power_w * s;
    if (w->e->buckets && !isnan(power_w))
        nrg_buckets_spread(w->e->buckets, w->flows.tracks[track].row, p,
                           (struct nrg_span_ns){w->tracks[track].self.begin_ns, t_ns}, power_w * s);
}

static void begin_self(struct nrg_walk_state *w, size_t track, const struct nrg_open_span *span,
                       int64_t t_ns)
{
    struct nrg_flows *f = &w->flows;
    struct nrg_track_flow *tr = &f->tracks[track];
    size_t pool = w->e->cells.track_pool[track];
    tr->row = span->row;
    tr->path = span->path;
    tr->step = span->step;
    w->tracks[track].self = (struct nrg_walk_stretch){t_ns, nrg_flows_inside(f, t_ns), tr->work_s};
    w->tracks[track].path_ns = w->tracks[track].self.inside_ns;
    w->tracks[track].in_parts = false;
    if (w->slicer)
        w->slices[track] = w->tracks[track].self;
    for (size_t i = f->pool_from[pool]; i < f->pool_from[pool + 1]; i++) {
        size_t p = f->pool_parts[i], at = track * w->e->n_parts + p;
        w->self_edges[at] = w->now[p];
        if (w->e->parts[p].method == NRG_METHOD_WINDOW)
            w->self_reading[at] = nrg_readings_before(&w->readings[p], t_ns);
    }
}

/* What was of one path is a call of its class. */
static void settle_calls(struct nrg_walk_state *w, size_t track, int64_t t_ns)
{
    struct nrg_walk_track *spans = &w->tracks[track];
    nrg_slicer_settle(w->slicer, (uint32_t)track, spans->path_ns, t_ns,
                      !spans->in_parts && !w->e->given);
    spans->path_ns = t_ns;
}

static void end_self(struct nrg_walk_state *w, size_t track, int64_t t_ns)
{
    struct nrg_engine *e = w->e;
    struct nrg_flows *f = &w->flows;
    const struct nrg_track_flow *tr = &f->tracks[track];
    const struct nrg_walk_stretch *self = &w->tracks[track].self;
    size_t pool = e->cells.track_pool[track];
    int64_t end_ns = nrg_flows_inside(f, t_ns);
    if (w->slicer && !w->rc) {
        w->rc = nrg_hand_over(w, track, end_ns);
        settle_calls(w, track, end_ns);
    }
    e->rows[tr->row].stretches++;
    for (size_t i = f->pool_from[pool]; i < f->pool_from[pool + 1]; i++) {
        size_t p = f->pool_parts[i];
        struct nrg_row_part *row = &e->row_parts[(size_t)tr->row * e->n_parts + p];
        if (nrg_method_reads(e->parts[p].method))
            add_reading(w, p, track, row, t_ns);
        if (!nrg_method_bounds_rows(e->parts[p].method))
            add_error(w, p, &row->self, &w->self_edges[track * e->n_parts + p], self, end_ns,
                      tr->work_s - self->work_s);
    }
}

static int begin_span(struct nrg_walk_state *w, const struct nrg_span_walk_event *ev)
{
    if (w->e->measured && !ev->span->folded)
        nrg_measured_row(w->e->measured, ev->span->row, ev->span->path);
    if (!ev->span->folded)
        w->e->rows[ev->span->row].path = ev->span->path;
    struct nrg_walk_track *spans = &w->tracks[ev->track];
    size_t n_parts = w->e->n_parts;
    int rc = nrg_reserve(&spans->open, &spans->cap_open, ev->depth + 1, sizeof *spans->open);
    if (!rc)
        rc = nrg_reserve(&spans->edges, &spans->cap_edges, (ev->depth + 1) * n_parts + 1,
                         sizeof *spans->edges);
    if (rc)
        return rc;
    spans->open[ev->depth] = (struct nrg_walk_stretch){
        ev->t_ns, nrg_flows_inside(&w->flows, ev->t_ns), w->flows.tracks[ev->track].work_s};
    if (n_parts)
        memcpy(spans->edges + ev->depth * n_parts, w->now, n_parts * sizeof *w->now);
    return 0;
}

static void end_span(struct nrg_walk_state *w, const struct nrg_span_walk_event *ev)
{
    struct nrg_engine *e = w->e;
    const struct nrg_flows *f = &w->flows;
    const struct nrg_walk_track *spans = &w->tracks[ev->track];
    const struct nrg_walk_stretch *span = &spans->open[ev->depth];
    size_t pool = e->cells.track_pool[ev->track];
    double work_s = f->tracks[ev->track].work_s - span->work_s;
    bool seen = !e->clip || (ev->t_ns >= f->begin_ns && span->begin_ns <= f->end_ns);
    e->rows[ev->span->row].calls += seen && !ev->span->folded;
    if (e->buckets && seen && !ev->span->folded)
        nrg_buckets_call(e->buckets, f->edge, ev->span->row);
    for (size_t i = f->pool_from[pool]; i < f->pool_from[pool + 1]; i++) {
        size_t p = f->pool_parts[i];
        struct nrg_row_part *row = &e->row_parts[(size_t)ev->span->row * e->n_parts + p];
        if (!nrg_method_bounds_rows(e->parts[p].method))
            add_error(w, p, &row->whole, &spans->edges[ev->depth * e->n_parts + p], span,
                      nrg_flows_inside(f, ev->t_ns), work_s);
    }
}

/* Keeps a list of single steps, in which the walk counts them. */
static int note_step(struct nrg_walk_state *w, const struct nrg_span_walk_event *ev)
{
    struct nrg_single_steps *steps = w->flows.steps;
    const struct nrg_open_span *span = ev->span;
    int64_t t_ns = nrg_flows_inside(&w->flows, ev->t_ns);
    if (ev->what != NRG_WALK_OPEN) {
        struct nrg_single_step *step = &steps->items[span->step - 1];
        step->time_s = (double)(t_ns - step->begin_ns) * 1e-9;
        return 0;
    }
    if (w->e->measured)
        nrg_measured_step(w->e->measured, span->step, span->path);
    const struct nrg_span_name *name = nrg_span_catalog_name(&w->e->catalog, span->name);
    struct nrg_single_step step = {.name = name ? name->text : "",
                                   .detail = name ? name->detail : "",
                                   .number = span->number,
                                   .begin_ns = t_ns};
    return nrg_append(&steps->items, &steps->n, &steps->cap, &step, sizeof step);
}

/* A folded span is part of the stretch of the span around it, but a class of its own for a
 * regression, with calls; unless it has no path of its own either. */
static int change_path(struct nrg_walk_state *w, const struct nrg_span_walk_event *ev, int64_t t_ns)
{
    bool opens = ev->what == NRG_WALK_OPEN;
    int rc = w->slicer ? nrg_hand_over(w, ev->track, t_ns) : 0;
    struct nrg_walk_track *spans = &w->tracks[ev->track];
    bool apart = ev->span->path != ev->around->path;
    spans->in_parts |= !apart;
    if (w->slicer)
        settle_calls(w, ev->track, t_ns);
    spans->in_parts &= !apart;
    w->flows.tracks[ev->track].path = (opens ? ev->span : ev->around)->path;
    w->flows.tracks[ev->track].step = (opens ? ev->span : ev->around)->step;
    return rc || !opens ? rc : begin_span(w, ev);
}

/* A GPU's tracks share an instant, or add up: their slices are cut where one more or less is open,
 * so that each has one rate. */
static int cut_beside(struct nrg_walk_state *w, size_t track, int64_t t_ns, int64_t at_ns)
{
    const struct nrg_cells *c = &w->e->cells;
    struct nrg_flows *f = &w->flows;
    uint32_t pool = c->track_pool[track];
    size_t left = f->pool_open[pool] - f->tracks[track].open;
    int rc = 0;
    if (!w->slicer || !pool)
        return 0;
    for (size_t i = 0; !rc && left && i < c->n_tracks; i++) {
        if (i == track || c->track_pool[i] != pool || !f->tracks[i].open)
            continue;
        nrg_flows_settle_group(f, c->track_group[i], t_ns);
        nrg_flows_credit(f, i, at_ns);
        rc = nrg_hand_over(w, i, t_ns);
        left--;
    }
    return rc;
}

/* To the innermost span, or the top; of one run alone, what was counted in it. */
static int note_count(struct nrg_walk_state *w, const struct nrg_span_walk_event *ev)
{
    struct nrg_engine *e = w->e;
    if (e->clip && ev->t_ns != nrg_flows_inside(&w->flows, ev->t_ns))
        return 0;
    uint32_t row = ev->span ? ev->span->row : 0;
    return nrg_counts_add(&e->counts, &e->rows[row].counts, ev->name, (double)ev->amount);
}

static int on_event(void *arg, const struct nrg_span_walk_event *ev)
{
    struct nrg_walk_state *w = arg;
    struct nrg_engine *e = w->e;
    struct nrg_flows *f = &w->flows;
    int64_t t_ns = nrg_flows_inside(f, ev->t_ns), at_ns = e->clip ? t_ns : ev->t_ns;
    size_t pool = e->cells.track_pool[ev->track];
    nrg_flows_move_to(f, t_ns);
    if (ev->what == NRG_WALK_COUNT)
        return note_count(w, ev);
    nrg_flows_move_pool(f, pool, t_ns);
    nrg_flows_settle_group(f, e->cells.track_group[ev->track], t_ns);
    if (f->tracks[ev->track].open)
        nrg_flows_credit(f, ev->track, at_ns);
    e->rows[ev->span->row].flags |= ev->span->flags;
    if (f->steps && ev->span->is_step)
        w->rc = note_step(w, ev);
    if (ev->span->folded && ev->around && ev->around->row == ev->span->row)
        return change_path(w, ev, t_ns);
    for (size_t i = f->pool_from[pool]; i < f->pool_from[pool + 1]; i++)
        find_edge(w, f->pool_parts[i], t_ns);
    if (f->tracks[ev->track].open)
        end_self(w, ev->track, ev->t_ns);
    bool changes = !(ev->what == NRG_WALK_OPEN ? f->tracks[ev->track].open : ev->around != NULL);
    if (!w->rc && changes)
        w->rc = cut_beside(w, ev->track, t_ns, at_ns);
    if (w->rc)
        return w->rc;
    if (ev->what == NRG_WALK_OPEN) {
        if (w->slicer && !f->pool_open[pool])
            w->rc = nrg_hand_over_gap(w, (uint32_t)pool, t_ns);
        if (w->slicer && !w->rc && !f->tracks[ev->track].open)
            w->rc = nrg_hand_over_track_gap(w, ev->track, t_ns);
        if (!f->tracks[ev->track].open)
            nrg_flows_start_track(f, ev->track, at_ns);
        begin_self(w, ev->track, ev->span, ev->t_ns);
        return begin_span(w, ev);
    }
    end_span(w, ev);
    if (ev->around) {
        begin_self(w, ev->track, ev->around, ev->t_ns);
    } else {
        nrg_flows_stop_track(f, ev->track);
        w->gap_ns[pool] = w->track_gap_ns[ev->track] = w->gap_from_ns[ev->track] = t_ns;
        w->rest_from_ns[pool] = t_ns;
    }
    return 0;
}

static int init_walker(struct nrg_walk_state *w)
{
    struct nrg_engine *e = w->e;
    size_t n_parts = e->n_parts + 1, n_tracks = e->catalog.n_tracks + 1;
    int rc = 0;
    w->grids = nrg_arena_array(&w->memory, n_parts, sizeof *w->grids);
    w->divisions = nrg_arena_array(&w->memory, n_parts, sizeof *w->divisions);
    w->readings = nrg_arena_array(&w->memory, n_parts, sizeof *w->readings);
    w->now = nrg_arena_array(&w->memory, n_parts, sizeof *w->now);
    w->tracks = nrg_arena_array(&w->memory, n_tracks, sizeof *w->tracks);
    w->self_edges = nrg_arena_array(&w->memory, n_tracks * n_parts, sizeof *w->self_edges);
    w->self_reading = nrg_arena_array(&w->memory, n_tracks * n_parts, sizeof *w->self_reading);
    w->slices = nrg_arena_array(&w->memory, n_tracks, sizeof *w->slices);
    w->gap_ns = nrg_arena_array(&w->memory, e->cells.n_pools + 1, sizeof *w->gap_ns);
    w->rest_from_ns = nrg_arena_array(&w->memory, e->cells.n_pools + 1, sizeof *w->rest_from_ns);
    w->track_gap_ns = nrg_arena_array(&w->memory, n_tracks, sizeof *w->track_gap_ns);
    w->gap_from_ns = nrg_arena_array(&w->memory, n_tracks, sizeof *w->gap_from_ns);
    w->groups = nrg_arena_array(&w->memory, n_tracks, sizeof *w->groups);
    if (w->memory.failed)
        return -ENOMEM;
    for (size_t i = 0; i < e->cells.n_pools; i++) {
        w->gap_ns[i] = w->flows.begin_ns;
        w->rest_from_ns[i] = INT64_MIN;
    }
    for (size_t i = 0; i < e->catalog.n_tracks; i++)
        w->track_gap_ns[i] = w->gap_from_ns[i] = w->flows.begin_ns;
    if (w->slicer) {
        w->flows.border = nrg_hand_over_cell;
        w->flows.border_arg = w;
    }
    for (size_t p = 0; !rc && p < e->n_parts; p++) {
        nrg_grid_init(&w->grids[p], e->parts[p].tl, e->parts[p].width_ns);
        if (nrg_method_reads(e->parts[p].method))
            rc = nrg_readings_init(&w->readings[p], e->parts[p].tl);
    }
    return rc;
}

static void release_walker(struct nrg_walk_state *w)
{
    for (size_t p = 0; w->readings && p < w->e->n_parts; p++)
        nrg_readings_release(&w->readings[p]);
    for (size_t i = 0; w->tracks && i < w->e->catalog.n_tracks; i++) {
        free(w->tracks[i].open);
        free(w->tracks[i].edges);
    }
    nrg_arena_release(&w->memory);
}

/* Takes what the flows left over, and settles the errors of the last intervals. */
static void finish_walk(struct nrg_walk_state *w)
{
    struct nrg_engine *e = w->e;
    nrg_flows_finish(&w->flows);
    for (size_t p = 0; p < e->n_parts; p++) {
        struct nrg_attribution_domain *out = e->parts[p].out;
        const struct nrg_flow *flow = &w->flows.parts[p];
        /* The run's report corrects a lag that the driver states too, at the edges alone. */
        bool same = e->n_windows == 1 && !strcmp(out->lag_source, "driver");
        out->total_j = same ? e->parts[p].domain->energy_j : flow->total_j;
        out->unattributed_j = flow->unattributed_j;
        out->other_processes_j = isnan(e->parts[p].others_j) ? flow->other_j : e->parts[p].others_j;
        out->idle_j = e->options->idle == NRG_IDLE_APART ? flow->idle_j : 0;
        if (e->buckets)
            nrg_buckets_others(e, p, flow->other_j, flow->covered_ns * 1e-9);
    }
    for (size_t i = 0; i < e->walk.rows->n; i++)
        for (size_t p = 0; p < e->n_parts; p++) {
            struct nrg_row_part *row = &e->row_parts[i * e->n_parts + p];
            nrg_row_error_settle(&row->self, e->parts[p].ceiling_w);
            nrg_row_error_settle(&row->whole, e->parts[p].ceiling_w);
        }
}

/* Where energies of single steps go: NULL where a method does not give out energy as time goes by.
 */
static struct nrg_single_steps *steps_of(struct nrg_engine *e)
{
    struct nrg_rows_memory *memory = e->out->memory;
    for (size_t p = 0; p < e->n_parts; p++)
        if (nrg_method_reads(e->parts[p].method))
            return NULL;
    memory->steps.complete = true;
    return &memory->steps;
}

int nrg_distribute(struct nrg_engine *e, struct nrg_slicer *slicer)
{
    struct nrg_walk_state w = {.e = e, .slicer = slicer};
    int rc = nrg_flows_init(&w.flows, e);
    if (!rc)
        rc = init_walker(&w);
    if (!rc && !slicer)
        w.flows.steps = steps_of(e);
    if (!rc)
        rc = nrg_span_walk_run(&e->walk, w.flows.end_ns, on_event, &w);
    if (!rc)
        finish_walk(&w);
    rc = rc ? rc : w.rc;
    if (!rc && w.flows.steps)
        nrg_cputime_steps(e, w.flows.steps);
    release_walker(&w);
    nrg_flows_release(&w.flows);
    return rc;
}

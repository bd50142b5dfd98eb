/*
 * The walk that gives every stretch of every span its energy (flow.h) and its error
 * (row_error.h). A self stretch is the time in which a span is the innermost one of its track; what
 * a span uses is its self stretches and those of the spans inside it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/flow.h"
#include "energy/readings.h"
#include "attribute/slicer.h"
#include "base/mem.h"

struct stretch {
    int64_t begin_ns, inside_ns; /* inside_ns: within the windows */
    double work_s;               /* of the track when it began */
};

struct track_spans {
    struct stretch self;
    struct stretch *open;   /* per depth */
    struct nrg_edge *edges; /* [depth * n_parts + part] */
    size_t cap_open, cap_edges;
};

struct walker {
    struct nrg_engine *e;
    struct nrg_flows flows;
    struct nrg_grid *grids;        /* per part */
    struct nrg_readings *readings; /* per part */
    struct nrg_edge *now;          /* per part: the event that is being handled */
    struct track_spans *tracks;
    struct nrg_edge *self_edges; /* [track * n_parts + part] */
    size_t *self_reading;        /* same: the first reading of the self stretch */
    struct nrg_slicer *slicer;   /* NULL: nobody wants slices */
    struct stretch *slices;      /* per track: since the last one that was handed over */
    int64_t *gap_ns;             /* per pool: since when no track has a span open */
    int rc;
};

static int64_t inside(const struct nrg_flows *f, int64_t t_ns)
{
    return t_ns < f->begin_ns ? f->begin_ns : t_ns > f->end_ns ? f->end_ns : t_ns;
}

/* Where in the sensor's interval the event lies, and what interpolation may get wrong there. */
static void find_edge(struct walker *w, size_t p, int64_t t_ns)
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
        while (i + 1 < grid->tl->n && grid->tl->t_ns[i + 1] <= t_ns)
            i++;
        w->now[p].power_w = grid->tl->gauge ? (float)grid->tl->gauge[i] : 0;
    }
    w->now[p].off_j = (float)(at * (1 - at) * width_ns * 1e-9 * change_w * mine);
    w->now[p].variance_j2 = (float)((phase_j * phase_j / 12 + part->edge_noise_j2) * mine * mine);
}

/* The grid's interval, or the one before it. */
static struct nrg_interval interval_of(const struct walker *w, size_t p, bool last)
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
    return (struct nrg_interval){index, width_s,
                                 fmax(0, energy_j - flow->idle_w * width_s) * flow->mine};
}

static void add_error(struct walker *w, size_t p, struct nrg_row_error *error,
                      const struct nrg_edge *begin, const struct stretch *stretch, int64_t t_ns,
                      double work_s)
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
    double lag_j =
        w->e->parts[p].slack_s * fabs((double)end->power_w - (double)begin->power_w) * weight;
    error->below_j += lag_j;
    error->above_j += lag_j;
    if (end->interval - begin->interval > 1) {
        nrg_row_error_edges(error, begin, end, weight);
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
static void add_reading(struct walker *w, size_t p, size_t track, struct nrg_row_part *row,
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
}

/* What a track did since its last slice. */
static int hand_over(struct walker *w, size_t track, int64_t t_ns)
{
    const struct nrg_track_flow *tr = &w->flows.tracks[track];
    struct stretch *since = &w->slices[track];
    double s = (double)(t_ns - since->inside_ns) * 1e-9;
    struct nrg_slice slice = {since->inside_ns, t_ns, s > 0 ? (tr->work_s - since->work_s) / s : 0,
                              tr->path, w->e->cells.track_pool[track]};
    *since = (struct stretch){.inside_ns = t_ns, .work_s = tr->work_s};
    return nrg_slicer_add(w->slicer, &slice);
}

static int end_gap(struct walker *w, uint32_t pool, int64_t t_ns)
{
    struct nrg_slice slice = {w->gap_ns[pool], t_ns, 1, 0, pool};
    w->gap_ns[pool] = t_ns;
    return nrg_slicer_add(w->slicer, &slice);
}

static void on_border(void *arg, int64_t t_ns)
{
    struct walker *w = arg;
    const struct nrg_cells *cells = &w->e->cells;
    for (size_t i = 0; !w->rc && i < cells->n_tracks; i++)
        if (w->flows.tracks[i].open)
            w->rc = hand_over(w, i, t_ns);
    for (uint32_t pool = 0; !w->rc && pool < cells->n_pools; pool++)
        if (!w->flows.pool_open[pool])
            w->rc = end_gap(w, pool, t_ns);
    if (cells->outside[w->flows.cell])
        w->slicer->n = 0;
    if (!w->rc)
        w->rc = nrg_slicer_flush(w->slicer);
}

static void begin_self(struct walker *w, size_t track, const struct nrg_open_span *span,
                       int64_t t_ns)
{
    struct nrg_flows *f = &w->flows;
    struct nrg_track_flow *tr = &f->tracks[track];
    size_t pool = w->e->cells.track_pool[track];
    tr->row = span->row;
    tr->path = span->path;
    w->tracks[track].self = (struct stretch){t_ns, inside(f, t_ns), tr->work_s};
    if (w->slicer)
        w->slices[track] = w->tracks[track].self;
    for (size_t i = f->pool_from[pool]; i < f->pool_from[pool + 1]; i++) {
        size_t p = f->pool_parts[i], at = track * w->e->n_parts + p;
        w->self_edges[at] = w->now[p];
        if (w->e->parts[p].method == NRG_METHOD_WINDOW)
            w->self_reading[at] = nrg_readings_before(&w->readings[p], t_ns);
    }
}

static void end_self(struct walker *w, size_t track, int64_t t_ns)
{
    struct nrg_engine *e = w->e;
    struct nrg_flows *f = &w->flows;
    const struct nrg_track_flow *tr = &f->tracks[track];
    const struct stretch *self = &w->tracks[track].self;
    size_t pool = e->cells.track_pool[track];
    if (w->slicer && !w->rc)
        w->rc = hand_over(w, track, inside(f, t_ns));
    e->rows[tr->row].stretches++;
    for (size_t i = f->pool_from[pool]; i < f->pool_from[pool + 1]; i++) {
        size_t p = f->pool_parts[i];
        struct nrg_row_part *row = &e->row_parts[(size_t)tr->row * e->n_parts + p];
        if (nrg_method_reads(e->parts[p].method))
            add_reading(w, p, track, row, t_ns);
        if (e->parts[p].method != NRG_METHOD_REGRESS)
            add_error(w, p, &row->self, &w->self_edges[track * e->n_parts + p], self,
                      inside(f, t_ns), tr->work_s - self->work_s);
    }
}

static int begin_span(struct walker *w, const struct nrg_walk_event *ev)
{
    struct track_spans *spans = &w->tracks[ev->track];
    size_t n_parts = w->e->n_parts;
    int rc = nrg_reserve(&spans->open, &spans->cap_open, ev->depth + 1, sizeof *spans->open);
    if (!rc)
        rc = nrg_reserve(&spans->edges, &spans->cap_edges, (ev->depth + 1) * n_parts + 1,
                         sizeof *spans->edges);
    if (rc)
        return rc;
    spans->open[ev->depth] =
        (struct stretch){ev->t_ns, inside(&w->flows, ev->t_ns), w->flows.tracks[ev->track].work_s};
    if (n_parts)
        memcpy(spans->edges + ev->depth * n_parts, w->now, n_parts * sizeof *w->now);
    return 0;
}

static void end_span(struct walker *w, const struct nrg_walk_event *ev)
{
    struct nrg_engine *e = w->e;
    const struct nrg_flows *f = &w->flows;
    const struct track_spans *spans = &w->tracks[ev->track];
    const struct stretch *span = &spans->open[ev->depth];
    size_t pool = e->cells.track_pool[ev->track];
    double work_s = f->tracks[ev->track].work_s - span->work_s;
    bool seen = !e->clip || (ev->t_ns >= f->begin_ns && span->begin_ns <= f->end_ns);
    e->rows[ev->span->row].calls += seen && !ev->span->folded;
    for (size_t i = f->pool_from[pool]; i < f->pool_from[pool + 1]; i++) {
        size_t p = f->pool_parts[i];
        struct nrg_row_part *row = &e->row_parts[(size_t)ev->span->row * e->n_parts + p];
        if (e->parts[p].method != NRG_METHOD_REGRESS)
            add_error(w, p, &row->whole, &spans->edges[ev->depth * e->n_parts + p], span,
                      inside(f, ev->t_ns), work_s);
    }
}

static int add_count(struct nrg_engine *e, const struct nrg_walk_event *ev)
{
    if (!ev->span)
        return 0;
    struct nrg_row_sums *row = &e->rows[ev->span->row];
    for (uint32_t i = row->counts; i; i = e->counts[i - 1].next)
        if (e->counts[i - 1].name == ev->name) {
            e->counts[i - 1].amount += (double)ev->amount;
            return 0;
        }
    int rc = nrg_reserve(&e->counts, &e->cap_counts, e->n_counts + 1, sizeof *e->counts);
    if (rc)
        return rc;
    e->counts[e->n_counts++] = (struct nrg_count_sum){ev->name, row->counts, (double)ev->amount};
    row->counts = (uint32_t)e->n_counts;
    return 0;
}

/* One stretch with the span around it, but another kind of span for a regression. */
static int change_path(struct walker *w, const struct nrg_walk_event *ev, int64_t t_ns)
{
    bool opens = ev->what == NRG_WALK_OPEN;
    int rc = w->slicer ? hand_over(w, ev->track, t_ns) : 0;
    w->flows.tracks[ev->track].path = (opens ? ev->span : ev->around)->path;
    return rc || !opens ? rc : begin_span(w, ev);
}

static int on_event(void *arg, const struct nrg_walk_event *ev)
{
    struct walker *w = arg;
    struct nrg_engine *e = w->e;
    struct nrg_flows *f = &w->flows;
    int64_t t_ns = inside(f, ev->t_ns), at_ns = e->clip ? t_ns : ev->t_ns;
    size_t pool = e->cells.track_pool[ev->track];
    nrg_flows_move_to(f, t_ns);
    if (ev->what == NRG_WALK_COUNT)
        return add_count(e, ev);
    nrg_flows_move_pool(f, pool, t_ns);
    nrg_flows_settle_group(f, e->cells.track_group[ev->track], t_ns);
    if (f->tracks[ev->track].open)
        nrg_flows_credit(f, ev->track, at_ns);
    e->rows[ev->span->row].flags |= ev->span->flags;
    if (ev->span->folded && ev->around && ev->around->row == ev->span->row)
        return change_path(w, ev, t_ns);
    for (size_t i = f->pool_from[pool]; i < f->pool_from[pool + 1]; i++)
        find_edge(w, f->pool_parts[i], t_ns);
    if (f->tracks[ev->track].open)
        end_self(w, ev->track, ev->t_ns);
    if (w->rc)
        return w->rc;
    if (ev->what == NRG_WALK_OPEN) {
        if (w->slicer && !f->pool_open[pool])
            w->rc = end_gap(w, (uint32_t)pool, t_ns);
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
        w->gap_ns[pool] = t_ns;
    }
    return 0;
}

static int init(struct walker *w)
{
    struct nrg_engine *e = w->e;
    size_t n_parts = e->n_parts + 1, n_tracks = e->catalog.n_tracks + 1;
    int rc = 0;
    w->grids = calloc(n_parts, sizeof *w->grids);
    w->readings = calloc(n_parts, sizeof *w->readings);
    w->now = calloc(n_parts, sizeof *w->now);
    w->tracks = calloc(n_tracks, sizeof *w->tracks);
    w->self_edges = calloc(n_tracks * n_parts, sizeof *w->self_edges);
    w->self_reading = calloc(n_tracks * n_parts, sizeof *w->self_reading);
    w->slices = calloc(n_tracks, sizeof *w->slices);
    w->gap_ns = calloc(e->cells.n_pools + 1, sizeof *w->gap_ns);
    if (!w->grids || !w->readings || !w->now || !w->tracks || !w->self_edges || !w->self_reading ||
        !w->slices || !w->gap_ns)
        return -ENOMEM;
    for (size_t i = 0; i < e->cells.n_pools; i++)
        w->gap_ns[i] = w->flows.begin_ns;
    if (w->slicer) {
        w->flows.border = on_border;
        w->flows.border_arg = w;
    }
    for (size_t p = 0; !rc && p < e->n_parts; p++) {
        nrg_grid_init(&w->grids[p], e->parts[p].tl, e->parts[p].width_ns);
        if (nrg_method_reads(e->parts[p].method))
            rc = nrg_readings_init(&w->readings[p], e->parts[p].tl);
    }
    return rc;
}

static void release(struct walker *w)
{
    for (size_t p = 0; w->readings && p < w->e->n_parts; p++)
        nrg_readings_release(&w->readings[p]);
    for (size_t i = 0; w->tracks && i < w->e->catalog.n_tracks; i++) {
        free(w->tracks[i].open);
        free(w->tracks[i].edges);
    }
    free(w->grids);
    free(w->readings);
    free(w->now);
    free(w->tracks);
    free(w->self_edges);
    free(w->self_reading);
    free(w->slices);
    free(w->gap_ns);
}

/* What the flows left over, and errors that wait for the end of their interval. */
static void finish(struct walker *w)
{
    struct nrg_engine *e = w->e;
    nrg_flows_finish(&w->flows);
    for (size_t p = 0; p < e->n_parts; p++) {
        struct nrg_attribution_domain *out = e->parts[p].out;
        const struct nrg_flow *flow = &w->flows.parts[p];
        /* A lag that the report of the run knows of it corrects too, but for the edges alone. */
        bool same = e->n_windows == 1 && !strcmp(out->lag_source, "driver");
        out->total_j = same ? e->parts[p].domain->energy_j : flow->total_j;
        out->unattributed_j = flow->unattributed_j;
        out->other_processes_j = flow->other_j;
        out->idle_j = e->options->idle == NRG_IDLE_APART ? flow->idle_j : 0;
    }
    for (size_t i = 0; i < e->walk.rows->n; i++)
        for (size_t p = 0; p < e->n_parts; p++) {
            struct nrg_row_part *row = &e->row_parts[i * e->n_parts + p];
            nrg_row_error_settle(&row->self, e->parts[p].ceiling_w);
            nrg_row_error_settle(&row->whole, e->parts[p].ceiling_w);
        }
}

int nrg_distribute(struct nrg_engine *e, struct nrg_slicer *slicer)
{
    struct walker w = {.e = e, .slicer = slicer};
    int rc = nrg_flows_init(&w.flows, e);
    if (!rc)
        rc = init(&w);
    if (!rc)
        rc = nrg_walk_run(&e->walk, w.flows.end_ns, on_event, &w);
    if (!rc)
        finish(&w);
    rc = rc ? rc : w.rc;
    release(&w);
    nrg_flows_release(&w.flows);
    return rc;
}

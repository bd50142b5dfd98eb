/*
 * See flow.h. An event moves its pool, settles its group and credits its track; a new cell does so
 * with all of them.
 */
#include "attribute/flow.h"

#include <errno.h>
#include <math.h>

#include "attribute/buckets.h"
#include "attribute/measured.h"

static void move_part(struct nrg_flows *f, size_t p, int64_t t_ns)
{
    struct nrg_flow *flow = &f->parts[p];
    struct nrg_energy_at at = nrg_energy_cursor_at(&flow->cursor, t_ns);
    double energy = at.energy_j - flow->cell_energy_j;
    double known_s = (at.covered_ns - flow->cell_covered_ns) * 1e-9;
    bool all_idle = isnan(flow->idle_w);
    double idle = all_idle ? energy : flow->idle_w * known_s;
    double others = all_idle ? 0 : flow->others_w * known_s;
    if (f->e->cells.outside[f->cell])
        return; /* between runs */
    flow->idle_j = flow->cell_idle_j + idle;
    flow->active_j = flow->cell_active_j + (energy - idle - others) * flow->mine;
    flow->covered_ns = flow->cell_known_ns + at.covered_ns - flow->cell_covered_ns;
}

void nrg_flows_move_pool(struct nrg_flows *f, size_t pool, int64_t t_ns)
{
    for (size_t i = f->pool_from[pool]; i < f->pool_from[pool + 1]; i++) {
        struct nrg_flow *flow = &f->parts[f->pool_parts[i]];
        move_part(f, f->pool_parts[i], t_ns);
        double idle = flow->idle_j - flow->idle_done;
        flow->idle_done = flow->idle_j;
        if (f->pool_open[pool])
            flow->idle_per_track += idle / (double)f->pool_open[pool];
        else if (f->e->options->idle == NRG_IDLE_SHARE)
            flow->unattributed_j += idle;
    }
}

void nrg_flows_settle_group(struct nrg_flows *f, size_t g, int64_t t_ns)
{
    const struct nrg_cells *cells = &f->e->cells;
    struct nrg_group_flow *group = &f->groups[g];
    size_t pool = cells->group_pool[g], n_parts = f->e->n_parts;
    double share = (double)cells->share[f->cell * cells->n_groups + g];
    for (size_t i = f->pool_from[pool]; i < f->pool_from[pool + 1]; i++) {
        size_t p = f->pool_parts[i], at = g * n_parts + p;
        double mine = share * (f->parts[p].active_j - f->active_done[at]);
        f->active_done[at] = f->parts[p].active_j;
        if (group->open)
            f->potential[at] += mine / group->weight;
        else
            f->parts[p].unattributed_j += mine;
    }
    if (group->open && !cells->outside[f->cell])
        group->work += share * ((double)(t_ns - group->done_ns) * 1e-9) / group->weight;
    group->done_ns = t_ns;
}

/* The energy; its error goes to the row. */
static double add_class(const struct nrg_part *part, struct nrg_row_part *row, uint32_t path,
                        double cost_s)
{
    row->self.below_j += part->below_w[path] * cost_s;
    row->self.above_j += part->above_w[path] * cost_s;
    return part->class_w[path] * cost_s;
}

/* How far tracks of a GPU add up (see struct nrg_class_split): its pool is that of one domain. */
static double adds_up(const struct nrg_flows *f, size_t pool)
{
    bool has = pool && f->pool_from[pool] < f->pool_from[pool + 1];
    return has ? f->e->parts[f->pool_parts[f->pool_from[pool]]].adds : 0;
}

/* What a class's power is multiplied by: CPU seconds, or of a GPU the share of its work, or all of
 * the time. */
static double cost_since(const struct nrg_flows *f, size_t track, int64_t t_ns, double work_s)
{
    const struct nrg_cells *c = &f->e->cells;
    double adds = adds_up(f, c->track_pool[track]);
    if (!(adds > 0) && (c->track_pool[track] || !c->has_rates))
        return work_s;
    int64_t from_ns = nrg_flows_inside(f, f->tracks[track].t_ns), to_ns = nrg_flows_inside(f, t_ns);
    double cost_s = 0;
    if (adds > 0)
        return c->outside[f->cell] ? 0
                                   : work_s + adds * ((double)(to_ns - from_ns) * 1e-9 - work_s);
    while (from_ns < to_ns && !c->outside[f->cell]) {
        struct nrg_thread_rate until;
        double rate = nrg_flows_rate(f, track, from_ns, &f->tracks[track].interval, &until);
        int64_t end_ns = until.end_ns < to_ns ? until.end_ns : to_ns;
        cost_s += rate * (double)(end_ns - from_ns) * 1e-9;
        from_ns = end_ns;
    }
    return cost_s;
}

double nrg_flows_rate(const struct nrg_flows *f, size_t track, int64_t t_ns, size_t *at,
                      struct nrg_thread_rate *until)
{
    const struct nrg_cells *c = &f->e->cells;
    const struct nrg_thread_times *times = &c->thread_times[track];
    size_t cell = f->cell * c->n_tracks + track;
    bool open = f->tracks[track].open;
    *until = nrg_thread_times_at(times, at, t_ns);
    if (until->index != SIZE_MAX)
        return (double)(open ? times->open_rate[until->index] : times->gap_rate[until->index]);
    if (!open && c->open_s[cell] > 0 && t_ns < c->first_ns[track])
        return (double)c->before_rate[track];
    if (!open && c->open_s[cell] > 0 && t_ns >= c->last_ns[track])
        return (double)c->after_rate[track];
    return (double)(open ? c->open_rate[cell] : c->gap_rate[cell]);
}

/* Joules of others beside what a track has in a cell, as far as their watts matter. */
static double others_beside(const struct nrg_part *part, size_t k, double energy_j, double work_s)
{
    const struct nrg_others_level *level = part->level ? &part->level[k] : NULL;
    return level ? energy_j * (double)level->doubt_part + work_s * (double)level->doubt_w : 0;
}

/* The track's group is settled. */
void nrg_flows_credit(struct nrg_flows *f, size_t track, int64_t t_ns)
{
    struct nrg_engine *e = f->e;
    struct nrg_track_flow *tr = &f->tracks[track];
    const struct nrg_cells *cells = &e->cells;
    size_t g = cells->track_group[track], pool = cells->track_pool[track];
    double work_s = tr->weight * (f->groups[g].work - tr->work_done);
    double cost_s = cost_since(f, track, t_ns, work_s);
    bool share = e->options->idle == NRG_IDLE_SHARE;
    const struct nrg_measured_stretch stretch = {
        tr->row,
        tr->step,
        tr->path,
        {nrg_flows_inside(f, tr->t_ns), nrg_flows_inside(f, t_ns)},
        cost_s};
    tr->work_done = f->groups[g].work;
    tr->work_s += work_s;
    e->rows[tr->row].work_s += work_s;
    e->rows[tr->row].cost_s += cost_s;
    e->rows[tr->row].self_ns += (double)(t_ns - tr->t_ns);
    if (e->buckets)
        nrg_buckets_time(e->buckets, f->edge, tr->row, (double)(t_ns - tr->t_ns) * 1e-9);
    tr->t_ns = t_ns;
    if (e->measured)
        nrg_measured_cost(e, &stretch);
    for (size_t i = f->pool_from[pool]; i < f->pool_from[pool + 1]; i++) {
        size_t p = f->pool_parts[i], at = track * e->n_parts + p;
        const struct nrg_flow *flow = &f->parts[p];
        struct nrg_row_part *row = &e->row_parts[(size_t)tr->row * e->n_parts + p];
        double potential = f->potential[g * e->n_parts + p], energy_j = 0;
        if (e->parts[p].method == NRG_METHOD_INTEGRATE)
            energy_j = tr->weight * (potential - f->track_potential[at]);
        if (e->parts[p].method == NRG_METHOD_REGRESS)
            energy_j = add_class(&e->parts[p], row, tr->path, cost_s);
        if (e->measured)
            nrg_measured_add(e, p, &stretch, energy_j);
        row->others_j += others_beside(&e->parts[p], f->cell, energy_j, work_s);
        if (share && !nrg_method_reads(e->parts[p].method))
            energy_j += flow->idle_per_track - f->track_idle[at];
        row->energy_j += energy_j;
        if (f->steps && tr->step)
            f->steps->items[tr->step - 1].energy_j += energy_j;
        row->covered_ns += flow->covered_ns - f->track_covered[at];
        if (e->buckets)
            nrg_buckets_add(e->buckets, f->edge, tr->row, p, energy_j);
        f->track_potential[at] = potential;
        f->track_idle[at] = flow->idle_per_track;
        f->track_covered[at] = flow->covered_ns;
    }
}

void nrg_flows_start_track(struct nrg_flows *f, size_t track, int64_t t_ns)
{
    struct nrg_track_flow *tr = &f->tracks[track];
    const struct nrg_cells *cells = &f->e->cells;
    size_t g = cells->track_group[track], pool = cells->track_pool[track];
    size_t n_parts = f->e->n_parts;
    tr->open = true;
    tr->weight = (double)cells->weight[f->cell * cells->n_tracks + track];
    tr->work_done = f->groups[g].work;
    tr->t_ns = t_ns;
    for (size_t i = f->pool_from[pool]; i < f->pool_from[pool + 1]; i++) {
        size_t p = f->pool_parts[i], at = track * n_parts + p;
        f->track_potential[at] = f->potential[g * n_parts + p];
        f->track_idle[at] = f->parts[p].idle_per_track;
        f->track_covered[at] = f->parts[p].covered_ns;
    }
    f->groups[g].weight += tr->weight;
    f->groups[g].open++;
    f->pool_open[pool]++;
}

void nrg_flows_stop_track(struct nrg_flows *f, size_t track)
{
    struct nrg_group_flow *group = &f->groups[f->e->cells.track_group[track]];
    group->weight -= f->tracks[track].weight;
    if (!--group->open)
        group->weight = 0;
    f->pool_open[f->e->cells.track_pool[track]]--;
    f->tracks[track].open = false;
}

/* The cell's own idle power and shares. Parts, groups and tracks are settled up to t_ns. */
static void enter_cell(struct nrg_flows *f, int64_t t_ns)
{
    const struct nrg_cells *cells = &f->e->cells;
    size_t k = f->cell;
    for (size_t p = 0; p < f->e->n_parts; p++) {
        struct nrg_flow *flow = &f->parts[p];
        struct nrg_energy_at at = nrg_energy_cursor_at(&flow->cursor, t_ns);
        flow->idle_w = f->e->parts[p].idle_w[k];
        flow->others_w = f->e->parts[p].level ? (double)f->e->parts[p].level[k].w : 0;
        flow->mine = 1 - (double)f->e->parts[p].other[k];
        flow->cell_active_j = flow->active_j;
        flow->cell_idle_j = flow->idle_j;
        flow->cell_energy_j = at.energy_j;
        flow->cell_covered_ns = at.covered_ns;
        flow->cell_known_ns = flow->covered_ns;
    }
    for (size_t g = 0; g < cells->n_groups; g++)
        f->groups[g].weight = 0;
    for (size_t i = 0; i < cells->n_tracks; i++) {
        struct nrg_track_flow *tr = &f->tracks[i];
        tr->weight = (double)cells->weight[k * cells->n_tracks + i];
        if (tr->open)
            f->groups[cells->track_group[i]].weight += tr->weight;
    }
}

/* Up to t all tracks are credited by the shares of this cell; what no group has is unattributed. */
static void leave_cell(struct nrg_flows *f, int64_t t_ns)
{
    const struct nrg_cells *cells = &f->e->cells;
    double *left = f->left;
    for (size_t i = 0; i < cells->n_pools; i++) {
        nrg_flows_move_pool(f, i, t_ns);
        left[i] = 1;
    }
    for (size_t g = 0; g < cells->n_groups; g++) {
        nrg_flows_settle_group(f, g, t_ns);
        left[cells->group_pool[g]] -= (double)cells->share[f->cell * cells->n_groups + g];
    }
    for (size_t i = 0; i < cells->n_tracks; i++)
        if (f->tracks[i].open)
            nrg_flows_credit(f, i, t_ns);
    for (size_t p = 0; p < f->e->n_parts; p++) {
        struct nrg_flow *flow = &f->parts[p];
        double mine = flow->active_j - flow->cell_active_j;
        flow->unattributed_j += left[f->e->parts[p].pool] * mine;
        if (!cells->outside[f->cell]) {
            struct nrg_energy_at at = nrg_energy_cursor_at(&flow->cursor, t_ns);
            double energy = at.energy_j - flow->cell_energy_j;
            double idle = flow->idle_j - flow->cell_idle_j, other = energy - idle - mine;
            flow->other_j += other;
            flow->total_j += energy;
            if (f->e->buckets)
                nrg_buckets_domain(f->e, f->edge, p, energy, idle, other,
                                   (at.covered_ns - flow->cell_covered_ns) * 1e-9);
        }
    }
}

/* Cells end, and so do buckets, which may do so inside of a cell: that one is left and entered. */
void nrg_flows_move_to(struct nrg_flows *f, int64_t t_ns)
{
    const struct nrg_cells *cells = &f->e->cells;
    for (;;) {
        int64_t cell_ns = f->cell + 1 < cells->n ? cells->begin_ns[f->cell + 1] : INT64_MAX;
        int64_t edge_ns = nrg_buckets_edge_ns(f->e->buckets, f->edge);
        int64_t next_ns = cell_ns < edge_ns ? cell_ns : edge_ns;
        if (next_ns == INT64_MAX || t_ns <= next_ns)
            return;
        leave_cell(f, next_ns);
        if (next_ns == cell_ns && f->border)
            f->border(f->border_arg, next_ns);
        f->cell += next_ns == cell_ns;
        f->edge += next_ns == edge_ns;
        enter_cell(f, next_ns);
    }
}

static int allocate_flows(struct nrg_flows *f)
{
    const struct nrg_cells *cells = &f->e->cells;
    size_t parts = f->e->n_parts + 1, groups = cells->n_groups + 1, tracks = cells->n_tracks + 1;
    f->parts = nrg_arena_array(&f->memory, parts, sizeof *f->parts);
    f->pool_parts = nrg_arena_array(&f->memory, parts, sizeof *f->pool_parts);
    f->pool_from = nrg_arena_array(&f->memory, cells->n_pools + 1, sizeof *f->pool_from);
    f->pool_open = nrg_arena_array(&f->memory, cells->n_pools + 1, sizeof *f->pool_open);
    f->left = nrg_arena_array(&f->memory, cells->n_pools + 1, sizeof *f->left);
    f->groups = nrg_arena_array(&f->memory, groups, sizeof *f->groups);
    f->tracks = nrg_arena_array(&f->memory, tracks, sizeof *f->tracks);
    f->potential = nrg_arena_array(&f->memory, groups * parts, sizeof *f->potential);
    f->active_done = nrg_arena_array(&f->memory, groups * parts, sizeof *f->active_done);
    f->track_potential = nrg_arena_array(&f->memory, tracks * parts, sizeof *f->track_potential);
    f->track_idle = nrg_arena_array(&f->memory, tracks * parts, sizeof *f->track_idle);
    f->track_covered = nrg_arena_array(&f->memory, tracks * parts, sizeof *f->track_covered);
    return f->memory.failed ? -ENOMEM : 0;
}

int nrg_flows_init(struct nrg_flows *f, struct nrg_engine *e)
{
    const struct nrg_cells *cells = &e->cells;
    size_t n = 0;
    *f = (struct nrg_flows){.e = e};
    if (allocate_flows(f)) {
        nrg_flows_release(f);
        return -ENOMEM;
    }
    for (size_t pool = 0; pool < cells->n_pools; pool++) {
        f->pool_from[pool] = n;
        for (size_t p = 0; p < e->n_parts; p++)
            if (e->parts[p].pool == pool)
                f->pool_parts[n++] = p;
    }
    f->pool_from[cells->n_pools] = n;
    f->begin_ns = cells->begin_ns[0];
    f->end_ns = cells->begin_ns[cells->n];
    for (size_t p = 0; p < e->n_parts; p++) {
        const struct nrg_part *part = &e->parts[p];
        struct nrg_energy_cursor *cursor = &f->parts[p].cursor;
        nrg_energy_cursor_init(cursor, part->tl, f->begin_ns, part->lag_s);
        nrg_energy_cursor_refine(cursor, part->points, part->points ? part->n_divisions : 0);
    }
    for (size_t g = 0; g < cells->n_groups; g++)
        f->groups[g].done_ns = f->begin_ns;
    while (nrg_buckets_edge_ns(e->buckets, f->edge) <= f->begin_ns)
        f->edge++;
    enter_cell(f, f->begin_ns);
    return 0;
}

void nrg_flows_finish(struct nrg_flows *f)
{
    nrg_flows_move_to(f, f->end_ns);
    leave_cell(f, f->end_ns);
    if (f->border)
        f->border(f->border_arg, f->end_ns);
}

void nrg_flows_release(struct nrg_flows *f)
{
    nrg_arena_release(&f->memory);
    *f = (struct nrg_flows){0};
}

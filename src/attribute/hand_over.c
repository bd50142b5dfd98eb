/*
 * See distribute.h: what threads did, as slices for the regression, cut where their CPU time was
 * read, and what they and other processes did outside of spans.
 */
#include <math.h>

#include "attribute/distribute.h"

/* Whether CPU seconds of each track are known, so that they add up. */
static bool has_rates(const struct nrg_walk_state *w, size_t pool)
{
    return !pool && w->e->cells.has_rates;
}

/* The number of an interval, or of a cell, in which a thread has one CPU time. They rise. */
static uint32_t group_of(struct nrg_walk_state *w, size_t track, size_t interval)
{
    struct nrg_cpu_group *group = &w->groups[track];
    bool own = interval != SIZE_MAX;
    size_t index = own ? interval : w->flows.cell;
    if (!group->number || group->own != own || group->index != index)
        *group = (struct nrg_cpu_group){index, own, ++w->n_groups, group->at};
    return group->number;
}

/* A slice of a thread, cut where its CPU time was read. Gaps between spans (not grouped) are calls
 * where the thread also sleeps in them: when is to be found. */
static int add_cut(struct nrg_walk_state *w, size_t track, struct nrg_slice slice, bool grouped)
{
    int64_t end_ns = slice.end_ns;
    int rc = 0;
    for (slice.end_ns = slice.begin_ns; !rc && slice.end_ns < end_ns;) {
        struct nrg_thread_rate until;
        slice.begin_ns = slice.end_ns;
        slice.rate = nrg_flows_rate(&w->flows, track, slice.begin_ns, &w->groups[track].at, &until);
        slice.end_ns = until.end_ns < end_ns ? until.end_ns : end_ns;
        if (grouped)
            slice.group = group_of(w, track, until.index);
        else
            slice.calls = slice.rate < 1 ? NRG_SLICE_WAITS : NRG_GAP_WAITS;
        if (grouped || slice.rate > 0)
            rc = nrg_slicer_add(w->slicer, &slice);
    }
    return rc;
}

int nrg_hand_over(struct nrg_walk_state *w, size_t track, int64_t t_ns)
{
    const struct nrg_track_flow *tr = &w->flows.tracks[track];
    struct nrg_walk_stretch *since = &w->slices[track];
    uint32_t pool = w->e->cells.track_pool[track];
    double s = (double)(t_ns - since->inside_ns) * 1e-9;
    double share = s > 0 ? fmin((tr->work_s - since->work_s) / s, 1) : 0;
    struct nrg_slice slice = {.begin_ns = since->inside_ns,
                              .end_ns = t_ns,
                              .rate = share,
                              .class_ = w->e->class_of[tr->path],
                              .pool = pool,
                              .track = (uint32_t)track,
                              .calls = NRG_SLICE_WAITS};
    *since = (struct nrg_walk_stretch){.inside_ns = t_ns, .work_s = tr->work_s};
    if (!has_rates(w, pool))
        return nrg_slicer_add(w->slicer, &slice);
    slice.cell = (uint32_t)w->flows.cell + 1;
    return add_cut(w, track, slice, true);
}

/* The class of time without spans that begins at t_ns, and until when it has that. */
static uint32_t gap_class(const struct nrg_walk_state *w, uint32_t pool, int64_t t_ns,
                          int64_t *until_ns)
{
    static const int64_t ages_us[NRG_GAP_AGES] = {10,    30,    100,    300,    1000,   3000,
                                                  10000, 30000, 100000, 300000, 1000000};
    int64_t from_ns = w->rest_from_ns[pool];
    for (size_t i = 0; from_ns != INT64_MIN && i < NRG_GAP_AGES; i++) {
        *until_ns = from_ns + ages_us[i] * 1000;
        if (t_ns < *until_ns)
            return (uint32_t)(w->e->aged_class + i);
    }
    *until_ns = INT64_MAX;
    return w->e->class_of[0];
}

int nrg_hand_over_gap(struct nrg_walk_state *w, uint32_t pool, int64_t t_ns)
{
    struct nrg_slice slice = {
        .end_ns = w->gap_ns[pool], .rate = 1, .pool = pool, .track = UINT32_MAX};
    int rc = 0;
    w->gap_ns[pool] = t_ns;
    while (!rc && slice.end_ns < t_ns && !has_rates(w, pool)) {
        int64_t until_ns;
        slice.begin_ns = slice.end_ns;
        slice.class_ = gap_class(w, pool, slice.begin_ns, &until_ns);
        slice.end_ns = until_ns < t_ns ? until_ns : t_ns;
        rc = nrg_slicer_add(w->slicer, &slice);
    }
    return rc;
}

/* What a thread did outside of its spans. Before the first one it did something else than between
 * them. */
static int end_track_gap(struct nrg_walk_state *w, size_t track, int64_t t_ns)
{
    uint32_t pool = w->e->cells.track_pool[track];
    bool marked = w->tracks[track].open != NULL;
    struct nrg_slice slice = {.begin_ns = w->track_gap_ns[track],
                              .end_ns = t_ns,
                              .class_ = marked ? w->e->class_of[0] : (uint32_t)w->e->before_class,
                              .pool = pool,
                              .track = (uint32_t)track};
    w->track_gap_ns[track] = t_ns;
    return has_rates(w, pool) ? add_cut(w, track, slice, false) : 0;
}

int nrg_hand_over_track_gap(struct nrg_walk_state *w, size_t track, int64_t t_ns)
{
    int rc = end_track_gap(w, track, t_ns);
    if (!rc)
        nrg_slicer_settle(w->slicer, (uint32_t)track, w->gap_from_ns[track], t_ns,
                          w->tracks[track].open != NULL);
    return rc;
}

/* CPUs that the workload has in the cell that ends, as its slices say; of workers without spans,
 * who work beside these, only how many they are in the mean. */
static struct nrg_others_room find_room(const struct nrg_walk_state *w, int64_t begin_ns,
                                        int64_t end_ns)
{
    const struct nrg_cells *c = &w->e->cells;
    const struct nrg_slicer *s = w->slicer;
    size_t k = w->flows.cell;
    double length_ns = (double)(end_ns - begin_ns);
    struct nrg_others_room room = {.cpus = c->cpus, .full = c->full[k]};
    for (size_t i = s->n; i-- > 0 && s->slices[i].begin_ns >= begin_ns;)
        if (!s->slices[i].pool)
            nrg_others_room_add(&room, (double)(s->slices[i].begin_ns - begin_ns) / length_ns,
                                (double)(s->slices[i].end_ns - begin_ns) / length_ns,
                                s->slices[i].rate);
    nrg_others_room_grow(&room, (c->busy_s[k] - c->other_s[k]) / (length_ns * 1e-9));
    return room;
}

/* CPUs of others in each bin of the cell that ends; false: they are the same in all. */
static bool place_others(const struct nrg_walk_state *w, const struct nrg_slice *slice,
                         struct nrg_others_cell *cell, double cpus[NRG_OTHERS_BINS])
{
    const struct nrg_cells *c = &w->e->cells;
    size_t k = w->flows.cell;
    bool parts = slice->end_ns == c->begin_ns[k + 1] &&
                 nrg_others_parts(&c->other_profile, c->other_s, c->begin_ns, c->n, k, cell);
    for (size_t i = 0; i < NRG_OTHERS_BINS; i++)
        cpus[i] = parts ? cell->cpus[i * NRG_OTHERS_PARTS / NRG_OTHERS_BINS] : slice->rate;
    for (size_t i = 1; !parts && i < NRG_OTHERS_PARTS; i++)
        cell->unsure2[i] = cell->unsure2[0];
    struct nrg_others_room room = find_room(w, slice->begin_ns, slice->end_ns);
    return nrg_others_fit_in(&room, cpus) || parts;
}

/* What others used in the cell that ends, bin by bin where that can be told. */
static int add_others(struct nrg_walk_state *w, struct nrg_slice slice)
{
    struct nrg_others_cell cell = {0};
    double cpus[NRG_OTHERS_BINS];
    int64_t begin_ns = slice.begin_ns, length_ns = slice.end_ns - begin_ns;
    size_t n = NRG_OTHERS_BINS, until;
    int rc = 0;
    slice.class_ = (uint32_t)w->e->other_class;
    slice.rate = w->e->cells.other_s[w->flows.cell] / ((double)length_ns * 1e-9);
    bool apart = place_others(w, &slice, &cell, cpus);
    slice.calls = (float)cell.unsure2[0];
    if (!apart)
        return nrg_slicer_add(w->slicer, &slice);
    for (size_t i = 0; !rc && i < n; i = until) {
        size_t part = i * NRG_OTHERS_PARTS / n;
        for (until = i + 1; until * NRG_OTHERS_PARTS / n == part && cpus[until] == cpus[i];)
            until++;
        slice.begin_ns = begin_ns + length_ns * (int64_t)i / (int64_t)n;
        slice.end_ns = begin_ns + length_ns * (int64_t)until / (int64_t)n;
        slice.rate = cpus[i];
        slice.calls = (float)cell.unsure2[part];
        rc = nrg_slicer_add(w->slicer, &slice);
    }
    return rc;
}

/* What processes without spans used in the cell that ends: the workload's, and others. */
static int add_processes(struct nrg_walk_state *w, int64_t t_ns)
{
    const struct nrg_cells *c = &w->e->cells;
    size_t k = w->flows.cell;
    double length_s = (double)(t_ns - c->begin_ns[k]) * 1e-9;
    struct nrg_slice slice = {
        .begin_ns = c->begin_ns[k], .end_ns = t_ns, .pool = 0, .track = UINT32_MAX};
    int rc = 0;
    if (!has_rates(w, 0) || !(length_s > 0))
        return 0;
    slice.class_ = (uint32_t)w->e->untracked_class;
    slice.rate = (double)c->untracked_s[k] / length_s;
    if (slice.rate > 0)
        rc = nrg_slicer_add(w->slicer, &slice);
    return rc || !c->other_s ? rc : add_others(w, slice);
}

void nrg_hand_over_cell(void *arg, int64_t t_ns)
{
    struct nrg_walk_state *w = arg;
    const struct nrg_cells *cells = &w->e->cells;
    size_t next = w->flows.cell + 1;
    bool ends_run = t_ns >= w->flows.end_ns || (next < cells->n && cells->outside[next]);
    for (size_t i = 0; !w->rc && i < cells->n_tracks; i++)
        w->rc = w->flows.tracks[i].open ? nrg_hand_over(w, i, t_ns) : end_track_gap(w, i, t_ns);
    for (uint32_t pool = 0; !w->rc && pool < cells->n_pools; pool++)
        if (!w->flows.pool_open[pool])
            w->rc = nrg_hand_over_gap(w, pool, t_ns);
    if (!w->rc)
        w->rc = add_processes(w, t_ns);
    if (cells->outside[w->flows.cell])
        w->slicer->n = 0;
    if (!w->rc)
        w->rc = nrg_slicer_flush(w->slicer, t_ns, ends_run);
}

/*
 * The first walk through the spans: how long each track has a span open in each cell, how long
 * self stretches are (for choosing a method), and the last event of each track. A track whose
 * process ended closes its spans then, not at the end of the recording.
 */
#include <errno.h>
#include <stdlib.h>

#include "attribute/internal.h"
#include "base/mem.h"

struct surveyor {
    struct nrg_engine *e;
    int64_t *since_ns; /* per track: begin of its outermost open span */
    int64_t *self_ns;  /* per track: begin of the self stretch */
};

static int make_room(struct nrg_survey *s, size_t n_paths, size_t n_rows)
{
    size_t old_paths = s->cap_paths, old_rows = s->cap_rows;
    if (nrg_reserve(&s->paths, &s->cap_paths, n_paths * s->n_pools, sizeof *s->paths) ||
        nrg_reserve(&s->rows_elsewhere, &s->cap_rows, n_rows, sizeof *s->rows_elsewhere))
        return -ENOMEM;
    for (size_t i = old_paths; i < s->cap_paths; i++)
        s->paths[i] = (struct nrg_survey_path){0};
    for (size_t i = old_rows; i < s->cap_rows; i++)
        s->rows_elsewhere[i] = false;
    return 0;
}

static int note_nodes(struct nrg_survey *s, const struct nrg_open_span *span)
{
    int rc = make_room(s, (size_t)span->path + 1, (size_t)span->row + 1);
    if (!rc && span->elsewhere)
        s->rows_elsewhere[span->row] = true;
    return rc;
}

static void end_stretch(struct surveyor *v, size_t track, uint32_t path, int64_t t_ns)
{
    struct nrg_survey *s = &v->e->survey;
    size_t pool = v->e->cells.track_pool[track];
    struct nrg_survey_path *at = nrg_survey_at(s, path, pool);
    int64_t ns = t_ns - v->self_ns[track];
    if (ns <= 0)
        return;
    at->self_ns += (double)ns;
    at->stretches++;
    s->ns_by_log2[pool][63 - __builtin_clzll((unsigned long long)ns)] += (double)ns;
}

/* Where a track ends at the latest. Events that came later than the process was seen last show
 * that it lived on. */
static int64_t track_end(const struct nrg_engine *e, size_t track)
{
    size_t n;
    const struct nrg_process_info *infos = nrg_recording_processes(e->recording, &n);
    int64_t id = e->cells.group_process[e->cells.track_group[track]];
    for (size_t k = 0; id > 0 && k < n; k++)
        if (infos[k].id == id && infos[k].ended && nrg_is_time(infos[k].last_ns))
            return infos[k].last_ns > e->walk.last_ns[track] ? infos[k].last_ns
                                                             : e->walk.last_ns[track];
    return INT64_MAX;
}

static int on_event(void *arg, const struct nrg_span_walk_event *ev)
{
    struct surveyor *v = arg;
    struct nrg_cells *cells = &v->e->cells;
    int64_t t_ns = ev->t_ns;
    if (ev->what == NRG_WALK_COUNT)
        return 0;
    int rc = note_nodes(&v->e->survey, ev->span);
    if (rc)
        return rc;
    if (ev->span->flags & NRG_ROW_UNCLOSED) { /* its last event is known only now */
        int64_t end_ns = track_end(v->e, ev->track);
        t_ns = end_ns < t_ns ? end_ns : t_ns;
    }
    if (ev->what == NRG_WALK_CLOSE)
        end_stretch(v, ev->track, ev->span->path, t_ns);
    else if (ev->around)
        end_stretch(v, ev->track, ev->around->path, t_ns);
    v->self_ns[ev->track] = t_ns;
    if (!ev->around && ev->what == NRG_WALK_OPEN) {
        v->since_ns[ev->track] = t_ns;
        if (!cells->first_ns[ev->track])
            cells->first_ns[ev->track] = t_ns;
    } else if (!ev->around) {
        cells->last_ns[ev->track] = t_ns;
        nrg_thread_times_open(&cells->thread_times[ev->track], v->since_ns[ev->track], t_ns);
        nrg_cells_spread(cells, v->since_ns[ev->track], t_ns,
                         (double)(t_ns - v->since_ns[ev->track]) * 1e-9, cells->open_s + ev->track,
                         cells->n_tracks);
    }
    return 0;
}

int nrg_survey_make(struct nrg_engine *e)
{
    size_t n = e->catalog.n_tracks + 1;
    struct surveyor v = {.e = e};
    v.since_ns = nrg_arena_array(&e->memory, n, sizeof *v.since_ns);
    v.self_ns = nrg_arena_array(&e->memory, n, sizeof *v.self_ns);
    e->survey.n_pools = e->cells.n_pools;
    e->survey.ns_by_log2 =
        nrg_arena_array(&e->memory, e->cells.n_pools, sizeof *e->survey.ns_by_log2);
    int rc = e->memory.failed ? -ENOMEM : 0;
    const struct nrg_open_span top = {0};
    if (!rc)
        rc = note_nodes(&e->survey, &top);
    if (!rc)
        rc = nrg_span_walk_run(&e->walk, e->cells.begin_ns[e->cells.n], on_event, &v);
    if (!rc) /* the trees may have nodes that no span of the walk was at */
        rc = make_room(&e->survey, e->walk.paths.n, e->walk.rows->n);
    for (size_t i = 0; !rc && i < e->catalog.n_tracks; i++)
        e->walk.end_ns[i] = track_end(e, i);
    return rc;
}

void nrg_survey_release(struct nrg_survey *s)
{
    free(s->paths);
    free(s->rows_elsewhere);
    *s = (struct nrg_survey){0};
}

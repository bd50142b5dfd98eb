/*
 * The engine (internal.h). The order of work: which time (windows), which spans (a first walk),
 * which energy (domains, idle, shares), which method; then the walk that gives every stretch its
 * energy. What comes out are sums per place in the tree of spans. Views of them are made later
 * (views/view.c).
 */
#include "attribute/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/buckets.h"
#include "attribute/measured.h"
#include "base/stats.h"

static bool is_wanted(const struct nrg_attribution_options *o, const struct nrg_run *run)
{
    if (o->run)
        return run->id == o->run;
    return strcmp(run->kind, "baseline") != 0;
}

/* Runs in order, without overlap; the summary is of all the time from the first to the last. */
static int find_windows(struct nrg_engine *e)
{
    size_t n;
    const struct nrg_run *runs = nrg_recording_runs(e->recording, &n);
    struct nrg_run all = {.exit_code = -1};
    e->windows = nrg_arena_array(&e->memory, n + 1, sizeof *e->windows);
    if (!e->windows)
        return nrg_fail(e->err, -ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < n; i++) {
        struct nrg_span_ns window = {runs[i].begin_ns, runs[i].end_ns};
        if (!is_wanted(e->options, &runs[i]) || !nrg_is_time(window.begin_ns))
            continue;
        if (e->n_windows && window.begin_ns < e->windows[e->n_windows - 1].end_ns)
            continue;
        if (!e->n_windows)
            all = runs[i];
        all.end_ns = window.end_ns;
        e->windows[e->n_windows++] = window;
    }
    if (!e->n_windows && e->options->run)
        return nrg_fail(e->err, -ENOENT, nrg_recording_path(e->recording), "has no run %lld",
                        (long long)e->options->run);
    if (!e->n_windows)
        return nrg_recording_no_run(e->recording, "run", e->err);
    e->clip = e->options->run != 0;
    int rc = nrg_frame_init(&e->frame, e->recording);
    rc = rc ? nrg_fail(e->err, rc, NULL, "out of memory")
            : nrg_summary_of(&e->out->summary, &e->frame, &all, NRG_SPLIT_ACTIVE, e->err);
    if (!rc)
        nrg_frame_drop_all(&e->frame);
    struct nrg_span_ns *last = &e->windows[e->n_windows - 1];
    if (!rc && last->end_ns <= last->begin_ns)
        last->end_ns = e->out->summary.end_ns; /* the recorder was killed */
    for (size_t i = 0; !rc && i < e->n_windows; i++)
        if (e->windows[i].end_ns <= e->windows[i].begin_ns)
            rc = nrg_fail(e->err, -ENODATA, nrg_recording_path(e->recording),
                          "a run ends before it begins");
    return rc;
}

/* Of a run without a single reading of any sensor nothing can be said. */
static int check_readings(const struct nrg_engine *e)
{
    char inside[128];
    int series;
    bool any = false, read = false;
    snprintf(inside, sizeof inside, "AND last_ns >= %lld AND first_ns <= %lld",
             (long long)e->windows[0].begin_ns, (long long)e->windows[e->n_windows - 1].end_ns);
    for (size_t at = 0; (series = nrg_recording_next_series(e->recording, NRG_SAMPLES, &at));) {
        char of[160];
        snprintf(of, sizeof of, "series = %d", series);
        any |= nrg_recording_count(e->recording, "chunk", of) > 0;
        snprintf(of, sizeof of, "series = %d %s", series, inside);
        read |= nrg_recording_count(e->recording, "chunk", of) > 0;
    }
    if (read || !any)
        return 0;
    return nrg_fail(e->err, -ENODATA, nrg_recording_path(e->recording),
                    "has no reading of the run: it was cut off before the first one, or "
                    "`begin_ns` and `end_ns` of the run are of another clock than `chunk`");
}

static int prepare_parts(struct nrg_engine *e)
{
    int rc = nrg_cells_init(&e->cells, &e->frame, &e->catalog, e->windows, e->n_windows);
    if (!rc)
        rc = nrg_span_walk_init(&e->walk, e->recording, e->given ? e->given->source : NULL,
                                &e->catalog, e->options->by);
    if (!rc)
        rc = nrg_thread_times_load(e);
    if (!rc)
        rc = nrg_survey_make(e);
    if (!rc)
        rc = nrg_cells_weigh(&e->cells, &e->frame, &e->catalog);
    if (!rc)
        rc = nrg_parts_make(e);
    if (!rc)
        rc = nrg_cputime_choose(e);
    if (!rc)
        nrg_method_choose(e);
    if (!rc)
        rc = nrg_parts_idle(e);
    if (!rc)
        rc = nrg_parts_other(e);
    if (rc)
        return rc;
    e->rows = nrg_arena_array(&e->memory, e->walk.rows->n + 1, sizeof *e->rows);
    e->row_parts =
        nrg_arena_array(&e->memory, e->walk.rows->n * e->n_parts + 1, sizeof *e->row_parts);
    rc = e->memory.failed ? -ENOMEM : nrg_regress_parts(e);
    if (rc)
        return rc;
    nrg_parts_idle_ends(e);
    rc = nrg_other_watts(e);
    if (!rc)
        nrg_parts_idle_drift(e);
    return rc;
}

static void set_method(struct nrg_engine *e)
{
    e->out->method = e->n_parts ? e->parts[0].method : e->options->method;
    for (size_t p = 0; p < e->n_parts; p++) {
        e->parts[p].out->method = e->parts[p].method;
        if (e->parts[p].method != e->out->method)
            e->out->method = NRG_METHOD_MIXED;
    }
}

int nrg_engine_open(struct nrg_engine *e)
{
    struct nrg_attribution *a = e->out;
    struct nrg_rows_memory *memory = a->memory;
    e->z = nrg_normal_half(e->options->confidence > 0 ? e->options->confidence : 0.95);
    int rc = find_windows(e);
    if (!rc && e->given) {
        memory->catalog = *e->given->catalog;
        *e->given->catalog = (struct nrg_span_catalog){0};
    } else if (!rc) {
        rc = nrg_span_catalog_load(&memory->catalog, e->recording, e->err);
    }
    if (rc)
        return rc;
    e->catalog = memory->catalog;
    rc = check_readings(e);
    if (rc)
        return rc;
    a->begin_s = (double)e->windows[0].begin_ns * 1e-9;
    for (size_t i = 0; i < e->n_windows; i++)
        a->duration_s += (double)(e->windows[i].end_ns - e->windows[i].begin_ns) * 1e-9;
    return 0;
}

int nrg_engine_run(struct nrg_engine *e)
{
    struct nrg_rows_memory *memory = e->out->memory;
    int rc = prepare_parts(e);
    if (!rc)
        rc = nrg_cputime_parts(e);
    if (rc)
        return rc;
    set_method(e);
    rc = nrg_stairs_join(e);
    if (!rc)
        rc = nrg_divide_intervals(e);
    if (!rc)
        rc = nrg_buckets_make(e);
    if (!rc)
        rc = nrg_measured_make(e);
    if (!rc)
        rc = nrg_distribute(e, NULL);
    if (!rc && e->class_of)
        rc = nrg_regress_errors(e);
    if (!rc && e->measured)
        nrg_measured_finish(e, &memory->steps);
    if (!rc)
        rc = nrg_singles_settle(e);
    if (!rc)
        nrg_rows_within_total(e);
    if (!rc && e->buckets)
        nrg_buckets_finish(e);
    return rc;
}

void nrg_engine_release(struct nrg_engine *e)
{
    nrg_measured_free(e->measured);
    nrg_buckets_free(e->buckets);
    nrg_cputime_release(e);
    nrg_parts_release(e);
    nrg_survey_release(&e->survey);
    nrg_cells_release(&e->cells);
    nrg_span_walk_release(&e->walk);
    nrg_frame_release(&e->frame);
    free(e->counts.items);
    nrg_arena_release(&e->memory);
}

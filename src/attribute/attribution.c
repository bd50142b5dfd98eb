/*
 * See attribution.h. The order of work: which time (windows), which spans (a first walk), which
 * energy (domains, idle, shares), which method; then the walk that gives every stretch its energy,
 * and the rows.
 */
#include "attribute/attribution.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/rows_memory.h"
#include "attribute/view.h"
#include "base/mem.h"

static const char *const method_names[] = {"auto",   "integrate", "nearest",
                                           "window", "regress",   "mixed"};

const char *nrg_method_name(enum nrg_method method)
{
    return method_names[method];
}

int nrg_method_from_name(const char *name)
{
    for (int i = NRG_METHOD_AUTO; i <= NRG_METHOD_REGRESS; i++)
        if (!strcmp(method_names[i], name))
            return i;
    return -1;
}

int nrg_attribution_note(struct nrg_attribution *a, const char *what, const char *why, ...)
{
    va_list ap;
    int rc = nrg_reserve(&a->notes, &a->cap_notes, a->n_notes + 1, sizeof *a->notes);
    if (rc)
        return rc;
    struct nrg_missing *note = &a->notes[a->n_notes++];
    *note = (struct nrg_missing){0};
    nrg_copy(note->what, sizeof note->what, what);
    va_start(ap, why);
    vsnprintf(note->why, sizeof note->why, why, ap);
    va_end(ap);
    return 0;
}

static bool wanted(const struct nrg_attribution_options *o, const struct nrg_run *run)
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
    e->windows = calloc(n + 1, sizeof *e->windows);
    if (!e->windows)
        return nrg_fail(e->err, -ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < n; i++) {
        struct nrg_span_ns window = {runs[i].begin_ns, runs[i].end_ns};
        if (!wanted(e->options, &runs[i]) || !nrg_is_time(window.begin_ns))
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
        return nrg_fail(e->err, -ENODATA, nrg_recording_path(e->recording), "holds no run");
    e->clip = e->options->run != 0;
    int rc = nrg_summary_make(&e->out->summary, e->recording, &all, NRG_SPLIT_ACTIVE, e->err);
    struct nrg_span_ns *last = &e->windows[e->n_windows - 1];
    if (!rc && last->end_ns <= last->begin_ns)
        last->end_ns = e->out->summary.end_ns; /* the recorder was killed */
    for (size_t i = 0; !rc && i < e->n_windows; i++)
        if (e->windows[i].end_ns <= e->windows[i].begin_ns)
            rc = nrg_fail(e->err, -ENODATA, nrg_recording_path(e->recording),
                          "a run ends before it begins");
    return rc;
}

static int prepare(struct nrg_engine *e)
{
    int rc = nrg_frame_init(&e->frame, e->recording);
    if (!rc)
        rc = nrg_cells_init(&e->cells, &e->frame, &e->catalog, e->windows, e->n_windows);
    if (!rc)
        rc = nrg_walk_init(&e->walk, e->recording, &e->catalog, e->options->by);
    if (!rc)
        rc = nrg_survey_make(e);
    if (!rc)
        rc = nrg_cells_weigh(&e->cells, &e->frame, &e->catalog);
    if (!rc)
        rc = nrg_parts_make(e);
    if (!rc)
        nrg_method_choose(e);
    if (!rc)
        rc = nrg_parts_idle(e);
    if (!rc)
        rc = nrg_parts_other(e);
    if (rc)
        return rc;
    e->rows = calloc(e->walk.rows->n + 1, sizeof *e->rows);
    e->row_parts = calloc(e->walk.rows->n * e->n_parts + 1, sizeof *e->row_parts);
    if (!e->rows || !e->row_parts)
        return -ENOMEM;
    return nrg_method_regresses(e) ? nrg_regress_parts(e) : 0;
}

static int sum_rows(struct nrg_engine *e)
{
    struct nrg_view view;
    int rc = nrg_distribute(e, NULL);
    if (!rc && e->class_of)
        rc = nrg_regress_errors(e);
    if (rc)
        return rc;
    rc = nrg_view_make(&view, e);
    if (!rc) {
        rc = nrg_rows_make(e, &view);
        nrg_view_release(&view);
    }
    return rc;
}

static void sum_domains(struct nrg_engine *e)
{
    struct nrg_attribution *a = e->out;
    if (!a->n_domains)
        a->total_j = a->unattributed_j = a->idle_j = a->other_processes_j = NAN;
    for (size_t i = 0; i < a->n_domains; i++) {
        const struct nrg_attribution_domain *d = &a->domains[i];
        double off_j = d->total_j - d->domain->energy_j; /* lag, or several runs */
        bool guessed = e->n_windows == 1 && !strcmp(d->lag_source, "fitted");
        double doubt_j = guessed ? fabs(off_j) / 2 : 0;
        a->total_j += d->total_j;
        a->total_low_j += fmax(0, d->domain->low_j + off_j - doubt_j);
        a->total_high_j += d->domain->high_j + off_j + doubt_j;
        a->total_uncertainty_j += d->domain->uncertainty_j + doubt_j;
        a->unattributed_j += d->unattributed_j;
        a->idle_j += d->idle_j;
        a->other_processes_j += d->other_processes_j;
        if (d->domain->channel->channel.provenance > a->provenance)
            a->provenance = d->domain->channel->channel.provenance;
    }
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

/* Says what was odd about the spans. */
static void note_spans(struct nrg_engine *e)
{
    struct nrg_attribution *a = e->out;
    const struct nrg_walk *w = &e->walk;
    a->spans = w->spans;
    a->unclosed = w->unclosed;
    a->unmatched_ends = w->unmatched_ends;
    a->cut = w->cut;
    int64_t dropped = 0;
    if (!nrg_recording_integer(e->recording, "spans_dropped", &dropped) && dropped > 0) {
        a->dropped = (uint64_t)dropped;
        nrg_attribution_note(a, "dropped spans",
                             "%lld were marked faster than they could be written: their time "
                             "counts to what is around them",
                             (long long)dropped);
    }
    if (!w->spans)
        nrg_attribution_note(a, "spans", "the recording has none: nothing can be attributed");
    if (!a->n_domains)
        nrg_attribution_note(a, "energy",
                             "the recording has none of the time asked for: rows "
                             "have times only");
    if (w->unclosed)
        nrg_attribution_note(a, "unclosed spans",
                             "%llu were open when their track ended and are "
                             "closed there",
                             (unsigned long long)w->unclosed);
    if (w->unmatched_ends)
        nrg_attribution_note(a, "ends without begin", "%llu are left out",
                             (unsigned long long)w->unmatched_ends);
    if (w->cut)
        nrg_attribution_note(a, "overlapping spans",
                             "%llu ended after the span around them, or "
                             "in the past: cut so that they nest",
                             (unsigned long long)w->cut);
    if (w->unknown || w->damaged)
        nrg_attribution_note(a, "damaged spans",
                             "%llu events of unknown tracks and %zu damaged "
                             "chunks or events are left out",
                             (unsigned long long)w->unknown, w->damaged);
    uint64_t folded = w->rows->folded;
    if (folded)
        nrg_attribution_note(a, "deep spans",
                             "%llu spans below %d levels or beyond %zu rows count "
                             "to the row they are in",
                             (unsigned long long)folded, NRG_TREE_DEPTH, NRG_TREE_NODES);
}

static void release_engine(struct nrg_engine *e)
{
    nrg_parts_release(e);
    nrg_survey_release(&e->survey);
    nrg_cells_release(&e->cells);
    nrg_walk_release(&e->walk);
    nrg_frame_release(&e->frame);
    free(e->windows);
    free(e->rows);
    free(e->row_parts);
    free(e->class_of);
    free(e->counts);
}

int nrg_attribution_make(struct nrg_attribution *a, struct nrg_recording *recording,
                         const struct nrg_attribution_options *options, struct nrg_error *err)
{
    struct nrg_engine e = {.recording = recording, .options = options, .out = a, .err = err};
    struct nrg_rows_memory *memory = calloc(1, sizeof *memory);
    *a = (struct nrg_attribution){.idle = options->idle, .memory = memory};
    e.z = nrg_normal_half(options->confidence);
    struct nrg_error none = {0};
    int rc = memory ? find_windows(&e) : nrg_fail(err, -ENOMEM, NULL, "out of memory");
    if (!rc)
        rc = nrg_span_catalog_load(&memory->catalog, recording, err);
    if (err && !rc)
        *err = none;
    if (!rc) {
        e.catalog = memory->catalog;
        a->begin_s = (double)e.windows[0].begin_ns * 1e-9;
        for (size_t i = 0; i < e.n_windows; i++)
            a->duration_s += (double)(e.windows[i].end_ns - e.windows[i].begin_ns) * 1e-9;
        rc = prepare(&e);
        if (!rc) {
            set_method(&e);
            rc = sum_rows(&e);
        }
        if (!rc) {
            sum_domains(&e);
            note_spans(&e);
        } else if (!err || !err->code) {
            nrg_fail(err, rc, nrg_recording_path(recording), "cannot attribute: %s", strerror(-rc));
        }
    }
    release_engine(&e);
    if (rc)
        nrg_attribution_release(a);
    return rc;
}

void nrg_attribution_release(struct nrg_attribution *a)
{
    struct nrg_rows_memory *memory = a->memory;
    if (memory) {
        nrg_arena_release(&memory->arena);
        nrg_span_catalog_release(&memory->catalog);
    }
    free(memory);
    free(a->domains);
    free(a->notes);
    nrg_summary_release(&a->summary);
    *a = (struct nrg_attribution){0};
}

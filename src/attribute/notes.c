/*
 * What the user is told about an attribution beside its numbers: what was odd about the spans, what
 * the readings do not cover, whose work counts to spans of others, and where idle power comes from.
 * Notes are short, and say what can be done.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attribute/internal.h"
#include "base/mem.h"
#include "energy/idle.h"
#include "record/format.h"

#define SPANLESS 0.05 /* of the workload's CPU time: less is not worth a note */
#define MOVED    2    /* standard errors of a baseline: so far from it, idle power is another */
#define FAR      1    /* of error and drift together: idle power mostly drifts by less */

/* The reasons that the recording tells; those of earlier versions do not. */
static const char *why_dropped(const struct nrg_recording *recording, char *why, size_t size)
{
    int64_t n;
    size_t at = 0;
    snprintf(why, size, "marked faster than they could be written, or nested too deeply");
    for (size_t i = 0; i < NRG_SPAN_DROPS && at < size; i++)
        if (!nrg_recording_integer(recording, nrg_span_drop_names[i].meta, &n) && n > 0)
            at += (size_t)snprintf(why + at, size - at, "%s%lld %s", at ? ", " : "", (long long)n,
                                   nrg_span_drop_names[i].words);
    return why;
}

/* Notes what was odd about the spans. */
static void note_spans(struct nrg_engine *e)
{
    struct nrg_attribution *a = e->out;
    const struct nrg_span_walk *w = &e->walk;
    a->spans = w->spans;
    a->unclosed = w->unclosed;
    a->unmatched_ends = w->unmatched_ends;
    a->cut = w->cut;
    int64_t dropped = 0;
    char why[256];
    if (!nrg_recording_integer(e->recording, "spans_dropped", &dropped) && dropped > 0) {
        a->dropped = (uint64_t)dropped;
        nrg_attribution_note(a, "dropped spans",
                             "%lld could not be recorded (%s): their time counts to what is around "
                             "them",
                             (long long)dropped, why_dropped(e->recording, why, sizeof why));
    }
    if (!w->spans)
        nrg_attribution_note(a, "spans", "the recording has none: nothing can be attributed");
    if (!a->n_domains)
        nrg_attribution_note(a, "energy", "%s: rows have times only",
                             a->summary.processes_elsewhere
                                 ? "the sensors are those of a captured machine (--root), the "
                                   "spans are not"
                                 : "the recording has none of the time asked for");
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

/* A row by regression has what it used all the same; the total has not. */
static void note_gaps(struct nrg_attribution *a)
{
    double covered = a->summary.total_covered;
    if (a->n_domains && covered < NRG_MOSTLY_COVERED)
        nrg_attribution_note(a, "gaps",
                             "readings cover %.1f %% of the time: the total is too low by what was "
                             "used in the rest, and rows may be more than it",
                             100 * covered);
}

/* Marks that nrg itself made in the program: what it has to say is not printed there. */
static void note_marks(const struct nrg_engine *e)
{
    for (size_t i = 0; i < e->catalog.n_names; i++) {
        const struct nrg_span_name *name = &e->catalog.names[i];
        if (!strcmp(name->kind, "mark") && !strcmp(name->detail, "nrg"))
            nrg_attribution_note(e->out, "spans", "%s", name->text);
    }
}

/* Threads without spans work for those that have one, as far as anybody can tell. */
static void note_spanless(const struct nrg_engine *e)
{
    const struct nrg_cells *c = &e->cells;
    double part = c->workload_s > 0 ? c->spanless_s / c->workload_s : 0;
    if (part > SPANLESS)
        nrg_attribution_note(e->out, "threads without spans",
                             "%.0f %% of the program's CPU time counts to spans that other threads "
                             "had open then: right for a pool that works for them; mark spans in "
                             "threads with work of their own, such as loaders (nrg.span, "
                             "nrg_span_begin)",
                             100 * fmin(part, 1));
}

/* Threads whose process has no rows share the CPU time of those that have no spans. */
static void note_strangers(const struct nrg_engine *e)
{
    const struct nrg_cells *c = &e->cells;
    const struct nrg_span_track *stranger = NULL;
    size_t n = 0;
    for (size_t i = 0; c->has_processes && i < e->catalog.n_tracks; i++) {
        const struct nrg_span_track *track = &e->catalog.tracks[i];
        if (strcmp(track->kind, "thread") != 0 || track->pid <= 0 || c->track_pool[i] ||
            c->group_process[c->track_group[i]])
            continue;
        stranger = track;
        n++;
    }
    if (stranger)
        nrg_attribution_note(e->out, "threads of no process",
                             "%zu with spans (pid %d): the recording has no process of that pid "
                             "and start, so they share the CPU time of processes without spans",
                             n, (int)stranger->pid);
}

/* Idle power that a baseline measured, and a regression took to be another. */
static void note_moved_idle(struct nrg_engine *e, const struct nrg_part *part)
{
    struct nrg_attribution_domain *d = part->out;
    double moved_w = part->baseline_moved_w, was_w = d->idle_w - moved_w;
    if (strcmp(d->idle_source, "baseline") != 0 ||
        !(fabs(moved_w) > MOVED * part->baseline_error_w))
        return;
    nrg_copy(d->idle_source, sizeof d->idle_source, "baseline, fitted");
    if (fabs(moved_w) > FAR * hypot(part->baseline_error_w, NRG_IDLE_DRIFT * was_w))
        nrg_attribution_note(e->out, part->channel->channel.name,
                             "idle power was %.3g W in the baseline, and is %.3g W by the "
                             "regression: more than it mostly drifts by, so what the load drew may "
                             "be in it; compare --method integrate",
                             was_w, d->idle_w);
}

void nrg_note_all(struct nrg_engine *e)
{
    note_spans(e);
    note_gaps(e->out);
    note_spanless(e);
    note_strangers(e);
    for (size_t p = 0; p < e->n_parts; p++)
        note_moved_idle(e, &e->parts[p]);
    note_marks(e);
    nrg_note_remedies(e->out);
}

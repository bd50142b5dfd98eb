/*
 * Which part of the spans' time a part-time sensor missed, on balance (part_time.c).
 *
 * update_grid.h says when it updates; a load that is nearly in step with that drifts through the
 * window by the difference of the periods. A value belongs to the window that ends at the
 * update, or some time before it: several phases are tried, and the worst counts.
 *
 * Every moment has a class: the innermost span. If the windows hold the classes in the proportions
 * of the whole run, they missed nothing that matters. What they have too little of is the result,
 * as a part of the run. Two tracks are two runs of the same length.
 *
 * The same for a gauge that may show one moment of each update: by how much more the classes are
 * met unevenly than by chance. Moments that are nearly in step with a program are worth fewer.
 */
#include "energy/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "energy/updates/update_grid.h"
#include "record/read/span_catalog.h"
#include "record/read/spans.h"

#define PHASES          8
#define DEPTH           64
#define READ_PER_UPDATE 1.9   /* at least, else readings hide when updates were */
#define MOMENT          0.005 /* of an update */
#define HARDLY          0.002 /* of a reading */
#define NEARLY_ALL      0.9

struct class_time {
    double all_ns, seen_ns[PHASES];
};

struct track {
    int64_t names[DEPTH];
    size_t depth;
    int64_t since_ns;
};

struct walk {
    struct nrg_update_grid grid;
    double window_ns;
    int64_t begin_ns, end_ns;
    struct nrg_map track_by_id, class_by_name;
    struct track *tracks;
    size_t n_tracks, cap_tracks;
    struct class_time *classes;
    size_t n_classes, cap_classes;
};

/* Time inside of windows up to t, of those that end at origin - phase + k * period. */
static double seen_up_to(const struct walk *w, size_t phase, double t_ns)
{
    double period = w->grid.period_s * 1e9, shift = period * (double)phase / PHASES;
    double at = t_ns - (w->grid.origin_s * 1e9 - shift - w->window_ns);
    double periods = floor(at / period);
    return periods * w->window_ns + fmin(at - periods * period, w->window_ns);
}

static struct class_time *class_of(struct walk *w, int64_t name)
{
    struct class_time none = {0};
    struct nrg_map_entry *entry = nrg_map_at_id(&w->class_by_name, (uint64_t)name);
    if (!entry)
        return NULL;
    if (!entry->number) {
        if (nrg_append(&w->classes, &w->n_classes, &w->cap_classes, &none, sizeof none))
            return NULL;
        entry->number = (int64_t)w->n_classes;
    }
    return &w->classes[entry->number - 1];
}

static int add_stretch(struct walk *w, const struct track *track, int64_t until_ns)
{
    int64_t from_ns = track->since_ns > w->begin_ns ? track->since_ns : w->begin_ns;
    until_ns = until_ns < w->end_ns ? until_ns : w->end_ns;
    if (!track->depth || from_ns >= until_ns)
        return 0;
    size_t top = track->depth < DEPTH ? track->depth : DEPTH;
    struct class_time *c = class_of(w, track->names[top - 1]);
    if (!c)
        return -ENOMEM;
    double from = (double)(from_ns - w->begin_ns), until = (double)(until_ns - w->begin_ns);
    c->all_ns += until - from;
    for (size_t p = 0; p < PHASES; p++)
        c->seen_ns[p] += seen_up_to(w, p, until) - seen_up_to(w, p, from);
    return 0;
}

static struct track *track_of(struct walk *w, const struct nrg_span_row *row)
{
    struct nrg_map_entry *entry = nrg_map_find_id(&w->track_by_id, (uint64_t)row->track);
    return entry ? &w->tracks[entry->number - 1] : NULL;
}

static int add_event(struct walk *w, const struct nrg_span_row *row)
{
    struct track *track = track_of(w, row);
    if (!track || (row->event != NRG_SPAN_BEGIN && row->event != NRG_SPAN_END))
        return 0;
    int rc = add_stretch(w, track, row->t_ns);
    track->since_ns = row->t_ns;
    if (row->event == NRG_SPAN_END)
        track->depth -= track->depth > 0;
    else if (track->depth++ < DEPTH)
        track->names[track->depth - 1] = row->name;
    return rc;
}

static int add_track(struct walk *w, const struct nrg_span_track *from)
{
    struct track track = {.since_ns = w->begin_ns};
    struct nrg_map_entry *entry = nrg_map_at_id(&w->track_by_id, (uint64_t)from->id);
    if (!entry || nrg_append(&w->tracks, &w->n_tracks, &w->cap_tracks, &track, sizeof track))
        return -ENOMEM;
    entry->number = (int64_t)w->n_tracks;
    return 0;
}

/* The tracks of the GPU, or those of the processors where it has none. */
static int choose_tracks(struct walk *w, struct nrg_recording *recording, const char *domain)
{
    struct nrg_span_catalog catalog;
    struct nrg_error err;
    int rc = nrg_span_catalog_load(&catalog, recording, &err);
    if (rc)
        return rc;
    for (int own = 1; own >= 0 && !w->n_tracks; own--)
        for (size_t i = 0; !rc && i < catalog.n_tracks; i++)
            if (!strcmp(catalog.tracks[i].domain, own ? domain : ""))
                rc = add_track(w, &catalog.tracks[i]);
    nrg_span_catalog_release(&catalog);
    return rc;
}

static int walk_spans(struct walk *w, struct nrg_recording *recording)
{
    struct nrg_span_reader *reader;
    struct nrg_span_row row;
    int rc = nrg_span_reader_new(recording, &reader), more = 0;
    if (rc)
        return rc;
    while (!rc && (more = nrg_span_reader_next(reader, &row)) > 0)
        rc = add_event(w, &row);
    for (size_t i = 0; !rc && i < w->n_tracks; i++)
        rc = add_stretch(w, &w->tracks[i], w->end_ns);
    nrg_span_reader_free(reader);
    return rc ? rc : more;
}

/* What the windows of one phase have too little of; time without a span is a class, too. */
static double missed_share(const struct walk *w, size_t phase)
{
    double length = (double)(w->end_ns - w->begin_ns), tracks = (double)w->n_tracks;
    double all = tracks * length, rest_all = all, missed = 0;
    double seen = tracks * (seen_up_to(w, phase, length) - seen_up_to(w, phase, 0));
    double rest_seen = seen;
    for (size_t i = 0; i < w->n_classes; i++) {
        const struct class_time *c = &w->classes[i];
        rest_all -= c->all_ns;
        rest_seen -= c->seen_ns[phase];
        missed += fmax(0, c->all_ns / all - c->seen_ns[phase] / seen);
    }
    return missed + fmax(0, rest_all / all - rest_seen / seen);
}

/* How unevenly windows of one phase met the classes, to what so many independent ones would. */
static double unevenness(const struct walk *w, size_t phase)
{
    double length = (double)(w->end_ns - w->begin_ns), tracks = (double)w->n_tracks;
    double all = tracks * length, rest = 1, rest_off = 0, off2 = 0, chance = 0;
    double seen = tracks * (seen_up_to(w, phase, length) - seen_up_to(w, phase, 0));
    double windows = all / (w->grid.period_s * 1e9);
    for (size_t i = 0; i < w->n_classes; i++) {
        double part = w->classes[i].all_ns / all, off = w->classes[i].seen_ns[phase] / seen - part;
        rest -= part;
        rest_off -= off;
        off2 += off * off;
        chance += part * (1 - part) / windows;
    }
    chance += fmax(rest, 0) * (1 - rest) / windows;
    return chance > 0 ? (off2 + rest_off * rest_off) / chance : 0;
}

/* Readings that hardly change, but for those at a run's ends, do not show when they were updated.
 */
static bool never_changes(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns)
{
    double middle_w = tl->n ? nrg_point_gauge(tl, tl->n / 2) : NAN, n = 0, alike = 0;
    for (size_t i = 0; i < tl->n; i++) {
        if (nrg_point_ns(tl, i) < begin_ns || nrg_point_ns(tl, i) > end_ns)
            continue;
        n++;
        alike += fabs(nrg_point_gauge(tl, i) - middle_w) < HARDLY * middle_w;
    }
    return n > 0 && alike >= NEARLY_ALL * n;
}

/* When the sensor updates: as its readings show, or where they never change, as its driver says,
 * from any moment on. A program that is in step with that shows the same power at each update. */
static bool find_updates(struct walk *w, const struct nrg_channel *c, const struct nrg_timeline *tl)
{
    if (nrg_update_grid_fit(tl, w->begin_ns, w->end_ns, (double)c->update_ns, READ_PER_UPDATE,
                            &w->grid))
        return true;
    w->grid = (struct nrg_update_grid){.period_s = (double)c->update_ns * 1e-9};
    return never_changes(tl, w->begin_ns, w->end_ns);
}

/* Walks through the spans with windows of that length; false: no spans, or it is not known when the
 * sensor updates. Release it in any case. */
static bool see_classes(struct walk *w, struct nrg_frame *frame, const struct nrg_channel *c,
                        const struct nrg_timeline *tl)
{
    if (!nrg_recording_has_spans(frame->recording) || !find_updates(w, c, tl) ||
        w->grid.period_s * 1e9 <= w->window_ns)
        return false;
    int rc = choose_tracks(w, frame->recording, c->name);
    if (!rc)
        rc = walk_spans(w, frame->recording);
    return !rc && w->n_classes;
}

static void release_walk(struct walk *w)
{
    nrg_map_release(&w->track_by_id);
    nrg_map_release(&w->class_by_name);
    free(w->tracks);
    free(w->classes);
}

double nrg_unseen_share(struct nrg_frame *frame, const struct nrg_channel *c,
                        const struct nrg_timeline *tl, const struct nrg_summary *s)
{
    struct walk w = {
        .window_ns = (double)c->window_ns, .begin_ns = s->begin_ns, .end_ns = s->end_ns};
    bool seen = see_classes(&w, frame, c, tl);
    double worst = NAN;
    for (size_t p = 0; seen && p < PHASES; p++)
        worst = fmax(worst, missed_share(&w, p));
    release_walk(&w);
    return worst;
}

double nrg_uneven_moments(struct nrg_frame *frame, const struct nrg_channel *c,
                          const struct nrg_timeline *tl, const struct nrg_summary *s)
{
    struct walk w = {
        .window_ns = MOMENT * (double)c->update_ns, .begin_ns = s->begin_ns, .end_ns = s->end_ns};
    bool seen = c->update_ns > 0 && see_classes(&w, frame, c, tl);
    double sum = 0;
    for (size_t p = 0; seen && p < PHASES; p++)
        sum += unevenness(&w, p);
    release_walk(&w);
    return seen ? sum / PHASES : 0;
}

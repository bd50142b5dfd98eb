/*
 * Places the spans of a layer file on the clock of a recording (internal.h). A date is interpolated
 * between the two clock pairs around it, which follows a wall clock that was slewed during the
 * run; where the clock was stepped, the nearer pair counts.
 *
 * A file without dates counts from a start of its own. Its zero is put at the beginning of the
 * recording (of its first run), or at the zero of a recording that has no wall clock either;
 * --offset is added to that.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/search.h"
#include "import/align.h"
#include "import/internal.h"
#include "import/layers/read.h"
#include "sensors/channel.h"

#define MOST_STEPS     ((int64_t)1 << 20)
#define ALIGN_RANGE_S  10
#define STEP_TOLERANCE NRG_NS_PER_MS /* per second between pairs: faster than any slewing */

struct clock_map {
    const struct nrg_clock_pair *pairs;
    size_t n;
};

/* Monotonic time of a date. */
static int64_t mono_of(const struct clock_map *map, int64_t real_ns)
{
    /* The first pair after the date, by real time, which may have been stepped. */
    size_t at = nrg_count_up_to(&map->pairs->real_ns, map->n, sizeof *map->pairs, real_ns);
    const struct nrg_clock_pair *after = at < map->n ? &map->pairs[at] : NULL;
    const struct nrg_clock_pair *before = at ? &map->pairs[at - 1] : after;
    after = after ? after : before;
    int64_t mono = after->mono_ns - before->mono_ns, real = after->real_ns - before->real_ns;
    if (mono <= 0 || real <= 0 || llabs(mono - real) > STEP_TOLERANCE * (1 + mono / NRG_NS_PER_S)) {
        bool nearer = llabs(real_ns - before->real_ns) <= llabs(real_ns - after->real_ns);
        const struct nrg_clock_pair *pair = nearer ? before : after;
        return real_ns - pair->real_ns + pair->mono_ns;
    }
    return before->mono_ns +
           (int64_t)llround((double)(real_ns - before->real_ns) * (double)mono / (double)real);
}

struct move {
    const struct clock_map *map; /* NULL: only the shift counts */
    int64_t base_ns, shift_ns;
};

static int move_span(void *arg, struct nrg_sink_span *span)
{
    const struct move *m = arg;
    int64_t *times[] = {&span->begin_ns, &span->end_ns};
    for (size_t i = 0; i < 2; i++) {
        if (*times[i] == NRG_MISSING)
            continue;
        if (__builtin_add_overflow(*times[i], m->base_ns, times[i]))
            return -ERANGE;
        if (m->map)
            *times[i] = mono_of(m->map, *times[i]);
        if (__builtin_add_overflow(*times[i], m->shift_ns, times[i]))
            return -ERANGE;
    }
    return span->end_ns != NRG_MISSING && span->end_ns < span->begin_ns ? -ERANGE : 0;
}

/* Where the recording begins: the zero of files that have no dates. */
static int64_t zero_of(struct nrg_recording *recording)
{
    size_t n;
    int64_t first_ns, last_ns;
    const struct nrg_run *runs = nrg_recording_runs(recording, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(runs[i].kind, "baseline") != 0)
            return runs[i].begin_ns;
    return nrg_recording_extent(recording, &first_ns, &last_ns) ? 0 : first_ns;
}

static int make_activity(const struct nrg_span_sink *sink, const struct nrg_power_series *power,
                         struct nrg_activity *activity)
{
    int64_t first_ns, last_ns;
    int rc = nrg_span_sink_extent(sink, &first_ns, &last_ns);
    if (rc)
        return rc;
    /* The idle time after the last span is included: a sensor's averaging decays into it. */
    int64_t length_ns = last_ns - first_ns + (power->end_ns[power->n - 1] - power->begin_ns[0]);
    int64_t step_ns = power->period_ns / 8 > 0 ? power->period_ns / 8 : 1;
    if (length_ns / step_ns >= MOST_STEPS)
        step_ns = length_ns / MOST_STEPS + 1;
    *activity = (struct nrg_activity){.begin_ns = first_ns, .step_ns = step_ns};
    activity->n = (size_t)(length_ns / step_ns) + 1;
    activity->busy = nrg_calloc(activity->n, sizeof *activity->busy);
    return activity->busy
               ? nrg_span_sink_activity(sink, first_ns, step_ns, activity->busy, activity->n)
               : -ENOMEM;
}

/* The GPU's domain when the activity comes from spans of a GPU. */
static const char *domain_of(const struct nrg_layer_import *im)
{
    if (im->options->domain)
        return im->options->domain;
    for (size_t i = 0; i < im->sink->n_descriptions; i++)
        if (!strcmp(im->sink->descriptions[i].kind, "gpu"))
            return im->sink->descriptions[i].domain;
    return NULL;
}

static void search_range(const struct nrg_layer_import *im, const struct nrg_power_series *power,
                         int64_t first_ns, int64_t last_ns, int64_t *low_ns, int64_t *high_ns)
{
    double range_s = im->options->align_range_s;
    int64_t half_ns = (last_ns - first_ns) / 2;
    if (range_s > 0 || im->file->wall_clock || im->options->has_offset) {
        range_s = range_s > 0 ? range_s : ALIGN_RANGE_S;
        *high_ns = (int64_t)llround(fmin(range_s, 1e8) * 1e9);
        *low_ns = -*high_ns;
        return;
    }
    /* Everywhere that at least half of the file overlaps the power. */
    *low_ns = power->begin_ns[0] - first_ns - half_ns;
    *high_ns = power->end_ns[power->n - 1] - last_ns + half_ns;
}

static void note_alignment(struct nrg_layer_import *im, const struct nrg_power_series *power,
                           const struct nrg_alignment *found)
{
    nrg_layer_note(im,
                   "aligned with the power of %s: moved by %+.6f s +- %.6f s (correlation %.2f)",
                   power->name, (double)found->offset_ns / 1e9, (double)found->uncertainty_ns / 1e9,
                   found->correlation);
    if (found->lag_fitted)
        nrg_layer_note(im, "for that the sensor's averaging was taken as %.3f s, which fits best",
                       (double)found->lag_ns / 1e9);
}

/* Spans are on the recording's clock already, as far as it is known. */
static int align_spans(struct nrg_layer_import *im, struct nrg_recording *recording,
                       struct nrg_error *err)
{
    struct nrg_power_series power = {0};
    struct nrg_activity activity = {0};
    struct nrg_alignment found = {0};
    int64_t first_ns = 0, last_ns = 0, low_ns, high_ns;
    int rc = nrg_power_series_load(&power, recording, domain_of(im), err);
    if (rc)
        return rc;
    rc = make_activity(im->sink, &power, &activity);
    if (rc)
        nrg_fail(err, rc, im->file->path, "cannot be aligned: %s", strerror(-rc));
    if (!rc) {
        nrg_span_sink_extent(im->sink, &first_ns, &last_ns);
        search_range(im, &power, first_ns, last_ns, &low_ns, &high_ns);
        rc = nrg_align(&power, &activity, low_ns, high_ns, &found, err);
        if (rc && err)
            nrg_copy(err->where, sizeof err->where, im->file->path);
    }
    struct move move = {.shift_ns = found.offset_ns};
    if (!rc && (rc = nrg_span_sink_edit(im->sink, move_span, &move)))
        nrg_fail(err, rc, im->file->path, "times are out of range after aligning");
    if (!rc)
        note_alignment(im, &power, &found);
    im->file->correlation = found.correlation;
    im->file->offset_uncertainty_ns = found.uncertainty_ns;
    im->file->placed = "align";
    free(activity.busy);
    nrg_power_series_release(&power);
    return rc;
}

static int place_alone(struct nrg_layer_import *im, struct nrg_error *err)
{
    const struct nrg_import_join_options *o = im->options;
    struct move move = {.base_ns = im->base_ns, .shift_ns = o->has_offset ? o->offset_ns : 0};
    if (o->align)
        return nrg_fail(err, -EINVAL, im->file->path,
                        "there is no power to align with: give --into or --power-log");
    im->file->placed = o->has_offset ? "offset" : im->file->wall_clock ? "clock" : "none";
    return nrg_span_sink_edit(im->sink, move_span, &move)
               ? nrg_fail(err, -ERANGE, im->file->path, "times are out of range")
               : 0;
}

/* Times since the machine was started are the recording's own, if they lie in it: another
 * machine's, or those from before a restart, would not. A machine that slept in between is ahead.
 */
static bool is_same_clock(const struct nrg_layer_import *im, struct nrg_recording *recording,
                          const struct clock_map *map)
{
    int64_t first_ns, last_ns, file_first_ns, file_last_ns;
    return im->file->since_boot && map->n &&
           !nrg_recording_extent(recording, &first_ns, &last_ns) &&
           !nrg_span_sink_extent(im->sink, &file_first_ns, &file_last_ns) &&
           file_last_ns >= first_ns && file_first_ns <= last_ns;
}

/* By dates and the given offset; align_spans then starts from there. */
static int place_first(struct nrg_layer_import *im, struct nrg_recording *recording,
                       const struct clock_map *map, struct nrg_error *err)
{
    const struct nrg_import_join_options *o = im->options;
    bool dates = im->file->wall_clock && map->n;
    bool same = !dates && !o->has_offset && is_same_clock(im, recording, map);
    if (same)
        nrg_layer_note(im, "its times count since the machine was started: taken as the "
                           "recording's clock");
    if (!dates && !o->has_offset && !o->align && !same)
        return nrg_fail(
            err, -EINVAL, im->file->path,
            im->file->wall_clock
                ? "has dates, but the times of the power are not: give --offset SECONDS "
                  "or --align"
                : "counts time from a start of its own: give --offset SECONDS (from "
                  "the beginning of the recording) or --align");
    int64_t zero_ns = dates || same || !map->n ? 0 : zero_of(recording);
    struct move move = {.map = dates ? map : NULL,
                        .base_ns = im->base_ns,
                        .shift_ns = zero_ns + (o->has_offset ? o->offset_ns : 0)};
    im->file->placed = o->has_offset ? "offset" : "clock";
    return nrg_span_sink_edit(im->sink, move_span, &move)
               ? nrg_fail(err, -ERANGE, im->file->path, "times are out of range with that offset")
               : 0;
}

int nrg_import_place(struct nrg_layer_import *im, struct nrg_recording *recording,
                     struct nrg_error *err)
{
    struct clock_map map = {0};
    int64_t first_ns = 0, last_ns = 0, moved_first_ns = 0, moved_last_ns = 0;
    nrg_span_sink_extent(im->sink, &first_ns, &last_ns);
    if (recording)
        map.pairs = nrg_recording_clocks(recording, &map.n);
    int rc = recording ? place_first(im, recording, &map, err) : place_alone(im, err);
    if (!rc && recording && im->options->align)
        rc = align_spans(im, recording, err);
    if (rc)
        return rc;
    nrg_span_sink_extent(im->sink, &moved_first_ns, &moved_last_ns);
    im->file->offset_ns =
        (moved_first_ns + moved_last_ns) / 2 - ((first_ns + last_ns) / 2 + im->base_ns);
    return 0;
}

/*
 * See log.h. Runs go into the sink in the order of the file; of each cycle only its extent is kept.
 * A layout that needs more (cycles without times are laid end to end) is a second pass over the
 * sink, not a second copy of the log.
 */
#include "import/layers/log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sensors/channel.h"

#define MAX_MS 1e12 /* thirty years */

struct nrg_layer_cycle {
    int64_t first_ns, last_ns; /* of the windows */
    int64_t stamp_ns;          /* the first end: when TensorRT began to report */
    int64_t sum_ns;            /* of the run times */
    int64_t at_ns;             /* where the next layer goes */
};

int nrg_layer_log_init(struct nrg_layer_log *log, struct nrg_layer_import *im)
{
    *log = (struct nrg_layer_log){.im = im, .track = nrg_layer_track(im, "layers")};
    return log->track < 0 ? (int)log->track : 0;
}

void nrg_layer_log_release(struct nrg_layer_log *log)
{
    free(log->cycles);
    log->cycles = NULL;
}

int64_t nrg_layer_log_name(struct nrg_layer_log *log, const char *text, size_t len)
{
    log->layers++;
    return nrg_span_sink_name(log->im->sink, NRG_KIND_LAYER, text, len, "");
}

int64_t nrg_layer_window_ns(double duration_ms)
{
    return llround(duration_ms * 1e6);
}

static struct nrg_layer_cycle *cycle_of(struct nrg_layer_log *log, size_t cycle)
{
    if (nrg_reserve(&log->cycles, &log->cap_cycles, cycle + 1, sizeof *log->cycles))
        return NULL;
    for (; log->n_cycles <= cycle; log->n_cycles++)
        log->cycles[log->n_cycles] = (struct nrg_layer_cycle){
            .first_ns = INT64_MAX, .last_ns = INT64_MIN, .stamp_ns = INT64_MAX};
    return &log->cycles[cycle];
}

int nrg_layer_log_run(struct nrg_layer_log *log, size_t cycle, int64_t layer, int64_t begin_ns,
                      int64_t end_ns, double duration_ms)
{
    struct nrg_layer_cycle *c = cycle_of(log, cycle);
    if (!c)
        return -ENOMEM;
    if (!(duration_ms >= 0 && duration_ms < MAX_MS)) {
        log->bad++;
        return 0;
    }
    bool timed = begin_ns != NRG_MISSING;
    struct nrg_sink_span span = {.begin_ns = timed ? begin_ns : 0,
                                 .end_ns = timed ? end_ns : nrg_layer_window_ns(duration_ms),
                                 .track = log->track,
                                 .name = layer,
                                 .number = (int64_t)cycle + 1,
                                 .path = NRG_MISSING,
                                 .duration_ns = nrg_layer_window_ns(duration_ms)};
    int rc = nrg_layer_span(log->im, &span, &log->bad);
    if (rc <= 0)
        return rc;
    c->first_ns = span.begin_ns < c->first_ns ? span.begin_ns : c->first_ns;
    c->last_ns = span.end_ns > c->last_ns ? span.end_ns : c->last_ns;
    c->stamp_ns = span.end_ns < c->stamp_ns ? span.end_ns : c->stamp_ns;
    c->sum_ns += span.duration_ns;
    log->runs++;
    return 0;
}

/* One layer after the other, in the file's order. */
static int pack_run(void *arg, struct nrg_sink_span *span)
{
    struct nrg_layer_log *log = arg;
    struct nrg_layer_cycle *c = &log->cycles[span->number - 1];
    span->begin_ns = c->at_ns;
    span->end_ns = c->at_ns += span->duration_ns;
    return 0;
}

static int pack_cycles(struct nrg_layer_log *log, bool timed)
{
    int64_t at_ns = 0;
    for (size_t i = 0; i < log->n_cycles; i++) {
        struct nrg_layer_cycle *c = &log->cycles[i];
        bool empty = c->first_ns == INT64_MAX;
        c->at_ns = timed && !empty ? c->stamp_ns - c->sum_ns : at_ns;
        if (!empty) {
            c->first_ns = c->at_ns;
            c->last_ns = c->at_ns + c->sum_ns;
        }
        at_ns = c->at_ns + c->sum_ns;
    }
    return nrg_span_sink_edit(log->im->sink, pack_run, log);
}

/* Each layer on a track of its own, below a cycle that has no span. */
struct spread {
    int64_t *track_of; /* by name */
    int64_t path;
};

static int spread_run(void *arg, struct nrg_sink_span *span)
{
    struct spread *s = arg;
    span->track = s->track_of[span->name];
    span->path = s->path;
    return 0;
}

static int spread_layers(struct nrg_layer_log *log)
{
    struct nrg_span_sink *sink = log->im->sink;
    struct spread s;
    size_t n = sink->names.n;
    struct nrg_span_track track = sink->descriptions[log->track - 1];
    int64_t cycle = nrg_span_sink_name(sink, NRG_KIND_CYCLE, "cycle", 5, "");
    s.path = cycle < 0 ? cycle : nrg_span_sink_path(sink, 0, cycle);
    s.track_of = nrg_calloc(n + 1, sizeof *s.track_of);
    int rc = !s.track_of ? -ENOMEM : s.path < 0 ? (int)s.path : 0;
    for (size_t i = 1; !rc && i <= n; i++) {
        /* The number in front keeps long names apart that are equal in what fits. */
        struct nrg_span_name name = nrg_span_sink_name_of(sink, (int64_t)i);
        snprintf(track.name, sizeof track.name, "%zu %.100s", i, name.text);
        s.track_of[i] = nrg_span_sink_track(sink, &track);
        rc = s.track_of[i] < 0 ? (int)s.track_of[i] : 0;
    }
    if (!rc)
        rc = nrg_span_sink_edit(sink, spread_run, &s);
    free(s.track_of);
    return rc;
}

static bool cycles_overlap(const struct nrg_layer_log *log)
{
    int64_t last_ns = INT64_MIN;
    for (size_t i = 0; i < log->n_cycles; i++) {
        if (log->cycles[i].first_ns == INT64_MAX)
            continue;
        if (log->cycles[i].first_ns < last_ns)
            return true;
        last_ns = log->cycles[i].last_ns;
    }
    return false;
}

/* Moves the last records to the front: of two spans of equal times the first is the outer one. */
static int put_first(struct nrg_span_sink *sink, size_t n_last)
{
    struct nrg_span_record *last = malloc((n_last + 1) * sizeof *last);
    if (!last)
        return -ENOMEM;
    memcpy(last, sink->records + sink->n - n_last, n_last * sizeof *last);
    memmove(sink->records + n_last, sink->records, (sink->n - n_last) * sizeof *last);
    memcpy(sink->records, last, n_last * sizeof *last);
    free(last);
    return 0;
}

static int add_cycles(struct nrg_layer_log *log)
{
    struct nrg_span_sink *sink = log->im->sink;
    size_t n_layers = sink->n;
    int64_t name = nrg_span_sink_name(sink, NRG_KIND_CYCLE, "cycle", 5, "");
    int rc = name < 0 ? (int)name : 0;
    for (size_t i = 0; !rc && i < log->n_cycles; i++) {
        const struct nrg_layer_cycle *c = &log->cycles[i];
        const struct nrg_sink_span span = {.begin_ns = c->first_ns,
                                           .end_ns = c->last_ns,
                                           .track = log->track,
                                           .name = name,
                                           .number = (int64_t)i + 1,
                                           .path = NRG_MISSING};
        if (c->first_ns != INT64_MAX)
            rc = nrg_span_sink_span(sink, &span);
    }
    return rc ? rc : put_first(sink, sink->n - n_layers);
}

static void add_notes(struct nrg_layer_log *log, int64_t overlaps, bool timed, bool packed)
{
    struct nrg_layer_import *im = log->im;
    nrg_layer_count(im, log->bad, "run", "runs", "of a layer without a usable time were left out");
    nrg_layer_count(im, log->uneven, "layer has", "layers have", "fewer cycles than others");
    if (!timed)
        nrg_layer_note(im, "no time stamps: cycles are laid end to end from 0");
    else if (packed)
        nrg_layer_note(im, "packed: layers of a cycle are laid end to end, up to its first time "
                           "stamp");
    if (overlaps)
        nrg_layer_note(im, "windows of layers overlap: each layer has a track of its own%s",
                       packed || !log->burst ? "" : " (--layout packed lays them end to end)");
}

static int lay_out(struct nrg_layer_log *log, bool timed, bool packed, int64_t *overlaps)
{
    int rc = packed ? pack_cycles(log, timed) : 0;
    if (rc)
        return rc;
    *overlaps = nrg_span_sink_overlaps(log->im->sink, log->track);
    if (*overlaps < 0)
        return (int)*overlaps;
    bool crossed = cycles_overlap(log);
    *overlaps += crossed && !*overlaps;
    return *overlaps ? spread_layers(log) : add_cycles(log);
}

int nrg_layer_log_finish(struct nrg_layer_log *log, bool timed, struct nrg_error *err)
{
    bool packed = !timed || (log->burst && log->im->options->layout == NRG_LAYOUT_PACKED);
    int64_t overlaps = 0;
    int rc = log->runs ? lay_out(log, timed, packed, &overlaps) : 0;
    log->im->file->cycles = log->n_cycles;
    log->im->file->wall_clock = timed;
    add_notes(log, overlaps, timed, packed);
    return rc == -ENOMEM ? nrg_layer_out_of_memory(log->im, err)
           : rc          ? nrg_fail(err, rc, log->im->file->path, "times out of range")
                         : 0;
}

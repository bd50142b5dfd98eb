/*
 * A recording as a trace for chrome://tracing and Perfetto: a row per track with its spans, a
 * counter per energy domain with its power. Streamed: memory is one chunk per series and the
 * spans that are open, whatever the length.
 *
 * Complete events ("X") are written when a span ends, so they are not in order of their beginning;
 * the viewers sort. A counter's power stands where its interval begins, because viewers hold a
 * value until the next; readings that show no change yet (a counter that is read more often than
 * it moves) wait for the one that does.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "energy/timeline.h"
#include "record/read/cursor.h"
#include "record/read/span_catalog.h"
#include "record/read/spans.h"
#include "record/read/still.h"
#include "report/attribution/report.h"
#include "report/json_text.h"

struct open_span {
    int64_t t_ns, name, value;
};

struct track_state {
    struct open_span *open;
    size_t n, cap;
};

struct trace {
    struct nrg_recording *recording;
    const struct nrg_trace_options *options;
    struct nrg_trace_result *result;
    FILE *out;
    struct nrg_span_catalog catalog;
    struct track_state *tracks; /* per track of the catalog */
    double *counts;             /* per name of the catalog: sum so far */
    int64_t last_ns;            /* of the span events */
    bool any;                   /* an event was written */
};

/* ---- JSON by hand: an event is one line, and there may be tens of millions ---- */

/* Microseconds with all nanoseconds. */
static void put_us(FILE *out, int64_t ns)
{
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    fprintf(out, "%s%" PRIu64 ".%03" PRIu64, ns < 0 ? "-" : "", size / 1000, size % 1000);
}

static void begin_event(struct trace *t, const char *phase, const char *name)
{
    fputs(t->any ? ",\n{\"ph\":\"" : "\n{\"ph\":\"", t->out);
    t->any = true;
    fputs(phase, t->out);
    fputs("\",\"name\":", t->out);
    nrg_json_put_text(t->out, name);
}

static void put_place(struct trace *t, const struct nrg_span_track *track)
{
    fprintf(t->out, ",\"pid\":%d,\"tid\":%" PRId64, (int)track->pid, track->id);
}

static void put_time(struct trace *t, int64_t t_ns)
{
    fputs(",\"ts\":", t->out);
    put_us(t->out, t_ns - t->options->begin_ns);
}

/* ---- names of processes and tracks ---- */

static void end_naming(struct trace *t, const char *name)
{
    fputs(",\"args\":{\"name\":", t->out);
    nrg_json_put_text(t->out, name);
    fputs("}}", t->out);
}

static void name_process(struct trace *t, int pid, const char *name)
{
    begin_event(t, "M", "process_name");
    fprintf(t->out, ",\"pid\":%d", pid);
    end_naming(t, name);
}

static const char *command_of(const struct nrg_recording *recording, int pid)
{
    size_t n;
    const struct nrg_process_info *processes = nrg_recording_processes(recording, &n);
    for (size_t i = 0; i < n; i++)
        if (processes[i].pid == pid)
            return processes[i].command[0] ? processes[i].command : processes[i].name;
    return NULL;
}

static void name_tracks(struct trace *t)
{
    name_process(t, 0, "power");
    for (size_t i = 0; i < t->catalog.n_tracks; i++) {
        const struct nrg_span_track *track = &t->catalog.tracks[i];
        const char *command = track->pid > 0 ? command_of(t->recording, track->pid) : NULL;
        bool first = command != NULL;
        for (size_t k = 0; k < i; k++)
            first &= t->catalog.tracks[k].pid != track->pid;
        if (first)
            name_process(t, track->pid, command);
        begin_event(t, "M", "thread_name");
        put_place(t, track);
        char name[200];
        if (track->name[0])
            nrg_copy(name, sizeof name, track->name);
        else
            snprintf(name, sizeof name, "%s %d", track->kind, (int)track->tid);
        end_naming(t, name);
    }
}

/* ---- power ---- */

struct power {
    const struct nrg_recorded_channel *channel;
    bool seen, lost; /* lost: its register could not be read */
    int64_t t_ns, raw;
    char name[80];
};

static void put_power(struct trace *t, const struct power *p, int64_t t_ns, double power_w)
{
    if (!isfinite(power_w) || t_ns < t->options->begin_ns || t_ns > t->options->end_ns)
        return;
    begin_event(t, "C", p->name);
    fputs(",\"pid\":0", t->out);
    put_time(t, t_ns);
    fprintf(t->out, ",\"args\":{\"W\":%.9g}}", power_w);
}

static void power_reading(struct trace *t, struct power *p, int64_t t_ns, int64_t raw)
{
    const struct nrg_channel *c = &p->channel->channel;
    if (c->kind == NRG_GAUGE) {
        put_power(t, p, t_ns, (double)raw * c->scale);
        return;
    }
    int64_t dt_ns = t_ns - p->t_ns;
    if (nrg_is_still(t->recording, p->channel, t_ns) ||
        (p->seen && raw == p->raw && dt_ns < NRG_NS_PER_S))
        return;
    double step = p->seen && dt_ns > 0
                      ? nrg_counted_step(t->recording, p->channel, p->raw, raw, p->t_ns, t_ns, NULL)
                      : -1;
    p->lost = p->seen && nrg_counter_is_lost(p->lost, step);
    if (step >= 0 && !p->lost)
        put_power(t, p, p->t_ns, step * c->scale * 1e9 / (double)dt_ns);
    p->seen = true;
    p->t_ns = t_ns;
    p->raw = raw;
}

/* Energy counters, and power gauges without a counter of the same name. */
static bool shows_power(const struct nrg_recorded_channel *channels, size_t n, size_t i)
{
    const struct nrg_channel *c = &channels[i].channel;
    if (c->quantity == NRG_ENERGY)
        return c->kind == NRG_COUNTER;
    for (size_t k = 0; c->quantity == NRG_POWER && k < n; k++)
        if (channels[k].channel.quantity == NRG_ENERGY && channels[k].channel.kind == NRG_COUNTER &&
            !strcmp(channels[k].channel.name, c->name))
            return false;
    return c->quantity == NRG_POWER && c->kind == NRG_GAUGE;
}

static size_t find_powers(const struct nrg_recording *recording, struct power *powers)
{
    size_t n, n_powers = 0;
    const struct nrg_recorded_channel *channels = nrg_recording_channels(recording, &n);
    for (size_t i = 0; i < n; i++) {
        if (!shows_power(channels, n, i))
            continue;
        struct power *p = &powers[n_powers++];
        *p = (struct power){.channel = &channels[i]};
        snprintf(p->name, sizeof p->name, "%s%s", channels[i].channel.name,
                 channels[i].channel.provenance == NRG_ESTIMATED ? " (estimated)" : "");
    }
    return n_powers;
}

static int put_powers(struct trace *t)
{
    size_t n;
    nrg_recording_channels(t->recording, &n);
    struct power *powers = nrg_calloc(n + 1, sizeof *powers);
    struct nrg_cursor *cursor = NULL;
    struct nrg_cursor_row row;
    int rc = powers ? nrg_cursor_open(t->recording, 1u << NRG_SAMPLES, &cursor) : -ENOMEM;
    size_t n_powers = rc ? 0 : find_powers(t->recording, powers);
    for (size_t i = 0; !rc && i < n_powers; i++)
        rc = nrg_stills_find(t->recording, powers[i].channel->series);
    while (!rc && !ferror(t->out) && (rc = nrg_cursor_next(cursor, &row)) > 0) {
        rc = 0;
        for (size_t i = 0; i < n_powers; i++) {
            const struct nrg_recorded_channel *c = powers[i].channel;
            int64_t raw = c->series == row.series && c->column < row.n_columns
                              ? row.cells[c->column]
                              : NRG_MISSING;
            if (raw != NRG_MISSING)
                power_reading(t, &powers[i], row.t_ns, raw);
        }
    }
    nrg_cursor_free(cursor);
    free(powers);
    return rc;
}

/* ---- spans ---- */

static void put_span(struct trace *t, const struct nrg_span_track *track,
                     const struct open_span *span, int64_t end_ns, bool closed)
{
    const struct nrg_span_name *name = nrg_span_catalog_name(&t->catalog, span->name);
    if (end_ns < t->options->begin_ns || span->t_ns > t->options->end_ns)
        return;
    if (t->options->limit && t->result->spans >= t->options->limit) {
        t->result->left_out++;
        return;
    }
    t->result->spans++;
    begin_event(t, "X", name ? name->text : "?");
    if (name) {
        fputs(",\"cat\":", t->out);
        nrg_json_put_text(t->out, name->kind);
    }
    put_place(t, track);
    put_time(t, span->t_ns);
    fputs(",\"dur\":", t->out);
    put_us(t->out, end_ns > span->t_ns ? end_ns - span->t_ns : 0);
    fputs(",\"args\":{", t->out);
    const char *comma = "";
    if (name && name->detail[0]) {
        fputs("\"detail\":", t->out);
        nrg_json_put_text(t->out, name->detail);
        comma = ",";
    }
    if (span->value != NRG_MISSING) {
        fprintf(t->out, "%s\"number\":%" PRId64, comma, span->value);
        comma = ",";
    }
    fprintf(t->out, "%s}}", closed ? "" : comma[0] ? ",\"closed\":false" : "\"closed\":false");
}

static void put_mark(struct trace *t, const struct nrg_span_track *track,
                     const struct nrg_span_row *row)
{
    const struct nrg_span_name *name = nrg_span_catalog_name(&t->catalog, row->name);
    bool count = row->event == NRG_SPAN_COUNT;
    if (!name || row->t_ns < t->options->begin_ns || row->t_ns > t->options->end_ns)
        return;
    begin_event(t, count ? "C" : "i", name->text);
    put_place(t, track);
    put_time(t, row->t_ns);
    if (count) {
        double *sum = &t->counts[name - t->catalog.names];
        *sum += row->value == NRG_MISSING ? 0 : (double)row->value;
        fprintf(t->out, ",\"args\":{\"sum\":%.15g}}", *sum);
    } else {
        fputs(",\"s\":\"t\"}", t->out);
    }
}

static int span_event(struct trace *t, const struct nrg_span_row *row)
{
    const struct nrg_span_track *track = nrg_span_catalog_track(&t->catalog, row->track);
    if (!track)
        return 0;
    struct track_state *state = &t->tracks[track - t->catalog.tracks];
    t->last_ns = row->t_ns > t->last_ns ? row->t_ns : t->last_ns;
    if (row->event == NRG_SPAN_BEGIN) {
        struct open_span span = {row->t_ns, row->name, row->value};
        return nrg_append(&state->open, &state->n, &state->cap, &span, sizeof span);
    }
    if (row->event != NRG_SPAN_END)
        put_mark(t, track, row);
    else if (state->n) /* an end without a begin is not an event that a viewer could place */
        put_span(t, track, &state->open[--state->n], row->t_ns, true);
    return 0;
}

static void close_open(struct trace *t)
{
    for (size_t i = 0; i < t->catalog.n_tracks; i++)
        while (t->tracks[i].n)
            put_span(t, &t->catalog.tracks[i], &t->tracks[i].open[--t->tracks[i].n], t->last_ns,
                     false);
}

static int put_spans(struct trace *t)
{
    struct nrg_span_reader *reader = NULL;
    struct nrg_span_row row;
    int rc = nrg_span_reader_new(t->recording, &reader);
    while (!rc && !ferror(t->out) && (rc = nrg_span_reader_next(reader, &row)) > 0)
        rc = span_event(t, &row);
    nrg_span_reader_free(reader);
    if (!rc)
        close_open(t);
    return rc;
}

static int write_events(struct trace *t)
{
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", t->out);
    name_tracks(t);
    int rc = put_powers(t);
    if (!rc)
        rc = put_spans(t);
    fputs("\n]}\n", t->out);
    return rc;
}

int nrg_attribution_trace(struct nrg_recording *recording, const struct nrg_trace_options *options,
                          FILE *out, struct nrg_trace_result *result, struct nrg_error *err)
{
    struct trace t = {.recording = recording, .options = options, .result = result, .out = out};
    *result = (struct nrg_trace_result){0};
    int rc = nrg_span_catalog_load(&t.catalog, recording, err);
    if (rc)
        return rc;
    t.tracks = nrg_calloc(t.catalog.n_tracks + 1, sizeof *t.tracks);
    t.counts = nrg_calloc(t.catalog.n_names + 1, sizeof *t.counts);
    rc = t.tracks && t.counts ? write_events(&t) : -ENOMEM;
    if (rc)
        nrg_fail(err, rc, nrg_recording_path(recording), "cannot be read: %s", strerror(-rc));
    for (size_t i = 0; t.tracks && i < t.catalog.n_tracks; i++)
        free(t.tracks[i].open);
    free(t.tracks);
    free(t.counts);
    nrg_span_catalog_release(&t.catalog);
    return rc;
}

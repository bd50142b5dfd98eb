/*
 * A whole recording as one JSON document, schema nrg.recording/1: docs/export.md. Small parts are
 * made with jansson; samples are written straight from the chunks, one array at a time, so that
 * a recording of hundreds of MB needs no memory. That means reading a series once per array.
 *
 * Times are seconds since `origin`, missing readings are left out, values are SI; a counter is
 * unwrapped and counted from its first reading (`first_value` is what it showed there).
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/memory.h"
#include "base/json/set.h"
#include "base/mem.h"
#include "record/read/still.h"
#include "report/export/formats.h"
#include "report/export/internal.h"

/* Of properties that a channel may not have: 0 is none. */
static void set_property(json_t *o, const char *key, double value)
{
    if (value != 0)
        nrg_json_real(o, key, value);
}

static double since_s(int64_t t_ns, int64_t origin_ns)
{
    return (double)(t_ns - origin_ns) / 1e9;
}

/* Writes `"key": doc` and gives the reference up. */
static int put_document(FILE *out, const char *key, json_t *doc)
{
    doc = nrg_json_whole(doc);
    int rc = doc ? 0 : -ENOMEM;
    fprintf(out, ",\n\"%s\": ", key);
    if (doc && json_dumpf(doc, out, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)))
        rc = -EIO;
    json_decref(doc);
    return rc;
}

static void add_meta(void *arg, const char *key, const char *value)
{
    char clean[2048];
    nrg_copy_clean(clean, sizeof clean, value, strlen(value));
    json_object_set_new(arg, key, json_string(clean));
}

static json_t *runs_json(const struct nrg_recording *recording, int64_t origin_ns)
{
    size_t n;
    const struct nrg_run *runs = nrg_recording_runs(recording, &n);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *o = json_pack("{s:I, s:s, s:f}", "id", (json_int_t)runs[i].id, "kind", runs[i].kind,
                              "begin_s", since_s(runs[i].begin_ns, origin_ns));
        if (runs[i].end_ns > runs[i].begin_ns)
            json_object_set_new(o, "end_s", json_real(since_s(runs[i].end_ns, origin_ns)));
        nrg_json_count(o, "exit_code", runs[i].exit_code);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *events_json(const struct nrg_recording *recording, int64_t origin_ns)
{
    size_t n;
    const struct nrg_event *events = nrg_recording_events(recording, &n);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list,
                              json_pack("{s:f, s:s, s:s, s:s}", "time_s",
                                        since_s(events[i].t_ns, origin_ns), "kind", events[i].kind,
                                        "source", events[i].source, "detail", events[i].detail));
    return list;
}

static json_t *clocks_json(const struct nrg_recording *recording, int64_t origin_ns)
{
    size_t n;
    const struct nrg_clock_pair *clocks = nrg_recording_clocks(recording, &n);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:f, s:I}", "time_s",
                                              since_s(clocks[i].mono_ns, origin_ns), "unix_time_ns",
                                              (json_int_t)clocks[i].real_ns));
    return list;
}

static json_t *process_json(const struct nrg_process_info *p, int64_t origin_ns)
{
    json_t *o = json_pack("{s:I, s:i, s:f, s:f, s:f}", "id", (json_int_t)p->id, "pid", (int)p->pid,
                          "first_s", since_s(p->first_ns, origin_ns), "last_s",
                          since_s(p->last_ns, origin_ns), "cpu_time_s", (double)p->cpu_ns / 1e9);
    if (p->parent_pid > 0)
        json_object_set_new(o, "parent_pid", json_integer(p->parent_pid));
    if (p->cpu_before_ns > 0)
        json_object_set_new(o, "cpu_time_before_s", json_real((double)p->cpu_before_ns / 1e9));
    if (p->peak_rss_bytes > 0)
        json_object_set_new(o, "peak_rss_bytes", json_integer(p->peak_rss_bytes));
    nrg_json_count(o, "uid", p->uid);
    json_object_set_new(o, "ended", json_boolean(p->ended));
    nrg_json_text(o, "name", p->name);
    nrg_json_text(o, "command", p->command);
    nrg_json_text(o, "container", p->container);
    nrg_json_text(o, "unit", p->unit);
    return o;
}

static json_t *processes_json(const struct nrg_recording *recording, int64_t origin_ns)
{
    size_t n;
    const struct nrg_process_info *infos = nrg_recording_processes(recording, &n);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, process_json(&infos[i], origin_ns));
    return list;
}

static json_t *channel_json(const struct nrg_recorded_channel *r)
{
    const struct nrg_channel *c = &r->channel;
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", c->name, "quantity",
                  nrg_quantity_name(c->quantity), "kind", nrg_kind_name(c->kind), "unit",
                  nrg_quantity_unit(c->quantity), "provenance", nrg_provenance_name(c->provenance));
    nrg_json_text(o, "driver", r->driver);
    nrg_json_text(o, "sensor", r->sensor);
    nrg_json_text(o, "source", c->source);
    nrg_json_text(o, "parent", c->parent);
    json_object_set_new(o, "wide", json_boolean(c->wide));
    json_object_set_new(o, "covers_cpu", json_boolean(c->covers_cpu));
    set_property(o, "period_s", (double)r->period_ns / 1e9);
    set_property(o, "update_period_s", (double)c->update_ns / 1e9);
    set_property(o, "window_s", (double)c->window_ns / 1e9);
    set_property(o, "lag_s", (double)c->lag_ns / 1e9);
    set_property(o, "resolution", c->resolution);
    set_property(o, "wrap_range", (double)c->wrap * c->scale);
    set_property(o, "limit_w", c->limit_w);
    set_property(o, "error_low_percent", c->error_low * 100);
    set_property(o, "error_high_percent", c->error_high * 100);
    return o;
}

/* One array on its way out: a column of a series, or its times. */
struct array {
    const struct nrg_recording *recording;
    FILE *out;
    int64_t origin_ns;
    size_t column, present; /* cells are left out where `present` is missing */
    bool times;
    const struct nrg_recorded_channel *channel; /* NULL: cells as they are, times `factor` */
    double factor;
    size_t n;
    struct nrg_export_sum sum;
};

/* null keeps the columns of a table in step; channels have no missing cells here. */
static void put_value(struct array *a, int64_t t_ns, int64_t raw)
{
    double value = raw == NRG_MISSING ? NAN
                   : a->channel ? nrg_export_value(a->recording, a->channel, &a->sum, t_ns, raw)
                                : (double)raw * a->factor;
    if (isfinite(value))
        fprintf(a->out, "%.15g", value);
    else
        fputs("null", a->out);
}

static int array_rows(void *arg, const struct nrg_rows *rows)
{
    struct array *a = arg;
    const int64_t *cells = nrg_rows_column(rows, a->column);
    const int64_t *present = nrg_rows_column(rows, a->present);
    for (size_t i = 0; i < rows->n; i++) {
        if (present[i] == NRG_MISSING)
            continue;
        if (a->n)
            fputc(',', a->out);
        if (a->times)
            fprintf(a->out, "%.9f", since_s(rows->t_ns[i], a->origin_ns));
        else
            put_value(a, rows->t_ns[i], cells[i]);
        a->n++;
    }
    return ferror(a->out) ? -EIO : 0;
}

static int put_array(struct nrg_recording *recording, int series, const char *key, struct array *a)
{
    fprintf(a->out, "\"%s\": [", key);
    a->recording = recording;
    int rc = nrg_recording_read_series(recording, series, array_rows, a, NULL);
    fputc(']', a->out);
    return rc;
}

static int put_channel(struct nrg_recording *recording, const struct nrg_recorded_channel *c,
                       int64_t origin_ns, FILE *out)
{
    json_t *o = nrg_json_whole(channel_json(c));
    struct array a = {.out = out,
                      .origin_ns = origin_ns,
                      .column = c->column,
                      .present = c->column,
                      .times = true};
    struct array v = a;
    v.times = false;
    v.channel = c;
    int rc = nrg_stills_find(recording, c->series);
    if (!rc && (!o || json_dumpf(o, out, JSON_EMBED | JSON_REAL_PRECISION(15))))
        rc = -EIO;
    json_decref(o);
    fputs(", \"samples\": {", out);
    if (!rc)
        rc = put_array(recording, c->series, "time_s", &a);
    fputs(", ", out);
    if (!rc)
        rc = put_array(recording, c->series, "value", &v);
    fputc('}', out);
    if (c->channel.kind == NRG_COUNTER && v.n)
        fprintf(out, ", \"first_value\": %.15g, \"unknown_steps\": %zu",
                (double)v.sum.first_raw * c->channel.scale, v.sum.unknown_steps);
    return rc;
}

static int put_channels(struct nrg_recording *recording, int64_t origin_ns, FILE *out)
{
    size_t n;
    const struct nrg_recorded_channel *channels = nrg_recording_channels(recording, &n);
    int rc = 0;
    fputs(",\n\"channels\": [", out);
    for (size_t i = 0; !rc && i < n; i++) {
        fputs(i ? ",\n{" : "\n{", out);
        rc = put_channel(recording, &channels[i], origin_ns, out);
        fputc('}', out);
    }
    fputc(']', out);
    return rc;
}

struct table_column {
    const char *key;
    double factor;
};

/* Process-like series as tables of columns, in the file's order of columns. */
static const struct table {
    const char *key;
    enum nrg_series_kind kind;
    struct table_column columns[6];
} tables[] = {
    {"process_samples",
     NRG_PROCESSES,
     {{"process", 1}, {"cpu_time_s", 1e-9}, {"rss_bytes", 1}, {"threads", 1}}},
    {"process_memory_samples",
     NRG_PROCESS_MEMORY,
     {{"process", 1}, {"pss_bytes", 1}, {"uss_bytes", 1}, {"read_bytes", 1}, {"written_bytes", 1}}},
    {"gpu_process_samples",
     NRG_GPU_PROCESSES,
     {{"pid", 1}, {"gpu", 1}, {"device_pid", 1}, {"utilisation", 1e-6}, {"memory_bytes", 1}}},
};

static int put_table(struct nrg_recording *recording, const struct table *t, int series,
                     int64_t origin_ns, FILE *out)
{
    struct array times = {.out = out, .origin_ns = origin_ns, .times = true};
    int rc = put_array(recording, series, "time_s", &times);
    for (size_t c = 0; !rc && t->columns[c].key; c++) {
        struct array a = {.out = out, .column = c, .factor = t->columns[c].factor};
        fputs(", ", out);
        rc = put_array(recording, series, t->columns[c].key, &a);
    }
    return rc;
}

static int put_tables(struct nrg_recording *recording, int64_t origin_ns, FILE *out)
{
    int rc = 0;
    for (size_t t = 0; !rc && t < sizeof tables / sizeof *tables; t++) {
        int series[64];
        size_t n = nrg_recording_series_of(recording, tables[t].kind, series, 64);
        fprintf(out, ",\n\"%s\": [", tables[t].key);
        for (size_t i = 0; !rc && i < n && i < 64; i++) {
            fputs(i ? ",\n{" : "\n{", out);
            rc = put_table(recording, &tables[t], series[i], origin_ns, out);
            fputc('}', out);
        }
        fputc(']', out);
    }
    return rc;
}

int nrg_export_json(struct nrg_recording *recording, FILE *out, struct nrg_error *err)
{
    static const struct {
        const char *key;
        json_t *(*make)(const struct nrg_recording *recording, int64_t origin_ns);
    } parts[] = {{"runs", runs_json},
                 {"events", events_json},
                 {"clocks", clocks_json},
                 {"processes", processes_json}};
    int64_t origin_ns = 0;
    int rc = nrg_export_origin_ns(recording, &origin_ns, err);
    if (rc)
        return rc;
    json_t *meta = json_object();
    nrg_recording_each_text(recording, add_meta, meta);
    int64_t real_ns = nrg_recording_realtime_ns(recording, origin_ns);
    fprintf(out, "{\"schema\": \"nrg.recording/1\",\n\"origin\": {\"monotonic_ns\": %" PRId64,
            origin_ns);
    if (real_ns)
        fprintf(out, ", \"unix_time_ns\": %" PRId64, real_ns);
    fputc('}', out);
    rc = put_document(out, "metadata", meta);
    for (size_t i = 0; !rc && i < sizeof parts / sizeof *parts; i++)
        rc = put_document(out, parts[i].key, parts[i].make(recording, origin_ns));
    if (!rc)
        rc = put_channels(recording, origin_ns, out);
    if (!rc)
        rc = put_tables(recording, origin_ns, out);
    fputs("}\n", out);
    if (!rc && (fflush(out) || ferror(out)))
        rc = -EIO;
    return rc ? nrg_fail(err, rc, nrg_recording_path(recording), "cannot be exported: %s",
                         strerror(-rc))
              : 0;
}

/*
 * What is added to a store, see store/writer.h. Rows, processes, events and the like wait for the
 * next commit; what describes the recording is written at once, which before nrg_store_ready is
 * memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/store/internal.h"

/* A model's file above this size is not kept in memory until the recording is ready. */
#define LARGE_GRAPH (4 << 20)

/* Few callers look at what it returns: that something is missing is said at the end. */
static int put_meta(struct nrg_store *store, const char *key, struct nrg_sql_value value)
{
    int rc = nrg_sql_meta(&store->sql, key, value);
    if (rc && !store->lost)
        store->lost = rc;
    return rc;
}

int nrg_store_text(struct nrg_store *store, const char *key, const char *value)
{
    const struct nrg_sql_value text = {.kind = NRG_SQL_TEXT, .bytes = value};
    return put_meta(store, key, text);
}

int nrg_store_integer(struct nrg_store *store, const char *key, int64_t value)
{
    const struct nrg_sql_value integer = {.kind = NRG_SQL_INTEGER, .integer = value};
    return put_meta(store, key, integer);
}

int nrg_store_real(struct nrg_store *store, const char *key, double value)
{
    const struct nrg_sql_value real = {.kind = NRG_SQL_REAL, .real = value};
    return put_meta(store, key, real);
}

int nrg_store_graph(struct nrg_store *store, const char *name, const char *format,
                    const void *bytes, size_t size)
{
    int rc = size > LARGE_GRAPH ? nrg_store_ready(store, NULL) : 0;
    return rc ? rc : nrg_sql_graph(&store->sql, name, format, bytes, size);
}

static int add_series(struct nrg_store *store, enum nrg_series_kind kind, size_t n_columns,
                      int64_t sensor)
{
    int rc =
        nrg_reserve(&store->series, &store->cap_series, store->n_series + 1, sizeof *store->series);
    if (rc)
        return rc;
    int id = store->first_series + (int)store->n_series;
    nrg_series_init(&store->series[store->n_series], id, kind, n_columns);
    rc = nrg_sql_series(&store->sql, id, kind, sensor, n_columns);
    if (!rc)
        store->n_series++;
    return rc ? rc : id;
}

int nrg_store_series(struct nrg_store *store, enum nrg_series_kind kind)
{
    return add_series(store, kind, nrg_series_n_columns(kind), 0);
}

int nrg_store_sensor(struct nrg_store *store, const struct nrg_found *found, int64_t period_ns,
                     int *series, size_t n_groups)
{
    int64_t sensor = ++store->n_sensors;
    int rc = nrg_sql_sensor(&store->sql, sensor, found->driver->name, found->sensor, period_ns);
    for (size_t g = 0; !rc && g < n_groups; g++) {
        size_t n = 0;
        for (size_t c = 0; c < found->n_channels; c++)
            n += found->channels[c].group == g;
        series[g] = add_series(store, NRG_SAMPLES, n, sensor);
        rc = series[g] < 0 ? series[g] : 0;
        size_t column = 0;
        for (size_t c = 0; !rc && c < found->n_channels; c++) {
            if (found->channels[c].group != g)
                continue;
            if (found->wanted[c])
                rc = nrg_sql_channel(&store->sql, series[g], column, sensor, &found->channels[c]);
            column++;
        }
    }
    return rc;
}

int nrg_store_rows(struct nrg_store *store, int series, const struct nrg_rows *rows)
{
    return nrg_rows_append(&store->series[series - store->first_series].rows, rows);
}

int nrg_store_clock(struct nrg_store *store, const struct nrg_clock_pair *pair)
{
    return nrg_append(&store->clocks, &store->n_clocks, &store->cap_clocks, pair,
                      sizeof *store->clocks);
}

int nrg_store_event(struct nrg_store *store, const struct nrg_event *event)
{
    return nrg_append(&store->events, &store->n_events, &store->cap_events, event,
                      sizeof *store->events);
}

int nrg_store_process(struct nrg_store *store, const struct nrg_process_info *info)
{
    for (size_t i = 0; i < store->n_processes; i++) {
        if (store->processes[i].id == info->id) {
            store->processes[i] = *info;
            return 0;
        }
    }
    return nrg_append(&store->processes, &store->n_processes, &store->cap_processes, info,
                      sizeof *store->processes);
}

/* The end of the run that began last takes the place of its begin. */
int nrg_store_run(struct nrg_store *store, const struct nrg_run *run)
{
    size_t last = store->n_runs - 1;
    if (store->n_runs && store->runs[last].id == run->id) {
        store->runs[last] = *run;
        if (store->n_runs_written > last)
            store->n_runs_written = last;
        return 0;
    }
    return nrg_append(&store->runs, &store->n_runs, &store->cap_runs, run, sizeof *store->runs);
}

int nrg_store_span_name(struct nrg_store *store, const struct nrg_span_name *name)
{
    struct nrg_span_name copy = *name;
    size_t len = strnlen(name->text, NRG_SPAN_NAME_MAX);
    copy.text = malloc(len + 1);
    if (!copy.text)
        return -ENOMEM;
    nrg_copy_clean(copy.text, len + 1, name->text, len);
    int rc =
        nrg_append(&store->names, &store->n_names, &store->cap_names, &copy, sizeof *store->names);
    if (rc)
        free(copy.text);
    return rc;
}

int nrg_store_span_track(struct nrg_store *store, const struct nrg_span_track *track)
{
    return nrg_append(&store->tracks, &store->n_tracks, &store->cap_tracks, track,
                      sizeof *store->tracks);
}

int nrg_store_span_path(struct nrg_store *store, const struct nrg_span_path *path)
{
    return nrg_append(&store->paths, &store->n_paths, &store->cap_paths, path,
                      sizeof *store->paths);
}

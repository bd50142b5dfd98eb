/* See format.h; the tables are explained in docs/recording-format.md. */
#include "record/format.h"

#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

const char nrg_format_schema[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE sensor(id INTEGER PRIMARY KEY, driver TEXT, name TEXT, period_ns INTEGER);"
    "CREATE TABLE channel(id INTEGER PRIMARY KEY, series INTEGER, col INTEGER, sensor INTEGER,"
    " name TEXT, quantity TEXT, kind TEXT, unit TEXT, scale REAL, wrap INTEGER,"
    " update_ns INTEGER, lag_ns INTEGER, resolution REAL, limit_w REAL, parent TEXT,"
    " wide INTEGER, covers_cpu INTEGER, provenance TEXT, error_low REAL, error_high REAL,"
    " source TEXT, window_ns INTEGER);"
    "CREATE TABLE series(id INTEGER PRIMARY KEY, kind TEXT, sensor INTEGER,"
    " n_columns INTEGER, columns TEXT);"
    "CREATE TABLE chunk(id INTEGER PRIMARY KEY, series INTEGER, first_ns INTEGER,"
    " last_ns INTEGER, n INTEGER, width_ns INTEGER, time_unit_ns INTEGER, stats BLOB, data BLOB);"
    "CREATE TABLE clock(mono_ns INTEGER PRIMARY KEY, real_ns INTEGER, tsc INTEGER);"
    "CREATE TABLE process(id INTEGER PRIMARY KEY, pid INTEGER, parent_pid INTEGER,"
    " start_ticks INTEGER, first_ns INTEGER, last_ns INTEGER, cpu_ns INTEGER,"
    " cpu_before_ns INTEGER, peak_rss_bytes INTEGER, uid INTEGER, ended INTEGER, name TEXT,"
    " command TEXT, container TEXT, unit TEXT);"
    "CREATE TABLE run(id INTEGER PRIMARY KEY, kind TEXT, begin_ns INTEGER, end_ns INTEGER,"
    " exit_code INTEGER);"
    "CREATE TABLE graph(id INTEGER PRIMARY KEY, name TEXT, format TEXT, data BLOB);"
    "CREATE TABLE event(id INTEGER PRIMARY KEY, t_ns INTEGER, kind TEXT, source TEXT,"
    " detail TEXT);";

const char nrg_format_spans[] =
    "CREATE TABLE IF NOT EXISTS span_name(id INTEGER PRIMARY KEY, kind TEXT, name TEXT,"
    " detail TEXT);"
    "CREATE TABLE IF NOT EXISTS span_track(id INTEGER PRIMARY KEY, kind TEXT, pid INTEGER,"
    " tid INTEGER, start_ticks INTEGER, domain TEXT, name TEXT);"
    "CREATE TABLE IF NOT EXISTS span_path(id INTEGER PRIMARY KEY, parent INTEGER,"
    " name INTEGER);";

const char nrg_format_index[] =
    "CREATE INDEX IF NOT EXISTS chunk_by_time ON chunk(series, first_ns)";

static const char *const kind_names[] = {"samples",       "processes", "process_memory",
                                         "gpu_processes", "spans",     "threads"};

static const char *const process_columns[] = {"process", "cpu_ns", "rss_bytes", "threads", NULL};
static const char *const memory_columns[] = {"process",    "pss_bytes",     "uss_bytes",
                                             "read_bytes", "written_bytes", NULL};
static const char *const gpu_columns[] = {"pid",          "gpu",      "device_pid", "sm_ppm",
                                          "memory_bytes", "size_ppm", NULL};

static const char *const span_columns[] = {"track", "event", "name", "value", "parent", NULL};
static const char *const thread_columns[] = {"track", "cpu_ns", NULL};

#define COUNT(a) (sizeof(a) / sizeof *(a))
_Static_assert(COUNT(process_columns) == NRG_P_COLUMNS + 1, "process columns");
_Static_assert(COUNT(memory_columns) == NRG_M_COLUMNS + 1, "memory columns");
_Static_assert(COUNT(gpu_columns) == NRG_G_COLUMNS + 1, "gpu columns");
_Static_assert(COUNT(span_columns) == NRG_S_COLUMNS + 1, "span columns");
_Static_assert(COUNT(thread_columns) == NRG_T_COLUMNS + 1, "thread columns");

const char *nrg_series_kind_name(enum nrg_series_kind kind)
{
    return kind_names[kind];
}

int nrg_series_kind_from_name(const char *name)
{
    for (size_t i = 0; i < COUNT(kind_names); i++)
        if (!strcmp(kind_names[i], name))
            return (int)i;
    return -1;
}

const char *const *nrg_series_columns(enum nrg_series_kind kind)
{
    static const char *const *const columns[] = {
        [NRG_SAMPLES] = NULL,
        [NRG_PROCESSES] = process_columns,
        [NRG_PROCESS_MEMORY] = memory_columns,
        [NRG_GPU_PROCESSES] = gpu_columns,
        [NRG_SPANS] = span_columns,
        [NRG_THREADS] = thread_columns,
    };
    return columns[kind];
}

size_t nrg_series_n_columns(enum nrg_series_kind kind)
{
    size_t n = 0;
    for (const char *const *name = nrg_series_columns(kind); name && *name; name++)
        n++;
    return n;
}

size_t nrg_series_least_columns(enum nrg_series_kind kind)
{
    return nrg_series_n_columns(kind) - (kind == NRG_GPU_PROCESSES);
}

struct nrg_event nrg_event_now(const char *kind, const char *source, const char *detail)
{
    struct nrg_event event = {.t_ns = nrg_now_ns()};
    nrg_copy(event.kind, sizeof event.kind, kind);
    nrg_copy(event.source, sizeof event.source, source);
    nrg_copy(event.detail, sizeof event.detail, detail);
    return event;
}

const struct nrg_span_drop_names nrg_span_drop_names[NRG_SPAN_DROPS] = {
    [NRG_DROP_RING] = {"spans_dropped_ring", "ring_full", "marked faster than could be written"},
    [NRG_DROP_NAMES] = {"spans_dropped_names", "names_full", "no room for their names"},
    [NRG_DROP_THREADS] = {"spans_dropped_threads", "too_many_threads",
                          "of more than 256 threads at once"},
    [NRG_DROP_DEPTH] = {"spans_dropped_depth", "nested_too_deep", "deeper than 1024"},
};

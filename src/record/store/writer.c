/*
 * See store/writer.h. SQLite with a write-ahead log: a commit is one append, a killed writer leaves
 * a log that the next reader replays, and closing folds it back so that one file remains.
 *
 * All pending work is kept until the transaction has succeeded. A failed one can so be run again,
 * on a database in memory if need be.
 */
#include "record/store/writer.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/store/database.h"
#include "record/store/internal.h"

/*
 * Clock pairs are written this many at a time, because a commit with one touches one page more.
 * Losing the last few is harmless: the earlier ones say the same, and a clock step is an event.
 */
#define CLOCKS_AT_ONCE 10

struct nrg_store {
    sqlite3 *db;
    struct nrg_sql sql; /* prepared statements of db */
    char *path;
    char failure[200]; /* why the last transaction failed */
    char spilled[200]; /* why the recording moved to memory, "" when on disk */
    struct nrg_series *series;
    size_t n_series, cap_series;
    int first_series; /* number of series[0] */
    int64_t n_sensors;
    bool preparing; /* the first transaction is still open: see nrg_store_ready */
    struct nrg_codec *codec;
    struct nrg_clock_pair *clocks;
    size_t n_clocks, cap_clocks, n_clocks_written;
    struct nrg_event *events;
    size_t n_events, cap_events;
    struct nrg_process_info *processes;
    size_t n_processes, cap_processes;
    struct nrg_run *runs;
    size_t n_runs, cap_runs;
    struct nrg_span_name *names; /* their texts are the store's */
    size_t n_names, cap_names;
    struct nrg_span_track *tracks;
    size_t n_tracks, cap_tracks;
    struct nrg_span_path *paths;
    size_t n_paths, cap_paths;
};

/*
 * Leaves the transaction open. Nothing is synced before nrg_store_ready: until then the file
 * holds nothing that could be lost, and a sync may take longer than all the rest of the start.
 */
static int fill_database(struct nrg_store *store)
{
    /* A write-ahead log needs shared memory, which not every file system has. */
    if (!nrg_database_set_journal(store->db, "WAL"))
        nrg_database_set_journal(store->db, "DELETE");
    int rc = sqlite3_exec(store->db, "BEGIN", NULL, NULL, NULL);
    store->preparing = rc == SQLITE_OK;
    if (rc == SQLITE_OK)
        rc = nrg_database_create_schema(store->db);
    return rc == SQLITE_OK ? nrg_sql_prepare(&store->sql, store->db) : rc;
}

int nrg_store_ready(struct nrg_store *store, struct nrg_error *err)
{
    if (!store->preparing)
        return 0;
    store->preparing = false;
    int rc = nrg_sql_commit(&store->sql);
    if (rc)
        return nrg_fail(err, rc, store->path, "cannot write the recording: %s",
                        sqlite3_errmsg(store->db));
    sqlite3_exec(store->db, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL);
    return 0;
}

/* Forgets what was written. */
static void clear_pending(struct nrg_store *store)
{
    for (size_t i = 0; i < store->n_names; i++)
        free(store->names[i].text);
    store->n_processes = store->n_runs = store->n_events = 0;
    store->n_names = store->n_tracks = store->n_paths = 0;
}

static void free_store(struct nrg_store *store)
{
    nrg_sql_finalize(&store->sql);
    sqlite3_close(store->db);
    for (size_t i = 0; i < store->n_series; i++)
        nrg_series_release(&store->series[i]);
    free(store->series);
    nrg_codec_free(store->codec);
    free(store->clocks);
    free(store->events);
    free(store->processes);
    free(store->runs);
    clear_pending(store);
    free(store->names);
    free(store->tracks);
    free(store->paths);
    free(store->path);
    free(store);
}

/* NULL when out of memory. */
static struct nrg_store *new_store(const char *path)
{
    struct nrg_store *store = calloc(1, sizeof *store);
    if (store && (store->path = strdup(path)) && (store->codec = nrg_codec_new())) {
        store->first_series = 1;
        return store;
    }
    if (store)
        free_store(store);
    return NULL;
}

int nrg_store_create(const char *path, bool overwrite, struct nrg_store **out,
                     struct nrg_error *err)
{
    int rc = nrg_database_claim(path, overwrite, err);
    if (rc)
        return rc;
    struct nrg_store *store = new_store(path);
    if (!store)
        return nrg_fail(err, -ENOMEM, path, "out of memory");
    rc = nrg_database_open_writable(path, "PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY",
                                    &store->db);
    if (rc == SQLITE_OK)
        rc = fill_database(store);
    if (rc != SQLITE_OK) {
        rc = nrg_fail(err, -EIO, path, "cannot write the recording: %s",
                      store->db ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc));
        nrg_store_discard(store);
        return rc;
    }
    *out = store;
    return 0;
}

/* New numbers follow the existing ones. Numbers that no recorder gives mean a damaged file. */
static int continue_numbering(struct nrg_store *store)
{
    int64_t series = nrg_database_number(store->db, "SELECT ifnull(max(id), 0) FROM series");
    int64_t sensors = nrg_database_number(store->db, "SELECT ifnull(max(id), 0) FROM sensor");
    if (series < 0 || series > INT32_MAX / 2 || sensors < 0 || sensors > INT32_MAX / 2)
        return SQLITE_CORRUPT;
    store->first_series = (int)series + 1;
    store->n_sensors = sensors;
    return SQLITE_OK;
}

int nrg_store_extend(const char *path, struct nrg_store **out, struct nrg_error *err)
{
    struct nrg_store *store = new_store(path);
    if (!store)
        return nrg_fail(err, -ENOMEM, path, "out of memory");
    int rc = nrg_database_open_writable(
        path, "PRAGMA synchronous=NORMAL; PRAGMA journal_mode=MEMORY", &store->db);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(store->db, nrg_format_spans, NULL, NULL, NULL);
    if (rc == SQLITE_OK) { /* of an older recording; fails where the column is there */
        sqlite3_exec(store->db, "ALTER TABLE channel ADD COLUMN window_ns INTEGER", NULL, NULL,
                     NULL);
        rc = nrg_sql_prepare(&store->sql, store->db);
    }
    if (rc == SQLITE_OK)
        rc = continue_numbering(store);
    if (rc != SQLITE_OK) {
        rc = nrg_fail(err, -EIO, path, "cannot add to the recording: %s", sqlite3_errstr(rc));
        free_store(store);
        return rc;
    }
    *out = store;
    return 0;
}

void nrg_store_discard(struct nrg_store *store)
{
    if (!store)
        return;
    char *path = store->path;
    store->path = NULL;
    free_store(store);
    nrg_database_remove(path);
    free(path);
}

const char *nrg_store_spilled(const struct nrg_store *store)
{
    return store->spilled[0] ? store->spilled : NULL;
}

struct sqlite3 *nrg_store_database(struct nrg_store *store)
{
    return store->db;
}

/* Copies the database into memory and continues there. */
static int move_to_memory(struct nrg_store *store)
{
    sqlite3 *memory = NULL;
    nrg_copy(store->spilled, sizeof store->spilled, store->failure);
    nrg_sql_finalize(&store->sql);
    int rc = nrg_database_open_writable(":memory:", "", &memory);
    if (rc == SQLITE_OK)
        rc = nrg_database_copy(memory, store->db);
    if (rc != SQLITE_OK) {
        sqlite3_close(memory);
        return nrg_sql_prepare(&store->sql, store->db) == SQLITE_OK ? -EIO : -ENOMEM;
    }
    sqlite3_close(store->db);
    store->db = memory;
    return nrg_sql_prepare(&store->sql, store->db) == SQLITE_OK ? 0 : -ENOMEM;
}

static bool are_clocks_due(const struct nrg_store *store, bool closing)
{
    return closing || !store->n_clocks_written || store->n_clocks >= CLOCKS_AT_ONCE;
}

static int write_pending(struct nrg_store *store, bool closing)
{
    bool clocks = are_clocks_due(store, closing);
    struct nrg_sql *sql = &store->sql;
    int rc = nrg_sql_begin(sql);
    for (size_t i = 0; !rc && i < store->n_series; i++)
        rc = nrg_series_write(&store->series[i], sql, store->codec, closing);
    for (size_t i = 0; clocks && !rc && i < store->n_clocks; i++)
        rc = nrg_sql_clock(sql, &store->clocks[i]);
    for (size_t i = 0; !rc && i < store->n_processes; i++)
        rc = nrg_sql_process(sql, &store->processes[i]);
    for (size_t i = 0; !rc && i < store->n_runs; i++)
        rc = nrg_sql_run(sql, &store->runs[i]);
    for (size_t i = 0; !rc && i < store->n_events; i++)
        rc = nrg_sql_event(sql, &store->events[i]);
    for (size_t i = 0; !rc && i < store->n_names; i++)
        rc = nrg_sql_span_name(sql, &store->names[i]);
    for (size_t i = 0; !rc && i < store->n_tracks; i++)
        rc = nrg_sql_span_track(sql, &store->tracks[i]);
    for (size_t i = 0; !rc && i < store->n_paths; i++)
        rc = nrg_sql_span_path(sql, &store->paths[i]);
    if (!rc)
        rc = nrg_sql_commit(sql);
    if (rc) {
        nrg_copy(store->failure, sizeof store->failure, sqlite3_errmsg(store->db));
        if (!sqlite3_get_autocommit(store->db))
            sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return rc;
}

static int commit_pending(struct nrg_store *store, bool closing)
{
    int rc = nrg_store_ready(store, NULL);
    if (!rc)
        rc = write_pending(store, closing);
    if (rc && !store->spilled[0] && !move_to_memory(store))
        rc = write_pending(store, closing);
    for (size_t i = 0; i < store->n_series; i++)
        nrg_series_settle(&store->series[i], rc == 0);
    if (!rc)
        clear_pending(store);
    if (!rc && are_clocks_due(store, closing)) {
        store->n_clocks_written += store->n_clocks;
        store->n_clocks = 0;
    }
    return rc;
}

int nrg_store_commit(struct nrg_store *store)
{
    return commit_pending(store, false);
}

/* One more try for a recording that had to move to memory. */
static int write_back(struct nrg_store *store)
{
    sqlite3 *disk = NULL;
    int rc = nrg_database_open_writable(store->path, "PRAGMA synchronous=NORMAL", &disk);
    if (rc == SQLITE_OK)
        rc = nrg_database_copy(disk, store->db);
    sqlite3_close(disk);
    return rc == SQLITE_OK ? 0 : -EIO;
}

int nrg_store_finish(struct nrg_store *store)
{
    return commit_pending(store, true);
}

int nrg_store_close(struct nrg_store *store, struct nrg_error *err)
{
    int rc = nrg_store_finish(store);
    sqlite3_exec(store->db, nrg_format_index, NULL, NULL, NULL);
    if (store->spilled[0] && (rc = write_back(store)))
        nrg_fail(err, rc, store->path, "the recording is incomplete: %s", store->spilled);
    else if (rc)
        nrg_fail(err, rc, store->path, "cannot write the recording: %s", store->failure);
    if (!store->spilled[0]) {
        nrg_sql_finalize(&store->sql);
        sqlite3_exec(store->db, "PRAGMA incremental_vacuum; PRAGMA journal_mode=DELETE", NULL, NULL,
                     NULL);
    }
    free_store(store);
    return rc;
}

int nrg_store_text(struct nrg_store *store, const char *key, const char *value)
{
    const struct nrg_sql_value text = {.kind = NRG_SQL_TEXT, .bytes = value};
    return nrg_sql_meta(&store->sql, key, text);
}

int nrg_store_integer(struct nrg_store *store, const char *key, int64_t value)
{
    const struct nrg_sql_value integer = {.kind = NRG_SQL_INTEGER, .integer = value};
    return nrg_sql_meta(&store->sql, key, integer);
}

int nrg_store_real(struct nrg_store *store, const char *key, double value)
{
    const struct nrg_sql_value real = {.kind = NRG_SQL_REAL, .real = value};
    return nrg_sql_meta(&store->sql, key, real);
}

int nrg_store_graph(struct nrg_store *store, const char *name, const char *format,
                    const void *bytes, size_t size)
{
    return nrg_sql_graph(&store->sql, name, format, bytes, size);
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
    size_t n = 0;
    for (const char *const *name = nrg_series_columns(kind); name && *name; name++)
        n++;
    return add_series(store, kind, n, 0);
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

int nrg_store_run(struct nrg_store *store, const struct nrg_run *run)
{
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

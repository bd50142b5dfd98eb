/*
 * See store.h. SQLite with a write-ahead log: a commit is one append, a killed writer leaves a
 * log that the next reader replays, and closing folds it back so that one file remains.
 *
 * All pending work is kept until the transaction has succeeded and is then dropped, so that a
 * failed one can simply be run again, on a database in memory if need be.
 */
#include "record/store/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/database.h"
#include "record/series.h"
#include "record/span_table.h"
#include "record/store/internal.h"

/*
 * Clock pairs are written this many at a time: each commit with one touches a page more, and if
 * the last few are lost the ones before them say the same (a stepped clock is an event).
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
    struct nrg_span_table spans;
};

/* `first` is run before anything that may already write to the file. */
static int open_database(const char *path, const char *first, sqlite3 **db)
{
    static const char pragmas[] =
        "PRAGMA page_size=1024; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA cache_size=-256;"
        "PRAGMA temp_store=MEMORY;";
    int rc = sqlite3_open_v2(
        path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_busy_timeout(*db, 2000);
        rc = sqlite3_exec(*db, first, NULL, NULL, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(*db, pragmas, NULL, NULL, NULL);
    }
    return rc;
}

/* True when the database is now in that mode: SQLite answers with the mode it is in. */
static bool switch_journal(sqlite3 *db, const char *mode)
{
    char text[48];
    sqlite3_stmt *stmt = NULL;
    snprintf(text, sizeof text, "PRAGMA journal_mode=%s", mode);
    bool done = sqlite3_prepare_v2(db, text, -1, &stmt, NULL) == SQLITE_OK &&
                sqlite3_step(stmt) == SQLITE_ROW &&
                !sqlite3_stricmp((const char *)sqlite3_column_text(stmt, 0), mode);
    sqlite3_finalize(stmt);
    return done;
}

static int create_schema(sqlite3 *db)
{
    char ids[96];
    snprintf(ids, sizeof ids, "PRAGMA application_id=%d; PRAGMA user_version=%d;",
             NRG_FORMAT_APPLICATION_ID, NRG_FORMAT_VERSION);
    int rc = sqlite3_exec(db, ids, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, nrg_format_schema, NULL, NULL, NULL);
    return rc == SQLITE_OK ? sqlite3_exec(db, nrg_format_spans, NULL, NULL, NULL) : rc;
}

static void remove_recording(const char *path)
{
    char side[4200];
    unlink(path);
    snprintf(side, sizeof side, "%s-wal", path);
    unlink(side);
    snprintf(side, sizeof side, "%s-shm", path);
    unlink(side);
}

/* Creating the file ourselves gives the exact errno, which SQLite hides. */
static int claim_path(const char *path, bool overwrite, struct nrg_error *err)
{
    struct stat st;
    if (overwrite && !stat(path, &st)) {
        if (!S_ISREG(st.st_mode))
            return nrg_fail(err, -EINVAL, path, "is not a regular file");
        remove_recording(path);
    }
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
    if (fd < 0 && errno == EEXIST)
        return nrg_fail(err, -EEXIST, path, "exists already: give another --output, or --force");
    if (fd < 0)
        return nrg_fail(err, -errno, path, "cannot create the recording: %s", strerror(errno));
    close(fd);
    return 0;
}

/*
 * Leaves the transaction open. Nothing is synced before nrg_store_ready: until then the file
 * holds nothing that could be lost, and a sync may take longer than all the rest of the start.
 */
static int fill_database(struct nrg_store *store)
{
    /* Not every file system can share memory between processes; plain journalling then does. */
    if (!switch_journal(store->db, "WAL"))
        switch_journal(store->db, "DELETE");
    int rc = sqlite3_exec(store->db, "BEGIN", NULL, NULL, NULL);
    store->preparing = rc == SQLITE_OK;
    if (rc == SQLITE_OK)
        rc = create_schema(store->db);
    return rc == SQLITE_OK ? nrg_sql_prepare(&store->sql, store->db) : rc;
}

int nrg_store_ready(struct nrg_store *store, struct nrg_error *err)
{
    if (!store->preparing)
        return 0;
    store->preparing = false;
    int rc = nrg_sql_step(store->sql.commit);
    if (rc)
        return nrg_fail(err, rc, store->path, "cannot write the recording: %s",
                        sqlite3_errmsg(store->db));
    sqlite3_exec(store->db, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL);
    return 0;
}

static void store_free(struct nrg_store *store)
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
    nrg_span_table_release(&store->spans);
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
        store_free(store);
    return NULL;
}

int nrg_store_create(const char *path, bool overwrite, struct nrg_store **out,
                     struct nrg_error *err)
{
    int rc = claim_path(path, overwrite, err);
    if (rc)
        return rc;
    struct nrg_store *store = new_store(path);
    if (!store)
        return nrg_fail(err, -ENOMEM, path, "out of memory");
    rc = open_database(path, "PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY", &store->db);
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

/* Numbers go on behind those that are there; beyond any that a recorder gives they are damage. */
static int go_on_numbering(struct nrg_store *store)
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
    int rc =
        open_database(path, "PRAGMA synchronous=NORMAL; PRAGMA journal_mode=MEMORY", &store->db);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(store->db, nrg_format_spans, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = nrg_sql_prepare(&store->sql, store->db);
    if (rc == SQLITE_OK)
        rc = go_on_numbering(store);
    if (rc != SQLITE_OK) {
        rc = nrg_fail(err, -EIO, path, "cannot add to the recording: %s", sqlite3_errstr(rc));
        store_free(store);
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
    store_free(store);
    remove_recording(path);
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

/* Copies what the file holds into memory and goes on there. */
static int spill(struct nrg_store *store)
{
    sqlite3 *memory = NULL;
    nrg_copy(store->spilled, sizeof store->spilled, store->failure);
    nrg_sql_finalize(&store->sql);
    int rc = open_database(":memory:", "", &memory);
    if (rc == SQLITE_OK)
        rc = nrg_sql_copy_database(memory, store->db);
    if (rc != SQLITE_OK) {
        sqlite3_close(memory);
        return nrg_sql_prepare(&store->sql, store->db) == SQLITE_OK ? -EIO : -ENOMEM;
    }
    sqlite3_close(store->db);
    store->db = memory;
    return nrg_sql_prepare(&store->sql, store->db) == SQLITE_OK ? 0 : -ENOMEM;
}

static bool clocks_due(const struct nrg_store *store, bool closing)
{
    return closing || !store->n_clocks_written || store->n_clocks >= CLOCKS_AT_ONCE;
}

static int write_pending(struct nrg_store *store, bool closing)
{
    bool clocks = clocks_due(store, closing);
    struct nrg_sql *sql = &store->sql;
    int rc = nrg_sql_step(sql->begin);
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
    if (!rc)
        rc = nrg_span_table_write(&store->spans, store->db);
    if (!rc)
        rc = nrg_sql_step(sql->commit);
    if (rc) {
        nrg_copy(store->failure, sizeof store->failure, sqlite3_errmsg(store->db));
        if (!sqlite3_get_autocommit(store->db))
            sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return rc;
}

static int commit(struct nrg_store *store, bool closing)
{
    int rc = nrg_store_ready(store, NULL);
    if (!rc)
        rc = write_pending(store, closing);
    if (rc && !store->spilled[0] && !spill(store))
        rc = write_pending(store, closing);
    for (size_t i = 0; i < store->n_series; i++)
        nrg_series_settle(&store->series[i], rc == 0);
    if (!rc) {
        store->n_processes = store->n_runs = store->n_events = 0;
        nrg_span_table_clear(&store->spans);
    }
    if (!rc && clocks_due(store, closing)) {
        store->n_clocks_written += store->n_clocks;
        store->n_clocks = 0;
    }
    return rc;
}

int nrg_store_commit(struct nrg_store *store)
{
    return commit(store, false);
}

/* One more try for a recording that had to move to memory. */
static int write_back(struct nrg_store *store)
{
    sqlite3 *disk = NULL;
    int rc = open_database(store->path, "PRAGMA synchronous=NORMAL", &disk);
    if (rc == SQLITE_OK)
        rc = nrg_sql_copy_database(disk, store->db);
    sqlite3_close(disk);
    return rc == SQLITE_OK ? 0 : -EIO;
}

int nrg_store_finish(struct nrg_store *store)
{
    return commit(store, true);
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
    store_free(store);
    return rc;
}

int nrg_store_text(struct nrg_store *store, const char *key, const char *value)
{
    sqlite3_stmt *s = store->sql.meta;
    sqlite3_bind_text(s, 2, value, -1, SQLITE_TRANSIENT);
    return nrg_sql_meta(&store->sql, key);
}

int nrg_store_integer(struct nrg_store *store, const char *key, int64_t value)
{
    sqlite3_bind_int64(store->sql.meta, 2, value);
    return nrg_sql_meta(&store->sql, key);
}

int nrg_store_real(struct nrg_store *store, const char *key, double value)
{
    sqlite3_bind_double(store->sql.meta, 2, value);
    return nrg_sql_meta(&store->sql, key);
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
    int rc =
        nrg_reserve(&store->clocks, &store->cap_clocks, store->n_clocks + 1, sizeof *store->clocks);
    if (!rc)
        store->clocks[store->n_clocks++] = *pair;
    return rc;
}

int nrg_store_event(struct nrg_store *store, const struct nrg_event *event)
{
    int rc =
        nrg_reserve(&store->events, &store->cap_events, store->n_events + 1, sizeof *store->events);
    if (!rc)
        store->events[store->n_events++] = *event;
    return rc;
}

int nrg_store_process(struct nrg_store *store, const struct nrg_process_info *info)
{
    for (size_t i = 0; i < store->n_processes; i++) {
        if (store->processes[i].id == info->id) {
            store->processes[i] = *info;
            return 0;
        }
    }
    int rc = nrg_reserve(&store->processes, &store->cap_processes, store->n_processes + 1,
                         sizeof *store->processes);
    if (!rc)
        store->processes[store->n_processes++] = *info;
    return rc;
}

int nrg_store_run(struct nrg_store *store, const struct nrg_run *run)
{
    int rc = nrg_reserve(&store->runs, &store->cap_runs, store->n_runs + 1, sizeof *store->runs);
    if (!rc)
        store->runs[store->n_runs++] = *run;
    return rc;
}

int nrg_store_span_name(struct nrg_store *store, const struct nrg_span_name *name)
{
    return nrg_span_table_name(&store->spans, name);
}

int nrg_store_span_track(struct nrg_store *store, const struct nrg_span_track *track)
{
    return nrg_span_table_track(&store->spans, track);
}

int nrg_store_span_path(struct nrg_store *store, const struct nrg_span_path *path)
{
    return nrg_span_table_path(&store->spans, path);
}

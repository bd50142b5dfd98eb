/*
 * See store/writer.h. SQLite with a write-ahead log: a commit is one append, a killed writer leaves
 * a log that the next reader replays, and closing folds it back so that one file remains.
 *
 * Until nrg_store_ready the database is in memory: the file appears whole (new_file.h).
 *
 * SQLite syncs the log and the file only when it folds the log in (synchronous=NORMAL). That keeps
 * them consistent through a power cut, in which all since then may be lost. So the log is synced
 * every now and then, too.
 *
 * All pending work is kept until the transaction has succeeded. A failed one can so be run again,
 * on a database in memory if need be.
 */
#include "record/store/writer.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
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

/* What a file begins with is kept in memory, for when it is lost, if it is no larger than that: a
 * model's file in it may be. */
#define PREPARED_MOST (128 << 10)

/* Leaves the transaction open. */
static int fill_database(struct nrg_store *store)
{
    int rc = sqlite3_exec(store->db, "BEGIN", NULL, NULL, NULL);
    store->preparing = rc == SQLITE_OK;
    if (rc == SQLITE_OK)
        rc = nrg_database_create_schema(store->db);
    if (rc == SQLITE_OK)
        nrg_sql_init(&store->sql, store->db);
    return rc;
}

/* From the database in memory to the file that now holds the same. Gives an SQLite code. */
static int move_to_file(struct nrg_store *store)
{
    sqlite3 *disk = NULL;
    int rc = nrg_database_open_writable(
        store->path, "PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY", &disk);
    if (rc == SQLITE_OK) {
        /* A write-ahead log needs shared memory, which not every file system has. */
        if (!nrg_database_set_journal(disk, "WAL"))
            nrg_database_set_journal(disk, "DELETE");
        rc = sqlite3_exec(disk, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL);
    }
    if (rc != SQLITE_OK) {
        sqlite3_close(disk);
        return rc;
    }
    nrg_sql_finalize(&store->sql);
    sqlite3_close(store->db);
    store->db = disk;
    nrg_sql_init(&store->sql, disk);
    return SQLITE_OK;
}

static int publish(struct nrg_store *store, struct nrg_error *err)
{
    sqlite3_int64 size;
    unsigned char *bytes = sqlite3_serialize(store->db, "main", &size, 0);
    int rc = bytes ? nrg_new_file_publish(&store->file, bytes, (size_t)size, err)
                   : nrg_fail(err, -ENOMEM, store->path, "out of memory");
    if (!rc && size <= PREPARED_MOST && !store->prepared &&
        (store->prepared = malloc((size_t)size))) {
        memcpy(store->prepared, bytes, (size_t)size);
        store->prepared_bytes = (size_t)size;
    }
    sqlite3_free(bytes);
    return rc;
}

int nrg_store_ready(struct nrg_store *store, struct nrg_error *err)
{
    struct nrg_error why;
    if (!store->preparing)
        return 0;
    store->preparing = false;
    int rc = nrg_sql_commit(&store->sql);
    if (rc)
        nrg_fail(&why, rc, store->path, "cannot write the recording: %s",
                 sqlite3_errmsg(store->db));
    else
        rc = publish(store, &why);
    int code = rc ? SQLITE_OK : move_to_file(store);
    if (code != SQLITE_OK)
        rc = nrg_fail(&why, -EIO, store->path, "cannot write the recording: %s",
                      sqlite3_errstr(code));
    if (rc)
        nrg_copy(store->failure, sizeof store->failure, why.what);
    if (rc && err)
        *err = why;
    store->synced_ns = nrg_now_ns();
    return rc;
}

void nrg_store_sync_every(struct nrg_store *store, int64_t period_ns)
{
    store->sync_ns = period_ns;
}

/* Forgets what was written. */
static void clear_pending(struct nrg_store *store)
{
    for (size_t i = 0; i < store->n_names; i++)
        free(store->names[i].text);
    store->n_processes = store->n_events = 0;
    store->n_runs_written = store->n_runs;
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
    nrg_chunk_scratch_release(&store->scratch);
    free(store->clocks);
    free(store->events);
    free(store->processes);
    free(store->runs);
    free(store->prepared);
    clear_pending(store);
    free(store->names);
    free(store->tracks);
    free(store->paths);
    nrg_new_file_release(&store->file);
    free(store->path);
    free(store);
}

/* NULL when out of memory. */
static struct nrg_store *new_store(const char *path)
{
    struct nrg_store *store = calloc(1, sizeof *store);
    if (store)
        store->file.fd = -1;
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
    struct nrg_store *store = new_store(path);
    if (!store)
        return nrg_fail(err, -ENOMEM, path, "out of memory");
    int rc = nrg_new_file_claim(&store->file, path, overwrite, err);
    if (rc) {
        nrg_store_discard(store);
        return rc;
    }
    rc = nrg_database_open_writable(":memory:", "", &store->db);
    if (rc == SQLITE_OK)
        rc = fill_database(store);
    if (rc != SQLITE_OK) {
        rc = nrg_fail(err, -EIO, path, "cannot prepare the recording: %s",
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
    bool ours = !store->file.path || store->file.published;
    store->path = NULL;
    free_store(store);
    if (ours) /* or else what is there is not this recording */
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

static bool are_clocks_due(const struct nrg_store *store, bool closing)
{
    return closing || !store->n_clocks_written || store->n_clocks >= CLOCKS_AT_ONCE;
}

/* What SQLite says, and the system, where it was asked. */
static void note_failure(struct nrg_store *store, const char *what, int system_error)
{
    snprintf(store->failure, sizeof store->failure, "%s%s%s", what, system_error ? ": " : "",
             system_error ? strerror(system_error) : "");
}

static int write_pending(struct nrg_store *store, bool closing)
{
    bool clocks = are_clocks_due(store, closing);
    struct nrg_sql *sql = &store->sql;
    int rc = nrg_sql_begin(sql);
    for (size_t i = 0; !rc && i < store->n_series; i++)
        rc = nrg_series_write(&store->series[i], sql, &store->scratch, store->codec, closing);
    for (size_t i = 0; clocks && !rc && i < store->n_clocks; i++)
        rc = nrg_sql_clock(sql, &store->clocks[i]);
    for (size_t i = 0; !rc && i < store->n_processes; i++)
        rc = nrg_sql_process(sql, &store->processes[i]);
    for (size_t i = store->n_runs_written; !rc && i < store->n_runs; i++)
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
        note_failure(store, sqlite3_errmsg(store->db), sqlite3_system_errno(store->db));
        if (!sqlite3_get_autocommit(store->db))
            sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return rc;
}

/* A disk that takes a commit, but can't keep it, is treated like one that takes none. */
static void sync_log(struct nrg_store *store)
{
    if (store->spilled[0] || !store->sync_ns)
        return;
    errno = 0;
    int code = nrg_database_sync(store->db), system_error = errno;
    store->synced_ns = nrg_now_ns();
    if (code == SQLITE_OK)
        return;
    note_failure(store, sqlite3_errstr(code), system_error);
    nrg_store_move_to_memory(store);
}

static int commit_pending(struct nrg_store *store, bool closing)
{
    int rc = nrg_store_ready(store, NULL);
    if (!rc)
        rc = write_pending(store, closing);
    if (rc && !store->spilled[0] && !nrg_store_move_to_memory(store))
        rc = write_pending(store, closing);
    for (size_t i = 0; i < store->n_series; i++)
        nrg_series_settle(&store->series[i], rc == 0);
    if (!rc)
        clear_pending(store);
    if (!rc && are_clocks_due(store, closing)) {
        store->n_clocks_written += store->n_clocks;
        store->n_clocks = 0;
    }
    if (!rc && (closing || nrg_now_ns() - store->synced_ns >= store->sync_ns))
        sync_log(store);
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
    if (store->file.path && !store->file.published)
        return publish(store, NULL);
    int rc = nrg_database_open_writable(store->path, "PRAGMA synchronous=NORMAL", &disk);
    if (rc == SQLITE_OK)
        rc = nrg_database_copy(disk, store->db);
    sqlite3_close(disk);
    return rc == SQLITE_OK ? 0 : -EIO;
}

/* All is written, and a report may follow before the end: it gets the memory. */
int nrg_store_finish(struct nrg_store *store)
{
    int rc = commit_pending(store, true);
    for (size_t i = 0; !rc && i < store->n_series; i++)
        nrg_rows_release(&store->series[i].rows);
    if (!rc)
        nrg_codec_trim(store->codec);
    nrg_chunk_scratch_release(&store->scratch);
    sqlite3_db_release_memory(store->db);
    store->finished = !rc;
    return rc;
}

int nrg_store_close(struct nrg_store *store, struct nrg_error *err)
{
    int rc = store->finished ? 0 : nrg_store_finish(store);
    sqlite3_exec(store->db, nrg_format_index, NULL, NULL, NULL);
    if (store->spilled[0] && (rc = write_back(store)))
        nrg_fail(err, rc, store->path, "the recording is incomplete: %s", store->spilled);
    else if (rc)
        nrg_fail(err, rc, store->path, "cannot write the recording: %s", store->failure);
    else if (store->lost)
        rc = nrg_fail(err, store->lost, store->path,
                      "the recording is incomplete: what describes it could not be written: %s",
                      strerror(-store->lost));
    if (!store->spilled[0]) {
        nrg_sql_finalize(&store->sql);
        /* MEMORY: the last change, of two bytes in one sector, needs no journal beside the file. */
        sqlite3_exec(store->db, "PRAGMA incremental_vacuum; PRAGMA journal_mode=MEMORY", NULL, NULL,
                     NULL);
    }
    free_store(store);
    return rc;
}

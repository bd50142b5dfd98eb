/*
 * A recording that can't be written goes on in memory (writer.h). What the file has is copied, if
 * it can be read. Where it can't (a disk that fails, or one that has no room for the index of the
 * log, without which SQLite reads nothing), the recording begins anew: with what describes it, as
 * it was published, its runs, and the rows that are still in memory, which are those since the last
 * large chunk. Then only older rows are lost.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "record/store/database.h"
#include "record/store/internal.h"

static int copy_file(struct nrg_store *store, sqlite3 **memory)
{
    int rc = nrg_database_open_writable(":memory:", "", memory);
    return rc == SQLITE_OK ? nrg_database_copy(*memory, store->db) : rc;
}

/* SQLite owns the bytes, whatever it says. */
static int begin_anew(const struct nrg_store *store, sqlite3 **memory)
{
    const unsigned flags = SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE;
    sqlite3_int64 size = (sqlite3_int64)store->prepared_bytes;
    int rc = nrg_database_open_writable(":memory:", "", memory);
    unsigned char *bytes =
        rc == SQLITE_OK && store->prepared ? sqlite3_malloc64((sqlite3_uint64)size) : NULL;
    if (!bytes)
        return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
    memcpy(bytes, store->prepared, store->prepared_bytes);
    return sqlite3_deserialize(*memory, "main", bytes, size, size, flags);
}

/* Series that came later, without a sensor, are not in what was published; the others fail. */
static void write_again(struct nrg_store *store)
{
    for (size_t i = 0; i < store->n_series; i++) {
        struct nrg_series *s = &store->series[i];
        nrg_sql_series(&store->sql, s->id, s->kind, 0, s->rows.n_columns);
        nrg_series_rewind(s);
    }
    store->n_runs_written = 0;
}

int nrg_store_move_to_memory(struct nrg_store *store)
{
    sqlite3 *memory = NULL;
    nrg_copy(store->spilled, sizeof store->spilled, store->failure);
    nrg_sql_finalize(&store->sql);
    int rc = copy_file(store, &memory);
    bool anew = rc != SQLITE_OK;
    if (anew) {
        sqlite3_close(memory);
        rc = begin_anew(store, &memory);
    }
    if (rc != SQLITE_OK) {
        sqlite3_close(memory);
        return nrg_sql_prepare(&store->sql, store->db) == SQLITE_OK ? -EIO : -ENOMEM;
    }
    sqlite3_close(store->db);
    store->db = memory;
    if (nrg_sql_prepare(&store->sql, store->db) != SQLITE_OK)
        return -ENOMEM;
    if (anew)
        write_again(store);
    return 0;
}

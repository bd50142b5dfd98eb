/*
 * The graphs of a recording: the model's file as it was given, compressed, so that attribution
 * and later readers see what the run computed. Written once before the run; record/ does not look
 * inside.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <zstd.h>

#include "record/store/internal.h"
#include "record/store/writer.h"

#define LEVEL 6

int nrg_store_graph(struct nrg_store *store, const char *name, const char *format,
                    const void *bytes, size_t size)
{
    sqlite3_stmt *stmt = NULL;
    size_t room = ZSTD_compressBound(size);
    void *packed = malloc(room ? room : 1);
    size_t len = packed ? ZSTD_compress(packed, room, bytes, size, LEVEL) : 0;
    int rc = !packed ? -ENOMEM : ZSTD_isError(len) ? -EIO : 0;
    if (!rc && sqlite3_prepare_v2(nrg_store_database(store),
                                  "INSERT INTO graph(name, format, data) VALUES(?, ?, ?)", -1,
                                  &stmt, NULL) != SQLITE_OK)
        rc = -EIO;
    if (!rc && sqlite3_bind_blob64(stmt, 3, packed, len, SQLITE_STATIC) != SQLITE_OK)
        rc = -ENOMEM;
    if (!rc) {
        sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
        sqlite3_bind_text(stmt, 2, format, -1, SQLITE_STATIC);
        rc = nrg_sql_step(stmt);
    }
    sqlite3_finalize(stmt);
    free(packed);
    return rc;
}

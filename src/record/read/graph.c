/* See read/graph.h. The size that a compressed frame claims is checked before it is used. */
#include "record/read/graph.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "record/store/database.h"
#include "record/store/guard.h"

/* A model's text shrinks to a tenth or a thirtieth; what claims to unpack to more is a bomb. */
#define MAX_BYTES  (UINT64_C(1) << 30)
#define FREE_BYTES (UINT64_C(1) << 26) /* of any density */
#define MAX_RATIO  256

static int unpack_graph(struct nrg_recorded_graph *graph, const void *packed, size_t len)
{
    unsigned long long size = packed ? ZSTD_getFrameContentSize(packed, len) : 0;
    if (!packed || size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR ||
        size > MAX_BYTES || (size > FREE_BYTES && size / MAX_RATIO > len))
        return -EBADMSG;
    graph->bytes = malloc((size_t)size + 1);
    if (!graph->bytes)
        return -ENOMEM;
    graph->size = ZSTD_decompress(graph->bytes, (size_t)size, packed, len);
    if (ZSTD_getErrorCode(graph->size) == ZSTD_error_memory_allocation)
        return -ENOMEM;
    return ZSTD_isError(graph->size) || graph->size != size ? -EBADMSG : 0;
}

static int load_graph(struct nrg_recorded_graph *graph, sqlite3_stmt *s)
{
    int code = sqlite3_step(s);
    if (code != SQLITE_ROW)
        return code == SQLITE_DONE ? -ENOENT : nrg_database_errno(code);
    nrg_database_text(s, 0, graph->name, sizeof graph->name);
    nrg_database_text(s, 1, graph->format, sizeof graph->format);
    const void *packed = sqlite3_column_blob(s, 2);
    if (sqlite3_errcode(sqlite3_db_handle(s)) == SQLITE_NOMEM)
        return -ENOMEM;
    return unpack_graph(graph, packed, (size_t)sqlite3_column_bytes(s, 2));
}

size_t nrg_recording_graphs(struct nrg_recording *recording)
{
    return (size_t)nrg_recording_count(recording, "graph", "1");
}

int nrg_recording_graph(struct nrg_recording *recording, size_t number,
                        struct nrg_recorded_graph *graph, struct nrg_error *err)
{
    sqlite3 *db = nrg_recording_database(recording);
    sqlite3_stmt *s = NULL;
    *graph = (struct nrg_recorded_graph){0};
    if (number >= nrg_recording_graphs(recording))
        return -ENOENT;
    nrg_guard_statement(db);
    int code = sqlite3_prepare_v2(
        db, "SELECT name, format, data FROM graph ORDER BY id LIMIT 1 OFFSET ?", -1, &s, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(s, 1, (sqlite3_int64)number);
    int rc = code == SQLITE_OK ? load_graph(graph, s) : nrg_database_errno(code);
    nrg_recording_note_failure(recording, rc);
    sqlite3_finalize(s);
    if (rc)
        nrg_recorded_graph_release(graph);
    if (rc && rc != -ENOENT)
        nrg_fail(err, rc, nrg_recording_path(recording),
                 rc == -ENOMEM ? "out of memory"
                 : rc == -EIO  ? "the model in the recording can't be read"
                               : "the model in the recording is damaged");
    return rc;
}

void nrg_recorded_graph_release(struct nrg_recorded_graph *graph)
{
    free(graph->bytes);
    *graph = (struct nrg_recorded_graph){0};
}

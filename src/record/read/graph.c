/* See read/graph.h. The size that a compressed frame claims is checked before it is used. */
#include "record/read/graph.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <zstd.h>

#include "record/store/database.h"
#include "record/store/guard.h"

#define MAX_BYTES (UINT64_C(1) << 30)

static int unpack_graph(struct nrg_recorded_graph *graph, const void *packed, size_t len)
{
    unsigned long long size = packed ? ZSTD_getFrameContentSize(packed, len) : 0;
    if (!packed || size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR ||
        size > MAX_BYTES)
        return -EBADMSG;
    graph->bytes = malloc((size_t)size + 1);
    if (!graph->bytes)
        return -ENOMEM;
    graph->size = ZSTD_decompress(graph->bytes, (size_t)size, packed, len);
    return ZSTD_isError(graph->size) || graph->size != size ? -EBADMSG : 0;
}

static int load_graph(struct nrg_recorded_graph *graph, sqlite3_stmt *s)
{
    if (sqlite3_step(s) != SQLITE_ROW)
        return -ENOENT;
    nrg_database_text(s, 0, graph->name, sizeof graph->name);
    nrg_database_text(s, 1, graph->format, sizeof graph->format);
    const void *packed = sqlite3_column_blob(s, 2);
    return unpack_graph(graph, packed, (size_t)sqlite3_column_bytes(s, 2));
}

size_t nrg_recording_graphs(struct nrg_recording *recording)
{
    int64_t n =
        nrg_database_number(nrg_recording_database(recording), "SELECT count(*) FROM graph");
    return n > 0 ? (size_t)n : 0;
}

int nrg_recording_graph(struct nrg_recording *recording, size_t number,
                        struct nrg_recorded_graph *graph, struct nrg_error *err)
{
    sqlite3 *db = nrg_recording_database(recording);
    sqlite3_stmt *s = NULL;
    *graph = (struct nrg_recorded_graph){0};
    if (number >= nrg_recording_graphs(recording))
        return -ENOENT;
    int rc = -EBADMSG;
    nrg_guard_statement(db);
    if (sqlite3_prepare_v2(db, "SELECT name, format, data FROM graph ORDER BY id LIMIT 1 OFFSET ?",
                           -1, &s, NULL) == SQLITE_OK &&
        sqlite3_bind_int64(s, 1, (sqlite3_int64)number) == SQLITE_OK)
        rc = load_graph(graph, s);
    sqlite3_finalize(s);
    if (rc)
        nrg_recorded_graph_release(graph);
    if (rc && rc != -ENOENT)
        nrg_fail(err, rc, nrg_recording_path(recording),
                 rc == -ENOMEM ? "out of memory" : "the model in the recording is damaged");
    return rc;
}

void nrg_recorded_graph_release(struct nrg_recorded_graph *graph)
{
    free(graph->bytes);
    *graph = (struct nrg_recorded_graph){0};
}

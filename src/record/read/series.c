/*
 * See series.h. A chunk is decoded into buffers that are kept, so that a long series costs
 * no allocation per chunk once the largest has been seen. Nothing in the file is trusted: counts
 * are bounded and sums checked before use; a damaged chunk is skipped and counted.
 */
#include "record/read/series.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "record/store/column.h"
#include "record/store/database.h"
#include "record/store/guard.h"

/* More values than this per byte of the file, and this many, mean a file that is made to fill
 * memory: a column that never changes has some hundred. */
#define CELLS_PER_BYTE 2048
#define CELLS_ANYWAY   (INT64_C(1) << 22)

struct nrg_series_reader {
    sqlite3 *db;
    sqlite3_stmt *stmt;
    struct nrg_recording *recording;
    struct nrg_codec *codec; /* the recording's */
    struct nrg_rows rows;
    int64_t **columns; /* where the codec puts time and cells */
    size_t damaged;
    bool ended;
    int64_t chunks_left, cells_left; /* that can be true */
};

static void allow_all(struct nrg_series_reader *r)
{
    r->chunks_left = nrg_guard_statement(r->db);
    if (__builtin_mul_overflow(r->chunks_left, CELLS_PER_BYTE * 4, &r->cells_left) ||
        r->cells_left > INT64_MAX - CELLS_ANYWAY)
        r->cells_left = INT64_MAX - CELLS_ANYWAY;
    r->cells_left += CELLS_ANYWAY;
}

int nrg_series_reader_new(struct nrg_recording *recording, int series,
                          struct nrg_series_reader **out)
{
    /* Numbers are sorted first, and data fetched one by one: without the index, which a killed
     * recorder did not make, sorting would take the whole recording into memory. */
    static const char text[] =
        "SELECT c.first_ns, c.n, c.width_ns, c.time_unit_ns, c.data FROM"
        " (SELECT id FROM chunk WHERE series=? ORDER BY first_ns, id LIMIT -1) sorted"
        " CROSS JOIN chunk c WHERE c.id = sorted.id";
    size_t n_columns = nrg_recording_columns(recording, series, NULL);
    if (!n_columns)
        return -ENOENT;
    struct nrg_series_reader *r = calloc(1, sizeof *r);
    int rc = r ? 0 : -ENOMEM;
    if (!rc) {
        r->recording = recording;
        nrg_rows_init(&r->rows, n_columns);
        r->columns = calloc(n_columns + 1, sizeof *r->columns);
        r->codec = nrg_recording_codec(recording);
        rc = r->columns ? 0 : -ENOMEM;
    }
    if (!rc) {
        r->db = nrg_recording_database(recording);
        allow_all(r);
        int code = sqlite3_prepare_v2(r->db, text, -1, &r->stmt, NULL);
        if (code == SQLITE_OK)
            code = sqlite3_bind_int(r->stmt, 1, series);
        rc = code == SQLITE_OK ? 0 : nrg_database_errno(code);
    }
    if (rc) {
        nrg_series_reader_free(r);
        return nrg_recording_note_failure(recording, rc);
    }
    *out = r;
    return 0;
}

void nrg_series_reader_free(struct nrg_series_reader *r)
{
    if (!r)
        return;
    sqlite3_finalize(r->stmt);
    nrg_rows_release(&r->rows);
    free(r->columns);
    free(r);
}

/* The statement's row into r->rows. 0, -EBADMSG for a damaged chunk, -ENOMEM. */
static int decode_chunk(struct nrg_series_reader *r)
{
    struct nrg_rows *rows = &r->rows;
    sqlite3_stmt *s = r->stmt;
    int64_t first_ns = sqlite3_column_int64(s, 0), n = sqlite3_column_int64(s, 1);
    int64_t unit = sqlite3_column_int64(s, 3);
    const uint8_t *data = sqlite3_column_blob(s, 4);
    if (!data && sqlite3_errcode(sqlite3_db_handle(s)) == SQLITE_NOMEM)
        return -ENOMEM;
    size_t len = (size_t)sqlite3_column_bytes(s, 4);
    if (n < 1 || n > (int64_t)NRG_CHUNK_MAX_ROWS || unit < 1 || unit > NRG_NS_PER_S || !data ||
        (size_t)n * rows->n_columns > NRG_CHUNK_MAX_CELLS)
        return -EBADMSG;
    rows->n = 0;
    int rc = nrg_rows_reserve(rows, (size_t)n);
    if (!rc) {
        r->columns[0] = rows->t_ns;
        for (size_t c = 0; c < rows->n_columns; c++)
            r->columns[c + 1] = nrg_rows_column(rows, c);
        rc = nrg_columns_decode(r->codec, data, len, r->columns, rows->n_columns + 1, (size_t)n);
    }
    for (int64_t i = 0; !rc && i < n; i++) {
        int64_t offset;
        if (__builtin_mul_overflow(rows->t_ns[i], unit, &offset) ||
            __builtin_add_overflow(first_ns, offset, &rows->t_ns[i]) || !nrg_is_time(rows->t_ns[i]))
            rc = -EBADMSG;
    }
    rows->n = rc ? 0 : (size_t)n;
    r->cells_left -= n * (int64_t)(rows->n_columns + 1);
    rows->width_ns = sqlite3_column_int64(s, 2);
    return rc;
}

int nrg_series_reader_next(struct nrg_series_reader *r, const struct nrg_rows **rows)
{
    while (!r->ended) {
        int code = sqlite3_step(r->stmt), rc;
        bool too_much = code == SQLITE_ROW && (r->chunks_left-- <= 0 || r->cells_left <= 0);
        r->ended = code != SQLITE_ROW || too_much;
        if (code == SQLITE_DONE)
            break;
        rc = too_much ? -EBADMSG : code == SQLITE_ROW ? decode_chunk(r) : nrg_database_errno(code);
        if (!rc) {
            *rows = &r->rows;
            return 1;
        }
        if (nrg_recording_note_failure(r->recording, rc) != -EBADMSG)
            return rc;
        r->damaged++;
    }
    return 0;
}

void nrg_series_reader_rewind(struct nrg_series_reader *r)
{
    sqlite3_reset(r->stmt);
    allow_all(r);
    r->ended = false;
    r->damaged = 0;
}

size_t nrg_series_reader_damaged(const struct nrg_series_reader *r)
{
    return r->damaged;
}

/* Of an empty table that is NULL. */
#define FIRST_OF(what) "SELECT m FROM (SELECT " what " AS m FROM chunk) WHERE m IS NOT NULL"

int nrg_recording_extent(struct nrg_recording *recording, int64_t *first_ns, int64_t *last_ns)
{
    sqlite3 *db = nrg_recording_database(recording);
    int rc = nrg_database_integer(db, FIRST_OF("min(first_ns)"), first_ns);
    if (!rc)
        rc = nrg_database_integer(db, FIRST_OF("max(last_ns)"), last_ns);
    nrg_recording_note_failure(recording, rc);
    if (rc == -ENOMEM || rc == -EIO)
        return rc;
    return !rc && nrg_is_time(*first_ns) && nrg_is_time(*last_ns) && *last_ns >= *first_ns
               ? 0
               : -ENODATA;
}

int nrg_recording_read_series(struct nrg_recording *recording, int series,
                              int (*each)(void *, const struct nrg_rows *), void *arg,
                              size_t *damaged)
{
    struct nrg_series_reader *reader;
    const struct nrg_rows *rows;
    int more = 0, rc = nrg_series_reader_new(recording, series, &reader);
    if (rc)
        return rc;
    while (!rc && (more = nrg_series_reader_next(reader, &rows)) > 0)
        rc = each(arg, rows);
    if (damaged)
        *damaged += nrg_series_reader_damaged(reader);
    nrg_series_reader_free(reader);
    return nrg_recording_note_failure(recording, rc ? rc : more);
}

int nrg_recording_read_kind(struct nrg_recording *recording, enum nrg_series_kind kind,
                            size_t n_columns, int (*each)(void *, const struct nrg_rows *),
                            void *arg, size_t *damaged)
{
    int series, rc = 0;
    for (size_t at = 0; !rc && (series = nrg_recording_next_series(recording, kind, &at));)
        if (!n_columns || nrg_recording_columns(recording, series, NULL) == n_columns)
            rc = nrg_recording_read_series(recording, series, each, arg, damaged);
    return rc;
}

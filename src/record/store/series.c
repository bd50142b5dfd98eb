/*
 * Series on their way into the recording: live chunks at every commit, replaced by a large chunk
 * when enough rows have come together. column.h has the code of a chunk.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/store/internal.h"
#include "sensors/channel.h"

/* Smaller chunks have no statistics: decoding them is quicker than storing those. */
#define STATS_MIN_ROWS 16
#define MERGE_NS       (300 * NRG_NS_PER_S)
#define MOST_CELLS     ((size_t)16 * NRG_MERGE_ROWS) /* of the scratch that is kept: 1 MB */

void nrg_series_init(struct nrg_series *s, int id, enum nrg_series_kind kind, size_t n_columns)
{
    *s = (struct nrg_series){.id = id, .kind = kind};
    nrg_rows_init(&s->rows, n_columns);
}

void nrg_series_release(struct nrg_series *s)
{
    nrg_rows_release(&s->rows);
    free(s->live);
}

void nrg_chunk_scratch_release(struct nrg_chunk_scratch *scratch)
{
    free(scratch->cells);
    free(scratch->order);
    *scratch = (struct nrg_chunk_scratch){0};
}

/* What the rows look like that are to be sorted by (first column, time). */
struct sight {
    bool sorted, in_time; /* as they are; by time alone */
    int64_t low, high;    /* keys */
};

static struct sight look_at(const struct nrg_rows *rows, size_t from)
{
    const int64_t *key = rows->cells, *t = rows->t_ns;
    struct sight s = {true, true, key[from], key[from]};
    for (size_t i = from + 1; i < rows->n; i++) {
        s.in_time &= t[i] >= t[i - 1];
        s.sorted &= key[i] > key[i - 1] || (key[i] == key[i - 1] && t[i] >= t[i - 1]);
        s.low = key[i] < s.low ? key[i] : s.low;
        s.high = key[i] > s.high ? key[i] : s.high;
    }
    return s;
}

static int by_key_and_time(const void *a, const void *b, void *table)
{
    const struct nrg_rows *rows = table;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (rows->cells[x] != rows->cells[y])
        return rows->cells[x] < rows->cells[y] ? -1 : 1;
    if (rows->t_ns[x] != rows->t_ns[y])
        return rows->t_ns[x] < rows->t_ns[y] ? -1 : 1;
    return x < y ? -1 : x > y; /* a begin stays before its end */
}

/* Rows that are in order of time keep it among those of a key: counting is enough. */
static void count_into_order(const struct nrg_rows *rows, size_t from, int64_t low,
                             uint32_t *counts, size_t n_counts, uint32_t *order)
{
    memset(counts, 0, n_counts * sizeof *counts);
    for (size_t i = from; i < rows->n; i++)
        counts[rows->cells[i] - low]++;
    for (size_t k = 0, before = 0; k < n_counts; k++) {
        uint32_t count = counts[k];
        counts[k] = (uint32_t)before;
        before += count;
    }
    for (size_t i = from; i < rows->n; i++)
        order[counts[rows->cells[i] - low]++] = (uint32_t)i;
}

/* Fills scratch->order with the rows' numbers sorted by (first column, time). */
static int sort_rows(const struct nrg_rows *rows, size_t from, const struct sight *sight,
                     struct nrg_chunk_scratch *scratch)
{
    size_t n = rows->n - from;
    uint64_t keys = (uint64_t)sight->high - (uint64_t)sight->low;
    bool few = sight->in_time && keys < n;
    size_t n_counts = few ? (size_t)keys + 1 : 0;
    int rc = rows->n > UINT32_MAX ? -ENOMEM
                                  : nrg_reserve(&scratch->order, &scratch->cap_order, n + n_counts,
                                                sizeof *scratch->order);
    if (rc)
        return rc;
    if (few) {
        count_into_order(rows, from, sight->low, scratch->order + n, n_counts, scratch->order);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        scratch->order[i] = (uint32_t)(from + i);
    qsort_r(scratch->order, n, sizeof *scratch->order, by_key_and_time, (void *)rows);
    return 0;
}

/* Points columns[1..] and *t_ns at the rows [from, n) in order; copies them if they are not. */
static int order_columns(const struct nrg_rows *rows, size_t from, bool by_key,
                         struct nrg_chunk_scratch *scratch, const int64_t **columns,
                         const int64_t **t_ns)
{
    size_t n = rows->n - from;
    struct sight sight = {.sorted = true};
    if (by_key)
        sight = look_at(rows, from);
    *t_ns = rows->t_ns + from;
    for (size_t c = 0; c < rows->n_columns; c++)
        columns[c + 1] = nrg_rows_column(rows, c) + from;
    int rc = sight.sorted ? 0 : sort_rows(rows, from, &sight, scratch);
    if (rc || sight.sorted)
        return rc;
    int64_t *times = scratch->cells;
    for (size_t i = 0; i < n; i++)
        times[i] = rows->t_ns[scratch->order[i]];
    *t_ns = times;
    for (size_t c = 0; c < rows->n_columns; c++) {
        int64_t *to = scratch->cells + (c + 1) * n;
        for (size_t i = 0; i < n; i++)
            to[i] = nrg_rows_column(rows, c)[scratch->order[i]];
        columns[c + 1] = to;
    }
    return 0;
}

/* Time stamps finer than an eighth of the reading's own width would be noise. */
static int64_t time_unit_ns(int64_t width_ns)
{
    int64_t unit = 1;
    while (unit * 16 <= width_ns)
        unit *= 2;
    return unit;
}

/* Makes t_ns units from the first one; the two may be the same memory. */
static void scale_times(const int64_t *t_ns, size_t n, struct nrg_chunk *chunk, int64_t *units)
{
    int64_t first = t_ns[0], last = t_ns[0], unit = chunk->time_unit_ns;
    for (size_t i = 1; i < n; i++) {
        first = t_ns[i] < first ? t_ns[i] : first;
        last = t_ns[i] > last ? t_ns[i] : last;
    }
    for (size_t i = 0; i < n; i++)
        units[i] = unit == 1 ? t_ns[i] - first : (t_ns[i] - first + unit / 2) / unit;
    chunk->first_ns = first;
    chunk->last_ns = last;
}

static int encode_chunk(const struct nrg_rows *rows, size_t from, bool by_key,
                        struct nrg_chunk_scratch *scratch, struct nrg_codec *codec,
                        struct nrg_chunk *chunk)
{
    size_t n = rows->n - from, n_columns = rows->n_columns + 1;
    const int64_t **columns = calloc(n_columns, sizeof *columns), *t_ns;
    int rc = columns ? nrg_reserve(&scratch->cells, &scratch->cap_cells, n * n_columns,
                                   sizeof *scratch->cells)
                     : -ENOMEM;
    if (!rc)
        rc = order_columns(rows, from, by_key, scratch, columns, &t_ns);
    if (!rc) {
        chunk->n = n;
        chunk->width_ns = rows->width_ns;
        chunk->time_unit_ns = time_unit_ns(rows->width_ns);
        scale_times(t_ns, n, chunk, scratch->cells);
        columns[0] = scratch->cells;
        rc = nrg_columns_encode(codec, columns, n_columns, n, &chunk->data, &chunk->data_len);
    }
    free(columns);
    return rc;
}

/* Per column: count, min, max, first, last as i64 and the sum as double, little endian. */
static int add_column_stats(const struct nrg_rows *rows, size_t from, struct nrg_str *out)
{
    int rc = 0;
    for (size_t c = 0; !rc && c < rows->n_columns; c++) {
        const int64_t *v = nrg_rows_column(rows, c);
        int64_t s[5] = {0};
        double sum = 0;
        for (size_t i = from; i < rows->n; i++) {
            if (v[i] == NRG_MISSING)
                continue;
            if (!s[0]++)
                s[1] = s[2] = s[3] = v[i];
            s[1] = v[i] < s[1] ? v[i] : s[1];
            s[2] = v[i] > s[2] ? v[i] : s[2];
            s[4] = v[i];
            sum += (double)v[i];
        }
        rc = nrg_str_add(out, (const char *)s, sizeof s);
        if (!rc)
            rc = nrg_str_add(out, (const char *)&sum, sizeof sum);
    }
    return rc;
}

static int write_chunk(struct nrg_series *s, size_t from, struct nrg_sql *sql,
                       struct nrg_chunk_scratch *scratch, struct nrg_codec *codec, int64_t *id)
{
    struct nrg_chunk chunk = {.series = s->id};
    struct nrg_str stats = {0};
    bool by_key = s->kind != NRG_SAMPLES;
    int rc = 0;
    if (!by_key && s->rows.n - from >= STATS_MIN_ROWS)
        rc = add_column_stats(&s->rows, from, &stats);
    if (!rc)
        rc = encode_chunk(&s->rows, from, by_key, scratch, codec, &chunk);
    chunk.stats = (const uint8_t *)stats.text;
    chunk.stats_len = stats.len;
    if (!rc)
        rc = nrg_sql_chunk(sql, &chunk, id);
    nrg_str_release(&stats);
    if (scratch->cap_cells > MOST_CELLS)
        nrg_chunk_scratch_release(scratch);
    return rc;
}

int nrg_series_write(struct nrg_series *s, struct nrg_sql *sql, struct nrg_chunk_scratch *scratch,
                     struct nrg_codec *codec, bool closing)
{
    const struct nrg_rows *rows = &s->rows;
    int64_t id;
    s->done = NRG_SERIES_IDLE;
    if (!rows->n || (rows->n == s->written && !(closing && s->n_live > 1)))
        return 0;
    int64_t span_ns = rows->t_ns[rows->n - 1] - rows->t_ns[0];
    bool merge = closing || rows->n >= NRG_MERGE_ROWS || span_ns >= MERGE_NS;
    int rc = write_chunk(s, merge ? 0 : s->written, sql, scratch, codec, &id);
    for (size_t i = 0; merge && !rc && i < s->n_live; i++)
        rc = nrg_sql_drop_chunk(sql, s->live[i]);
    if (!rc && !merge) {
        rc = nrg_reserve(&s->live, &s->cap_live, s->n_live + 1, sizeof *s->live);
        if (!rc)
            s->live[s->n_live] = id;
    }
    if (!rc)
        s->done = merge ? NRG_SERIES_MERGED : NRG_SERIES_LIVE;
    return rc;
}

void nrg_series_rewind(struct nrg_series *s)
{
    s->written = s->n_live = 0;
}

void nrg_series_settle(struct nrg_series *s, bool committed)
{
    if (committed && s->done == NRG_SERIES_LIVE) {
        s->n_live++;
        s->written = s->rows.n;
    } else if (committed && s->done == NRG_SERIES_MERGED) {
        s->rows.n = s->written = s->n_live = 0;
        s->rows.width_ns = 0;
    }
    s->done = NRG_SERIES_IDLE;
}

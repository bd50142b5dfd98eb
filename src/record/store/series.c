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

struct order {
    int64_t key, t_ns;
    size_t row;
};

static int by_key_and_time(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row; /* a begin stays before its end */
}

/* Copies rows [from, n) sorted by (first column, time). */
static int copy_sorted(const struct nrg_rows *rows, size_t from, struct nrg_rows *out)
{
    size_t n = rows->n - from;
    struct order *order = calloc(n + 1, sizeof *order);
    int rc = order ? nrg_rows_reserve(out, n) : -ENOMEM;
    for (size_t i = 0; !rc && i < n; i++)
        order[i] = (struct order){rows->cells[from + i], rows->t_ns[from + i], from + i};
    if (!rc && n)
        qsort(order, n, sizeof *order, by_key_and_time);
    for (size_t i = 0; !rc && i < n; i++) {
        out->t_ns[i] = rows->t_ns[order[i].row];
        for (size_t c = 0; c < rows->n_columns; c++)
            nrg_rows_column(out, c)[i] = nrg_rows_column(rows, c)[order[i].row];
    }
    out->n = rc ? 0 : n;
    out->width_ns = rows->width_ns;
    free(order);
    return rc;
}

/* Time stamps finer than an eighth of the reading's own width would be noise. */
static int64_t time_unit_ns(int64_t width_ns)
{
    int64_t unit = 1;
    while (unit * 16 <= width_ns)
        unit *= 2;
    return unit;
}

static int encode_chunk(const struct nrg_rows *rows, size_t from, struct nrg_codec *codec,
                        struct nrg_chunk *chunk)
{
    size_t n = rows->n - from;
    int64_t *t = calloc(n + 1, sizeof *t);
    const int64_t **columns = calloc(rows->n_columns + 1, sizeof *columns);
    int rc = t && columns ? 0 : -ENOMEM;
    if (!rc) {
        chunk->n = n;
        chunk->width_ns = rows->width_ns;
        chunk->time_unit_ns = time_unit_ns(rows->width_ns);
        chunk->first_ns = chunk->last_ns = rows->t_ns[from];
        for (size_t i = from; i < rows->n; i++) {
            if (rows->t_ns[i] < chunk->first_ns)
                chunk->first_ns = rows->t_ns[i];
            if (rows->t_ns[i] > chunk->last_ns)
                chunk->last_ns = rows->t_ns[i];
        }
        for (size_t i = 0; i < n; i++)
            t[i] = (rows->t_ns[from + i] - chunk->first_ns + chunk->time_unit_ns / 2) /
                   chunk->time_unit_ns;
        columns[0] = t;
        for (size_t c = 0; c < rows->n_columns; c++)
            columns[c + 1] = nrg_rows_column(rows, c) + from;
        rc = nrg_columns_encode(codec, columns, rows->n_columns + 1, n, &chunk->data,
                                &chunk->data_len);
    }
    free(t);
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
                       struct nrg_codec *codec, int64_t *id)
{
    struct nrg_chunk chunk = {.series = s->id};
    struct nrg_rows sorted;
    struct nrg_str stats = {0};
    const struct nrg_rows *rows = &s->rows;
    int rc = 0;
    nrg_rows_init(&sorted, s->rows.n_columns);
    if (s->kind != NRG_SAMPLES) {
        rc = copy_sorted(&s->rows, from, &sorted);
        rows = &sorted;
        from = 0;
    } else if (rows->n - from >= STATS_MIN_ROWS) {
        rc = add_column_stats(rows, from, &stats);
    }
    if (!rc)
        rc = encode_chunk(rows, from, codec, &chunk);
    chunk.stats = (const uint8_t *)stats.text;
    chunk.stats_len = stats.len;
    if (!rc)
        rc = nrg_sql_chunk(sql, &chunk, id);
    nrg_str_release(&stats);
    nrg_rows_release(&sorted);
    return rc;
}

int nrg_series_write(struct nrg_series *s, struct nrg_sql *sql, struct nrg_codec *codec,
                     bool closing)
{
    const struct nrg_rows *rows = &s->rows;
    int64_t id;
    s->done = NRG_SERIES_IDLE;
    if (!rows->n || (rows->n == s->written && !(closing && s->n_live > 1)))
        return 0;
    int64_t span_ns = rows->t_ns[rows->n - 1] - rows->t_ns[0];
    bool merge = closing || rows->n >= NRG_MERGE_ROWS || span_ns >= MERGE_NS;
    int rc = write_chunk(s, merge ? 0 : s->written, sql, codec, &id);
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

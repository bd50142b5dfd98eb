/*
 * See cursor.h. A merge of the series' readers by linear search for the earliest row: there are
 * a handful of series, and the search is a fraction of what formatting a row costs.
 */
#include "record/read/cursor.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "record/read/series.h"

struct lane {
    int series;
    enum nrg_series_kind kind;
    struct nrg_series_reader *reader;
    const struct nrg_rows *rows; /* NULL: not read yet, or ended */
    size_t at;
    size_t *order; /* of rows by time, for process-like chunks; NULL: as they are */
    size_t cap_order;
    bool ended;
};

struct nrg_cursor {
    struct lane *lanes;
    size_t n_lanes, cap_lanes;
    int64_t *cells;
};

static int add_lane(struct nrg_cursor *cursor, struct nrg_recording *recording, int series,
                    enum nrg_series_kind kind)
{
    struct lane lane = {.series = series, .kind = kind};
    int rc = nrg_series_reader_new(recording, series, &lane.reader);
    if (!rc &&
        (rc = nrg_append(&cursor->lanes, &cursor->n_lanes, &cursor->cap_lanes, &lane, sizeof lane)))
        nrg_series_reader_free(lane.reader);
    return rc;
}

static int add_kind(struct nrg_cursor *cursor, struct nrg_recording *recording,
                    enum nrg_series_kind kind, size_t *widest)
{
    int series, rc = 0;
    for (size_t at = 0; !rc && (series = nrg_recording_next_series(recording, kind, &at));) {
        size_t columns = nrg_recording_columns(recording, series, NULL);
        *widest = columns > *widest ? columns : *widest;
        rc = add_lane(cursor, recording, series, kind);
    }
    return rc;
}

int nrg_cursor_open(struct nrg_recording *recording, unsigned kinds, struct nrg_cursor **out)
{
    struct nrg_cursor *cursor = calloc(1, sizeof *cursor);
    size_t widest = 0;
    int rc = cursor ? 0 : -ENOMEM;
    for (unsigned kind = NRG_SAMPLES; !rc && kind <= NRG_THREADS; kind++)
        if (kinds & 1u << kind)
            rc = add_kind(cursor, recording, (enum nrg_series_kind)kind, &widest);
    if (!rc && !(cursor->cells = calloc(widest + 1, sizeof *cursor->cells)))
        rc = -ENOMEM;
    if (rc)
        nrg_cursor_free(cursor);
    else
        *out = cursor;
    return rc;
}

void nrg_cursor_free(struct nrg_cursor *cursor)
{
    if (!cursor)
        return;
    for (size_t i = 0; i < cursor->n_lanes; i++) {
        nrg_series_reader_free(cursor->lanes[i].reader);
        free(cursor->lanes[i].order);
    }
    free(cursor->lanes);
    free(cursor->cells);
    free(cursor);
}

static int by_time(const void *a, const void *b, void *arg)
{
    const struct nrg_rows *rows = arg;
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    if (rows->t_ns[x] != rows->t_ns[y])
        return rows->t_ns[x] < rows->t_ns[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int sort_lane(struct lane *lane)
{
    if (lane->kind == NRG_SAMPLES)
        return 0;
    int rc = nrg_reserve(&lane->order, &lane->cap_order, lane->rows->n, sizeof *lane->order);
    if (rc)
        return rc;
    for (size_t i = 0; i < lane->rows->n; i++)
        lane->order[i] = i;
    qsort_r(lane->order, lane->rows->n, sizeof *lane->order, by_time, (void *)lane->rows);
    return 0;
}

static size_t row_of(const struct lane *lane)
{
    return lane->kind == NRG_SAMPLES ? lane->at : lane->order[lane->at];
}

/* Makes the lane stand at its next row, if it has one. */
static int fill_lane(struct lane *lane)
{
    while (!lane->ended && (!lane->rows || lane->at >= lane->rows->n)) {
        int rc = nrg_series_reader_next(lane->reader, &lane->rows);
        lane->at = 0;
        lane->ended = rc <= 0;
        if (rc < 0 || (rc > 0 && (rc = sort_lane(lane))))
            return rc;
    }
    return 0;
}

int nrg_cursor_next(struct nrg_cursor *cursor, struct nrg_cursor_row *row)
{
    struct lane *first = NULL;
    for (size_t i = 0; i < cursor->n_lanes; i++) {
        struct lane *lane = &cursor->lanes[i];
        int rc = fill_lane(lane);
        if (rc)
            return rc;
        if (!lane->ended &&
            (!first || lane->rows->t_ns[row_of(lane)] < first->rows->t_ns[row_of(first)]))
            first = lane;
    }
    if (!first)
        return 0;
    size_t at = row_of(first);
    for (size_t c = 0; c < first->rows->n_columns; c++)
        cursor->cells[c] = nrg_rows_column(first->rows, c)[at];
    *row = (struct nrg_cursor_row){.t_ns = first->rows->t_ns[at],
                                   .series = first->series,
                                   .kind = first->kind,
                                   .n_columns = first->rows->n_columns,
                                   .cells = cursor->cells};
    first->at++;
    return 1;
}

void nrg_cursor_rewind(struct nrg_cursor *cursor)
{
    for (size_t i = 0; i < cursor->n_lanes; i++) {
        struct lane *lane = &cursor->lanes[i];
        nrg_series_reader_rewind(lane->reader);
        lane->rows = NULL;
        lane->at = 0;
        lane->ended = false;
    }
}

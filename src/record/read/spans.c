/* See span_reader.h. The heap holds one entry per track of a chunk, with the track's next time. */
#include "record/read/spans.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "record/read/series.h"

struct run {
    int64_t t_ns; /* of row `at` */
    size_t at, end;
};

struct lane {
    struct nrg_series_reader *reader;
    const struct nrg_rows *rows;
    struct run *heap; /* the earliest first */
    size_t n, cap;
    bool ended;
};

struct nrg_span_reader {
    struct lane *lanes;
    size_t n_lanes;
    size_t odd; /* rows that are no events */
};

static int add_lanes(struct nrg_span_reader *r, struct nrg_recording *recording, const int *series,
                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        /* A series with other columns is not ours to read. */
        if (nrg_recording_columns(recording, series[i], NULL) != NRG_S_COLUMNS)
            continue;
        int rc = nrg_series_reader_new(recording, series[i], &r->lanes[r->n_lanes].reader);
        if (rc)
            return rc;
        r->n_lanes++;
    }
    return 0;
}

int nrg_span_reader_new(struct nrg_recording *recording, struct nrg_span_reader **out)
{
    size_t n = nrg_recording_series_of(recording, NRG_SPANS, NULL, 0);
    struct nrg_span_reader *r = calloc(1, sizeof *r);
    int *series = calloc(n + 1, sizeof *series);
    int rc = r && series && (r->lanes = calloc(n + 1, sizeof *r->lanes)) ? 0 : -ENOMEM;
    if (!rc) {
        nrg_recording_series_of(recording, NRG_SPANS, series, n);
        rc = add_lanes(r, recording, series, n);
    }
    free(series);
    if (rc)
        nrg_span_reader_free(r);
    else
        *out = r;
    return rc;
}

void nrg_span_reader_free(struct nrg_span_reader *r)
{
    if (!r)
        return;
    for (size_t i = 0; r->lanes && i < r->n_lanes; i++) {
        nrg_series_reader_free(r->lanes[i].reader);
        free(r->lanes[i].heap);
    }
    free(r->lanes);
    free(r);
}

static void sift_down(struct lane *lane, size_t i)
{
    struct run moved = lane->heap[i];
    for (size_t child; (child = 2 * i + 1) < lane->n; i = child) {
        if (child + 1 < lane->n && lane->heap[child + 1].t_ns < lane->heap[child].t_ns)
            child++;
        if (moved.t_ns <= lane->heap[child].t_ns)
            break;
        lane->heap[i] = lane->heap[child];
    }
    lane->heap[i] = moved;
}

/* A run per stretch of equal track. */
static int make_heap(struct lane *lane)
{
    const struct nrg_rows *rows = lane->rows;
    const int64_t *tracks = nrg_rows_column(rows, NRG_S_TRACK);
    lane->n = 0;
    for (size_t from = 0, i = 1; i <= rows->n; i++) {
        if (i < rows->n && tracks[i] == tracks[from])
            continue;
        int rc = nrg_reserve(&lane->heap, &lane->cap, lane->n + 1, sizeof *lane->heap);
        if (rc)
            return rc;
        lane->heap[lane->n++] = (struct run){rows->t_ns[from], from, i};
        from = i;
    }
    for (size_t i = lane->n / 2; i-- > 0;)
        sift_down(lane, i);
    return 0;
}

static int fill(struct lane *lane)
{
    while (!lane->ended && !lane->n) {
        int rc = nrg_series_reader_next(lane->reader, &lane->rows);
        lane->ended = rc <= 0;
        if (rc < 0 || (rc > 0 && (rc = make_heap(lane))))
            return rc;
    }
    return 0;
}

static void advance(struct lane *lane)
{
    struct run *run = &lane->heap[0];
    if (++run->at < run->end)
        run->t_ns = lane->rows->t_ns[run->at];
    else
        *run = lane->heap[--lane->n];
    if (lane->n > 1)
        sift_down(lane, 0);
}

static struct lane *earliest(struct nrg_span_reader *r, int *rc)
{
    struct lane *first = NULL;
    for (size_t i = 0; i < r->n_lanes; i++) {
        struct lane *lane = &r->lanes[i];
        if (!lane->n && (*rc = fill(lane)))
            return NULL;
        if (lane->n && (!first || lane->heap[0].t_ns < first->heap[0].t_ns))
            first = lane;
    }
    return first;
}

int nrg_span_reader_next(struct nrg_span_reader *r, struct nrg_span_row *row)
{
    int rc = 0;
    for (struct lane *lane; (lane = earliest(r, &rc));) {
        size_t at = lane->heap[0].at, cap = lane->rows->cap;
        const int64_t *cells = lane->rows->cells + at;
        int64_t event = cells[NRG_S_EVENT * cap];
        *row = (struct nrg_span_row){.t_ns = lane->heap[0].t_ns,
                                     .track = cells[NRG_S_TRACK * cap],
                                     .name = cells[NRG_S_NAME * cap],
                                     .value = cells[NRG_S_VALUE * cap],
                                     .parent = cells[NRG_S_PARENT * cap],
                                     .event = (enum nrg_span_event)event};
        advance(lane);
        if (event >= NRG_SPAN_BEGIN && event <= NRG_SPAN_COUNT)
            return 1;
        r->odd++;
    }
    return rc;
}

void nrg_span_reader_rewind(struct nrg_span_reader *r)
{
    for (size_t i = 0; i < r->n_lanes; i++) {
        nrg_series_reader_rewind(r->lanes[i].reader);
        r->lanes[i].n = 0;
        r->lanes[i].ended = false;
    }
    r->odd = 0;
}

size_t nrg_span_reader_damaged(const struct nrg_span_reader *r)
{
    size_t n = r->odd;
    for (size_t i = 0; i < r->n_lanes; i++)
        n += nrg_series_reader_damaged(r->lanes[i].reader);
    return n;
}

/* See read/spans.h. The heap holds one entry per track of a chunk, with the track's next time. */
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
    size_t n_lanes, cap_lanes;
    size_t odd;                           /* rows that are not events */
    const struct nrg_span_source *source; /* instead of lanes; NULL */
};

static int add_lane(struct nrg_span_reader *r, struct nrg_recording *recording, int series)
{
    struct lane lane = {0};
    int rc = nrg_series_reader_new(recording, series, &lane.reader);
    if (!rc && (rc = nrg_append(&r->lanes, &r->n_lanes, &r->cap_lanes, &lane, sizeof lane)))
        nrg_series_reader_free(lane.reader);
    return rc;
}

int nrg_span_reader_new(struct nrg_recording *recording, struct nrg_span_reader **out)
{
    struct nrg_span_reader *r = calloc(1, sizeof *r);
    int series, rc = r ? 0 : -ENOMEM;
    for (size_t at = 0; !rc && (series = nrg_recording_next_series(recording, NRG_SPANS, &at));)
        /* A series with other columns is of another version. */
        if (nrg_recording_columns(recording, series, NULL) == NRG_S_COLUMNS)
            rc = add_lane(r, recording, series);
    if (rc)
        nrg_span_reader_free(r);
    else
        *out = r;
    return rc;
}

int nrg_span_reader_over(const struct nrg_span_source *source, struct nrg_span_reader **out)
{
    struct nrg_span_reader *r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->source = source;
    source->rewind(source->arg);
    *out = r;
    return 0;
}

void nrg_span_reader_free(struct nrg_span_reader *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_lanes; i++) {
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

/* One run for all neighbouring rows of a track, and on, as long as time does not go back: rows that
 * were in order already are one run. */
static int make_heap(struct lane *lane)
{
    const struct nrg_rows *rows = lane->rows;
    const int64_t *tracks = nrg_rows_column(rows, NRG_S_TRACK);
    lane->n = 0;
    for (size_t from = 0, i = 1; i <= rows->n; i++) {
        if (i < rows->n && (tracks[i] == tracks[i - 1] || rows->t_ns[i] >= rows->t_ns[i - 1]))
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

static int fill_heap(struct lane *lane)
{
    while (!lane->ended && !lane->n) {
        int rc = nrg_series_reader_next(lane->reader, &lane->rows);
        lane->ended = rc <= 0;
        if (rc < 0 || (rc > 0 && (rc = make_heap(lane))))
            return rc;
    }
    return 0;
}

static void drop_earliest(struct lane *lane)
{
    struct run *run = &lane->heap[0];
    if (++run->at < run->end)
        run->t_ns = lane->rows->t_ns[run->at];
    else
        *run = lane->heap[--lane->n];
    if (lane->n > 1)
        sift_down(lane, 0);
}

static struct lane *find_earliest(struct nrg_span_reader *r, int *rc)
{
    struct lane *first = NULL;
    for (size_t i = 0; i < r->n_lanes; i++) {
        struct lane *lane = &r->lanes[i];
        if (!lane->n && (*rc = fill_heap(lane)))
            return NULL;
        if (lane->n && (!first || lane->heap[0].t_ns < first->heap[0].t_ns))
            first = lane;
    }
    return first;
}

int nrg_span_reader_next(struct nrg_span_reader *r, struct nrg_span_row *row)
{
    int rc = 0;
    if (r->source)
        return r->source->next(r->source->arg, row);
    for (struct lane *lane; (lane = find_earliest(r, &rc));) {
        size_t at = lane->heap[0].at, cap = lane->rows->cap;
        const int64_t *cells = lane->rows->cells + at;
        int64_t event = cells[NRG_S_EVENT * cap];
        *row = (struct nrg_span_row){.t_ns = lane->heap[0].t_ns,
                                     .track = cells[NRG_S_TRACK * cap],
                                     .name = cells[NRG_S_NAME * cap],
                                     .value = cells[NRG_S_VALUE * cap],
                                     .parent = cells[NRG_S_PARENT * cap],
                                     .event = (enum nrg_span_event)event};
        drop_earliest(lane);
        if (event >= NRG_SPAN_BEGIN && event <= NRG_SPAN_COUNT)
            return 1;
        r->odd++;
    }
    return rc;
}

void nrg_span_reader_rewind(struct nrg_span_reader *r)
{
    if (r->source)
        r->source->rewind(r->source->arg);
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

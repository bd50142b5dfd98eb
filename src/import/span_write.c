/*
 * Writes a sink's spans as events of a recording (internal.h). Each track is walked on its own
 * (span_nest.h), and a heap merges the walks by time. Rows thus come out in order whatever the
 * order of the log, for four bytes a span beside the records.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "import/internal.h"
#include "record/store/database.h"
#include "sensors/channel.h"

struct lane {
    struct nrg_span_nesting walk;
    struct nrg_span_nesting_event event; /* the next one */
    uint32_t track;
};

struct writer {
    const struct nrg_span_sink *sink;
    struct nrg_store *store;
    struct nrg_span_sink_result *result;
    int64_t name_base, track_base, path_base; /* the highest ids that the store has */
    struct nrg_rows rows;
    int series;
    struct lane *lanes;
    size_t n_lanes;
    struct lane **heap; /* lanes that have an event, earliest first */
    size_t n_heap;
};

static bool is_earlier(const struct lane *a, const struct lane *b)
{
    if (a->event.t_ns != b->event.t_ns)
        return a->event.t_ns < b->event.t_ns;
    return a->track < b->track;
}

static void sink_down(struct writer *w, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < w->n_heap; child++)
            if (is_earlier(w->heap[child], w->heap[least]))
                least = child;
        if (least == at)
            return;
        struct lane *moved = w->heap[at];
        w->heap[at] = w->heap[least];
        w->heap[least] = moved;
        at = least;
    }
}

static int open_lanes(struct writer *w, const struct nrg_span_order *order)
{
    const struct nrg_span_sink *sink = w->sink;
    w->lanes = nrg_calloc(order->n_tracks + 1, sizeof *w->lanes);
    w->heap = nrg_calloc(order->n_tracks + 1, sizeof *w->heap);
    if (!w->lanes || !w->heap)
        return -ENOMEM;
    for (size_t t = 1; t <= order->n_tracks; t++) {
        struct lane *lane = &w->lanes[w->n_lanes++];
        lane->track = (uint32_t)t;
        nrg_span_nesting_init(&lane->walk, sink->records, order, lane->track, sink->slack_ns);
        int rc = nrg_span_nesting_next(&lane->walk, &lane->event);
        if (rc < 0)
            return rc;
        if (rc)
            w->heap[w->n_heap++] = lane;
    }
    for (size_t i = w->n_heap; i-- > 0;)
        sink_down(w, i);
    return 0;
}

static int add_span_row(struct writer *w, const struct nrg_span_nesting_event *event)
{
    const struct nrg_span_record *r = &w->sink->records[event->record];
    int64_t cells[NRG_S_COLUMNS] = {w->track_base + r->track, event->event, w->name_base + r->name,
                                    NRG_MISSING, NRG_MISSING};
    if (event->event != NRG_SPAN_END)
        cells[NRG_S_VALUE] = r->number;
    else if (r->duration_ns && r->duration_ns != r->end_ns - r->begin_ns)
        cells[NRG_S_VALUE] = r->duration_ns;
    if (event->event == NRG_SPAN_BEGIN && r->path)
        cells[NRG_S_PARENT] = w->path_base + r->path;
    int rc = nrg_rows_add(&w->rows, event->t_ns, 0, cells);
    if (rc || w->rows.n < NRG_IMPORT_FLUSH_ROWS)
        return rc;
    return nrg_import_flush_rows(w->store, w->series, &w->rows);
}

static int write_events(struct writer *w)
{
    int rc = 0;
    while (!rc && w->n_heap) {
        struct lane *lane = w->heap[0];
        rc = add_span_row(w, &lane->event);
        int more = rc ? 0 : nrg_span_nesting_next(&lane->walk, &lane->event);
        if (more < 0)
            rc = more;
        if (more == 0)
            w->heap[0] = w->heap[--w->n_heap];
        sink_down(w, 0);
    }
    for (size_t i = 0; i < w->n_lanes; i++)
        w->result->cut += w->lanes[i].walk.cut;
    return rc ? rc : nrg_import_flush_rows(w->store, w->series, &w->rows);
}

static int write_catalog(struct writer *w)
{
    const struct nrg_span_sink *sink = w->sink;
    int rc = 0;
    for (size_t i = 1; !rc && i <= sink->names.n; i++) {
        struct nrg_span_name name = nrg_span_sink_name_of(sink, (int64_t)i);
        name.id += w->name_base;
        rc = nrg_store_span_name(w->store, &name);
    }
    for (size_t i = 0; !rc && i < sink->n_descriptions; i++) {
        struct nrg_span_track track = sink->descriptions[i];
        track.id += w->track_base;
        rc = nrg_store_span_track(w->store, &track);
    }
    for (size_t i = 1; !rc && i <= sink->paths.n; i++) {
        int64_t key[2];
        memcpy(key, nrg_map_text(&sink->paths, (int64_t)i, NULL), sizeof key);
        const struct nrg_span_path path = {
            (int64_t)i + w->path_base, key[0] ? key[0] + w->path_base : 0, key[1] + w->name_base};
        rc = nrg_store_span_path(w->store, &path);
    }
    return rc;
}

/* What the store has already; the caller has committed, so its database is complete. */
static int read_bases(struct writer *w)
{
    sqlite3 *db = nrg_store_database(w->store);
    w->name_base = nrg_database_number(db, "SELECT ifnull(max(id), 0) FROM span_name");
    w->track_base = nrg_database_number(db, "SELECT ifnull(max(id), 0) FROM span_track");
    w->path_base = nrg_database_number(db, "SELECT ifnull(max(id), 0) FROM span_path");
    w->result->samples_first_ns = nrg_database_number(
        db, "SELECT ifnull(min(first_ns), 0) FROM chunk JOIN series ON series.id = chunk.series "
            "WHERE kind = 'samples'");
    w->result->samples_last_ns = nrg_database_number(
        db, "SELECT ifnull(max(last_ns), 0) FROM chunk JOIN series ON series.id = chunk.series "
            "WHERE kind = 'samples'");
    int64_t most = INT64_MAX / 4;
    if (w->name_base < 0 || w->track_base < 0 || w->path_base < 0 ||
        w->result->samples_first_ns < 0 || w->result->samples_last_ns < 0)
        return -EIO;
    return w->name_base > most || w->track_base > most || w->path_base > most ? -ERANGE : 0;
}

static void count_spans(const struct nrg_span_sink *sink, struct nrg_span_sink_result *result)
{
    bool known = result->samples_last_ns > 0;
    result->spans = sink->n;
    for (size_t i = 0; i < sink->n; i++) {
        const struct nrg_span_record *r = &sink->records[i];
        bool open = r->end_ns == NRG_RECORD_OPEN;
        result->unclosed += open;
        result->empty += r->end_ns == r->begin_ns;
        result->outside += known && (r->begin_ns > result->samples_last_ns ||
                                     (!open && r->end_ns < result->samples_first_ns));
    }
}

static int write_all(struct writer *w)
{
    struct nrg_span_order order = {0};
    int rc = nrg_store_commit(w->store);
    if (!rc)
        rc = read_bases(w);
    if (!rc)
        rc = write_catalog(w);
    if (!rc && (w->series = nrg_store_series(w->store, NRG_SPANS)) < 0)
        rc = w->series;
    if (!rc)
        rc = nrg_span_order_make(&order, w->sink->records, w->sink->n, w->sink->n_descriptions);
    if (!rc)
        rc = open_lanes(w, &order);
    if (!rc)
        rc = write_events(w);
    nrg_span_order_release(&order);
    return rc;
}

int nrg_span_sink_write(struct nrg_span_sink *sink, struct nrg_store *store,
                        struct nrg_span_sink_result *result)
{
    struct writer w = {.sink = sink, .store = store, .result = result, .series = -1};
    *result = (struct nrg_span_sink_result){0};
    if (!nrg_span_sink_extent(sink, &result->first_ns, &result->last_ns) &&
        !(nrg_is_time(result->first_ns) && nrg_is_time(result->last_ns)))
        return -ERANGE;
    nrg_rows_init(&w.rows, NRG_S_COLUMNS);
    int rc = write_all(&w);
    if (!rc)
        count_spans(sink, result);
    for (size_t i = 0; i < w.n_lanes; i++)
        nrg_span_nesting_release(&w.lanes[i].walk);
    free(w.lanes);
    free(w.heap);
    nrg_rows_release(&w.rows);
    return rc;
}

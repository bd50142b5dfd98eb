/* See span_bench.h. */
#include "support/span_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "mark/client.h"
#include "sensors/channel.h"

void bench_begin(struct span_bench *b, bool attached)
{
    *b = (struct span_bench){0};
    assert_int_equal(nrg_span_segment_init(&b->segment, attached, NULL), 0);
    nrg_queue_init(&b->queue);
    struct nrg_span_drain_options o = {.segment = &b->segment,
                                       .queue = &b->queue,
                                       .spans_series = BENCH_SPANS,
                                       .threads_series = BENCH_THREADS,
                                       .cpu_period_ns = 0};
    b->drain = nrg_span_drain_new(&o);
    assert_non_null(b->drain);
    if (attached)
        assert_int_equal(nrg_span_client_attach(b->segment.header), 0);
}

static void take_rows(struct span_bench *b, const struct nrg_message *m)
{
    for (size_t i = 0; i < m->rows.n; i++) {
        assert_int_equal(nrg_reserve(&b->rows, &b->cap_rows, b->n_rows + 1, sizeof *b->rows), 0);
        struct bench_row *row = &b->rows[b->n_rows++];
        *row = (struct bench_row){.t_ns = m->rows.t_ns[i]};
        row->series = m->kind == NRG_MSG_PAST_ROWS ? 100 + m->series : m->series;
        for (size_t c = 0; c < m->rows.n_columns; c++)
            row->values[c] = nrg_rows_column(&m->rows, c)[i];
    }
}

static void take_message(struct span_bench *b, struct nrg_message *m)
{
    switch (m->kind) {
    case NRG_MSG_ROWS:
    case NRG_MSG_PAST_ROWS:
        take_rows(b, m);
        break;
    case NRG_MSG_SPAN_NAME:
        assert_int_equal(nrg_reserve(&b->names, &b->cap_names, b->n_names + 1, sizeof *b->names),
                         0);
        b->names[b->n_names++] = m->span_name;
        m->span_name.text = NULL;
        break;
    case NRG_MSG_SPAN_TRACK:
        assert_int_equal(
            nrg_reserve(&b->tracks, &b->cap_tracks, b->n_tracks + 1, sizeof *b->tracks), 0);
        b->tracks[b->n_tracks++] = m->span_track;
        break;
    case NRG_MSG_EVENT:
        assert_int_equal(
            nrg_reserve(&b->events, &b->cap_events, b->n_events + 1, sizeof *b->events), 0);
        b->events[b->n_events++] = m->event;
        break;
    default:
        fail_msg("a message of kind %d", m->kind);
    }
}

static void take_all(struct span_bench *b)
{
    bool stop;
    nrg_queue_wake(&b->queue);
    for (struct nrg_message *m = nrg_queue_take(&b->queue, &stop), *next; m; m = next) {
        next = m->next;
        take_message(b, m);
        nrg_queue_done(&b->queue, m);
    }
}

void bench_step(struct span_bench *b)
{
    nrg_span_drain_step(b->drain, false);
    nrg_span_drain_hand_over(b->drain);
    take_all(b);
}

void bench_end(struct span_bench *b)
{
    nrg_span_client_detach();
    nrg_span_drain_stop(b->drain);
    take_all(b);
    b->totals = nrg_span_drain_totals(b->drain);
}

void bench_release(struct span_bench *b)
{
    nrg_span_drain_free(b->drain);
    take_all(b);
    nrg_queue_release(&b->queue);
    for (size_t i = 0; i < b->n_names; i++)
        free(b->names[i].text);
    free(b->names);
    free(b->rows);
    free(b->tracks);
    free(b->events);
    if (!b->segment.whole)
        nrg_span_segment_release(&b->segment);
}

size_t bench_count(const struct span_bench *b, int series, int64_t track, int event)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n_rows; i++)
        n += b->rows[i].series == series && (!track || b->rows[i].values[NRG_S_TRACK] == track) &&
             (event < 0 || b->rows[i].values[NRG_S_EVENT] == event);
    return n;
}

const char *bench_name(const struct span_bench *b, int64_t id)
{
    for (size_t i = 0; i < b->n_names; i++)
        if (b->names[i].id == id)
            return b->names[i].text;
    return "(no such name)";
}

const struct nrg_span_track *bench_track_of(const struct span_bench *b, int32_t tid)
{
    for (size_t i = 0; i < b->n_tracks; i++)
        if (b->tracks[i].tid == tid)
            return &b->tracks[i];
    return NULL;
}

size_t bench_check(const struct span_bench *b)
{
    int64_t last[256] = {0};
    long depth[4096] = {0};
    size_t open = 0;
    for (size_t i = 0; i < b->n_rows; i++) {
        const struct bench_row *row = &b->rows[i];
        assert_true(row->t_ns >= last[row->series] && row->t_ns <= nrg_now_ns());
        last[row->series] = row->t_ns;
        if (row->series == BENCH_THREADS)
            continue;
        int64_t track = row->values[NRG_S_TRACK], event = row->values[NRG_S_EVENT];
        assert_in_range(track, 1, 4095);
        depth[track] += event == NRG_SPAN_BEGIN ? 1 : event == NRG_SPAN_END ? -1 : 0;
        assert_true(depth[track] >= 0);
        if (event != NRG_SPAN_END)
            assert_string_not_equal(bench_name(b, row->values[NRG_S_NAME]), "(no such name)");
        else
            assert_true(row->values[NRG_S_NAME] == NRG_MISSING);
    }
    for (size_t i = 0; i < 4096; i++)
        open += (size_t)depth[i];
    return open;
}

/*
 * Rows of spans and threads on their way to the writer, made of the events that lanes give out in
 * order of time. Embedded in the drain: init, release. Errors: what does not fit into memory is
 * dropped and counted. Not thread-safe.
 */
#ifndef NRG_RECORD_SPANS_ROWS_H
#define NRG_RECORD_SPANS_ROWS_H

#include "record/spans/drain.h"
#include "record/spans/history.h"
#include "record/spans/lane.h"
#include "record/spans/texts.h"

struct nrg_past_track;

struct nrg_span_rows {
    struct nrg_queue *queue;
    int spans_series, threads_series;
    struct nrg_rows spans, threads;
    struct nrg_rows past[NRG_PAST_SERIES];
    int64_t past_last_ns[NRG_PAST_SERIES];
    struct nrg_past_track *tracks;
    size_t n_tracks, cap_tracks, last_track, n_past;
    int64_t last_ns, threads_last_ns, next_track;
    struct nrg_span_texts texts;
    struct nrg_span_histories histories;
};

void nrg_span_rows_init(struct nrg_span_rows *rows, const struct nrg_span_drain_options *options);
void nrg_span_rows_release(struct nrg_span_rows *rows);

/* Adds the event in lane->next. */
void nrg_span_rows_add(struct nrg_span_rows *rows, struct nrg_span_lane *lane,
                       struct nrg_span_totals *totals);
/* Adds the CPU time that the lane's thread had used at t_ns. */
void nrg_span_rows_cpu(struct nrg_span_rows *rows, struct nrg_span_lane *lane, int64_t t_ns,
                       int64_t cpu_ns);
/* True when there are enough for a chunk. */
bool nrg_span_rows_are_many(const struct nrg_span_rows *rows);
void nrg_span_rows_hand_over(struct nrg_span_rows *rows);

#endif

/*
 * What a recorder does about spans: the drain, its series, and what is known at the end. Embedded
 * in the recorder; without a segment everything here does nothing.
 */
#ifndef NRG_RECORD_RECORDER_SPANS_H
#define NRG_RECORD_RECORDER_SPANS_H

#include "record/spans/drain.h"
#include "record/store/writer.h"

struct nrg_recorder_spans {
    struct nrg_span_drain *drain;
    struct nrg_store *store;
    int past_series[NRG_PAST_SERIES]; /* 0: not there yet */
};

int nrg_recorder_spans_init(struct nrg_recorder_spans *spans,
                            const struct nrg_span_segment *segment, struct nrg_store *store,
                            struct nrg_queue *queue, int64_t cpu_period_ns);
void nrg_recorder_spans_release(struct nrg_recorder_spans *spans);

/* For the writing thread: names, tracks and past rows. */
void nrg_recorder_spans_apply(struct nrg_recorder_spans *spans, const struct nrg_message *message);
/* How many, and how many are missing, into the metadata; the drain must have stopped. */
void nrg_recorder_spans_finish(struct nrg_recorder_spans *spans);

#endif

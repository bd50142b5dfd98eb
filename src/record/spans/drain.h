/*
 * From the rings of marked programs to rows of the recording, on a thread of its own: a burst of
 * spans must not delay the reading of a sensor. It sleeps until a thread takes a slot
 * (mark/ring.h); then it runs every 100 ms, down to 5 ms when a ring fills up, until all threads
 * have ended.
 *
 * Events of all rings come out in order of time. Each round reads the clock first and leaves later
 * events in the rings. An event that is late nevertheless (its thread was stopped between reading
 * the clock and writing) gets the time of the last one given out, and is counted. Past spans, which
 * a program reports long after they happened, go to series of their own by track: in the common
 * series they would break the order.
 *
 * When the writer is behind, events stay in the rings. What does not fit there is dropped by the
 * program's side and counted, so memory is bounded whatever a program does.
 *
 * Life: new, start, (exiting), stop, totals, free. `segment` and `queue` outlive it. Errors: a
 * negative errno. Threads: all calls but exiting, read_cpu and is_marked come
 * from one thread.
 */
#ifndef NRG_RECORD_SPANS_DRAIN_H
#define NRG_RECORD_SPANS_DRAIN_H

#include "record/format.h"
#include "record/pace.h"
#include "record/queue.h"
#include "record/spans/segment.h"

struct nrg_span_drain;

#define NRG_PAST_SERIES 64 /* more tracks than that share them */

struct nrg_span_drain_options {
    const struct nrg_span_segment *segment;
    struct nrg_queue *queue;
    int spans_series, threads_series;
    int64_t cpu_period_ns;       /* between two readings of threads' CPU time */
    const struct nrg_pace *pace; /* outlives it; NULL: once a second */
};

struct nrg_span_totals {
    uint64_t threads; /* that marked something */
    uint64_t spans, events;
    uint64_t dropped;                    /* spans, marks and counts that are missing */
    uint64_t dropped_by[NRG_SPAN_DROPS]; /* the same by reason (record/format.h) */
    uint64_t refused;                    /* programs whose libnrg is of another layout */
    uint64_t late;                       /* events whose time had to be raised */
    uint64_t damaged;                    /* records that were not events */
    uint64_t forgotten; /* past spans that were launched longer ago than is remembered */
};

/* NULL when out of memory. */
struct nrg_span_drain *nrg_span_drain_new(const struct nrg_span_drain_options *options);
/* *thread is the new thread, for the count of its CPU time. */
int nrg_span_drain_start(struct nrg_span_drain *drain, pthread_t *thread);
/* True from the first thread on that marks anything. */
bool nrg_span_drain_is_marked(const struct nrg_span_drain *drain);
/*
 * Reads the CPU times of all threads now, beside those of processes. Does nothing while the rings
 * are being emptied: the drain reads them itself where it has not been asked for a while.
 */
void nrg_span_drain_read_cpu(struct nrg_span_drain *drain);
/* A process has ended but was not waited for: reads the CPU time of its threads a last time. */
void nrg_span_drain_exiting(struct nrg_span_drain *drain, int32_t pid);
/* Ends the thread, empties the rings, and tells programs that recording has ended. */
void nrg_span_drain_stop(struct nrg_span_drain *drain);
/* Valid after stop. */
struct nrg_span_totals nrg_span_drain_totals(const struct nrg_span_drain *drain);
void nrg_span_drain_free(struct nrg_span_drain *drain);

/*
 * One round, for callers without the thread. Returns ns until the next one is due, 0 when no
 * program marks. last: takes all that is there, whatever its time.
 */
int64_t nrg_span_drain_step(struct nrg_span_drain *drain, bool last);
/* Gives the rows collected so far to the queue. */
void nrg_span_drain_hand_over(struct nrg_span_drain *drain);

#endif

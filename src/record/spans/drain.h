/*
 * From the rings of marked programs to rows of the recording, on a thread of its own: a burst of
 * spans must not delay the reading of a sensor. Asleep until a thread takes a slot (span_ring.h);
 * then every 100 ms, down to 5 ms when a ring fills up, until all of them have gone.
 *
 * Events of all rings come out in order of time. Each round takes the time first and leaves what is
 * later in the rings; what comes too late nevertheless (a thread that was stopped between reading
 * the clock and writing) is raised to the last one given out, and counted. Past spans, which are
 * told long after they happened, go to a series per track, because no order could be held
 * otherwise.
 *
 * When the writer is behind, events stay in the rings, and what does not fit there is dropped by
 * the program's side and counted: memory is bounded whatever a program does.
 *
 * Life: new, start, (exiting), stop, totals, free. `segment` and `queue` outlive it.
 */
#ifndef NRG_RECORD_SPAN_DRAIN_H
#define NRG_RECORD_SPAN_DRAIN_H

#include "record/queue.h"
#include "record/spans/segment.h"

struct nrg_span_drain;

#define NRG_PAST_SERIES 64 /* tracks beyond share them */

struct nrg_span_drain_options {
    const struct nrg_span_segment *segment;
    struct nrg_queue *queue;
    int spans_series, threads_series;
    int64_t cpu_period_ns; /* between two readings of threads' CPU time */
};

struct nrg_span_totals {
    uint64_t threads; /* that marked something */
    uint64_t spans, events;
    uint64_t dropped; /* for want of room: spans, marks and counts */
    uint64_t late;    /* whose time had to be raised */
    uint64_t damaged; /* records that said nothing */
};

/* NULL when out of memory. */
struct nrg_span_drain *nrg_span_drain_new(const struct nrg_span_drain_options *options);
/* *thread: for those who count its CPU time. */
int nrg_span_drain_start(struct nrg_span_drain *drain, pthread_t *thread);
/* A process has ended but was not waited for: reads the CPU time of its threads a last time. */
void nrg_span_drain_exiting(struct nrg_span_drain *drain, int32_t pid);
/* Ends the thread, empties the rings, tells programs that nobody listens any more. */
void nrg_span_drain_stop(struct nrg_span_drain *drain);
/* Valid after stop. */
struct nrg_span_totals nrg_span_drain_totals(const struct nrg_span_drain *drain);
void nrg_span_drain_free(struct nrg_span_drain *drain);

/*
 * One round, for who runs without the thread. Returns ns until the next is due, 0 when there is no
 * thread to watch. last: all that is there, whenever it was.
 */
int64_t nrg_span_drain_step(struct nrg_span_drain *drain, bool last);
/* Gives what has come together to the queue. */
void nrg_span_drain_hand_over(struct nrg_span_drain *drain);

#endif

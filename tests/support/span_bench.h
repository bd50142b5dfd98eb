/*
 * A recorder's end of spans without its thread, for tests: memory, a drain that is stepped by
 * hand, and what came out of it, in order.
 */
#ifndef NRG_TESTS_SPAN_BENCH_H
#define NRG_TESTS_SPAN_BENCH_H

#include "record/queue.h"
#include "record/spans/drain.h"

#define BENCH_SPANS   1 /* series */
#define BENCH_THREADS 2

struct bench_row {
    int64_t t_ns;
    int series; /* BENCH_SPANS, BENCH_THREADS, or 100 + number of past rows */
    int64_t values[NRG_S_COLUMNS];
};

struct span_bench {
    struct nrg_span_segment segment;
    struct nrg_queue queue;
    struct nrg_span_drain *drain;
    struct bench_row *rows;
    size_t n_rows, cap_rows;
    struct nrg_span_name *names;
    size_t n_names, cap_names;
    struct nrg_span_track *tracks;
    size_t n_tracks, cap_tracks;
    struct nrg_event *events;
    size_t n_events, cap_events;
    struct nrg_span_totals totals; /* after bench_end */
};

/* attached: this process is the one that marks. */
void bench_begin(struct span_bench *bench, bool attached);
/* A round of the drain; its rows are added to those of the bench. */
void bench_step(struct span_bench *bench);
void bench_end(struct span_bench *bench);
/* The memory stays: a thread of the test may still point there. */
void bench_release(struct span_bench *bench);

/* Of one series, or one series and track (0: all) and kind of event (-1: all). */
size_t bench_count(const struct span_bench *bench, int series, int64_t track, int event);
const char *bench_name(const struct span_bench *bench, int64_t id);
const struct nrg_span_track *bench_track_of(const struct span_bench *bench, int32_t tid);
/* Fails the test unless rows are in order and begins and ends of each track nest. Returns how many
 * spans were left open. */
size_t bench_check(const struct span_bench *bench);

#endif

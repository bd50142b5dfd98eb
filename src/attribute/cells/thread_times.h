/*
 * CPU times of threads between their own readings, which are finer than cells: since 0.2.0 a thread
 * reads its CPU time at the edges of steps and of spans that last a ms or more. What of it was used
 * in spans, and what outside, is then known for intervals of some ms, in which few spans lie.
 *
 * Threads that have no readings but the recorder's, every cell or so, have no intervals here.
 *
 * Load, add the open time of spans (survey.c), settle (cpu.c), release. 0 or -errno. One
 * thread at a time.
 */
#ifndef NRG_ATTRIBUTE_THREAD_TIMES_H
#define NRG_ATTRIBUTE_THREAD_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nrg_engine;

/* Interval i goes from t_ns[i] to t_ns[i + 1]. */
struct nrg_thread_times {
    size_t n; /* intervals; 0: none are known */
    int64_t *t_ns;
    float *cpu_s, *open_s;
    float *open_rate, *gap_rate; /* CPU seconds per second, with a span open and without */
};

/* An interval or a cell, as far as it goes. */
struct nrg_thread_rate {
    int64_t end_ns;
    size_t index; /* SIZE_MAX: no interval of the thread's own */
};

/* CPU time of an interval or a cell, in which spans were open for a part of the length. */
struct nrg_thread_use {
    double cpu_s, open_s, length_s;
    double off_s; /* what the CPU time may be off by, as it was read */
};

/* CPU seconds outside of spans where a thread was busy but one interval can't tell whether there,
 * too: over many the readings' errors cancel. */
struct nrg_thread_gaps {
    double between_s, open_s; /* CPU seconds beyond spans in which it was busy, and these */
    double slept_s;           /* of these, where it slept between some of them */
    double gap_s, off_s;      /* the others' gaps, and what a reading of them may be off by */
};

void nrg_thread_gaps_add(struct nrg_thread_gaps *gaps, const struct nrg_thread_use *use);
/* Of CPU seconds outside of spans, those of which it can't be told in which gap they were. */
double nrg_thread_gaps_unplaced(const struct nrg_thread_gaps *gaps);
/* CPU seconds in spans, and outside. */
void nrg_thread_divide(const struct nrg_thread_use *use, const struct nrg_thread_gaps *gaps,
                       double *inside_s, double *outside_s);

/* One per track, in the cells. */
int nrg_thread_times_load(struct nrg_engine *engine);
void nrg_thread_times_release(struct nrg_thread_times *tracks, size_t n);
/* A span of the track, with none around it, was open. */
void nrg_thread_times_open(struct nrg_thread_times *times, int64_t from_ns, int64_t to_ns);
/* The rates, once all spans are known. */
void nrg_thread_times_settle(struct nrg_thread_times *times);
/* The interval that holds t_ns, or the time up to the next one; *at is where to look first. */
struct nrg_thread_rate nrg_thread_times_at(const struct nrg_thread_times *times, size_t *at,
                                           int64_t t_ns);

#endif

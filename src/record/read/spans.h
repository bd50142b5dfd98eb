/*
 * The span events of a recording in order of time, over all tracks and series. A chunk holds its
 * rows by track, each track's in order of time (format.h). A heap of tracks merges them, so tens of
 * millions of events take seconds. Memory is one chunk per series.
 *
 * Rows that can't be events (unknown kind) are left out and counted as damaged. A track's own
 * events keep the order of the file; events of equal time on several tracks come in any order.
 *
 * Ownership: new, next until 0, free; the recording must outlive it. Errors: a negative errno.
 * Threads: one at a time.
 */
#ifndef NRG_RECORD_READ_SPANS_H
#define NRG_RECORD_READ_SPANS_H

#include "record/read/recording.h"

struct nrg_span_reader;

struct nrg_span_row {
    int64_t t_ns;
    int64_t track, name, value, parent; /* as in format.h */
    enum nrg_span_event event;
};

/* Rows that are made, not read: next() gives them in order of time, as nrg_span_reader_next does;
 * rewind() begins again. */
struct nrg_span_source {
    int (*next)(void *arg, struct nrg_span_row *row);
    void (*rewind)(void *arg);
    void *arg;
};

int nrg_span_reader_new(struct nrg_recording *recording, struct nrg_span_reader **reader);
/* The source, and what it points to, must outlive it. */
int nrg_span_reader_over(const struct nrg_span_source *source, struct nrg_span_reader **reader);
/* 1: a row; 0: the end; -errno. */
int nrg_span_reader_next(struct nrg_span_reader *reader, struct nrg_span_row *row);
void nrg_span_reader_rewind(struct nrg_span_reader *reader);
/* Chunks that could not be read, and rows that are not events, so far. */
size_t nrg_span_reader_damaged(const struct nrg_span_reader *reader);
void nrg_span_reader_free(struct nrg_span_reader *reader);

#endif

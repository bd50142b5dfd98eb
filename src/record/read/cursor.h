/*
 * All rows of several series in order of time: what exports and replay walk over. Memory is one
 * chunk per series, whatever the length of the recording.
 *
 * Process-like chunks are sorted by process first (format.h); their rows are put in order of time
 * chunk by chunk. The recording must outlive the cursor. One thread at a time.
 */
#ifndef NRG_RECORD_CURSOR_H
#define NRG_RECORD_CURSOR_H

#include "record/read/recording.h"

struct nrg_cursor;

struct nrg_cursor_row {
    int64_t t_ns;
    int series;
    enum nrg_series_kind kind;
    size_t n_columns;
    const int64_t *cells; /* valid until the next call */
};

/* With `kinds` as a set of bits (1 << NRG_SAMPLES | ...): all series of those kinds. */
int nrg_cursor_open(struct nrg_recording *recording, unsigned kinds, struct nrg_cursor **cursor);
/* 1: a row; 0: the end; -errno. */
int nrg_cursor_next(struct nrg_cursor *cursor, struct nrg_cursor_row *row);
void nrg_cursor_rewind(struct nrg_cursor *cursor);
/* Chunks that could not be read so far. */
size_t nrg_cursor_damaged(const struct nrg_cursor *cursor);
void nrg_cursor_free(struct nrg_cursor *cursor);

#endif

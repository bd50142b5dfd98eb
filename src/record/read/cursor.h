/*
 * All rows of several series in order of time, for exports and replay. Memory is one chunk per
 * series, whatever the length of the recording.
 *
 * Process-like chunks are sorted by process first (format.h); their rows are put in order of time
 * chunk by chunk.
 *
 * Ownership: open, free; the recording must outlive the cursor. Errors: a negative errno.
 * Threads: one at a time.
 */
#ifndef NRG_RECORD_READ_CURSOR_H
#define NRG_RECORD_READ_CURSOR_H

#include "record/read/recording.h"

struct nrg_cursor;

struct nrg_cursor_row {
    int64_t t_ns;
    int series;
    enum nrg_series_kind kind;
    size_t n_columns;
    const int64_t *cells; /* valid until the next call */
};

/* All series of the kinds in a set of bits (1 << NRG_SAMPLES | ...). */
int nrg_cursor_open(struct nrg_recording *recording, unsigned kinds, struct nrg_cursor **cursor);
/* 1: a row; 0: the end; -errno. */
int nrg_cursor_next(struct nrg_cursor *cursor, struct nrg_cursor_row *row);
void nrg_cursor_rewind(struct nrg_cursor *cursor);
void nrg_cursor_free(struct nrg_cursor *cursor);

#endif

/*
 * The chunks of one series, one after the other, for readers that pull: merging several series by
 * time (cursor.h), playing a recording back. nrg_recording_read_series does the same with a
 * callback.
 *
 * Ownership: new, free; the recording must outlive the reader, which holds one decoded chunk.
 * Errors: a negative errno. Threads: one at a time.
 */
#ifndef NRG_RECORD_READ_SERIES_READER_H
#define NRG_RECORD_READ_SERIES_READER_H

#include "record/read/recording.h"

struct nrg_series_reader;

/* 0, -ENOENT when there is no such series, -EBADMSG, -ENOMEM. */
int nrg_series_reader_new(struct nrg_recording *recording, int series,
                          struct nrg_series_reader **reader);
/* 1: *rows is the next chunk, valid until the next call; 0: the end; -errno. */
int nrg_series_reader_next(struct nrg_series_reader *reader, const struct nrg_rows **rows);
void nrg_series_reader_rewind(struct nrg_series_reader *reader);
/* Chunks that could not be decoded so far; they are skipped. */
size_t nrg_series_reader_damaged(const struct nrg_series_reader *reader);
void nrg_series_reader_free(struct nrg_series_reader *reader);

#endif

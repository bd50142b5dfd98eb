/*
 * Spans of another program's log on their way into a recording: collected in any order, sorted,
 * made to nest, written as events (format.h). For importers; the recorder's own way is
 * span_drain.h.
 *
 * Collect all (24 to 40 bytes a span), then write once. Spans of a track that overlap without
 * nesting are cut where the later one begins, and counted. Not thread-safe.
 */
#ifndef NRG_RECORD_SPAN_SINK_H
#define NRG_RECORD_SPAN_SINK_H

#include "record/store.h"

struct nrg_span_sink;

struct nrg_span_sink *nrg_span_sink_new(void); /* NULL when out of memory */
void nrg_span_sink_free(struct nrg_span_sink *sink);

/* Ids from 1, or -errno; the same texts give the same id. */
int64_t nrg_span_sink_name(struct nrg_span_sink *sink, const char *kind, const char *text,
                           size_t len, const char *detail);
int64_t nrg_span_sink_track(struct nrg_span_sink *sink, const struct nrg_span_track *track);
int64_t nrg_span_sink_path(struct nrg_span_sink *sink, int64_t parent, int64_t name);

struct nrg_sink_span {
    int64_t begin_ns, end_ns; /* on the clock of the log */
    int64_t track, name;
    int64_t number; /* NRG_MISSING */
    int64_t path;   /* that it belongs below; NRG_MISSING: by nesting */
};
int nrg_span_sink_span(struct nrg_span_sink *sink, const struct nrg_sink_span *span);
int nrg_span_sink_count(struct nrg_span_sink *sink, int64_t t_ns, int64_t track, int64_t name,
                        int64_t amount);

struct nrg_span_sink_result {
    uint64_t spans, cut, outside; /* outside [first_ns, last_ns] of the recording */
    int64_t first_ns, last_ns;
};
/* Shifts all by offset_ns and writes them; ids are raised by those that the store has already. */
int nrg_span_sink_write(struct nrg_span_sink *sink, struct nrg_store *store, int64_t offset_ns,
                        struct nrg_span_sink_result *result);

/* Busy time of [begin, end) in steps: for aligning with power. busy[i] in 0..1. */
int nrg_span_sink_activity(const struct nrg_span_sink *sink, int64_t begin_ns, int64_t step_ns,
                           double *busy, size_t n);

#endif

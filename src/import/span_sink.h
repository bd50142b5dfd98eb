/*
 * Spans of another program's log on their way into a recording: collected in any order, sorted,
 * made to nest, written as events (format.h). For importers; the recorder's own way is
 * span_drain.h.
 *
 * Collect all (40 bytes a span), then write once. Spans of a track that overlap without nesting
 * are cut where the later one begins, and counted. Not thread-safe.
 */
#ifndef NRG_RECORD_SPAN_SINK_H
#define NRG_RECORD_SPAN_SINK_H

#include "record/store/writer.h"

struct nrg_span_sink;

struct nrg_span_sink *nrg_span_sink_new(void); /* NULL when out of memory */
void nrg_span_sink_free(struct nrg_span_sink *sink);

/* Ids from 1, or -errno; the same texts give the same id. */
int64_t nrg_span_sink_name(struct nrg_span_sink *sink, const char *kind, const char *text,
                           size_t len, const char *detail);
int64_t nrg_span_sink_track(struct nrg_span_sink *sink, const struct nrg_span_track *track);
int64_t nrg_span_sink_path(struct nrg_span_sink *sink, int64_t parent, int64_t name);
/* Describes a track anew: its name may come last in a log. */
void nrg_span_sink_set_track(struct nrg_span_sink *sink, int64_t id,
                             const struct nrg_span_track *track);
/* Times of the log are rounded: overlaps of up to so much are no error (default 0). */
void nrg_span_sink_set_slack(struct nrg_span_sink *sink, int64_t slack_ns);

struct nrg_sink_span {
    int64_t begin_ns, end_ns; /* on the clock of the log; end NRG_MISSING: never closed */
    int64_t track, name;
    int64_t number;      /* NRG_MISSING */
    int64_t path;        /* that it belongs below; NRG_MISSING or 0: by nesting */
    int64_t duration_ns; /* that the log itself tells, when it is not end - begin; 0: it does not */
};
/* 0, -EINVAL (ids, an end before its begin), -ERANGE (time), -ENOMEM. */
int nrg_span_sink_span(struct nrg_span_sink *sink, const struct nrg_sink_span *span);
int nrg_span_sink_count(struct nrg_span_sink *sink, int64_t t_ns, int64_t track, int64_t name,
                        int64_t amount);

struct nrg_span_sink_result {
    uint64_t spans;            /* written */
    uint64_t cut;              /* shortened, see above */
    uint64_t outside;          /* no part of them within the store's samples, if it has any */
    int64_t first_ns, last_ns; /* of the spans, as written; 0, 0 without any */
    uint64_t unclosed;         /* without an end */
    uint64_t empty;            /* of no length */
    uint64_t counts;           /* written beside the spans */
    int64_t samples_first_ns, samples_last_ns; /* of the store's samples; 0, 0 without any */
};
/*
 * Shifts all by offset_ns and writes them as a series of their own; ids are raised by those that
 * the store has already. -ERANGE: beyond the times that a recording can hold.
 */
int nrg_span_sink_write(struct nrg_span_sink *sink, struct nrg_store *store, int64_t offset_ns,
                        struct nrg_span_sink_result *result);

/* First begin and last end on the clock of the log; -ENODATA without spans. */
int nrg_span_sink_extent(const struct nrg_span_sink *sink, int64_t *first_ns, int64_t *last_ns);
uint64_t nrg_span_sink_spans(const struct nrg_span_sink *sink);
/* Spans that would be cut on that track. */
int64_t nrg_span_sink_overlaps(const struct nrg_span_sink *sink, int64_t track);
/* Calls back with each span in the order in which they came, to move it in time or elsewhere. */
int nrg_span_sink_edit(struct nrg_span_sink *sink,
                       int (*edit)(void *arg, struct nrg_sink_span *span), void *arg);

/*
 * Busy time of [begin, end) in steps: for aligning with power. busy[i] in 0..1. What stands for
 * work counts (kernels; where there are none layers and operators; else all spans), of several
 * at once one.
 */
int nrg_span_sink_activity(const struct nrg_span_sink *sink, int64_t begin_ns, int64_t step_ns,
                           double *busy, size_t n);

#endif

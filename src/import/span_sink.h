/*
 * Collects the spans of another program's log, in any order, for a recording. span_nest.h sorts
 * and nests them, span_write.c writes them as events (record/format.h). For importers; the
 * recorder's own path is record/spans/drain.h.
 *
 * Collect all spans (40 bytes each), then write once. Overlapping spans of a track that do not nest
 * are cut where the later one begins, and counted. The sink owns copies of all texts. Errors are
 * negative errno. Not thread-safe.
 */
#ifndef NRG_IMPORT_SPAN_SINK_H
#define NRG_IMPORT_SPAN_SINK_H

#include "base/map.h"
#include "import/span_nest.h"
#include "record/store/writer.h"

struct nrg_span_sink {
    struct nrg_span_record *records; /* as they came */
    size_t n, cap;
    int64_t slack_ns;      /* times of the log are rounded: shorter overlaps are no overlaps */
    struct nrg_map names;  /* kind, NUL, detail, NUL, text */
    struct nrg_map tracks; /* struct nrg_span_track */
    struct nrg_map paths;  /* parent, name */
    struct nrg_span_track *descriptions;
    size_t n_descriptions, cap_descriptions;
};

struct nrg_span_sink *nrg_span_sink_new(void); /* NULL when out of memory */
void nrg_span_sink_free(struct nrg_span_sink *sink);

/* Ids from 1, or -errno; the same texts give the same id. */
int64_t nrg_span_sink_name(struct nrg_span_sink *sink, const char *kind, const char *text,
                           size_t len, const char *detail);
int64_t nrg_span_sink_track(struct nrg_span_sink *sink, const struct nrg_span_track *track);
int64_t nrg_span_sink_path(struct nrg_span_sink *sink, int64_t parent, int64_t name);
/* The parts of a name; its texts live as long as the sink. */
struct nrg_span_name nrg_span_sink_name_of(const struct nrg_span_sink *sink, int64_t id);
/* Replaces the description of a track: a log may name it last. */
void nrg_span_sink_set_track(struct nrg_span_sink *sink, int64_t id,
                             const struct nrg_span_track *track);

struct nrg_sink_span {
    int64_t begin_ns, end_ns; /* on the clock of the log; end NRG_MISSING: never closed */
    int64_t track, name;
    int64_t number;      /* NRG_MISSING */
    int64_t path;        /* of the parent; NRG_MISSING or 0: by nesting */
    int64_t duration_ns; /* as the log states it, when it is not end - begin; 0: not stated */
};
/* 0, -EINVAL (ids, an end before its begin), -ERANGE (time), -ENOMEM. */
int nrg_span_sink_span(struct nrg_span_sink *sink, const struct nrg_sink_span *span);

/* First begin and last end on the clock of the log; -ENODATA without spans. */
int nrg_span_sink_extent(const struct nrg_span_sink *sink, int64_t *first_ns, int64_t *last_ns);
/* How many spans of the track would be cut, or -errno. */
int64_t nrg_span_sink_overlaps(const struct nrg_span_sink *sink, int64_t track);
/* Calls `edit` with each span in the order of collection; it may change time, track and path. */
int nrg_span_sink_edit(struct nrg_span_sink *sink,
                       int (*edit)(void *arg, struct nrg_sink_span *span), void *arg);

#endif

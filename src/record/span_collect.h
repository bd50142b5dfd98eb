/*
 * The inside of a span sink (span_sink.h), for the parts of src/record that work on the records
 * themselves: the writer (span_write.c), activity (span_activity.c), and importers that tie spans
 * of different tracks to each other.
 */
#ifndef NRG_RECORD_SPAN_COLLECT_H
#define NRG_RECORD_SPAN_COLLECT_H

#include "base/intern.h"
#include "import/span_nest.h"
#include "import/span_sink.h"

struct nrg_span_sink {
    struct nrg_span_record *records;
    size_t n, cap;
    uint64_t counts; /* records that are counts */
    int64_t slack_ns;
    struct nrg_intern names;  /* kind, NUL, detail, NUL, text */
    struct nrg_intern tracks; /* struct nrg_span_track */
    struct nrg_intern paths;  /* parent, name */
    struct nrg_span_track *descriptions;
    size_t n_descriptions, cap_descriptions;
};

/* Parts of a name that the sink has. */
struct nrg_span_name nrg_span_sink_name_of(const struct nrg_span_sink *sink, int64_t id);

#endif

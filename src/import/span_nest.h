/*
 * Sorts the records that a span sink has collected (span_sink.h) and makes them nest. The writer
 * and the search for launching operators walk over the result.
 *
 * Records are sorted by track, then begin, then longest first, then the order of collection. A
 * walk over one track gives its begin and end events in order of time. A span that would outlast
 * the span around it cuts that one short.
 *
 * Errors are -ENOMEM. Not thread-safe. The records stay the caller's; release order and walk.
 */
#ifndef NRG_IMPORT_SPAN_NEST_H
#define NRG_IMPORT_SPAN_NEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/format.h"

#define NRG_RECORD_OPEN INT64_MAX /* end of a span that was never closed */

struct nrg_span_record {
    int64_t begin_ns, end_ns;
    int64_t number; /* NRG_MISSING: none */
    uint32_t track, name;
    uint32_t path;        /* 0: by nesting */
    uint32_t duration_ns; /* stated by the log; 0: unknown, or too long for the field */
};

struct nrg_span_order {
    uint32_t *items;  /* indices of records */
    size_t *first_of; /* items of track t: [first_of[t], first_of[t + 1]); t from 1 */
    size_t n_tracks;
};

int nrg_span_order_make(struct nrg_span_order *order, const struct nrg_span_record *records,
                        size_t n, size_t n_tracks);
/* The same over all tracks at once, in order of begin alone; the caller frees *items. */
int nrg_span_order_by_time(const struct nrg_span_record *records, size_t n, uint32_t **items);
void nrg_span_order_release(struct nrg_span_order *order);

struct nrg_span_nesting {
    const struct nrg_span_record *records;
    const uint32_t *items;
    size_t at, end;
    int64_t slack_ns;
    struct nrg_span_open {
        uint32_t record;
        int64_t end_ns;
    } * stack;
    size_t depth, cap;
    uint64_t cut;
};

struct nrg_span_nesting_event {
    int64_t t_ns;
    uint32_t record;
    enum nrg_span_event event;
};

void nrg_span_nesting_init(struct nrg_span_nesting *walk, const struct nrg_span_record *records,
                           const struct nrg_span_order *order, uint32_t track, int64_t slack_ns);
/* 1: an event; 0: the end; -ENOMEM. Spans that were never closed have no end event. */
int nrg_span_nesting_next(struct nrg_span_nesting *walk, struct nrg_span_nesting_event *event);
void nrg_span_nesting_release(struct nrg_span_nesting *walk);

#endif

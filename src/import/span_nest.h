/*
 * Records of spans as they are collected (span_sink.h), put in order and made to nest: what the
 * writer and whoever needs the stack at an instant walk over. Inside src/record.
 *
 * Records are sorted by (track, begin, longest first, as they came). A walk over one track gives
 * its events in order of time: a span that would outlast the one around it cuts that one short.
 */
#ifndef NRG_RECORD_SPAN_NEST_H
#define NRG_RECORD_SPAN_NEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/format.h"

#define NRG_RECORD_OPEN  INT64_MAX       /* end of a span that was never closed */
#define NRG_RECORD_COUNT (INT64_MIN + 1) /* end of a count: no span */

struct nrg_span_record {
    int64_t begin_ns, end_ns;
    int64_t number; /* NRG_MISSING; of a count the amount */
    uint32_t track, name;
    uint32_t path;        /* 0: by nesting */
    uint32_t duration_ns; /* told by the log; 0: not, or too long to be kept */
};

struct nrg_span_order {
    uint32_t *items;  /* numbers of records */
    size_t *first_of; /* items of track t: [first_of[t], first_of[t + 1]); t from 1 */
    size_t n_tracks;
};

int nrg_span_order_make(struct nrg_span_order *order, const struct nrg_span_record *records,
                        size_t n, size_t n_tracks);
/* The same over all tracks at once, in order of begin alone; the caller frees *items. */
int nrg_span_order_by_time(const struct nrg_span_record *records, size_t n, uint32_t **items);
void nrg_span_order_release(struct nrg_span_order *order);

struct nrg_span_walk {
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

struct nrg_span_walk_event {
    int64_t t_ns;
    uint32_t record;
    enum nrg_span_event event;
};

void nrg_span_walk_init(struct nrg_span_walk *walk, const struct nrg_span_record *records,
                        const struct nrg_span_order *order, uint32_t track, int64_t slack_ns);
/* 1: an event; 0: the end; -ENOMEM. Spans that were never closed have no end event. */
int nrg_span_walk_next(struct nrg_span_walk *walk, struct nrg_span_walk_event *event);
void nrg_span_walk_release(struct nrg_span_walk *walk);

#endif

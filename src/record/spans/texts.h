/*
 * Names of spans in the recorder. Numbers of the shared memory become ids of the recording; equal
 * names get the same id, whichever process wrote them. A new name goes to the writer at once.
 *
 * Nothing in the memory is trusted: a number that points nowhere gives the id of "(name lost)", and
 * the bytes that are kept have a limit. Embedded: init, release. Not thread-safe.
 */
#ifndef NRG_RECORD_SPANS_TEXTS_H
#define NRG_RECORD_SPANS_TEXTS_H

#include "base/map.h"
#include "record/format.h"
#include "record/queue.h"
#include "record/spans/segment.h"

struct nrg_span_texts {
    const struct nrg_span_segment *segment;
    struct nrg_queue *queue;
    size_t bytes;             /* of the texts of all names */
    struct nrg_map by_text;   /* kind, detail and text -> id */
    struct nrg_map by_number; /* of the shared memory -> id */
    char *buffer;
};

void nrg_span_texts_init(struct nrg_span_texts *texts, const struct nrg_span_segment *segment,
                         struct nrg_queue *queue);
void nrg_span_texts_release(struct nrg_span_texts *texts);

/* The id of a name; NRG_MISSING when out of memory. */
int64_t nrg_span_texts_id(struct nrg_span_texts *texts, uint32_t number);

/* Fills in name and domain of a track. -EBADMSG when there is none of that number. */
int nrg_span_texts_track(struct nrg_span_texts *texts, uint32_t number,
                         struct nrg_span_track *track);

#endif

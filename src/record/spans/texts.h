/*
 * Names of spans as the recorder knows them: numbers of the shared memory become ids of the
 * recording, the same texts the same id whichever process wrote them. A new one goes to the
 * writer at once.
 *
 * What the memory says is not trusted: a number that leads nowhere gives the id of a name that
 * says so, and there is a limit to what is kept. Embedded: init, release. Not thread-safe.
 */
#ifndef NRG_RECORD_SPAN_TEXTS_H
#define NRG_RECORD_SPAN_TEXTS_H

#include "record/format.h"
#include "record/queue.h"
#include "record/spans/segment.h"

struct nrg_span_texts {
    const struct nrg_span_segment *segment;
    struct nrg_queue *queue;
    struct nrg_span_name *names; /* id - 1 */
    uint64_t *hashes;
    size_t n_names, cap_names, cap_hashes, bytes;
    struct nrg_text_number *by_number; /* open addressing */
    uint32_t *by_text;                 /* id, open addressing */
    size_t n_numbers, cap_numbers, cap_texts;
    char *buffer;
};

void nrg_span_texts_init(struct nrg_span_texts *texts, const struct nrg_span_segment *segment,
                         struct nrg_queue *queue);
void nrg_span_texts_release(struct nrg_span_texts *texts);

/* The id of a name; NRG_MISSING when out of memory. */
int64_t nrg_span_texts_id(struct nrg_span_texts *texts, uint32_t number);

/* A track's name and domain. -EBADMSG when there is none of that number. */
int nrg_span_texts_track(struct nrg_span_texts *texts, uint32_t number,
                         struct nrg_span_track *track);

#endif

/*
 * The memory of span_ring.h, as the recorder owns it: made, offered to a command, read. Costs a
 * few pages until somebody marks spans.
 *
 * A recorder in a process of its own maps the slots alone and reads the rest through the
 * descriptor, so that rings and names do not count as its memory. Inside the marked program
 * (`whole`) all is mapped: programs close descriptors that they do not know.
 *
 * Embedded: init, release. A segment that a client of this process has attached to is never
 * released.
 */
#ifndef NRG_RECORD_SPAN_SEGMENT_H
#define NRG_RECORD_SPAN_SEGMENT_H

#include <stdbool.h>

#include "base/error.h"
#include "mark/ring.h"

struct nrg_span_segment {
    int fd; /* close-on-exec; -1: none */
    bool whole;
    unsigned long long inode;
    struct nrg_ring_header *header; /* NULL: none */
};

int nrg_span_segment_init(struct nrg_span_segment *segment, bool whole, struct nrg_error *err);
void nrg_span_segment_release(struct nrg_span_segment *segment);

static inline struct nrg_ring_slot *nrg_span_segment_slots(const struct nrg_span_segment *s)
{
    return (struct nrg_ring_slot *)((char *)s->header + NRG_RING_SLOTS_AT);
}

/* Copies size bytes from offset. -EIO when it is not there. */
int nrg_span_segment_read(const struct nrg_span_segment *segment, size_t offset, void *to,
                          size_t size);

/* "NRG_SPANS=...": what the command finds in its environment. */
void nrg_span_segment_offer(const struct nrg_span_segment *segment,
                            char text[NRG_RING_VARIABLE_SIZE]);

#endif

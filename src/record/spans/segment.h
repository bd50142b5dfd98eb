/*
 * The recorder's side of the memory of mark/ring.h: it makes the memory, offers it to a command and
 * reads it. It costs a few pages until a program marks spans.
 *
 * A recorder in a process of its own maps only the slots and reads the rest through the
 * descriptor, so rings and names do not count as its memory. Inside the marked program (`whole`)
 * everything is mapped, because programs close descriptors that they do not know.
 *
 * Ownership: embedded: init, release. A segment that a client of this process has attached to is
 * never released. Errors: a negative errno, with the reason in err. Threads: reading from any one.
 */
#ifndef NRG_RECORD_SPANS_SEGMENT_H
#define NRG_RECORD_SPANS_SEGMENT_H

#include <stdbool.h>
#include <sys/types.h>

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

static inline struct nrg_ring_refusals *nrg_span_segment_refusals(const struct nrg_span_segment *s)
{
    return (struct nrg_ring_refusals *)((char *)s->header + NRG_RING_REFUSALS_AT);
}

/* Copies size bytes from offset. -EIO when they are not there. */
int nrg_span_segment_read(const struct nrg_span_segment *segment, size_t offset, void *to,
                          size_t size);

/* "NRG_SPANS=...", for the environment of the command; `holder` has the descriptor open. */
void nrg_span_segment_offer(const struct nrg_span_segment *segment, pid_t holder,
                            char text[NRG_RING_VARIABLE_SIZE]);

#endif

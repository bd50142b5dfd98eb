/*
 * Names of spans in the marked program: a text, its kind and its detail become a number, which is
 * the place where they stand in the shared memory (span_ring.h). A table of this process finds
 * those that it has met; two processes may write the same name twice, the recorder sees that they
 * are equal.
 *
 * Embedded, zero to begin with; the caller holds a lock. Depends on nothing but libc.
 */
#ifndef NRG_RECORD_SPAN_NAMES_H
#define NRG_RECORD_SPAN_NAMES_H

#include <stdbool.h>

#include "mark/ring.h"

struct nrg_ring_names {
    uint32_t *numbers; /* by hash; 0: free */
    size_t n, cap;     /* cap: 0 or a power of two */
};

/* For comparing without a look at the table. */
struct nrg_known_name {
    const char *text; /* in the shared memory */
    uint32_t bytes, number;
    bool cut; /* the given text went on */
};

void nrg_ring_names_release(struct nrg_ring_names *names);

/* 0 when there is no room. Fills *known otherwise. kind must not be NULL, detail may. */
uint32_t nrg_ring_names_number(struct nrg_ring_names *names, struct nrg_ring_header *segment,
                               const char *text, const char *kind, const char *detail,
                               struct nrg_known_name *known);

#endif

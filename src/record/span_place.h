/*
 * Where a marked program finds the recorder's memory, and how its threads take slots in it.
 * Depends on nothing but libc.
 */
#ifndef NRG_RECORD_SPAN_PLACE_H
#define NRG_RECORD_SPAN_PLACE_H

#include <stdbool.h>

#include "mark/ring.h"

/* This process, as slots describe it; found out when the first slot is taken. */
struct nrg_place {
    bool known;
    int32_t pid;
    uint64_t pid_namespace;
    int64_t start_ticks;
};

/* Forgets it: after fork it is another's. */
void nrg_place_init(struct nrg_place *place);

/* Maps what the variable NRG_SPANS describes, after checking that it is what it says. */
int nrg_place_open(const char *variable, struct nrg_ring_header **segment);

static inline struct nrg_ring_slot *nrg_place_slots(struct nrg_ring_header *segment)
{
    return (struct nrg_ring_slot *)((char *)segment + NRG_RING_SLOTS_AT);
}

/* A slot for the calling thread, NULL when all are taken. */
struct nrg_ring_slot *nrg_place_claim(struct nrg_place *place, struct nrg_ring_header *segment);
/* Its first records are there: lets the recorder look. */
void nrg_place_announce(struct nrg_ring_header *segment, struct nrg_ring_slot *slot);

#endif

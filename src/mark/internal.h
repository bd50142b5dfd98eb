/*
 * What the files of the marked program's side share. Depends on nothing but libc.
 *
 * Names of spans (names.c): a text, its kind and its detail become a number, which is the place
 * where they stand among the names of the shared memory (mark/ring.h). A table of this process
 * finds the names that it has met. Two processes may write the same name twice; the recorder sees
 * that they are equal. Numbers stay valid while the process lives: until the first recorder comes
 * the names stand in the process's own memory, and each new recorder's memory gets a copy of them
 * at the same places before anything is marked there.
 *
 * The recorder's memory (place.c): where a marked program finds it, and how its threads take slots
 * in it.
 *
 * Ownership: both structs are embedded in the client's state and start as zeros. Errors: negative
 * errno, 0 or NULL. Threads: the caller holds a lock.
 */
#ifndef NRG_MARK_INTERNAL_H
#define NRG_MARK_INTERNAL_H

#include <stdbool.h>

#include "mark/ring.h"

/* --- names.c --- */

struct nrg_ring_names {
    struct nrg_ring_header *segment; /* where the names stand; NULL: in `own` */
    char *own;                       /* as the names of a segment, owned */
    size_t own_bytes;
    _Atomic uint32_t own_used; /* as names_used of a segment */
    uint32_t *numbers;         /* by hash; 0: free */
    size_t n, cap;             /* cap: 0 or a power of two */
};

/* A name that was looked up, so that it can be compared again without the table. */
struct nrg_known_name {
    const char *text; /* among the names; valid until they move */
    uint32_t bytes, number;
    bool cut; /* the given text was longer */
};

/*
 * Moves the names to this segment, and adds further ones there. -EBUSY when both have names
 * already, because they could not all keep their numbers.
 */
int nrg_ring_names_move(struct nrg_ring_names *names, struct nrg_ring_header *segment);

/* The number of a name; fills *known. 0: no room. kind must not be NULL, detail may be. */
uint32_t nrg_ring_names_number(struct nrg_ring_names *names, const char *text, const char *kind,
                               const char *detail, struct nrg_known_name *known);

/* --- place.c --- */

/* This process, as slots describe it; found out when the first slot is taken. All zeros: not known
 * yet, as in a child after fork. */
struct nrg_place {
    bool known;
    int32_t pid;
    uint64_t pid_namespace;
    int64_t start_ticks;
};

/*
 * Maps what the variable NRG_SPANS describes, after checking that it is what it says. -EPROTO: the
 * recorder is of another layout, and knows now; -EPROTONOSUPPORT: it can't know, and this is the
 * first program that finds out.
 */
int nrg_place_open(const char *variable, struct nrg_ring_header **segment);

static inline struct nrg_ring_slot *nrg_place_slots(struct nrg_ring_header *segment)
{
    return (struct nrg_ring_slot *)((char *)segment + NRG_RING_SLOTS_AT);
}

/* A slot for the calling thread, NULL when all are taken. */
struct nrg_ring_slot *nrg_place_claim(struct nrg_place *place, struct nrg_ring_header *segment);
/* Tells the recorder that the slot has its first records. */
void nrg_place_announce(struct nrg_ring_header *segment, struct nrg_ring_slot *slot);

#endif

/*
 * Memory that is freed all at once: a graph and everything in it. Blocks grow; nothing is ever
 * moved, so that pointers into an arena stay good. A limit bounds what a hostile file can make
 * us allocate. Not thread-safe.
 */
#ifndef NRG_BASE_ARENA_H
#define NRG_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct nrg_arena_block;

struct nrg_arena {
    struct nrg_arena_block *last;
    size_t used, limit; /* bytes handed out; 0: no limit */
    bool failed;        /* an allocation was refused: many can be checked at once */
};

/* Zeroed and aligned for anything; NULL when out of memory or beyond the limit. */
void *nrg_arena_alloc(struct nrg_arena *arena, size_t size);
/* n * size without overflow. */
void *nrg_arena_array(struct nrg_arena *arena, size_t n, size_t size);
/* A terminated copy. */
char *nrg_arena_copy(struct nrg_arena *arena, const char *text, size_t len);
void nrg_arena_release(struct nrg_arena *arena);

#endif

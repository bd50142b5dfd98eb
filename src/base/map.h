/*
 * Hash tables. Purpose: everything that is found again by its bytes, by an id or by content.
 *
 * struct nrg_map holds entries with a key and a value, in the order in which they were made:
 * a loop over entries[0..n-1] has the same order in every run. Keys are byte strings or 64-bit ids;
 * one map holds either. Keys are borrowed and must outlive the map, except those of
 * nrg_map_intern, which the map copies.
 * struct nrg_index is the part below it: numbers by hash, for owners that keep the entries
 * themselves.
 *
 * The hash has a seed that differs from process to process, so that a file can't be made whose
 * names collide. Nothing is removed one by one.
 *
 * Ownership: embedded and zeroed; release frees the table and the copied keys. Errors: -ENOMEM or
 * NULL; the table stays as it was. Threads: one at a time.
 */
#ifndef NRG_BASE_MAP_H
#define NRG_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct nrg_index_slot {
    uint32_t hash, number; /* number 0: free */
};

struct nrg_index {
    struct nrg_index_slot *slots; /* a power of two of them, at most half full */
    size_t n, n_slots;
    uint64_t seed; /* set by nrg_index_reserve */
};

/* A hash of bytes that continues from `seed`, which may be an earlier hash. */
uint64_t nrg_hash(uint64_t seed, const void *bytes, size_t len);

/* Room for one more number, and the seed. Call it before hashing. 0 or -ENOMEM. */
int nrg_index_reserve(struct nrg_index *index);
/* After nrg_index_reserve. Numbers start at 1; a hash may stand for any number of them. */
void nrg_index_add(struct nrg_index *index, uint32_t hash, uint32_t number);
void nrg_index_release(struct nrg_index *index);

/*
 * The next number with that hash, 0 after the last one. `at` starts as the hash:
 *   for (size_t at = hash; (i = nrg_index_next(&index, hash, &at)) && !is_equal(i);) ;
 */
static inline uint32_t nrg_index_next(const struct nrg_index *index, uint32_t hash, size_t *at)
{
    while (index->n_slots) {
        struct nrg_index_slot slot = index->slots[*at & (index->n_slots - 1)];
        *at += 1;
        if (!slot.number || slot.hash == hash)
            return slot.number;
    }
    return 0;
}

/* Good until the next entry is made. */
struct nrg_map_entry {
    union {
        const char *key;
        uint64_t id;
    };
    union {
        void *data;
        int64_t number;
    }; /* NULL or 0 in a new entry */
    uint32_t len, hash;
};

struct nrg_map {
    struct nrg_map_entry *entries;
    size_t n, cap;
    struct nrg_index index; /* position in entries + 1 */
    struct nrg_arena keys;  /* of nrg_map_intern */
};

/* NULL when it is not there. */
struct nrg_map_entry *nrg_map_find(const struct nrg_map *map, const void *key, size_t len);
struct nrg_map_entry *nrg_map_find_id(const struct nrg_map *map, uint64_t id);
/* Makes the entry when it is not there; NULL when out of memory. */
struct nrg_map_entry *nrg_map_at(struct nrg_map *map, const void *key, size_t len);
struct nrg_map_entry *nrg_map_at_id(struct nrg_map *map, uint64_t id);

/* Texts to pointers. get: NULL when it is not there. set adds or replaces, key and value. */
void *nrg_map_get(const struct nrg_map *map, const char *text);
int nrg_map_set(struct nrg_map *map, const char *text, void *data);

/* Byte strings to numbers that are not negative. number: -1 when it is not there. */
int64_t nrg_map_number(const struct nrg_map *map, const void *key, size_t len);
int nrg_map_put(struct nrg_map *map, const void *key, size_t len, int64_t number);

/*
 * Byte strings as numbers: the same bytes give the same number, from 1 in the order of first
 * appearance; the map keeps a copy of the bytes. intern gives -ENOMEM on failure; the number is
 * new when map->n has grown. known: 0 when it is not there. text: the bytes of a number that was
 * given, with a NUL behind them, good until release; `len` may be NULL.
 */
int64_t nrg_map_intern(struct nrg_map *map, const void *key, size_t len);
int64_t nrg_map_known(const struct nrg_map *map, const void *key, size_t len);
const char *nrg_map_text(const struct nrg_map *map, int64_t number, size_t *len);

/* Forgets all entries, in time that depends on their number only. Keeps the memory. */
void nrg_map_clear(struct nrg_map *map);
void nrg_map_release(struct nrg_map *map);

#endif

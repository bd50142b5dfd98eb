/*
 * See map.h. Open addressing with linear steps. A slot is eight bytes and holds the hash, so that
 * a search touches an entry only when it is most likely the right one, and growing touches no
 * entry at all.
 *
 * The hash reads eight bytes at a time (names of kernels are long, and each event of a trace has
 * one) and folds a 128-bit product. Its seed is from the kernel's random bytes for the process.
 */
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/mem.h"

#define FIRST_SLOTS 64
#define MAX_NUMBER  (UINT32_MAX / 2)
#define IS_ID       UINT32_MAX /* as length: the key is entry->id */

static uint64_t fold_product(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t load_bytes(const char *bytes, size_t len)
{
    uint64_t word = 0;
    memcpy(&word, bytes, len);
    return word;
}

uint64_t nrg_hash(uint64_t seed, const void *bytes, size_t len)
{
    const char *p = bytes;
    uint64_t hash = seed ^ len * UINT64_C(0x9e3779b97f4a7c15);
    for (; len > 8; p += 8, len -= 8)
        hash = fold_product(hash ^ load_bytes(p, 8), UINT64_C(0xd6e8feb86659fd93));
    uint64_t tail = 0;
    if (len >= 4)
        tail = load_bytes(p, 4) << 32 | load_bytes(p + len - 4, 4);
    else if (len)
        tail = (uint64_t)(uint8_t)p[0] << 16 | (uint64_t)(uint8_t)p[len / 2] << 8 |
               (uint8_t)p[len - 1];
    return fold_product(hash ^ tail, UINT64_C(0xa0761d6478bd642f));
}

/* ---- numbers by hash ---- */

static uint64_t random_seed(void)
{
    const void *random = (const void *)getauxval(AT_RANDOM);
    return random ? load_bytes(random, 8) : 0;
}

static void place_slot(struct nrg_index *index, struct nrg_index_slot slot)
{
    size_t at = slot.hash;
    while (index->slots[at & (index->n_slots - 1)].number)
        at++;
    index->slots[at & (index->n_slots - 1)] = slot;
}

int nrg_index_reserve(struct nrg_index *index)
{
    if (2 * (index->n + 1) <= index->n_slots)
        return 0;
    struct nrg_index grown = *index;
    grown.n_slots = index->n_slots ? 2 * index->n_slots : FIRST_SLOTS;
    grown.seed = index->n_slots ? index->seed : random_seed();
    grown.slots = index->n < MAX_NUMBER ? nrg_calloc(grown.n_slots, sizeof *grown.slots) : NULL;
    if (!grown.slots)
        return -ENOMEM;
    for (size_t i = 0; i < index->n_slots; i++)
        if (index->slots[i].number)
            place_slot(&grown, index->slots[i]);
    free(index->slots);
    *index = grown;
    return 0;
}

void nrg_index_add(struct nrg_index *index, uint32_t hash, uint32_t number)
{
    place_slot(index, (struct nrg_index_slot){hash, number});
    index->n++;
}

void nrg_index_release(struct nrg_index *index)
{
    free(index->slots);
    *index = (struct nrg_index){0};
}

/* ---- entries ---- */

/* The text's bytes, or the id's where len is IS_ID. */
static struct nrg_map_entry *find_entry(const struct nrg_map *map, uint32_t hash, const void *key,
                                        uint32_t len)
{
    uint32_t i;
    for (size_t at = hash; (i = nrg_index_next(&map->index, hash, &at));) {
        struct nrg_map_entry *e = &map->entries[i - 1];
        if (e->len == len &&
            (len == IS_ID ? !memcmp(&e->id, key, sizeof e->id) : !len || !memcmp(e->key, key, len)))
            return e;
    }
    return NULL;
}

static struct nrg_map_entry *find_or_make(struct nrg_map *map, uint32_t hash, const void *key,
                                          uint32_t len)
{
    struct nrg_map_entry *entry = find_entry(map, hash, key, len);
    if (entry || nrg_reserve(&map->entries, &map->cap, map->n + 1, sizeof *map->entries))
        return entry;
    entry = &map->entries[map->n++];
    *entry = (struct nrg_map_entry){.key = key, .len = len, .hash = hash};
    if (len == IS_ID)
        memcpy(&entry->id, key, sizeof entry->id);
    nrg_index_add(&map->index, hash, (uint32_t)map->n);
    return entry;
}

static uint32_t hash_key(const struct nrg_map *map, const void *key, size_t len)
{
    return (uint32_t)nrg_hash(map->index.seed, key, len);
}

struct nrg_map_entry *nrg_map_find(const struct nrg_map *map, const void *key, size_t len)
{
    return map->n && len < IS_ID ? find_entry(map, hash_key(map, key, len), key, (uint32_t)len)
                                 : NULL;
}

struct nrg_map_entry *nrg_map_find_id(const struct nrg_map *map, uint64_t id)
{
    return map->n ? find_entry(map, hash_key(map, &id, sizeof id), &id, IS_ID) : NULL;
}

struct nrg_map_entry *nrg_map_at(struct nrg_map *map, const void *key, size_t len)
{
    if (len >= IS_ID || nrg_index_reserve(&map->index))
        return NULL;
    return find_or_make(map, hash_key(map, key, len), key, (uint32_t)len);
}

struct nrg_map_entry *nrg_map_at_id(struct nrg_map *map, uint64_t id)
{
    if (nrg_index_reserve(&map->index))
        return NULL;
    return find_or_make(map, hash_key(map, &id, sizeof id), &id, IS_ID);
}

void *nrg_map_get(const struct nrg_map *map, const char *text)
{
    const struct nrg_map_entry *entry = nrg_map_find(map, text, strlen(text));
    return entry ? entry->data : NULL;
}

int nrg_map_set(struct nrg_map *map, const char *text, void *data)
{
    struct nrg_map_entry *entry = nrg_map_at(map, text, strlen(text));
    if (!entry)
        return -ENOMEM;
    entry->key = text;
    entry->data = data;
    return 0;
}

int64_t nrg_map_number(const struct nrg_map *map, const void *key, size_t len)
{
    const struct nrg_map_entry *entry = nrg_map_find(map, key, len);
    return entry ? entry->number : -1;
}

int nrg_map_put(struct nrg_map *map, const void *key, size_t len, int64_t number)
{
    struct nrg_map_entry *entry = nrg_map_at(map, key, len);
    if (!entry)
        return -ENOMEM;
    entry->key = key;
    entry->number = number;
    return 0;
}

int64_t nrg_map_known(const struct nrg_map *map, const void *key, size_t len)
{
    const struct nrg_map_entry *entry = nrg_map_find(map, key, len);
    return entry ? entry - map->entries + 1 : 0;
}

int64_t nrg_map_intern(struct nrg_map *map, const void *key, size_t len)
{
    int64_t known = nrg_map_known(map, key, len);
    if (known)
        return known;
    const char *copy = len < IS_ID ? nrg_arena_copy(&map->keys, key, len) : NULL;
    return copy && nrg_map_at(map, copy, len) ? (int64_t)map->n : -ENOMEM;
}

const char *nrg_map_text(const struct nrg_map *map, int64_t number, size_t *len)
{
    const struct nrg_map_entry *entry = &map->entries[number - 1];
    if (len)
        *len = entry->len;
    return entry->key;
}

void nrg_map_clear(struct nrg_map *map)
{
    for (size_t i = 0; i < map->n; i++) {
        size_t at = map->entries[i].hash;
        while (map->index.slots[at & (map->index.n_slots - 1)].number != i + 1)
            at++;
        map->index.slots[at & (map->index.n_slots - 1)] = (struct nrg_index_slot){0};
    }
    map->n = map->index.n = 0;
    nrg_arena_release(&map->keys);
}

void nrg_map_release(struct nrg_map *map)
{
    free(map->entries);
    nrg_index_release(&map->index);
    nrg_arena_release(&map->keys);
    *map = (struct nrg_map){0};
}

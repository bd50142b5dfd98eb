/*
 * See onnx.h. One hash table with chains; the newest entry of a name stands first, so that leaving
 * a scope takes entries off the heads of their chains in the reverse order of adding. Keys are the
 * file's own bytes, not cleaned copies: two names that differ only in bytes that cannot be printed
 * are still two names. The hash is FNV-1a from a start that differs from run to run (an address),
 * so that a file cannot be made whose names all fall into one chain.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph/onnx/internal.h"

#define FIRST_BUCKETS 256

struct onnx_entry {
    struct onnx_entry *next, *older;
    const void *key;
    void *to;
    size_t len;
    uint64_t hash;
    unsigned depth;
};

static uint64_t hash_of(const struct onnx_map *map, const void *key, size_t len)
{
    const uint8_t *bytes = key;
    uint64_t hash = UINT64_C(14695981039346656037) ^ map->seed;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash ^ hash >> 29;
}

/* Entries are put back oldest first, which keeps the newest at the head. */
static int grow(struct onnx_map *map)
{
    size_t n = map->n_buckets ? map->n_buckets * 4 : FIRST_BUCKETS;
    struct onnx_entry **buckets = calloc(n, sizeof(struct onnx_entry *));
    if (!buckets)
        return -ENOMEM;
    if (!map->n_buckets)
        map->seed = (uint64_t)(uintptr_t)buckets * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t b = 0; b < map->n_buckets; b++) {
        struct onnx_entry *reversed = NULL, *next;
        for (struct onnx_entry *e = map->buckets[b]; e; e = next) {
            next = e->next;
            e->next = reversed;
            reversed = e;
        }
        for (struct onnx_entry *e = reversed; e; e = next) {
            next = e->next;
            e->next = buckets[e->hash % n];
            buckets[e->hash % n] = e;
        }
    }
    free(map->buckets);
    map->buckets = buckets;
    map->n_buckets = n;
    return 0;
}

int onnx_map_add(struct onnx *x, struct onnx_map *map, const void *key, size_t len, void *to)
{
    if (map->n >= map->n_buckets && grow(map))
        return onnx_no_memory(x);
    struct onnx_entry *entry = nrg_arena_alloc(&x->model->arena, sizeof *entry);
    if (!entry)
        return onnx_no_memory(x);
    uint64_t hash = hash_of(map, key, len);
    struct onnx_entry **head = &map->buckets[hash % map->n_buckets];
    *entry = (struct onnx_entry){*head, map->newest, key, to, len, hash, map->depth};
    *head = map->newest = entry;
    map->n++;
    return 0;
}

static void *find(const struct onnx_map *map, const void *key, size_t len, unsigned floor)
{
    if (!map->n_buckets)
        return NULL;
    uint64_t hash = hash_of(map, key, len);
    for (const struct onnx_entry *e = map->buckets[hash % map->n_buckets]; e; e = e->next)
        if (e->hash == hash && e->len == len && e->depth >= floor &&
            (!len || !memcmp(e->key, key, len))) /* an empty name may be no bytes at all */
            return e->to;
    return NULL;
}

void *onnx_map_get(const struct onnx_map *map, const void *key, size_t len)
{
    return find(map, key, len, map->floor);
}

void *onnx_map_here(const struct onnx_map *map, const void *key, size_t len)
{
    return find(map, key, len, map->depth);
}

void onnx_map_enter(struct onnx_map *map)
{
    map->depth++;
}

void onnx_map_leave(struct onnx_map *map)
{
    while (map->newest && map->newest->depth == map->depth) {
        struct onnx_entry *entry = map->newest;
        map->buckets[entry->hash % map->n_buckets] = entry->next;
        map->newest = entry->older;
        map->n--;
    }
    map->depth--;
}

void onnx_map_release(struct onnx_map *map)
{
    free(map->buckets);
    *map = (struct onnx_map){0};
}

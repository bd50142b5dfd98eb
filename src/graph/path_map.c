/* See path_map.h. */
#include "graph/path_map.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static size_t hash_of(const char *key)
{
    uint64_t h = UINT64_C(1469598103934665603);
    for (; *key; key++)
        h = (h ^ (uint8_t)*key) * UINT64_C(1099511628211);
    return (size_t)(h ^ (h >> 29));
}

static struct nrg_path_slot *slot_of(const struct nrg_path_map *map, const char *key)
{
    size_t i = hash_of(key) & (map->cap - 1);
    while (map->slots[i].key && strcmp(map->slots[i].key, key))
        i = (i + 1) & (map->cap - 1);
    return &map->slots[i];
}

void *nrg_path_map_get(const struct nrg_path_map *map, const char *key)
{
    return map->n ? slot_of(map, key)->value : NULL;
}

static int grow(struct nrg_path_map *map)
{
    struct nrg_path_map larger = {.cap = map->cap ? map->cap * 2 : 64, .n = map->n};
    larger.slots = calloc(larger.cap, sizeof *larger.slots);
    if (!larger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < map->cap; i++)
        if (map->slots[i].key)
            *slot_of(&larger, map->slots[i].key) = map->slots[i];
    free(map->slots);
    *map = larger;
    return 0;
}

int nrg_path_map_set(struct nrg_path_map *map, const char *key, void *value)
{
    if (2 * (map->n + 1) > map->cap && grow(map))
        return -ENOMEM;
    struct nrg_path_slot *slot = slot_of(map, key);
    map->n += !slot->key;
    *slot = (struct nrg_path_slot){key, value};
    return 0;
}

void nrg_path_map_release(struct nrg_path_map *map)
{
    free(map->slots);
    *map = (struct nrg_path_map){0};
}

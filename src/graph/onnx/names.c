/*
 * See internal.h. Names in scopes, over a map from each name to its newest entry. An entry
 * knows the one of the same name that it hides, so that leaving a scope puts those back in the
 * reverse order of adding. Keys are the file's own bytes, not cleaned copies: two names that differ
 * only in bytes that cannot be printed are still two names.
 */
#include "graph/onnx/internal.h"

struct onnx_entry {
    struct onnx_entry *older, *hidden; /* added before it; of the same name, in an outer scope */
    void *to;
    size_t name; /* in map->newest_of */
    unsigned depth;
};

int onnx_map_add(struct onnx *x, struct onnx_map *map, const void *key, size_t len, void *to)
{
    struct nrg_map_entry *name = nrg_map_at(&map->newest_of, key, len);
    struct onnx_entry *entry = nrg_arena_alloc(&x->model->arena, sizeof *entry);
    if (!name || !entry)
        return onnx_no_memory(x);
    size_t at = (size_t)(name - map->newest_of.entries);
    *entry = (struct onnx_entry){map->newest, name->data, to, at, map->depth};
    name->data = map->newest = entry;
    return 0;
}

static void *find_above(const struct onnx_map *map, const void *key, size_t len, unsigned floor)
{
    const struct nrg_map_entry *name = nrg_map_find(&map->newest_of, key, len);
    const struct onnx_entry *entry = name ? name->data : NULL;
    return entry && entry->depth >= floor ? entry->to : NULL;
}

void *onnx_map_get(const struct onnx_map *map, const void *key, size_t len)
{
    return find_above(map, key, len, map->floor);
}

void *onnx_map_here(const struct onnx_map *map, const void *key, size_t len)
{
    return find_above(map, key, len, map->depth);
}

void onnx_map_enter(struct onnx_map *map)
{
    map->depth++;
}

void onnx_map_leave(struct onnx_map *map)
{
    for (; map->newest && map->newest->depth == map->depth; map->newest = map->newest->older)
        map->newest_of.entries[map->newest->name].data = map->newest->hidden;
    map->depth--;
}

void onnx_map_release(struct onnx_map *map)
{
    nrg_map_release(&map->newest_of);
    *map = (struct onnx_map){0};
}

/*
 * A map from names to pointers: parameters and modules by path, graphs by name. Keys are not
 * copied and must outlive the map. Open addressing, never deletes.
 */
#ifndef NRG_GRAPH_PATH_MAP_H
#define NRG_GRAPH_PATH_MAP_H

#include <stddef.h>

struct nrg_path_slot {
    const char *key; /* NULL: free */
    void *value;
};

struct nrg_path_map {
    struct nrg_path_slot *slots;
    size_t cap, n; /* cap is a power of two */
};

void *nrg_path_map_get(const struct nrg_path_map *map, const char *key);
/* Replaces an older value of the same key. 0 or -ENOMEM. */
int nrg_path_map_set(struct nrg_path_map *map, const char *key, void *value);
void nrg_path_map_release(struct nrg_path_map *map);

#endif

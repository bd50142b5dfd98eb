/* See nametab.h: open addressing, linear steps, at most half full. */
#include "graph/nametab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct nrg_nametab_slot {
    const char *key; /* NULL: free */
    size_t len;
    uint64_t hash;
    int64_t number;
};

/* FNV-1a, then a final mix: linear steps need good low bits. */
static uint64_t hash_of(const char *key, size_t len)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)key[i]) * UINT64_C(1099511628211);
    return hash ^ hash >> 32;
}

static struct nrg_nametab_slot *find(struct nrg_nametab_slot *slots, size_t cap, uint64_t hash,
                                     const char *key, size_t len)
{
    size_t at = hash & (cap - 1);
    while (slots[at].key &&
           (slots[at].hash != hash || slots[at].len != len || memcmp(slots[at].key, key, len) != 0))
        at = (at + 1) & (cap - 1);
    return &slots[at];
}

int64_t nrg_nametab_get(const struct nrg_nametab *names, const char *key, size_t len)
{
    if (!names->cap)
        return -1;
    const struct nrg_nametab_slot *slot =
        find(names->slots, names->cap, hash_of(key, len), key, len);
    return slot->key ? slot->number : -1;
}

static int grow(struct nrg_nametab *names)
{
    size_t cap = names->cap ? names->cap * 2 : 64;
    struct nrg_nametab_slot *slots = calloc(cap, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < names->cap; i++) {
        const struct nrg_nametab_slot *old = &names->slots[i];
        if (old->key)
            *find(slots, cap, old->hash, old->key, old->len) = *old;
    }
    free(names->slots);
    names->slots = slots;
    names->cap = cap;
    return 0;
}

int nrg_nametab_put(struct nrg_nametab *names, const char *key, size_t len, int64_t number)
{
    if ((names->n + 1) * 2 > names->cap && grow(names))
        return -ENOMEM;
    uint64_t hash = hash_of(key, len);
    struct nrg_nametab_slot *slot = find(names->slots, names->cap, hash, key, len);
    names->n += !slot->key;
    *slot = (struct nrg_nametab_slot){key, len, hash, number};
    return 0;
}

void nrg_nametab_release(struct nrg_nametab *names)
{
    free(names->slots);
    *names = (struct nrg_nametab){0};
}

/* See intern.h: open addressing with linear steps over the hashes of keys in one byte pool. */
#include "base/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct nrg_intern_key {
    size_t at; /* in bytes */
    uint32_t len, hash;
};

/* Eight bytes at a time: names of kernels are long, and each event of a trace has one. */
static uint32_t hash_of(const char *key, size_t len)
{
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15) ^ len, word;
    for (; len >= sizeof word; key += sizeof word, len -= sizeof word) {
        memcpy(&word, key, sizeof word);
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, key, len);
    hash = (hash ^ word) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)(hash ^ hash >> 32);
}

/* The slot of the key, or the free one where it belongs. */
static size_t slot_of(const struct nrg_intern *t, uint32_t hash, const void *key, size_t len)
{
    size_t at = hash & (t->n_slots - 1);
    for (; t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
        const struct nrg_intern_key *k = &t->keys[t->slots[at] - 1];
        if (k->hash == hash && k->len == len && !memcmp(t->bytes + k->at, key, len))
            break;
    }
    return at;
}

static int grow(struct nrg_intern *t)
{
    size_t n_slots = t->n_slots ? 2 * t->n_slots : 64;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < t->n; i++) {
        size_t at = t->keys[i].hash & (n_slots - 1);
        while (slots[at])
            at = (at + 1) & (n_slots - 1);
        slots[at] = (uint32_t)(i + 1);
    }
    free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    return 0;
}

static int add_key(struct nrg_intern *t, const void *key, size_t len, uint32_t hash)
{
    int rc = nrg_reserve(&t->keys, &t->cap, t->n + 1, sizeof *t->keys);
    if (!rc)
        rc = nrg_reserve(&t->bytes, &t->cap_bytes, t->n_bytes + len + 1, 1);
    if (rc || t->n >= UINT32_MAX / 2)
        return -ENOMEM;
    memcpy(t->bytes + t->n_bytes, key, len);
    t->bytes[t->n_bytes + len] = '\0';
    t->keys[t->n++] = (struct nrg_intern_key){t->n_bytes, (uint32_t)len, hash};
    t->n_bytes += len + 1;
    return 0;
}

int64_t nrg_intern(struct nrg_intern *t, const void *key, size_t len)
{
    if (len > UINT32_MAX / 2 || (2 * (t->n + 1) > t->n_slots && grow(t)))
        return -ENOMEM;
    uint32_t hash = hash_of(key, len);
    size_t at = slot_of(t, hash, key, len);
    if (t->slots[at])
        return t->slots[at];
    int rc = add_key(t, key, len, hash);
    if (rc)
        return rc;
    t->slots[at] = (uint32_t)t->n;
    return (int64_t)t->n;
}

int64_t nrg_intern_find(const struct nrg_intern *t, const void *key, size_t len)
{
    return t->n_slots ? t->slots[slot_of(t, hash_of(key, len), key, len)] : 0;
}

const char *nrg_intern_text(const struct nrg_intern *t, int64_t number, size_t *len)
{
    const struct nrg_intern_key *key = &t->keys[number - 1];
    if (len)
        *len = key->len;
    return t->bytes + key->at;
}

void nrg_intern_release(struct nrg_intern *t)
{
    free(t->keys);
    free(t->bytes);
    free(t->slots);
    *t = (struct nrg_intern){0};
}

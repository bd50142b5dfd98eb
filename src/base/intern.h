/*
 * Texts (any bytes) as numbers: the same bytes give the same number, from 1 in order of first
 * appearance. Keys are copied. Embedded: zeroed, then release. Not thread-safe.
 */
#ifndef NRG_BASE_INTERN_H
#define NRG_BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

struct nrg_intern_key;

struct nrg_intern {
    struct nrg_intern_key *keys; /* number n is keys[n - 1] */
    size_t n, cap;
    char *bytes;
    size_t n_bytes, cap_bytes;
    uint32_t *slots; /* 0: free; a power of two of them, at most half full */
    size_t n_slots;
};

/* The number, or -ENOMEM. It is new when it equals table->n and that has grown. */
int64_t nrg_intern(struct nrg_intern *table, const void *key, size_t len);
/* The same without adding: 0 when it is not there. */
int64_t nrg_intern_find(const struct nrg_intern *table, const void *key, size_t len);
/* Bytes of a number that was given, followed by a NUL; good until the next nrg_intern. */
const char *nrg_intern_text(const struct nrg_intern *table, int64_t number, size_t *len);
void nrg_intern_release(struct nrg_intern *table);

#endif

/*
 * A table from text to a number, for readers: values by name, modules already listed. Keys are
 * not copied; they must outlive the table. Release frees the table only.
 */
#ifndef NRG_GRAPH_NAMETAB_H
#define NRG_GRAPH_NAMETAB_H

#include <stddef.h>
#include <stdint.h>

struct nrg_nametab {
    struct nrg_nametab_slot *slots;
    size_t cap, n;
};

/* -1 when the name is not there. */
int64_t nrg_nametab_get(const struct nrg_nametab *names, const char *key, size_t len);
/* Adds or replaces; `number` is not negative. 0 or -ENOMEM. */
int nrg_nametab_put(struct nrg_nametab *names, const char *key, size_t len, int64_t number);
void nrg_nametab_release(struct nrg_nametab *names);

#endif

/*
 * The processor's data caches, from /sys/devices/system/cpu of the root. A level that the kernel
 * does not list is left out. Plain data of the caller; nothing fails; any thread.
 */
#ifndef NRG_CALIBRATE_CACHES_H
#define NRG_CALIBRATE_CACHES_H

#include <stdint.h>

#include "base/root.h"

#define NRG_CACHE_LEVELS 4

struct nrg_cache {
    int level;          /* 1, 2, 3 */
    int64_t size_bytes; /* of one */
    unsigned shared_by; /* CPUs that share one */
};

struct nrg_caches {
    struct nrg_cache levels[NRG_CACHE_LEVELS]; /* smallest first */
    size_t n;
};

/* Of the first CPU. An empty list where the kernel lists none. */
void nrg_caches_read(const struct nrg_root *root, struct nrg_caches *caches);

/* Bytes of a level for each of `threads` threads that run on CPUs of their own. */
double nrg_cache_share(const struct nrg_cache *cache, unsigned threads);

#endif

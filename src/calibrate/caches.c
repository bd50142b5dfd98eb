/* See caches.h. */
#include "calibrate/caches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

#define CACHE_DIR "/sys/devices/system/cpu/cpu0/cache"

/* "32K", "1024K", "32M". */
static int64_t read_size(const char *text)
{
    char *end;
    long long n = strtoll(text, &end, 10);
    int64_t unit = *end == 'K' ? 1 << 10 : *end == 'M' ? 1 << 20 : 1;
    return n > 0 && n < INT64_MAX >> 21 ? n * unit : 0;
}

static bool read_cache(const struct nrg_root *root, const char *name, struct nrg_cache *out)
{
    char path[160], text[256];
    int64_t level;
    snprintf(path, sizeof path, CACHE_DIR "/%.32s/type", name);
    if (nrg_root_read_label(root, path, text, sizeof text) || !strcmp(text, "Instruction"))
        return false;
    snprintf(path, sizeof path, CACHE_DIR "/%.32s/level", name);
    if (nrg_root_read_i64(root, path, &level) || level < 1 || level > NRG_CACHE_LEVELS)
        return false;
    snprintf(path, sizeof path, CACHE_DIR "/%.32s/size", name);
    if (nrg_root_read_label(root, path, text, sizeof text) || !read_size(text))
        return false;
    *out = (struct nrg_cache){(int)level, read_size(text), 1};
    snprintf(path, sizeof path, CACHE_DIR "/%.32s/shared_cpu_list", name);
    if (!nrg_root_read_label(root, path, text, sizeof text) && nrg_count_cpulist(text))
        out->shared_by = nrg_count_cpulist(text);
    return true;
}

static int by_level(const void *a, const void *b)
{
    return ((const struct nrg_cache *)a)->level - ((const struct nrg_cache *)b)->level;
}

void nrg_caches_read(const struct nrg_root *root, struct nrg_caches *caches)
{
    struct nrg_names names;
    *caches = (struct nrg_caches){0};
    if (nrg_root_list(root, CACHE_DIR, &names))
        return;
    for (size_t i = 0; i < names.n && caches->n < NRG_CACHE_LEVELS; i++)
        if (!strncmp(names.items[i], "index", 5))
            caches->n += read_cache(root, names.items[i], &caches->levels[caches->n]);
    nrg_names_release(&names);
    qsort(caches->levels, caches->n, sizeof *caches->levels, by_level);
}

double nrg_cache_share(const struct nrg_cache *cache, unsigned threads)
{
    unsigned sharers = threads < cache->shared_by ? threads : cache->shared_by;
    return (double)cache->size_bytes / (sharers ? sharers : 1);
}

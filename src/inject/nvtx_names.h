/*
 * Texts that NVTX hands over, as numbers of libnrg's names: domains, categories, registered
 * strings, and messages that are looked up by their address in a cache of each thread's own. A
 * range's name is its message; its detail is the domain and the category, where they have names.
 *
 * What a program registers stays for the life of the process, each text once. Threads: any.
 */
#ifndef NRG_INJECT_NVTX_NAMES_H
#define NRG_INJECT_NVTX_NAMES_H

#include <stdint.h>

#include "inject/nvtx_api.h"

enum nrg_nvtx_use { NRG_NVTX_RANGE, NRG_NVTX_MARKED, NRG_NVTX_COUNTED, NRG_NVTX_USES };

struct nrg_nvtx_domain; /* NULL: the one without a name */
struct nrg_nvtx_string;

/* NULL when out of memory: then it is the domain without a name, or no string. */
struct nrg_nvtx_domain *nrg_nvtx_domain(const char *name);
struct nrg_nvtx_string *nrg_nvtx_string(const char *text);
void nrg_nvtx_category(struct nrg_nvtx_domain *domain, uint32_t category, const char *name);

#define NRG_NVTX_CACHED 256

struct nrg_nvtx_cached {
    const char *text; /* where the program has it */
    const struct nrg_nvtx_domain *domain;
    uint32_t category, use;
    uint32_t number;
    char copy[108]; /* longer texts are looked up each time */
};

/* The number of a message. `cache` has NRG_NVTX_CACHED entries, of the calling thread. */
uint32_t nrg_nvtx_number(struct nrg_nvtx_cached *cache, const struct nrg_nvtx_domain *domain,
                         uint32_t category, const char *text, enum nrg_nvtx_use use);
/* The same for a registered string. */
uint32_t nrg_nvtx_string_number(struct nrg_nvtx_string *string,
                                const struct nrg_nvtx_domain *domain, uint32_t category,
                                enum nrg_nvtx_use use);
/* UTF-8 of a wide text; cut where `out` is full. */
char *nrg_nvtx_narrow(const wchar_t *wide, char *out, size_t size);

#endif

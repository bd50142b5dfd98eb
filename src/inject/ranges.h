/*
 * Ranges and marks that programs make, of NVTX (nvtx.c) and of roctx (roctx.c), as spans of the
 * threads that make them. They are described as NVTX does it: a message, a domain, a category, and
 * a payload, which counts where it is a number: under the name of the category, or of the message
 * without one.
 *
 * Threads: any; each has its own list. Errors: what can't be followed is left out, and said by the
 * result.
 */
#ifndef NRG_INJECT_RANGES_H
#define NRG_INJECT_RANGES_H

#include "inject/nvtx_names.h"

#define NRG_RANGE_NOT_TRACKED (-2) /* NVTX_NO_PUSH_POP_TRACKING */
#define NRG_NVTX_WIDE_BYTES   1024

/* The level of the range in its domain, from 0; NRG_RANGE_NOT_TRACKED. */
int nrg_range_push(struct nrg_nvtx_domain *domain, const struct nrg_nvtx_event *e);
int nrg_range_pop(struct nrg_nvtx_domain *domain);
/* The number by which any thread ends it; 0: there is none. */
uint64_t nrg_range_start(struct nrg_nvtx_domain *domain, const struct nrg_nvtx_event *e);
void nrg_range_end(uint64_t id);
void nrg_range_mark(struct nrg_nvtx_domain *domain, const struct nrg_nvtx_event *e);

static inline struct nrg_nvtx_event nrg_nvtx_ascii(const char *text)
{
    return (struct nrg_nvtx_event){.message_type = NRG_NVTX_ASCII, .message.ascii = text};
}

#endif

/* The two halves of the AIPowerMeter export: which channel is what, and one record. */
#ifndef NRG_REPORT_EXPORT_AIPM_H
#define NRG_REPORT_EXPORT_AIPM_H

#include <jansson.h>

#include "energy/bins.h"

/* What a channel is for AIPowerMeter. */
enum nrg_aipm_role {
    NRG_AIPM_NONE,
    NRG_AIPM_PACKAGE, /* the five RAPL domains */
    NRG_AIPM_PSYS,
    NRG_AIPM_CORE,
    NRG_AIPM_UNCORE,
    NRG_AIPM_DRAM,
    NRG_AIPM_GPU,
    NRG_AIPM_GPU_MEMORY,
    NRG_AIPM_GPU_USE,
    NRG_AIPM_BUSY,
    NRG_AIPM_MEMORY,
    NRG_AIPM_TEMPERATURE,
    NRG_AIPM_OTHER /* a domain that AIPowerMeter has no key for, or an estimate */
};

struct nrg_aipm_channel {
    enum nrg_aipm_role role;
    unsigned gpu;
};

struct nrg_aipm {
    const struct nrg_recorded_channel *channels;
    const struct nrg_aipm_channel *what; /* per channel */
    size_t n;
};

/* Role of channel i among all. */
struct nrg_aipm_channel nrg_aipm_what(const struct nrg_recorded_channel *channels, size_t n,
                                      size_t i);

/* "metrics" of one bin; a new reference, NULL when out of memory. */
json_t *nrg_aipm_metrics(const struct nrg_aipm *a, const struct nrg_bin *bin, int64_t real_end_ns);

#endif

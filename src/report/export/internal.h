/*
 * Private to export/: which channels an export shows, and the two halves of the AIPowerMeter
 * export (aipm.c writes the folder, aipm_record.c one record). Channels are the recording's.
 */
#ifndef NRG_REPORT_EXPORT_INTERNAL_H
#define NRG_REPORT_EXPORT_INTERNAL_H

#include <jansson.h>

#include "energy/bins.h"
#include "energy/summary.h"

/* A power channel whose energy is recorded under the same name: it would say the same twice. */
bool nrg_export_is_double(const struct nrg_recorded_channel *channels, size_t n, size_t i);

/* A counter on its way through the recording, unwrapped and counted from its first reading. */
struct nrg_export_sum {
    bool seen;
    int64_t t_ns, raw, first_raw;
    size_t unknown_steps;
    double value;
};

/* A reading that is not missing, in SI units; of a counter the sum up to it. */
double nrg_export_value(const struct nrg_recording *recording,
                        const struct nrg_recorded_channel *channel, struct nrg_export_sum *sum,
                        int64_t t_ns, int64_t raw);

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

/* Idle power in a run, as the report shares energy out above it. */
struct nrg_aipm_idle {
    struct nrg_idle_power found;
    const char *method;
};

struct nrg_aipm {
    const struct nrg_recorded_channel *channels;
    const struct nrg_aipm_channel *what; /* per channel */
    size_t n;
    const struct nrg_aipm_idle *idle; /* per span of the bins */
};

/* Role of channel i among all. */
struct nrg_aipm_channel nrg_aipm_what(const struct nrg_recorded_channel *channels, size_t n,
                                      size_t i);

/* "metrics" of one bin; a new reference, NULL when out of memory. */
json_t *nrg_aipm_metrics(const struct nrg_aipm *a, const struct nrg_bin *bin, int64_t real_end_ns);

#endif

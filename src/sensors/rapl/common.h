/*
 * What all three ways to RAPL (powercap, MSR, perf) share: how a domain is called and what
 * contains it. Intel: psys > package > core, uncore; dram beside the package. AMD: package >
 * core. Names are the kernel's zone names; the package number is appended to sub-domains.
 */
#ifndef NRG_SENSORS_RAPL_COMMON_H
#define NRG_SENSORS_RAPL_COMMON_H

#include "sensors/driver.h"

/*
 * Adds an energy counter for `domain` ("package", "core", "uncore", "dram", "psys") of a package.
 * `suffix` tells packages apart: "0", or "0-die-1". NULL when out of memory.
 */
struct nrg_channel *nrg_rapl_channel(struct nrg_found *found, const char *domain,
                                     const char *suffix);

/* Clears parents that are not among the channels found. */
void nrg_rapl_fix_parents(struct nrg_probe *probe, size_t first_found);

#endif

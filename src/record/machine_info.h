/* What machine a recording was made on: into its metadata. */
#ifndef NRG_RECORD_MACHINE_INFO_H
#define NRG_RECORD_MACHINE_INFO_H

#include "base/context.h"

struct nrg_store;

/* True when the TSC is the kernel's clock source: it is then steady and the same on all CPUs. */
bool nrg_machine_has_tsc(const struct nrg_root *root);

/* Returns 1 when the TSC is the kernel's clock source (clock pairs then carry it). */
int nrg_machine_info_write(const struct nrg_context *ctx, struct nrg_store *store);

#endif

/*
 * The machine that a recording is made on: its name, processor and kernel as metadata, and whether
 * the TSC can serve as a clock. Owns nothing; what can't be read is left out. Any thread.
 */
#ifndef NRG_RECORD_MACHINE_INFO_H
#define NRG_RECORD_MACHINE_INFO_H

#include "base/context.h"

struct nrg_store;

/* True when the TSC is the kernel's clock source: it is then steady and the same on all CPUs. */
bool nrg_machine_has_tsc(const struct nrg_root *root);

/* Writes the metadata. Returns 1 when the TSC is the clock source: clock pairs then have it. */
int nrg_machine_info_write(const struct nrg_context *ctx, struct nrg_store *store);

#endif

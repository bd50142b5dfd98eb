/*
 * Text that may leave the machine: known names (identity.h) are replaced by <host>, <user>, <home>,
 * and what has the shape of an identifier by <id>, <address> or <email>, whatever it is called:
 * UUIDs, MAC, IP and InfiniBand addresses, WWNs, serial numbers, ids of machines, boots and
 * containers, keys in base 64. What is left, by shape again: versions, PCI addresses and ids,
 * times, masks of capabilities, readings.
 *
 * Pure function of its arguments. NULL: no memory.
 */
#ifndef NRG_CLI_DOCTOR_REDACT_H
#define NRG_CLI_DOCTOR_REDACT_H

#include "cli/doctor/identity.h"

/* The caller frees it. */
char *nrg_redact(const struct nrg_identity *identity, const char *text, size_t len);

#endif

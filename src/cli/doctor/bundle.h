/*
 * An archive (tar) for a bug report: what nrg doctor found as JSON, and the small files of /proc,
 * /sys and /etc that it was found in. Only files of a fixed list; names and identifiers in them are
 * replaced (redact.h), counters left out. 0, or a negative errno with err.
 */
#ifndef NRG_CLI_DOCTOR_BUNDLE_H
#define NRG_CLI_DOCTOR_BUNDLE_H

#include <jansson.h>
#include <stdio.h>

#include "base/context.h"

/* Writes to `out`; does not take the reference to `doctor`. */
int nrg_bundle_write(const struct nrg_context *ctx, json_t *doctor, FILE *out,
                     struct nrg_error *err);

#endif

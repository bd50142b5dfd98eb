/*
 * Several recordings on one page: what `nrg compare` says of them. Those of the first one's command
 * are one side, all others the other; of one command, the first stands against the rest.
 */
#ifndef NRG_CLI_PAGE_SIDES_H
#define NRG_CLI_PAGE_SIDES_H

#include <jansson.h>

#include "base/error.h"

/* Schema nrg.compare/1, with `sides`: 0 or 1 per recording. A new reference, or NULL with err. */
json_t *nrg_page_compare(char *const *recordings, int n, struct nrg_error *err);

#endif

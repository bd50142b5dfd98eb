/*
 * Joules per token of a program that generates text, from what nrg.torch counts in generate()
 * (python/nrg/torch/_generate.py): which joules are divided by which tokens is said with each.
 */
#ifndef NRG_REPORT_ATTRIBUTION_TOKENS_H
#define NRG_REPORT_ATTRIBUTION_TOKENS_H

#include <jansson.h>

#include "attribute/attribution.h"

/* The object `llm` of nrg attribute --json; NULL where nothing was generated. */
json_t *nrg_tokens_json(const struct nrg_attribution *attribution);

#endif

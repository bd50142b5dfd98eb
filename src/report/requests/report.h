/*
 * What requests to a language model used, for people and as JSON (docs/llm-requests.md,
 * docs/json.md). Nothing is computed here but sums by model and percentiles.
 */
#ifndef NRG_REPORT_REQUESTS_REPORT_H
#define NRG_REPORT_REQUESTS_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "llm/share.h"

/* The requests of one model; "" stands for requests without one. */
struct nrg_model_use {
    const char *model;
    size_t requests;
    double input, cached, output, energy_j, low_j, high_j;
};

/* A table by model, the largest first; NULL and 0 when out of memory. The caller frees it. */
struct nrg_model_use *nrg_model_uses(const struct nrg_llm_share *share, size_t *n);

enum nrg_request_figure { NRG_REQUEST_ENERGY, NRG_REQUEST_FIRST_S, NRG_REQUEST_ALL_S };
/* The smallest value that so much of the requests are not above; NAN without any, or memory. */
double nrg_request_percentile(const struct nrg_llm_share *share, enum nrg_request_figure figure,
                              double part);
/* Seconds until the first text of an answer; NAN: none came. */
double nrg_request_first_s(const struct nrg_relayed_request *request);

/* At most `most` requests are listed, those that used most. */
void nrg_requests_print(const struct nrg_llm_share *share, size_t most, FILE *out);
json_t *nrg_requests_json(const struct nrg_llm_share *share);

#endif

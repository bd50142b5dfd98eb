/*
 * What requests to a language model used, for people and as JSON (docs/llm-requests.md,
 * docs/json.md). Nothing is computed here but sums and percentiles.
 */
#ifndef NRG_REPORT_REQUESTS_REPORT_H
#define NRG_REPORT_REQUESTS_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "llm/share.h"

/* Requests of one model ("": it was not said), or of one kind that is not understood. Sums; those
 * of requests that failed, which were refused, cut or cancelled, are part of them. */
struct nrg_request_use {
    const char *name;
    size_t requests, failed;
    double seconds, input, cached, output, energy_j, low_j, high_j;
    double made_j, made_low_j, made_high_j; /* of those whose output tokens are known */
    double failed_output, failed_j;
};

/* A table by model, of requests to APIs of language models; or with `other` by kind (path, or else
 * API), of requests that are not understood. The largest first; NULL and 0 when out of memory. The
 * caller frees it. */
struct nrg_request_use *nrg_request_uses(const struct nrg_llm_share *share, bool other, size_t *n);
/* "POST /v1/audio/speech", or the API. */
const char *nrg_request_kind(const struct nrg_relayed_request *request);

enum nrg_request_figure {
    NRG_REQUEST_ENERGY,
    NRG_REQUEST_FIRST_S, /* until the first text of a stream (TTFT) */
    NRG_REQUEST_TOKEN_S, /* per token of a stream after its first text (TPOT) */
    NRG_REQUEST_GAP_S,   /* between two texts of a stream (ITL) */
    NRG_REQUEST_ALL_S,
    NRG_REQUEST_FIGURES
};
#define NRG_REQUEST_PARTS 3 /* 50, 90 and 99 % */
struct nrg_request_percentiles {
    double part[NRG_REQUEST_PARTS];
};
/* The smallest value that so much of the answered requests to a model's APIs, or of the gaps in
 * them, are not above; NAN without any, or memory. model NULL: of all. */
struct nrg_request_percentiles nrg_request_percentiles(const struct nrg_llm_share *share,
                                                       const char *model,
                                                       enum nrg_request_figure figure);
/* Seconds until the first text of a stream, and per token after that; NAN: it was none. */
double nrg_request_first_s(const struct nrg_relayed_request *request);
double nrg_request_token_s(const struct nrg_llm_share *share,
                           const struct nrg_relayed_request *request);

/* At most `most` requests are listed, those that used most. */
void nrg_requests_print(const struct nrg_llm_share *share, size_t most, FILE *out);
json_t *nrg_requests_json(const struct nrg_llm_share *share);

#endif

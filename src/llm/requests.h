/*
 * Requests to a language model in a recording: `nrg llm proxy` writes them as spans, and reports
 * read them back. The names are in one place, here.
 *
 * A request is a span of kind "request" on the track of its slot (no two that overlap share one);
 * its number is the begin's value. Inside of it stand the spans prefill (until the first text) and
 * decode (from there on), counts, and marks of kind "api", "model" and "outcome". Counts at the end
 * are what the server said: input, cached, output and reasoning tokens; one that it did not say is
 * not there. "texts" are pieces of a streamed answer at the times at which they came.
 *
 * Load, release; 0 or -errno with err. One thread at a time.
 */
#ifndef NRG_LLM_REQUESTS_H
#define NRG_LLM_REQUESTS_H

#include "record/read/recording.h"
#include "record/read/span_catalog.h"

#define NRG_REQUEST_KIND         "request"
#define NRG_REQUEST_API_KIND     "api"
#define NRG_REQUEST_MODEL_KIND   "model"
#define NRG_REQUEST_OUTCOME_KIND "outcome"
#define NRG_REQUEST_PREFILL      "prefill"
#define NRG_REQUEST_DECODE       "decode"
#define NRG_REQUEST_INPUT        "input tokens"
#define NRG_REQUEST_CACHED       "cached tokens"
#define NRG_REQUEST_OUTPUT       "output tokens"
#define NRG_REQUEST_REASONING    "reasoning tokens"
#define NRG_REQUEST_TEXTS        "texts"

/* Pieces of text that came at t_ns, or since the entry before. */
struct nrg_llm_texts {
    int64_t t_ns;
    int64_t n;
    size_t request; /* index */
};

struct nrg_relayed_request {
    int64_t id;
    const char *model, *api, *outcome;        /* "": not known */
    int64_t begin_ns, first_ns, end_ns;       /* first_ns NRG_MISSING: no text came */
    bool open;                                /* it ran when the recording ended */
    int64_t input, cached, output, reasoning; /* as the server said; NRG_MISSING */
    int64_t n_texts;                          /* pieces of text in all */
    size_t texts, texts_end;                  /* entries of the list's texts */
    /* The output's tokens: what the server said, or else pieces of text, which is an estimate. */
    double output_tokens; /* NAN: neither is known */
    bool output_estimated;
};

struct nrg_relayed_requests {
    struct nrg_relayed_request *items; /* in order of their begin */
    size_t n, cap;
    struct nrg_llm_texts *texts;
    size_t n_texts, cap_texts;
    struct nrg_span_catalog names; /* that items point to */
};

int nrg_llm_requests_load(struct nrg_relayed_requests *requests, struct nrg_recording *recording,
                          struct nrg_error *err);
void nrg_llm_requests_release(struct nrg_relayed_requests *requests);

#endif

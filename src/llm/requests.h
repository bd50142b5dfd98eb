/*
 * Requests to a language model in a recording: `nrg llm proxy` writes them as spans, and reports
 * read them back. The names are in one place, here.
 *
 * A request is a span of kind "request" on the track of its slot (no two that overlap share one);
 * its number is the begin's value. Inside of it stand the spans prefill (until the first text, or
 * the first byte of an answer that is no stream) and decode (from there on), counts, and marks of
 * kind "api", "model", "status" and "outcome". Counts at the end are what the server said: input,
 * cached, output and reasoning tokens; one that it did not say is not there. "texts" are pieces of
 * a streamed answer at the times at which they came. A request to anything but an API of a language
 * model has the API "other", a mark of kind "path", and no phases.
 *
 * A request is understood when some of its tokens are known. Others are known by their time alone,
 * whatever they are. Of these, what only asks (GET, HEAD, OPTIONS) and is answered within the
 * shortest slot of time that is looked at is no work: it is counted, and left out.
 *
 * Load, release; 0 or -errno with err. One thread at a time.
 */
#ifndef NRG_LLM_REQUESTS_H
#define NRG_LLM_REQUESTS_H

#include "base/clock.h"
#include "record/read/recording.h"
#include "record/read/span_catalog.h"

#define NRG_REQUEST_KIND         "request"
#define NRG_REQUEST_API_KIND     "api"
#define NRG_REQUEST_MODEL_KIND   "model"
#define NRG_REQUEST_OUTCOME_KIND "outcome"
#define NRG_REQUEST_PATH_KIND    "path"
#define NRG_REQUEST_STATUS_KIND  "status"
#define NRG_REQUEST_OTHER        "other" /* API */
#define NRG_REQUEST_QUICK_NS     (50 * NRG_NS_PER_MS)
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
    const char *model, *api, *outcome, *path; /* "": not known */
    int status;                               /* of the answer; 0: not known, or none */
    int64_t begin_ns, first_ns, end_ns;       /* first_ns NRG_MISSING: no text came */
    bool open;                                /* it ran when the recording ended */
    int64_t input, cached, output, reasoning; /* as the server said; NRG_MISSING */
    int64_t n_texts;                          /* pieces of text in all */
    size_t texts, texts_end;                  /* entries of the list's texts */
    /* The output's tokens: what the server said, or else pieces of text, which is an estimate. */
    double output_tokens; /* NAN: neither is known */
    bool output_estimated;
    bool understood;
};

struct nrg_relayed_requests {
    struct nrg_relayed_request *items; /* in order of their begin */
    size_t n, cap;
    struct nrg_llm_texts *texts;
    size_t n_texts, cap_texts;
    size_t left_out;               /* requests that were no work */
    struct nrg_span_catalog names; /* that items point to */
};

int nrg_llm_requests_load(struct nrg_relayed_requests *requests, struct nrg_recording *recording,
                          struct nrg_error *err);
void nrg_llm_requests_release(struct nrg_relayed_requests *requests);

/* Whether a request of this kind of path (llm/proxy/api.h) that took so long is no work. */
bool nrg_llm_is_no_work(const char *path, int64_t length_ns);
/* Whether an answer came in pieces of text. */
bool nrg_llm_is_streamed(const struct nrg_relayed_request *request);

/* It is over, and was refused, cut or cancelled. */
bool nrg_request_failed(const struct nrg_relayed_request *request);

#endif

/*
 * Asking a server for the usage of a stream on behalf of a client that did not (--ask-usage), and
 * taking it out of the answer again.
 *
 * A body is changed in one place, its other bytes stay as they are: include_usage becomes true, in
 * the client's stream_options or in new ones. It is left alone when it is no JSON object, does not
 * stream, asks already, says a thing twice, or wants usage in every event
 * (continuous_usage_stats), which could not be told apart afterwards.
 *
 * Of the answer's events the one with usage and no choices is left out. An event is held until it
 * is complete; one that is longer than NRG_USAGE_EVENT bytes is none of these, and passes as it
 * comes.
 *
 * One thread; the patch keeps nothing.
 */
#ifndef NRG_LLM_PROXY_USAGE_H
#define NRG_LLM_PROXY_USAGE_H

#include "llm/proxy/head.h"

#define NRG_USAGE_EVENT 4096

/* Bytes at..at+cut of the body become the text. */
struct nrg_usage_patch {
    size_t at, cut;
    const char *text;
};

/* False: the body is to be left as it is. */
bool nrg_usage_ask(const char *body, size_t n, struct nrg_usage_patch *patch);

struct nrg_usage_filter {
    char held[NRG_USAGE_EVENT];
    size_t n, line; /* bytes held; bytes of this line */
    bool passes;    /* the rest of this event does */
};

/* What passes is added to `out`, which has room for what is held and n more bytes. */
void nrg_usage_filter_feed(struct nrg_usage_filter *filter, const char *at, size_t n,
                           struct nrg_http_out *out);
/* The stream is over: what is held passes. */
void nrg_usage_filter_end(struct nrg_usage_filter *filter, struct nrg_http_out *out);

#endif

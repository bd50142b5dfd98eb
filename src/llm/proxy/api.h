/*
 * What a request asks for, by its method and path: the API of a language model, or something else,
 * of which a kind is kept: "POST /v1/audio/speech".
 *
 * A kind has no query, and of the path only what looks like a word of an API: letters, '_', '-' and
 * '.', at most 24 of them, or a version such as v1. Anything else (numbers, ids, keys, names with
 * digits) is a '*', so that no secret is kept; beyond five parts it ends with "/...".
 *
 * Pure.
 */
#ifndef NRG_LLM_PROXY_API_H
#define NRG_LLM_PROXY_API_H

#include "llm/proxy/head.h"

struct nrg_llm_api {
    const char *end;   /* of the path */
    const char *name;  /* "chat", "completions", ... */
    bool no_text;      /* the prompt is all that it reads, and there is no output */
    bool prompt_apart; /* its input tokens are without those that a cache had, or got */
    bool may_ask;      /* usage of a stream comes when stream_options ask for it */
};

/* NULL: no API that is understood. */
const struct nrg_llm_api *nrg_llm_api_of(const struct nrg_http_head *head);

#define NRG_PATH_KIND_MAX 120
void nrg_path_kind(const struct nrg_http_head *head, char kind[NRG_PATH_KIND_MAX]);

#endif

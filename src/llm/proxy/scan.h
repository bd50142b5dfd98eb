/*
 * What an answer of a language model says about itself, read from its bytes as they pass: the
 * model, the tokens that it used, and when text came. OpenAI's chat, completions, responses and
 * embeddings, Anthropic's messages, Ollama's chat, generate and embed, generate of SGLang and TGI,
 * completion of llama.cpp, rerank and score of vLLM; whole JSON, lines of JSON, or server-sent
 * events.
 *
 * No text of a prompt or answer is kept: a field is known by its place in the document, and only
 * counts and the model's name are looked at. Memory is constant whatever comes. What is no JSON is
 * ignored up to the next line. A count that can't be one (negative, a fraction, beyond 10^9, a
 * text) is left out and counted as a lie; the last one of several is right. Of a list of answers
 * (several prompts to SGLang or llama.cpp) counts are added; of a stream that mixes several, each
 * with counts of its own, none is known.
 *
 * Plain data, nothing is allocated, nothing fails. Any thread.
 */
#ifndef NRG_LLM_PROXY_SCAN_H
#define NRG_LLM_PROXY_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "llm/proxy/api.h"

enum nrg_scan_form {
    NRG_SCAN_NOTHING,
    NRG_SCAN_JSON,   /* one document */
    NRG_SCAN_LINES,  /* one in each line */
    NRG_SCAN_EVENTS, /* one behind each "data:" */
};

#define NRG_SCAN_MODEL_MAX 95
#define NRG_SCAN_DEPTH     32

struct nrg_llm_seen {
    char model[NRG_SCAN_MODEL_MAX + 1];       /* "": not said */
    int64_t input, cached, output, reasoning; /* tokens; NRG_MISSING: not said */
    /* As Anthropic's API has it, parts of the prompt that are not in `input`; and the sum, where no
     * more than that is said (nrg_llm_seen_settle). */
    int64_t cache_read, cache_creation, total;
    uint64_t texts; /* documents with some text of an answer */
    uint64_t lies;
    bool failed; /* a document says that there was an error */
};

/* Counts of all APIs in the same terms, once the answer is over: the input has all of the prompt,
 * those of a cache included; and what makes no text, such as a rerank, has read all its tokens. */
void nrg_llm_seen_settle(struct nrg_llm_seen *seen, const struct nrg_llm_api *api);

/* How the last document began, up to its first text, and where the machine was then: events of a
 * stream begin alike, and one that does is not read again up to there. */
struct nrg_scan_opening {
    char bytes[256];
    size_t n; /* 0: none */
    unsigned depth;
    uint32_t objects;
    uint64_t path, paths[8];
    int64_t index;
    bool is_delta, has_type;
};

struct nrg_llm_scan {
    enum nrg_scan_form form;
    struct nrg_llm_seen seen;
    struct nrg_llm_seen before; /* counts of the answers before this one of a list */
    int64_t index, counted;     /* of this document; of the first one with counts */
    bool several;               /* others with counts have another index */
    int state, after;           /* of the document; what a string turns out to be */
    unsigned depth;
    uint64_t paths[NRG_SCAN_DEPTH];    /* of the containers that are open */
    uint32_t objects;                  /* a bit for each of them: no list */
    uint64_t path;                     /* of the value to come */
    char text[NRG_SCAN_MODEL_MAX + 1]; /* of a key, number or model */
    unsigned text_n, escape;
    bool has_text, is_delta, has_type; /* of this document */
    bool counts;                       /* a count was seen in it */
    int line;                          /* of an event: how much of "data:" was there */
    struct nrg_scan_opening opening;
};

void nrg_llm_scan_init(struct nrg_llm_scan *scan, enum nrg_scan_form form);
void nrg_llm_scan_feed(struct nrg_llm_scan *scan, const char *at, size_t n);

#endif

/*
 * What servers of language models call their counts: a table of families (vLLM, SGLang, llama.cpp,
 * TGI, TensorRT-LLM), and the sums of a page of metrics by it, over engines, models and ranks.
 *
 * Pure. Nothing fails: a page of which nothing is known has no family.
 */
#ifndef NRG_SENSORS_LLM_FAMILIES_H
#define NRG_SENSORS_LLM_FAMILIES_H

#include <stddef.h>

enum nrg_server_count {
    NRG_SERVER_PROMPT_TOKENS, /* of all prompts, also those that a cache had */
    NRG_SERVER_CACHED_TOKENS, /* of these, those that a cache had */
    NRG_SERVER_OUTPUT_TOKENS,
    NRG_SERVER_FINISHED, /* requests */
    NRG_SERVER_STEPS,
    NRG_SERVER_RUNNING, /* sequences that are worked on now */
    NRG_SERVER_WAITING, /* requests that are not */
    NRG_SERVER_COUNTS
};

struct nrg_server_page {
    const char *family;              /* "vLLM"; NULL: none that is known */
    double value[NRG_SERVER_COUNTS]; /* NAN: not on the page */
    size_t samples, refused;         /* lines of the page */
    const char *wrong; /* a metric of the family that is NaN, negative or huge; NULL */
};

/* `page` is changed where it is in quotes. */
void nrg_server_page_read(char *page, size_t len, struct nrg_server_page *out);

/* The channel of a count, "llm.prompt_tokens". */
const char *nrg_server_channel(enum nrg_server_count count);
/* What was looked for, for people: "vllm:prompt_tokens_total (vLLM), ...". */
void nrg_server_families_say(char *text, size_t size);

#endif

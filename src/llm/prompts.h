/*
 * Tokens of each request's prompt that had to be read: what the server said, without those that a
 * cache had. Where it said nothing (streams of clients that don't ask for `usage`, requests that
 * were cancelled) and a text came all the same, what the model's other requests make likely by the
 * time until the first text: a law is not wrong by what is right on average, but by what is left
 * out.
 *
 * Pure but for the memory that it returns.
 */
#ifndef NRG_LLM_PROMPTS_H
#define NRG_LLM_PROMPTS_H

#include "llm/requests.h"

struct nrg_llm_prompt {
    double tokens, spread; /* spread: standard deviation around the likely; 0: it was said */
};

/* One for each request, to be freed; NULL: out of memory. */
struct nrg_llm_prompt *nrg_llm_prompts_make(const struct nrg_relayed_requests *requests);

#endif

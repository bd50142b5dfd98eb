/*
 * Scores of an evaluation by what intervals of language models depend on (width.h): how weights are
 * stored, lengths, batch.
 *
 * Ownership: plain values; names are constants. Errors: 0 or -ENOMEM. Threads: pure.
 */
#ifndef NRG_PREDICT_LLM_GROUPS_H
#define NRG_PREDICT_LLM_GROUPS_H

#include "predict/llm/law.h"

struct nrg_llm_scores {
    struct nrg_score of[NRG_LLM_FACTORS][NRG_LLM_LEVELS]; /* rows 0: none was tested */
};
int nrg_llm_score(struct nrg_llm_scores *out, const struct nrg_dataset *set,
                  const struct nrg_estimate *estimates);

#endif

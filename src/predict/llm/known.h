/*
 * Public models by name, for data sets whose rows name a model and give its number of parameters
 * but not its layers. What is not in the table is made up from the number of parameters, and says
 * so.
 *
 * Nothing is owned and nothing fails. Threads: pure.
 */
#ifndef NRG_PREDICT_LLM_KNOWN_H
#define NRG_PREDICT_LLM_KNOWN_H

#include "predict/llm/config.h"

/*
 * The architecture that a name such as "Qwen/Qwen3-30B-A3B-Thinking-2507-FP8" stands for, and the
 * name that all its variants share. NULL: not known, or `params` (NAN: unknown) contradicts it.
 */
const char *nrg_llm_known(struct nrg_llm_config *config, const char *name, double params);

/* A plausible shape for so many parameters, of which a token uses `active`. */
void nrg_llm_guess(struct nrg_llm_config *config, double active, double params);
/* The same with so many layers of that width; 0: plausible ones. */
void nrg_llm_guess_sized(struct nrg_llm_config *config, double active, double params, double layers,
                         double hidden);

/* The name without owner, dates, storage and tuning ("-Instruct", "-FP8"). Returns buf. */
const char *nrg_llm_base_name(const char *name, char *buf, size_t size);

#endif

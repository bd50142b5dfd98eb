/*
 * Parts of a model for pictures and sound. A prompt of text does not use them, so they are memory
 * and no work; of those that are not known a name is kept, so that it can be said. Private to llm/.
 */
#ifndef NRG_PREDICT_LLM_PARTS_H
#define NRG_PREDICT_LLM_PARTS_H

#include "predict/llm/families.h"

/* After the language model was read; `whole` is the file. */
void nrg_llm_read_parts(struct nrg_llm_reading *r, const json_t *whole);

#endif

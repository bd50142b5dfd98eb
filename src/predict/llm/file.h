/* Configs from headers of weight files: what each of file.c's helpers fills. Private to llm/. */
#ifndef NRG_PREDICT_LLM_FILE_H
#define NRG_PREDICT_LLM_FILE_H

#include "graph/reader.h"
#include "predict/llm/config.h"

/* From a GGUF file's key-value pairs and tensors. */
int nrg_llm_config_gguf(struct nrg_llm_config *config, const struct nrg_source *source,
                        struct nrg_error *err);
/* From names and shapes of tensors alone, as far as these say it. */
int nrg_llm_config_tensors(struct nrg_llm_config *config, const struct nrg_model *model,
                           const char *name, struct nrg_error *err);
/* Parameters and bytes of a model's tensors. */
void nrg_llm_count_stored(struct nrg_llm_config *config, const struct nrg_model *model);
/* Sizes given by hand ("params=7.6e9,layers=32"), and whether a text is that. */
bool nrg_llm_is_by_hand(const char *text);
int nrg_llm_config_by_hand(struct nrg_llm_config *config, const char *text, struct nrg_error *err);

#endif

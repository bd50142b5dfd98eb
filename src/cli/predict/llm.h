/* `nrg predict --llm`: a language model on a server, from its config. */
#ifndef NRG_CLI_PREDICT_LLM_H
#define NRG_CLI_PREDICT_LLM_H

#include "cli/internal.h"
#include "predict/llm/forecast.h"

/* Sizes of one dimension of a table. */
struct nrg_llm_sizes {
    const char *name; /* batch, prompt (or context), output */
    const int64_t *sizes;
    size_t n;
};

struct nrg_llm_request {
    const char *config; /* its file */
    const struct nrg_profile *profile;
    const char *profile_name;
    struct nrg_llm_load load;
    struct nrg_llm_forecast_options how;
    struct nrg_llm_sizes tables[2];
    size_t n_tables;
    const char *json; /* NULL: text */
};

/* Returns the exit code, after a message on stderr if that is not 0. */
int nrg_predict_llm(const struct nrg_cli *cli, struct nrg_llm_request *request);

#endif

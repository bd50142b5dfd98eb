/*
 * A measurement of a language model as a row of a data set: joules of one output token, with the
 * terms of its work (predict/llm/work.h) as features. Private to dataset/; used by the readers of
 * rows that name models and of recordings of generation.
 *
 * Ownership: nothing is kept but what the data set copies. Errors: 0, or -errno. Threads: one per
 * data set.
 */
#ifndef NRG_PREDICT_DATASET_LLM_ROW_H
#define NRG_PREDICT_DATASET_LLM_ROW_H

#include "predict/dataset/read.h"
#include "predict/llm/law.h"

struct nrg_llm_row {
    const char *device, *model, *node, *kind, *provenance;
    double energy_j, time_s; /* of one output token; time NAN: not known */
    double params;           /* NAN: not known */
    double repeats;          /* tokens that were measured; NAN: not known */
    struct nrg_llm_load load;
};

/* -EINVAL: a load that no server has; -ENOMEM. */
int nrg_llm_row_add(struct nrg_dataset *set, const struct nrg_llm_config *config,
                    const struct nrg_llm_row *row);

/* The file of --config whose MODEL the name contains, or that is for all; NULL: none. */
const char *nrg_llm_row_config(const struct nrg_read_options *options, const char *model);

#endif

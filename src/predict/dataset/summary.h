/*
 * What is in a data set: models, kinds, ranges, and the noise floor, which is the spread of
 * measurements of operators of the same kind and sizes. No model can do better than that.
 *
 * Ownership: the caller releases the summary; names belong to the data set. Errors: -ENOMEM.
 * Threads: nothing is shared.
 */
#ifndef NRG_PREDICT_DATASET_SUMMARY_H
#define NRG_PREDICT_DATASET_SUMMARY_H

#include "predict/dataset/measurements.h"

struct nrg_tally {
    const char *name;
    enum nrg_node_level level; /* of a kind */
    double rows;               /* with multiplicity */
    size_t distinct;
    size_t levels[NRG_NODE_LEVELS];               /* distinct, of a model */
    struct nrg_range energy_j, macs, bytes, size; /* high < low: unknown; size: batch x sequence */
    size_t repeated;                              /* sizes that were measured more than once */
    double spread_median, spread_p90;             /* (max - min) / mean of these; NAN: none */
};

struct nrg_data_summary {
    struct nrg_tally *models, *kinds;
    size_t n_models, n_kinds;
    struct nrg_tally all;
};

/* 0 or -ENOMEM. */
int nrg_data_summary_make(struct nrg_data_summary *out, const struct nrg_dataset *set);
void nrg_data_summary_release(struct nrg_data_summary *summary);

#endif

/*
 * A law fitted to another machine or server from a few rows: one factor for its energies and one
 * for its times, nothing else. A factor is the mean over models of ln(measured / predicted), drawn
 * towards none: of a single model the half counts, of four models four fifths. Where the rows lie
 * outside of the law's intervals all the same, these widen until they hold.
 *
 * A law of another GPU is carried over first (transfer.h), where both are known.
 *
 * Ownership: plain values. Errors: 0, or -errno with err. Threads: pure.
 */
#ifndef NRG_PREDICT_LLM_RECALIBRATE_H
#define NRG_PREDICT_LLM_RECALIBRATE_H

#include "predict/llm/law.h"

/* `from`: the device that the law is of. The rows' own is that of the data set. */
int nrg_llm_law_recalibrate(struct nrg_llm_law *law, const char *from,
                            const struct nrg_dataset *set, const bool *mask, double confidence,
                            struct nrg_error *err);

#endif

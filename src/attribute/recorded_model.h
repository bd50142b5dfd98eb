/*
 * The models that a recording keeps, analysed. The bytes are record/'s, what they mean is graph/'s;
 * this is the first folder of the flow that knows both.
 *
 * The caller releases the analysis. 0 or -errno with err. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_RECORDED_MODEL_H
#define NRG_ATTRIBUTE_RECORDED_MODEL_H

#include "graph/analysis.h"
#include "record/read/graph.h"

/*
 * Analyses the graph of that number, below nrg_recording_graphs(). `options` NULL: all zero; its
 * format is not used, the recording tells it. 0, or -errno with err and nothing to release; the
 * analysis' name is filled in any case, "model" where the recording has none.
 */
int nrg_recorded_model(struct nrg_analysis *analysis, struct nrg_recording *recording,
                       size_t number, const struct nrg_analysis_options *options,
                       struct nrg_error *err);

/*
 * Parameters and MACs of the model that a recording is about: as `nrg run --graph` counted them;
 * else from the graph that the recording keeps (nrg_recorder_model); else, for parameters, what
 * the program noted (nrg.record in Python notes "model_params").
 */
struct nrg_model_counts {
    int64_t params, macs; /* NRG_MISSING: not known */
};

/* A graph that can't be read is no error here: its counts are not known. */
struct nrg_model_counts nrg_model_counts_of(struct nrg_recording *recording);

#endif

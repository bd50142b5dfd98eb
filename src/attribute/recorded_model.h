/*
 * Parameters and MACs of the model that a recording is about: as `nrg run --graph` counted them;
 * else from the graph that the recording keeps (nrg_recorder_model); else, for parameters, what
 * the program noted (nrg.record in Python notes "model_params").
 */
#ifndef NRG_REPORT_MODEL_COUNTS_H
#define NRG_REPORT_MODEL_COUNTS_H

#include "record/read/recording.h"

struct nrg_model_counts {
    int64_t params, macs; /* NRG_MISSING: not known */
};

/* A graph that can't be read is no error here: its counts are not known. */
struct nrg_model_counts nrg_model_counts_of(struct nrg_recording *recording);

#endif

/* `nrg predict --against`: the prediction held beside a recording of the same model. */
#ifndef NRG_CLI_PREDICT_AGAINST_H
#define NRG_CLI_PREDICT_AGAINST_H

#include "cli/common.h"
#include "cli/predict_model.h"
#include "report/prediction/report.h"

struct nrg_against_request {
    struct nrg_model_request model; /* path NULL: the recording's own graph */
    const char *recording;
    const struct nrg_profile *profile;
    const char *profile_name;
    const char *idle; /* "apart" (NULL), "share", "none" */
    int depth;
    const char *json; /* NULL: text */
};

/* The exit code, after saying what is wrong. */
int nrg_predict_against(const struct nrg_against_request *request);

#endif

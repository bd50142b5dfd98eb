/* `nrg predict --against`: the prediction held beside a recording of the same model. */
#ifndef NRG_CLI_PREDICT_AGAINST_H
#define NRG_CLI_PREDICT_AGAINST_H

#include "cli/internal.h"
#include "graph/analysis.h"
#include "report/prediction/report.h"

struct nrg_against_request {
    const char *model; /* its file; NULL: the recording's own graph */
    struct nrg_analysis_options how;
    const char *recording;
    const struct nrg_profile *profile;
    const char *profile_name;
    enum nrg_idle_mode idle;
    int depth;
    const char *json; /* NULL: text */
};

/* Returns the exit code, after a message on stderr if that is not 0. */
int nrg_predict_against(const struct nrg_against_request *request);

#endif

/*
 * See against.h. A recording may keep several graphs: the first that names modules of its spans is
 * used. Graphs that can't be read or predicted are skipped; when none is left, the reason for the
 * last one is the error.
 */
#include "cli/predict/against.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/recorded_model.h"
#include "base/mem.h"
#include "predict/dataset/measure_plan.h"

struct job {
    const struct nrg_against_request *request;
    struct nrg_recording *recording;
    struct nrg_attribution attribution;
    struct nrg_analysis model;
    struct nrg_prediction prediction;
    struct nrg_against against;
    struct nrg_error err;
};

static int show_comparison(const struct job *job, const char *name)
{
    const struct nrg_against_request *q = job->request;
    const struct nrg_against_report report = {.predicted = {.name = name,
                                                            .profile = q->profile,
                                                            .profile_name = q->profile_name,
                                                            .reduced = &job->model.reduced,
                                                            .tree = &job->model.tree,
                                                            .prediction = &job->prediction,
                                                            .runs = NAN},
                                              .recording = q->recording,
                                              .attribution = &job->attribution,
                                              .against = &job->against};
    if (!nrg_is_stdout(q->json))
        nrg_against_text(&report, q->depth, stdout);
    return q->json ? nrg_print_json(nrg_against_json(&report), q->json) : 0;
}

/*
 * Prints when the graph and the spans have modules in common; -ENOENT: they have none. Releases the
 * model.
 */
static int try_model(struct job *job, const char *name, int *code)
{
    int rc = nrg_predict(&job->prediction, job->request->profile, &job->model.reduced,
                         &job->model.tree, &job->err);
    if (rc && !job->err.where[0])
        nrg_copy(job->err.where, sizeof job->err.where, name);
    if (!rc && (rc = nrg_against_make(&job->against, &job->attribution, &job->model.tree,
                                      &job->prediction)))
        nrg_fail(&job->err, rc, name, "out of memory");
    if (!rc && !job->against.n_matched)
        rc = nrg_fail(&job->err, -ENOENT, name, "has no module in common with the spans of %s",
                      job->request->recording);
    if (!rc)
        *code = show_comparison(job, name);
    nrg_against_release(&job->against);
    nrg_prediction_release(&job->prediction);
    nrg_analysis_release(&job->model);
    return rc;
}

static int try_recorded(struct job *job, int *code)
{
    size_t n = nrg_recording_graphs(job->recording);
    int rc = n ? -ENOENT
               : nrg_fail(&job->err, -ENOENT, job->request->recording,
                          "keeps no graph of a model: give one, nrg predict MODEL --against");
    for (size_t i = 0; rc && i < n; i++) {
        rc = nrg_recorded_model(&job->model, job->recording, i, &job->request->how, &job->err);
        if (!rc)
            rc = try_model(job, job->model.name, code);
    }
    return rc; /* err is about the last one */
}

static int compare_models(struct job *job, const struct nrg_attribution_options *how)
{
    const struct nrg_against_request *q = job->request;
    int code = 1;
    int rc = nrg_attribution_make(&job->attribution, job->recording, how, &job->err);
    if (rc)
        return nrg_complain(&job->err, 1);
    if (!job->attribution.spans)
        rc = nrg_fail(&job->err, -ENODATA, q->recording,
                      "holds no spans: record with nrg run --torch");
    else if (!q->model)
        rc = try_recorded(job, &code);
    else if (!(rc = nrg_analyse(&job->model, q->model, &q->how, &job->err)))
        rc = try_model(job, q->model, &code);
    nrg_attribution_release(&job->attribution);
    if (!rc)
        rc = nrg_recording_check(job->recording, &job->err);
    return rc ? nrg_complain(&job->err, 1) : code;
}

int nrg_predict_against(const struct nrg_against_request *request)
{
    struct job job = {.request = request};
    const struct nrg_attribution_options how = {.method = NRG_METHOD_AUTO,
                                                .idle = request->idle,
                                                .lag = NRG_LAG_AUTO,
                                                .idle_w = NAN,
                                                .by = NRG_BY_PATH,
                                                .confidence = request->profile->confidence};
    if (nrg_recording_open(request->recording, &job.recording, &job.err))
        return nrg_complain(&job.err, 1);
    if (nrg_recording_text(job.recording, NRG_PLAN_NOTE)) {
        nrg_fail(&job.err, -EINVAL, request->recording,
                 "is of nrg.torch.measure, whose spans hold many calls of parts alone: it is "
                 "compared with the rows of nrg dataset (examples/measure_predict.py)");
        nrg_recording_close(job.recording);
        return nrg_complain(&job.err, 1);
    }
    int code = compare_models(&job, &how);
    nrg_recording_close(job.recording);
    return code;
}

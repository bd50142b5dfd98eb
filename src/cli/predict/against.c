/*
 * See predict_against.h. A recording may keep several graphs: the first that names modules of its
 * spans is taken. Graphs that can't be read, or that can't be predicted, are passed over with the
 * reason when none is left.
 */
#include "cli/predict/against.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "predict/dataset/measure_plan.h"
#include "record/read/graph.h"

struct job {
    const struct nrg_against_request *request;
    struct nrg_recording *recording;
    struct nrg_attribution attribution;
    struct nrg_counted counted;
    struct nrg_prediction prediction;
    struct nrg_against against;
    struct nrg_error err;
};

static int show(const struct job *job, const char *name)
{
    const struct nrg_against_request *q = job->request;
    const struct nrg_against_report report = {.predicted = {.name = name,
                                                            .profile = q->profile,
                                                            .profile_name = q->profile_name,
                                                            .reduced = &job->counted.reduced,
                                                            .tree = &job->counted.tree,
                                                            .prediction = &job->prediction,
                                                            .runs = NAN},
                                              .recording = q->recording,
                                              .attribution = &job->attribution,
                                              .against = &job->against};
    if (!q->json || strcmp(q->json, "-"))
        nrg_against_text(&report, q->depth, stdout);
    return q->json ? nrg_print_json(nrg_against_json(&report), q->json) : 0;
}

/* Prints when the graph and the spans have modules in common; -ENOENT: they have none. */
static int try_model(struct job *job, const struct nrg_model_request *model, int *code)
{
    int rc = nrg_counted_read(&job->counted, model, &job->err);
    if (rc)
        return rc;
    rc = nrg_predict(&job->prediction, job->request->profile, &job->counted.reduced,
                     &job->counted.tree, &job->err);
    if (rc && !job->err.where[0])
        nrg_copy(job->err.where, sizeof job->err.where, model->path);
    if (!rc && (rc = nrg_against_make(&job->against, &job->attribution, &job->counted.tree,
                                      &job->prediction)))
        nrg_fail(&job->err, rc, model->path, "out of memory");
    if (!rc && !job->against.n_matched)
        rc = nrg_fail(&job->err, -ENOENT, model->path, "names no module that the spans of %s name",
                      job->request->recording);
    if (!rc)
        *code = show(job, model->path);
    nrg_against_release(&job->against);
    nrg_prediction_release(&job->prediction);
    nrg_counted_release(&job->counted);
    return rc;
}

static int try_recorded(struct job *job, int *code)
{
    struct nrg_recorded_graph graph;
    for (size_t i = 0;; i++) {
        struct nrg_error none;
        int rc = nrg_recording_graph(job->recording, i, &graph, &none);
        if (rc == -ENOENT && i)
            return -ENOENT; /* err says what was wrong with the last one */
        if (rc == -ENOENT)
            return nrg_fail(&job->err, rc, job->request->recording,
                            "keeps no graph of a model: give one, nrg predict MODEL --against");
        if (rc) {
            job->err = none;
            return rc;
        }
        struct nrg_model_request model = job->request->model;
        model.path = graph.name[0] ? graph.name : "model";
        model.format = graph.format[0] ? graph.format : NULL;
        model.bytes = graph.bytes;
        model.size = graph.size;
        rc = try_model(job, &model, code);
        nrg_recorded_graph_release(&graph);
        if (!rc)
            return 0;
    }
}

static int read_idle(const char *text)
{
    if (!text || !strcmp(text, "apart"))
        return NRG_IDLE_APART;
    return !strcmp(text, "share") ? NRG_IDLE_SHARE : !strcmp(text, "none") ? NRG_IDLE_NONE : -1;
}

static int compare(struct job *job, const struct nrg_attribution_options *how)
{
    int code = 1;
    int rc = nrg_attribution_make(&job->attribution, job->recording, how, &job->err);
    if (rc)
        return nrg_complain(&job->err, 1);
    if (!job->attribution.spans)
        rc = nrg_fail(&job->err, -ENODATA, job->request->recording,
                      "holds no spans: record with nrg run --torch");
    else
        rc = job->request->model.path ? try_model(job, &job->request->model, &code)
                                      : try_recorded(job, &code);
    nrg_attribution_release(&job->attribution);
    return rc ? nrg_complain(&job->err, 1) : code;
}

int nrg_predict_against(const struct nrg_against_request *request)
{
    struct job job = {.request = request};
    int idle = read_idle(request->idle);
    if (idle < 0) {
        fprintf(stderr, "nrg predict: --idle wants apart, share or none, not '%s'\n",
                request->idle);
        return 2;
    }
    const struct nrg_attribution_options how = {.method = NRG_METHOD_AUTO,
                                                .idle = (enum nrg_idle_mode)idle,
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
    int code = compare(&job, &how);
    nrg_recording_close(job.recording);
    return code;
}

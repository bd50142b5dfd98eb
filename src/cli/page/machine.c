/* See machine.h. A recording may keep several graphs: the first whose modules have spans is used.
 */
#include "cli/page/machine.h"

#include <errno.h>
#include <math.h>

#include "predict/against.h"
#include "report/prediction/report.h"

int nrg_page_machine_open(struct nrg_page_machine *m, const char *path)
{
    struct nrg_error err;
    *m = (struct nrg_page_machine){.path = path};
    if (!path)
        return 0;
    int rc = nrg_is_calibration(path) ? nrg_machine_price_read(&m->price, path, &err)
                                      : nrg_profile_read(&m->profile, path, &err);
    if (rc)
        return nrg_complain(&err, 1);
    m->has_profile = !m->price.source[0];
    if (m->has_profile)
        m->price = nrg_machine_price_of(&m->profile);
    return 0;
}

void nrg_page_machine_close(struct nrg_page_machine *m)
{
    if (m->has_profile)
        nrg_profile_release(&m->profile);
    *m = (struct nrg_page_machine){0};
}

/* NULL with err when the model can't be predicted or has no module in common with the spans. */
static json_t *hold_against(const struct nrg_page_machine *m,
                            const struct nrg_attribute_source *source,
                            const struct nrg_attribution *a, const struct nrg_analysis *model,
                            struct nrg_error *err)
{
    struct nrg_prediction prediction = {0};
    struct nrg_against against = {0};
    json_t *doc = NULL;
    int rc = nrg_predict(&prediction, &m->profile, &model->reduced, &model->tree, err);
    if (!rc && (rc = nrg_against_make(&against, a, &model->tree, &prediction)))
        nrg_fail(err, rc, NULL, "out of memory");
    if (!rc && !against.n_matched)
        rc = nrg_fail(err, -ENOENT, NULL, "has no module in common with the spans");
    const struct nrg_against_report report = {.predicted = {.name = model->name,
                                                            .profile = &m->profile,
                                                            .profile_name = m->path,
                                                            .reduced = &model->reduced,
                                                            .tree = &model->tree,
                                                            .prediction = &prediction,
                                                            .runs = NAN},
                                              .recording = nrg_recording_path(source->recording),
                                              .attribution = a,
                                              .against = &against};
    if (!rc)
        doc = nrg_against_json(&report);
    nrg_against_release(&against);
    nrg_prediction_release(&prediction);
    return doc;
}

json_t *nrg_page_machine_against(const struct nrg_page_machine *m,
                                 const struct nrg_attribute_source *source,
                                 struct nrg_attribution *a)
{
    struct nrg_error err = {0};
    json_t *doc = NULL;
    if (!m->has_profile)
        return NULL;
    for (size_t i = 0; !doc && i < source->n_models; i++) {
        const struct nrg_analysis *model = &source->models[i];
        doc = model->has_graph ? hold_against(m, source, a, model, &err) : NULL;
        if (!doc && model->has_graph)
            nrg_attribution_note(a, "prediction", "%s: %s", model->name, err.what);
    }
    if (!doc && !err.what[0])
        nrg_attribution_note(a, "prediction",
                             "the recording keeps no graph of its model: nrg run --graph MODEL, or "
                             "nrg.torch.trace in the program");
    return doc;
}

/*
 * See by_model.h. The slices and what is known of the domain are those that a regression gets, so
 * that both fit the same; readings of baselines are rows, where idle power is known from them.
 */
#include "attribute/regress/by_model.h"

#include <math.h>
#include <string.h>

#include "attribute/model/result.h"
#include "attribute/regress/rows/own_timeline.h"

static int give_facts(void *facts, const struct nrg_class_activity *activity)
{
    return nrg_facts_add(facts, activity);
}

/* Baselines, of a domain whose idle power they show. */
static const struct nrg_span_ns *find_baselines(const struct nrg_engine *e,
                                                const struct nrg_part *part,
                                                struct nrg_arena *memory, size_t *n)
{
    size_t runs;
    const struct nrg_run *run = nrg_recording_runs(e->recording, &runs);
    struct nrg_span_ns *all = nrg_arena_array(memory, runs + 1, sizeof *all);
    *n = 0;
    if (!all || !part->idle_known || strcmp(part->out->idle_source, "baseline") != 0 ||
        nrg_regress_needs_own(e, part))
        return NULL;
    for (size_t i = 0; i < runs; i++)
        if (!strcmp(run[i].kind, "baseline") && run[i].end_ns > run[i].begin_ns)
            all[(*n)++] = (struct nrg_span_ns){run[i].begin_ns, run[i].end_ns};
    return all;
}

int nrg_regress_by_model(struct nrg_engine *e, struct nrg_part *part,
                         const struct nrg_slicer *slicer, struct nrg_regress_result *result)
{
    struct nrg_arena memory = {0};
    struct nrg_regress_options options;
    struct nrg_facts facts = {0};
    struct nrg_model_fit fit = {0};
    int rc = nrg_regress_options_make(e, part, NULL, &memory, &options);
    size_t n = 0;
    const struct nrg_span_ns *baselines = rc ? NULL : find_baselines(e, part, &memory, &n);
    if (n)
        options.idle_w = NAN;
    if (!rc)
        rc = nrg_facts_init(&facts, &options, baselines, n);
    if (!rc)
        rc = nrg_slicer_hand_over(slicer, e, part, NULL, give_facts, &facts);
    if (!rc) {
        nrg_facts_finish(&facts);
        rc = nrg_model_fit_make(&fit, &facts);
    }
    if (!rc)
        rc = nrg_model_fit_result(&fit, &facts, options.confidence, result);
    if (!rc && n && part->idle_known) { /* it is told as a correction of the baselines' */
        result->idle_off_w = result->idle_w - part->out->idle_w;
        result->beside_w = result->beside_idle_w = result->idle_off_w;
        result->beside_half_w = result->t * sqrt(result->idle_variance);
        result->idle_fitted = false;
    }
    nrg_model_fit_release(&fit);
    nrg_facts_release(&facts);
    nrg_arena_release(&memory);
    return rc;
}

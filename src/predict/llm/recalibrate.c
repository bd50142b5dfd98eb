/* See recalibrate.h. */
#include "predict/llm/recalibrate.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "predict/llm/transfer.h"

/* Models that say: no factor. Of 0.5, 1 and 2 the one that trusts most without a cover below 90 %.
 */
#define PRIOR_MODELS 1.0

/* Means over models, each of its rows' ln(measured / predicted). */
struct factor {
    double *sum, *n;
};

static double pooled(const struct factor *f, size_t models, double *used)
{
    double sum = 0, n = 0;
    for (size_t m = 0; m < models; m++) {
        sum += f->n[m] > 0 ? f->sum[m] / f->n[m] : 0;
        n += f->n[m] > 0;
    }
    *used = n;
    return sum / (n + PRIOR_MODELS);
}

static void scale(struct nrg_llm_law *law, double energy_ln, double time_ln)
{
    for (int t = 0; t < NRG_LLM_TERMS; t++) {
        law->joules[t] *= exp(energy_ln);
        law->seconds[t] *= exp(time_ln);
    }
    law->static_w *= exp(energy_ln - time_ln);
}

/* Half widths grow until they hold as many of the rows as they should. */
static int widen_to(struct nrg_llm_law *law, const struct nrg_dataset *set, const bool *mask,
                    double confidence)
{
    double *scores = nrg_calloc(set->n + 1, sizeof *scores);
    size_t n = 0;
    if (!scores)
        return -ENOMEM;
    for (size_t i = 0; i < set->n; i++) {
        struct nrg_llm_point point;
        struct nrg_llm_estimate e;
        if (!mask[i] || !nrg_llm_row_point(set, i, &point))
            continue;
        nrg_llm_law_estimate(law, &point, &e);
        scores[n++] = fabs(log(set->rows[i].energy_j / e.energy_j)) / e.half;
    }
    nrg_sort(scores, n);
    size_t at = (size_t)ceil(confidence * (double)n);
    double most = at ? scores[at - 1] : 1;
    if (most > 1) {
        law->width.quantile *= most;
        law->width.any *= most;
        law->carried_ln *= most;
    }
    free(scores);
    return 0;
}

/* ln ratios of energies and times, by model. */
static size_t compare(const struct nrg_llm_law *law, const struct nrg_dataset *set,
                      const bool *mask, const uint32_t *model_of, struct factor *energy,
                      struct factor *time)
{
    size_t used = 0;
    for (size_t i = 0; i < set->n; i++) {
        struct nrg_llm_point point;
        struct nrg_llm_estimate e;
        double time_s = nrg_row_feature(set, i, NRG_F_TIME_S);
        if (!mask[i] || !nrg_llm_row_point(set, i, &point))
            continue;
        nrg_llm_law_estimate(law, &point, &e);
        if (!(e.energy_j > 0))
            continue;
        used++;
        energy->sum[model_of[i]] += log(set->rows[i].energy_j / e.energy_j);
        energy->n[model_of[i]]++;
        if (!(time_s > 0 && isfinite(time_s) && e.time_s > 0))
            continue;
        time->sum[model_of[i]] += log(time_s / e.time_s);
        time->n[model_of[i]]++;
    }
    return used;
}

static int carry_over(struct nrg_llm_law *law, const char *from, const char *to,
                      struct nrg_error *err)
{
    const struct nrg_gpu *gpu = nrg_gpu_find(to, NULL);
    if (!strcmp(from, to))
        return 0;
    if (!gpu || !nrg_gpu_find(from, NULL))
        return nrg_fail(err, -EINVAL, NULL,
                        "the profile is of '%s', the rows of '%s', and not both are known GPUs "
                        "(--device NAME when they are one)",
                        from, to);
    return nrg_llm_law_transfer(law, from, gpu, 16, err);
}

int nrg_llm_law_recalibrate(struct nrg_llm_law *law, const char *from,
                            const struct nrg_dataset *set, const bool *mask, double confidence,
                            struct nrg_error *err)
{
    struct nrg_name_list models;
    double energy_models, time_models;
    int rc = carry_over(law, from, set->rows[0].device, err);
    if (rc)
        return rc;
    if (nrg_dataset_list(set, offsetof(struct nrg_row, model), &models))
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    double *room = nrg_calloc(4 * models.n + 1, sizeof *room);
    struct factor energy = {room, room + models.n};
    struct factor time = {room + 2 * models.n, room + 3 * models.n};
    if (!room)
        rc = nrg_fail(err, -ENOMEM, NULL, "out of memory");
    else if (!(law->recalibrated_rows = compare(law, set, mask, models.of_row, &energy, &time)))
        rc = nrg_fail(err, -ENODATA, NULL,
                      "no row of a language model has all that a prediction needs");
    if (!rc) {
        double energy_ln = pooled(&energy, models.n, &energy_models);
        double time_ln = pooled(&time, models.n, &time_models);
        scale(law, energy_ln, time_ln);
        law->carried_ln *= sqrt(PRIOR_MODELS / (energy_models + PRIOR_MODELS));
        law->energy_factor = exp(energy_ln);
        law->time_factor = exp(time_ln);
        if (widen_to(law, set, mask, confidence))
            rc = nrg_fail(err, -ENOMEM, NULL, "out of memory");
    }
    free(room);
    nrg_name_list_release(&models);
    return rc;
}

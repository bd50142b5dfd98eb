/* See llm_row.h. */
#include "predict/dataset/llm_row.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const char *keep(struct nrg_dataset *set, const char *text)
{
    return nrg_dataset_text(set, text, strlen(text));
}

static void set_features(double *f, const struct nrg_llm_row *r, const struct nrg_llm_work *w)
{
    for (int t = 0; t < NRG_LLM_COUNTED; t++)
        f[nrg_llm_term_columns[t]] = w->terms[t] / r->load.batch;
    f[NRG_F_GPUS] = r->load.gpus;
    f[NRG_F_BATCH] = r->load.batch;
    f[NRG_F_SEQ] = r->load.prompt + r->load.output / 2;
    f[NRG_F_WEIGHT_BITS] = w->weight_bits;
    f[NRG_F_PARAMS] = r->params;
    f[NRG_F_TIME_S] = r->time_s;
}

int nrg_llm_row_add(struct nrg_dataset *set, const struct nrg_llm_config *config,
                    const struct nrg_llm_row *r)
{
    struct nrg_llm_work work;
    struct nrg_draft draft = {0};
    uint32_t at;
    if (nrg_llm_work_make(&work, config, &r->load, NULL))
        return -EINVAL;
    nrg_draft_clear(&draft);
    draft.row.device = keep(set, r->device);
    draft.row.model = keep(set, r->model);
    draft.row.node = keep(set, r->node);
    draft.row.kind = keep(set, r->kind);
    draft.row.provenance = keep(set, r->provenance);
    draft.row.level = NRG_NODE_MODEL;
    draft.row.energy_j = r->energy_j;
    draft.row.repeats = r->repeats;
    set_features(draft.features, r, &work);
    int rc = nrg_dataset_add(set, &draft, &at);
    nrg_draft_release(&draft);
    return rc;
}

const char *nrg_llm_row_config(const struct nrg_read_options *options, const char *model)
{
    const char *const *configs = options->configs;
    for (size_t i = 0; configs && configs[i]; i++) {
        const char *equals = strrchr(configs[i], '=');
        if (!equals)
            return configs[i];
        if (memmem(model, strlen(model), configs[i], (size_t)(equals - configs[i])))
            return equals + 1;
    }
    return NULL;
}

/* See groups.h. */
#include "predict/llm/groups.h"

struct wanted {
    int factor, level;
};

static bool is_wanted(const struct nrg_dataset *set, size_t row, const void *arg)
{
    const struct wanted *w = arg;
    struct nrg_llm_point point;
    return nrg_llm_row_point(set, row, &point) &&
           nrg_llm_point_group(&point).level[w->factor] == w->level;
}

int nrg_llm_score(struct nrg_llm_scores *out, const struct nrg_dataset *set,
                  const struct nrg_estimate *estimates)
{
    int rc = 0;
    *out = (struct nrg_llm_scores){0};
    for (int a = 0; a < NRG_LLM_FACTORS; a++)
        for (int l = 0; !rc && l < NRG_LLM_LEVELS && nrg_llm_level_names[a][l]; l++)
            rc = nrg_score_where(&out->of[a][l], nrg_llm_level_names[a][l], set, estimates,
                                 is_wanted, &(struct wanted){a, l});
    return rc;
}

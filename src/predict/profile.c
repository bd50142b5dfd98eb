/*
 * See profile.h. Texts are copied from the data set into the profile's arena, because a profile
 * outlives the data it was trained on.
 */
#include "predict/profile.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/llm/recalibrate.h"
#include "predict/physical/interval.h"
#include "sensors/channel.h"

void nrg_profile_release(struct nrg_profile *profile)
{
    nrg_physical_release(&profile->physical);
    nrg_layer_release(&profile->layer);
    nrg_arena_release(&profile->arena);
    *profile = (struct nrg_profile){0};
}

static const char *keep_text(struct nrg_profile *p, const char *text)
{
    return nrg_arena_copy(&p->arena, text, strlen(text));
}

/* A hash of energies and features in order: it changes with any value that was trained on. */
static uint64_t fingerprint_of(const struct nrg_dataset *set)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < set->n; i++) {
        for (int f = -1; f < NRG_FEATURES; f++) {
            double value =
                f < 0 ? set->rows[i].energy_j : nrg_row_feature(set, i, (enum nrg_feature)f);
            uint64_t bits;
            memcpy(&bits, &value, sizeof bits);
            h = (h ^ (isnan(value) ? 1 : bits)) * UINT64_C(0x100000001b3);
            h ^= h >> 29;
        }
    }
    return h;
}

static int keep_names(struct nrg_profile *p, const struct nrg_dataset *set,
                      const struct nrg_train_options *o)
{
    struct nrg_name_list models;
    int rc = nrg_dataset_list(set, offsetof(struct nrg_row, model), &models);
    if (rc)
        return rc;
    size_t n = 0;
    while (o->sources && o->sources[n])
        n++;
    p->sources = nrg_arena_array(&p->arena, n + 1, sizeof *p->sources);
    p->models = nrg_arena_array(&p->arena, models.n + 1, sizeof *p->models);
    for (size_t i = 0; p->sources && i < n; i++)
        p->sources[p->n_sources++] = keep_text(p, o->sources[i]);
    for (size_t m = 0; p->models && m < models.n; m++)
        p->models[p->n_models++] = keep_text(p, models.names[m]);
    nrg_name_list_release(&models);
    int worst = 0;
    for (size_t i = 0; i < set->n; i++) {
        p->rows += (double)set->rows[i].multiplicity;
        int provenance = nrg_provenance_from_name(set->rows[i].provenance);
        worst = provenance > worst ? provenance : worst;
    }
    p->provenance = nrg_provenance_name((enum nrg_provenance)worst);
    p->device = keep_text(p, set->rows[0].device);
    p->convention = keep_text(p, set->convention ? set->convention : "nrg");
    bool kept = p->sources && p->models && p->device && p->convention;
    for (size_t g = 0; g < p->physical.n; g++)
        kept &= (p->physical.groups[g].name = keep_text(p, p->physical.groups[g].name)) != NULL;
    return kept ? 0 : -ENOMEM;
}

/* Which model it is, the data say: rows of language models' tokens, or of operators. */
static int train_model(struct nrg_profile *p, const struct nrg_dataset *set, const bool *mask,
                       const struct nrg_train_options *o, struct nrg_error *err)
{
    p->is_layer = o->layer;
    p->is_llm = !o->layer && nrg_llm_has_rows(set);
    p->memory_bytes = p->is_llm ? o->memory_bytes : 0;
    if (p->is_layer)
        return nrg_layer_fit(&p->layer, set, mask, o->original_layers, o->confidence, err);
    if (o->from && (!p->is_llm || !o->from->is_llm))
        return nrg_fail(err, -EINVAL, NULL,
                        "--from takes rows and a profile of language models (docs/llm.md)");
    if (o->from) {
        p->llm = o->from->llm;
        p->confidence = o->from->confidence;
        p->memory_bytes = o->memory_bytes > 0 ? o->memory_bytes : o->from->memory_bytes;
        return nrg_llm_law_recalibrate(&p->llm, o->from->device, set, mask, p->confidence, err);
    }
    if (p->is_llm)
        return nrg_llm_law_fit(&p->llm, set, mask, o->confidence, err);
    return nrg_physical_train(&p->physical, set, mask, o->features, o->confidence, err);
}

int nrg_profile_train(struct nrg_profile *profile, const struct nrg_dataset *set,
                      const struct nrg_train_options *o, struct nrg_error *err)
{
    bool *mask = nrg_calloc(set->n + 1, sizeof *mask);
    *profile = (struct nrg_profile){.confidence = o->confidence};
    if (!mask)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < set->n; i++)
        mask[i] = true;
    int rc = train_model(profile, set, mask, o, err);
    if (!rc && keep_names(profile, set, o))
        rc = nrg_fail(err, -ENOMEM, NULL, "out of memory");
    profile->fingerprint = fingerprint_of(set);
    free(mask);
    if (rc)
        nrg_profile_release(profile);
    return rc;
}

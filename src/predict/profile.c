/* See profile.h. */
#include "predict/profile.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const provenances[] = {"measured", "derived", "estimated"};

void nrg_profile_release(struct nrg_profile *profile)
{
    nrg_physical_release(&profile->physical);
    nrg_layer_release(&profile->layer);
    nrg_arena_release(&profile->arena);
    *profile = (struct nrg_profile){0};
}

static const char *keep(struct nrg_profile *p, const char *text)
{
    return nrg_arena_copy(&p->arena, text, strlen(text));
}

static bool listed(const char *const *names, const char *name)
{
    for (size_t i = 0; names && names[i]; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

/* Energies and features in order: changes when anything that was trained on does. */
static uint64_t fingerprint(const struct nrg_dataset *set, const bool *mask)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < set->n; i++) {
        for (int f = -1; f < NRG_FEATURES && mask[i]; f++) {
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

static int keep_names(struct nrg_profile *p, const struct nrg_dataset *set, const bool *mask,
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
        p->sources[p->n_sources++] = keep(p, o->sources[i]);
    for (size_t m = 0; p->models && m < models.n; m++)
        if (!listed(o->exclude, models.names[m]))
            p->models[p->n_models++] = keep(p, models.names[m]);
    nrg_name_list_release(&models);
    int worst = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (!mask[i])
            continue;
        p->rows += (double)set->rows[i].multiplicity;
        for (int w = worst + 1; w < 3; w++)
            worst = !strcmp(set->rows[i].provenance, provenances[w]) ? w : worst;
    }
    p->provenance = provenances[worst];
    p->device = keep(p, set->rows[0].device);
    p->convention = keep(p, set->convention ? set->convention : "nrg");
    return p->sources && p->models && p->device && p->convention ? 0 : -ENOMEM;
}

static int fit_physical(struct nrg_profile *p, const struct nrg_dataset *set, const bool *mask,
                        const struct nrg_train_options *o, struct nrg_error *err)
{
    int rc = nrg_physical_fit(&p->physical, set, mask, o->features, err);
    return rc ? rc : nrg_physical_calibrate(&p->physical, set, mask, o->confidence, err);
}

int nrg_profile_train(struct nrg_profile *profile, const struct nrg_dataset *set,
                      const struct nrg_train_options *o, struct nrg_error *err)
{
    bool *mask = calloc(set->n + 1, sizeof *mask);
    *profile = (struct nrg_profile){.confidence = o->confidence};
    if (!mask)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < set->n; i++)
        mask[i] = !listed(o->exclude, set->rows[i].model);
    profile->is_layer = o->layer;
    int rc = o->layer
                 ? nrg_layer_fit(&profile->layer, set, mask, o->original_layers, o->confidence, err)
                 : fit_physical(profile, set, mask, o, err);
    if (!rc && keep_names(profile, set, mask, o))
        rc = nrg_fail(err, -ENOMEM, NULL, "out of memory");
    for (size_t g = 0; !rc && g < profile->physical.n; g++)
        if (!(profile->physical.groups[g].name = keep(profile, profile->physical.groups[g].name)))
            rc = nrg_fail(err, -ENOMEM, NULL, "out of memory");
    profile->fingerprint = fingerprint(set, mask);
    free(mask);
    if (rc)
        nrg_profile_release(profile);
    return rc;
}

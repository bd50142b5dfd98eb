/*
 * See width.h. Mean squares are means over models, not over rows: rows of one model err together.
 * Factors are divided out one after the other, so that what storage explains is not
 * counted again as a matter of batch.
 */
#include "predict/llm/width.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "predict/physical/conformal.h"

#define PRIOR_MODELS 2.0 /* that say what is usual */
#define OWN_MODEL    0.5 /* what a model counts in the spread of its own scores */
#define LONG_CONTEXT 1024
#define NO_MODEL     UINT32_MAX

const char *const nrg_llm_factor_names[NRG_LLM_FACTORS] = {"storage", "lengths", "batch"};
const char *const nrg_llm_level_names[NRG_LLM_FACTORS][NRG_LLM_LEVELS] = {
    {"dense_16bit", "dense_8bit", "dense_4bit", "experts_16bit", "experts_8bit", "experts_4bit"},
    {"short", "long", "prompts"},
    {"below_16", "below_64", "below_256", "above"},
};

struct nrg_llm_group nrg_llm_group(bool experts, double weight_bits, bool prompts, double context,
                                   double batch)
{
    int bits = weight_bits > 12 ? 0 : weight_bits > 6 ? 1 : 2;
    return (struct nrg_llm_group){{(uint8_t)(3 * experts + bits),
                                   prompts                  ? 2
                                   : context > LONG_CONTEXT ? 1
                                                            : 0,
                                   batch < 16    ? 0
                                   : batch < 64  ? 1
                                   : batch < 256 ? 2
                                                 : 3}};
}

struct fitting {
    const struct nrg_llm_miss *misses;
    size_t n;
    uint32_t models;
    double *square;      /* per miss: its squared error over what explains it so far */
    double *sum, *count; /* per model */
    double usual;
};

/* The mean over models of the mean square at a level; level -1: of all. */
static double mean_square(struct fitting *f, int factor, int level, uint32_t own, double prior,
                          double *models)
{
    double total = PRIOR_MODELS * prior, weight = PRIOR_MODELS;
    for (uint32_t m = 0; m < f->models; m++)
        f->sum[m] = f->count[m] = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct nrg_llm_miss *miss = &f->misses[i];
        if (level >= 0 && miss->group.level[factor] != level)
            continue;
        f->sum[miss->model] += f->square[i];
        f->count[miss->model]++;
    }
    *models = 0;
    for (uint32_t m = 0; m < f->models; m++) {
        double counts = !(f->count[m] > 0) ? 0 : m == own ? OWN_MODEL : 1;
        total += counts > 0 ? counts * f->sum[m] / f->count[m] : 0;
        weight += counts;
        *models += counts;
    }
    return total / weight;
}

static void find_spreads(struct nrg_llm_width *w, struct fitting *f, uint32_t own)
{
    double models;
    for (size_t i = 0; i < f->n; i++)
        f->square[i] = f->misses[i].error * f->misses[i].error;
    double all = mean_square(f, 0, -1, own, f->usual * f->usual, &models);
    w->spread = sqrt(all);
    for (size_t i = 0; i < f->n; i++)
        f->square[i] /= all;
    for (int a = 0; a < NRG_LLM_FACTORS; a++) {
        for (int l = 0; l < NRG_LLM_LEVELS; l++)
            w->times[a][l] = mean_square(f, a, l, own, 1, &w->models[a][l]);
        for (size_t i = 0; i < f->n; i++)
            f->square[i] /= w->times[a][f->misses[i].group.level[a]];
    }
}

/* 1 with many models, 2 with none. */
static double few(double models)
{
    return 1 + PRIOR_MODELS / (PRIOR_MODELS + models);
}

static double spread_of(const struct nrg_llm_width *w, struct nrg_llm_group g)
{
    double square = w->spread * w->spread, wider = 1;
    for (int a = 0; a < NRG_LLM_FACTORS; a++) {
        square *= w->times[a][g.level[a]];
        wider = fmax(wider, few(w->models[a][g.level[a]]));
    }
    return sqrt(square) * wider;
}

static int find_quantile(const struct nrg_residual *scores, size_t n, double usual,
                         double confidence, double *half)
{
    struct nrg_conformal c;
    int rc = nrg_conformal_init(&c, scores, n, usual);
    if (rc)
        return rc;
    *half = nrg_conformal_half(&c, -1, confidence);
    nrg_conformal_release(&c);
    return 0;
}

static int fit_with(struct nrg_llm_width *w, struct fitting *f, struct nrg_residual *scores,
                    double confidence)
{
    for (size_t i = 0; i < f->n; i++)
        scores[i] = (struct nrg_residual){f->misses[i].error, 1, 0, f->misses[i].model};
    int rc = find_quantile(scores, f->n, f->usual, confidence, &w->any);
    for (uint32_t m = 0; m < f->models; m++) {
        struct nrg_llm_width without;
        find_spreads(&without, f, m);
        for (size_t i = 0; i < f->n; i++)
            if (f->misses[i].model == m)
                scores[i].error /= spread_of(&without, f->misses[i].group);
    }
    find_spreads(w, f, NO_MODEL);
    return rc ? rc : find_quantile(scores, f->n, 1, confidence, &w->quantile);
}

int nrg_llm_width_fit(struct nrg_llm_width *w, const struct nrg_llm_miss *misses, size_t n,
                      double usual, double confidence)
{
    struct fitting f = {.misses = misses, .n = n, .usual = usual};
    *w = (struct nrg_llm_width){0};
    for (size_t i = 0; i < n; i++)
        f.models = misses[i].model >= f.models ? misses[i].model + 1 : f.models;
    struct nrg_residual *scores = nrg_calloc(n + 1, sizeof *scores);
    f.square = nrg_calloc(n + 1, sizeof *f.square);
    f.sum = nrg_calloc(f.models + 1, sizeof *f.sum);
    f.count = nrg_calloc(f.models + 1, sizeof *f.count);
    int rc = scores && f.square && f.sum && f.count ? fit_with(w, &f, scores, confidence) : -ENOMEM;
    free(scores);
    free(f.square);
    free(f.sum);
    free(f.count);
    return rc;
}

struct nrg_llm_width nrg_llm_width_even(double half)
{
    struct nrg_llm_width w = {.spread = half, .quantile = 1, .any = half, .least = half};
    for (int a = 0; a < NRG_LLM_FACTORS; a++)
        for (int l = 0; l < NRG_LLM_LEVELS; l++) {
            w.times[a][l] = 1;
            w.models[a][l] = 1e9; /* none is few */
        }
    return w;
}

double nrg_llm_width_half(const struct nrg_llm_width *w, struct nrg_llm_group group)
{
    return fmax(w->quantile * spread_of(w, group), w->least);
}

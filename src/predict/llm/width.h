/*
 * How far a prediction of a language model's energy may be off, given what is predicted: half
 * widths in ln, from the errors on models that were held out in turn.
 *
 * Errors differ by how weights are stored and whether there are experts, by lengths, and by batch:
 * three factors with few levels each. The spread of a load is that of all models times what each
 * of its levels adds to it. A level that few models have leans on the others (partial pooling), and
 * is wider: by a half with two models, twice with none. The half width is the spread times one
 * quantile of (error / spread) over all held-out rows, in which a row's own model counts half
 * (see predict/physical/conformal.h, whose constants these are).
 *
 * Ownership: plain values. Errors: 0 or -ENOMEM. Threads: pure.
 */
#ifndef NRG_PREDICT_LLM_WIDTH_H
#define NRG_PREDICT_LLM_WIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nrg_llm_factor { NRG_LLM_STORAGE, NRG_LLM_LENGTHS, NRG_LLM_BATCHES, NRG_LLM_FACTORS };
#define NRG_LLM_LEVELS 6
extern const char *const nrg_llm_factor_names[NRG_LLM_FACTORS];
/* NULL: the factor has fewer levels. */
extern const char *const nrg_llm_level_names[NRG_LLM_FACTORS][NRG_LLM_LEVELS];

struct nrg_llm_group {
    uint8_t level[NRG_LLM_FACTORS];
};
/* prompts: they are most of the work; context: tokens that an output token sees on average. */
struct nrg_llm_group nrg_llm_group(bool experts, double weight_bits, bool prompts, double context,
                                   double batch);

/* An error on a model that was held out. */
struct nrg_llm_miss {
    double error; /* |ln(measured / predicted)|, over how far outside of the others' range it is */
    struct nrg_llm_group group;
    uint32_t model;
};

struct nrg_llm_width {
    double spread;                                  /* root mean square of all models */
    double quantile;                                /* of errors over spreads */
    double any;                                     /* half width of all rows together, ln */
    double least;                                   /* no half width is below it, ln */
    double times[NRG_LLM_FACTORS][NRG_LLM_LEVELS];  /* what a level does to the mean square */
    double models[NRG_LLM_FACTORS][NRG_LLM_LEVELS]; /* that were measured at it */
};

int nrg_llm_width_fit(struct nrg_llm_width *width, const struct nrg_llm_miss *misses, size_t n,
                      double usual, double confidence);
/* The same half width for everything. */
struct nrg_llm_width nrg_llm_width_even(double half);
double nrg_llm_width_half(const struct nrg_llm_width *width, struct nrg_llm_group group);

#endif

/*
 * What the terms of a serving step (work.h) cost on a device: seconds and joules of each, and the
 * power that a GPU draws for every second whatever it does. One law per kind of GPU, fitted from
 * rows of a data set (docs/llm.md):
 *
 *     time of a GPU    = sum of seconds[i] x terms[i] / GPUs
 *     energy           = static_w x GPUs x time + sum of joules[i] x terms[i]
 *
 * None is negative. Both are fitted by least squares of ln(measured / predicted). Rows without a
 * time take part in the energy alone; without any, launches get a price in place of the static
 * power. Intervals come from the errors on models that were held out in turn (width.h).
 *
 * Nothing of a row that the mask leaves out is looked at. Ownership: plain values. Errors: 0, or
 * -errno with err. Threads: pure.
 */
#ifndef NRG_PREDICT_LLM_LAW_H
#define NRG_PREDICT_LLM_LAW_H

#include "predict/evaluate.h"
#include "predict/llm/width.h"
#include "predict/llm/work.h"

enum nrg_llm_limit {
    NRG_LLM_BATCH,
    NRG_LLM_GPUS,
    NRG_LLM_CONTEXT,
    NRG_LLM_TOKEN_MACS,
    NRG_LLM_LIMITS
};
extern const char *const nrg_llm_limit_names[NRG_LLM_LIMITS];
/* The columns of a data set that hold the terms, per output token. */
extern const enum nrg_feature nrg_llm_term_columns[NRG_LLM_COUNTED];

struct nrg_llm_law {
    double joules[NRG_LLM_TERMS], seconds[NRG_LLM_TERMS];
    double static_w; /* per GPU; 0: no row had a time */
    size_t rows, timed_rows, models;
    unsigned seen;              /* bit per term: some row had it */
    struct nrg_llm_width width; /* half widths of the energy */
    double expected_error;      /* mean |predicted - measured| / measured on held-out models */
    double time_error, time_q;  /* the same of the time; NAN: no times */
    double carried_ln;          /* of a law carried over to another GPU; joins the half width */
    size_t recalibrated_rows;   /* by recalibrate.h; 0: it was not */
    double energy_factor, time_factor; /* that it found */
    struct nrg_range limits[NRG_LLM_LIMITS];
};

/* -ENODATA: no row of a language model that has all of its terms. */
int nrg_llm_law_fit(struct nrg_llm_law *law, const struct nrg_dataset *set, const bool *mask,
                    double confidence, struct nrg_error *err);

/* What is predicted of an output token: terms per token, GPUs, and sizes to be held against limits.
 */
struct nrg_llm_point {
    double terms[NRG_LLM_TERMS];
    double gpus, weight_bits;
    double limits[NRG_LLM_LIMITS];
    bool guessed;
};

struct nrg_llm_estimate {
    double energy_j, low_j, high_j;         /* per output token */
    double time_s, time_low_s, time_high_s; /* NAN: no times were measured */
    double prompt_j; /* of it, for prompts; with their share of static power */
    double static_j;
    double term_j[NRG_LLM_TERMS];  /* with their share of static power; their sum is the energy */
    double beyond[NRG_LLM_LIMITS]; /* how far outside of what was measured, ln */
    double farther;                /* what that makes of the half width: a factor */
    bool stand_in;                 /* experts without any measured ones: priced as other weights */
    double half;                   /* half width, ln */
};
void nrg_llm_law_estimate(const struct nrg_llm_law *law, const struct nrg_llm_point *point,
                          struct nrg_llm_estimate *out);

/* A row of a data set as a point; false: it lacks a term. */
bool nrg_llm_row_point(const struct nrg_dataset *set, size_t row, struct nrg_llm_point *point);

/* What its interval depends on. */
struct nrg_llm_group nrg_llm_point_group(const struct nrg_llm_point *point);

/* True when the data set holds rows of language models. */
bool nrg_llm_has_rows(const struct nrg_dataset *set);

/* As a predictor for nrg_evaluate. */
struct nrg_gpu;
struct nrg_llm_state {
    double confidence;
    struct nrg_llm_law law;
    const char *device;        /* of a law that was trained before: it is not trained again */
    const struct nrg_gpu *gpu; /* that law is carried over to it; NULL: not */
};
struct nrg_predictor nrg_llm_predictor(struct nrg_llm_state *state);

/* As a profile keeps it. */
json_t *nrg_llm_law_json(const struct nrg_llm_law *law);
int nrg_llm_law_parse(struct nrg_llm_law *law, const json_t *o, const char *name,
                      struct nrg_error *err);

#endif

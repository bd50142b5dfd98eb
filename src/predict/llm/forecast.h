/*
 * Joules and seconds of a language model on a device before anything runs: counts from its config
 * (work.h), prices from a profile. Prompt and output are separate; every energy has an interval.
 *
 * A profile of servers (nrg train on ML.ENERGY's rows) has a law of its own. One of operators
 * (nrg calibrate, nrg train) has prices of matrix products, from which a law is made: it knows no
 * times, and its interval is at least from half to twice.
 *
 * Ownership: plain values. Errors: 0, or -errno with err. Threads: pure.
 */
#ifndef NRG_PREDICT_LLM_FORECAST_H
#define NRG_PREDICT_LLM_FORECAST_H

#include "predict/llm/memory.h"
#include "predict/llm/transfer.h"
#include "predict/profile.h"

#define NRG_LLM_REASONS 8

struct nrg_llm_amount {
    double value, low, high; /* NAN: has no meaning, or is not known */
};

struct nrg_llm_forecast {
    struct nrg_llm_shape shape;
    struct nrg_llm_work work;
    struct nrg_llm_estimate estimate; /* of an output token with its share of the prompt */
    struct nrg_llm_amount request_j, input_token_j, output_token_j, tokens_per_j;
    struct nrg_llm_amount step_s, request_s;
    double tokens_per_s, power_w; /* of all GPUs; NAN: no times were measured */
    double memory_bytes;          /* of one GPU; NAN: not known */
    int fits;                     /* 1, 0, -1 not known */
    bool priced;                  /* energies and times are there: it fits, or was forced */
    struct nrg_llm_fit fit;       /* where it does not fit: what would */
    char reasons[NRG_LLM_REASONS][160];
    size_t n_reasons;
};

struct nrg_llm_forecast_options {
    double memory_bytes;       /* of one GPU, 0: as the profile says */
    bool force;                /* prices also what does not fit */
    const struct nrg_gpu *gpu; /* another GPU than the profile's; NULL: that */
};

/* Where the load does not fit, there are no energies and times (NAN) unless forced. */
int nrg_llm_forecast(struct nrg_llm_forecast *out, const struct nrg_llm_config *config,
                     const struct nrg_llm_load *load, const struct nrg_profile *profile,
                     const struct nrg_llm_forecast_options *options, struct nrg_error *err);

/* A law from prices of operators. -ENODATA: the profile can't predict before a run. */
int nrg_llm_law_of(struct nrg_llm_law *law, const struct nrg_profile *profile,
                   struct nrg_error *err);

#endif

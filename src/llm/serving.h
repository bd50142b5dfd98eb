/*
 * Joules per token of a language model's server, from a recording with its counts (nrg run --llm):
 * what fit.h finds, for each domain and for all of them together, and the plain ratios.
 *
 * Steady state: the time since the first token that was counted, without its first tenth, or its
 * first 10 s where that is less: the warm-up. Idle time after that belongs to it.
 *
 * Make, release. 0 or -errno with err. The recording must outlive it. One thread at a time.
 */
#ifndef NRG_LLM_SERVING_H
#define NRG_LLM_SERVING_H

#include "energy/summary.h"
#include "llm/fit.h"

struct nrg_serving_domain {
    char name[48];
    double late_s;   /* how late its sensor is against the server's counts */
    double energy_j; /* of the steady state */
    double low_j, high_j;
    double least, most; /* the sensor's own band: factors of every figure */
    struct nrg_serving_fit fit;
};

struct nrg_serving {
    bool asked;      /* nrg run --llm was given */
    char server[64]; /* "vLLM"; "": none was understood */
    const char *url;
    const char *why;                  /* there are no figures at all: why; else NULL */
    bool estimated;                   /* the energy is */
    double warm_up_s, begin_s, end_s; /* of the steady state, since the run's begin */
    double prompt_tokens, cached_tokens, output_tokens, requests; /* in it; NAN: not counted */
    double running; /* mean number of sequences while there are any; NAN */
    double lump_s;  /* tokens are counted this late; 0: as they are made */
    double slot_s, row_s;
    size_t group;
    struct nrg_serving_domain total, *domains;
    size_t n_domains;
    /* All joules of the steady state over what was counted in it (ratios.c); NAN: not known. */
    struct nrg_serving_value per_output, per_request, output_per_j;
};

/* How long a row of the regression is where the slowest sensor is updated so often. */
double nrg_serving_row_s(int64_t update_ns);

int nrg_serving_make(struct nrg_serving *serving, struct nrg_recording *recording,
                     const struct nrg_summary *run, struct nrg_error *err);
void nrg_serving_release(struct nrg_serving *serving);

#endif

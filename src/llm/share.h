/*
 * The joules of each request: all requests, the idle machine and what belongs to none of them are
 * together exactly what the machine used.
 *
 * The law of prices (fit.h) says what each request would have cost in each slot of time; the slot's
 * energy above idle is divided in that proportion. What the slot used beyond three standard
 * deviations of what the law leaves is no request's: it is unattributed, as is energy above idle
 * while no request runs. Idle power is the baseline's (of processors whose energy is estimated: the
 * estimate's) or the law's, whichever is known better; without either it is not known, and its
 * energy is in the others.
 *
 * A request that is not understood is known by its time: the law has a price for a second of such,
 * and what it leaves in their slots is theirs as far as it is no noise (pots.h).
 *
 * Where no law can be fitted (too little time, or counts that never change), the requests that run
 * share a slot equally. Their interval then goes from what they used while they were alone to all
 * that was used while they ran.
 *
 * Intervals have 95 % confidence, and contain the sensors' own error.
 *
 * Make, release. 0 or -errno with err. One thread at a time.
 */
#ifndef NRG_LLM_SHARE_H
#define NRG_LLM_SHARE_H

#include "energy/summary.h"
#include "llm/fit.h"
#include "llm/requests.h"

struct nrg_llm_energy {
    double energy_j, low_j, high_j;
};

struct nrg_llm_share {
    struct nrg_relayed_requests requests;
    struct nrg_llm_energy *energies; /* per request */
    struct nrg_summary summary;      /* of the run */
    bool has_summary;
    struct nrg_serving_fit fit; /* fit.why: there is no law */
    double slot_s;
    double requests_j, idle_j, unattributed_j, total_j; /* idle_j NAN: not known */
    double idle_w, idle_doubt_w;
    const char *idle_method;   /* "baseline", "estimate", "regression", NULL */
    size_t estimated, unknown; /* requests whose output is estimated; that are not understood */
    double unknown_j;          /* of these; part of requests_j */
};

/* -ENODATA: the recording has no requests, or no energy. */
int nrg_llm_share_make(struct nrg_llm_share *share, struct nrg_recording *recording,
                       struct nrg_error *err);
void nrg_llm_share_release(struct nrg_llm_share *share);

#endif

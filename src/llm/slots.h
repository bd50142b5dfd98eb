/*
 * The run of a recording in slots of equal length, with the joules of each and what the requests
 * did in it. The tokens of a streamed answer are where its text came, between one piece and the one
 * before; those of its prompt between its begin and its first text. Of an answer that came as a
 * whole, output is made as quickly as that of streams is at the same time, which is slower while
 * prompts are read; without streams both are spread over all of its time. A request that is not
 * understood has its time alone, apart from that of the others.
 *
 * Make, release; the requests must outlive it. 0 or -errno. One thread at a time.
 */
#ifndef NRG_LLM_SLOTS_H
#define NRG_LLM_SLOTS_H

#include "energy/frame.h"
#include "energy/summary.h"
#include "llm/fit.h"
#include "llm/prompts.h"
#include "llm/requests.h"

#define NRG_LLM_GROUP 4 /* slots to a row of the regression */

struct nrg_llm_slots {
    const struct nrg_relayed_requests *requests;
    int64_t begin_ns, end_ns, slot_ns;
    size_t n;
    double read_ns;                 /* that a token of a prompt takes at least; 0: not known */
    struct nrg_llm_prompt *prompts; /* of the requests */
    struct nrg_serving_slot *items;
    bool *known;       /* readings cover all of it */
    double *pace;      /* tokens that a stream gets per second, or 1 */
    double *running_s; /* in which at least one request runs, understood or not */
    double *domain_j;
    bool *domain_known;
};

/* What one request did in one slot. */
struct nrg_llm_part {
    double prompt, output, sequence_s;
    double other_s; /* of a request that is not understood */
};

/* Slots of the summary's run; all that is measured in no request is theirs, too. */
int nrg_llm_slots_make(struct nrg_llm_slots *slots, struct nrg_frame *frame,
                       const struct nrg_summary *summary,
                       const struct nrg_relayed_requests *requests);
/* Slots of a run without requests; none where it is shorter than one. */
int nrg_llm_slots_make_idle(struct nrg_llm_slots *slots, struct nrg_frame *frame,
                            const struct nrg_summary *summary, const struct nrg_run *run,
                            int64_t slot_ns);
void nrg_llm_slots_release(struct nrg_llm_slots *slots);

/* The joules of each slot anew, from readings that come late by so much, each domain's by its own
 * time, in the summary's order; NULL: as they are. */
void nrg_llm_slots_energy(struct nrg_llm_slots *slots, struct nrg_frame *frame,
                          const struct nrg_summary *summary, const double *late_s);
/* Those of one domain, into domain_j and domain_known. */
void nrg_llm_slots_domain(struct nrg_llm_slots *slots, struct nrg_frame *frame,
                          const struct nrg_domain *domain, double late_s);

/* The parts of a request, from slot *first on, into an array of slots->n. Returns how many. */
size_t nrg_llm_slots_parts(const struct nrg_llm_slots *slots, size_t request,
                           struct nrg_llm_part *parts, size_t *first);

#endif

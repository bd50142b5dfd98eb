/*
 * What the requests of a slot of time share: the energy above idle, what the law says of it, and
 * whose the difference is.
 *
 * What a request that is not understood draws is its own affair: the law has the mean of all of
 * them, and each differs from it by a standard deviation, the spread. It is that mean, since
 * nothing says that two of them do the same, or more where the law leaves so much more in their
 * slots than in others. So what the law leaves of a slot is divided as the variances are: those of
 * requests that are not understood, and the noise of the slot. The latter part is all requests'.
 *
 * Pure.
 */
#ifndef NRG_LLM_POTS_H
#define NRG_LLM_POTS_H

#include <stdbool.h>
#include <stddef.h>

struct nrg_llm_pot {
    double length_s;
    double active_j;  /* energy above idle */
    double law_j;     /* what the law says of all requests */
    double scatter_j; /* noise: a standard deviation */
    double given_j;   /* what all requests get in proportion to the law */
    /* Of requests that are not understood: */
    double other_law_j;       /* what the law says of them */
    double other_s, other_s2; /* their seconds, and the sum of the square of each one's */
    double other_j;           /* what they get beyond their part of given_j */
    double gain;              /* part of what the law leaves that other_j is */
};

struct nrg_llm_spread {
    double w;          /* standard deviation of the power of requests that are not understood */
    double scatter_by; /* noise of slots without these, over that of all slots: at most 1 */
};

/* Neighbours exchange what the one has beyond the law and the other lacks. */
void nrg_llm_pots_exchange(struct nrg_llm_pot *pots, size_t n);
/* `requests`: how many are not understood, each by its seconds; price_w: of a second of such by the
 * law, NAN: it has none. */
struct nrg_llm_spread nrg_llm_pots_spread(const struct nrg_llm_pot *pots, size_t n, double requests,
                                          double price_w);
/* Sets gain, other_j and given_j; what is far beyond the law is nobody's. */
void nrg_llm_pots_give(struct nrg_llm_pot *pots, size_t n, double spread_w);

#endif

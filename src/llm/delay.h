/*
 * By how much a sensor's energy follows the counts of a server: averaging, updates, steps that are
 * counted when they end. Of delays between -0.4 and 2.4 s it is the one at which slots follow their
 * own law best, as a correlation: a row of the regression (fit.h) hardly shows a delay that is much
 * shorter than itself, and explains that one by itself; a slot shows it.
 *
 * 0 or -ENOMEM. Keeps nothing.
 */
#ifndef NRG_LLM_DELAY_H
#define NRG_LLM_DELAY_H

#include "llm/fit.h"

struct nrg_delay_search {
    const struct nrg_serving_slot *slots; /* amounts; their energy is not used */
    size_t n;
    void *arg;
    /* Energy of each slot, taken so much later; NAN: not known. */
    void (*energies)(void *arg, double late_s, double *energy_j);
    int (*fit)(void *arg, const double *energy_j, struct nrg_serving_fit *fit);
};

/* energy_j has room for n; late_s becomes 0 where nothing can be fitted. */
int nrg_delay_find(const struct nrg_delay_search *search, double *energy_j, double *late_s);

#endif

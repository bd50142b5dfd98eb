/* Between the files of src/compare: what facts.c finds out about a run for side.c. */
#ifndef NRG_COMPARE_INTERNAL_H
#define NRG_COMPARE_INTERNAL_H

#include "compare/side.h"

struct nrg_attribution;

/* A copy that lives as long as the side; "" for NULL, and when out of memory. */
const char *nrg_compare_keep(struct nrg_compare_side *side, const char *text);

/* Fills the command and all facts but NRG_FACT_WORK, which needs an attribution. */
void nrg_compare_facts(struct nrg_compare_side *side, struct nrg_compare_run *run,
                       const struct nrg_recording *recording, const struct nrg_summary *summary);
void nrg_compare_work(struct nrg_compare_side *side, struct nrg_compare_run *run,
                      const struct nrg_attribution *attribution);
void nrg_compare_clocks(struct nrg_compare_run *run, struct nrg_recording *recording,
                        const struct nrg_summary *summary);

#endif

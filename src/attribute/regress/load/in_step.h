/*
 * Processes without spans beside those with spans: workers that load data, and processes that are
 * not the workload's. Their CPU time is known per cell, and inside of a cell it is spread evenly.
 * But a worker often runs when the program does something: after a batch was fetched, or while a
 * query waits for its answer. Spread evenly, its watts are taken for those of the spans beside it.
 * So where cells tell when they run (when.h), their CPU time goes there inside of each cell.
 *
 * 0 or -errno. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_LOAD_IN_STEP_H
#define NRG_ATTRIBUTE_REGRESS_LOAD_IN_STEP_H

#include "attribute/internal.h"
#include "attribute/regress/load/when.h"
#include "attribute/regress/rows/slicer.h"

enum { NRG_IN_STEP_UNTRACKED, NRG_IN_STEP_OTHERS, NRG_IN_STEP_KINDS };

struct nrg_in_step {
    struct nrg_arena memory;
    struct nrg_when when[NRG_IN_STEP_KINDS];
    /* Per class of spans: how long it is open, and CPU seconds. */
    double *open_s, *work_s;
};

/* Writes the log anew where there is something to be moved. */
int nrg_in_step_place(struct nrg_in_step *in_step, const struct nrg_engine *engine,
                      struct nrg_slicer *slicer);
/* Adds what is not known of when they ran to the intervals of classes. */
void nrg_in_step_widen(const struct nrg_in_step *in_step, const struct nrg_engine *engine,
                       struct nrg_regress_result *result);
void nrg_in_step_release(struct nrg_in_step *in_step);

#endif

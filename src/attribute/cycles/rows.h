/* Rows of an attribution for executions of a layer log. For window.c; 0 or -ENOMEM. */
#ifndef NRG_ATTRIBUTE_CYCLES_ROWS_H
#define NRG_ATTRIBUTE_CYCLES_ROWS_H

#include "attribute/cycles/window.h"
#include "record/read/layer_runs.h"

/*
 * Sets the row of each execution: the layer's of that name inside its cycle. Where the attribution
 * has the layer of all cycles in one row (windows that overlap can't nest in a cycle), rows are
 * added below it, without energy: what overlaps can't be told apart. runs[i] is executions[i].
 */
int nrg_cycle_rows_find(struct nrg_cycles *cycles, struct nrg_attribution *attribution,
                        const struct nrg_layer_run *runs);

#endif

/*
 * Cells in which all CPUs were busy (full.c).
 *
 * Fills cpus, full and idle_told_s2 of the cells, and busy_s: their busy time, with all of the
 * CPUs' in those. idle_s: room for as many. Nothing is kept, nothing fails.
 */
#ifndef NRG_ATTRIBUTE_CELLS_FULL_H
#define NRG_ATTRIBUTE_CELLS_FULL_H

#include "attribute/cells/cells.h"

void nrg_cells_find_full(struct nrg_cells *cells, struct nrg_frame *frame,
                         const struct nrg_others_clock *clock, double *busy_s, double *idle_s);

#endif

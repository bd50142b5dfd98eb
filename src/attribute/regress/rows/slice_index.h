/*
 * Where in a queue of slices a moment is, so that a walker that needs none of the slices up to
 * there does not look at each of them: a sensor that shows instants sees few of the slices between
 * two readings, and some passes have few of the rows. Of each block of slices it is known when the
 * first one begins, and which of those before are still open then.
 *
 * Made once, of slices that are held; where some were dropped or came later it is not used. The
 * queue owns it. 0 or -ENOMEM. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_ROWS_SLICE_INDEX_H
#define NRG_ATTRIBUTE_REGRESS_ROWS_SLICE_INDEX_H

#include "attribute/regress/rows/rows.h"

#define NRG_SLICE_BLOCK 16 /* slices */

int nrg_slice_index_make(struct nrg_slices *slices);
/* Passes by the slices that end at t_ns or before, as far as whole blocks do. Those that are open
 * and end later stay open. */
int nrg_walker_skip(struct nrg_walker *walker, const struct nrg_slices *slices, int64_t t_ns);
/* Frees the slices, and what was made of them. */
void nrg_slices_release(struct nrg_slices *slices);

#endif

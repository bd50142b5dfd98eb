/*
 * The readings that a regression explains, where these are not the sensor's as they are: without
 * idle power (where it is known) and without what others used.
 *
 * The timeline is the arena's; part->taken_off, in the engine's memory, says what it lacks. NULL:
 * no memory. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_ROWS_OWN_TIMELINE_H
#define NRG_ATTRIBUTE_REGRESS_ROWS_OWN_TIMELINE_H

#include "attribute/internal.h"

bool nrg_regress_needs_own(const struct nrg_engine *engine, const struct nrg_part *part);
const struct nrg_timeline *nrg_regress_own(struct nrg_engine *engine, struct nrg_part *part,
                                           struct nrg_arena *memory);

#endif

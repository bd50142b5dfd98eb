/*
 * Stretches of a run whose CPU times are known less well than elsewhere, because threads begin or
 * end there: what a regression does with readings of them.
 *
 * Arrays are the arena's. 0 or -ENOMEM.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_ROWS_EDGES_H
#define NRG_ATTRIBUTE_REGRESS_ROWS_EDGES_H

#include "base/arena.h"

struct nrg_engine;
struct nrg_part;
struct nrg_regress_options;

int nrg_regress_know_edges(const struct nrg_engine *engine, const struct nrg_part *part,
                           struct nrg_regress_options *options, struct nrg_arena *memory);

#endif

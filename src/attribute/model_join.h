/*
 * Rows of an attribution joined with what the model's graph says of them: MACs, FLOPs and bytes
 * per call, so that joules become pJ per MAC and J per byte.
 *
 *   module     by its qualified name
 *   operator   by the module around it and its kind, or by its own name where the format has one
 *   layer      by its name in the engine or the summary; its type comes along
 *
 * What runs backward has no count in a graph of the forward pass and stays unknown. A module or
 * operator of which the graph does not know everything stays unknown too.
 *
 * The analysis must outlive the rows' last use: they point into it. Without memory, rows stay
 * unknown. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_MODEL_JOIN_H
#define NRG_ATTRIBUTE_MODEL_JOIN_H

#include "attribute/attribution.h"
#include "graph/analysis.h"

struct nrg_join_result {
    size_t modules, operators, layers; /* rows that were joined */
};

/*
 * Fills macs, flops and bytes of rows that have none yet, and details of layers that have none.
 * `backward_in_modules`: rows of modules hold the energy of forward and backward together, so
 * that a count of the forward pass would mislead.
 */
struct nrg_join_result nrg_attribution_join(struct nrg_attribution *attribution,
                                            const struct nrg_analysis *model,
                                            bool backward_in_modules);

#endif

/*
 * From operators to the nodes of the module tree: sums of energy, and intervals that are coherent
 * (physical/estimate.h): each node's lies within those of the nodes below it and of its own work,
 * added end to end.
 *
 * Ownership: the caller's. Errors: 0 or -ENOMEM. Threads: nothing is shared.
 */
#ifndef NRG_PREDICT_NODE_SUMS_H
#define NRG_PREDICT_NODE_SUMS_H

#include "predict/graph_work.h"
#include "predict/prediction.h"

/* One operator of the graph. work.times is 0 where it does not run. */
struct nrg_placed {
    struct nrg_work work;
    struct nrg_estimate estimate; /* of one execution; zeros where it is part of the rest */
    uint32_t node;
};

/* Fills out->nodes; `placed` has one item per operator of out->operators, which are filled. */
int nrg_sum_nodes(struct nrg_prediction *out, const struct nrg_physical *model,
                  const struct nrg_module_tree *tree, const struct nrg_placed *placed);

#endif

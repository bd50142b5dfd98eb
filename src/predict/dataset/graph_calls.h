/*
 * The calls of modules in one pass of a graph. An inlined graph repeats a module's operators once
 * per call, in order. Split into as many equal runs as there are calls, each run is one call. Where
 * the runs do not have the same kinds of operators, calls can't be separated, and one entry stands
 * for all of them. Calls are in the order of the tree: a module's calls before the calls they make.
 *
 * Ownership: make, use while graph and tree live, release. Errors: -ENOMEM. Threads: nothing is
 * shared.
 */
#ifndef NRG_PREDICT_DATASET_GRAPH_CALLS_H
#define NRG_PREDICT_DATASET_GRAPH_CALLS_H

#include "graph/module_tree.h"

#define NRG_NO_CALL UINT32_MAX

struct nrg_call {
    uint32_t node;          /* of the module tree */
    uint32_t together;      /* calls that it stands for: 1 where they can be separated */
    uint32_t parent;        /* the call that makes it; NRG_NO_CALL: the root's */
    size_t first_op, n_ops; /* in nrg_calls.ops, with those of the calls that it makes */
};

struct nrg_calls {
    struct nrg_call *calls;
    size_t n, cap;
    uint32_t *ops; /* operators of the reduced graph, ascending within a call */
    size_t n_ops, cap_ops;
    uint32_t *first_of, *count_of; /* per node of the tree: its calls */
    uint32_t *node_of_op;          /* per operator */
};

/*
 * `told`: how often each module of the tree was called, as the measuring program counted; 0 or
 * NULL: as the graph says. 0 or -ENOMEM.
 */
int nrg_calls_make(struct nrg_calls *out, const struct nrg_reduced *reduced,
                   const struct nrg_module_tree *tree, const uint32_t *told);
void nrg_calls_release(struct nrg_calls *calls);

bool nrg_call_has(const struct nrg_calls *calls, size_t call, uint32_t op);

#endif

/*
 * The calls of modules in one pass of a graph. An inlined graph repeats a module's operators once
 * per call, in order; cut into as many equal stretches, each is one call. Where the stretches are
 * not of the same kinds of operators, calls can't be told apart, and one stands for all together.
 *
 * Make, use while graph and tree live, release. Calls are in the order of the tree: a module's
 * before those of what it calls.
 */
#ifndef NRG_PREDICT_GRAPH_CALLS_H
#define NRG_PREDICT_GRAPH_CALLS_H

#include "graph/module_tree.h"

#define NRG_NO_CALL UINT32_MAX

struct nrg_call {
    uint32_t node;          /* of the module tree */
    uint32_t number;        /* which call of the module, from 0 */
    uint32_t together;      /* calls that it stands for: 1 where they can be told apart */
    uint32_t parent;        /* the call that makes it; NRG_NO_CALL: the root's */
    size_t first_op, n_ops; /* in nrg_calls.ops: those of all that it calls, too */
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
 * `told`: how often each module of the tree was called, by somebody who saw it; 0 or NULL: as the
 * graph tells. 0 or -ENOMEM.
 */
int nrg_calls_make(struct nrg_calls *out, const struct nrg_reduced *reduced,
                   const struct nrg_module_tree *tree, const uint32_t *told);
void nrg_calls_release(struct nrg_calls *calls);

bool nrg_call_has(const struct nrg_calls *calls, size_t call, uint32_t op);

#endif

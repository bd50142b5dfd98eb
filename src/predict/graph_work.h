/*
 * The work of a graph's operators in the terms of data sets: executions, MACs, bytes, and what an
 * operator causes in its module.
 *
 * Ownership: texts belong to the graph. Errors: false when the cost is unknown. Threads: pure.
 */
#ifndef NRG_PREDICT_GRAPH_WORK_H
#define NRG_PREDICT_GRAPH_WORK_H

#include "base/map.h"
#include "graph/module_tree.h"
#include "predict/physical/fit.h"

struct nrg_work {
    double x[NRG_OPERATOR_UNITS];    /* 1, MACs, bytes */
    double beside[NRG_MODULE_UNITS]; /* 1 operator, or rest, copied and score bytes */
    const char *kind;                /* as it is looked up in the profile */
    bool is_rest, is_known;
    double times; /* executions */
};

/*
 * The work of one operator. `convention`: whose counts rest bytes are. False: its cost or how often
 * it runs is unknown.
 */
bool nrg_work_of(const struct nrg_reduced *reduced, const struct nrg_operator *op,
                 const struct nrg_physical *model, const char *convention, struct nrg_work *work);

/*
 * The same as features of one execution, for a data set's row of that operator: sets `kind`, and
 * the features that are known; the others keep their value. False: its cost is unknown.
 */
bool nrg_work_features(const struct nrg_reduced *reduced, const struct nrg_operator *op,
                       const char **kind, double features[NRG_FEATURES]);

/* The node of the tree that an operator is in, the root when none; names: nrg_module_tree_index. */
uint32_t nrg_work_node(const struct nrg_map *names, const struct nrg_operator *op);

#endif

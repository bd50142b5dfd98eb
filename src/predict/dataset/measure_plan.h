/*
 * What nrg.torch.measure wrote into a recording beside the spans (the note "measure"): which nodes
 * of the model each measurement stands for, because equal nodes were measured once.
 *
 *   {"schema": "nrg.measure/1", "model": "Net", "calls": {"fc1": 1},
 *    "nodes": [{"id": 0, "kind": "module", "places": [["fc1", 0], ["fc2", 0]]},
 *              {"id": 1, "kind": "operator", "name": "aten::addmm", "places": [["fc1", 0, 3]]}]}
 *
 * A place is a module, the number of its call in one pass, and for operators their position in the
 * order in which that call dispatched them. The rounds of node 7 are spans inside of a phase
 * "measure 7". Their counter "calls" is the number of calls of the node in a round. A counter
 * "interrupted" means that the last round has more calls than were counted.
 *
 * Ownership: read, match with a graph, add measurements, apply to a join, release. Errors: 0, or
 * -errno with err; nothing in the note is trusted. Threads: one at a time.
 */
#ifndef NRG_PREDICT_DATASET_MEASURE_PLAN_H
#define NRG_PREDICT_DATASET_MEASURE_PLAN_H

#include <jansson.h>

#include "predict/dataset/join.h"

#define NRG_PLAN_NOTE  "note.measure"
#define NRG_PLAN_PHASE "measure " /* and the node's id */

struct nrg_plan_place {
    const char *path;
    uint32_t call, order;
    uint32_t node; /* of the plan */
};

struct nrg_plan_node {
    int64_t id;
    const char *operator_name; /* NULL: a module */
    struct nrg_seen seen;
};

struct nrg_plan {
    json_t *document; /* owns the texts */
    const char *model;
    struct nrg_plan_node *nodes;
    size_t n, cap;
    struct nrg_plan_place *places;
    size_t n_places, cap_places;
};

/* 0, or -errno with err; `where` is the recording. */
int nrg_plan_read(struct nrg_plan *plan, const char *text, const char *where,
                  struct nrg_error *err);
void nrg_plan_release(struct nrg_plan *plan);

/* The node that a phase measured; NULL: none. */
struct nrg_plan_node *nrg_plan_find(const struct nrg_plan *plan, const char *phase);
/* How often each module of the tree is called in one pass, one per node; 0: unknown. */
void nrg_plan_calls(const struct nrg_plan *plan, const struct nrg_module_tree *tree,
                    uint32_t *told);
/* Gives the measurements to the join; those without a place in it are noted. 0 or -ENOMEM. */
int nrg_plan_apply(const struct nrg_plan *plan, struct nrg_join *join);

#endif

/*
 * The tree of modules with what each costs, itself and with all below it. It is built from the
 * file's modules, the scopes of the operators and the paths of parameters. Nodes are in
 * order of a walk from the root (a parent before its children, siblings in the order in which the
 * model lists or runs them), so that a table is one loop. The tree owns its nodes and points into
 * the model and the reduction, which must outlive it. Not thread-safe.
 */
#ifndef NRG_GRAPH_MODULE_TREE_H
#define NRG_GRAPH_MODULE_TREE_H

#include "base/map.h"
#include "graph/reduce.h"

struct nrg_tree_node {
    const char *name;       /* qualified, "" the root */
    const char *local;      /* last part of it */
    const char *class_name; /* last part, "" unknown */
    uint32_t parent;        /* the root's own: 0 */
    uint32_t depth;
    uint32_t size; /* nodes of the subtree, itself included: the next sibling is at + size */
    size_t calls;  /* see calls_known */
    struct nrg_cost cost, self;          /* sums of what is known; `params` is not used here */
    size_t operators, unknown_operators; /* inclusive */
    int64_t params, params_self, trainable, buffers, param_bytes; /* each storage once */
    size_t unknown_params;                                        /* inclusive */
    size_t unsized_params;         /* whose bytes are unknown, buffers too; inclusive */
    const struct nrg_type *output; /* of its last call, NULL unknown */
    uint64_t signature;            /* equal: the same structure, sizes and costs */
    uint32_t repeats;              /* with that many siblings from here on alike, 1: alone;
                                      0: one of those that an earlier sibling stands for */
};

struct nrg_module_tree {
    struct nrg_arena arena;
    struct nrg_tree_node *nodes;
    size_t n;
    size_t n_params;  /* listed, tied ones included */
    bool calls_known; /* the graph has scopes or calls: a module with 0 calls did not run */
    bool calls_told;  /* by the file; otherwise the most that the operators allow */
};

/* `reduced` NULL: parameters only; `params` as for nrg_reduce. 0 or -ENOMEM. */
int nrg_module_tree_make(struct nrg_module_tree *tree, const struct nrg_model *model,
                         const struct nrg_reduced *reduced, const struct nrg_model *params);
void nrg_module_tree_release(struct nrg_module_tree *tree);

struct nrg_totals {
    struct nrg_cost cost; /* sums of what is known */
    size_t operators, unknown_operators;
    size_t unknown_bytes; /* operators whose traffic is unknown */
    int64_t params, trainable, buffers, param_bytes;
    size_t n_params, unknown_params; /* listed; of them without a shape */
    size_t unsized_params;           /* whose bytes are unknown, buffers too */
    int64_t peak_activation_bytes;   /* largest sum of activations that live at once */
    size_t unknown_activations;      /* not in that sum */
};
/* Of the whole tree; `reduced` as it was made from. 0 or -ENOMEM. */
int nrg_totals_of(const struct nrg_module_tree *tree, const struct nrg_reduced *reduced,
                  struct nrg_totals *out);

/* Numbers of the nodes by name, into an empty map. 0 or -ENOMEM. */
int nrg_module_tree_index(const struct nrg_module_tree *tree, struct nrg_map *numbers);

#endif

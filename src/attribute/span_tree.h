/*
 * Places in the tree of spans: a node per (parent, name, number), found by hash. Node 0 is the
 * top, which is no span. Parents have smaller numbers than their children.
 *
 * Deeper than NRG_TREE_DEPTH, or beyond NRG_TREE_NODES, a span is counted to the place it is in
 * (`folded`): endless recursion and endless names end up in a row that says less, not in memory
 * without bound. Init, release. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_SPAN_TREE_H
#define NRG_ATTRIBUTE_SPAN_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

#define NRG_TREE_DEPTH 512
#define NRG_TREE_NODES ((size_t)1 << 20)

struct nrg_span_node {
    uint32_t parent;
    uint32_t name;  /* index of the catalog's names; n_names: not known */
    int64_t number; /* NRG_MISSING: all numbers together */
    uint32_t depth; /* 0: the top, which is no span */
};

struct nrg_span_tree {
    struct nrg_span_node *nodes;
    size_t n, cap;
    struct nrg_index index; /* node; the top is never searched */
    uint64_t folded;        /* spans that did not get a place of their own */
};

int nrg_span_tree_init(struct nrg_span_tree *tree);
void nrg_span_tree_release(struct nrg_span_tree *tree);
/* The node, made when it is new; the parent itself when there is no room; -ENOMEM. */
int64_t nrg_span_tree_child(struct nrg_span_tree *tree, uint32_t parent, uint32_t name,
                            int64_t number);

#endif

/*
 * Numbers for symbolic dimensions: those that were given, the sizes of the example that the model
 * was exported with, and expressions of both ("2*s0", "s0 + 1", "(s0*s1)//2").
 */
#ifndef NRG_GRAPH_RESIZE_SYMBOLS_H
#define NRG_GRAPH_RESIZE_SYMBOLS_H

#include "graph/graph.h"

struct nrg_symbols {
    const struct nrg_model *model;
    struct nrg_symbol_value {
        int64_t dim, value;
    } * items;
    size_t n, cap;
};

/* The dimension of a symbol by name, for "batch" and "seq" also by their usual other names; else
 * `fallback`. */
int64_t nrg_symbols_find(const struct nrg_model *model, const char *name, int64_t fallback);
/* 0 or -ENOMEM. */
int nrg_symbols_set(struct nrg_symbols *symbols, int64_t dim, int64_t value);
/* NRG_DIM_UNKNOWN when neither a given size nor an example determines it. */
int64_t nrg_symbols_value(const struct nrg_symbols *symbols, int64_t dim);
void nrg_symbols_release(struct nrg_symbols *symbols);

#endif

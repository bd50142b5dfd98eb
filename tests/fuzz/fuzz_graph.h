/*
 * Common to the fuzz targets of graph readers: reads the bytes as one format, and if they are
 * accepted walks what came out: every name, every type, every edge, the reduction and the costs.
 */
#ifndef NRG_TESTS_FUZZ_GRAPH_H
#define NRG_TESTS_FUZZ_GRAPH_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "graph/reader.h"
#include "graph/reduce.h"

static size_t fuzz_walk(const struct nrg_block *block, size_t n_values, unsigned depth)
{
    size_t n = 0;
    if (depth > 1000)
        abort();
    for (size_t i = 0; i < block->n_ops; i++) {
        const struct nrg_op *op = block->ops[i];
        n += strlen(op->kind) + (op->label ? strlen(op->label) : 0);
        for (size_t k = 0; k < op->n_inputs; k++)
            n += strlen(op->inputs[k]->name) + (size_t)nrg_type_has_tensor(op->inputs[k]->type);
        for (size_t k = 0; k < op->n_outputs; k++)
            if (op->outputs[k]->id >= n_values || nrg_type_numel(op->outputs[k]->type) < -2)
                abort();
        for (size_t b = 0; b < op->n_blocks; b++)
            n += fuzz_walk(op->blocks[b], n_values, depth + 1);
    }
    return n;
}

static inline void fuzz_graph(const char *format, const uint8_t *data, size_t size)
{
    struct nrg_source source = {.bytes = data, .size = size, .name = "fuzz"};
    struct nrg_model model;
    struct nrg_reduced reduced;
    struct nrg_error err;
    if (nrg_model_read_bytes(&source, format, &model, &err))
        return;
    for (size_t i = 0; i < model.n_graphs; i++)
        fuzz_walk(model.graphs[i]->body, model.graphs[i]->n_values, 0);
    if (model.n_graphs && !nrg_reduce(&model, NULL, &reduced, &err)) {
        if (nrg_cost_all(&reduced, NRG_CONVENTION_NRG))
            abort();
        for (size_t i = 0; i < reduced.n_operators; i++)
            if (reduced.operators[i].cost.macs < -1 || reduced.operators[i].cost.flops < -1)
                abort();
        nrg_reduced_release(&reduced);
    }
    nrg_model_release(&model);
}

#endif

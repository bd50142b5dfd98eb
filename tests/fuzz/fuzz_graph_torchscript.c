/*
 * Fuzz target: the TorchScript text reader. Whatever it accepts must be a sound graph: ids dense
 * and unique, every value with a type, every operator in its block, memory within the stated
 * multiple of the input.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_values(const struct nrg_graph *graph, struct nrg_value *const *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!values[i] || !values[i]->type || !values[i]->name || values[i]->id >= graph->n_values)
            abort();
}

static size_t check_block(const struct nrg_graph *graph, const struct nrg_block *block)
{
    size_t n = block->n_ops;
    check_values(graph, block->inputs, block->n_inputs);
    check_values(graph, block->outputs, block->n_outputs);
    for (size_t i = 0; i < block->n_ops; i++) {
        const struct nrg_op *op = block->ops[i];
        if (op->parent != block || op->id >= graph->n_ops || !strstr(op->kind, "::"))
            abort();
        check_values(graph, op->inputs, op->n_inputs);
        check_values(graph, op->outputs, op->n_outputs);
        for (size_t b = 0; b < op->n_blocks; b++) {
            if (op->blocks[b]->owner != op)
                abort();
            n += check_block(graph, op->blocks[b]);
        }
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_source source = {.bytes = data, .size = size, .name = "fuzz"};
    struct nrg_model model;
    struct nrg_error err;
    if (nrg_model_read_bytes(&source, "torchscript", &model, &err))
        return 0;
    for (size_t i = 0; i < model.n_graphs; i++)
        if (check_block(model.graphs[i], model.graphs[i]->body) > model.graphs[i]->n_ops)
            abort();
    if (model.arena.used > model.arena.limit)
        abort();
    nrg_model_release(&model);
    return 0;
}

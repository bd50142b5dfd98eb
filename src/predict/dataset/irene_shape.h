/*
 * Sizes of an operator from what IrEne's files tell of it: batch, sequence length, FLOPs and bytes
 * by its own counters (src/graph/cost/convention.c has them as convention `irene`). The counters
 * count a linear layer's weight once per batch element and an embedding's output only; predicting
 * wants what really moves, so the operands' sizes are solved for and counted nrg's way.
 */
#ifndef NRG_PREDICT_IRENE_SHAPE_H
#define NRG_PREDICT_IRENE_SHAPE_H

#include <stdbool.h>

struct nrg_irene_op {
    const char *kind; /* "Linear", "Conv1D", "MatMul", "LayerNorm", … */
    double batch, seq, flops, bytes;
    double rows_of_table; /* an embedding's vocabulary; 0: unknown */
};

struct nrg_irene_cost {
    double macs, read_bytes, written_bytes;
    double copied_bytes, score_bytes;
    double params; /* NAN: unknown */
};

/* False: the numbers fit no shape of that kind, and the source's own counts were taken. */
bool nrg_irene_shape(const struct nrg_irene_op *op, struct nrg_irene_cost *cost);

#endif

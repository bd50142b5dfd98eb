/*
 * Sizes of an operator, solved from what IrEne's files say about it: batch, sequence length, FLOPs
 * and bytes by IrEne's own counters (convention `irene` of src/graph/cost/convention.c). These
 * counters count a linear layer's weight once per batch element, and only the output of an
 * embedding. Prediction needs the bytes that are really moved, so the operands' sizes are solved
 * for and counted nrg's way.
 *
 * Nothing is owned. Threads: pure.
 */
#ifndef NRG_PREDICT_DATASET_IRENE_SHAPE_H
#define NRG_PREDICT_DATASET_IRENE_SHAPE_H

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

/* False: the numbers fit no shape of that kind; cost then has the file's own counts. */
bool nrg_irene_shape(const struct nrg_irene_op *op, struct nrg_irene_cost *cost);

#endif

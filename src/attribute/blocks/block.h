/*
 * A block: the columns of one phenomenon, and the prior of their powers. One file each, one line in
 * table.c.
 *
 * A row of the model is a reading that sees some time (sensor/kernel.h). A block adds to its
 * columns what each part of a slice that the row sees brings, and what time itself brings. Columns
 * but those of powers (classes, idle, others) add nothing over the whole run: a class's energy is
 * always its power times its seconds.
 *
 * The prior of a column is scale * mean_w^2 * its own factor. The scale of a block is found by
 * evidence between NRG_SCALE_FLOOR, where the phenomenon is absent, and its most; or it is wide,
 * and readings alone decide.
 *
 * Blocks keep nothing: what they need is in the facts. Nothing can fail.
 */
#ifndef NRG_ATTRIBUTE_BLOCKS_BLOCK_H
#define NRG_ATTRIBUTE_BLOCKS_BLOCK_H

#include "attribute/model/facts.h"

#define NRG_SCALE_FLOOR 1e-11
#define NRG_SCALE_WIDE  100.0 /* of mean_w^2: ten times the mean power either way */

/* A row being made. */
struct nrg_row_cells {
    double *x; /* per column */
    uint32_t *touched;
    size_t n_touched;
    bool *mark;
};

static inline void nrg_row_add(struct nrg_row_cells *row, size_t column, double value)
{
    if (!row->mark[column]) {
        row->mark[column] = true;
        row->touched[row->n_touched++] = (uint32_t)column;
    }
    row->x[column] += value;
}

/* The part of a slice, or of time, that a row sees. */
struct nrg_model_seen {
    double weight_s; /* its seconds, as the row weights them */
    double middle_s; /* when */
};

struct nrg_model_block {
    const char *name, *summary;
    /* Columns from `first` on; 0: it does not apply. */
    size_t (*columns)(const struct nrg_facts *facts);
    /* What a slice brings; NULL: nothing. */
    void (*slice)(const struct nrg_facts *facts, size_t first, const struct nrg_fact_slice *slice,
                  struct nrg_model_seen seen, struct nrg_row_cells *row);
    /* What time itself brings to a row that sees from begin_s to end_s; NULL: nothing. */
    void (*time)(const struct nrg_facts *facts, size_t first, struct nrg_model_seen seen,
                 struct nrg_row_cells *row);
    bool wide;    /* its scale is NRG_SCALE_WIDE */
    double start; /* else where the search begins */
};

enum nrg_model_block_number {
    NRG_BLOCK_CLASSES, /* its column c is class c */
    NRG_BLOCK_COMMON,
    NRG_BLOCK_IDLE,
    NRG_BLOCK_RAMPS,
    NRG_BLOCK_CALLS,
    NRG_BLOCK_DRIFT,
    NRG_BLOCKS
};

extern const struct nrg_model_block *const nrg_model_blocks[NRG_BLOCKS];

#endif

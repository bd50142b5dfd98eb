/*
 * Rows that several passes need alike: once the kernel is chosen, the noise is found in turns of
 * fits and of what these leave, and the last fit has the same rows again. The first pass writes
 * them down as it makes them, the others read them.
 *
 * Whoever changes what rows are made of (the kernel, the columns of calls, when calls wait)
 * forgets them. Too many are not kept: then every pass makes its own. Owned by the regression. One
 * thread at a time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_ROWS_KEPT_ROWS_H
#define NRG_ATTRIBUTE_REGRESS_ROWS_KEPT_ROWS_H

#include "attribute/regress/rows/rows.h"

struct nrg_kept_row {
    struct nrg_observation seen;
    double y, weight_s, cut_begin2, cut_end2;
    size_t first, n; /* of its columns */
    bool dense;
};

struct nrg_kept_column {
    double value;
    uint32_t column;
};

struct nrg_kept_rows {
    struct nrg_kept_row *rows;
    size_t n, cap;
    struct nrg_kept_column *columns;
    size_t n_columns, cap_columns;
    struct nrg_kernel kernel;
    bool drift;    /* as of the rows' maker */
    bool begun;    /* by some pass */
    bool full;     /* there were too many: none is kept */
    bool complete; /* all rows are there */
};

/* Has a maker of all rows, which was just set up, write them down or read them, if that can be. */
void nrg_kept_rows_attach(struct nrg_kept_rows *kept, struct nrg_rowgen *gen);
/* rows.c: the row that was made; the next one into gen, 1, or 0: that was all. */
void nrg_kept_rows_add(struct nrg_kept_rows *kept, const struct nrg_rowgen *gen);
int nrg_kept_rows_next(const struct nrg_kept_rows *kept, struct nrg_rowgen *gen);
void nrg_kept_rows_forget(struct nrg_kept_rows *kept);

#endif

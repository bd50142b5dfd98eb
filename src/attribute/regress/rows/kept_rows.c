/* See kept_rows.h. */
#include "attribute/regress/rows/kept_rows.h"

#include <stdlib.h>

#include "base/mem.h"

#define MAX_COLUMNS (1u << 20) /* of all rows: 16 MB */

void nrg_kept_rows_forget(struct nrg_kept_rows *k)
{
    free(k->rows);
    free(k->columns);
    *k = (struct nrg_kept_rows){0};
}

static bool is_same_kernel(const struct nrg_kernel *a, const struct nrg_kernel *b)
{
    return a->kind == b->kind && a->near_s == b->near_s && a->far_s == b->far_s &&
           a->tau_s == b->tau_s;
}

void nrg_kept_rows_attach(struct nrg_kept_rows *k, struct nrg_rowgen *gen)
{
    if (k->complete && is_same_kernel(&k->kernel, &gen->kernel) && k->drift == gen->drift)
        gen->kept = k;
    if (k->begun)
        return;
    k->begun = true;
    k->kernel = gen->kernel;
    k->drift = gen->drift;
    gen->keeps = k;
}

static bool has_room(struct nrg_kept_rows *k, size_t more)
{
    return k->n_columns + more <= MAX_COLUMNS &&
           !nrg_reserve(&k->rows, &k->cap, k->n + 1, sizeof *k->rows) &&
           !nrg_reserve(&k->columns, &k->cap_columns, k->n_columns + more, sizeof *k->columns);
}

void nrg_kept_rows_add(struct nrg_kept_rows *k, const struct nrg_rowgen *gen)
{
    size_t most = gen->dense ? gen->n : gen->n_touched;
    if (!k->full && !has_room(k, most)) {
        nrg_kept_rows_forget(k);
        k->begun = k->full = true;
    }
    if (k->full)
        return;
    struct nrg_kept_row *row = &k->rows[k->n++];
    *row = (struct nrg_kept_row){.seen = gen->seen,
                                 .y = gen->y,
                                 .weight_s = gen->weight_s,
                                 .cut_begin2 = gen->cut_begin2,
                                 .cut_end2 = gen->cut_end2,
                                 .first = k->n_columns,
                                 .dense = gen->dense};
    for (size_t i = 0; i < most; i++) {
        uint32_t column = gen->dense ? (uint32_t)i : gen->touched[i];
        if (gen->x[column] != 0)
            k->columns[k->n_columns++] = (struct nrg_kept_column){gen->x[column], column};
    }
    row->n = k->n_columns - row->first;
}

int nrg_kept_rows_next(const struct nrg_kept_rows *k, struct nrg_rowgen *gen)
{
    while (gen->nth < k->n) {
        const struct nrg_kept_row *row = &k->rows[gen->nth++];
        if (!nrg_rowgen_is_usable(gen, &row->seen))
            continue;
        const struct nrg_kept_column *columns = k->columns + row->first;
        for (size_t i = 0; i < row->n; i++)
            nrg_rowgen_set(gen, columns[i].column, columns[i].value);
        gen->seen = row->seen;
        gen->y = row->y;
        gen->weight_s = row->weight_s;
        gen->restart = row->seen.restart;
        gen->cut_begin2 = row->cut_begin2;
        gen->cut_end2 = row->cut_end2;
        gen->dense = row->dense;
        return 1;
    }
    return 0;
}

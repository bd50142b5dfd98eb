/*
 * Single numbered spans (a step, an epoch, a cycle) and rows inside of them have no less than
 * nothing: where idle power, others or the edges of intervals leave less, it is taken from all that
 * have the same path, whose sum stays. A sum that is less than nothing stays as it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/buckets.h"
#include "attribute/internal.h"
#include "base/mem.h"

struct sums {
    double less_j, more_j; /* of rows below 0, and of the others */
};

static void add_row(struct sums *sums, double energy_j)
{
    *(energy_j < 0 ? &sums->less_j : &sums->more_j) += energy_j;
}

static void settle_row(struct nrg_engine *e, size_t row, size_t p, const struct sums *sums)
{
    double *energy_j = &e->row_parts[row * e->n_parts + p].energy_j;
    if (!(sums->less_j < 0) || !(sums->less_j + sums->more_j > 0))
        return;
    double factor = *energy_j < 0 ? 0 : 1 + sums->less_j / sums->more_j;
    *energy_j *= factor;
    if (e->buckets)
        nrg_buckets_scale(e->buckets, (uint32_t)row, p, factor);
}

int nrg_singles_settle(struct nrg_engine *e)
{
    if (e->walk.rows == &e->walk.paths) /* no row is a single one */
        return 0;
    size_t n = e->walk.paths.n + 1;
    struct sums *sums = nrg_calloc(n, sizeof *sums);
    for (size_t p = 0; sums && p < e->n_parts; p++) {
        memset(sums, 0, n * sizeof *sums);
        for (size_t i = 1; i < e->walk.rows->n; i++)
            add_row(&sums[e->rows[i].path], e->row_parts[i * e->n_parts + p].energy_j);
        for (size_t i = 1; i < e->walk.rows->n; i++)
            settle_row(e, i, p, &sums[e->rows[i].path]);
    }
    free(sums);
    return sums ? 0 : -ENOMEM;
}

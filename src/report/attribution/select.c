/*
 * Which rows of an attribution are shown. A model has thousands of places; a reader wants the
 * largest. attribution/table.c adds up what is left out in a row of its own.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/attribution/internal.h"

struct ranked {
    double energy_j, time_s;
    size_t row;
};

/* Largest first; rows without a number last, longest first; else as they stand. */
static int by_energy(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (isnan(a->energy_j) != isnan(b->energy_j))
        return isnan(a->energy_j) ? 1 : -1;
    if (a->energy_j > b->energy_j || b->energy_j > a->energy_j)
        return a->energy_j > b->energy_j ? -1 : 1;
    if (a->time_s > b->time_s || b->time_s > a->time_s)
        return a->time_s > b->time_s ? -1 : 1;
    return a->row < b->row ? -1 : 1;
}

static void show_with_ancestors(const struct nrg_attribution *a, size_t row, bool *shown)
{
    for (; row < a->n_rows && !shown[row]; row = a->rows[row].parent)
        shown[row] = true;
}

/* By its time where its energy is not known. */
static bool is_small(const struct nrg_attribution_row *row, double least_j, double least_s)
{
    return isnan(row->energy_j) ? row->time_s < least_s : row->energy_j < least_j;
}

int nrg_attribution_select(const struct nrg_attribution *a, const struct nrg_attribution_view *view,
                           bool *shown)
{
    struct ranked *ranked = nrg_calloc(a->n_rows + 1, sizeof *ranked);
    double least_j = 0;
    size_t n = 0;
    if (!ranked)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_rows; i++)
        if (a->rows[i].energy_self_j > 0) /* of what the spans have: idle may be most of it */
            least_j += view->min_share * a->rows[i].energy_self_j;
    for (size_t i = 0; i < a->n_rows; i++)
        if (!is_small(&a->rows[i], least_j, view->min_share * a->duration_s))
            ranked[n++] = (struct ranked){a->rows[i].energy_j, a->rows[i].time_s, i};
    qsort(ranked, n, sizeof *ranked, by_energy);
    memset(shown, 0, a->n_rows * sizeof *shown);
    for (size_t i = 0; i < n && (!view->top || i < view->top); i++)
        show_with_ancestors(a, ranked[i].row, shown);
    free(ranked);
    return 0;
}

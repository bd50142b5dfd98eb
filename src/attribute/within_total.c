/*
 * The total is measured, powers of classes are fitted: where the energies of all rows are more than
 * the total of their domain, each is less by the same factor. What it is less by is in doubt, in
 * the rows' intervals and in those of the rows around them.
 */
#include "attribute/buckets.h"
#include "attribute/internal.h"

static void doubt(struct nrg_row_error *error, double energy_j)
{
    error->below_j += energy_j;
    error->above_j += energy_j;
}

static void lessen_row(struct nrg_engine *e, size_t row, size_t p, double factor)
{
    struct nrg_row_part *part = &e->row_parts[row * e->n_parts + p];
    double less_j = (1 - factor) * part->energy_j;
    part->energy_j -= less_j;
    doubt(&part->self, less_j);
    for (size_t at = row; at; at = e->walk.rows->nodes[at].parent)
        doubt(&e->row_parts[at * e->n_parts + p].whole, less_j);
    if (e->buckets)
        nrg_buckets_scale(e->buckets, (uint32_t)row, p, factor);
}

void nrg_rows_within_total(struct nrg_engine *e)
{
    for (size_t p = 0; p < e->n_parts; p++) {
        double total_j = e->parts[p].out->total_j, sum_j = 0;
        for (size_t i = 1; i < e->walk.rows->n; i++)
            sum_j += e->row_parts[i * e->n_parts + p].energy_j;
        if (!nrg_method_bounds_rows(e->parts[p].method) || !(sum_j > total_j) || !(total_j > 0))
            continue;
        for (size_t i = 1; i < e->walk.rows->n; i++)
            lessen_row(e, i, p, total_j / sum_j);
    }
}

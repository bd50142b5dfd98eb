/*
 * Sums of rows, as rows of their own. When in a cell others ran is not known, so rows that are
 * shorter than that are off by what others drew, all to one side for a while: noise that lasts, by
 * which many rows together would be known no better than a few. But how long others ran in the cell
 * is known, and what one row has too much another lacks: however long a stretch is, its energy is
 * off by what its two ends are. So stretches of several lengths are rows, too. How far they are off
 * is seen in what a first fit leaves of them; each length counts for what it tells beyond the
 * shorter ones.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/regress/internal.h"

#define SHORTEST  16  /* rows */
#define LONGER    4   /* times as long is the next one */
#define LEAST     8   /* stretches of a length in the run: fewer do not show what they are off by */
#define WORTH_IT  0.5 /* of the variance that shorter ones leave */
#define DEVIATION 2   /* standard errors that a variance may be larger than it was seen to be */

static double sum_of(const double *e, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += e[i];
    return sum;
}

void nrg_regress_learn_sums(struct nrg_regress *r, const double *e, size_t n)
{
    r->n_sums = 0;
    if (r->options.timeline->is_gauge || !r->options.others_column || r->waits.used)
        return;
    for (size_t rows = SHORTEST; r->n_sums < NRG_ROW_SUMS && n / rows >= LEAST; rows *= LONGER) {
        double squares = 0, many = (double)(n / rows);
        for (size_t i = 0; i + rows <= n; i += rows)
            squares += sum_of(e + i, rows) * sum_of(e + i, rows);
        struct nrg_row_sum *sum = &r->sums[r->n_sums++];
        sum->rows = rows;
        sum->variance = squares / many * (1 + DEVIATION * sqrt(2 / many));
    }
}

/* Variance of many rows together, for each of them, as their noise says. */
static double variance_of_many(const struct nrg_regress *r)
{
    const struct nrg_noise *noise = &r->noise;
    double row_j = r->rows_expected ? r->energy_j / (double)r->rows_expected : 0;
    double lasting = (1 - noise->theta) / (1 - noise->phi);
    return (noise->floor2 + noise->slope2 * row_j * row_j) * lasting * lasting;
}

int nrg_regress_weigh_sums(struct nrg_regress *r)
{
    double per_row = variance_of_many(r);
    size_t used = 0;
    for (size_t i = 0; i < r->n_sums && r->noise.cut == 0; i++) {
        struct nrg_row_sum sum = r->sums[i];
        double before = per_row * (double)sum.rows;
        if (!(sum.variance < WORTH_IT * before))
            continue;
        sum.weight = 1 / sum.variance - 1 / before;
        sum.x = nrg_arena_array(&r->memory, NRG_REGRESS_COLUMNS(&r->options), sizeof *sum.x);
        if (!sum.x)
            return -ENOMEM;
        per_row = sum.variance / (double)sum.rows;
        r->sums[used++] = sum;
    }
    r->n_sums = used;
    return 0;
}

static void start_again(struct nrg_row_sum *sum, size_t columns)
{
    memset(sum->x, 0, columns * sizeof *sum->x);
    sum->y = 0;
    sum->n = 0;
}

void nrg_regress_add_to_sums(struct nrg_regress *r, struct nrg_gram *to)
{
    const struct nrg_rowgen *gen = &r->gen;
    double idle_w = isnan(r->options.idle_w) ? 0 : r->options.idle_w;
    for (struct nrg_row_sum *sum = r->sums; sum < r->sums + r->n_sums; sum++) {
        if (gen->restart || gen->seen.edge)
            start_again(sum, r->n_columns);
        if (gen->seen.edge) /* whose CPU times are not known */
            continue;
        for (size_t i = 0; i < gen->n; i++)
            sum->x[i] += gen->x[i];
        sum->y += gen->y - idle_w * gen->x[NRG_COLUMN_IDLE];
        if (++sum->n < sum->rows)
            continue;
        nrg_gram_add(to, sum->x, NULL, 0, sum->y, sum->weight);
        start_again(sum, r->n_columns);
    }
}

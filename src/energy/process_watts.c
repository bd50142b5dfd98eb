/*
 * See process_watts.h. Least squares of each cell's energy on CPU seconds, not negative, and drawn
 * to the mean of all as far as the readings do not tell. The watts are kept where they explain
 * clearly more than one figure for all does.
 */
#include "energy/process_watts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/nnls.h"

#define LEAST_CELLS 50
#define LEAST_S     0.05 /* of a cell */
#define LEAST_SHARE 1e-3 /* of all CPU time: less has no watts of its own */
#define SPREAD      0.5  /* of the mean watts: how much programs differ, before anything is read */

void nrg_process_watts_release(struct nrg_process_watts *w)
{
    free(w->slot_of);
    free(w->cpu_s);
    *w = (struct nrg_process_watts){0};
}

/* The process with most CPU time that has no slot yet; 0: none above least_s. */
static size_t next_largest(const double *cpu_s, size_t n, const uint8_t *slot_of, double least_s)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (slot_of[i] == NRG_WATTS_REST && cpu_s[i] > least_s && cpu_s[i] > cpu_s[best])
            best = i;
    return best;
}

int nrg_process_watts_init(struct nrg_process_watts *w, const double *cpu_s, size_t n_ids,
                           size_t n_cells)
{
    double all_s = 0;
    *w = (struct nrg_process_watts){.n_cells = n_cells};
    w->slot_of = malloc(n_ids + 1);
    w->cpu_s = nrg_calloc(n_cells + 1, sizeof *w->cpu_s);
    if (!w->slot_of || !w->cpu_s) {
        nrg_process_watts_release(w);
        return -ENOMEM;
    }
    memset(w->slot_of, NRG_WATTS_REST, n_ids + 1);
    for (size_t i = 0; i < n_ids; i++)
        all_s += cpu_s[i];
    for (size_t slot = 0; slot < NRG_WATTS_PROCESSES && n_ids > 1; slot++) {
        size_t id = next_largest(cpu_s, n_ids, w->slot_of, LEAST_SHARE * all_s);
        if (!id)
            break;
        w->slot_of[id] = (uint8_t)slot;
    }
    for (size_t i = 0; i < NRG_WATTS_SLOTS; i++)
        w->watts[i] = 1;
    return 0;
}

double nrg_process_watts_sum(const struct nrg_process_watts *w, size_t cell)
{
    double sum = 0;
    for (size_t i = 0; i < NRG_WATTS_SLOTS; i++)
        sum += w->watts[i] * w->cpu_s[cell][i];
    return sum;
}

/* The sums of least squares over all cells, and the same with all CPU seconds as one. */
struct sums {
    struct nrg_gram each, one;
};

static int add_cells(const struct nrg_process_watts *w, const double *active_j,
                     const double *length_s, struct sums *sums)
{
    if (nrg_gram_grow(&sums->each, NRG_WATTS_SLOTS) || nrg_gram_grow(&sums->one, 1))
        return -ENOMEM;
    for (size_t k = 0; k < w->n_cells; k++) {
        double all_s = 0;
        for (size_t i = 0; i < NRG_WATTS_SLOTS; i++)
            all_s += w->cpu_s[k][i];
        if (length_s[k] < LEAST_S || !isfinite(active_j[k]))
            continue;
        nrg_gram_add(&sums->each, w->cpu_s[k], NULL, 0, active_j[k], 1);
        nrg_gram_add(&sums->one, &all_s, NULL, 0, active_j[k], 1);
    }
    return 0;
}

/* Draws each figure to the mean, by as much as one cell's scatter allows. */
static void hold_to(struct nrg_gram *gram, double mean_w, double left_j2)
{
    double strength = left_j2 / (SPREAD * SPREAD * mean_w * mean_w);
    for (size_t i = 0; i < gram->n; i++) {
        gram->a[nrg_packed(i, i)] += strength;
        gram->b[i] += strength * mean_w;
    }
}

static int solve(struct nrg_process_watts *w, struct sums *sums)
{
    double watts[NRG_WATTS_SLOTS], rows = (double)sums->one.rows, columns = 0;
    double mean_w = sums->one.a[0] > 0 ? sums->one.b[0] / sums->one.a[0] : 0;
    for (size_t i = 0; i < NRG_WATTS_SLOTS; i++)
        columns += sums->each.a[nrg_packed(i, i)] > 0;
    if (rows < LEAST_CELLS || columns < 2 || !(mean_w > 0))
        return 0;
    double one_left = nrg_gram_residual(&sums->one, &mean_w);
    int rc =
        nrg_gram_nonnegative(&sums->each, NULL, NRG_WATTS_SLOTS, NRG_WATTS_SLOTS, NRG_RIDGE, watts);
    if (rc)
        return rc;
    double left = fmax(nrg_gram_residual(&sums->each, watts), 1e-12 * one_left);
    if (!(one_left > 0) || rows * log(one_left / left) < (columns - 1) * log(rows))
        return 0;
    hold_to(&sums->each, mean_w, left / rows);
    rc =
        nrg_gram_nonnegative(&sums->each, NULL, NRG_WATTS_SLOTS, NRG_WATTS_SLOTS, NRG_RIDGE, watts);
    if (!rc)
        memcpy(w->watts, watts, sizeof w->watts);
    w->told_apart = !rc;
    return rc;
}

int nrg_process_watts_fit(struct nrg_process_watts *w, const double *active_j,
                          const double *length_s)
{
    struct sums sums = {0};
    int rc = add_cells(w, active_j, length_s, &sums);
    if (!rc)
        rc = solve(w, &sums);
    nrg_gram_release(&sums.each);
    nrg_gram_release(&sums.one);
    return rc;
}

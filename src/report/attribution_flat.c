/*
 * Attributions by name, which are lists and no trees: the largest first; and of operators alone,
 * where what is done by something else (the modules' own code, data loading) becomes one row, so
 * that the sum stays the total.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/attribution/report.h"

static bool is_operator(const struct nrg_attribution_row *row)
{
    return !strcmp(row->kind, NRG_KIND_OPERATOR) || !strcmp(row->kind, NRG_KIND_KERNEL) ||
           !strcmp(row->kind, NRG_KIND_LAYER);
}

static void add(double *sum, double value)
{
    if (!isnan(value))
        *sum = isnan(*sum) ? value : *sum + value;
}

void nrg_attribution_only_operators(struct nrg_attribution *a)
{
    struct nrg_attribution_row rest = {.name = "(outside operators)",
                                       .kind = "rest",
                                       .detail = "",
                                       .parent = SIZE_MAX,
                                       .number = NRG_MISSING,
                                       .energy_self_j = NAN,
                                       .self_low_j = NAN,
                                       .self_high_j = NAN,
                                       .method = a->method,
                                       .merged_with = SIZE_MAX,
                                       .updates_per_call = NAN,
                                       .macs = NAN,
                                       .flops = NAN,
                                       .read_bytes = NAN,
                                       .written_bytes = NAN};
    size_t n = 0;
    for (size_t i = 0; i < a->n_rows; i++) {
        const struct nrg_attribution_row row = a->rows[i];
        if (is_operator(&row)) {
            a->rows[n] = row;
            a->rows[n].parent = a->rows[n].merged_with = SIZE_MAX;
            a->rows[n++].depth = 0;
            continue;
        }
        rest.self_time_s += row.self_time_s;
        rest.flags |= row.flags;
        add(&rest.energy_self_j, row.energy_self_j);
        add(&rest.self_low_j, row.self_low_j);
        add(&rest.self_high_j, row.self_high_j);
    }
    if (n < a->n_rows) {
        rest.time_s = rest.self_time_s;
        rest.energy_j = rest.energy_self_j;
        rest.low_j = rest.self_low_j;
        rest.high_j = rest.self_high_j;
        a->rows[n++] = rest;
    }
    a->n_rows = n;
}

struct placed {
    struct nrg_attribution_row row;
    size_t was;
};

/* Largest first, those without a number last; else as they stood. */
static int by_energy(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    double x = a->row.energy_j, y = b->row.energy_j;
    if (isnan(x) != isnan(y))
        return isnan(x) ? 1 : -1;
    if (x > y || y > x)
        return x > y ? -1 : 1;
    return a->was < b->was ? -1 : 1;
}

int nrg_attribution_sort(struct nrg_attribution *a)
{
    size_t *now = calloc(a->n_rows + 1, sizeof *now);
    struct placed *placed = calloc(a->n_rows + 1, sizeof *placed);
    if (now && placed) {
        for (size_t i = 0; i < a->n_rows; i++)
            placed[i] = (struct placed){a->rows[i], i};
        qsort(placed, a->n_rows, sizeof *placed, by_energy);
        for (size_t i = 0; i < a->n_rows; i++) {
            a->rows[i] = placed[i].row;
            now[placed[i].was] = i;
        }
        for (size_t i = 0; i < a->n_rows; i++)
            if (a->rows[i].merged_with < a->n_rows)
                a->rows[i].merged_with = now[a->rows[i].merged_with];
    }
    int rc = now && placed ? 0 : -ENOMEM;
    free(now);
    free(placed);
    return rc;
}

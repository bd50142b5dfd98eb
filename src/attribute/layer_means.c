/*
 * See layer_means.h. Layers are sorted by their time in sum, before the sums become means: a layer
 * that runs often counts for what it takes in all.
 */
#include "attribute/layer_means.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Executions come in the order of the log: the next layer is mostly the one after the last. */
static struct nrg_layer_mean *layer_of(struct nrg_layer_means *all, size_t *hint, const char *name,
                                       const char *type)
{
    for (size_t k = 0; k < all->n; k++) {
        size_t at = (*hint + 1 + k) % all->n;
        if (!strcmp(all->items[at].name, name))
            return &all->items[*hint = at];
    }
    const struct nrg_layer_mean fresh = {.name = name, .type = type};
    if (nrg_append(&all->items, &all->n, &all->cap, &fresh, sizeof fresh))
        return NULL;
    return &all->items[*hint = all->n - 1];
}

static int add_executions(struct nrg_layer_means *all, const struct nrg_cycles *cycles,
                          const struct nrg_attribution *a)
{
    size_t hint = 0;
    for (size_t i = 0; i < cycles->n; i++) {
        const struct nrg_execution *e = &cycles->executions[i];
        if (e->row >= a->n_rows || e->left_out)
            continue;
        struct nrg_layer_mean *l =
            layer_of(all, &hint, a->rows[e->row].name, a->rows[e->row].detail);
        if (!l)
            return -ENOMEM;
        l->runs++;
        l->run_time_s += e->run_time_s;
        l->energy_j += isnan(e->lag_corrected_j) ? 0 : e->lag_corrected_j;
        if (isnan(e->power_w))
            continue;
        l->with_power++;
        l->power_w += e->power_w;
        l->above_idle_w += e->power_above_idle_w;
    }
    return 0;
}

static int longest_first(const void *left, const void *right)
{
    const struct nrg_layer_mean *a = left, *b = right;
    if (a->run_time_s > b->run_time_s || b->run_time_s > a->run_time_s)
        return a->run_time_s > b->run_time_s ? -1 : 1;
    return strcmp(a->name, b->name);
}

static double mean_of(double sum, size_t n)
{
    return n ? sum / (double)n : NAN;
}

int nrg_layer_means_make(struct nrg_layer_means *all, const struct nrg_cycles *cycles,
                         const struct nrg_attribution *attribution)
{
    *all = (struct nrg_layer_means){0};
    int rc = add_executions(all, cycles, attribution);
    if (all->n)
        qsort(all->items, all->n, sizeof *all->items, longest_first);
    for (size_t i = 0; i < all->n; i++) {
        struct nrg_layer_mean *l = &all->items[i];
        l->power_w = mean_of(l->power_w, l->with_power);
        l->above_idle_w = mean_of(l->above_idle_w, l->with_power);
        l->run_time_s = mean_of(l->run_time_s, l->runs);
    }
    return rc;
}

void nrg_layer_means_release(struct nrg_layer_means *all)
{
    free(all->items);
    *all = (struct nrg_layer_means){0};
}

/* See summary.h. Equal sizes are found by sorting operators by kind and static features. */
#include "predict/dataset/summary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

static const enum nrg_feature sizes[] = {
    NRG_F_BATCH, NRG_F_SEQ,   NRG_F_MACS,  NRG_F_READ_BYTES, NRG_F_WRITTEN_BYTES, NRG_F_IN_0,
    NRG_F_IN_1,  NRG_F_OUT_0, NRG_F_OUT_1, NRG_F_KERNEL_0,   NRG_F_STRIDE_0,      NRG_F_GROUPS};
#define SIZES (sizeof sizes / sizeof *sizes)

struct list {
    struct nrg_tally *items;
    size_t n, cap;
};

static void init_tally(struct nrg_tally *t, const char *name)
{
    *t = (struct nrg_tally){.name = name,
                            .energy_j = NRG_NO_RANGE,
                            .macs = NRG_NO_RANGE,
                            .bytes = NRG_NO_RANGE,
                            .size = NRG_NO_RANGE,
                            .spread_median = NAN,
                            .spread_p90 = NAN};
}

static struct nrg_tally *tally_of(struct list *list, const char *name, enum nrg_node_level level)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].name == name && list->items[i].level == level)
            return &list->items[i];
    if (nrg_reserve(&list->items, &list->cap, list->n + 1, sizeof *list->items))
        return NULL;
    init_tally(&list->items[list->n], name);
    list->items[list->n].level = level;
    return &list->items[list->n++];
}

static void tally_row(struct nrg_tally *t, const struct nrg_dataset *set, size_t i)
{
    const struct nrg_row *row = &set->rows[i];
    t->rows += (double)row->multiplicity;
    t->distinct += row->measurement == i;
    t->levels[row->level] += row->measurement == i;
    nrg_range_extend(&t->energy_j, row->energy_j);
    nrg_range_extend(&t->macs, nrg_row_feature(set, i, NRG_F_MACS));
    nrg_range_extend(&t->bytes, nrg_row_feature(set, i, NRG_F_READ_BYTES) +
                                    nrg_row_feature(set, i, NRG_F_WRITTEN_BYTES));
    nrg_range_extend(&t->size, nrg_row_size(set, i));
}

/* ---- noise floor ---- */

struct sized {
    const char *kind;
    double size[SIZES], energy_j;
};

static int by_size(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;
    int kind = strcmp(x->kind, y->kind);
    if (kind)
        return kind;
    for (size_t i = 0; i < SIZES; i++)
        if (x->size[i] != y->size[i])
            return x->size[i] < y->size[i] ? -1 : 1;
    return 0;
}

static void set_spread(struct nrg_tally *t, double *spreads, size_t n)
{
    t->repeated = n;
    if (!n)
        return;
    t->spread_median = nrg_median(spreads, n);
    t->spread_p90 = spreads[(size_t)(0.9 * (double)(n - 1) + 0.5)];
}

static size_t list_operators(const struct nrg_dataset *set, struct sized *out)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (set->rows[i].level != NRG_NODE_OPERATOR || set->rows[i].measurement != i)
            continue;
        out[n] = (struct sized){.kind = set->rows[i].kind, .energy_j = set->rows[i].energy_j};
        for (size_t s = 0; s < SIZES; s++) {
            double value = nrg_row_feature(set, i, sizes[s]);
            out[n].size[s] = isnan(value) ? -1 : value;
        }
        n++;
    }
    if (n)
        qsort(out, n, sizeof *out, by_size);
    return n;
}

/* (max - min) / mean of a run of equal sizes. */
static double spread_of(const struct sized *items, size_t n)
{
    double low = INFINITY, high = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++) {
        low = fmin(low, items[i].energy_j);
        high = fmax(high, items[i].energy_j);
        sum += items[i].energy_j;
    }
    return (high - low) / (sum / (double)n);
}

static int find_spreads(struct nrg_data_summary *out, const struct nrg_dataset *set)
{
    struct sized *items = nrg_calloc(set->n + 1, sizeof *items);
    double *all = nrg_calloc(set->n + 1, sizeof *all), *own = nrg_calloc(set->n + 1, sizeof *own);
    int rc = items && all && own ? 0 : -ENOMEM;
    size_t n = rc ? 0 : list_operators(set, items), n_all = 0, n_own = 0;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && !by_size(&items[i], &items[end]);)
            end++;
        if (end - i > 1)
            all[n_all++] = own[n_own++] = spread_of(items + i, end - i);
        if (end < n && items[end].kind == items[i].kind)
            continue;
        for (size_t k = 0; k < out->n_kinds; k++)
            if (out->kinds[k].name == items[i].kind && out->kinds[k].level == NRG_NODE_OPERATOR)
                set_spread(&out->kinds[k], own, n_own);
        n_own = 0;
    }
    if (!rc)
        set_spread(&out->all, all, n_all);
    free(items);
    free(all);
    free(own);
    return rc;
}

void nrg_data_summary_release(struct nrg_data_summary *summary)
{
    free(summary->models);
    free(summary->kinds);
    *summary = (struct nrg_data_summary){0};
}

int nrg_data_summary_make(struct nrg_data_summary *out, const struct nrg_dataset *set)
{
    struct list models = {0}, kinds = {0};
    int rc = 0;
    *out = (struct nrg_data_summary){0};
    init_tally(&out->all, NULL);
    for (size_t i = 0; !rc && i < set->n; i++) {
        struct nrg_tally *model = tally_of(&models, set->rows[i].model, NRG_NODE_OPERATOR);
        struct nrg_tally *kind = tally_of(&kinds, set->rows[i].kind, set->rows[i].level);
        rc = model && kind ? 0 : -ENOMEM;
        if (rc)
            break;
        tally_row(model, set, i);
        tally_row(kind, set, i);
        tally_row(&out->all, set, i);
    }
    out->models = models.items;
    out->n_models = models.n;
    out->kinds = kinds.items;
    out->n_kinds = kinds.n;
    if (!rc)
        rc = find_spreads(out, set);
    if (rc)
        nrg_data_summary_release(out);
    return rc;
}

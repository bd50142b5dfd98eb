/*
 * Joules per unit of work. Spans of some kinds are units themselves (a step, an epoch, a cycle);
 * counters say how many samples or tokens went by. A unit inside one of its own kind is not
 * counted twice: only the outermost rows are taken.
 */
#include <string.h>

#include "attribute/internal.h"

static const char *const unit_kinds[] = {NRG_KIND_EPOCH, NRG_KIND_STEP, NRG_KIND_CYCLE, "token",
                                         "request"};

static bool is_unit(const struct nrg_attribution_row *row)
{
    for (size_t i = 0; i < sizeof unit_kinds / sizeof *unit_kinds; i++)
        if (!strcmp(row->kind, unit_kinds[i]))
            return true;
    return false;
}

static bool inside_own_kind(const struct nrg_view_rows *v, size_t i)
{
    for (size_t at = v->rows[i].parent; at < v->n; at = v->rows[at].parent)
        if (!strcmp(v->rows[at].kind, v->rows[i].kind))
            return true;
    return false;
}

static bool parent_counts(const struct nrg_view_rows *v, size_t i, const char *name)
{
    size_t parent = v->rows[i].parent;
    if (parent >= v->n)
        return false;
    for (size_t k = 0; k < v->rows[parent].n_counts; k++)
        if (!strcmp(v->rows[parent].counts[k].name, name))
            return true;
    return false;
}

static void add_use(struct nrg_unit_use *units, size_t *n, size_t max, const char *name,
                    const char *kind, const struct nrg_attribution_row *row, double amount)
{
    size_t at = 0;
    while (at < *n && (strcmp(units[at].name, name) || strcmp(units[at].kind, kind)))
        at++;
    if (at == max || !(amount > 0))
        return;
    if (at == *n)
        units[(*n)++] = (struct nrg_unit_use){.name = name, .kind = kind};
    units[at].amount += amount;
    units[at].energy_j += row->energy_j;
    units[at].low_j += row->low_j;
    units[at].high_j += row->high_j;
    units[at].scaled_low_j += row->scaled_low_j;
    units[at].scaled_high_j += row->scaled_high_j;
    units[at].time_s += row->time_s;
}

size_t nrg_units_find(const struct nrg_view_rows *v, struct nrg_unit_use *units, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++) {
        const struct nrg_attribution_row *row = &v->rows[i];
        if (is_unit(row) && !inside_own_kind(v, i))
            add_use(units, &n, max, row->name, row->kind, row, (double)row->calls);
    }
    for (size_t i = 0; i < v->n; i++)
        for (size_t k = 0; k < v->rows[i].n_counts; k++) {
            const struct nrg_row_count *count = &v->rows[i].counts[k];
            if (!parent_counts(v, i, count->name))
                add_use(units, &n, max, count->name, NRG_KIND_COUNTER, &v->rows[i], count->amount);
        }
    return n;
}

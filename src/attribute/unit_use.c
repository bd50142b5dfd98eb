/*
 * Joules per unit of work. Spans of some kinds are units themselves (a step, an epoch, a cycle);
 * counters say how many samples or tokens went by. A unit inside one of its own kind is not
 * counted twice: only the outermost rows are taken.
 */
#include <math.h>
#include <string.h>

#include "report/attribution/report.h"

static const char *const unit_kinds[] = {NRG_KIND_EPOCH, NRG_KIND_STEP, NRG_KIND_CYCLE, "token",
                                         "request"};

static bool is_unit(const struct nrg_attribution_row *row)
{
    for (size_t i = 0; i < sizeof unit_kinds / sizeof *unit_kinds; i++)
        if (!strcmp(row->kind, unit_kinds[i]))
            return true;
    return false;
}

static bool inside_own_kind(const struct nrg_attribution *a, size_t i)
{
    for (size_t at = a->rows[i].parent; at < a->n_rows; at = a->rows[at].parent)
        if (!strcmp(a->rows[at].kind, a->rows[i].kind))
            return true;
    return false;
}

static bool parent_counts(const struct nrg_attribution *a, size_t i, const char *name)
{
    size_t parent = a->rows[i].parent;
    if (parent >= a->n_rows)
        return false;
    for (size_t k = 0; k < a->rows[parent].n_counts; k++)
        if (!strcmp(a->rows[parent].counts[k].name, name))
            return true;
    return false;
}

static void add(struct nrg_unit_use *units, size_t *n, size_t max, const char *name,
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
    units[at].time_s += row->time_s;
}

size_t nrg_attribution_units(const struct nrg_attribution_report *report,
                             struct nrg_unit_use *units, size_t max)
{
    const struct nrg_attribution *a = report->paths ? report->paths : report->attribution;
    size_t n = 0;
    for (size_t i = 0; i < a->n_rows; i++) {
        const struct nrg_attribution_row *row = &a->rows[i];
        if (is_unit(row) && !inside_own_kind(a, i))
            add(units, &n, max, row->name, row->kind, row, (double)row->calls);
    }
    for (size_t i = 0; i < a->n_rows; i++)
        for (size_t k = 0; k < a->rows[i].n_counts; k++) {
            const struct nrg_row_count *count = &a->rows[i].counts[k];
            if (!parent_counts(a, i, count->name))
                add(units, &n, max, count->name, NRG_KIND_COUNTER, &a->rows[i], count->amount);
        }
    return n;
}

/*
 * Counts (tokens, samples, requests) per row: what was counted while a span of it was open, and
 * directly in it, while it was the innermost one. The walk notes a count at the innermost span
 * only, or at the top when its thread has none open; here it goes to all rows that hold that place.
 */
#include <errno.h>
#include <stdlib.h>

#include "attribute/internal.h"
#include "base/mem.h"

struct lists {
    struct nrg_arena memory; /* of the arrays */
    struct nrg_counts counts;
    uint32_t *list, *direct, *stamp; /* per node of the view */
};

int nrg_counts_add(struct nrg_counts *counts, uint32_t *list, uint32_t name, double amount)
{
    for (uint32_t i = *list; i; i = counts->items[i - 1].next)
        if (counts->items[i - 1].name == name) {
            counts->items[i - 1].amount += amount;
            return 0;
        }
    const struct nrg_count_sum fresh = {name, *list, amount};
    int rc = nrg_append(&counts->items, &counts->n, &counts->cap, &fresh, sizeof fresh);
    if (!rc)
        *list = (uint32_t)counts->n;
    return rc;
}

/* One count of one place to each row that holds it, once. */
static int count_upwards(struct lists *l, const struct nrg_engine *e, const struct nrg_view *v,
                         size_t place, const struct nrg_count_sum *count, uint32_t stamp)
{
    int rc = nrg_counts_add(&l->counts, &l->direct[v->view_of[place]], count->name, count->amount);
    for (size_t at = place; !rc && at; at = e->walk.rows->nodes[at].parent)
        for (uint32_t node = v->view_of[at]; !rc && node && l->stamp[node] != stamp;
             node = v->nodes[node].parent) {
            l->stamp[node] = stamp;
            rc = nrg_counts_add(&l->counts, &l->list[node], count->name, count->amount);
        }
    return rc;
}

static double amount_of(const struct nrg_counts *counts, uint32_t list, uint32_t name)
{
    for (uint32_t i = list; i; i = counts->items[i - 1].next)
        if (counts->items[i - 1].name == name)
            return counts->items[i - 1].amount;
    return 0;
}

/* A list as rows have it, with what of it is in another list. */
static struct nrg_row_count *name_counts(const struct nrg_counts *from, uint32_t list,
                                         uint32_t direct, const struct nrg_span_catalog *c,
                                         struct nrg_arena *arena, size_t *n)
{
    size_t n_items = 0;
    for (uint32_t i = list; i; i = from->items[i - 1].next)
        n_items++;
    struct nrg_row_count *counts = nrg_arena_array(arena, n_items, sizeof *counts);
    *n = 0;
    for (uint32_t i = list; counts && i; i = from->items[i - 1].next) {
        uint32_t name = from->items[i - 1].name;
        counts[(*n)++] =
            (struct nrg_row_count){name < c->n_names ? c->names[name].text : "(unknown name)",
                                   from->items[i - 1].amount, amount_of(from, direct, name)};
    }
    return counts;
}

static int fill_row(struct nrg_attribution_row *row, const struct lists *l, uint32_t node,
                    const struct nrg_engine *e, struct nrg_arena *arena)
{
    row->counts =
        name_counts(&l->counts, l->list[node], l->direct[node], &e->catalog, arena, &row->n_counts);
    return row->counts ? 0 : -ENOMEM;
}

int nrg_rows_counted_outside(const struct nrg_engine *e, struct nrg_arena *arena,
                             struct nrg_row_count **counts, size_t *n)
{
    uint32_t list = e->rows[0].counts;
    *counts = list ? name_counts(&e->counts, list, list, &e->catalog, arena, n) : NULL;
    if (!list)
        *n = 0;
    return !list || *counts ? 0 : -ENOMEM;
}

int nrg_rows_counts(const struct nrg_engine *e, const struct nrg_view *v,
                    struct nrg_attribution_row *rows, const size_t *row_of, struct nrg_arena *arena)
{
    struct lists l = {0};
    if (!e->counts.n)
        return 0;
    l.list = nrg_arena_array(&l.memory, v->n + 1, sizeof *l.list);
    l.direct = nrg_arena_array(&l.memory, v->n + 1, sizeof *l.direct);
    l.stamp = nrg_arena_array(&l.memory, v->n + 1, sizeof *l.stamp);
    int rc = l.memory.failed ? -ENOMEM : 0;
    uint32_t stamp = 0;
    for (size_t place = 1; !rc && place < e->walk.rows->n; place++)
        for (uint32_t i = e->rows[place].counts; !rc && i; i = e->counts.items[i - 1].next)
            rc = count_upwards(&l, e, v, place, &e->counts.items[i - 1], ++stamp);
    for (size_t node = 1; !rc && node < v->n; node++)
        if (l.list[node])
            rc = fill_row(&rows[row_of[node]], &l, (uint32_t)node, e, arena);
    free(l.counts.items);
    nrg_arena_release(&l.memory);
    return rc;
}

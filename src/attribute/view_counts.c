/*
 * Counts (tokens, samples, requests) per row: what was counted while a span of it was open. The
 * walk notes a count at the innermost span only; here it goes to all rows that hold that place.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/rows_memory.h"
#include "attribute/view.h"
#include "base/mem.h"

struct lists {
    struct nrg_count_sum *sums;
    size_t n, cap;
    uint32_t *head, *stamp; /* per node of the view */
    uint32_t *length;
};

static int add(struct lists *l, uint32_t node, const struct nrg_count_sum *count)
{
    for (uint32_t i = l->head[node]; i; i = l->sums[i - 1].next)
        if (l->sums[i - 1].name == count->name) {
            l->sums[i - 1].amount += count->amount;
            return 0;
        }
    int rc = nrg_reserve(&l->sums, &l->cap, l->n + 1, sizeof *l->sums);
    if (rc)
        return rc;
    l->sums[l->n++] = (struct nrg_count_sum){count->name, l->head[node], count->amount};
    l->head[node] = (uint32_t)l->n;
    l->length[node]++;
    return 0;
}

/* One count of one place to each row that holds it, once. */
static int spread(struct lists *l, struct nrg_engine *e, const struct nrg_view *v, size_t place,
                  const struct nrg_count_sum *count, uint32_t stamp)
{
    int rc = 0;
    for (size_t at = place; !rc && at; at = e->walk.rows->nodes[at].parent)
        for (uint32_t node = v->view_of[at]; !rc && node && l->stamp[node] != stamp;
             node = v->nodes[node].parent) {
            l->stamp[node] = stamp;
            rc = add(l, node, count);
        }
    return rc;
}

static int fill_row(struct nrg_attribution_row *row, const struct lists *l, uint32_t node,
                    struct nrg_engine *e, struct nrg_arena *arena)
{
    const struct nrg_span_catalog *c = &e->catalog;
    struct nrg_row_count *counts = nrg_arena_array(arena, l->length[node], sizeof *counts);
    if (!counts)
        return -ENOMEM;
    row->counts = counts;
    for (uint32_t i = l->head[node]; i; i = l->sums[i - 1].next) {
        uint32_t name = l->sums[i - 1].name;
        counts[row->n_counts++] = (struct nrg_row_count){
            name < c->n_names ? c->names[name].text : "(unknown name)", l->sums[i - 1].amount};
    }
    return 0;
}

int nrg_rows_counts(struct nrg_engine *e, const struct nrg_view *v, const size_t *row_of,
                    struct nrg_arena *arena)
{
    struct lists l = {0};
    int rc = 0;
    if (!e->n_counts)
        return 0;
    l.head = calloc(v->n + 1, sizeof *l.head);
    l.stamp = calloc(v->n + 1, sizeof *l.stamp);
    l.length = calloc(v->n + 1, sizeof *l.length);
    if (!l.head || !l.stamp || !l.length)
        rc = -ENOMEM;
    uint32_t stamp = 0;
    for (size_t place = 1; !rc && place < e->walk.rows->n; place++)
        for (uint32_t i = e->rows[place].counts; !rc && i; i = e->counts[i - 1].next)
            rc = spread(&l, e, v, place, &e->counts[i - 1], ++stamp);
    for (size_t node = 1; !rc && node < v->n; node++)
        if (l.length[node])
            rc = fill_row(&e->out->rows[row_of[node]], &l, (uint32_t)node, e, arena);
    free(l.sums);
    free(l.head);
    free(l.stamp);
    free(l.length);
    return rc;
}

/*
 * Bounds of a view's rows by CPU time (cputime.h). A row was open while any place inside it was:
 * their times are added up slot by slot before the bounds are taken. Over slots bounds add up end
 * to end, because a row that waits does so each time; the rounding of busy time adds up as squares.
 */
#include <errno.h>

#include "attribute/cputime/cputime.h"

struct adder {
    const struct nrg_engine *e;
    struct nrg_view *v;
    struct nrg_arena memory;
    double *open_s;    /* per node of the view: in this slot; 0: not touched */
    uint32_t *touched; /* nodes */
    size_t n;
    uint32_t *stamp; /* per node, of a flat view: the entry that it was counted for, from 1 */
};

static void add_time(struct adder *a, uint32_t node, double open_s)
{
    if (!(open_s > 0))
        return;
    if (!(a->open_s[node] > 0))
        a->touched[a->n++] = node;
    a->open_s[node] += open_s;
}

/* All rows that hold a place; in a flat view, those of all names above it. */
static void add_inside(struct adder *a, const struct nrg_cpu_entry *entry, uint32_t number)
{
    double open_s = (double)entry->open_s;
    if (a->v->by != NRG_BY_NAME) {
        for (uint32_t at = a->v->view_of[entry->place]; at; at = a->v->nodes[at].parent)
            add_time(a, at, open_s);
        return;
    }
    for (size_t up = entry->place; up; up = a->e->walk.rows->nodes[up].parent) {
        uint32_t at = a->v->view_of[up];
        if (a->stamp[at] != number)
            add_time(a, at, open_s);
        a->stamp[at] = number;
    }
}

static void add_bounds(struct nrg_row_error *error, const struct nrg_cpu_bounds *b, double price,
                       double noise)
{
    double random_j = b->own_s * price * noise;
    error->below_j += (b->own_s - b->least_s) * price;
    error->above_j += (b->most_s - b->own_s) * price;
    error->variance_j2 += random_j * random_j;
}

/* Takes the bounds of what was added up. */
static void end_slot(struct adder *a, size_t i, bool whole)
{
    const struct nrg_cpu_time *t = a->e->cpu_time;
    size_t n_parts = a->e->n_parts;
    for (size_t k = 0; k < a->n; k++) {
        uint32_t node = a->touched[k];
        struct nrg_cpu_bounds b = nrg_cpu_bounds(t, &t->slots[i], a->open_s[node]);
        a->open_s[node] = 0;
        for (size_t p = 0; p < n_parts; p++) {
            struct nrg_row_part *part = &a->v->parts[node * n_parts + p];
            if (a->e->parts[p].method == NRG_METHOD_CPU_TIME)
                add_bounds(whole ? &part->whole : &part->self, &b,
                           (double)t->price[i * n_parts + p], (double)t->slots[i].noise);
        }
    }
    a->n = 0;
}

int nrg_cputime_errors(const struct nrg_engine *e, struct nrg_view *v)
{
    const struct nrg_cpu_time *t = e->cpu_time;
    struct adder a = {.e = e, .v = v};
    if (!t)
        return 0;
    a.open_s = nrg_arena_array(&a.memory, v->n + 1, sizeof *a.open_s);
    a.touched = nrg_arena_array(&a.memory, v->n + 1, sizeof *a.touched);
    a.stamp = nrg_arena_array(&a.memory, v->n + 1, sizeof *a.stamp);
    int rc = a.memory.failed ? -ENOMEM : 0;
    for (size_t i = 0; !rc && i < t->n_slots; i++) {
        size_t first = t->slots[i].first;
        size_t end = i + 1 < t->n_slots ? t->slots[i + 1].first : t->n_entries;
        for (size_t j = first; j < end; j++)
            add_time(&a, v->view_of[t->entries[j].place], (double)t->entries[j].open_s);
        end_slot(&a, i, false);
        for (size_t j = first; j < end; j++)
            add_inside(&a, &t->entries[j], (uint32_t)j + 1);
        end_slot(&a, i, true);
    }
    nrg_arena_release(&a.memory);
    return rc;
}

/*
 * How far off a view's rows may be by CPU time (cputime.h), for each kind of strand. There are two
 * answers, and the closer one is taken:
 *
 * Bounds. A row was open while any place inside it was: their times are added up slot by slot
 * before the bounds are taken. Over slots bounds add up end to end, because a row that waits does
 * so each time.
 *
 * Doubts of the rates (rates.c). What one place has too much its neighbour has too little, so
 * what a doubt moves is added up over the places of a row first; then squares add up.
 *
 * The rounding of busy time comes on top (rounding.c). It is that of a cell, whatever strand.
 */
#include <errno.h>
#include <math.h>

#include "attribute/cputime/cputime.h"

struct sums {
    double below_j, above_j; /* by bounds */
    double variance_j2;      /* by doubts; INFINITY: a place inside has no rate */
};

struct adder {
    const struct nrg_engine *e;
    struct nrg_view *v;
    bool whole;  /* rows with all that is inside; false: their own spans */
    size_t kind; /* of strands */
    struct nrg_arena memory;
    struct nrg_cpu_rounding rounding; /* of [node * n_parts + part] */
    uint32_t *order;                  /* slots, by their cells */
    double *open_s, *own_s;           /* per node of the view: in this slot; 0: not touched */
    double *moved_j;                  /* per node: by this doubt */
    uint32_t *touched;                /* nodes */
    size_t n;
    uint32_t *holding; /* the nodes that hold a place */
    uint32_t *stamp;   /* per node, of a flat view: the place that it was listed for, from 1 */
    uint32_t stamps;
    struct sums *sums; /* [(kind * n + node) * n_parts + part] */
};

/* All rows that hold a place; in a flat view, those of all names above it. Returns how many. */
static size_t find_holding(struct adder *a, uint32_t place)
{
    const struct nrg_view *v = a->v;
    size_t n = 0;
    if (!a->whole || v->by != NRG_BY_NAME) {
        for (uint32_t at = v->view_of[place]; at; at = a->whole ? v->nodes[at].parent : 0)
            a->holding[n++] = at;
        return n;
    }
    a->stamps++;
    for (size_t up = place; up; up = a->e->walk.rows->nodes[up].parent) {
        uint32_t at = v->view_of[up];
        if (a->stamp[at] != a->stamps)
            a->holding[n++] = at;
        a->stamp[at] = a->stamps;
    }
    return n;
}

static void add_entry(struct adder *a, const struct nrg_cpu_entry *entry)
{
    size_t n = entry->open_s > 0 ? find_holding(a, entry->place) : 0;
    for (size_t k = 0; k < n; k++) {
        uint32_t node = a->holding[k];
        if (!(a->open_s[node] > 0))
            a->touched[a->n++] = node;
        a->open_s[node] += (double)entry->open_s;
        a->own_s[node] += (double)entry->own_s;
    }
}

static struct sums *sums_of(const struct adder *a, size_t node)
{
    return &a->sums[(a->kind * (a->v->n + 1) + node) * a->e->n_parts];
}

/* Takes the bounds of what was added up. */
static void end_slot(struct adder *a, size_t i)
{
    const struct nrg_cpu_time *t = a->e->cpu_time;
    const struct nrg_cpu_slot *slot = &t->slots[i];
    size_t n_parts = a->e->n_parts;
    for (size_t k = 0; k < a->n; k++) {
        uint32_t node = a->touched[k];
        struct nrg_cpu_bounds b = nrg_cpu_bounds(t, slot, a->open_s[node], a->own_s[node]);
        struct sums *sums = sums_of(a, node);
        a->open_s[node] = a->own_s[node] = 0;
        for (size_t p = 0; p < n_parts; p++) {
            double price = (double)t->price[i * n_parts + p];
            sums[p].below_j += (b.own_s - b.least_s) * price;
            sums[p].above_j += (b.most_s - b.own_s) * price;
            nrg_cpu_rounding_add(&a->rounding, node * n_parts + p, slot,
                                 b.own_s * fmax(price, t->mean_price[p]));
        }
    }
    a->n = 0;
}

/* What one doubt moves, of all rows. */
static void add_doubt(struct adder *a, size_t p, const double *moved)
{
    const struct nrg_cpu_rates *r = &a->e->cpu_time->rates[a->kind];
    size_t n_parts = a->e->n_parts;
    for (size_t c = 0; c < r->n_own; c++) {
        size_t n = find_holding(a, r->place_of[c]);
        double off_j = moved[c] * r->work_j[c * n_parts + p];
        for (size_t k = 0; !r->shared && k < r->n_shapes; k++) { /* of all: 0 for each, nearly */
            size_t shape = nrg_cpu_shape(r, c, k);
            off_j += moved[shape] * r->work_j[shape * n_parts + p];
        }
        for (size_t k = 0; k < n; k++)
            a->moved_j[a->holding[k]] += off_j;
    }
    for (size_t c = 0; c < r->n_own; c++) {
        size_t n = find_holding(a, r->place_of[c]);
        for (size_t k = 0; k < n; k++) {
            double *moved_j = &a->moved_j[a->holding[k]];
            sums_of(a, a->holding[k])[p].variance_j2 += *moved_j * *moved_j;
            *moved_j = 0;
        }
    }
}

static void add_doubts(struct adder *a)
{
    const struct nrg_cpu_rates *r = &a->e->cpu_time->rates[a->kind];
    for (size_t p = 0; p < a->e->n_parts; p++)
        for (size_t d = 0; r->n && d < r->n_doubts; d++)
            if (a->e->parts[p].method == NRG_METHOD_CPU_TIME)
                add_doubt(a, p, r->moved + d * r->n);
}

/* Rows that hold a place without a rate of its own have bounds alone. */
static void mark_unknown(struct adder *a, const struct nrg_cpu_entry *entry)
{
    const struct nrg_cpu_rates *r = &a->e->cpu_time->rates[a->kind];
    if (r->n && r->n_doubts && r->column_of[entry->place] < r->n_own)
        return;
    size_t n = find_holding(a, entry->place);
    for (size_t k = 0; k < n; k++)
        for (size_t p = 0; p < a->e->n_parts; p++)
            sums_of(a, a->holding[k])[p].variance_j2 = INFINITY;
}

static void add_slots(struct adder *a)
{
    const struct nrg_cpu_time *t = a->e->cpu_time;
    for (size_t k = 0; k < t->n_slots; k++) {
        size_t i = a->order[k];
        a->kind = t->slots[i].kind;
        nrg_cpu_rounding_move(&a->rounding, t->slots[i].cell);
        for (size_t j = t->slots[i].first; j < nrg_cpu_slot_end(t, i); j++) {
            add_entry(a, &t->entries[j]);
            mark_unknown(a, &t->entries[j]);
        }
        end_slot(a, i);
    }
    nrg_cpu_rounding_move(&a->rounding, SIZE_MAX);
}

/* The closer of the two answers. */
static void settle_kind(struct adder *a)
{
    double t = a->e->cpu_time->rates[a->kind].t;
    for (size_t k = 0; k < a->v->n * a->e->n_parts; k++) {
        struct nrg_row_error *error = a->whole ? &a->v->parts[k].whole : &a->v->parts[k].self;
        struct sums *sums = sums_of(a, 0) + k;
        double half_j = isfinite(sums->variance_j2) ? t * sqrt(sums->variance_j2) : INFINITY;
        error->below_j += fmin(sums->below_j, half_j);
        error->above_j += fmin(sums->above_j, half_j);
        error->doubt_j += half_j;
        *sums = (struct sums){0};
    }
}

static void settle_rounding(struct adder *a)
{
    for (size_t k = 0; k < a->v->n * a->e->n_parts; k++) {
        struct nrg_row_error *error = a->whole ? &a->v->parts[k].whole : &a->v->parts[k].self;
        nrg_cpu_rounding_take(&a->rounding, k, error);
    }
}

/* Slots in order of their cells. */
static int set_order(struct adder *a)
{
    const struct nrg_cpu_time *t = a->e->cpu_time;
    size_t *at = nrg_arena_array(&a->memory, t->n_cells + 2, sizeof *at);
    a->order = nrg_arena_array(&a->memory, t->n_slots + 1, sizeof *a->order);
    if (a->memory.failed)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_slots; i++)
        at[t->slots[i].cell + 1]++;
    for (size_t k = 0; k < t->n_cells; k++)
        at[k + 1] += at[k];
    for (size_t i = 0; i < t->n_slots; i++)
        a->order[at[t->slots[i].cell]++] = (uint32_t)i;
    return 0;
}

static int prepare(struct adder *a)
{
    size_t n = a->v->n + 1, deep = a->e->walk.rows->n + n;
    a->open_s = nrg_arena_array(&a->memory, n, sizeof *a->open_s);
    a->own_s = nrg_arena_array(&a->memory, n, sizeof *a->own_s);
    a->moved_j = nrg_arena_array(&a->memory, n, sizeof *a->moved_j);
    a->touched = nrg_arena_array(&a->memory, n, sizeof *a->touched);
    a->stamp = nrg_arena_array(&a->memory, n, sizeof *a->stamp);
    a->holding = nrg_arena_array(&a->memory, deep, sizeof *a->holding);
    a->sums = nrg_arena_array(&a->memory, NRG_CPU_KINDS * n * a->e->n_parts + 1, sizeof *a->sums);
    int rc = nrg_cpu_rounding_init(&a->rounding, a->e->cpu_time, &a->memory, n * a->e->n_parts + 1);
    return rc ? rc : set_order(a);
}

int nrg_cputime_errors(const struct nrg_engine *e, struct nrg_view *v)
{
    struct adder a = {.e = e, .v = v};
    if (!e->cpu_time)
        return 0;
    int rc = prepare(&a);
    for (int pass = 0; !rc && pass < 2; pass++) {
        a.whole = pass;
        for (a.kind = 0; a.kind < NRG_CPU_KINDS; a.kind++)
            add_doubts(&a);
        add_slots(&a);
        for (a.kind = 0; a.kind < NRG_CPU_KINDS; a.kind++)
            settle_kind(&a);
        settle_rounding(&a);
    }
    nrg_arena_release(&a.memory);
    return rc;
}

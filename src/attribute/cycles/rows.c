/*
 * See rows.h. Rows are a walk through the tree, so a cycle's layers stand right behind it,
 * mostly in the order in which the log lists them: the search goes on where it ended.
 */
#include "attribute/cycles/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/internal.h"
#include "base/search.h"

struct cycle_place {
    int64_t number;
    size_t row;
};

struct finder {
    struct nrg_arena memory; /* of the arrays */
    struct nrg_cycles *c;
    struct nrg_attribution *a;
    const struct nrg_layer_run *runs;
    const struct nrg_span_catalog *catalog;
    struct cycle_place *places; /* sorted by number */
    size_t n_places;
    size_t *layer_of; /* per name of the catalog: the row that it was last found in */
    size_t cycle_row, hint;
};

static int by_number(const void *left, const void *right)
{
    const struct cycle_place *a = left, *b = right;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return a->row < b->row ? -1 : 1;
}

static int find_cycles(struct finder *f)
{
    f->places = nrg_arena_array(&f->memory, f->a->n_rows + 1, sizeof *f->places);
    f->layer_of = nrg_arena_array(&f->memory, f->catalog->n_names + 1, sizeof *f->layer_of);
    if (f->memory.failed)
        return -ENOMEM;
    for (size_t i = 0; i < f->a->n_rows; i++)
        if (!strcmp(f->a->rows[i].kind, NRG_KIND_CYCLE) && f->a->rows[i].number != NRG_MISSING)
            f->places[f->n_places++] = (struct cycle_place){f->a->rows[i].number, i};
    qsort(f->places, f->n_places, sizeof *f->places, by_number);
    for (size_t i = 0; i < f->catalog->n_names; i++)
        f->layer_of[i] = SIZE_MAX;
    return 0;
}

static size_t cycle_row_of(const struct finder *f, int64_t number)
{
    size_t at = nrg_count_below(&f->places->number, f->n_places, sizeof *f->places, number);
    return at < f->n_places && f->places[at].number == number ? f->places[at].row : SIZE_MAX;
}

static bool is_layer(const struct nrg_attribution_row *row, const char *name)
{
    return !strcmp(row->kind, NRG_KIND_LAYER) && !strcmp(row->name, name);
}

/* Below a cycle's row, from the one after the last that was found, around the end. */
static size_t row_in_cycle(struct finder *f, size_t cycle, const char *name)
{
    const struct nrg_attribution_row *rows = f->a->rows;
    size_t end = cycle + 1;
    while (end < f->a->n_rows && rows[end].depth > rows[cycle].depth)
        end++;
    size_t n = end - cycle - 1, first = f->cycle_row == cycle ? f->hint + 1 : cycle + 1;
    f->cycle_row = cycle;
    for (size_t k = 0; k < n; k++) {
        size_t at = first + k < end ? first + k : first + k - n;
        if (at > cycle && at < end && is_layer(&rows[at], name))
            return f->hint = at;
    }
    return SIZE_MAX;
}

/* The row that has the layer in all cycles. */
static size_t row_of_all(struct finder *f, const struct nrg_span_name *name)
{
    size_t *known = &f->layer_of[name - f->catalog->names];
    for (size_t i = 0; *known == SIZE_MAX && i < f->a->n_rows; i++)
        if (is_layer(&f->a->rows[i], name->text))
            *known = i;
    return *known;
}

/* ---- rows that are added ---- */

static struct nrg_attribution_row execution_row(const struct nrg_attribution_row *layer,
                                                const struct nrg_execution *e, size_t parent)
{
    struct nrg_attribution_row row = nrg_row_unknown(layer->name, layer->kind, layer->detail);
    row.parent = parent;
    row.depth = layer->depth + 1;
    row.number = e->cycle;
    row.calls = 1;
    row.time_s = row.self_time_s = (double)(e->end_ns - e->begin_ns) / 1e9;
    row.method = layer->method;
    return row;
}

/* Executions below the row of their layer, in the order of the log. */
struct insertion {
    size_t *first, *next; /* per old row, per execution: a list; SIZE_MAX ends it */
    size_t *moved;        /* per old row: its new number */
};

static void list_by_layer(const struct finder *f, const bool *added, struct insertion *in)
{
    for (size_t i = 0; i < f->a->n_rows; i++)
        in->first[i] = SIZE_MAX;
    for (size_t i = f->c->n; i-- > 0;)
        if (added[i]) {
            in->next[i] = in->first[f->c->executions[i].row];
            in->first[f->c->executions[i].row] = i;
        }
}

static void copy_rows(struct finder *f, const struct insertion *in, const bool *added,
                      struct nrg_attribution_row *rows)
{
    struct nrg_attribution *a = f->a;
    size_t n = 0;
    for (size_t i = 0; i < a->n_rows; i++) {
        in->moved[i] = n;
        rows[n++] = a->rows[i];
        for (size_t k = in->first[i]; k != SIZE_MAX; k = in->next[k]) {
            rows[n] = execution_row(&a->rows[i], &f->c->executions[k], in->moved[i]);
            f->c->executions[k].row = n++;
        }
    }
    for (size_t i = 0; i < a->n_rows; i++) {
        struct nrg_attribution_row *row = &rows[in->moved[i]];
        if (row->parent < a->n_rows)
            row->parent = in->moved[row->parent];
        if (row->merged_with < a->n_rows)
            row->merged_with = in->moved[row->merged_with];
    }
    for (size_t i = 0; i < f->c->n; i++)
        if (!added[i] && f->c->executions[i].row < a->n_rows)
            f->c->executions[i].row = in->moved[f->c->executions[i].row];
    a->rows = rows;
    a->n_rows = n;
}

static int add_rows(struct finder *f, const bool *added, size_t n_added)
{
    size_t n = f->a->n_rows;
    struct nrg_rows_memory *memory = f->a->memory;
    struct insertion in = {nrg_arena_array(&f->memory, n + 1, sizeof *in.first),
                           nrg_arena_array(&f->memory, f->c->n + 1, sizeof *in.next),
                           nrg_arena_array(&f->memory, n + 1, sizeof *in.moved)};
    struct nrg_attribution_row *rows =
        nrg_arena_array(&memory->arena, n + n_added + 1, sizeof *rows);
    if (f->memory.failed || !rows)
        return -ENOMEM;
    list_by_layer(f, added, &in);
    copy_rows(f, &in, added, rows);
    return 0;
}

static int place_executions(struct finder *f)
{
    bool *added = nrg_arena_array(&f->memory, f->c->n + 1, sizeof *added);
    size_t n_added = 0;
    if (!added)
        return -ENOMEM;
    for (size_t i = 0; i < f->c->n; i++) {
        struct nrg_execution *e = &f->c->executions[i];
        const struct nrg_span_name *name = nrg_span_catalog_name(f->catalog, f->runs[i].name);
        size_t cycle = cycle_row_of(f, e->cycle);
        e->row = name && cycle != SIZE_MAX ? row_in_cycle(f, cycle, name->text) : SIZE_MAX;
        if (e->row != SIZE_MAX || !name)
            continue;
        e->row = row_of_all(f, name);
        added[i] = e->row != SIZE_MAX;
        n_added += added[i];
    }
    return n_added ? add_rows(f, added, n_added) : 0;
}

int nrg_cycle_rows_find(struct nrg_cycles *cycles, struct nrg_attribution *attribution,
                        const struct nrg_layer_run *runs)
{
    const struct nrg_rows_memory *memory = attribution->memory;
    struct finder f = {.c = cycles,
                       .a = attribution,
                       .runs = runs,
                       .catalog = &memory->catalog,
                       .cycle_row = SIZE_MAX};
    int rc = find_cycles(&f);
    if (!rc)
        rc = place_executions(&f);
    nrg_arena_release(&f.memory);
    return rc;
}

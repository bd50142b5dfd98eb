/*
 * Views (internal.h): how places become rows, and what adds up on the way. Modules are mapped by
 * module.c.
 */
#include "attribute/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int64_t nrg_view_node(struct nrg_view *v, const struct nrg_engine *e, struct nrg_view_node node)
{
    if (nrg_reserve(&v->nodes, &v->cap, v->n + 1, sizeof *v->nodes) ||
        nrg_reserve(&v->parts, &v->cap_parts, (v->n + 1) * e->n_parts + 1, sizeof *v->parts))
        return -ENOMEM;
    v->nodes[v->n] = node;
    for (size_t p = 0; p < e->n_parts; p++)
        v->parts[v->n * e->n_parts + p] = (struct nrg_row_part){0};
    return (int64_t)v->n++;
}

/* Classes that only pass calls on: the model is what they wrap. */
static bool is_wrapper(const struct nrg_span_name *name)
{
    static const char *const wrappers[] = {"DataParallel", "DistributedDataParallel",
                                           "FullyShardedDataParallel", "CheckpointWrapper"};
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
        if (!strcmp(name->detail, wrappers[i]))
            return true;
    return false;
}

/* The outermost module of those that a module was called in; NULL: it is none. */
static const char *root_of(const struct nrg_engine *e, const struct nrg_span_node *place)
{
    const struct nrg_span_catalog *c = &e->catalog;
    const char *root = NULL;
    for (bool inner = true;; inner = false) {
        const struct nrg_span_name *name = place->name < c->n_names ? &c->names[place->name] : NULL;
        bool module = name && (!strcmp(name->kind, NRG_KIND_MODULE) ||
                               !strcmp(name->kind, NRG_KIND_BACKWARD));
        if (inner && !module)
            return NULL;
        if (module && (!root || !is_wrapper(name)))
            root = name->text;
        if (!place->parent)
            return root;
        place = &e->walk.rows->nodes[place->parent];
    }
}

struct nrg_view_node nrg_view_describe(const struct nrg_engine *e,
                                       const struct nrg_span_node *place)
{
    const struct nrg_span_catalog *c = &e->catalog;
    if (place->name >= c->n_names)
        return (struct nrg_view_node){
            .name = "(unknown name)", .kind = NRG_KIND_SPAN, .detail = "", .number = place->number};
    const struct nrg_span_name *name = &c->names[place->name];
    return (struct nrg_view_node){.name = name->text,
                                  .kind = name->kind,
                                  .detail = name->detail,
                                  .root = root_of(e, place),
                                  .number = place->number};
}

static int map_places(struct nrg_view *v, const struct nrg_engine *e)
{
    const struct nrg_span_tree *tree = e->walk.rows;
    for (size_t i = 1; i < tree->n; i++) {
        struct nrg_view_node node = nrg_view_describe(e, &tree->nodes[i]);
        node.parent = tree->nodes[i].parent;
        int64_t at = nrg_view_node(v, e, node);
        if (at < 0)
            return (int)at;
        v->view_of[i] = (uint32_t)at;
    }
    return 0;
}

static int by_kind_and_text(const void *a, const void *b, void *arg)
{
    const struct nrg_span_name *names = arg;
    const uint32_t *x = a, *y = b;
    int c = strcmp(names[*x].kind, names[*y].kind);
    if (!c)
        c = strcmp(names[*x].text, names[*y].text);
    return c ? c : *x < *y ? -1 : *x > *y;
}

/* same[i]: the first name of the same kind and text. */
static void find_same(const struct nrg_span_catalog *c, uint32_t *order, uint32_t *same)
{
    for (size_t i = 0; i < c->n_names; i++)
        order[i] = (uint32_t)i;
    if (c->n_names)
        qsort_r(order, c->n_names, sizeof *order, by_kind_and_text, c->names);
    for (size_t i = 0; i < c->n_names; i++) {
        const struct nrg_span_name *name = &c->names[order[i]];
        const struct nrg_span_name *last = i ? &c->names[order[i - 1]] : NULL;
        bool equal = last && !strcmp(name->kind, last->kind) && !strcmp(name->text, last->text);
        same[order[i]] = equal ? same[order[i - 1]] : order[i];
    }
    same[c->n_names] = (uint32_t)c->n_names;
}

static int map_names(struct nrg_view *v, const struct nrg_engine *e)
{
    const struct nrg_span_tree *tree = e->walk.rows;
    size_t n = e->catalog.n_names + 1;
    uint32_t *order = nrg_arena_array(&v->memory, n, sizeof *order);
    uint32_t *same = nrg_arena_array(&v->memory, n, sizeof *same);
    uint32_t *node_of = nrg_arena_array(&v->memory, n, sizeof *node_of);
    if (v->memory.failed)
        return -ENOMEM;
    find_same(&e->catalog, order, same);
    for (size_t i = 1; i < tree->n; i++) {
        uint32_t *node = &node_of[same[tree->nodes[i].name]];
        int64_t at = *node ? *node : nrg_view_node(v, e, nrg_view_describe(e, &tree->nodes[i]));
        if (at < 0)
            return (int)at;
        v->view_of[i] = *node = (uint32_t)at;
    }
    return 0;
}

static void add_sums(struct nrg_view *v, const struct nrg_engine *e, size_t place)
{
    uint32_t at = v->view_of[place];
    struct nrg_row_sums *to = &v->nodes[at].sums;
    const struct nrg_row_sums *from = &e->rows[place];
    uint32_t name = e->walk.rows->nodes[place].name;
    bool backward = v->by == NRG_BY_MODULE && name < e->catalog.n_names &&
                    !strcmp(e->catalog.names[name].kind, NRG_KIND_BACKWARD);
    *(backward ? &v->nodes[at].other_calls : &to->calls) += from->calls;
    to->stretches += from->stretches;
    to->self_ns += from->self_ns;
    to->work_s += from->work_s;
    to->flags |= from->flags;
    if (from->merged_with && v->view_of[from->merged_with] != at)
        to->merged_with = v->view_of[from->merged_with];
    for (size_t p = 0; p < e->n_parts; p++) {
        struct nrg_row_part *part = &v->parts[at * e->n_parts + p];
        const struct nrg_row_part *more = &e->row_parts[place * e->n_parts + p];
        part->energy_j += more->energy_j;
        part->covered_ns += more->covered_ns;
        part->moved_ns += more->moved_ns;
        part->unknown += more->unknown;
        part->others_j += more->others_j;
        nrg_row_error_add(&part->self, &more->self);
    }
}

bool nrg_view_holds(const struct nrg_view *v, uint32_t outer, uint32_t inner)
{
    while (inner && inner != outer)
        inner = v->nodes[inner].parent;
    return inner == outer;
}

/* The error of a place's spans goes to all rows that they enter. */
static void add_entry(struct nrg_view *v, const struct nrg_engine *e, size_t place)
{
    uint32_t at = v->view_of[place], around = v->view_of[e->walk.rows->nodes[place].parent];
    bool apart = e->survey.rows_elsewhere[place];
    for (; at && (apart || !nrg_view_holds(v, at, around)); at = v->nodes[at].parent)
        for (size_t p = 0; p < e->n_parts; p++)
            nrg_row_error_add(&v->parts[at * e->n_parts + p].whole,
                              &e->row_parts[place * e->n_parts + p].whole);
}

/* Of a flat view: a place is inside all names that stand above it, once in each. */
static void add_inside(struct nrg_view *v, const struct nrg_engine *e, size_t place,
                       uint32_t *stamp)
{
    const struct nrg_row_sums *sums = &e->rows[place];
    for (size_t up = place; up; up = e->walk.rows->nodes[up].parent) {
        uint32_t at = v->view_of[up];
        if (stamp[at] == place)
            continue;
        stamp[at] = (uint32_t)place;
        v->inside_ns[at] += sums->self_ns;
        v->inside_work_s[at] += sums->work_s;
        for (size_t p = 0; p < e->n_parts; p++) {
            const struct nrg_row_part *part = &e->row_parts[place * e->n_parts + p];
            double *inside = &v->inside_j[at * e->n_parts + p];
            v->inside_others_j[at * e->n_parts + p] += part->others_j;
            if (nrg_row_known(e, p, sums, part))
                *inside = nrg_sum_known(*inside, part->energy_j);
        }
    }
}

static int sum_flat(struct nrg_view *v, const struct nrg_engine *e)
{
    uint32_t *stamp = nrg_arena_array(&v->memory, v->n + 1, sizeof *stamp);
    v->inside_ns = nrg_arena_array(&v->memory, v->n + 1, sizeof *v->inside_ns);
    v->inside_work_s = nrg_arena_array(&v->memory, v->n + 1, sizeof *v->inside_work_s);
    v->inside_j = nrg_arena_array(&v->memory, v->n * e->n_parts + 1, sizeof *v->inside_j);
    v->inside_others_j = nrg_arena_array(&v->memory, v->n * e->n_parts + 1, sizeof *v->inside_j);
    if (v->memory.failed)
        return -ENOMEM;
    for (size_t i = 0; i < v->n * e->n_parts; i++)
        v->inside_j[i] = NAN;
    for (size_t i = 1; i < e->walk.rows->n; i++)
        add_inside(v, e, i, stamp);
    return 0;
}

int nrg_view_make(struct nrg_view *v, const struct nrg_engine *e, enum nrg_rows_by by,
                  struct nrg_arena *arena)
{
    *v = (struct nrg_view){.by = by};
    v->view_of = nrg_arena_array(&v->memory, e->walk.rows->n + 1, sizeof *v->view_of);
    int rc = v->view_of ? 0 : -ENOMEM;
    if (!rc && nrg_view_node(v, e, (struct nrg_view_node){.number = NRG_MISSING}) < 0)
        rc = -ENOMEM;
    if (!rc)
        rc = by == NRG_BY_NAME     ? map_names(v, e)
             : by == NRG_BY_MODULE ? nrg_view_modules(v, e, arena)
                                   : map_places(v, e);
    for (size_t i = 1; !rc && i < e->walk.rows->n; i++) {
        add_sums(v, e, i);
        add_entry(v, e, i);
    }
    if (!rc)
        rc = nrg_cputime_errors(e, v);
    for (size_t i = 1; !rc && i < v->n; i++)
        if (!v->nodes[i].sums.calls)
            v->nodes[i].sums.calls = v->nodes[i].other_calls;
    if (!rc && by == NRG_BY_NAME)
        rc = sum_flat(v, e);
    if (rc)
        nrg_view_release(v);
    return rc;
}

void nrg_view_release(struct nrg_view *v)
{
    free(v->nodes);
    free(v->parts);
    nrg_arena_release(&v->memory);
    *v = (struct nrg_view){0};
}

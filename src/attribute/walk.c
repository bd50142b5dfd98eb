/* See walk.h. Hostile recordings are bounded by MAX_OPEN here and by the limits of span_tree.h. */
#include "attribute/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* An end whose name is not found among this many innermost spans belongs to none of them. */
#define END_SEARCH 64
/* Spans of a track that are open at once; what comes on top is counted, not kept. */
#define MAX_OPEN ((size_t)1 << 20)

static const char *kind_of(enum nrg_rows_by by)
{
    return by == NRG_BY_STEP    ? NRG_KIND_STEP
           : by == NRG_BY_EPOCH ? NRG_KIND_EPOCH
           : by == NRG_BY_CYCLE ? NRG_KIND_CYCLE
                                : NULL;
}

/* What is inside a step or an epoch is part of its row; a cycle shows its layers. */
static bool folds_inside(enum nrg_rows_by by)
{
    return by == NRG_BY_STEP || by == NRG_BY_EPOCH;
}

static uint32_t name_index(const struct nrg_span_walk *w, int64_t id)
{
    const struct nrg_span_name *name = nrg_span_catalog_name(w->catalog, id);
    return name ? (uint32_t)(name - w->catalog->names) : (uint32_t)w->catalog->n_names;
}

/* Parents come before their children in the catalog; a missing parent is the top. */
static int resolve_paths(struct nrg_span_walk *w)
{
    const struct nrg_span_catalog *c = w->catalog;
    for (size_t i = 0; i < c->n_paths; i++) {
        const struct nrg_span_path *parent = nrg_span_catalog_path(c, c->paths[i].parent);
        uint32_t above = parent ? w->path_nodes[parent - c->paths] : 0;
        int64_t node =
            nrg_span_tree_child(&w->paths, above, name_index(w, c->paths[i].name), NRG_MISSING);
        if (node < 0)
            return (int)node;
        w->path_nodes[i] = (uint32_t)node;
    }
    return 0;
}

static int allocate_walk(struct nrg_span_walk *w)
{
    const struct nrg_span_catalog *c = w->catalog;
    w->stacks = nrg_arena_array(&w->memory, c->n_tracks + 1, sizeof *w->stacks);
    w->last_ns = nrg_arena_array(&w->memory, c->n_tracks + 1, sizeof *w->last_ns);
    w->end_ns = nrg_arena_array(&w->memory, c->n_tracks + 1, sizeof *w->end_ns);
    w->by_end = nrg_arena_array(&w->memory, c->n_tracks + 1, sizeof *w->by_end);
    w->path_nodes = nrg_arena_array(&w->memory, c->n_paths + 1, sizeof *w->path_nodes);
    w->name_is_numbered = nrg_arena_array(&w->memory, c->n_names + 1, 1);
    w->name_is_step = nrg_arena_array(&w->memory, c->n_names + 1, 1);
    if (w->memory.failed)
        return -ENOMEM;
    for (size_t i = 0; i < c->n_tracks; i++)
        w->end_ns[i] = INT64_MAX;
    return 0;
}

int nrg_span_walk_init(struct nrg_span_walk *w, struct nrg_recording *recording,
                       const struct nrg_span_source *source, const struct nrg_span_catalog *catalog,
                       enum nrg_rows_by by)
{
    *w = (struct nrg_span_walk){.catalog = catalog, .by = by};
    const char *kind = kind_of(by);
    int rc = nrg_span_tree_init(&w->paths);
    w->rows = kind ? &w->rows_own : &w->paths;
    if (!rc && kind)
        rc = nrg_span_tree_init(&w->rows_own);
    if (!rc)
        rc = allocate_walk(w);
    for (size_t i = 0; !rc && i < catalog->n_names; i++) {
        w->name_is_numbered[i] = kind && !strcmp(catalog->names[i].kind, kind);
        w->name_is_step[i] = !strcmp(catalog->names[i].kind, NRG_KIND_STEP);
    }
    if (!rc)
        rc = resolve_paths(w);
    if (!rc)
        rc = source ? nrg_span_reader_over(source, &w->reader)
                    : nrg_span_reader_new(recording, &w->reader);
    if (rc)
        nrg_span_walk_release(w);
    return rc;
}

void nrg_span_walk_release(struct nrg_span_walk *w)
{
    for (size_t i = 0; w->stacks && i < w->catalog->n_tracks; i++)
        free(w->stacks[i].spans);
    nrg_arena_release(&w->memory);
    nrg_span_tree_release(&w->paths);
    nrg_span_tree_release(&w->rows_own);
    nrg_span_reader_free(w->reader);
    *w = (struct nrg_span_walk){0};
}

/* Tells of a span on a track's stack that has just been opened or is just being closed. */
static int tell_span(struct nrg_span_walk *w, enum nrg_span_walk_what what, size_t track,
                     int64_t t_ns, const struct nrg_open_span *span)
{
    size_t depth = (size_t)(span - w->stacks[track].spans);
    return w->each(w->arg, &(struct nrg_span_walk_event){.what = what,
                                                         .t_ns = t_ns,
                                                         .track = track,
                                                         .span = span,
                                                         .around = depth ? span - 1 : NULL,
                                                         .depth = depth});
}

/* Closes the innermost span of a track. */
static int close_top(struct nrg_span_walk *w, size_t track, int64_t t_ns, unsigned flags)
{
    struct nrg_span_stack *stack = &w->stacks[track];
    struct nrg_open_span *span = &stack->spans[--stack->n];
    span->flags |= (uint8_t)flags;
    if (w->numbered_row && span->row == w->numbered_row && !span->folded)
        w->numbered_row = 0;
    if (span->is_step && span->step == w->open_step)
        w->open_step = 0;
    return tell_span(w, NRG_WALK_CLOSE, track, t_ns, span);
}

static int close_all(struct nrg_span_walk *w, size_t track, int64_t t_ns)
{
    int rc = 0;
    w->unclosed += w->stacks[track].n + w->stacks[track].beyond;
    w->stacks[track].beyond = 0;
    while (!rc && w->stacks[track].n)
        rc = close_top(w, track, t_ns, NRG_ROW_UNCLOSED);
    return rc;
}

/* Row of a new span where numbers are told apart. */
static int64_t row_of(struct nrg_span_walk *w, struct nrg_open_span *span,
                      const struct nrg_open_span *around, uint32_t name, int64_t number)
{
    bool numbered = w->name_is_numbered[name];
    uint32_t above = around ? around->row : 0;
    if (span->elsewhere && w->numbered_row)
        above = w->numbered_row; /* launched by some span of it: the nearest in time */
    bool inside = above && w->rows->nodes[above].number != NRG_MISSING;
    if (inside && folds_inside(w->by) && !numbered) {
        span->folded = true;
        return above;
    }
    int64_t row = nrg_span_tree_child(w->rows, above, name, numbered ? number : NRG_MISSING);
    span->folded = row == (int64_t)above;
    if (numbered && row > 0 && !span->folded)
        w->numbered_row = (uint32_t)row;
    return row;
}

/* The step that a span is part of. One that was launched by another track belongs to the step that
 * is open there: the nearest in time. A step inside a step is part of it. */
static void count_step(struct nrg_span_walk *w, struct nrg_open_span *span,
                       const struct nrg_open_span *around, uint32_t name)
{
    span->step = around ? around->step : 0;
    if (!span->step && span->elsewhere)
        span->step = w->open_step;
    span->is_step = !span->step && w->name_is_step[name] && span->number != NRG_MISSING;
    if (span->is_step)
        span->step = w->open_step = ++w->n_steps;
}

static int place_span(struct nrg_span_walk *w, const struct nrg_span_row *event,
                      const struct nrg_open_span *around, struct nrg_open_span *span)
{
    uint32_t name = name_index(w, event->name), above = around ? around->path : 0;
    const struct nrg_span_path *given =
        event->parent == NRG_MISSING ? NULL : nrg_span_catalog_path(w->catalog, event->parent);
    span->elsewhere = given != NULL;
    span->number = event->value;
    count_step(w, span, around, name);
    if (given)
        above = w->path_nodes[given - w->catalog->paths];
    int64_t path = nrg_span_tree_child(&w->paths, above, name, NRG_MISSING), row = path;
    span->folded = path == (int64_t)above;
    if (path >= 0 && w->rows != &w->paths)
        row = row_of(w, span, around, name, event->value);
    if (path < 0 || row < 0)
        return -ENOMEM;
    span->path = (uint32_t)path;
    span->row = (uint32_t)row;
    return 0;
}

static int on_begin(struct nrg_span_walk *w, const struct nrg_span_row *event, size_t track,
                    int64_t t_ns)
{
    struct nrg_span_stack *stack = &w->stacks[track];
    w->spans++;
    if (stack->n >= MAX_OPEN || stack->beyond) {
        stack->beyond++;
        return 0;
    }
    int rc = nrg_reserve(&stack->spans, &stack->cap, stack->n + 1, sizeof *stack->spans);
    if (rc)
        return rc;
    struct nrg_open_span *span = &stack->spans[stack->n];
    const struct nrg_open_span *around = stack->n ? span - 1 : NULL;
    *span = (struct nrg_open_span){.name = event->name, .begin_ns = t_ns};
    if (t_ns != event->t_ns)
        span->flags = NRG_ROW_CLOCK;
    rc = place_span(w, event, around, span);
    if (rc)
        return rc;
    stack->n++;
    return tell_span(w, NRG_WALK_OPEN, track, t_ns, span);
}

/* How many spans an end closes; 0: it belongs to none that is open. */
static size_t count_closed(const struct nrg_span_stack *stack, int64_t name)
{
    if (name == NRG_MISSING)
        return stack->n > 0;
    for (size_t i = 1; i <= stack->n && i <= END_SEARCH; i++)
        if (stack->spans[stack->n - i].name == name)
            return i;
    return 0;
}

static int on_end(struct nrg_span_walk *w, const struct nrg_span_row *event, size_t track,
                  int64_t t_ns)
{
    struct nrg_span_stack *stack = &w->stacks[track];
    int rc = 0;
    if (stack->beyond) {
        stack->beyond--;
        return 0;
    }
    size_t closes = count_closed(stack, event->name);
    w->unmatched_ends += !closes;
    w->cut += closes ? closes - 1 : 0;
    unsigned late = t_ns != event->t_ns ? NRG_ROW_CLOCK : 0;
    while (!rc && closes-- > 0)
        rc = close_top(w, track, t_ns, closes ? NRG_ROW_CLOCK : late);
    return rc;
}

static int on_count(struct nrg_span_walk *w, const struct nrg_span_row *event, size_t track,
                    int64_t t_ns)
{
    struct nrg_span_stack *stack = &w->stacks[track];
    if (event->value == NRG_MISSING)
        return 0;
    return w->each(
        w->arg, &(struct nrg_span_walk_event){.what = NRG_WALK_COUNT,
                                              .t_ns = t_ns,
                                              .track = track,
                                              .span = stack->n ? &stack->spans[stack->n - 1] : NULL,
                                              .depth = stack->n,
                                              .name = name_index(w, event->name),
                                              .amount = event->value});
}

static int on_event(struct nrg_span_walk *w, const struct nrg_span_row *event)
{
    const struct nrg_span_track *known = nrg_span_catalog_track(w->catalog, event->track);
    if (!known) {
        w->unknown++;
        return 0;
    }
    size_t track = (size_t)(known - w->catalog->tracks);
    int64_t t_ns = event->t_ns;
    if (t_ns < w->now_ns) {
        w->cut += event->event <= NRG_SPAN_END;
        t_ns = w->now_ns;
    }
    w->now_ns = w->last_ns[track] = t_ns;
    switch (event->event) {
    case NRG_SPAN_BEGIN:
        return on_begin(w, event, track, t_ns);
    case NRG_SPAN_END:
        return on_end(w, event, track, t_ns);
    case NRG_SPAN_COUNT:
        return on_count(w, event, track, t_ns);
    default:
        return 0;
    }
}

static int by_end(const void *a, const void *b, void *arg)
{
    const int64_t *end_ns = arg;
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    if (end_ns[x] != end_ns[y])
        return end_ns[x] < end_ns[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Tracks that ended by t_ns close what they left open, in order of time. */
static int end_tracks(struct nrg_span_walk *w, int64_t t_ns)
{
    int rc = 0;
    for (; !rc && w->next_end < w->catalog->n_tracks; w->next_end++) {
        size_t track = w->by_end[w->next_end];
        if (w->end_ns[track] >= t_ns)
            break;
        if (w->stacks[track].n) {
            w->now_ns = w->end_ns[track] > w->now_ns ? w->end_ns[track] : w->now_ns;
            rc = close_all(w, track, w->now_ns);
        }
    }
    return rc;
}

static void begin_walk(struct nrg_span_walk *w)
{
    nrg_span_reader_rewind(w->reader);
    for (size_t i = 0; i < w->catalog->n_tracks; i++) {
        w->stacks[i].n = w->stacks[i].beyond = 0;
        w->last_ns[i] = 0;
        w->by_end[i] = i;
    }
    if (w->catalog->n_tracks)
        qsort_r(w->by_end, w->catalog->n_tracks, sizeof *w->by_end, by_end, w->end_ns);
    w->next_end = 0;
    w->now_ns = 0;
    w->numbered_row = w->n_steps = w->open_step = 0;
    w->spans = w->unmatched_ends = w->unclosed = w->cut = w->unknown = 0;
    w->paths.folded = w->rows_own.folded = 0;
}

int nrg_span_walk_run(struct nrg_span_walk *w, int64_t end_ns, nrg_span_walk_fn each, void *arg)
{
    struct nrg_span_row event;
    int rc = 0, more = 0;
    w->each = each;
    w->arg = arg;
    begin_walk(w);
    while (!rc && (more = nrg_span_reader_next(w->reader, &event)) > 0) {
        size_t next = w->next_end;
        if (next < w->catalog->n_tracks && w->end_ns[w->by_end[next]] < event.t_ns)
            rc = end_tracks(w, event.t_ns);
        if (!rc)
            rc = on_event(w, &event);
    }
    rc = rc ? rc : more;
    if (!rc)
        rc = end_tracks(w, end_ns);
    end_ns = end_ns > w->now_ns ? end_ns : w->now_ns;
    for (size_t i = 0; !rc && i < w->catalog->n_tracks; i++)
        rc = close_all(w, i, end_ns);
    w->damaged = nrg_span_reader_damaged(w->reader);
    return rc;
}

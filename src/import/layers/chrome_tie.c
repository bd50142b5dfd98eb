/*
 * Puts kernels of a GPU below the operators that launched them (internal.h). A kernel and the
 * runtime call that launched it share a correlation id; the call lies inside the operator's span on
 * a thread. One walk over the threads' spans (span_nest.h) finds the operators around all calls.
 * Only operators that launched something get a path, because most do not. Where the call is not in
 * the trace, the external id of the operator is used.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/search.h"
#include "import/layers/internal.h"
#include "sensors/channel.h"

void nrg_chrome_ties_release(struct nrg_chrome_ties *t)
{
    free(t->marks);
    free(t->kernels);
    *t = (struct nrg_chrome_ties){0};
}

int nrg_chrome_mark(struct nrg_chrome_ties *t, size_t record, enum nrg_chrome_link link, int64_t id)
{
    if (id == NRG_MISSING)
        return 0;
    const struct nrg_chrome_mark mark = {
        .id = id, .record = (int64_t)record, .link = (uint8_t)link};
    return nrg_append(&t->marks, &t->n_marks, &t->cap_marks, &mark, sizeof mark);
}

int nrg_chrome_kernel(struct nrg_chrome_ties *t, const struct nrg_span_sink *sink,
                      int64_t correlation, int64_t external)
{
    const struct nrg_chrome_kernel kernel = {correlation, external, (uint32_t)(sink->n - 1)};
    return nrg_append(&t->kernels, &t->n_kernels, &t->cap_kernels, &kernel, sizeof kernel);
}

uint64_t nrg_chrome_drop(struct nrg_chrome_ties *t, struct nrg_span_sink *sink, const bool *tracks)
{
    size_t kept = 0, mark = 0, kernel = 0;
    for (size_t i = 0; i < sink->n; i++) {
        for (; mark < t->n_marks && t->marks[mark].record == (int64_t)i; mark++)
            t->marks[mark].record = (int64_t)kept; /* marked ones are of the host, and stay */
        for (; kernel < t->n_kernels && t->kernels[kernel].record == i; kernel++)
            t->kernels[kernel].record = (uint32_t)kept;
        if (!tracks[sink->records[i].track])
            sink->records[kept++] = sink->records[i];
    }
    uint64_t dropped = sink->n - kept;
    sink->n = kept;
    return dropped;
}

/* A span that is open on a thread. */
struct place {
    uint32_t record;
    uint32_t path;  /* 0: not created yet */
    bool container; /* false for a runtime call, which can't contain a kernel */
};

struct stack {
    struct place *items;
    size_t n, cap;
};

static int64_t path_of(struct nrg_span_sink *sink, struct stack *stack)
{
    int64_t path = 0;
    for (size_t i = 0; i < stack->n && path >= 0; i++) {
        struct place *p = &stack->items[i];
        if (!p->container)
            continue;
        if (!p->path) {
            path = nrg_span_sink_path(sink, path, sink->records[p->record].name);
            p->path = path > 0 ? (uint32_t)path : 0;
        } else {
            path = p->path;
        }
    }
    return path;
}

/* The first mark of a record, or NULL; marks are in the order of their records. */
static struct nrg_chrome_mark *mark_of(struct nrg_chrome_ties *t, uint32_t record)
{
    if (!t->n_marks)
        return NULL;
    size_t at = nrg_count_below(&t->marks->record, t->n_marks, sizeof *t->marks, record);
    return at < t->n_marks && t->marks[at].record == record ? &t->marks[at] : NULL;
}

static int begin_span(struct nrg_chrome_ties *t, struct nrg_span_sink *sink, struct stack *stack,
                      uint32_t record)
{
    struct nrg_chrome_mark *mark = mark_of(t, record);
    bool call = mark && mark->link == NRG_LINK_CORRELATION;
    int64_t path = 0;
    if (nrg_reserve(&stack->items, &stack->cap, stack->n + 1, sizeof *stack->items))
        return -ENOMEM;
    if (call)
        path = path_of(sink, stack);
    stack->items[stack->n++] = (struct place){record, 0, !call};
    if (mark && !call)
        path = path_of(sink, stack); /* with itself */
    for (; path > 0 && mark < t->marks + t->n_marks && mark->record == record; mark++)
        mark->path = (uint32_t)path;
    return path < 0 ? (int)path : 0;
}

static int walk_track(struct nrg_chrome_ties *t, struct nrg_span_sink *sink,
                      const struct nrg_span_order *order, uint32_t track, struct stack *stack)
{
    struct nrg_span_nesting walk;
    struct nrg_span_nesting_event event;
    int rc = 0, more = 0;
    stack->n = 0;
    nrg_span_nesting_init(&walk, sink->records, order, track, sink->slack_ns);
    while (!rc && (more = nrg_span_nesting_next(&walk, &event)) > 0) {
        if (event.event == NRG_SPAN_BEGIN)
            rc = begin_span(t, sink, stack, event.record);
        else if (event.event == NRG_SPAN_END && stack->n)
            stack->n--;
    }
    nrg_span_nesting_release(&walk);
    return rc ? rc : more;
}

static int by_link(const void *a, const void *b)
{
    const struct nrg_chrome_mark *x = a, *y = b;
    if (x->link != y->link)
        return x->link < y->link ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->record < y->record ? -1 : x->record > y->record;
}

static uint32_t find_path(const struct nrg_chrome_ties *t, enum nrg_chrome_link link, int64_t id)
{
    size_t low = 0, high = t->n_marks;
    const struct nrg_chrome_mark key = {.id = id, .link = (uint8_t)link};
    if (id == NRG_MISSING)
        return 0;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (by_link(&t->marks[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < t->n_marks && t->marks[low].link == link && t->marks[low].id == id; low++)
        if (t->marks[low].path)
            return t->marks[low].path;
    return 0;
}

/* Drops operators that no kernel needs: their paths would be the majority. */
static void drop_externals(struct nrg_chrome_ties *t)
{
    struct nrg_map calls = {0}, wanted = {0};
    size_t kept = 0;
    bool known = true;
    for (size_t i = 0; i < t->n_marks; i++)
        if (t->marks[i].link == NRG_LINK_CORRELATION)
            known &= nrg_map_at_id(&calls, (uint64_t)t->marks[i].id) != NULL;
    for (size_t i = 0; i < t->n_kernels; i++) {
        const struct nrg_chrome_kernel *k = &t->kernels[i];
        if (!nrg_map_find_id(&calls, (uint64_t)k->correlation))
            known &= nrg_map_at_id(&wanted, (uint64_t)k->external) != NULL;
    }
    for (size_t i = 0; known && i < t->n_marks; i++)
        if (t->marks[i].link == NRG_LINK_CORRELATION ||
            nrg_map_find_id(&wanted, (uint64_t)t->marks[i].id))
            t->marks[kept++] = t->marks[i];
    t->n_marks = known ? kept : t->n_marks;
    nrg_map_release(&calls);
    nrg_map_release(&wanted);
}

static int find_places(struct nrg_chrome_ties *t, struct nrg_span_sink *sink)
{
    struct nrg_span_order order;
    struct stack stack = {0};
    int rc = nrg_span_order_make(&order, sink->records, sink->n, sink->n_descriptions);
    for (size_t track = 1; !rc && track <= sink->n_descriptions; track++)
        if (!strcmp(sink->descriptions[track - 1].kind, "thread"))
            rc = walk_track(t, sink, &order, (uint32_t)track, &stack);
    free(stack.items);
    nrg_span_order_release(&order);
    return rc;
}

int nrg_chrome_tie(struct nrg_chrome_ties *t, struct nrg_span_sink *sink)
{
    if (!t->n_kernels || !t->n_marks)
        return 0;
    drop_externals(t);
    int rc = find_places(t, sink);
    if (rc)
        return rc;
    if (t->n_marks)
        qsort(t->marks, t->n_marks, sizeof *t->marks, by_link);
    for (size_t i = 0; i < t->n_kernels; i++) {
        const struct nrg_chrome_kernel *k = &t->kernels[i];
        uint32_t path = find_path(t, NRG_LINK_CORRELATION, k->correlation);
        path = path ? path : find_path(t, NRG_LINK_EXTERNAL, k->external);
        sink->records[k->record].path = path;
        t->tied += path != 0;
    }
    return 0;
}

/*
 * See span_nest.h. A counting sort separates the tracks. Each track is then sorted by merging the
 * runs that are in order already: logs mostly are in order, and comparing ten million spans
 * twenty-four times each would be slow.
 */
#include "import/span_nest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Whether record b must come before record a. */
static bool comes_before(const struct nrg_span_record *records, uint32_t b, uint32_t a)
{
    const struct nrg_span_record *x = &records[b], *y = &records[a];
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns;
    if (x->end_ns != y->end_ns)
        return x->end_ns > y->end_ns;
    return b < a;
}

static size_t run_end(const struct nrg_span_record *records, const uint32_t *items, size_t from,
                      size_t n)
{
    size_t at = from + 1;
    while (at < n && !comes_before(records, items[at], items[at - 1]))
        at++;
    return at;
}

static void merge_runs(const struct nrg_span_record *records, const uint32_t *in, size_t from,
                       size_t middle, size_t to, uint32_t *out)
{
    size_t a = from, b = middle, at = from;
    while (a < middle && b < to)
        out[at++] = comes_before(records, in[b], in[a]) ? in[b++] : in[a++];
    memcpy(out + at, in + a, (middle - a) * sizeof *out);
    memcpy(out + at + (middle - a), in + b, (to - b) * sizeof *out);
}

/* Merges neighbouring runs until there is one; `spare` has room for n. */
static void sort_items(const struct nrg_span_record *records, uint32_t *items, uint32_t *spare,
                       size_t n)
{
    uint32_t *in = items, *out = spare, *other;
    while (n && run_end(records, in, 0, n) < n) {
        for (size_t from = 0, middle, to; from < n; from = to) {
            middle = run_end(records, in, from, n);
            to = middle < n ? run_end(records, in, middle, n) : n;
            merge_runs(records, in, from, middle, to, out);
        }
        other = in;
        in = out;
        out = other;
    }
    if (in != items)
        memcpy(items, in, n * sizeof *items);
}

int nrg_span_order_make(struct nrg_span_order *order, const struct nrg_span_record *records,
                        size_t n, size_t n_tracks)
{
    uint32_t *spare = nrg_calloc(n + 1, sizeof *spare);
    *order = (struct nrg_span_order){.n_tracks = n_tracks};
    order->items = nrg_calloc(n + 1, sizeof *order->items);
    order->first_of = nrg_calloc(n_tracks + 3, sizeof *order->first_of);
    if (!spare || !order->items || !order->first_of) {
        free(spare);
        nrg_span_order_release(order);
        return -ENOMEM;
    }
    /* Counts are stored one index further on, so that filling moves first_of to its final place. */
    for (size_t i = 0; i < n; i++)
        order->first_of[records[i].track + 2]++;
    for (size_t t = 1; t < n_tracks + 3; t++)
        order->first_of[t] += order->first_of[t - 1];
    for (size_t i = 0; i < n; i++)
        order->items[order->first_of[records[i].track + 1]++] = (uint32_t)i;
    for (size_t t = 1; t <= n_tracks; t++)
        sort_items(records, order->items + order->first_of[t], spare,
                   order->first_of[t + 1] - order->first_of[t]);
    free(spare);
    return 0;
}

int nrg_span_order_by_time(const struct nrg_span_record *records, size_t n, uint32_t **items)
{
    uint32_t *spare = nrg_calloc(n + 1, sizeof *spare);
    *items = nrg_calloc(n + 1, sizeof **items);
    if (spare && *items) {
        for (size_t i = 0; i < n; i++)
            (*items)[i] = (uint32_t)i;
        sort_items(records, *items, spare, n);
    }
    int rc = spare && *items ? 0 : -ENOMEM;
    free(spare);
    return rc;
}

void nrg_span_order_release(struct nrg_span_order *order)
{
    free(order->items);
    free(order->first_of);
    *order = (struct nrg_span_order){0};
}

void nrg_span_nesting_init(struct nrg_span_nesting *walk, const struct nrg_span_record *records,
                           const struct nrg_span_order *order, uint32_t track, int64_t slack_ns)
{
    *walk = (struct nrg_span_nesting){.records = records,
                                      .items = order->items,
                                      .at = order->first_of[track],
                                      .end = order->first_of[track + 1],
                                      .slack_ns = slack_ns};
}

void nrg_span_nesting_release(struct nrg_span_nesting *walk)
{
    free(walk->stack);
    walk->stack = NULL;
}

static int close_top(struct nrg_span_nesting *walk, int64_t t_ns,
                     struct nrg_span_nesting_event *event)
{
    *event = (struct nrg_span_nesting_event){t_ns, walk->stack[--walk->depth].record, NRG_SPAN_END};
    return 1;
}

/* Ends the spans that are still open once the track has no further record. */
static int close_remaining(struct nrg_span_nesting *walk, struct nrg_span_nesting_event *event)
{
    while (walk->depth && walk->stack[walk->depth - 1].end_ns == NRG_RECORD_OPEN)
        walk->depth--;
    return walk->depth ? close_top(walk, walk->stack[walk->depth - 1].end_ns, event) : 0;
}

static int open_next(struct nrg_span_nesting *walk, int64_t end_ns,
                     struct nrg_span_nesting_event *event)
{
    if (nrg_reserve(&walk->stack, &walk->cap, walk->depth + 1, sizeof *walk->stack))
        return -ENOMEM;
    uint32_t record = walk->items[walk->at++];
    walk->stack[walk->depth++] = (struct nrg_span_open){record, end_ns};
    *event =
        (struct nrg_span_nesting_event){walk->records[record].begin_ns, record, NRG_SPAN_BEGIN};
    return 1;
}

int nrg_span_nesting_next(struct nrg_span_nesting *walk, struct nrg_span_nesting_event *event)
{
    if (walk->at == walk->end)
        return close_remaining(walk, event);
    const struct nrg_span_record *next = &walk->records[walk->items[walk->at]];
    const struct nrg_span_open *top = walk->depth ? &walk->stack[walk->depth - 1] : NULL;
    if (!top)
        return open_next(walk, next->end_ns, event);
    if (top->end_ns <= next->begin_ns)
        return close_top(walk, top->end_ns, event);
    if (next->end_ns <= top->end_ns)
        return open_next(walk, next->end_ns, event);
    /* A rounded or missing end: the span ends with the one around it. */
    if (next->end_ns == NRG_RECORD_OPEN || next->end_ns - top->end_ns <= walk->slack_ns)
        return open_next(walk, top->end_ns, event);
    walk->cut += top->end_ns - next->begin_ns > walk->slack_ns;
    return close_top(walk, next->begin_ns, event);
}

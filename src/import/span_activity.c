/*
 * Busy time of a sink's spans (internal.h). Containers such as steps say little about when work was
 * done, and host spans little about the GPU, so only spans of the best kind present count.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "import/internal.h"

enum evidence { OTHER, WORK, KERNEL };

static enum evidence evidence_of(const struct nrg_span_sink *sink, int64_t name)
{
    const char *kind = nrg_map_text(&sink->names, name, NULL);
    if (!strcmp(kind, NRG_KIND_KERNEL))
        return KERNEL;
    return !strcmp(kind, NRG_KIND_LAYER) || !strcmp(kind, NRG_KIND_OPERATOR) ? WORK : OTHER;
}

static void add_busy(int64_t from_ns, int64_t to_ns, int64_t begin_ns, int64_t step_ns,
                     double *busy, size_t n)
{
    int64_t end_ns = begin_ns + step_ns * (int64_t)n;
    from_ns = from_ns < begin_ns ? begin_ns : from_ns;
    to_ns = to_ns > end_ns ? end_ns : to_ns;
    while (from_ns < to_ns) {
        size_t i = (size_t)((from_ns - begin_ns) / step_ns);
        int64_t edge_ns = begin_ns + step_ns * (int64_t)(i + 1);
        int64_t until_ns = to_ns < edge_ns ? to_ns : edge_ns;
        busy[i] += (double)(until_ns - from_ns) / (double)step_ns;
        from_ns = until_ns;
    }
}

/* `items` are in order of begin, so the last end tells what is already covered. */
static void add_spans(const struct nrg_span_sink *sink, const uint32_t *items,
                      const uint8_t *counts, int64_t begin_ns, int64_t step_ns, double *busy,
                      size_t n)
{
    int64_t covered_ns = INT64_MIN;
    for (size_t i = 0; i < sink->n; i++) {
        const struct nrg_span_record *r = &sink->records[items[i]];
        if (r->end_ns == NRG_RECORD_OPEN || !counts[r->name])
            continue;
        int64_t from_ns = r->begin_ns > covered_ns ? r->begin_ns : covered_ns;
        if (r->end_ns <= from_ns)
            continue;
        add_busy(from_ns, r->end_ns, begin_ns, step_ns, busy, n);
        covered_ns = r->end_ns;
    }
}

int nrg_span_sink_activity(const struct nrg_span_sink *sink, int64_t begin_ns, int64_t step_ns,
                           double *busy, size_t n)
{
    uint32_t *items = NULL;
    uint8_t *counts = nrg_calloc(sink->names.n + 1, 1);
    enum evidence best = OTHER;
    memset(busy, 0, n * sizeof *busy);
    int rc = counts ? nrg_span_order_by_time(sink->records, sink->n, &items) : -ENOMEM;
    for (size_t i = 0; !rc && i < sink->n; i++) {
        enum evidence e = evidence_of(sink, sink->records[i].name);
        best = e > best ? e : best;
    }
    for (size_t i = 1; !rc && i <= sink->names.n; i++)
        counts[i] = evidence_of(sink, (int64_t)i) == best || best == OTHER;
    if (!rc)
        add_spans(sink, items, counts, begin_ns, step_ns, busy, n);
    free(items);
    free(counts);
    return rc;
}

/* See slicer.h. Tracks end their slices at the same border, so only their order is to be made. */
#include "attribute/regress/rows/slicer.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/search.h"

#define LONG_GAP_NS (100 * NRG_NS_PER_MS)

int nrg_slicer_add(struct nrg_slicer *s, const struct nrg_slice *slice)
{
    if (slice->end_ns <= slice->begin_ns || slice->class_ == UINT32_MAX)
        return 0;
    s->unsorted |= s->n && slice->begin_ns < s->slices[s->n - 1].begin_ns;
    if (s->n == s->sorted || slice->begin_ns < s->least_ns)
        s->least_ns = slice->begin_ns;
    return nrg_append(&s->slices, &s->n, &s->cap, slice, sizeof *slice);
}

static void settle_gap(const struct nrg_slicer *s, struct nrg_slice *slice, int64_t length_ns)
{
    if (slice->class_ == s->gap_class && length_ns > LONG_GAP_NS)
        slice->class_ = s->apart_class;
    if (slice->calls <= NRG_GAP_WAITS)
        slice->calls = 0;
}

void nrg_slicer_settle(struct nrg_slicer *s, uint32_t track, int64_t begin_ns, int64_t end_ns,
                       bool is_call)
{
    double length_ns = (double)(end_ns - begin_ns);
    bool counts = is_call && end_ns > begin_ns && end_ns - begin_ns <= NRG_CALL_NS;
    for (size_t i = s->n; i-- > 0 && s->slices[i].end_ns > begin_ns;) {
        struct nrg_slice *slice = &s->slices[i];
        if (slice->track == track && slice->calls < 0)
            settle_gap(s, slice, end_ns - begin_ns);
        if (slice->track == track && slice->calls < 0)
            slice->calls =
                counts ? (float)((double)(slice->end_ns - slice->begin_ns) / length_ns) : 0;
        if (slice->track == track && slice->begin_ns <= begin_ns)
            break;
    }
}

static int by_begin(const void *a, const void *b)
{
    const struct nrg_slice *x = a, *y = b;
    return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

/* Only what came since the last time can be out of order, with what begins after the first of it.
 */
static void sort_slices(struct nrg_slicer *s)
{
    size_t from =
        nrg_count_up_to(&s->slices[0].begin_ns, s->sorted, sizeof *s->slices, s->least_ns);
    qsort(s->slices + from, s->n - from, sizeof *s->slices, by_begin);
}

int nrg_slicer_flush(struct nrg_slicer *s, int64_t t_ns, bool last)
{
    size_t done = 0;
    int rc = 0;
    if (s->unsorted)
        sort_slices(s);
    for (; !rc && done < s->n; done++) {
        struct nrg_slice *slice = &s->slices[done];
        if (slice->calls < 0) {
            if (!last && t_ns - slice->begin_ns <= NRG_CALL_NS)
                break;
            settle_gap(s, slice, last ? 0 : NRG_CALL_NS);
            slice->calls = 0;
        }
        rc = nrg_slice_log_add(&s->log, slice);
    }
    if (done) /* else there may be no slices at all */
        memmove(s->slices, s->slices + done, (s->n - done) * sizeof *s->slices);
    s->n -= done;
    s->sorted = s->n;
    s->unsorted = false;
    return rc;
}

int nrg_slicer_hand_over(const struct nrg_slicer *s, const struct nrg_engine *e,
                         const struct nrg_part *part, const struct nrg_class_split *split,
                         int (*take)(void *arg, const struct nrg_class_activity *activity),
                         void *arg)
{
    struct nrg_slice_reader reader;
    int rc = 0;
    nrg_slice_reader_init(&reader, &s->log);
    while (!rc && nrg_slice_read(&reader)) {
        const struct nrg_slice *slice = &reader.slice;
        /* Without CPU times, power without a span is what a regression calls idle. */
        bool aged = slice->class_ >= e->aged_class;
        bool gap = aged || slice->class_ == e->class_of[0];
        bool rates = !slice->pool && e->cells.has_rates;
        if (part->pool != slice->pool || (gap && !part->idle_known && !rates))
            continue;
        bool whole = aged && !(split && split->by_age);
        bool span = slice->class_ < e->class_of[0] && slice->rate > 0;
        double more = split && span ? split->adds * (1 - slice->rate) : 0;
        struct nrg_class_activity activity = {
            .begin_ns = slice->begin_ns,
            .end_ns = slice->end_ns,
            .class_ = whole ? e->class_of[0] : nrg_split_class(split, slice),
            .rate = slice->rate + more,
            .cell = slice->cell,
            .group = slice->group,
            .calls = (double)slice->calls,
            .anywhere = slice->class_ == e->other_class || slice->class_ == e->untracked_class};
        if (slice->class_ == e->other_class) {
            activity.rate -= part->baseline_busy + part->trickle_busy;
            activity.unsure2 = activity.calls;
            activity.calls = 0;
        }
        rc = take(arg, &activity);
    }
    return rc;
}

void nrg_slicer_release(struct nrg_slicer *s)
{
    free(s->slices);
    nrg_slice_log_release(&s->log);
    *s = (struct nrg_slicer){0};
}

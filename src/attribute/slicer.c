/* See slicer.h. */
#include "attribute/slicer.h"

#include <stdlib.h>

#include "base/mem.h"

int nrg_slicer_add(struct nrg_slicer *s, const struct nrg_slice *slice)
{
    if (slice->end_ns <= slice->begin_ns || !(slice->share > 0))
        return 0;
    int rc = nrg_reserve(&s->slices, &s->cap, s->n + 1, sizeof *s->slices);
    if (rc)
        return rc;
    s->unsorted |= s->n && slice->begin_ns < s->slices[s->n - 1].begin_ns;
    s->slices[s->n++] = *slice;
    return 0;
}

static int by_begin(const void *a, const void *b)
{
    const struct nrg_slice *x = a, *y = b;
    return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

int nrg_slicer_flush(struct nrg_slicer *s)
{
    int rc = 0;
    if (s->unsorted)
        qsort(s->slices, s->n, sizeof *s->slices, by_begin);
    for (size_t i = 0; !rc && i < s->n; i++) {
        const struct nrg_slice *slice = &s->slices[i];
        uint32_t class_ = s->class_of[slice->path];
        for (size_t p = 0; !rc && class_ != UINT32_MAX && p < s->n_parts; p++)
            if (s->regress[p] && s->engine_parts[p].pool == slice->pool &&
                (slice->path || s->engine_parts[p].idle_known))
                rc = nrg_regress_slice(s->regress[p], slice->begin_ns, slice->end_ns, class_,
                                       slice->share < 1 ? slice->share : 1);
    }
    s->n = 0;
    s->unsorted = false;
    return rc;
}

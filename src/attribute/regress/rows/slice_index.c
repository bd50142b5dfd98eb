/* See slice_index.h. */
#include "attribute/regress/rows/slice_index.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

#define MOST_OPEN 16 /* in the mean of all blocks: with more, nothing is saved */

/* Of the slices before `end` those that are open at its begin, from those that were open before. */
static int note_open(struct nrg_slice_index *index, const struct nrg_slices *slices, size_t end)
{
    const struct nrg_regress_slice *items = slices->items;
    size_t n = index->n_blocks, from = n ? index->blocks[n - 1].open_at : 0, to = index->n_open;
    int64_t begin_ns = items[end].begin_ns;
    struct nrg_slice_block block = {begin_ns, to};
    int rc = nrg_append(&index->blocks, &index->n_blocks, &index->cap_blocks, &block, sizeof block);
    for (size_t i = from; !rc && i < to; i++) {
        uint32_t open = index->open[i];
        if (items[open].end_ns > begin_ns)
            rc = nrg_append(&index->open, &index->n_open, &index->cap_open, &open, sizeof open);
    }
    for (size_t i = end > NRG_SLICE_BLOCK ? end - NRG_SLICE_BLOCK : 0; !rc && i < end; i++) {
        uint32_t open = (uint32_t)i;
        if (items[i].end_ns > begin_ns)
            rc = nrg_append(&index->open, &index->n_open, &index->cap_open, &open, sizeof open);
    }
    return rc;
}

static void forget(struct nrg_slice_index *index)
{
    free(index->blocks);
    free(index->open);
    *index = (struct nrg_slice_index){0};
}

int nrg_slice_index_make(struct nrg_slices *slices)
{
    struct nrg_slice_index *index = &slices->index;
    int rc = 0;
    forget(index);
    for (size_t i = 0; !rc && i < slices->n; i += NRG_SLICE_BLOCK) {
        rc = note_open(index, slices, i);
        if (index->n_open > MOST_OPEN * (index->n_blocks + NRG_SLICE_BLOCK)) {
            forget(index);
            return 0;
        }
    }
    index->n = rc || slices->dropped ? 0 : slices->n;
    return rc;
}

int nrg_walker_skip(struct nrg_walker *w, const struct nrg_slices *slices, int64_t t_ns)
{
    const struct nrg_slice_index *index = &slices->index;
    size_t here = (size_t)(w->next / NRG_SLICE_BLOCK), to = here;
    if (slices->dropped || index->n != slices->n)
        return 0;
    while (to + 1 < index->n_blocks && index->blocks[to + 1].begin_ns <= t_ns)
        to++;
    if (to == here)
        return 0;
    size_t end = to + 1 < index->n_blocks ? index->blocks[to + 1].open_at : index->n_open;
    int rc = 0;
    w->next = to * NRG_SLICE_BLOCK;
    w->n_open = 0;
    for (size_t i = index->blocks[to].open_at; !rc && i < end; i++) {
        const struct nrg_regress_slice *s = &slices->items[index->open[i]];
        if (s->end_ns > t_ns)
            rc = nrg_append(&w->open, &w->n_open, &w->cap_open, s, sizeof *w->open);
    }
    return rc;
}

void nrg_slices_release(struct nrg_slices *slices)
{
    free(slices->items);
    forget(&slices->index);
    *slices = (struct nrg_slices){0};
}

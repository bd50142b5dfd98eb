/* See prefix.h. */
#include "attribute/regress/rows/prefix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/regress/rows/slice_index.h"
#include "base/mem.h"
#include "base/search.h"

#define MAX_SUMS  (1u << 20)
#define WORTH_IT  (3 * NRG_SLICE_BLOCK) /* slices of a row */
#define LEAST_NS  1e6                   /* of a difference, for as many digits */
#define LARGEST_S 1000.0                /* a difference has all digits above 1e-12 s then */

static inline void add_slice(const struct nrg_prefix *p, const struct nrg_regress_slice *s,
                             int64_t ns, double *to)
{
    double amount = (double)ns / 1e9;
    to[p->map[s->column]] += amount * (double)s->rate;
    if (p->options->calls && s->calls_column)
        to[p->map[s->calls_column]] += amount * nrg_slice_longer(p->options, s);
}

static bool are_small(const double *sums, size_t n)
{
    bool small = true;
    for (size_t i = 0; i < n; i++)
        small &= sums[i] < LARGEST_S && sums[i] > -LARGEST_S;
    return small;
}

/* The sums after the last slice are those after the last block, and all of it. */
static void add_up(struct nrg_prefix *p, double *last)
{
    const struct nrg_slices *slices = p->slices;
    size_t apart = p->every * NRG_SLICE_BLOCK, bytes = p->n_columns * sizeof *last;
    for (size_t i = 0; i < slices->n; i++) {
        if (i % apart == 0)
            memcpy(p->sums + i / apart * p->n_columns, last, bytes);
        const struct nrg_regress_slice *s = &slices->items[i];
        add_slice(p, s, s->end_ns - s->begin_ns, last);
    }
}

int nrg_prefix_make(struct nrg_prefix *p, const struct nrg_slices *slices,
                    const struct nrg_regress_options *options, const uint32_t *map,
                    size_t n_columns, size_t rows)
{
    size_t n = slices->index.n_blocks;
    *p = (struct nrg_prefix){.slices = slices,
                             .options = options,
                             .map = map,
                             .n_columns = n_columns,
                             .every = n * n_columns / MAX_SUMS + 1};
    if (slices->dropped || slices->index.n != slices->n || options->together ||
        slices->n < WORTH_IT * p->every * rows)
        return 0;
    size_t kept = n / p->every + 1;
    p->sums = nrg_calloc((kept + 1) * n_columns, sizeof *p->sums);
    if (!p->sums)
        return -ENOMEM;
    double *last = p->sums + kept * n_columns;
    add_up(p, last);
    if (!are_small(last, n_columns))
        nrg_prefix_release(p);
    return 0;
}

bool nrg_prefix_helps(const struct nrg_prefix *p, int64_t width_ns)
{
    double all_ns = p->sums ? (double)(p->options->end_ns - p->options->begin_ns) : 0;
    return (double)width_ns > LEAST_NS &&
           (double)width_ns * (double)p->slices->n > (double)(WORTH_IT * p->every) * all_ns;
}

void nrg_prefix_up_to(const struct nrg_prefix *p, int64_t t_ns, double *seconds)
{
    const struct nrg_slice_index *index = &p->slices->index;
    const struct nrg_regress_slice *items = p->slices->items;
    size_t begun =
        nrg_count_up_to(&index->blocks->begin_ns, index->n_blocks, sizeof *index->blocks, t_ns);
    memset(seconds, 0, p->n_columns * sizeof *seconds);
    if (!begun)
        return;
    size_t at = (begun - 1) / p->every, block = at * p->every;
    memcpy(seconds, p->sums + at * p->n_columns, p->n_columns * sizeof *seconds);
    size_t end = block + 1 < index->n_blocks ? index->blocks[block + 1].open_at : index->n_open;
    for (size_t i = index->blocks[block].open_at; i < end; i++) {
        const struct nrg_regress_slice *s = &items[index->open[i]];
        if (s->end_ns > t_ns)
            add_slice(p, s, t_ns - s->end_ns, seconds);
    }
    for (size_t i = block * NRG_SLICE_BLOCK; i < p->slices->n && items[i].begin_ns < t_ns; i++) {
        int64_t to_ns = items[i].end_ns < t_ns ? items[i].end_ns : t_ns;
        add_slice(p, &items[i], to_ns - items[i].begin_ns, seconds);
    }
}

void nrg_prefix_release(struct nrg_prefix *p)
{
    free(p->sums);
    *p = (struct nrg_prefix){0};
}

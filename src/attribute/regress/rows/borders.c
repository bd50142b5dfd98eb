/* See borders.h. Slices of a class that follow one another, as cells cut them, are one stretch. */
#include "attribute/regress/rows/borders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MOST_SEEN 65536 /* 3 MB */

static int by_time(const void *a, const void *b)
{
    int64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static size_t without_twins(int64_t *t_ns, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!kept || t_ns[i] != t_ns[kept - 1])
            t_ns[kept++] = t_ns[i];
    return kept;
}

/* Begins and ends of stretches, as they come: up to room of them. end_ns: per column, of its last
 * stretch. */
static size_t collect(const struct nrg_slices *slices, int64_t *end_ns, size_t n_columns,
                      int64_t *t_ns, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < slices->n && n + 2 <= room; i++) {
        const struct nrg_regress_slice *slice = &slices->items[i];
        int64_t *end = &end_ns[slice->column];
        if (slice->begin_ns > *end) {
            if (*end > INT64_MIN)
                t_ns[n++] = *end;
            t_ns[n++] = slice->begin_ns;
        }
        *end = slice->end_ns > *end ? slice->end_ns : *end;
    }
    for (size_t i = 0; i < n_columns && n < room; i++)
        if (end_ns[i] > INT64_MIN)
            t_ns[n++] = end_ns[i];
    return n;
}

int nrg_borders_find(struct nrg_borders *borders, const struct nrg_slices *slices, size_t n_columns,
                     size_t most)
{
    if (borders->sought || !most)
        return 0;
    size_t room = 2 * most + 2; /* where one stretch ends, another one begins */
    int64_t *end_ns = nrg_calloc(n_columns, sizeof *end_ns);
    borders->t_ns = nrg_calloc(room, sizeof *borders->t_ns);
    for (size_t i = 0; end_ns && i < n_columns; i++)
        end_ns[i] = INT64_MIN;
    if (end_ns && borders->t_ns) {
        size_t n = collect(slices, end_ns, n_columns, borders->t_ns, room);
        bool all = n + 2 <= room;
        if (all)
            qsort(borders->t_ns, n, sizeof *borders->t_ns, by_time);
        n = all ? without_twins(borders->t_ns, n) : 0;
        borders->n = n <= most ? n : 0;
        borders->sought = true;
    }
    free(end_ns);
    return borders->sought ? 0 : -ENOMEM;
}

void nrg_borders_forget(struct nrg_borders *borders)
{
    borders->of = NULL;
    borders->n_seen = 0;
}

int nrg_borders_observe(struct nrg_borders *borders, const struct nrg_regress_options *options)
{
    struct nrg_observer observer;
    struct nrg_observation seen;
    int rc = 0;
    if (borders->of == options->timeline)
        return 0;
    nrg_borders_forget(borders);
    nrg_observer_init(&observer, options);
    while (!rc && borders->n_seen < MOST_SEEN && nrg_observe(&observer, &seen))
        rc = nrg_append(&borders->seen, &borders->n_seen, &borders->cap_seen, &seen, sizeof seen);
    if (rc || borders->n_seen == MOST_SEEN)
        nrg_borders_forget(borders);
    else
        borders->of = options->timeline;
    return rc;
}

void nrg_borders_release(struct nrg_borders *borders)
{
    free(borders->t_ns);
    free(borders->seen);
    *borders = (struct nrg_borders){0};
}

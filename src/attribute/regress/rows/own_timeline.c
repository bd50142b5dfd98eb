/* See own_timeline.h. */
#include "attribute/regress/rows/own_timeline.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/*
 * Part of the power at an instant that tracks of the pool may have used. Readings of a gauge are
 * not parted by when spans are open: an average shows for a while what was drawn before, and time
 * without spans is a class, or what a regression calls idle.
 */
static double mine_at(const struct nrg_engine *e, const struct nrg_part *part, size_t k)
{
    const struct nrg_cells *c = &e->cells;
    double tracked = !part->pool && part->tl->is_gauge ? 1 : 0;
    if (!part->pool && c->has_rates)
        return 1; /* others have classes of their own */
    for (size_t g = 0; g < c->n_groups; g++)
        if (c->group_pool[g] == part->pool)
            tracked += (double)c->share[k * c->n_groups + g];
    return (1 - (double)part->other[k]) * fmin(tracked, 1);
}

bool nrg_regress_needs_own(const struct nrg_engine *e, const struct nrg_part *part)
{
    for (size_t k = 0; k < e->cells.n; k++)
        if (!e->cells.outside[k] && mine_at(e, part, k) < 0.999)
            return true;
    return e->n_windows > 1 || !strcmp(part->out->idle_source, "estimate");
}

/* Of each cell. */
static int find_taken_off(struct nrg_engine *e, struct nrg_part *part)
{
    bool by_cell = !strcmp(part->out->idle_source, "estimate");
    if (!part->taken_off)
        part->taken_off = nrg_arena_array(&e->memory, e->cells.n + 1, sizeof *part->taken_off);
    for (size_t k = 0; part->taken_off && k < e->cells.n; k++) {
        /* elsewhere as correct_idle goes on from */
        double idle_w = by_cell ? part->idle_w[k] : part->out->idle_w;
        part->taken_off[k] =
            (struct nrg_taken_off){part->idle_known ? idle_w : 0, mine_at(e, part, k)};
    }
    return part->taken_off ? 0 : -ENOMEM;
}

const struct nrg_timeline *nrg_regress_own(struct nrg_engine *e, struct nrg_part *part,
                                           struct nrg_arena *memory)
{
    const struct nrg_timeline *tl = part->tl;
    struct nrg_timeline *own = nrg_arena_alloc(memory, sizeof *own);
    if (!own || find_taken_off(e, part))
        return NULL;
    *own = *tl; /* the same times */
    own->sum_j = nrg_arena_array(memory, tl->n, sizeof *own->sum_j);
    own->gap = nrg_arena_array(memory, tl->n, sizeof *own->gap);
    own->own_gauge = tl->is_gauge ? nrg_arena_array(memory, tl->n, sizeof *own->own_gauge) : NULL;
    if (memory->failed)
        return NULL;
    for (size_t i = 0; i < tl->n; i++) {
        size_t next = i + 1 < tl->n ? i + 1 : i;
        double s = (double)(nrg_point_ns(tl, next) - nrg_point_ns(tl, i)) * 1e-9;
        size_t k = nrg_cells_find(
            &e->cells, nrg_point_ns(tl, i) + (nrg_point_ns(tl, next) - nrg_point_ns(tl, i)) / 2);
        double idle_w = part->taken_off[k].idle_w, mine = part->taken_off[k].mine;
        double step_j = nrg_point_j(tl, next) - nrg_point_j(tl, i);
        /* between runs nothing is known */
        own->gap[i] = nrg_point_gap(tl, i) || e->cells.outside[k];
        if (tl->is_gauge)
            own->own_gauge[i] = (nrg_point_gauge(tl, i) - idle_w) * mine;
        if (next > i)
            own->sum_j[next] = own->sum_j[i] + (own->gap[i] ? 0 : (step_j - idle_w * s) * mine);
    }
    for (size_t i = 0; tl->is_gauge && i + 1 < tl->n; i++) /* trapezoids again */
        own->sum_j[i + 1] =
            own->sum_j[i] +
            (own->gap[i] ? 0
                         : (own->own_gauge[i] + own->own_gauge[i + 1]) / 2 *
                               (double)(nrg_point_ns(tl, i + 1) - nrg_point_ns(tl, i)) * 1e-9);
    return own;
}

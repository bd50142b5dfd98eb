/*
 * A counter that is read faster than it updates stands still for several readings, and has all of
 * an update in the one that sees it first. What it stood still for was not free: for integration it
 * goes up along a line from one reading that saw it move to the next. Else spans would have less
 * than nothing above idle power, where no update is seen in them, or all of an update's energy.
 *
 * Readings around the begin and the end of a run stay, so that totals do. Where it stands still for
 * longer than an update takes, nothing was used.
 */
#include <errno.h>

#include "attribute/internal.h"
#include "attribute/regress/rows/rows.h"

#define READ_PER_UPDATE 1.5 /* readings: fewer are no stairs */
#define LONGEST         1.5 /* updates without news */

/* The readings around both ends of all runs. */
static bool is_border(const struct nrg_engine *e, const struct nrg_timeline *tl, size_t i)
{
    int64_t t_ns = nrg_point_ns(tl, i), last_ns = i ? nrg_point_ns(tl, i - 1) : t_ns;
    int64_t next_ns = i + 1 < tl->n ? nrg_point_ns(tl, i + 1) : t_ns;
    for (size_t k = 0; k < e->n_windows; k++) {
        const struct nrg_span_ns *w = &e->windows[k];
        if ((last_ns <= w->begin_ns && w->begin_ns <= next_ns) ||
            (last_ns <= w->end_ns && w->end_ns <= next_ns))
            return true;
    }
    return false;
}

static bool is_kept(const struct nrg_engine *e, const struct nrg_part *part, size_t i,
                    const struct nrg_reading_point *last)
{
    const struct nrg_timeline *tl = part->tl;
    bool still = i && i + 1 < tl->n && nrg_point_j(tl, i) == last->sum_j &&
                 !nrg_point_gap(tl, i - 1) && !nrg_point_gap(tl, i);
    double since_ns = i ? (double)(nrg_point_ns(tl, i) - last->t_ns) : 0;
    return !still || since_ns > LONGEST * (double)part->width_ns || is_border(e, tl, i);
}

static int join_updates(struct nrg_engine *e, struct nrg_part *part)
{
    const struct nrg_timeline *tl = part->tl;
    struct nrg_timeline *own = nrg_arena_alloc(&e->memory, sizeof *own);
    struct nrg_reading_point last = {0};
    if (!own)
        return -ENOMEM;
    *own = *tl;
    own->n = 0;
    own->packed = NULL;
    own->t_ns = nrg_arena_array(&e->memory, tl->n + 1, sizeof *own->t_ns);
    own->sum_j = nrg_arena_array(&e->memory, tl->n + 1, sizeof *own->sum_j);
    own->gap = nrg_arena_array(&e->memory, tl->n + 1, sizeof *own->gap);
    for (size_t i = 0; !e->memory.failed && i < tl->n; i++) {
        if (!is_kept(e, part, i, &last))
            continue;
        last = nrg_point_at(tl, i);
        own->t_ns[own->n] = last.t_ns;
        own->sum_j[own->n] = last.sum_j;
        own->gap[own->n++] = last.gap;
    }
    part->tl = own;
    return e->memory.failed ? -ENOMEM : 0;
}

int nrg_stairs_join(struct nrg_engine *e)
{
    int rc = 0;
    for (size_t p = 0; !rc && p < e->n_parts; p++) {
        struct nrg_part *part = &e->parts[p];
        double read_s = nrg_reading_period_s(part->tl);
        bool counter = !part->tl->is_gauge && part->channel->channel.provenance != NRG_ESTIMATED;
        if (part->method != NRG_METHOD_INTEGRATE || !counter || !(part->update_s > 0) ||
            part->update_s < READ_PER_UPDATE * read_s)
            continue;
        rc = join_updates(e, part);
        part->update_s = read_s; /* it moved between that reading and the one before */
    }
    return rc;
}

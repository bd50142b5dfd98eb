/*
 * When in the first and the last cell of a run threads were busy outside of their spans is not
 * known: they may not have run at all yet. The same of the cells of a thread's first span and its
 * last one. How long a single thread was is, so each of these is one row then: without them nothing
 * may tell idle power from a thread that always works.
 *
 * Of several threads it is known less well, and rows there are left out; those around the first
 * and the last span of each thread, too. There the number of busy CPUs changes within a cell,
 * while the CPU times of processes and of the machine are read at other moments: a part of it looks
 * like another process. Threads that always work are told from each other by the few moments in
 * which one of them rests, so one such cell has as much to say as all others together. Programs
 * that begin threads all the time keep their rows.
 */
#include "attribute/regress/rows/edges.h"

#include <errno.h>
#include <math.h>

#include "attribute/internal.h"

#define FEW_CELLS  10  /* of a run: none of them can be spared */
#define LOST_CELLS 20  /* the same where four are left out */
#define BEGINS     0.1 /* of all cells, in which threads begin or end: more are the usual */

static void add_edge(const struct nrg_cells *c, size_t first, size_t last,
                     struct nrg_regress_options *o)
{
    struct nrg_span_ns edge = {c->begin_ns[first], c->begin_ns[last + 1]};
    struct nrg_span_ns *before = o->n_edges ? &o->edges[o->n_edges - 1] : NULL;
    if (!before || before->end_ns <= edge.begin_ns)
        o->edges[o->n_edges++] = edge;
    else if (before->end_ns < edge.end_ns)
        before->end_ns = edge.end_ns;
}

/*
 * The run's ends may cut cells short: each of the two is at least as long as a cell, or the thread
 * begins and ends in a row that is taken to be exact.
 */
static void know_one(const struct nrg_engine *e, struct nrg_regress_options *o)
{
    const struct nrg_cells *c = &e->cells;
    /* Of who runs, CPU time is shown as of the last tick. */
    o->edge_off_s = nrg_busy_tick_s(e) / sqrt(3);
    int64_t least_ns = (c->begin_ns[c->n] - c->begin_ns[0]) / (int64_t)c->n * 99 / 100;
    size_t begins = nrg_cells_find(c, c->first_ns[0]), ends = nrg_cells_find(c, c->last_ns[0]);
    size_t more = c->begin_ns[1] - c->begin_ns[0] < least_ns, last = c->n - 1;
    add_edge(c, 0, more, o);
    add_edge(c, begins, begins, o);
    add_edge(c, ends, ends, o);
    more = c->begin_ns[last + 1] - c->begin_ns[last] < least_ns;
    add_edge(c, last - more, last, o);
}

/* The cell of a moment, and those beside it, in which its CPU time may have been read. */
static void mark_around(const struct nrg_cells *c, int64_t t_ns, uint8_t *marked)
{
    size_t at = nrg_cells_find(c, t_ns), to = at + 1 < c->n ? at + 1 : at;
    for (size_t k = at ? at - 1 : 0; k <= to; k++)
        marked[k] = 1;
}

/* Cells in which threads of the processors begin and end; returns how many. */
static size_t mark_threads(const struct nrg_cells *c, uint8_t *marked)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_tracks; i++) {
        if (c->track_pool[i] || !c->first_ns[i])
            continue;
        mark_around(c, c->first_ns[i], marked);
        mark_around(c, c->last_ns[i], marked);
    }
    for (size_t k = 0; k < c->n; k++)
        n += marked[k];
    return n;
}

static int know_several(const struct nrg_cells *c, struct nrg_regress_options *o,
                        struct nrg_arena *memory)
{
    uint8_t *marked = nrg_arena_array(memory, c->n, sizeof *marked);
    struct nrg_span_ns *unsure = nrg_arena_array(memory, c->n, sizeof *unsure);
    if (memory->failed)
        return -ENOMEM;
    if ((double)mark_threads(c, marked) > BEGINS * (double)c->n)
        return 0;
    for (size_t k = 0; k < c->n; k++) {
        if (marked[k] && (!k || !marked[k - 1]))
            unsure[o->n_unsure++].begin_ns = c->begin_ns[k];
        if (marked[k])
            unsure[o->n_unsure - 1].end_ns = c->begin_ns[k + 1];
    }
    o->unsure = unsure;
    return 0;
}

int nrg_regress_know_edges(const struct nrg_engine *e, const struct nrg_part *part,
                           struct nrg_regress_options *o, struct nrg_arena *memory)
{
    const struct nrg_cells *c = &e->cells;
    if (c->n < (c->one_thread ? FEW_CELLS : LOST_CELLS) || !c->has_rates)
        return 0;
    if (c->one_thread) {
        know_one(e, o);
        return 0;
    }
    o->first_whole_ns = c->begin_ns[2]; /* CPU times are read some ms after a cell began */
    o->last_whole_ns = c->begin_ns[c->n - 2];
    return part->pool ? 0 : know_several(c, o, memory);
}

/*
 * Energy of one channel as a function of time, asked in order of time: what a walk through
 * millions of spans needs. Each step costs a few multiplications, not a search. The numbers are
 * those of nrg_timeline_between (timeline.h).
 *
 * With a lag, the sensor shows power averaged over its time constant; what was really used up to t
 * is the integral of what it shows plus lag * P(t). As that is a function of t alone, parts still
 * add up to the whole.
 *
 * Beside it runs the grid: the intervals in which the sensor can't tell when energy was used. One
 * is the time between two readings, or as many of them as one update of the sensor spans.
 *
 * Embedded, holds no memory; the timeline must outlive it. Nothing can fail. One thread at a time.
 */
#ifndef NRG_ENERGY_CURSOR_H
#define NRG_ENERGY_CURSOR_H

#include "energy/timeline.h"

/* A point more of a counter's timeline, in the interval that begins at its point `from`. */
struct nrg_energy_point {
    int64_t t_ns;
    double sum_j;
    size_t from;
};

struct nrg_energy_cursor {
    const struct nrg_timeline *tl;
    const struct nrg_energy_point *more; /* those that are not passed yet, in order of time */
    size_t n_more;
    double lag_s;
    ptrdiff_t next;  /* index of the point that ends this interval; -1: before the first */
    int64_t from_ns; /* the last point up to the begin of the piece, and its sum */
    double from_j;
    int64_t begin_ns, end_ns; /* of the piece */
    double sum_j, covered_ns; /* at its begin */
    double w0, slope_w;       /* power at its begin, with lag; change per s */
    bool known;
};

/* Joules and known time since init. */
struct nrg_energy_at {
    double energy_j, covered_ns;
};

void nrg_energy_cursor_init(struct nrg_energy_cursor *cursor, const struct nrg_timeline *timeline,
                            int64_t begin_ns, double lag_s);
/* Right after init: as if the timeline had these points, too. They must outlive the cursor. */
void nrg_energy_cursor_refine(struct nrg_energy_cursor *cursor, const struct nrg_energy_point *more,
                              size_t n);
void nrg_energy_cursor_advance(struct nrg_energy_cursor *cursor, int64_t t_ns);

/* t_ns may not go back from one call to the next. */
static inline struct nrg_energy_at nrg_energy_cursor_at(struct nrg_energy_cursor *c, int64_t t_ns)
{
    if (t_ns > c->end_ns)
        nrg_energy_cursor_advance(c, t_ns);
    double ns = (double)(t_ns - c->begin_ns), s = ns * 1e-9;
    return (struct nrg_energy_at){c->sum_j + (c->w0 + c->slope_w / 2 * s) * s,
                                  c->covered_ns + (c->known ? ns : 0)};
}

struct nrg_grid {
    const struct nrg_timeline *tl;
    int64_t width_ns;         /* at least this wide */
    size_t from, to;          /* points */
    uint32_t index;           /* from 1; 0: before the first */
    int64_t begin_ns, end_ns; /* INT64_MAX after the last point */
    double energy_j;          /* within it */
    double before_w, after_w; /* mean power of its neighbours; its own where there is none */
    double own_w;             /* its own; NAN: not known */
    size_t next_to;           /* the point that ends the next one, and its power */
    double next_w;
    double last_energy_j; /* of the one before */
    int64_t last_begin_ns;
};

/* The point that ends the interval that begins at point `from`; n of the timeline or more: none. */
size_t nrg_grid_end_of(const struct nrg_grid *g, size_t from);
void nrg_grid_init(struct nrg_grid *grid, const struct nrg_timeline *timeline, int64_t width_ns);
void nrg_grid_advance(struct nrg_grid *grid, int64_t t_ns);
static inline void nrg_grid_at(struct nrg_grid *grid, int64_t t_ns)
{
    if (t_ns >= grid->end_ns)
        nrg_grid_advance(grid, t_ns);
}

/* The sensor's resolution in time: its update period or the median time between readings,
 * whichever is longer. */
int64_t nrg_timeline_width_ns(const struct nrg_timeline *timeline,
                              const struct nrg_recorded_channel *channel);

#endif

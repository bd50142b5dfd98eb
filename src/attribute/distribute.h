/*
 * What the walk over spans holds: it gives energy to every stretch (distribute.c), and hands the
 * same stretches to the regression as slices with their CPU time (hand_over.c).
 *
 * Made and released by distribute.c. 0 or -errno; a function that gets no result back leaves it in
 * rc. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_DISTRIBUTE_H
#define NRG_ATTRIBUTE_DISTRIBUTE_H

#include "attribute/flow.h"
#include "attribute/regress/rows/slicer.h"
#include "energy/readings.h"

struct nrg_walk_stretch {
    int64_t begin_ns, inside_ns; /* inside_ns: within the windows */
    double work_s;               /* of the track when it began */
};

struct nrg_walk_track {
    struct nrg_walk_stretch self;
    struct nrg_walk_stretch *open; /* per depth */
    struct nrg_edge *edges;        /* [depth * n_parts + part] */
    size_t cap_open, cap_edges;
    int64_t path_ns; /* of the self stretch, since when it is of its path: inside_ns, or a folded
                        span's edge */
    bool in_parts;   /* spans without a path of their own came in it: it is no call */
};

/* A thread's interval or cell, whose CPU time its slices share. */
struct nrg_cpu_group {
    size_t index;
    bool own; /* an interval of the thread */
    uint32_t number;
    size_t at; /* see nrg_thread_times_at */
};

struct nrg_walk_state {
    struct nrg_engine *e;
    struct nrg_arena memory; /* of the arrays */
    struct nrg_flows flows;
    struct nrg_grid *grids;        /* per part */
    size_t *divisions;             /* per part: the next */
    struct nrg_readings *readings; /* per part */
    struct nrg_edge *now;          /* per part: the event that is being handled */
    struct nrg_walk_track *tracks;
    struct nrg_edge *self_edges;     /* [track * n_parts + part] */
    size_t *self_reading;            /* same: the first reading of the self stretch */
    struct nrg_slicer *slicer;       /* NULL: no regression */
    struct nrg_walk_stretch *slices; /* per track: since the last one that was handed over */
    int64_t *gap_ns;                 /* per pool: since when no track has a span open */
    int64_t *rest_from_ns;           /* per pool: all of it; INT64_MIN: there was none yet */
    int64_t *track_gap_ns;           /* per track, the same; since its last slice */
    int64_t *gap_from_ns;            /* per track: all of it */
    struct nrg_cpu_group *groups;    /* per track */
    uint32_t n_groups;
    int rc;
};

/* Hands over what a track did since its last slice. */
int nrg_hand_over(struct nrg_walk_state *w, size_t track, int64_t t_ns);
/* No track of the pool had a span open until now. */
int nrg_hand_over_gap(struct nrg_walk_state *w, uint32_t pool, int64_t t_ns);
/* A span begins; what came before the first one is no gap between spans. */
int nrg_hand_over_track_gap(struct nrg_walk_state *w, size_t track, int64_t t_ns);
/* A cell ends: all that is open is handed over. arg: the state. */
void nrg_hand_over_cell(void *arg, int64_t t_ns);

#endif

/*
 * How energy is credited to tracks as time goes by, for distribute.c.
 *
 * The energy of an instant is shared between all tracks that have a span open then. Touching all of
 * them at every event would cost events times tracks; instead each group of tracks carries a
 * potential: the integral of (its active power / sum of the weights of its open tracks). What a
 * track gets between two instants is its weight times the difference of the potential, so an event
 * touches its own track and group only. Weights change from cell to cell, where all are
 * settled. Idle energy has a potential of its own, with equal weights.
 *
 * Init, then events in order of time (each: move_to, move_pool, settle_group, then what happens to
 * the track), finish, release. Only init can fail, with -ENOMEM. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_FLOW_H
#define NRG_ATTRIBUTE_FLOW_H

#include "attribute/internal.h"

/* Of a part, at the time up to which its pool was moved. */
struct nrg_flow {
    struct nrg_energy_cursor cursor;
    double active_j, idle_j, covered_ns; /* since the begin; active_j without others' */
    double cell_active_j, cell_idle_j, cell_known_ns; /* the same when the cell began */
    double cell_energy_j, cell_covered_ns;            /* of the cursor */
    double idle_w, others_w, mine;    /* of the cell; mine: 1 - others' part beyond others_w */
    double idle_per_track, idle_done; /* potential, and idle_j that is in it */
    double unattributed_j, other_j, total_j;
};

struct nrg_group_flow {
    double weight; /* sum over its open tracks */
    size_t open;
    double work; /* potential of time: integral of share / weight */
    int64_t done_ns;
};

struct nrg_track_flow {
    uint32_t row, path; /* that its energy goes to */
    uint32_t step;      /* also to this one, counted from 1; 0: none */
    bool open;
    double weight, work_s, work_done;
    size_t interval; /* of its CPU times, the last that was looked at */
    int64_t t_ns;    /* credited up to here */
};

struct nrg_flows {
    struct nrg_engine *e;
    struct nrg_arena memory; /* of what follows */
    struct nrg_flow *parts;
    size_t *pool_parts, *pool_from; /* pool i: pool_parts[pool_from[i] .. pool_from[i + 1]) */
    size_t *pool_open;
    struct nrg_group_flow *groups;
    struct nrg_track_flow *tracks;
    double *left;                                         /* per pool */
    double *potential, *active_done;                      /* [group * n_parts + part] */
    double *track_potential, *track_idle, *track_covered; /* [track * n_parts + part] */
    struct nrg_single_steps *steps;                       /* NULL: not asked for */
    size_t cell;
    size_t edge;              /* the next one of the engine's buckets */
    int64_t begin_ns, end_ns; /* of all windows */
    /* Called where a cell ends, when all are credited up to there; NULL. */
    void (*border)(void *arg, int64_t t_ns);
    void *border_arg;
};

/* The moment within the windows that is nearest to t_ns. */
static inline int64_t nrg_flows_inside(const struct nrg_flows *flows, int64_t t_ns)
{
    return t_ns < flows->begin_ns ? flows->begin_ns : t_ns > flows->end_ns ? flows->end_ns : t_ns;
}

int nrg_flows_init(struct nrg_flows *flows, struct nrg_engine *engine);
void nrg_flows_release(struct nrg_flows *flows);
/* Up to the end of the last window. */
void nrg_flows_finish(struct nrg_flows *flows);

/* Into the cell that holds t_ns, which is within the windows. */
void nrg_flows_move_to(struct nrg_flows *flows, int64_t t_ns);
/* All parts of a pool up to t_ns, and the idle potential with them. */
void nrg_flows_move_pool(struct nrg_flows *flows, size_t pool, int64_t t_ns);
void nrg_flows_settle_group(struct nrg_flows *flows, size_t group, int64_t t_ns);
/* CPU seconds per second of a track from t_ns on, with a span open or without, as it is; until
 * when, and in which interval of its own: of this cell, where it has none. */
double nrg_flows_rate(const struct nrg_flows *flows, size_t track, int64_t t_ns, size_t *at,
                      struct nrg_thread_rate *until);
/* What an open track has earned since it was credited last goes to its row. */
void nrg_flows_credit(struct nrg_flows *flows, size_t track, int64_t t_ns);
void nrg_flows_start_track(struct nrg_flows *flows, size_t track, int64_t t_ns);
void nrg_flows_stop_track(struct nrg_flows *flows, size_t track);

#endif

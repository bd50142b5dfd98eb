/*
 * Power per class of spans, from a sensor that is slower than they are: over all intervals of the
 * sensor, energy = sum over classes (time of the class within it * its power) + idle power * time,
 * solved by weighted least squares with powers not negative, and intervals that cover.
 *
 * A call may use the same whatever it lasts, or wait part of the time. So a class may have another
 * column: how much longer its calls would have been in this interval, had all been of mean length.
 * Over the run that is 0, and the class's energy stays its time * its power.
 *
 * A sensor that averages (INA3221, NVML) sees the past: instead of undoing that in its readings,
 * which would blow up their noise, the same averaging is applied to the activity of the classes.
 * Several candidates of the averaging are carried along in one pass, and the one that explains
 * the readings best is taken where it is not known.
 *
 * Streamed: slices in order of time, memory of the order of classes squared times candidates.
 * Classes that always occur in the same proportion can't be told apart and come back as one group.
 *
 * New, slices, solve, free; the result is the caller's. 0 or -errno. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_FIT_H
#define NRG_ATTRIBUTE_REGRESS_FIT_H

#include "attribute/attribution.h"
#include "attribute/regress/idle/idle_course.h"
#include "energy/bins.h"
#include "energy/timeline.h"

/* No number is more certain than this part of it: weights and clocks leave that much. */
#define NRG_REGRESS_LEAST_ERROR 1e-4
/* Times what the recorder is taken to have woken in a baseline (recorder.h), either way. */
#define NRG_WOKEN_OFF 2.0
#define NRG_ALIKE     8 /* sides that are taken to be alike, at most */
/* Of a class's power: whose doubt it is, after the shapes of idle power's course. */
enum {
    NRG_DOUBT_REST = NRG_IDLE_SHAPES, /* what no shape has */
    NRG_DOUBT_FALL,                   /* a fall that may be the load's */
    NRG_DOUBT_AWAKE,
    NRG_DOUBT_TOGETHER,
    NRG_DOUBT_WORKERS,
    NRG_DOUBT_OTHERS,
    NRG_DOUBT_ALIKE,
    NRG_DOUBT_WOKEN = NRG_DOUBT_ALIKE + NRG_ALIKE,
    NRG_DOUBT_GAPS, /* what may belong to the time without spans */
    NRG_DOUBT_OTHERWISE,
    NRG_DOUBT_WITHIN,
    NRG_DOUBTS
};
#define NRG_REGRESS_EDGES 4 /* of a run, and of what its thread does */

struct nrg_regress;
struct nrg_together;
struct nrg_run_pace;

struct nrg_regress_options {
    const struct nrg_timeline *timeline; /* of the sensor; must outlive the regression */
    const struct nrg_channel *channel;
    int64_t begin_ns, end_ns; /* readings outside are not used */
    /* Readings before the one and after the other are those of cells that are not known as the
     * others are, and there are no rows of them. 0: there are none */
    int64_t first_whole_ns, last_whole_ns;
    /* Such cells of which more is known, in order: a counter's readings of each are one row. */
    struct nrg_span_ns edges[NRG_REGRESS_EDGES];
    size_t n_edges;
    double edge_off_s; /* by which their CPU times are off, a deviation */
    /* Readings of these stretches have no rows (edges.c); in order of time, apart; must outlive the
     * regression */
    const struct nrg_span_ns *unsure;
    size_t n_unsure;
    size_t n_classes;
    enum nrg_lag_mode lag;
    double lag_s;        /* with NRG_LAG_GIVEN; with AUTO the channel's own, when it is known */
    double seen_lag_s;   /* with AUTO: time constant seen where the load changed (lag.h); 0: none */
    double idle_w;       /* known idle power of this domain; NAN: to be fitted if it can be */
    double idle_error_w; /* standard error of idle_w; 0: it is exact */
    bool idle_guessed;   /* idle_w is no measurement */
    struct nrg_idle_course course;
    double
        idle_shape_w[NRG_IDLE_SHAPES]; /* how far it may go along each, a deviation; 0: not said */
    double idle_bent_w;   /* what is expected of the bend, where idle power is known to change */
    bool seen_twice;      /* there was a baseline after the run, too */
    double idle_after_w;  /* how much more it was then than idle_w */
    double idle_busy;     /* CPUs of others that idle_w has in it, whose power does not drift */
    double busy_after;    /* and how many more there were after the run */
    double idle_busy_w;   /* the most that these can have drawn */
    double others_most_w; /* of their CPU second; 0: nothing is said of it */
    double idle_told_s2;  /* see struct nrg_cells */
    double others_busy;   /* CPUs that others have in the run beyond that, in its mean */
    bool others_hidden;   /* these are so few that ticks hide when they ran */
    size_t others_class;  /* theirs */
    size_t workers_class; /* of processes of the workload without spans */
    double woken_w;       /* that a CPU of the workload draws more, since the recorder woke an idle
                             machine in the baseline: the middle of what that may be */
    size_t spans;         /* classes before this one are spans', */
    size_t n_whole;       /* and so are those from this one on */
    size_t n_cells;       /* in which CPU times are known; 0: it does not matter */
    /* Their begins, and the end of the last one; must outlive the regression. */
    const int64_t *cell_ns;
    bool has_gaps;     /* a class is the time without any span, in which nothing has to run */
    size_t gap_class;  /* that one */
    double confidence; /* 0.95 */
    bool adds_up;      /* rates are CPUs, so that their sum is how many are busy */
    bool shares;       /* a rate below 1 is that of every instant: nothing waits unseen */
    double unplaced_s; /* work that is in no class, because it is not known when it was */
    size_t held;       /* slices kept in memory before they are streamed; 0: 4 million */
    struct nrg_updates_found updates; /* of a regression before; not sought: they are now */
    /* set by the regression itself: how long a row is at least, and whether calls have columns */
    int64_t merged_ns;
    const struct nrg_borders
        *borders; /* a row goes on up to the next of them, or steady_ns; NULL */
    int64_t steady_ns;
    int64_t punctual_ns; /* of merged readings, when one is due; 0: not known */
    bool calls;
    bool within_evenly;    /* within.c: its shapes are those without columns of calls */
    const double *call_s;  /* per column of calls: work of one in the mean */
    const double *waits_w; /* per column: power that its calls lack while they wait; NULL */
    /* Where CPU times say when calls wait (waits.c): CPU time of a column's rates as it was found,
     * and shapes; NULL */
    const double *waits_scale, *waits_shape;
    /* Columns of calls say instead whether those of a class wait early or late, and these columns,
     * per one of calls, whether in the middle; NULL: neither */
    const uint32_t *middle_of;
    uint32_t others_column; /* of others_class; 0: none, or nothing that could be late */
    const double *awake; /* per column: time that its calls wait, per CPU second of it; NULL: they
                            do not (awake.c) */
    const struct nrg_run_pace *pace;     /* a column of how fast the program gets on; NULL: none */
    const struct nrg_together *together; /* columns of CPUs that are busy together; NULL: none */
    /* Per column of a class, the first of the columns that say when in its calls energy is used
     * (within.c), as parts of this power; NULL: none */
    const uint32_t *within_of;
    double within_w;
};

struct nrg_regress_class {
    double power_w;             /* above idle where idle is known or fitted; NAN: never active */
    double low_w, high_w;       /* of power_w */
    double free_w;              /* what it is where powers may be negative: sums reach to that */
    double drift_w[NRG_DOUBTS]; /* how much of it may come from taking idle power to have gone along
                                   that shape, or not to have; from what waits draw; from who had
                                   what CPUs draw together; from what workers and others drew; from
                                   what the recorder woke in the baseline; and from when in its
                                   calls it is used, or whether by calls */
    double time_s;              /* that was in used intervals, lag applied */
    size_t group;               /* equal for classes that can't be told apart; else its own index */
    bool unresolved;            /* the interval is wider than the number */
};

struct nrg_regress_result {
    struct nrg_regress_class *classes;      /* n_classes */
    double idle_w, idle_low_w, idle_high_w; /* NAN: part of the classes' powers */
    double idle_off_w;                      /* of a known idle_w, in the mean of the run */
    /* The same with what others had beyond the baseline, and half of its interval. Others can't
     * draw less than nothing: what is idle power's of it then. */
    double beside_w, beside_half_w, beside_idle_w;
    double idle_shape_w[NRG_IDLE_SHAPES]; /* of that, along each */
    struct nrg_idle_walk idle_walk;       /* besides, where it went its own way */
    bool idle_fitted;
    bool others_held;   /* what others draw is not told by rows (crowd.c) */
    bool others_steady; /* the same, since they were as busy all the time */
    double lag_s;
    char lag_source[32];  /* "driver", "given", "fitted", "none" */
    bool window;          /* readings were taken as those of a part of each update alone */
    size_t intervals;     /* of the sensor that were used */
    double residual;      /* rms of what is not explained / rms of interval energy */
    bool only_rounding;   /* that is no more than the steps that the sensor shows */
    double left_over;     /* of a counter's energy in sum, as a part of what classes have */
    double to_neighbours; /* the same of a class alone, that cancels in the sum of all */
    double *covariance;   /* n_classes * n_classes, W^2: for intervals of sums; groups as one */
    /* of a fitted idle, for intervals of power_w + idle_w: NULL and 0 where it was not fitted */
    double *idle_covariance; /* with each class, W^2 */
    double idle_variance;
    double t; /* half of an interval = t * square root of its variance */
};

int nrg_regress_new(const struct nrg_regress_options *options, struct nrg_regress **regress);
/* A class was active between the two instants. */
struct nrg_class_activity {
    int64_t begin_ns, end_ns;
    size_t class_;
    double rate;  /* work per second: CPU seconds, or its share of a GPU; of others, that above the
                     baseline's, which may be negative */
    double calls; /* how many it is, or the part of one; 0: they are not counted */
    uint32_t cell, group; /* its cell, and that of its thread in it: these have one CPU time, and
                             rates that say no more than that; both rise with time; 0: not so */
    bool anywhere;        /* its rate is the mean of a cell: when in it, is not known */
    double unsure2; /* of such a rate, the square by which it may be off, up to a factor for all */
};

/* In order of begin_ns; those of different classes may overlap. */
int nrg_regress_slice(struct nrg_regress *regress, const struct nrg_class_activity *activity);
/* -ENODATA when there are fewer usable intervals than unknowns, or it is lost when a gauge that
 * sees a part of each update looked: the caller takes another method. */
int nrg_regress_solve(struct nrg_regress *regress, struct nrg_regress_result *result);
/* What was found of the sensor's updates, also where solve failed. */
struct nrg_updates_found nrg_regress_updates(const struct nrg_regress *regress);
/* The timeline with the times of updates in place of those of readings, where they were found; else
 * as it was given. The regression's. */
const struct nrg_timeline *nrg_regress_timeline(const struct nrg_regress *regress);
void nrg_regress_result_release(struct nrg_regress_result *result);
void nrg_regress_free(struct nrg_regress *regress);

#endif

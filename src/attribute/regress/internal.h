/*
 * What the files of the regression share: its state, the model of the sensor that is chosen once,
 * from the slices that are held, before rows are summed up for good, and the solver.
 *
 * Order: slices (rows/slicer.c) are held (fit.c) until there are too many or the end is reached;
 * where threads wait, CPU times say in which calls (waits/), and how many work at a time
 * (load/together.c); the times of updates, the kernel and the noise are chosen from them (model.c,
 * updates/, choose.c, noise.c), by passes over rows (pass.c, rows/), and whether power changes
 * within calls (load/within.c); rows are made, whitened, weighted and summed up in blocks of time
 * (fit.c); the blocks give powers and groups (solve.c), also with what is common to calls
 * (load/calls.c), how idle power went (idle/walk.c), intervals (spread.c), whether it drifted
 * (idle/drift.c), and the figures that callers get (result.c).
 *
 * The regression owns everything here but the solver, which result.c makes and releases. 0 or
 * -ENOMEM, and -ENODATA from solve when rows do not suffice. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_INTERNAL_H
#define NRG_ATTRIBUTE_REGRESS_INTERNAL_H

#include "attribute/regress/rows/borders.h"
#include "attribute/regress/rows/kept_rows.h"
#include "attribute/regress/rows/prefix.h"
#include "attribute/regress/rows/rows.h"
#include "attribute/regress/rows/slice_index.h"
#include "base/arena.h"
#include "base/nnls.h"
#include "energy/updates/update_grid.h"

/*
 * What a row is off by: e[i] = phi e[i-1] + u[i] - theta u[i-1], with u independent of one another
 * and of variance floor2 + slope2 * m^2, where m is the y that was expected (with phi: whitened,
 * the part of it that is new). Rounding and late updates of a counter come back in the next
 * interval (theta > 0); a sensor that averages noise remembers it (phi > 0).
 */
struct nrg_noise {
    double phi, theta, floor2, slope2;
    double cut; /* of what calls, or others, may have used on the other side of a row's ends; then
                   theta is that of each row: nrg_whiten */
    double unsure;  /* the same of others alone, where rows are short: noise that lasts, then */
    double border2; /* with cut: what of floor2 is at a row's begin, and the same at its end */
};

/* Variance of a row of which this was expected, by the noise alone. */
double nrg_noise_variance(const struct nrg_noise *noise, double expected,
                          const struct nrg_rowgen *gen);
/* Weight of a row, given its variance and what is left of it, when whitened. */
double nrg_noise_weight(double variance, double white_e);

/* Makes u from e, for y and every column alike. */
struct nrg_whitener {
    double phi, theta, cut, border2;
    double variance;      /* of the last row, whitened */
    double *last, *white; /* y, then columns */
    size_t n, cap_last, cap_white;
    bool primed;
};

void nrg_whitener_release(struct nrg_whitener *whitener);
/* In place on gen's row and its variance; 0: the first of a stretch, not to be used. -ENOMEM. */
int nrg_whiten(struct nrg_whitener *whitener, struct nrg_rowgen *gen, double *variance);

#define NRG_REGRESS_BLOCKS 64
#define NRG_GROUP_MEMBER   0.01 /* a part this small does not make a class one of a group */

/* At most: of a class, of its calls, one more where calls say when they wait, those of when in its
 * calls energy is used, and those of CPUs together. */
#define NRG_REGRESS_COLUMNS(options)                                                               \
    (3 * (options)->n_classes + NRG_WITHIN_SHAPES * NRG_WITHIN_CLASSES + NRG_COLUMN_CLASSES +      \
     NRG_TOGETHER)
#define NRG_WITHIN_CLASSES 24 /* that have these, at most */

/* Two kernels close to the chosen one, whose rows are made in step with its rows. */
struct nrg_bend {
    struct nrg_rowgen gen[2]; /* moved forward by step_s, and back */
    double step_s;            /* 0: not used */
};

/* Readings that saw one column alone: sums of weight * its own part * that of itself, and of the
 * columns that all rows have. */
struct nrg_pure {
    double own, common[NRG_COLUMN_CLASSES];
};

/* New values of a sensor that is read faster than it updates: publish.c. */
#define NRG_MEAN_PHI 0.99 /* of what a running mean is off by: see struct nrg_noise */

struct nrg_published {
    bool used;
    struct nrg_timeline timeline;
    int64_t *before_ns; /* the last reading of the value before */
    struct nrg_update *updates;
    double update_s;
    bool lost;       /* when it updates can't be told, nor so what it saw */
    double window_s; /* of a gauge, how long of each update it sees; 0: all of it, or not known */
    double mean_updates; /* the same of a running mean, in updates of the device; 0: it is none */
};

/* When threads wait, by their CPU times: waits.c. Per place, which is a class or some small ones.
 */
struct nrg_waits {
    bool used;
    bool finer;         /* threads read their CPU times themselves, several times in a cell */
    uint32_t *place_of; /* per column */
    size_t n_places;
    double *busy;            /* CPU time of a call of mean length, per second of it */
    double *longer;          /* the same of every second that a call is longer */
    double *open_s, *call_s; /* of all calls, and of one in the mean */
    double *off_s;           /* by how much a call is longer or shorter, in the mean */
    double *length2;         /* variance of a call's length */
    double bend;    /* CPU time of every second that a call is longer or shorter, beyond off_s */
    double *error2; /* covariance of busy, packed */
    double shape[NRG_WAIT_SHAPES]; /* part of the calls that wait at each place */
    double shape_error2[NRG_WAIT_SHAPES * (NRG_WAIT_SHAPES + 1) / 2]; /* covariance, packed */
    double alpha, gamma; /* variance of CPU time: per square of a call, and where calls are cut */
    double *scale;       /* per column: CPU time as it was found / as rates had it; 0: none */
    uint64_t settled;    /* slices up to here have rates by this */
};

/* How many are 2^i up to twice as many ns long, and their time. */
struct nrg_stretches {
    double n[64], s[64];
};

/* Stretches of so many rows, as rows (load/row_sums.c): what they are off by, how much they count,
 * and the one that is being added up. */
#define NRG_ROW_SUMS 6
struct nrg_row_sum {
    size_t rows, n;
    double variance, weight;
    double *x, y;
};

/* Watts of processes beside the spans, by cells (load/beside.c); error_w 0: not known. */
enum { NRG_WORKERS, NRG_OTHERS, NRG_BESIDE };
struct nrg_workers_watts {
    double power_w, error_w;
    double once_w; /* beyond that, either way */
};

struct nrg_regress {
    struct nrg_regress_options options;
    struct nrg_published published;
    double clock_gain; /* how many times less is left with times of updates; 0: as they were read */
    struct nrg_regress_options as_read; /* before times became those of updates; n_classes 0: they
                                           did not */
    struct nrg_arena memory;            /* of the arrays per class and per column */
    uint32_t *column_of;                /* class to column; 0: none yet */
    uint32_t *calls_column_of;          /* the same of its calls */
    size_t *class_of;                   /* column to class */
    uint32_t *middle_of;                /* per column of calls: see the options */
    uint32_t *within_of;                /* per column of a class: see the options */
    size_t first_within, end_within;    /* these columns; first 0: none */
    bool *is_calls;                     /* per column: it may be negative */
    double *call_s;                     /* per column of calls: work of one in the mean */
    double *mean_rate;                  /* per column: work per second */
    double *waits_w;                    /* per column: see the options */
    struct nrg_waits waits;
    struct nrg_together together;
    struct nrg_workers_watts workers;
    struct nrg_run_pace pace;
    double awake_w;                      /* what waits may draw, a deviation */
    double awake_taken, awake_taken_off; /* part of it that others have, and what that is off by */
    uint32_t first_cell,
        last_cell; /* of slices; the last, the cell that is not complete, where it begins */
    uint64_t cell_slice;
    int64_t cell_begin_ns;
    size_t n_columns, last_column;
    double *time_s;        /* per column, in used rows */
    struct nrg_pure *pure; /* per column */
    struct nrg_slices slices;
    struct nrg_borders borders; /* of these */
    int64_t last_begin_ns, last_end_ns;
    int64_t covered_until_ns;
    double covered_s;          /* with any class active */
    double others_s, unsure_s; /* with others known, and when in it they ran is not */
    bool others_unsure;        /* that hides some rows more than others */
    struct nrg_stretches gaps; /* without any span: see the options */
    int64_t ready_ns;          /* all slices that begin before have come */
    int64_t grain_ns;          /* all stamps are this far apart, or multiples of it */
    struct nrg_gram edges;     /* ends of slices: 2 each on the diagonal, -1 where two share one */
    double repeats; /* readings that were rounded alike, per reading: see same_rounding */
    double pure_rows, pure_e2; /* all of them, and the squares of what is left of them */
    double quantum;            /* of a gauge, W; 0: none seen */
    double energy_j, energy_s; /* of all rows, before any is made */
    double working_w;          /* above idle, while anything is drawn: of a joule in the mean */
    size_t rows_expected, row, next_turn; /* next_turn: held slices that start summing up */

    bool chosen;
    bool plenty; /* of rows: drift and bends are fitted too */
    bool drifts; /* shapes of idle power are fitted: they need fewer, as something holds them */
    struct nrg_kernel kernel;
    char lag_source[32];
    struct nrg_noise noise;
    double course_odds; /* log, that what rows leave slowly is idle power's and not the load's;
                           -INFINITY: nothing is */
    double course_seen; /* the same before the sensor was chosen */
    struct nrg_heat own_course; /* then, as a shape */
    double first_phi;           /* of the trial that the kernel was chosen by */
    double *prior;              /* first powers per column: for weights */
    double untold;              /* how much speaks for the powers by other columns: 0 to 1 */
    double *otherwise;          /* these: with columns that were not taken, or without; NULL */
    size_t n_prior, n_otherwise;
    double *plain; /* without columns of when in calls energy is used, where they are; NULL */
    size_t n_plain;
    double rough; /* of what they change, so much may be wrong */

    struct nrg_kept_rows *kept;
    const struct nrg_prefix *grid_sums; /* while updates are sought; NULL */
    struct nrg_rowgen gen;
    struct nrg_bend bend[2]; /* shift, memory */
    struct nrg_whitener whitener;
    struct nrg_gram block[NRG_REGRESS_BLOCKS];
    int64_t block_ns[NRG_REGRESS_BLOCKS]; /* of their first rows */
    size_t n_blocks;
    struct nrg_row_sum sums[NRG_ROW_SUMS];
    size_t n_sums;
    double sum_y2, sum_e2; /* of rows as they are: how much is explained */
    double sum_y, sum_s;   /* J, s */
};

/* A pass over all rows of the held slices. */
struct nrg_pass {
    struct nrg_kernel kernel;
    const uint32_t *map; /* of columns that are put together; NULL */
    size_t n_columns, max_rows;
    /* Only every so many rows, or blocks of rows, where a row does not need the one before; 0: all.
     */
    size_t stride, block;
    double phi, theta, cut, border2; /* rows are whitened */
    bool weigh;                      /* by the noise and the prior of the regression */
    bool kept;                       /* rows may be those of a pass before: kept_rows.h */
    /* Adds columns to a row, of which it has none yet; NULL: none. */
    void (*bend)(struct nrg_rowgen *gen, const void *of);
    const void *of;
    /* Ends with -EDOM as soon as rows leave more than this sum of squares, whatever the powers:
     * more rows would not leave less. 0: it never does. is_calls: of the pass's columns. */
    double most_left;
    const bool *is_calls;
    const struct nrg_prefix *prefix; /* of the pass's columns; NULL: none */
};

/* slow.c: columns that change slowly, added to sums in steps of time: rows are made without. */
struct nrg_slow {
    const struct nrg_regress_options *options;
    bool drift, begun;
    int64_t begin_ns, end_ns;  /* of the step */
    double *before, before_yy; /* of the sum when it began, per column */
    double idle_w;
    size_t n; /* columns */
};

/* Whether that saves anything, in so many rows of a run. */
bool nrg_slow_is_worth_it(size_t rows);
int nrg_slow_init(struct nrg_slow *slow, const struct nrg_regress_options *options, bool drift,
                  size_t n_columns);
/* Before a row is added; and after the last one. */
void nrg_slow_row(struct nrg_slow *slow, struct nrg_rowgen *gen, struct nrg_gram *sum);
void nrg_slow_end(struct nrg_slow *slow, struct nrg_gram *sum);
/* As if the last row had come, in a copy of the sum: rows go on. */
int nrg_slow_peek(const struct nrg_slow *slow, struct nrg_gram *copy);
void nrg_slow_release(struct nrg_slow *slow);

int nrg_regress_sum_rows(const struct nrg_regress *r, const struct nrg_pass *pass,
                         struct nrg_gram *sum);
/* A sensor that looks for a part of each update only, as is known or was found, and shows when it
 * updates. */
bool nrg_regress_sees_window(const struct nrg_regress *r);
/* Has rows of the chosen kernel written down or read: kept_rows.h. */
void nrg_regress_keep_rows(const struct nrg_regress *r, struct nrg_rowgen *gen);
/* In a part of the run, a drift looks like the power itself. */
bool nrg_regress_sees_drift(const struct nrg_regress *r, size_t max_rows);
/* The y that the prior expects of a row. */
double nrg_regress_expected(const struct nrg_regress *r, const struct nrg_rowgen *gen);
/* What of it classes have: idle power and its course, and what readings drift by, left aside. */
double nrg_regress_load(const struct nrg_regress *r, const struct nrg_rowgen *gen, double expected);
/* Variance of a row of which this was expected, by the noise and by what CPU times are off by. */
double nrg_regress_variance(const struct nrg_regress *r, double expected,
                            const struct nrg_rowgen *gen);
/* beta >= 0 of the sum, and any of the columns before idle; idle is left out when it is known. */
int nrg_regress_powers(const struct nrg_regress *r, const struct nrg_gram *sum,
                       const bool *is_calls, double *beta);

/* The same with idle power held to what is known of it, and the sum of squares that is left. */
int nrg_regress_held_powers(const struct nrg_regress *r, struct nrg_gram *sum, double *beta,
                            double *rest);

/* likely.c: what rows draw above idle, of a joule in the mean; then powers of a sum that has the
 * regression's columns, and what they leave, where some are more than classes can have. */
double nrg_regress_working_w(const struct nrg_regress *r);
int nrg_regress_expect_powers(const struct nrg_regress *r, struct nrg_gram *sum, double *beta,
                              double *rest);

/* within.c: a column that says when in their calls a class uses energy. */
bool nrg_regress_is_within(const struct nrg_regress *r, size_t column);
/* A column of calls, and not one of CPUs together. */
static inline bool nrg_regress_is_of_calls(const struct nrg_regress *r, size_t column)
{
    return r->is_calls[column] && r->class_of[column] < r->options.n_classes &&
           !nrg_regress_is_within(r, column);
}

/* Columns of classes, or of their calls, that have something in them: their numbers go to `index`
 * from n on. Returns how many there are then. */
size_t nrg_regress_pick(const bool *is_calls, const struct nrg_gram *sum, bool calls, size_t *index,
                        size_t n);
/* waits.c: sets rates of slices that are held where threads wait; then of those that came since. */
int nrg_regress_learn_waits(struct nrg_regress *r);
int nrg_regress_settle_waits(struct nrg_regress *r);
/* together.c, after that: columns of CPUs that are busy together, where they are; which stay, once
 * the sensor and its noise are known; and of slices that came since. */
int nrg_regress_find_together(struct nrg_regress *r);
int nrg_regress_choose_together(struct nrg_regress *r);
int nrg_regress_go_on_together(struct nrg_regress *r);
/* model.c: how many rows there will be, and their sums; then all that is chosen before they are
 * made.
 */
void nrg_regress_count_rows(struct nrg_regress *r);
int nrg_regress_choose_model(struct nrg_regress *r);
int nrg_regress_choose_kernel(struct nrg_regress *r);
/* Powers of a pass, one per column, and the sum of squares that they leave, over how many rows. */
int nrg_regress_fit(const struct nrg_regress *r, const struct nrg_pass *pass, double *powers,
                    double *rest, double *rows);
/* The same with the chosen kernel, without the powers; stride and most_left: of the pass. */
int nrg_regress_rest(const struct nrg_regress *r, size_t max_rows, size_t stride, double most_left,
                     double *rest, double *rows);
/* The same of rows that have columns of calls: without these (0), and with them (1). */
int nrg_regress_rest_calls(const struct nrg_regress *r, size_t max_rows, double rest[2],
                           double *rows);
/* What is left of a pass without some columns, n times. */
struct nrg_left_out {
    bool calls, within;
};
int nrg_regress_rest_without(const struct nrg_regress *r, const struct nrg_pass *pass,
                             const struct nrg_left_out *out, size_t n, double *rest, double *rows);
/* within.c: whether columns say when in their calls classes use energy, and makes them. */
int nrg_regress_choose_within(struct nrg_regress *r, struct nrg_kernel sharp);
/* publish.c: keeps new values alone, where values come more than once; grid.c finds when they came.
 */
int nrg_regress_take_news(struct nrg_regress *r);
int nrg_regress_find_updates(struct nrg_regress *r);
int nrg_regress_choose_noise(struct nrg_regress *r);
/* row_sums.c: by what a first fit leaves of rows; once the noise is known; and with each row. */
void nrg_regress_learn_sums(struct nrg_regress *r, const double *left, size_t n);
int nrg_regress_weigh_sums(struct nrg_regress *r);
void nrg_regress_add_to_sums(struct nrg_regress *r, struct nrg_gram *to);
/* clockwork.c: when a counter was updated that is not read faster than that; then readings
 * are those of its updates. */
#define NRG_SURE_CLOCK 20 /* times less is left with it: no other explanation is sought */
int nrg_regress_find_clockwork(struct nrg_regress *r);
bool nrg_regress_may_have_clockwork(const struct nrg_regress *r);
/* Readings are again as they were read. */
void nrg_regress_forget_clockwork(struct nrg_regress *r);
/* Length of a row, in cells in which CPU times are known. */
double nrg_regress_row_per_cell(const struct nrg_regress *r);
/* Rows are shorter than the cells in which CPU times are known, so that calls that they cut weigh
 * most; not where noise lasts, which is others'. */
bool nrg_regress_cuts_calls(const struct nrg_regress *r);
/* How many times more the energy of a row may be off by the CPUs of others than by the age of a
 * counter's readings, squared, per square of CPUs; 0: that is not known. Fits without a noise weigh
 * rows by it. */
double nrg_regress_unsure(const struct nrg_regress *r);
/* Fills `otherwise`, with the options and columns as they are now. */
int nrg_regress_try_otherwise(struct nrg_regress *r);
int nrg_regress_make_result(const struct nrg_regress *r, struct nrg_regress_result *result);

/* Idle power that goes its own way, from border to border of the blocks: walk.c. */
struct nrg_walk {
    bool used;
    double likely;               /* that it does */
    size_t blocks, n;            /* n: borders at which it is not held, whose watts are unknown */
    struct nrg_idle_walk course; /* of these */
    double rows_at;              /* where the first row is, as a part of the run */
    double *error2;              /* packed, of the n */
    double *moved;               /* n * m: how far the solution moves, per watt; scaled */
};

/*
 * From the blocks' normal equations to powers with intervals. Columns that are solved for are in
 * this order: classes, idle (when it is fitted), then those of no interest (bends and drift), which
 * may be negative. They are scaled so that the diagonal is 1. Init, solve, release.
 */
struct nrg_solver {
    const struct nrg_regress *r;
    struct nrg_arena memory; /* of the arrays */
    struct nrg_gram sum;
    size_t m, n_classes, n_bound; /* n_bound: classes and idle */
    size_t rank;                  /* columns that are not dependent */
    bool idle;
    size_t *index; /* to columns of the sum */
    double *scale, *floor;
    double *beta;      /* not negative, scaled */
    double *free_beta; /* without that condition: intervals are around it */
    double *ratio;     /* variance / plain variance */
    double *before;    /* how far the solution moves when idle power is off by its error */
    bool idle_doubted; /* rows do not correct idle power */
    bool crowded;      /* others' is, by crowd.c */
    double held_off_w[NRG_BESIDE]; /* of a power that is held, half of its interval; 0 */
    double awake_w;                /* that waits are taken to draw */
    double smeared_w;    /* by which it may be off as errors of CPU times make it, a deviation */
    double idle_by_rows; /* how far rows, and not a baseline, say what it is: waits/error.c */
    double *alike[NRG_ALIKE]; /* per column: see alike.c */
    double alike_far[NRG_ALIKE], alike_weight[NRG_ALIKE];
    size_t n_alike;
    struct nrg_walk walk;
    bool before_told; /* and rows said something of it: that is in the inverse */
    struct {
        double *moved;                     /* what of each comes with it, scaled */
        double untold;                     /* how much of that may be wrong: 0 to 1 */
        double within_w, within_w2;        /* by changes within the run, and its variance */
    } drift[NRG_DOUBT_AWAKE + 1];          /* of idle power, and of waits: drift.c */
    double *work;                          /* two columns wide */
    double *factor, *inverse, *covariance; /* packed, scaled; 0 for dependent columns */
    bool *dependent;
    size_t *root, *next; /* of groups: the first column, and the one after (SIZE_MAX) */
    double edge;         /* see edge_noise */
    double left;         /* mean square of what is left */
    double freedom;
};

/* solve.c */
int nrg_solver_init(struct nrg_solver *s, const struct nrg_regress *r);
void nrg_solver_release(struct nrg_solver *s);
int nrg_solver_solve(struct nrg_solver *s, bool idle);
/* Matrix of the solved columns, of the sum or of a block, without what rounded stamps add. */
void nrg_solver_fill(const struct nrg_solver *s, const struct nrg_gram *from, double *a, double *b);

/* Draws a column that may be negative towards 0, so that a part of it is kept, and all others with
 * it; `moved` is how far they are from where they were if nothing were kept. */
int nrg_solver_draw(struct nrg_solver *s, size_t p, double kept, double *moved);
/* What that does to an inverse or a covariance. */
void nrg_solver_narrow(const struct nrg_solver *s, double *matrix, size_t p, double kept);
double nrg_solver_mean_power(const struct nrg_solver *s);
/* Part of the time of a class's spans in which its thread waited; 0 where that can't be told. */
double nrg_regress_waited(const struct nrg_regress *r, size_t column);

/* awake.c, once it is known how calls wait. */
int nrg_regress_find_awake(struct nrg_regress *r);
/* pace.c, the same: a column of how fast the program gets on, where that varies. */
int nrg_regress_find_pace(struct nrg_regress *r);
/* calls.c, after solve: adds what is common to all columns of calls to the sum; false: nothing. */
bool nrg_solver_join_calls(struct nrg_solver *s);

/* alike.c, of a factor with dependent columns: adds to the sum what many of them are taken to have
 * in common; false: nothing. Then, after solve, how far that may be wrong; and of a column by the
 * i-th of these, W, with its sign. */
bool nrg_solver_take_alike(struct nrg_solver *s);
void nrg_solver_limit_alike(struct nrg_solver *s);
/* Of a scaled matrix: it gives way to powers that are not negative. */
void nrg_solver_loosen_alike(const struct nrg_solver *s, double *a, double *b);
double nrg_solver_alike_w(const struct nrg_solver *s, size_t i, size_t p);

/* crowd.c, after solve: holds others' power to what is known of it where CPU times do not tell it;
 * false: they do. */
bool nrg_solver_hold_others(struct nrg_solver *s);
/* The same of others that are always as busy. */
bool nrg_solver_hold_steady(struct nrg_solver *s);
/* beside.c, once the sensor is known; and after solve, the same as above of what it found. */
int nrg_regress_find_workers(struct nrg_regress *r);
bool nrg_solver_hold_workers(struct nrg_solver *s);
/* Where the power of such processes is held: the class's place among the columns, or n_classes;
 * holds it; and by how much a column's power is off if theirs is, W, with its sign. */
size_t nrg_solver_place_of(const struct nrg_solver *s, size_t kind);
void nrg_solver_hold(struct nrg_solver *s, size_t kind, double power_w, double variance);
double nrg_solver_by_held_w(const struct nrg_solver *s, size_t kind, size_t p);

/* places.c, before the first solve: what is known of where calls wait; and after it, how far
 * classes differ in that: solves again. */
void nrg_solver_expect_places(struct nrg_solver *s);
int nrg_solver_join_places(struct nrg_solver *s, bool fit_idle);

/* within.c, the same of when in their calls classes use energy. */
void nrg_solver_expect_within(struct nrg_solver *s);
int nrg_solver_join_within(struct nrg_solver *s, bool fit_idle);

/* drift.c: how far idle power may be off, or drift along a shape, before readings are looked at: of
 * the column's, one deviation; 0: not said. What others had in it does not drift. */
double nrg_regress_idle_deviation_w(const struct nrg_regress *r, size_t column);
/* After solve: leaves the column of what waits draw out of the sum where that can't be; false: it
 * can, or there is none. */
bool nrg_solver_drop_awake(struct nrg_solver *s);
/* Adds what a baseline after the run says. */
void nrg_regress_anchor(const struct nrg_regress *r, struct nrg_gram *sum);
/* After solve: adds to the sum that time without spans is idle, where readings agree; false: they
 * do not. */
bool nrg_solver_know_gaps(struct nrg_solver *s);
/* spread.c, after solve: idle power that was only guessed is not believed to one block of rows that
 * no other confirms, unless nothing ran in a good part of it: CPU times of a program that starts up
 * are a tick old. Then solve again. */
int nrg_solver_doubt_idle(struct nrg_solver *s);
/* After spread: whether idle power drifted. */
int nrg_solver_judge_drift(struct nrg_solver *s);

/* walk.c: idle power was measured, and may go its own way from there. */
bool nrg_regress_idle_may_walk(const struct nrg_regress *r);
/* drift.c: idle power does not go so far from its baselines, in the mean: then it is the load. */
double nrg_regress_furthest_idle_w(const struct nrg_regress *r);
/* rest.c, before the sensor is chosen. */
int nrg_regress_seek_course(struct nrg_regress *r);
/* Takes what looks like it off what n rows leave, given their idle time and load. */
int nrg_regress_take_off_course(struct nrg_regress *r, double *e, double *idle, double *load,
                                size_t n);
/* What idle power is taken to do is not noise: a phi that such memory is below, in n rows. */
double nrg_regress_most_memory(const struct nrg_regress *r, size_t n);
/* walk.c, after solve: how idle power went its own way, if it did, and solves again without that.
 */
int nrg_solver_walk(struct nrg_solver *s);
/* Takes it off what a block says. */
void nrg_solver_walk_block(const struct nrg_solver *s, size_t block, double *b);
/* After spread: what is not known of it. */
void nrg_solver_add_walk(struct nrg_solver *s);
/* missed.c, a part of that: what it misses within blocks. */
void nrg_solver_miss_ends(struct nrg_solver *s);
/* What a result gets of it: with the course that became a shape, which only the regression knows.
 */
void nrg_solver_give_walk(const struct nrg_solver *s, struct nrg_idle_walk *walk);

/* spread.c, after solve: ratio, freedom and covariance. */
int nrg_solver_spread(struct nrg_solver *s);
/* waits.c, after spread: what is not known of the CPU times of classes. */
void nrg_solver_add_waits(struct nrg_solver *s);
/* How much of the waiting is at one place of the calls, of a column's class or of all (0): 0
 * anywhere, 1 always the same. What is not known of it counts so many times. */
double nrg_solver_concentration(const struct nrg_solver *s, size_t column, double errors);
/* elsewhere.c: how much a column counts in the mean of the run, if it is one of idle power's
 * shapes; and what powers may be off by if windows of the sensor lie elsewhere. */
double nrg_solver_shape_mean(const struct nrg_solver *s, size_t p);
double nrg_solver_looked_elsewhere_w(const struct nrg_solver *s,
                                     const struct nrg_regress_result *result);
/* What calls that wait at one place of theirs may have of their neighbours: five places do not tell
 * it exactly, nor is it the same in all classes; by as much in short calls as in long ones. */
double nrg_solver_misplaced_w(const struct nrg_solver *s, size_t p);
/* Parts of the energy of all classes that may be idle power's, or the other way round; misplaced
 * that of single classes, or in their sum. */
double nrg_solver_curved_part(const struct nrg_solver *s);
double nrg_solver_misplaced_part(const struct nrg_solver *s, bool in_sum);
/* Covariance of two columns, W^2. */
double nrg_solver_covariance(const struct nrg_solver *s, size_t p, size_t q);

#endif

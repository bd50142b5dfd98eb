/*
 * Rows of the regression: what one reading of the sensor says, and how long each class was active
 * as that sensor saw it. A row is y = sum over columns of x * power.
 *
 * How a sensor sees the past is a kernel:
 *   level  sum of energy up to a moment that lies near_s to far_s before the reading, evenly likely
 *          (a counter that shows its last update); also the mean power since the last reading
 *   box    mean over [t - far_s, t - near_s] (NVML); a very short one is an instant
 *   exp    running average with time constant tau_s (INA3221), near_s late
 *
 * Slices wait in a queue that the generators walk through; what all have passed can be dropped.
 * Embedded by the owner, who releases. -ENOMEM is the only error. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_ROWS_ROWS_H
#define NRG_ATTRIBUTE_REGRESS_ROWS_ROWS_H

#include <math.h>

#include "attribute/regress/fit.h"

/*
 * Columns before those of classes. Those before idle are of no interest, and may be negative. Two
 * (filled by fit.c) say how rows would change if the sensor were a little later, or its memory a
 * little longer: they absorb the error of the chosen kernel, and make the intervals include it.
 * Five say how they would change if threads waited at certain places of their calls instead of
 * evenly: before all of their work, after a quarter of it, and so on. One says how many more CPUs
 * others had where the row ends than where it begins: the kernel counts who runs up to its last
 * tick, so that what they begin in a row is counted late. One says how much of its first reading a
 * running average still shows: that reading was off by its rounding and noise. One is the time that
 * threads wait inside of their calls, which may draw something, one how fast the program gets on.
 * The rest let power
 * rise or fall slowly over the run, as it does when a machine warms up: lines and a parabola, none
 * of which changes its mean. Idle power that is known has an error of its own, and may drift away
 * from where it was measured (idle_course.h); how far is said by the options.
 */
enum {
    NRG_COLUMN_SHIFT,
    NRG_COLUMN_MEMORY,
    NRG_COLUMN_WAITS,
    NRG_COLUMN_WAITS_LAST = NRG_COLUMN_WAITS + 4,
    NRG_COLUMN_LATE,
    NRG_COLUMN_START,
    NRG_COLUMN_PACE,  /* pace.c */
    NRG_COLUMN_AWAKE, /* awake.c */
    NRG_COLUMN_DRIFT,
    NRG_COLUMN_DRIFT2,
    NRG_COLUMN_IDLE_SHAPES, /* idle_course.h */
    NRG_COLUMN_IDLE_SHAPES_LAST = NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_SHAPES - 1,
    NRG_COLUMN_IDLE_OFF,
    NRG_COLUMN_IDLE,
    NRG_COLUMN_CLASSES
};

enum nrg_kernel_kind { NRG_KERNEL_LEVEL, NRG_KERNEL_BOX, NRG_KERNEL_EXP };

/* Of an average, near_s to far_s are the ages that readings may have: all, and by chance. */
struct nrg_kernel {
    enum nrg_kernel_kind kind;
    double near_s, far_s, tau_s;
};

/* Mean age of what a reading shows, apart from a gauge's own mean since the last one. */
double nrg_kernel_lag_s(const struct nrg_kernel *kernel);
/* The same kernel, later by shift_s and with a memory longer by more_s. */
struct nrg_kernel nrg_kernel_moved(struct nrg_kernel kernel, double shift_s, double more_s);
double nrg_kernel_memory_s(const struct nrg_kernel *kernel);

struct nrg_regress_slice {
    int64_t begin_ns, end_ns;
    uint16_t column, calls_column; /* calls_column 0: none */
    uint32_t group;                /* of slices that have one thread's CPU time; 0: none */
    float rate;
    union {
        float calls_per_s;
        float unsure2; /* of the others' column: see struct nrg_class_activity */
    };
};

/* slice_index.h */
struct nrg_slice_block {
    int64_t begin_ns;
    size_t open_at;
};

struct nrg_slice_index {
    struct nrg_slice_block *blocks;
    size_t n_blocks, cap_blocks;
    uint32_t *open; /* of all blocks, one after the other */
    size_t n_open, cap_open;
    size_t n; /* slices that it was made of; 0: there is none */
};

struct nrg_slices {
    struct nrg_regress_slice *items;
    size_t n, cap;
    uint64_t dropped; /* items[0] is slice number `dropped` */
    struct nrg_slice_index index;
};

struct nrg_walker {
    uint64_t next; /* slice number */
    struct nrg_regress_slice *open;
    size_t n_open, cap_open;
};

/* Of a counter's rows, CPU time * how much faster than usual the program gets on (pace.c): the sum
 * up to each border of stretches of the run. */
struct nrg_run_pace {
    int64_t begin_ns, width_ns;
    size_t n; /* stretches */
    double *sum_s;
    double by_others; /* work that is done less, per CPU second of others who slow it down; 0 */
};

double nrg_pace_between(const struct nrg_run_pace *pace, int64_t from_ns, int64_t to_ns);

#define NRG_TOGETHER_KNOTS 5
#define NRG_TOGETHER       (2 * NRG_TOGETHER_KNOTS) /* columns */

/* How power bends with the number of CPUs that are busy: together.c. */
struct nrg_together {
    struct nrg_slices slices; /* of its columns */
    size_t first;             /* the first of these */
    uint32_t picked;          /* bits: those in use */
    double *mean;             /* [column * NRG_TOGETHER + k]: a class's part, per CPU second */
    double *weight;           /* per column of a class: its watts, over their mean */
    double bend[NRG_TOGETHER_KNOTS]; /* per watt, as found: what CPU time of classes counts by */
    double *as_much;         /* per column of a class: what that makes of its CPU time, over it */
    double *doubt_w;         /* the same: how far its power is off if the other kind is true */
    double other, untold;    /* how likely that is; and what it may still be off then, 0 to 1 */
    bool settled;            /* the means are known */
    struct nrg_walker sweep; /* how far slices have been looked at */
    int64_t at_ns;
    size_t *last;   /* per column: the slice that may go on, and 1; 0: none */
    double *time_s; /* per column */
    double busy_s, sum_s[NRG_TOGETHER];
};

/* One reading, or several of a counter that had not moved. */
struct nrg_observation {
    int64_t from_ns, to_ns;
    double y;     /* J of a counter, W of a gauge */
    bool restart; /* what came before is not known */
    bool usable;  /* else only time passes */
    bool edge;    /* all readings of one of the options' edges */
};

struct nrg_observer {
    const struct nrg_timeline *timeline;
    int64_t begin_ns, end_ns, merged_ns, steady_ns;
    const int64_t *border, *border_end;            /* those that are not over yet */
    const struct nrg_observation *kept, *kept_end; /* all that follow, where they are known */
    const struct nrg_span_ns *edges; /* see the options: those that are not over yet */
    size_t n_edges;
    int64_t period_ns, punctual_ns;                /* see the options; period_ns 0: not known */
    const struct nrg_span_ns *unsure, *unsure_end; /* those that are not over yet */
    size_t next;
    bool restart, skipped, started;
    bool edge; /* the last one was: it is off by so much that the next one can't go on from it */
};

/* What of a call's energy is at its very begin; in its first 0.1 ms where calls have columns, else
 * at its very end; in its first half rather than in the second; and in the first and last quarter
 * rather than in between. */
enum { NRG_WITHIN_BEGIN, NRG_WITHIN_EDGE, NRG_WITHIN_SLOPE, NRG_WITHIN_TURN, NRG_WITHIN_SHAPES };
#define NRG_WITHIN_FIRST_S 1e-4 /* that dispatch lasts, about */

#define NRG_WHOLE_CALL  0.999 /* a slice that is so much of a call is all of it */
#define NRG_WAIT_SHAPES (NRG_COLUMN_WAITS_LAST + 1 - NRG_COLUMN_WAITS)

/* How much more than its part of the work a call has done up to the part u of it, if it waits for
 * the part `lacks` of its time after 0, 1/4, 1/2, 3/4 or all of its work; as parts of its time. */
void nrg_wait_work(double u, double lacks, double out[NRG_WAIT_SHAPES]);

/* The variance of that if it waits after any part of its work, and a little is not known of that.
 */
double nrg_wait_cut2(double u, double lacks);

void nrg_observer_init(struct nrg_observer *observer, const struct nrg_regress_options *options);
/* Median time between readings; from some of them, spread over the whole. Never 0, not even of a
 * single reading: searches go up from it. */
double nrg_reading_period_s(const struct nrg_timeline *timeline);
/* A moment at which a reading is due, and so one period after the other; 0: they come at any time.
 */
int64_t nrg_observer_due(const struct nrg_timeline *timeline);
/* false: no more. */
bool nrg_observe(struct nrg_observer *observer, struct nrg_observation *seen);

/* Opens the slices that begin before t_ns. */
int nrg_walker_open(struct nrg_walker *walker, const struct nrg_slices *slices, int64_t t_ns);

struct nrg_rowgen {
    const struct nrg_regress_options *options;
    struct nrg_kernel kernel;
    int64_t near_ns, far_ns; /* the kernel's */
    bool cuts;               /* what a row's ends cut counts: calls wait, or others run */
    bool drift;              /* columns are filled */
    bool slow_apart;         /* the caller adds columns that change slowly */
    bool short_box;          /* a box shorter than the time between readings */
    const uint32_t *map;     /* of columns, when some are put together; NULL: as they are */
    struct nrg_observer observer;
    struct nrg_observation seen;
    bool pending; /* `seen` waits for slices */
    bool started;
    size_t stride, block;   /* of so many blocks of observations one has rows; 0: all */
    size_t nth;             /* how many observations there were */
    int64_t margin_ns;      /* how far after its end a row looks */
    int64_t usable_to_ns;   /* rows that end later are not used */
    int64_t usable_from_ns; /* rows before reach back too far; kernels in step have the same */
    struct nrg_walker head, tail;
    struct nrg_walker together[2]; /* the same of the slices of these columns */
    int64_t at_ns;                 /* state is that of this moment */
    int64_t first_ns;
    double first_y;
    size_t n, cap; /* columns */
    double *state; /* box: seconds inside; exp: filtered activity */
    double *x;     /* the row */
    uint32_t *touched;
    size_t n_touched;
    bool *mark; /* no bytes: these might be anything for a compiler, which would read all again */
    bool dense;
    double y, weight_s; /* weight_s: time that the row stands for */
    bool restart;
    /* What calls that the row's begin and end cut may have used on the other side, J^2. */
    double cut_begin2, cut_end2;
    /* kept_rows.h: where rows are written down, or come from; NULL: they are made */
    struct nrg_kept_rows *keeps;
    const struct nrg_kept_rows *kept;
    const struct nrg_prefix *prefix; /* prefix.h: of the same columns; NULL: there are none */
    bool summed;                     /* state has its sums up to summed_ns */
    int64_t summed_ns;
};

/* How much more a slice has of its calls' work, per second, than of its own. */
static inline double nrg_slice_longer(const struct nrg_regress_options *options,
                                      const struct nrg_regress_slice *slice)
{
    return (double)slice->calls_per_s * options->call_s[slice->calls_column] - (double)slice->rate;
}

/* Whether observation i is a row, where one of `stride` blocks is. Blocks are taken at random: at
 * regular distances they would see one frequency like another. */
static inline bool nrg_row_is_taken(size_t i, size_t stride, size_t block)
{
    uint32_t number = (uint32_t)(i / block);
    if (block == 1)
        return number % stride == 0;
    number = (number ^ number >> 7) * 2654435769u;
    number = (number ^ number >> 15) * 2246822519u;
    return (uint64_t)number * stride >> 32 == 0;
}

void nrg_rowgen_init(struct nrg_rowgen *gen, const struct nrg_regress_options *options,
                     const struct nrg_kernel *kernel, const uint32_t *map, bool drift);
/* A row is made from the one before: all of them have to be. */
bool nrg_rowgen_remembers(const struct nrg_rowgen *gen);
void nrg_rowgen_release(struct nrg_rowgen *gen);
/*
 * Next row into x (n_columns), y. Slices that begin before ready_ns have all come. 1: a row; 0:
 * none until more slices are there, or no reading is left.
 */
int nrg_rowgen_next(struct nrg_rowgen *gen, const struct nrg_slices *slices, int64_t ready_ns,
                    size_t n_columns);
/* kernels.c: adds what the reading saw of the slices to the row. */
int nrg_rowgen_see(struct nrg_rowgen *gen, const struct nrg_slices *slices);
/* Whether what was seen is a row. */
static inline bool nrg_rowgen_is_usable(const struct nrg_rowgen *gen,
                                        const struct nrg_observation *seen)
{
    int64_t reach_ns = gen->kernel.kind == NRG_KERNEL_BOX ? seen->to_ns : seen->from_ns;
    return seen->usable && reach_ns >= gen->usable_from_ns && seen->to_ns <= gen->usable_to_ns;
}

/* Notes that a column of the row may differ from 0. */
static inline void nrg_rowgen_touch(struct nrg_rowgen *gen, uint32_t column)
{
    if (!gen->mark[column]) {
        gen->mark[column] = true;
        gen->touched[gen->n_touched++] = column;
    }
}

/* within.c: how much more than evenly a call has used up to a moment that lies 0 to width_ns before
 * t_ns, evenly likely, as parts of its energy; calls: these have columns. */
void nrg_within_used(const struct nrg_regress_slice *slice, bool calls, int64_t t_ns,
                     int64_t width_ns, double out[NRG_WITHIN_SHAPES]);
/* Adds a column to the row that it has no part in yet. */
static inline void nrg_rowgen_set(struct nrg_rowgen *gen, uint32_t column, double value)
{
    gen->x[column] = value;
    nrg_rowgen_touch(gen, column);
}
/* Part of a slice's time in which its thread waits, as far as is known. */
static inline double nrg_slice_waits(const struct nrg_regress_options *options,
                                     const struct nrg_regress_slice *slice)
{
    double scale = options->waits_scale ? options->waits_scale[slice->column] : 1;
    return fmax(1 - (double)slice->rate * (scale > 0 ? scale : 1), 0);
}

/* awake.c: takes the classes' own parts off that column, once slices are in it. */
void nrg_rowgen_set_awake(struct nrg_rowgen *gen, const double *awake);
/* together.c: the columns of CPUs together, and those of classes, once slices are in them. */
void nrg_rowgen_set_together(struct nrg_rowgen *gen, const struct nrg_together *together);
/* slow.c: sets the columns that change slowly, as they are before there is a fit. */
void nrg_rowgen_set_slow(struct nrg_rowgen *gen);
/* Sets the columns of a slow rise or fall, once it is known what was expected of the row: as long
 * as the reading stands for that, its noise is in them. */
void nrg_rowgen_drift(struct nrg_rowgen *gen, double expected_y);
/* The middle of what a row's reading saw: what changes slowly is taken as it was then. */
int64_t nrg_rowgen_moment_ns(const struct nrg_rowgen *gen);
/* Where in the run a moment is, from -1 to 1: what drifts goes by that. */
double nrg_row_position(const struct nrg_regress_options *options, int64_t t_ns);
/* Number of the first slice that is still to be looked at; of those of columns of CPUs together. */
uint64_t nrg_rowgen_needs(const struct nrg_rowgen *gen);
uint64_t nrg_rowgen_needs_together(const struct nrg_rowgen *gen);

#endif

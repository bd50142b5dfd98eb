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
#ifndef NRG_ATTRIBUTE_REGRESS_ROWS_H
#define NRG_ATTRIBUTE_REGRESS_ROWS_H

#include "attribute/regress/fit.h"

/*
 * Columns before those of classes. Those before idle are of no interest, and may be negative. Two
 * (filled by fit.c) say how rows would change if the sensor were a little later, or its memory a
 * little longer: they absorb the error of the chosen kernel, and make the intervals include it.
 * Five say how they would change if threads waited at certain places of their calls instead of
 * evenly: before all of their work, after a quarter of it, and so on. The others let power rise or
 * fall slowly over the run, as it does when a machine warms up: lines and a parabola, none of which
 * changes its mean. Idle power that is known has an error of its own, and may drift away from where
 * it was measured (idle_course.h); how far is said by the options.
 */
enum {
    NRG_COLUMN_SHIFT,
    NRG_COLUMN_MEMORY,
    NRG_COLUMN_WAITS,
    NRG_COLUMN_WAITS_LAST = NRG_COLUMN_WAITS + 4,
    NRG_COLUMN_DRIFT,
    NRG_COLUMN_DRIFT2,
    NRG_COLUMN_IDLE_SHAPES, /* idle_course.h */
    NRG_COLUMN_IDLE_SHAPES_LAST = NRG_COLUMN_IDLE_SHAPES + NRG_IDLE_SHAPES - 1,
    NRG_COLUMN_IDLE_OFF,
    NRG_COLUMN_IDLE,
    NRG_COLUMN_CLASSES
};

enum nrg_kernel_kind { NRG_KERNEL_LEVEL, NRG_KERNEL_BOX, NRG_KERNEL_EXP };

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
    float rate, calls_per_s;
};

struct nrg_slices {
    struct nrg_regress_slice *items;
    size_t n, cap;
    uint64_t dropped; /* items[0] is slice number `dropped` */
};

/* One reading, or several of a counter that had not moved. */
struct nrg_observation {
    int64_t from_ns, to_ns;
    double y;     /* J of a counter, W of a gauge */
    bool restart; /* what came before is not known */
    bool usable;  /* else only time passes */
    bool edge;    /* all readings of a run's first or last cell */
};

struct nrg_observer {
    const struct nrg_timeline *timeline;
    int64_t begin_ns, end_ns, merged_ns, first_whole_ns, last_whole_ns;
    int64_t period_ns, punctual_ns; /* see the options; period_ns 0: not known */
    size_t next;
    bool restart, skipped, started;
    bool edge; /* the last one was: it is off by so much that the next one can't go on from it */
};

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

struct nrg_walker {
    uint64_t next; /* slice number */
    struct nrg_regress_slice *open;
    size_t n_open, cap_open;
};

/* Opens the slices that begin before t_ns. */
int nrg_walker_open(struct nrg_walker *walker, const struct nrg_slices *slices, int64_t t_ns);

struct nrg_rowgen {
    const struct nrg_regress_options *options;
    struct nrg_kernel kernel;
    bool drift;          /* columns are filled */
    bool slow_apart;     /* the caller adds columns that change slowly */
    bool short_box;      /* a box shorter than the time between readings */
    const uint32_t *map; /* of columns, when some are put together; NULL: as they are */
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
    int64_t at_ns; /* state is that of this moment */
    int64_t first_ns;
    double first_y;
    size_t n, cap; /* columns */
    double *state; /* box: seconds inside; exp: filtered activity */
    double *x;     /* the row */
    uint32_t *touched;
    size_t n_touched;
    uint8_t *mark;
    bool dense;
    double y, weight_s; /* weight_s: time that the row stands for */
    bool restart;
    /* What calls that the row's begin and end cut may have used on the other side, J^2. */
    double cut_begin2, cut_end2;
};

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
/* Adds a column to the row that it has no part in yet. */
void nrg_rowgen_set(struct nrg_rowgen *gen, uint32_t column, double value);
/* slow.c: sets the columns that change slowly, as they are before there is a fit. */
void nrg_rowgen_set_slow(struct nrg_rowgen *gen);
/* Sets the columns of a slow rise or fall, once it is known what was expected of the row: as long
 * as the reading stands for that, its noise is in them. */
void nrg_rowgen_drift(struct nrg_rowgen *gen, double expected_y);
/* Where in the run a moment is, from -1 to 1: what drifts goes by that. */
double nrg_row_position(const struct nrg_regress_options *options, int64_t t_ns);
/* Number of the first slice that is still to be looked at. */
uint64_t nrg_rowgen_needs(const struct nrg_rowgen *gen);

#endif

/*
 * Method cpu-time: for a source that is itself a model of CPU time (the estimate of a machine
 * without a sensor).
 *
 * Such a source knows nothing that the CPU times do not tell, so its own law is applied to the CPU
 * time of the spans: active energy of a cell / CPU time of that cell = joules per CPU second, times
 * the CPU time that a row had. What is not known is which row of an interval used the thread's CPU
 * time. Between two readings of it that lie w apart, in which the thread used c and a row was open
 * for r, the row had between max(0, c - (w - r)) and min(c, r), since the thread can't use more
 * than the time. The shorter the intervals, the closer the bounds: they follow the rows of the
 * thread itself, wherever the recorder put them.
 *
 * A *strand* is a source of CPU time: a thread with spans, in the intervals between its readings;
 * or the threads without spans of one process, cell by cell, which follow the spans that are open.
 * A *slot* is one interval of one strand, with what each place was open in it. Slots are made once
 * (slots.c). All of them together tell how much of its open time a place is busy, where places come
 * in other mixtures in other slots (rates.c); the CPU time of each slot is divided accordingly
 * (divide.c). Energies of places are sums over slots, and the bounds of a view's rows are found by
 * adding up the time of all places inside a row first, slot by slot (errors.c): bounds of a whole
 * are closer than the sum of its parts' bounds.
 */
#ifndef NRG_ATTRIBUTE_CPUTIME_H
#define NRG_ATTRIBUTE_CPUTIME_H

#include "attribute/internal.h"

/* Stands for a number of CPUs or threads that is not known. */
#define NRG_CPU_MANY 1e6f
/* Stretches of time, of equal length, whose errors are independent of each other. */
#define NRG_CPU_BLOCKS 40
/* Of /proc/stat. */
#define NRG_CPU_TICK_S 0.01

/* Strands: threads with spans, and the threads without spans of a process. */
enum { NRG_CPU_THREAD, NRG_CPU_FOLLOWERS, NRG_CPU_KINDS };

struct nrg_cpu_slot {
    size_t first; /* of its entries; they go on to the first of the next slot */
    int64_t begin_ns;
    float width_s, cpu_s;   /* of the strand */
    float open_s;           /* of all places together */
    float threads;          /* of the strand that can run at once */
    float beside_s, beside; /* CPU time of the threads that it runs beside, and how many they are */
    float here;             /* part of it in the cell in which it begins; the rest comes after */
    uint32_t cell;
    uint16_t kind, block;
};

struct nrg_cpu_entry {
    uint32_t place; /* node of walk.rows */
    float open_s;   /* in this slot */
    float own_s;    /* CPU time of it that is its own, most likely */
    float calls;    /* how many stretches of it, or which part of one */
};

#define NRG_CPU_KNOTS 6

/*
 * CPU seconds per second that places were open, as all slots of one kind of strand tell. The
 * columns: calls of each place, as if all were of mean length; the rest of the places together,
 * by time; shapes, of each place or of all: how much longer than the mean its calls were, and how
 * much longer than each knot, beyond what they are so in the mean; time outside of spans.
 */
struct nrg_cpu_rates {
    size_t n;            /* columns; 0: not known */
    size_t n_own;        /* places with columns of their own */
    size_t n_shapes;     /* 0, 1 or 1 + knots */
    bool shared;         /* places are many: each shape has one column for all of them */
    uint32_t *column_of; /* per place; n_own: the rest */
    uint32_t *place_of;  /* per place with columns of its own */
    double *call_s;      /* the same: mean length of a call */
    double *off_s;       /* the same: how far off that a call is in the mean */
    double *beyond_s;    /* [place * NRG_CPU_KNOTS + knot]: how long after a knot a call ends, in
                            the mean */
    double *rate;        /* per column */
    /* Independent reasons why the rates may be off: [doubt * n + column], one deviation each. */
    size_t n_doubts; /* 0: too little is known of them */
    double *moved;
    double t;       /* half of an interval = t * deviation */
    double *work_j; /* [column * n_parts + part]: joules, if the rate were 1 */
};

/* How long a single step (walk.h) was open in a slot, in all its places together. */
struct nrg_cpu_step {
    uint32_t slot, step;
    float open_s;
};

/* The steps that a strand has seen of its interval. */
struct nrg_cpu_steps {
    struct nrg_cpu_step *items;
    size_t n, cap;
};

struct nrg_cpu_time {
    struct nrg_cpu_slot *slots;
    struct nrg_cpu_entry *entries;
    float *price; /* [slot * n_parts + part]: joules per CPU second; 0 for other methods */
    size_t n_slots, n_entries, cap_slots, cap_entries, cap_price;
    double cpus;        /* of the machine; NRG_CPU_MANY: not known */
    double *there_j;    /* per part: all that processes with rows have */
    double *mean_price; /* per part: joules per CPU second, of all slots */
    struct nrg_cpu_steps steps;
    struct nrg_arena memory; /* of the rates and of what is per cell */
    struct nrg_cpu_tick_cell {
        double busy_s;   /* CPU time of the machine, a tick at least */
        double length_s; /* how long it is */
        double slope;    /* relative change of its energy / that of busy time, by rounding */
        double lasts;    /* the same, by what lasts */
        double excess;   /* of a price by ticks, relative, in the mean (price.c) */
        double bend;     /* how much less a rounded busy time may give in the mean, relative; of a
                            price by ticks: how much more */
    } * cells;
    size_t n_cells;
    double rounding_s2;  /* variance of the busy time up to a border between cells */
    double ends_s2;      /* the same, at the begin and the end of what runs */
    bool price_by_ticks; /* a CPU second's is the energy per second of the same ticks (price.c) */
    double lasting_s2; /* variance of a cell's busy time that has nothing to do with its borders */
    struct nrg_cpu_rates rates[NRG_CPU_KINDS];
};

/* The column of a place's shape. */
static inline size_t nrg_cpu_shape(const struct nrg_cpu_rates *rates, size_t column, size_t shape)
{
    return rates->n_own + 1 + (rates->shared ? shape : shape * rates->n_own + column);
}

/* An entry in the columns of its place: by calls of mean length, then its shapes. */
void nrg_cpu_shapes(const struct nrg_cpu_rates *rates, size_t column,
                    const struct nrg_cpu_entry *entry, double x[2 + NRG_CPU_KNOTS]);
/* Shapes of threads that read their CPU times themselves. n_slots: of that kind. 0 or -ENOMEM. */
int nrg_cpu_shapes_choose(struct nrg_cpu_time *times, struct nrg_cpu_rates *rates, size_t kind,
                          double n_slots);

/* Past the entries of slot i. */
static inline size_t nrg_cpu_slot_end(const struct nrg_cpu_time *times, size_t i)
{
    return i + 1 < times->n_slots ? times->slots[i + 1].first : times->n_entries;
}

/* CPU time of all its places. */
static inline double nrg_cpu_slot_own_s(const struct nrg_cpu_time *times, size_t i)
{
    double own_s = 0;
    for (size_t j = times->slots[i].first; j < nrg_cpu_slot_end(times, i); j++)
        own_s += (double)times->entries[j].own_s;
    return own_s;
}

/* Time of a slot in which no place was open. */
static inline double nrg_cpu_outside_s(const struct nrg_cpu_slot *slot)
{
    return slot->width_s > slot->open_s ? (double)(slot->width_s - slot->open_s) : 0;
}

/* The most CPU time that the strand can have had in so much of the slot. */
double nrg_cpu_room(const struct nrg_cpu_time *times, const struct nrg_cpu_slot *slot, double s);
/* CPU time inside of spans, if the strand waits outside of them rather than inside. */
double nrg_cpu_in_spans(const struct nrg_cpu_time *times, const struct nrg_cpu_slot *slot);

/* CPU time that a row had in a slot, from the time it was open: at least, most likely, at most. */
struct nrg_cpu_bounds {
    double least_s, own_s, most_s;
};

struct nrg_cpu_bounds nrg_cpu_bounds(const struct nrg_cpu_time *times,
                                     const struct nrg_cpu_slot *slot, double open_s, double own_s);

/* Fills times->rates, as far as the slots tell. 0 or -ENOMEM. */
int nrg_cpu_rates_fit(struct nrg_cpu_time *times, size_t n_places, size_t n_parts,
                      double confidence);
/* Fills own_s of the entries. */
void nrg_cpu_divide(struct nrg_cpu_time *times);

/* Of a part, per cell: the model's energy above idle; and with it joules per CPU second, once it is
 * known what the ticks are worth. 0 or -ENOMEM. */
void nrg_cpu_active(const struct nrg_engine *engine, const struct nrg_part *part, double *active_j);
int nrg_cpu_prices(struct nrg_cpu_time *times, const struct nrg_engine *engine,
                   const struct nrg_part *part, const float *workload_s, double *active_j,
                   double *price);

/* Fills times->cells and what is known of the ticks (ticks.c). active_j: per cell, the model's
 * energy above idle. 0 or -ENOMEM. */
int nrg_cpu_ticks_init(struct nrg_cpu_time *times, struct nrg_engine *engine,
                       const float *workload_s, const double *active_j);
/*
 * What the ticks of busy time, of which the model is made, may have moved of each of `n` energies.
 * Slots come in order of their cells.
 */
struct nrg_cpu_rounding {
    const struct nrg_cpu_time *times;
    double *variance_j2; /* per energy */
    struct nrg_cpu_price {
        double before, here, after; /* joules per busy second: in cell - 1, cell and cell + 1 */
        double bent_j;              /* of all cells */
    } * prices;                     /* per energy */
    uint32_t *active;               /* energies whose prices are not all 0 */
    size_t n_active, cell;
};

/* Memory is the caller's. 0 or -ENOMEM. */
int nrg_cpu_rounding_init(struct nrg_cpu_rounding *rounding, const struct nrg_cpu_time *times,
                          struct nrg_arena *memory, size_t n);
/* An energy has so much of a slot, by the mean price at least: a cell's may be rounded to nothing.
 */
void nrg_cpu_rounding_add(struct nrg_cpu_rounding *rounding, size_t energy,
                          const struct nrg_cpu_slot *slot, double energy_j);
/* No slot of a cell before this one follows. SIZE_MAX: none at all. */
void nrg_cpu_rounding_move(struct nrg_cpu_rounding *rounding, size_t cell);
/* Adds what was found for an energy, after all slots. It then begins anew. */
void nrg_cpu_rounding_take(struct nrg_cpu_rounding *rounding, size_t energy,
                           struct nrg_row_error *error);

/* Steps of slots (steps.c). step 0: none. 0 or -ENOMEM. */
int nrg_cpu_steps_add(struct nrg_cpu_steps *seen, uint32_t step, double open_s);
/* The interval has become a slot; `seen` is then empty. */
int nrg_cpu_steps_end(struct nrg_cpu_steps *seen, struct nrg_cpu_time *times);

/* A reading of a thread's CPU time. */
struct nrg_cpu_reading {
    int64_t t_ns, cpu_ns;
};

/* Of the threads without spans of a group: since the reading before. */
struct nrg_cpu_interval {
    int64_t end_ns;
    float cpu_s;            /* below 0: rounding, or the process was read before its threads */
    float beside_s, beside; /* CPU time of its threads with spans, and how many ran */
    float late_s;           /* how much later than the process these were read, in sum */
    float read;             /* how many were read with it */
};

/* What is read of the recording (readings.c). */
struct nrg_cpu_readings {
    struct nrg_arena memory; /* of what is per cell, group or track */
    struct nrg_cpu_track {
        struct nrg_cpu_reading *rows; /* in order of time, CPU time never less */
        size_t n, cap;
    } * tracks;
    struct nrg_cpu_track *processes; /* per group: its process, as it was read */
    struct nrg_cpu_followers {
        int64_t begin_ns;
        struct nrg_cpu_interval *rows;
        size_t n;
    } * followers;     /* per group */
    float *group_s;    /* [cell * n_groups + group]: CPU time of the group's processes */
    float *tracks_s;   /* the same: of its threads that have readings */
    float *workload_s; /* per cell: of all processes */
    float *threads;    /* per group: that its processes had at most */
    int64_t gap_ns;    /* readings closer than this are left out: there are too many */
    size_t n_rows;     /* of all tracks */
    bool any;          /* CPU time of some process or thread is known */
};

/* gap_ns: as above; 0: all are kept. 0 or -errno. */
int nrg_cpu_readings_init(struct nrg_cpu_readings *readings, struct nrg_engine *engine,
                          int64_t gap_ns);
void nrg_cpu_readings_release(struct nrg_cpu_readings *readings, const struct nrg_engine *engine);

/* Fills engine->cpu_time. -E2BIG: more than may be kept, try with larger gaps. */
int nrg_cpu_slots_make(struct nrg_engine *engine, const struct nrg_cpu_readings *readings);

/* What the threads of a group have more than their process, CPU seconds per cell. */
int nrg_cpu_beyond(const struct nrg_engine *engine, const struct nrg_cpu_readings *readings,
                   double cpus, size_t group, double *beyond_s);

#endif

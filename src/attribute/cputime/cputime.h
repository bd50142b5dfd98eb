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
 * (slots.c); energies of places are sums over them, and the bounds of a view's rows are found by
 * adding up the time of all places inside a row first, slot by slot (errors.c): bounds of a whole
 * are closer than the sum of its parts' bounds.
 */
#ifndef NRG_ATTRIBUTE_CPUTIME_H
#define NRG_ATTRIBUTE_CPUTIME_H

#include "attribute/internal.h"

/* Stands for a number of CPUs or threads that is not known. */
#define NRG_CPU_MANY 1e6f

struct nrg_cpu_slot {
    size_t first;           /* of its entries; they go on to the first of the next slot */
    float width_s, cpu_s;   /* of the strand */
    float open_s;           /* of all places together */
    float threads;          /* of the strand that can run at once */
    float beside_s, beside; /* CPU time of the threads that it runs beside, and how many they are */
    float noise;            /* of the joules per CPU second: relative standard error */
};

struct nrg_cpu_entry {
    uint32_t place; /* node of walk.rows */
    float open_s;   /* in this slot */
};

struct nrg_cpu_time {
    struct nrg_cpu_slot *slots;
    struct nrg_cpu_entry *entries;
    float *price; /* [slot * n_parts + part]: joules per CPU second; 0 for other methods */
    size_t n_slots, n_entries, cap_slots, cap_entries, cap_price;
    double cpus; /* of the machine; NRG_CPU_MANY: not known */
};

/* CPU time that a place had in a slot, from the time it was open: at least, most likely, at most.
 */
struct nrg_cpu_bounds {
    double least_s, own_s, most_s;
};

struct nrg_cpu_bounds nrg_cpu_bounds(const struct nrg_cpu_time *times,
                                     const struct nrg_cpu_slot *slot, double open_s);

/* A reading of a thread's CPU time. */
struct nrg_cpu_reading {
    int64_t t_ns, cpu_ns;
};

/* What is read of the recording (readings.c). */
struct nrg_cpu_readings {
    struct nrg_arena memory; /* of what is per cell, group or track */
    struct nrg_cpu_track {
        struct nrg_cpu_reading *rows; /* in order of time, CPU time never less */
        size_t n, cap;
    } * tracks;
    float *group_s;    /* [cell * n_groups + group]: CPU time of the group's processes */
    float *tracks_s;   /* the same: of its threads that have readings */
    float *tracks_n;   /* the same: how many of those ran */
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

#endif

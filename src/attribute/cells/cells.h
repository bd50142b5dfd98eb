/*
 * How the work of each short stretch of time (a cell, about as long as the recorder's tick) is
 * divided: between the workload and other processes, between the workload's processes, and between
 * the tracks of a process that have a span open. By CPU time, as far as it was recorded.
 *
 * A pool is the tracks that share one kind of energy: threads share the processors', the tracks of
 * a GPU that GPU's. A group is the tracks of a pool that belong to one process; tracks whose
 * process is not known form one group, which has the CPU time of the processes without a track.
 *
 * Memory: cells * (tracks + groups), bounded by making cells longer. Init, weigh (cpu.c),
 * release. 0 or -errno. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_CELLS_H
#define NRG_ATTRIBUTE_CELLS_H

#include "attribute/cells/thread_times.h"
#include "base/arena.h"
#include "energy/bins.h"
#include "energy/frame.h"
#include "energy/others.h"
#include "record/read/span_catalog.h"

struct nrg_cells {
    struct nrg_arena memory; /* of the arrays, but for begin_ns and outside */
    size_t n;
    int64_t *begin_ns; /* n + 1 of them: a cell ends where the next begins */
    uint8_t *outside;  /* between runs: not part of the result */
    size_t n_tracks, n_groups, n_pools;
    uint32_t *track_group, *track_pool;
    uint32_t *group_pool;
    int64_t *group_process;  /* process.id; 0: not known */
    char (*pool_domain)[48]; /* "" for the first: the processors */
    float *open_s; /* [cell * n_tracks + track]: time with a span open; the survey fills it */
    float *weight; /* [cell * n_tracks + track]: work per second with a span open */
    float *share;  /* [cell * n_groups + group]: of the workload's work in its pool */
    float *other;  /* per cell: part of the CPUs' work that is not the workload's */
    /* CPU seconds per second, [cell * n_tracks + track]: with a span open, and without; threads
     * that have no spans are counted with those that have. Of the processors' tracks alone. */
    float *open_rate, *gap_rate;
    /* Per track: where its first span begins and its last one ends (the survey fills it; 0: it has
     * none), and the rates before and after, in the cells of these. */
    int64_t *first_ns, *last_ns;
    float *before_rate, *after_rate;
    double unplaced_s; /* of threads that work and sleep between spans: in which gap is not known */
    struct nrg_thread_times *thread_times; /* per track: finer than cells, where it is known */
    bool one_thread; /* all spans are of one thread, whose own CPU times were recorded */
    bool has_rates;  /* CPU times of threads or processes were recorded */
    double *other_s; /* per cell, CPU seconds of others; NULL: not known */
    double own_s;    /* in the runs, of these the recorder's, where that is known by itself */
    struct nrg_others_profile other_profile; /* when in a cell they were busy */
    float *untracked_s;  /* per cell, of the workload's processes without a track */
    double *busy_s;      /* per cell, CPU seconds of the machine; NULL: not recorded */
    double cpus;         /* of the machine; INFINITY: not known */
    uint8_t *full;       /* per cell: all of them were busy, as far as busy time tells */
    double idle_told_s2; /* how much the CPUs' idle time scatters, beyond its errors: a sum of
                            squares over cells; INFINITY: CPUs are often idle */
    bool has_processes;
    /* In the runs, CPU seconds of the workload, and of these those of threads without spans while
     * others of their process had one open, which they are not seen to wait with. */
    double workload_s, spanless_s;
};

/* Cells over the spans of time given, which are in order; pools by the domains of the tracks. */
int nrg_cells_init(struct nrg_cells *cells, struct nrg_frame *frame,
                   const struct nrg_span_catalog *catalog, const struct nrg_span_ns *windows,
                   size_t n_windows);
void nrg_cells_release(struct nrg_cells *cells);
/* The cell that holds t_ns; the first or last one outside. */
size_t nrg_cells_find(const struct nrg_cells *cells, int64_t t_ns);
/* The pool of a domain's name; 0, the processors, where no track names it. */
uint32_t nrg_cells_pool(const struct nrg_cells *cells, const char *domain);

static inline double nrg_cells_length_s(const struct nrg_cells *cells, size_t k)
{
    return (double)(cells->begin_ns[k + 1] - cells->begin_ns[k]) * 1e-9;
}

#endif

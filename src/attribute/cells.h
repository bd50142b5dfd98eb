/*
 * Who does the work in each short stretch of time (a cell, about as long as the recorder's tick):
 * how much of it is the workload's and how much is other processes', how the workload's divides
 * over its processes, and a process's over the tracks that have a span open. By CPU time, as far
 * as it was recorded.
 *
 * A pool is what shares one kind of energy: the threads share the processors', the tracks of a GPU
 * that GPU's. A group is what of a pool belongs to one process; tracks whose process is not known
 * form one group, which has the CPU time of those processes that have no track.
 *
 * Memory: cells * (tracks + groups), bounded by making cells longer. Init, cpu, release.
 */
#ifndef NRG_ATTRIBUTE_CELLS_H
#define NRG_ATTRIBUTE_CELLS_H

#include "energy/bins.h"
#include "energy/frame.h"
#include "record/read/span_catalog.h"

struct nrg_cells {
    size_t n;
    int64_t *begin_ns; /* n + 1 of them: a cell ends where the next begins */
    uint8_t *outside;  /* between runs: not part of the result */
    size_t n_tracks, n_groups, n_pools;
    uint32_t *track_group, *track_pool;
    uint32_t *group_pool;
    int64_t *group_process;  /* process.id; 0: not known */
    char (*pool_domain)[48]; /* "" for the first: the processors */
    float *open_s;  /* [cell * n_tracks + track]: time with a span open; the survey fills it */
    float *weight;  /* [cell * n_tracks + track]: work per second with a span open */
    float *share;   /* [cell * n_groups + group]: of the workload's work in its pool */
    float *other;   /* per cell: part of the CPUs' work that is not the workload's */
    double *busy_s; /* per cell, CPU seconds of the machine; NULL: not recorded */
    bool has_processes;
};

/* Cells over the spans of time given, which are in order; pools by the domains of the tracks. */
int nrg_cells_init(struct nrg_cells *cells, struct nrg_frame *frame,
                   const struct nrg_span_catalog *catalog, const struct nrg_span_ns *windows,
                   size_t n_windows);
void nrg_cells_release(struct nrg_cells *cells);
/* The cell that holds t_ns; the first or last one outside. */
size_t nrg_cells_find(const struct nrg_cells *cells, int64_t t_ns);
/* The time with a span open is known: makes weights and shares. */
int nrg_cells_weigh(struct nrg_cells *cells, struct nrg_frame *frame,
                    const struct nrg_span_catalog *catalog);

/* cells_cpu.c: adds an amount that was used evenly between two instants. */
void nrg_cells_spread(const struct nrg_cells *cells, int64_t from_ns, int64_t to_ns, double amount,
                      float *column, size_t stride);

static inline double nrg_cells_length_s(const struct nrg_cells *cells, size_t k)
{
    return (double)(cells->begin_ns[k + 1] - cells->begin_ns[k]) * 1e-9;
}

#endif

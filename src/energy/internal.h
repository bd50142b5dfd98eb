/* The processes' part of bins.c: who used how much in which bin. Inside src/attribute. */
#ifndef NRG_ATTRIBUTE_BINS_PROCESS_H
#define NRG_ATTRIBUTE_BINS_PROCESS_H

#include "energy/bins.h"
#include "record/read/cursor.h"

struct nrg_open_bin {
    struct nrg_bin_cell *cells;
    struct nrg_bin_process *processes;
    size_t n_processes, cap_processes;
    struct nrg_bin_gpu_process *gpu;
    size_t n_gpu, cap_gpu;
};

struct nrg_bin_process_state {
    const struct nrg_process_info *info;
    int64_t t_ns, cpu_ns, rss_bytes, pss_bytes, uss_bytes;
    int64_t bin; /* the last one that it is in, and where there */
    size_t entry;
    bool seen;
};

struct nrg_bin_processes {
    struct nrg_bin_process_state *by_id;
    size_t n_ids;
};

/* CPU time between two readings of one process. */
struct nrg_process_stretch {
    size_t id;
    int64_t from_ns, to_ns;
    double cpu_s;
};

int nrg_bin_processes_init(struct nrg_bin_processes *p, struct nrg_recording *recording);
void nrg_bin_processes_release(struct nrg_bin_processes *p);
/* A row of NRG_PROCESSES or NRG_PROCESS_MEMORY. 1: *stretch is to be added; 0: nothing is. */
int nrg_bin_processes_row(struct nrg_bin_processes *p, const struct nrg_cursor_row *row,
                          struct nrg_process_stretch *stretch);
/* Adds the part of a stretch that lies in the bin of number k. */
int nrg_bin_processes_add(struct nrg_bin_processes *p, struct nrg_open_bin *bin, int64_t k,
                          const struct nrg_process_stretch *stretch, struct nrg_span_ns edges);
/* A row of NRG_GPU_PROCESSES. */
int nrg_bin_gpu_add(struct nrg_open_bin *bin, const int64_t *cells);

#endif

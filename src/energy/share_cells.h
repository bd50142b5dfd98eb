/*
 * A run cut into cells of equal length (but for the first and the last), with what is known of
 * each: what energy is shared out by (shares.c), and what idle power is found from (idle_power.c).
 *
 * The caller owns `at` and frees it. Plain data; one thread at a time.
 */
#ifndef NRG_ENERGY_SHARE_CELLS_H
#define NRG_ENERGY_SHARE_CELLS_H

#include "energy/timeline.h"

#define NRG_LEAST_CELL_NS (100 * NRG_NS_PER_MS)

struct nrg_share_cell {
    double cpu_j, dram_j;   /* of the domains */
    bool gap;               /* readings do not cover all of cpu_j: its power is not known */
    double idle_j;          /* of cpu_j */
    double busy_s;          /* CPU seconds of the whole machine */
    double process_s;       /* CPU seconds of the workload */
    double other_s;         /* and of all others */
    double memory_bytes_s;  /* memory in use * time */
    double process_bytes_s; /* of the workload */
    double share;           /* of the workload, in cpu_j above idle */
};

struct nrg_share_cells {
    struct nrg_share_cell *at;
    size_t n;
    int64_t begin_ns, end_ns; /* of the run */
    int64_t first_ns;         /* length of the first cell */
    int64_t length_ns;        /* of the others */
};

/* Such that one begins `edge_ns` after the begin of the run. 0 or -ENOMEM. */
int nrg_share_cells_cut(struct nrg_share_cells *cells, int64_t begin_ns, int64_t end_ns,
                        int64_t edge_ns);
int64_t nrg_cell_begin(const struct nrg_share_cells *cells, size_t k);
int64_t nrg_cell_end(const struct nrg_share_cells *cells, size_t k);
double nrg_cell_s(const struct nrg_share_cells *cells, size_t k);
/* The cell of a time within the run. */
size_t nrg_cell_at(const struct nrg_share_cells *cells, int64_t t_ns);
/* What a timeline has in a cell; 0 without a timeline. */
double nrg_cell_sum(const struct nrg_share_cells *cells, const struct nrg_timeline *tl, size_t k);

#endif

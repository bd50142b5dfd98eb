/*
 * CPU time of processes that are not the workload's, from the busy time of the machine and the CPU
 * time of the workload. The busy time may come in ticks of 10 ms, the workload's in ns, so that
 * their difference in one cell is mostly rounding, and its positive part alone would be CPU time
 * that nobody used. Summed up over the run, the difference is exact to one tick, and it never
 * falls: that is how much is known.
 *
 * Nothing is kept. Thread-safe.
 */
#ifndef NRG_ENERGY_OTHERS_H
#define NRG_ENERGY_OTHERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The others' seconds in each of n cells. `tick_s`: resolution of the busy time. */
void nrg_others_spread(const double *busy_s, const double *mine_s, size_t n, double tick_s,
                       double *others_s);

/*
 * When in its cell others were busy is not known, but cells tell how long they stay so: the less
 * neighbours are alike, the shorter. Taken for a process whose correlation decays over time, the
 * likely CPUs of each part of a cell follow from that cell and its neighbours. A rate that jumps
 * from cell to cell instead would be too low where sudden changes are looked at, and so would be
 * the watts that are found with it.
 */
#define NRG_OTHERS_PARTS 10

struct nrg_others_profile {
    double cell_s;                      /* of nearly all cells; 0: evenly */
    double mean;                        /* CPUs */
    double weight[NRG_OTHERS_PARTS][3]; /* of the cell before, this one and the next */
};

/* Cells begin at begin_ns, n + 1 of them. */
void nrg_others_fit_profile(struct nrg_others_profile *profile, const double *others_s,
                            const int64_t *begin_ns, size_t n, double tick_s);
/* CPUs in each part of cell k; false: evenly, nothing is filled. */
bool nrg_others_parts(const struct nrg_others_profile *profile, const double *others_s,
                      const int64_t *begin_ns, size_t n, size_t k, double parts[NRG_OTHERS_PARTS]);

#endif

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

#include <stddef.h>

/* The others' seconds in each of n cells. `tick_s`: resolution of the busy time. */
void nrg_others_spread(const double *busy_s, const double *mine_s, size_t n, double tick_s,
                       double *others_s);

#endif

/*
 * Whether a process's threads without spans (a pool of workers) work while the thread that they
 * work for waits, or wait with it. Cells tell: where the thread waits more than in other cells,
 * workers that work meanwhile have more CPU time, and those that wait with it have less.
 *
 * Add all cells to sums that are 0 at first, then ask. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_WORKERS_H
#define NRG_ATTRIBUTE_WORKERS_H

#include <stdbool.h>

/* Of the CPU seconds of workers on the time that spans are open and that their threads wait. */
struct nrg_workers {
    double open2, both, waited2;    /* sums of products */
    double open, waited, square, n; /* the same with the CPU seconds, of these, and of cells */
};

/* A cell: how long spans were open, how much of that their threads waited, the workers' CPU
 * seconds. */
void nrg_workers_add(struct nrg_workers *workers, double open_s, double waited_s, double extra_s);
/* False where cells do not tell. */
bool nrg_workers_wait_too(const struct nrg_workers *workers);

#endif

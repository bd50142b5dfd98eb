/*
 * Watts per CPU second of the processes that used most of it, of the others of the workload and of
 * the rest of the machine, from how the power of the run's cells follows their CPU times. Programs
 * differ by a factor of two and more; without this, each CPU second counts the same.
 *
 * Init with the CPU seconds of each process, add each cell's, fit, ask, release. 0 or -ENOMEM. One
 * thread at a time.
 */
#ifndef NRG_ENERGY_PROCESS_WATTS_H
#define NRG_ENERGY_PROCESS_WATTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NRG_WATTS_PROCESSES 16                  /* that have watts of their own */
#define NRG_WATTS_REST      NRG_WATTS_PROCESSES /* of the workload */
#define NRG_WATTS_OTHERS    (NRG_WATTS_PROCESSES + 1)
#define NRG_WATTS_SLOTS     (NRG_WATTS_PROCESSES + 2)

struct nrg_process_watts {
    uint8_t *slot_of;                 /* per process id */
    double (*cpu_s)[NRG_WATTS_SLOTS]; /* per cell */
    size_t n_cells;
    double watts[NRG_WATTS_SLOTS]; /* 1 each until a fit tells them apart */
    bool told_apart;
};

/* cpu_s: of each process, by id. */
int nrg_process_watts_init(struct nrg_process_watts *w, const double *cpu_s, size_t n_ids,
                           size_t n_cells);
void nrg_process_watts_release(struct nrg_process_watts *w);
/* active_j, length_s: of each cell; without energy the cell says nothing. */
int nrg_process_watts_fit(struct nrg_process_watts *w, const double *active_j,
                          const double *length_s);
/* CPU seconds of a cell, each times its watts. */
double nrg_process_watts_sum(const struct nrg_process_watts *w, size_t cell);

#endif

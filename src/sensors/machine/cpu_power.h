/*
 * What a processor's machine draws, by the table: its row, and the row's watts at its clock and
 * size. Plain functions of constant data; any thread.
 */
#ifndef NRG_SENSORS_MACHINE_CPU_POWER_H
#define NRG_SENSORS_MACHINE_CPU_POWER_H

#include "sensors/machine/cpu_model.h"
#include "sensors/machine/cpu_table.h"

/* The row of its family; *known is false when it is a row for what is in none. */
const struct nrg_cpu_family *nrg_cpu_family_of(const struct nrg_cpu_model *model, bool *known);

/*
 * How many hardware threads of the table one CPU is that the kernel shows. The table counts
 * threads with SMT on; a CPU that is a whole core counts as all its threads.
 */
unsigned nrg_cpu_threads_per_cpu(const struct nrg_cpu_model *model,
                                 const struct nrg_cpu_family *family);

/* The most that it may be: nobody tells a virtual machine without SMT what its CPUs are. */
unsigned nrg_cpu_most_threads_per_cpu(const struct nrg_cpu_model *model,
                                      const struct nrg_cpu_family *family);

/* Watts per hardware thread of the table. */
struct nrg_cpu_power nrg_cpu_power_of(const struct nrg_cpu_model *model,
                                      const struct nrg_cpu_family *family);

#endif

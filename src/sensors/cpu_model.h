/*
 * Which processor this is, as far as its power is concerned: what /proc/cpuinfo says of the first
 * CPU, how many hardware threads are online, and whether a hypervisor stands between.
 */
#ifndef NRG_SENSORS_CPU_MODEL_H
#define NRG_SENSORS_CPU_MODEL_H

#include <stdbool.h>

#include "base/root.h"
#include "sensors/machine/cpu_table.h"

struct nrg_cpu_model {
    char vendor[16]; /* "" when unknown */
    char name[64];   /* "AMD EPYC 7763 64-Core Processor"; virtual machines cut it */
    unsigned family, model, stepping;
    unsigned siblings, cores; /* of a package: threads and cores; 0 when not told */
    unsigned threads;         /* online in the whole machine; 0 when nothing tells */
    bool virtual_machine;
};

/* Never fails: what can't be read stays empty. */
void nrg_cpu_model_read(const struct nrg_root *root, struct nrg_cpu_model *model);

/* Its row; *known is false when a generic row had to stand in. */
const struct nrg_cpu_family *nrg_cpu_family_of(const struct nrg_cpu_model *model, bool *known);

#endif

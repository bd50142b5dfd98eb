/*
 * Which processor this is, as far as its power is concerned: what /proc/cpuinfo says of the first
 * CPU (sockets do not mix models), how many hardware threads are online, and whether this is a
 * virtual machine. The one place that reads /proc/cpuinfo. Plain data; any thread.
 */
#ifndef NRG_SENSORS_MACHINE_CPU_MODEL_H
#define NRG_SENSORS_MACHINE_CPU_MODEL_H

#include <stdbool.h>

#include "base/root.h"

enum nrg_cpu_vendor { NRG_VENDOR_OTHER, NRG_VENDOR_INTEL, NRG_VENDOR_AMD };

struct nrg_cpu_model {
    char vendor[16]; /* "" when unknown */
    char board[64];  /* the "Model" line of ARM boards, "" elsewhere */
    char name[64];   /* "AMD EPYC 7763 64-Core Processor"; virtual machines cut it */
    unsigned family, model, stepping; /* 0 when unknown */
    unsigned siblings, cores;         /* of a package: threads and cores; 0 when unknown */
    unsigned threads;                 /* online in the whole machine; 0 when unknown */
    unsigned told_mhz;                /* as the hypervisor told; 0 where it is measured */
    unsigned clock_mhz;               /* nominal; 0 when unknown */
    unsigned chip_cores;              /* of one chip; 0 when unknown, as in virtual machines */
    bool virtual_machine;
    bool whole_cores; /* a virtual machine of a type whose CPUs are cores */
    bool device_tree; /* a board, or a machine that is built like one */
};

/*
 * From /proc/cpuinfo alone: without threads, clock_mhz and what firmware tells. -errno: unreadable.
 */
int nrg_cpu_model_identify(const struct nrg_root *root, struct nrg_cpu_model *model);
/* Everything. Never fails: what can't be read stays empty. */
void nrg_cpu_model_read(const struct nrg_root *root, struct nrg_cpu_model *model);

/* By its registers: Hygon's are AMD's. */
enum nrg_cpu_vendor nrg_cpu_vendor_of(const struct nrg_cpu_model *model);

#endif

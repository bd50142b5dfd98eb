/*
 * The package, die and core of each CPU. RAPL counters belong to a package (on some Intel servers
 * to a die) and are read through one of its CPUs. Which one, and how the kernel names the package,
 * is decided here for perf and for the MSR.
 *
 * Read from /sys/devices/system/cpu of the root. Offline CPUs have no topology directory and are
 * left out. The caller owns the list (_release). Negative errno. Any thread.
 */
#ifndef NRG_SENSORS_CPUS_H
#define NRG_SENSORS_CPUS_H

#include "base/root.h"

struct nrg_cpu {
    unsigned cpu;
    int64_t package, die, core; /* die is 0 and core -1 when unknown */
};

struct nrg_cpus {
    struct nrg_cpu *items;
    size_t n, cap;
};

int nrg_cpus_read(const struct nrg_root *root, struct nrg_cpus *out);
void nrg_cpus_release(struct nrg_cpus *cpus);
const struct nrg_cpu *nrg_cpus_find(const struct nrg_cpus *cpus, unsigned cpu);

/*
 * Keeps one CPU (the first) per package, or per die where `by_die` and a package has several.
 * Order is kept.
 */
void nrg_cpus_one_per_package(struct nrg_cpus *cpus, bool by_die);

/* The kernel's suffix of a package: "0", or "0-die-1" when a package of the list has two dies. */
void nrg_cpu_suffix(const struct nrg_cpus *cpus, const struct nrg_cpu *cpu, char *buf, size_t size);

#endif

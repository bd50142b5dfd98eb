/*
 * How far between idle and full a machine is: 0 to 1, from how busy its CPUs are.
 *
 * Power follows busy cores, not busy threads: the first thread wakes the core, the second adds
 * little (nrg_cpu_second_thread). Where the kernel shows which CPUs share a core, each core is
 * looked at; elsewhere the busy threads are taken to be spread at random. Not thread-safe.
 */
#ifndef NRG_SENSORS_MACHINE_CORE_LOAD_H
#define NRG_SENSORS_MACHINE_CORE_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/root.h"

struct nrg_core_load;

/* The share when nothing is known but the mean utilisation of all threads. */
double nrg_load_share(double utilisation);

/* NULL: no two CPUs are known to share a core, or no memory. */
struct nrg_core_load *nrg_core_load_new(const struct nrg_root *root);
void nrg_core_load_free(struct nrg_core_load *load); /* NULL is fine */
/* Bytes of /proc/stat that hold the lines of all CPUs. */
size_t nrg_core_load_stat_size(const struct nrg_core_load *load);

/*
 * The share since the last call with `settle`, from the text of /proc/stat; negative while
 * nothing is known. With `settle` the next window begins here.
 */
double nrg_core_load_share(struct nrg_core_load *load, const char *text, size_t len, bool settle);

#endif

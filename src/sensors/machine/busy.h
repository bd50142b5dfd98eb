/*
 * CPU time of the whole machine, finer than the ticks of /proc/stat where the kernel has it.
 *
 * What the kernels offer, and what it is worth (measured on Linux 6.18 with 250 ticks a second):
 *
 *   cgroup v1, cpuacct.usage of the root   ns, every task's own run time, 2 to 10 us a read
 *   cgroup v2, usage_usec of the groups    us, the same run time. The root itself does not count
 * it, below the root                       so the groups are added up. Kernel threads and
 * interrupts are in no group and missing. cgroup v2, cpu.stat of the root        us, but whole
 * ticks, given to whoever runs at the tick /proc/stat                             the same in 10 ms
 *
 * Run times end at the last tick or switch of each CPU. The kernel adds them to the task, to its
 * process and to these sums at the same moment: read right after the processes, the difference is
 * exact, however late each of the two is.
 *
 * Not used: /proc/schedstat (a task's time comes when it leaves the CPU, however long it runs) and
 * cpuidle (a sleep counts when it is over, so busy time would go back).
 *
 * In a container the file of the "root" is the container's own. The files of a directory tell; and
 * a source whose sum since boot is not what /proc/stat says is not used.
 *
 * Errors: a negative errno. Not thread-safe.
 */
#ifndef NRG_SENSORS_MACHINE_BUSY_H
#define NRG_SENSORS_MACHINE_BUSY_H

#include "base/context.h"
#include "sensors/machine/files.h"

struct nrg_busy;

/*
 * Sets scale, resolution, update_ns and source of the channel for the best source that agrees with
 * the ticks since boot. False: there is none, and the channel is as it was.
 */
bool nrg_busy_describe(const struct nrg_root *root, const struct nrg_cpu_ticks *ticks,
                       struct nrg_channel *channel);

/* Opens the source of a channel that was described so. The root outlives it. */
int nrg_busy_open(const struct nrg_root *root, const struct nrg_channel *channel,
                  struct nrg_busy **out);
/* Allocates nothing but when a group has come or gone. */
int nrg_busy_read(struct nrg_busy *busy, int64_t *raw);
void nrg_busy_close(struct nrg_busy *busy); /* NULL-safe */

#endif

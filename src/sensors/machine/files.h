/*
 * Parsers of /proc/stat, /proc/meminfo and a control group's cpu.stat.
 *
 * Pure functions on text that was read elsewhere (length given, need not be terminated): no
 * allocation, safe from any thread. Lines of old kernels with fewer fields are fine, garbage is
 * -EINVAL or -ERANGE.
 */
#ifndef NRG_SENSORS_MACHINE_FILES_H
#define NRG_SENSORS_MACHINE_FILES_H

#include "sensors/channel.h"

/* Enough for the "cpu" line of /proc/stat, the first one, whatever the machine's size. */
#define NRG_PROC_STAT_HEAD 512

/*
 * Time in USER_HZ ticks. busy: user, nice, system, irq, softirq (guest time is inside user);
 * idle: idle and iowait; steal: time that the host gave to other guests, NRG_MISSING on old
 * kernels.
 * Idle time may go back a little (a kernel quirk of tickless CPUs).
 */
struct nrg_cpu_ticks {
    int64_t busy, idle, steal;
};

/* From one count to a later one: 0 when it went back, or was not known before. */
int64_t nrg_cpu_ticks_between(int64_t from, int64_t to);

#define NRG_CPU_ALL (-1)

/*
 * The "cpu" or "cpuN" line at *text; advances *text behind it. *cpu is N or NRG_CPU_ALL.
 * 0, -ENOENT when the line is another one (the cpu lines come first), -EINVAL, -ERANGE.
 */
int nrg_proc_stat_line(const char **text, const char *end, int *cpu, struct nrg_cpu_ticks *out);

/* The machine's line alone: the first of the file. */
int nrg_proc_stat_total(const char *text, size_t len, struct nrg_cpu_ticks *out);

/* KiB. Kernels before 3.14 have no MemAvailable: free + buffers + cached stands in. */
struct nrg_proc_memory {
    int64_t total_kib, available_kib;
};
int nrg_proc_meminfo(const char *text, size_t len, struct nrg_proc_memory *out);

/* CPU time of a control group (v2). All three have to be there. */
struct nrg_cpu_stat {
    int64_t usage_us, user_us, system_us;
};
int nrg_cgroup_cpu_stat(const char *text, size_t len, struct nrg_cpu_stat *out);

#endif

/*
 * One process, read from /proc. Parsers take text so that they can be tested and fuzzed; readers
 * go through the root. Results go into the caller's memory. Errors: a negative errno. Any thread.
 *
 * CPU time: on the machine itself, the process's CPU clock (clock_gettime on its pid) has ns
 * resolution, counts all threads including those that ended, needs no privilege and no open
 * file. /proc/PID/schedstat has the main thread only, and utime+stime are ticks of 10 ms, which
 * have to do for captured trees.
 */
#ifndef NRG_RECORD_SAMPLER_PROCFS_H
#define NRG_RECORD_SAMPLER_PROCFS_H

#include "base/root.h"
#include "record/format.h"

struct nrg_proc_stat {
    char name[32];
    char state;
    int32_t parent_pid;
    int64_t user_ticks, system_ticks;             /* own, all threads */
    int64_t child_user_ticks, child_system_ticks; /* of children that were waited for */
    int64_t threads;
    int64_t start_ticks;
    int64_t rss_pages;
};

/*
 * It has ended, though it may still be in /proc: nobody has waited for it yet ('Z'), or somebody is
 * just doing so and may have its CPU time already ('X'). A first thread may end before the others.
 */
static inline bool nrg_proc_has_ended(const struct nrg_proc_stat *stat)
{
    return (stat->state == 'Z' || stat->state == 'X') && stat->threads <= 1;
}

/* A line of /proc/PID/stat; the name may hold blanks and brackets. 0 or -EINVAL. */
int nrg_proc_parse_stat(const char *text, size_t len, struct nrg_proc_stat *out);

/* Container id (12 hex digits, with the runtime's name) and unit from /proc/PID/cgroup. */
void nrg_proc_parse_cgroup(const char *text, size_t len, char *container, size_t container_size,
                           char *unit, size_t unit_size);

/* "Pss:" and "Private_*:" of smaps_rollup. 0 or -EINVAL. */
int nrg_proc_parse_smaps(const char *text, size_t len, int64_t *pss_bytes, int64_t *uss_bytes);

/* "read_bytes:" and "write_bytes:" of io. 0 or -EINVAL. */
int nrg_proc_parse_io(const char *text, size_t len, int64_t *read_bytes, int64_t *written_bytes);

int nrg_proc_read_stat(const struct nrg_root *root, int32_t pid, struct nrg_proc_stat *out);

/* False when /proc is another pid namespace's: its numbers mean other processes than ours do. */
bool nrg_proc_is_ours(const struct nrg_root *root);

/* The newest pid in our pid namespace, from an open /proc/loadavg; -errno. */
int64_t nrg_proc_last_pid(int loadavg_fd);

/* CPU time of all threads of a live process; -errno when it is gone. */
int nrg_proc_cpu_ns(const struct nrg_root *root, int32_t pid, const struct nrg_proc_stat *stat,
                    int64_t *cpu_ns);

/* name, command, uid, container, unit; what can't be read stays as it was. `stat` may be NULL. */
void nrg_proc_describe(const struct nrg_root *root, int32_t pid, const struct nrg_proc_stat *stat,
                       struct nrg_process_info *info);

int nrg_proc_memory(const struct nrg_root *root, int32_t pid, int64_t *pss_bytes,
                    int64_t *uss_bytes);
int nrg_proc_io(const struct nrg_root *root, int32_t pid, int64_t *read_bytes,
                int64_t *written_bytes);

/* Calls back with each child pid. `threads` > 1: looks at every thread's children. */
void nrg_proc_children(const struct nrg_root *root, int32_t pid, int64_t threads,
                       void (*each)(int32_t child, void *arg), void *arg);

#endif

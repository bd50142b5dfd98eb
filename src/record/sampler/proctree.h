/*
 * The processes of the workload: which ones belong to it, and how much CPU time and memory each
 * one used. Roots are given (the child of `nrg run`, pids, or the whole system); descendants are
 * followed through double forks and setsid:
 *
 *   - by the kernel's proc connector where that is permitted: it reports every fork, exec and exit
 *     at once, so a process of a few ms is seen with its name and CPU time;
 *   - else by polling /proc/PID/task/TID/children. Processes that start and end between two polls
 *     are not seen one by one. Their CPU time is known from what wait(2) reported to their parents;
 *     it is kept as one process called "(short-lived)".
 *
 * Law: the CPU time of all rows is what wait(2) reports of the tree. What waits have reported, to
 * processes of the tree or to this one, less the own time of the ended ones that were seen, is the
 * short-lived one's.
 *
 * Ownership: new, free. Errors: a negative errno, or NULL when out of memory. Not thread-safe:
 * the recorder's lock guards it. Samples go out through callbacks, in the thread that polls.
 */
#ifndef NRG_RECORD_SAMPLER_PROCTREE_H
#define NRG_RECORD_SAMPLER_PROCTREE_H

#include "base/context.h"
#include "record/format.h"

struct nrg_proctree;

struct nrg_proctree_events {
    /* A row of NRG_PROCESSES. */
    void (*sample)(void *arg, int64_t t_ns, const int64_t *values);
    /* New, changed (exec) or ended. */
    void (*process)(void *arg, const struct nrg_process_info *info);
    /* Something that the user should know. Each is reported once. */
    void (*note)(void *arg, const char *detail);
    void *arg;
    /* CPU time in a process that is not its own: that of a recorder inside it. NULL: none. */
    int64_t (*not_theirs_ns)(void *arg, int32_t pid);
};

struct nrg_proctree *nrg_proctree_new(const struct nrg_context *ctx, bool whole_system,
                                      const struct nrg_proctree_events *events);
void nrg_proctree_free(struct nrg_proctree *tree);

/*
 * Adds a process and, from now on, its descendants. is_new: it was just started for the run, and
 * the CPU time that it has used so far counts. If it is a child of this process, its orphaned
 * descendants are found as well.
 */
/* A child of this process that is no part of the workload. Before the first root. */
void nrg_proctree_leave_out(struct nrg_proctree *tree, int32_t pid);
int nrg_proctree_add_root(struct nrg_proctree *tree, int32_t pid, bool is_new);

/* Descriptor to poll for connector events, negative without a connector. When it is readable, call
 * nrg_proctree_drain, which without a connector does nothing. */
int nrg_proctree_fd(const struct nrg_proctree *tree);
void nrg_proctree_drain(struct nrg_proctree *tree);

/* Reads all processes and finds new ones. */
void nrg_proctree_poll(struct nrg_proctree *tree);

struct nrg_active {
    int64_t id;
    int32_t pid;
};
/*
 * The living processes that are new or have used CPU time since the last call, for readings that
 * are expensive and made on another thread. The caller frees the array. Returns how many.
 */
size_t nrg_proctree_active(struct nrg_proctree *tree, struct nrg_active **active);

/* A process has ended but was not waited for yet: its CPU clock can be read a last time. This
 * process waits for it next, and calls nrg_proctree_waited. */
void nrg_proctree_exiting(struct nrg_proctree *tree, int32_t pid);

/*
 * This process has waited for a process of the tree. cpu_ns: rusage's exact CPU time of it and of
 * all that it waited for. Used for the short-lived remainder.
 */
void nrg_proctree_waited(struct nrg_proctree *tree, int64_t cpu_ns);

/* Reports the last values of all processes. Call it once, at the end. */
void nrg_proctree_finish(struct nrg_proctree *tree);

/* "connector" or "polling" */
const char *nrg_proctree_method(const struct nrg_proctree *tree);

#endif

/*
 * The processes of the workload: who belongs to it, and how much CPU time, memory and I/O each
 * one used. Roots are given (the child of `nrg run`, pids, or the whole system); descendants are
 * followed through double forks and setsid:
 *
 *   - by the kernel's proc connector where that is permitted: every fork, exec and exit at once,
 *     so that a process of a few ms is seen with its name and CPU time;
 *   - else by polling /proc/PID/task/TID/children. What lived and died between two polls is not
 *     seen one by one, but its CPU time is known from what its parents were told by wait(2): it
 *     is kept as one process called "(short-lived)".
 *
 * Not thread-safe: owned by the recorder's sampling thread. Samples go out through callbacks.
 */
#ifndef NRG_RECORD_PROCTREE_H
#define NRG_RECORD_PROCTREE_H

#include "base/context.h"
#include "record/format.h"

struct nrg_proctree;

struct nrg_proctree_events {
    /* A row of NRG_PROCESSES. */
    void (*sample)(void *arg, int64_t t_ns, const int64_t *values);
    /* New, changed (exec) or ended. */
    void (*process)(void *arg, const struct nrg_process_info *info);
    /* Something that the user should know; once each. */
    void (*note)(void *arg, const char *detail);
    void *arg;
    /* CPU time of a process that is not its own doing: a recorder's inside it. NULL: none. */
    int64_t (*not_theirs_ns)(void *arg, int32_t pid);
};

struct nrg_proctree *nrg_proctree_new(const struct nrg_context *ctx, bool whole_system,
                                      const struct nrg_proctree_events *events);
void nrg_proctree_free(struct nrg_proctree *tree);

/*
 * Adds a process and, from now on, its descendants. is_new: it was just made for us, and what it
 * has used so far counts. Of a child of our own, orphaned descendants are found as well.
 */
int nrg_proctree_add_root(struct nrg_proctree *tree, int32_t pid, bool is_new);

/* Descriptor to poll for connector events, -1 without. Call nrg_proctree_drain when readable. */
int nrg_proctree_fd(const struct nrg_proctree *tree);
void nrg_proctree_drain(struct nrg_proctree *tree);

/* Reads everybody; finds new ones. */
void nrg_proctree_poll(struct nrg_proctree *tree);

struct nrg_active {
    int64_t id;
    int32_t pid;
};
/*
 * Those alive that have used CPU time since the last call, or were not there yet: for what costs
 * much and is read on another thread. The caller frees. Returns how many.
 */
size_t nrg_proctree_active(struct nrg_proctree *tree, struct nrg_active **active);

/* A process has ended but was not waited for yet: its CPU clock can be read a last time. */
void nrg_proctree_exiting(struct nrg_proctree *tree, int32_t pid);

/*
 * A waited-for process of the tree ended: rusage's exact CPU time of it and all that it waited
 * for. Used for the short-lived remainder.
 */
void nrg_proctree_waited(struct nrg_proctree *tree, int32_t pid, int64_t cpu_ns);

/* Writes last values of all processes (call once, at the end). */
void nrg_proctree_finish(struct nrg_proctree *tree);

/* "connector" or "polling" */
const char *nrg_proctree_method(const struct nrg_proctree *tree);

#endif

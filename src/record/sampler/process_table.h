/*
 * The living processes of a process tree (proctree.h), by pid: what was last read of each one, and
 * the rows that are made of it. A process that has ended is reported and forgotten, so memory
 * follows the number of living ones.
 *
 * Ownership: embedded in the tree: init, release. The table owns its processes; a pointer to one is
 * good until that process ends. Errors: a negative errno, or NULL when out of memory.
 * Threads: one at a time.
 */
#ifndef NRG_RECORD_SAMPLER_PROCESS_TABLE_H
#define NRG_RECORD_SAMPLER_PROCESS_TABLE_H

#include "record/sampler/procfs.h"
#include "record/sampler/proctree.h"

struct nrg_tree_process {
    struct nrg_tree_process *next;            /* in its bucket */
    struct nrg_tree_process *older, *younger; /* in the table */
    struct nrg_process_info info;
    struct nrg_proc_stat stat;
    int64_t child_ticks_before;      /* of children waited for before it was added */
    int64_t last_row[NRG_P_COLUMNS]; /* to leave out rows without a change */
    int64_t unchanged_ns;            /* last time that a row was left out, 0: not since last_row */
    int64_t clock_ns;                /* CPU clock just before stat was read, -1: unknown */
    int64_t looked_ns;               /* info.cpu_ns at the last nrg_proctree_active, -1: never */
    int fd;                          /* its stat file, -1: not kept open */
    bool has_stat;
    bool gone; /* found to have ended and to have been waited for; about to leave the table */
};

#define NRG_PROCESS_BUCKETS 1024u

struct nrg_process_table {
    const struct nrg_context *ctx;
    struct nrg_proctree_events events;
    struct nrg_tree_process *buckets[NRG_PROCESS_BUCKETS];
    struct nrg_tree_process *oldest, *youngest;
    bool blind; /* /proc is not ours: CPU clocks and waits are all that is known */
    int64_t next_id;
    size_t n_fds, n;
    int64_t tick_ns, page_bytes;
    int64_t ended_own_ns; /* of what waits for ended processes report, the part known already */
    int64_t waited_ns;    /* CPU time reported by our own wait(2), or as if by one */
};

void nrg_process_table_init(struct nrg_process_table *table, const struct nrg_context *ctx,
                            const struct nrg_proctree_events *events);
void nrg_process_table_release(struct nrg_process_table *table);

/* NULL when it is not there. */
struct nrg_tree_process *nrg_process_table_find(const struct nrg_process_table *table, int32_t pid);
/*
 * The process after `p`, the first one for NULL; NULL after the last. Parents come before their
 * children, also before those that they adopted. Ask for the next one before ending `p`.
 */
struct nrg_tree_process *nrg_process_table_next(const struct nrg_process_table *table,
                                                const struct nrg_tree_process *p);

/* Adds a process, born at first_ns. is_new: the CPU time that it has used so far counts. */
struct nrg_tree_process *nrg_process_table_add(struct nrg_process_table *table, int32_t pid,
                                               int32_t parent_pid, bool is_new, int64_t first_ns);
/* Reads it and adds a row; of one that has ended, whether it is still there. -ENOENT, -ESRCH: it is
 * gone. */
int nrg_process_table_update(struct nrg_process_table *table, struct nrg_tree_process *p);
/* Reads the CPU clock of a process that has ended but was not waited for. Unknown pids are fine. */
void nrg_process_table_read_last(struct nrg_process_table *table, int32_t pid);
/* Reports the end of a process that nobody has waited for yet. It stays in the table until then. */
void nrg_process_table_say_ended(struct nrg_process_table *table, struct nrg_tree_process *p);
/* Reports the end and frees it. */
void nrg_process_table_end(struct nrg_process_table *table, struct nrg_tree_process *p);
/* Ends all processes that are `gone`, children before their parents. */
void nrg_process_table_end_gone(struct nrg_process_table *table);

#endif

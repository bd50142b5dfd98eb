/*
 * See process_table.h. Processes hang in buckets by pid. The first MAX_FDS keep their
 * /proc/PID/stat open: that is cheaper, and such a descriptor can never show another process that
 * got the same pid. For the others the start time shows it.
 *
 * Most processes do nothing most of the time, so that case is cheap: a process whose CPU clock
 * stands still has not run, and its stat file is not read again.
 */
#include "record/sampler/process_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sensors/channel.h"

#define MAX_FDS 128

void nrg_process_table_init(struct nrg_process_table *table, const struct nrg_context *ctx,
                            const struct nrg_proctree_events *events)
{
    *table = (struct nrg_process_table){.ctx = ctx,
                                        .events = *events,
                                        .blind = !nrg_proc_is_ours(&ctx->root),
                                        .next_id = 2, /* 1 is the short-lived remainder */
                                        .tick_ns = NRG_NS_PER_S / sysconf(_SC_CLK_TCK),
                                        .page_bytes = sysconf(_SC_PAGESIZE)};
}

static void free_process(struct nrg_tree_process *p)
{
    if (p->fd >= 0)
        close(p->fd);
    free(p);
}

void nrg_process_table_release(struct nrg_process_table *table)
{
    for (struct nrg_tree_process *p = nrg_process_table_next(table, NULL), *next; p; p = next) {
        next = nrg_process_table_next(table, p);
        free_process(p);
    }
}

static size_t bucket_of(int32_t pid)
{
    return (uint32_t)pid % NRG_PROCESS_BUCKETS;
}

struct nrg_tree_process *nrg_process_table_find(const struct nrg_process_table *table, int32_t pid)
{
    struct nrg_tree_process *p = table->buckets[bucket_of(pid)];
    while (p && p->info.pid != pid)
        p = p->next;
    return p;
}

struct nrg_tree_process *nrg_process_table_next(const struct nrg_process_table *table,
                                                const struct nrg_tree_process *p)
{
    return p ? p->younger : table->oldest;
}

/* A process without a parent here is no descendant of any that is here: it goes first. */
static void link_process(struct nrg_process_table *table, struct nrg_tree_process *p, bool first)
{
    struct nrg_tree_process **bucket = &table->buckets[bucket_of(p->info.pid)];
    p->next = *bucket;
    *bucket = p;
    p->older = first ? NULL : table->youngest;
    p->younger = first ? table->oldest : NULL;
    *(p->older ? &p->older->younger : &table->oldest) = p;
    *(p->younger ? &p->younger->older : &table->youngest) = p;
    table->n++;
}

static void unlink_process(struct nrg_process_table *table, struct nrg_tree_process *p)
{
    struct nrg_tree_process **at = &table->buckets[bucket_of(p->info.pid)];
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    *(p->older ? &p->older->younger : &table->oldest) = p->younger;
    *(p->younger ? &p->younger->older : &table->youngest) = p->older;
    table->n--;
}

static void add_process_row(struct nrg_process_table *table, struct nrg_tree_process *p,
                            int64_t t_ns)
{
    int64_t row[NRG_P_COLUMNS] = {
        [NRG_P_PROCESS] = p->info.id,
        [NRG_P_CPU_NS] = p->info.cpu_ns,
        [NRG_P_RSS_BYTES] =
            p->has_stat && !table->blind ? p->stat.rss_pages * table->page_bytes : NRG_MISSING,
        [NRG_P_THREADS] = p->has_stat && !table->blind ? p->stat.threads : NRG_MISSING,
    };
    if (!memcmp(row, p->last_row, sizeof row)) {
        p->unchanged_ns = t_ns;
        return;
    }
    /* A row for the end of the quiet time, so that readers do not spread new work over it. */
    if (p->unchanged_ns)
        table->events.sample(table->events.arg, p->unchanged_ns, p->last_row);
    p->unchanged_ns = 0;
    memcpy(p->last_row, row, sizeof row);
    table->events.sample(table->events.arg, t_ns, row);
}

/* What there is without /proc: it exists, and has the parent that it was added with. */
static int guess_stat(struct nrg_process_table *table, const struct nrg_tree_process *p,
                      struct nrg_proc_stat *stat)
{
    int64_t cpu_ns;
    *stat = (struct nrg_proc_stat){.state = 'R', .parent_pid = p->info.parent_pid, .threads = 1};
    return nrg_proc_cpu_ns(&table->ctx->root, p->info.pid, NULL, &cpu_ns);
}

static int read_stat(struct nrg_process_table *table, struct nrg_tree_process *p)
{
    struct nrg_proc_stat stat;
    char buf[1024];
    int rc;
    if (table->blind) {
        rc = guess_stat(table, p, &stat);
    } else if (p->fd >= 0) {
        ssize_t len = nrg_pread_text(p->fd, buf, sizeof buf);
        rc = len < 0 ? (int)len : len == 0 ? -ESRCH : nrg_proc_parse_stat(buf, (size_t)len, &stat);
    } else {
        rc = nrg_proc_read_stat(&table->ctx->root, p->info.pid, &stat);
        if (!rc && p->has_stat && stat.start_ticks != p->info.start_ticks)
            rc = -ESRCH;
    }
    if (rc)
        return rc;
    p->stat = stat;
    p->has_stat = true;
    return 0;
}

static int read_cpu(struct nrg_process_table *table, int32_t pid, const struct nrg_proc_stat *stat,
                    int64_t *cpu_ns)
{
    int rc = nrg_proc_cpu_ns(&table->ctx->root, pid, stat, cpu_ns);
    if (!rc && table->events.not_theirs_ns)
        *cpu_ns -= table->events.not_theirs_ns(table->events.arg, pid);
    return rc;
}

/*
 * Who is being waited for ('X') may be in its parent's sums already: it is gone. Its parent may
 * also be stopped in the middle of that and not have it yet; proctree.c's settle gives it time.
 */
static int read_presence(struct nrg_process_table *table, struct nrg_tree_process *p)
{
    int rc = read_stat(table, p);
    return !rc && p->stat.state == 'X' && nrg_proc_has_ended(&p->stat) ? -ESRCH : rc;
}

/* The clock of a process that has ended stands still: what it used after the reading before. */
static void read_final_cpu(struct nrg_process_table *table, const struct nrg_tree_process *p,
                           int64_t *cpu_ns)
{
    int64_t final_ns;
    if (nrg_proc_has_ended(&p->stat) && !read_cpu(table, p->info.pid, NULL, &final_ns))
        *cpu_ns = final_ns;
}

int nrg_process_table_update(struct nrg_process_table *table, struct nrg_tree_process *p)
{
    int64_t cpu_ns = -1, now = nrg_now_ns();
    if (p->info.ended)
        return read_presence(table, p);
    bool live = nrg_root_is_live(&table->ctx->root) && !read_cpu(table, p->info.pid, NULL, &cpu_ns);
    if (live && p->has_stat && cpu_ns == p->clock_ns) {
        p->info.last_ns = now;
        add_process_row(table, p, now);
        return 0;
    }
    /* The clock is read first: stat is then at least as new, and valid until the clock moves. */
    p->clock_ns = cpu_ns;
    int rc = read_presence(table, p);
    if (rc)
        return rc;
    if (live)
        read_final_cpu(table, p, &cpu_ns);
    else if (read_cpu(table, p->info.pid, &p->stat, &cpu_ns))
        cpu_ns = -1;
    if (cpu_ns > p->info.cpu_ns)
        p->info.cpu_ns = cpu_ns;
    int64_t rss = p->stat.rss_pages * table->page_bytes;
    if (rss > p->info.peak_rss_bytes)
        p->info.peak_rss_bytes = rss;
    p->info.last_ns = now;
    add_process_row(table, p, now);
    return 0;
}

struct nrg_tree_process *nrg_process_table_add(struct nrg_process_table *table, int32_t pid,
                                               int32_t parent_pid, bool is_new, int64_t first_ns)
{
    char path[48];
    const struct nrg_tree_process *parent = nrg_process_table_find(table, parent_pid);
    struct nrg_tree_process *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->info = (struct nrg_process_info){
        .id = table->next_id++, .pid = pid, .parent_pid = parent_pid, .uid = -1};
    p->info.first_ns = first_ns;
    p->info.last_ns = nrg_now_ns();
    p->fd = -1;
    p->clock_ns = p->looked_ns = -1;
    if (table->n_fds < MAX_FDS && !table->blind) {
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        p->fd = nrg_root_open(&table->ctx->root, path, O_RDONLY);
        table->n_fds += p->fd >= 0;
    }
    if (!read_stat(table, p)) {
        p->info.start_ticks = p->stat.start_ticks;
        p->info.parent_pid = p->stat.parent_pid;
        if (!is_new) {
            read_cpu(table, pid, &p->stat, &p->info.cpu_before_ns);
            p->info.cpu_ns = p->info.cpu_before_ns;
            p->child_ticks_before = p->stat.child_user_ticks + p->stat.child_system_ticks;
        }
    }
    /* Until it executes a program of its own, a child looks like its parent. */
    if (parent) {
        memcpy(p->info.name, parent->info.name, sizeof p->info.name);
        memcpy(p->info.command, parent->info.command, sizeof p->info.command);
    }
    if (table->blind)
        snprintf(p->info.name, sizeof p->info.name, "process %d", pid);
    else
        nrg_proc_describe(&table->ctx->root, pid, p->has_stat ? &p->stat : NULL, &p->info);
    link_process(table, p, !parent);
    table->events.process(table->events.arg, &p->info);
    /* The row at birth is where its use of CPU time starts. */
    add_process_row(table, p, p->info.first_ns);
    return p;
}

void nrg_process_table_read_last(struct nrg_process_table *table, int32_t pid)
{
    struct nrg_tree_process *p = nrg_process_table_find(table, pid);
    int64_t cpu_ns;
    if (!p || read_cpu(table, pid, NULL, &cpu_ns))
        return;
    if (cpu_ns > p->info.cpu_ns)
        p->info.cpu_ns = cpu_ns;
    p->info.last_ns = nrg_now_ns();
    add_process_row(table, p, p->info.last_ns);
}

/* Whoever waits for it is neither in the table nor this process: nobody here sees that report. */
static bool waited_for_outside(const struct nrg_process_table *table,
                               const struct nrg_tree_process *p)
{
    return p->has_stat && p->stat.parent_pid && p->stat.parent_pid != getpid() &&
           !nrg_process_table_find(table, p->stat.parent_pid);
}

/*
 * wait(2) reports the CPU time of a process's whole life, also from before it was added. Where
 * nobody sees that report, its last reading stands in for it.
 */
static void account_for_end(struct nrg_process_table *table, const struct nrg_tree_process *p)
{
    table->ended_own_ns += p->info.cpu_ns + p->child_ticks_before * table->tick_ns;
    if (waited_for_outside(table, p))
        table->waited_ns +=
            p->info.cpu_ns +
            (p->stat.child_user_ticks + p->stat.child_system_ticks) * table->tick_ns;
}

void nrg_process_table_say_ended(struct nrg_process_table *table, struct nrg_tree_process *p)
{
    if (p->info.ended)
        return;
    p->info.ended = 1;
    table->events.process(table->events.arg, &p->info);
}

void nrg_process_table_end(struct nrg_process_table *table, struct nrg_tree_process *p)
{
    nrg_process_table_say_ended(table, p);
    unlink_process(table, p);
    account_for_end(table, p);
    table->n_fds -= p->fd >= 0;
    free_process(p);
}

/* Children of a process that is gone have a new parent, which is known when they are read again. */
static void forget_gone_parents(struct nrg_process_table *table)
{
    for (struct nrg_tree_process *p = table->oldest; p; p = p->younger) {
        const struct nrg_tree_process *parent =
            p->gone ? NULL : nrg_process_table_find(table, p->stat.parent_pid);
        if (!parent || !parent->gone)
            continue;
        p->stat.parent_pid = 0;
        p->clock_ns = -1;
    }
}

void nrg_process_table_end_gone(struct nrg_process_table *table)
{
    forget_gone_parents(table);
    for (struct nrg_tree_process *p = table->youngest, *older; p; p = older) {
        older = p->older;
        if (p->gone)
            nrg_process_table_end(table, p);
    }
}

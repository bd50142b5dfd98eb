/*
 * See proctree.h. process_table.h holds the living processes; here is which processes belong to the
 * tree: roots and the children found by events or polls, and the short-lived remainder.
 *
 * A poll is cheap when nothing happens: while the kernel has assigned no new pid, no process has
 * forked, and no children are looked up.
 */
#include "record/sampler/proctree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "record/sampler/process_table.h"
#include "sensors/channel.h"
#include "sensors/machine/connector.h"

/* Polls between two scans for children when no pid was assigned: clone3 can choose one itself. */
#define SCAN_EVERY 32
/* Waited-for CPU time comes in ticks of 10 ms: less than this is rounding. */
#define SHORT_LIVED_MIN_NS (20 * NRG_NS_PER_MS)
/* A wait that is under way is over by then, on a busy machine too. */
#define SETTLE_AFTER_NS (250 * NRG_NS_PER_MS)

struct nrg_proctree {
    struct nrg_process_table table;
    int connector;
    int loadavg_fd;   /* its last field is the newest pid; -1: not available */
    int64_t last_pid; /* read from there */
    unsigned polls_since_scan, polls_same_pid;
    bool whole_system, poll_children, lost;
    bool own_children;    /* a root is our own child: its orphans become ours */
    int32_t left_out;     /* a child of ours that is no part of it; 0: none */
    bool waiting;         /* our wait for a child is under way */
    bool waiting_foreign; /* that child is not of the workload */
    int64_t root_ticks;   /* start time of that root: older children of ours are foreign */
    uint32_t generation;  /* scans of the whole system */
    int64_t polled_ns;    /* of the previous poll; before the first, when the first root came */
    struct nrg_process_info short_lived;
    int64_t unreported_ns; /* of ended processes whose end was reported to nobody: see settle */
    int64_t lacking_ns, lacking_since_ns; /* the least that was lacking since then; 0: nothing is */
};

static struct nrg_tree_process *find_process(const struct nrg_proctree *tree, int32_t pid)
{
    return nrg_process_table_find(&tree->table, pid);
}

/*
 * A process that a poll finds was born after the previous poll and after its parent. The CPU time
 * that it has used belongs to all of that time: it can't have been used in this instant.
 */
static int64_t birth_ns(const struct nrg_proctree *tree, const struct nrg_tree_process *parent,
                        int64_t now_ns)
{
    bool polled = tree->connector < 0 && (parent || tree->whole_system);
    if (!polled || !tree->polled_ns)
        return now_ns;
    return parent && parent->info.first_ns > tree->polled_ns ? parent->info.first_ns
                                                             : tree->polled_ns;
}

static struct nrg_tree_process *add_process(struct nrg_proctree *tree, int32_t pid,
                                            int32_t parent_pid, bool is_new)
{
    int64_t now_ns = nrg_now_ns();
    const struct nrg_tree_process *parent = find_process(tree, parent_pid);
    return nrg_process_table_add(&tree->table, pid, parent_pid, is_new,
                                 is_new ? birth_ns(tree, parent, now_ns) : now_ns);
}

static void on_forked(void *arg, int64_t t_ns, int32_t parent_pid, int32_t child_pid)
{
    struct nrg_proctree *tree = arg;
    struct nrg_tree_process *stale = find_process(tree, child_pid);
    if (!tree->whole_system && !find_process(tree, parent_pid))
        return;
    if (stale && t_ns <= stale->info.first_ns) /* found as a child before its event came */
        return;
    if (stale) /* the pid is used again: the event of the old one's end was lost */
        nrg_process_table_end(&tree->table, stale);
    add_process(tree, child_pid, parent_pid, true);
}

static void on_executed(void *arg, int32_t pid)
{
    struct nrg_proctree *tree = arg;
    struct nrg_tree_process *p = find_process(tree, pid);
    if (!p)
        return;
    nrg_proc_describe(&tree->table.ctx->root, pid, NULL, &p->info);
    tree->table.events.process(tree->table.events.arg, &p->info);
}

static void on_exited(void *arg, int32_t pid)
{
    struct nrg_proctree *tree = arg;
    nrg_process_table_read_last(&tree->table, pid);
}

static void on_lost(void *arg)
{
    struct nrg_proctree *tree = arg;
    tree->lost = true;
}

static void note_polling(const struct nrg_proctree *tree)
{
    char text[192];
    if (tree->table.blind) {
        tree->table.events.note(tree->table.events.arg,
                                "/proc is another pid namespace's (unshare --mount-proc gives one "
                                "of its own): descendants are counted together, when they end");
        return;
    }
    snprintf(text, sizeof text,
             "processes are found by polling (%s): those that live shorter than a poll are counted "
             "%s",
             tree->connector == -EXDEV ? "pid namespace or captured root"
                                       : "no permission for the proc connector",
             tree->whole_system ? "with the other processes of this machine" : "together");
    tree->table.events.note(tree->table.events.arg, text);
}

struct nrg_proctree *nrg_proctree_new(const struct nrg_context *ctx, bool whole_system,
                                      const struct nrg_proctree_events *events)
{
    struct nrg_proctree *tree = calloc(1, sizeof *tree);
    if (!tree)
        return NULL;
    nrg_process_table_init(&tree->table, ctx, events);
    tree->whole_system = whole_system;
    tree->connector = nrg_connector_open(&ctx->root);
    tree->poll_children = tree->connector < 0;
    tree->loadavg_fd = tree->poll_children && !whole_system && nrg_root_is_live(&ctx->root)
                           ? nrg_root_open(&ctx->root, "/proc/loadavg", O_RDONLY)
                           : -1;
    tree->short_lived = (struct nrg_process_info){.id = 1,
                                                  .pid = -1,
                                                  .uid = -1,
                                                  .name = "(short-lived)",
                                                  .command = "(ended before their CPU time "
                                                             "could be read)"};
    if (tree->poll_children)
        note_polling(tree);
    return tree;
}

void nrg_proctree_free(struct nrg_proctree *tree)
{
    if (!tree)
        return;
    nrg_process_table_release(&tree->table);
    if (tree->connector >= 0)
        close(tree->connector);
    if (tree->loadavg_fd >= 0)
        close(tree->loadavg_fd);
    free(tree);
}

static void on_child(int32_t pid, void *arg);

struct adoption {
    struct nrg_proctree *tree;
    int32_t parent_pid;
    bool is_new;
};

/* Adds the children of p that are not in the table yet, and theirs. */
static void adopt_children(struct nrg_proctree *tree, struct nrg_tree_process *p, bool is_new)
{
    struct adoption adoption = {tree, p->info.pid, is_new};
    if (tree->table.blind)
        return;
    nrg_proc_children(&tree->table.ctx->root, p->info.pid, p->has_stat ? p->stat.threads : 1,
                      on_child, &adoption);
}

/* A child that this process had before it became nrg (sh -c 'server & exec nrg run ...'). */
static bool is_foreign(const struct nrg_proctree *tree, const struct nrg_proc_stat *stat)
{
    return stat->parent_pid == getpid() && stat->start_ticks < tree->root_ticks;
}

/*
 * True for a process that must not be added: a foreign one, or one that has ended. If it was in the
 * table, its end has been reported; if it was not, its parent's wait will report it. Added, it
 * would count twice.
 */
static bool must_stay_out(const struct nrg_proctree *tree, int32_t pid)
{
    struct nrg_proc_stat stat;
    return !nrg_proc_read_stat(&tree->table.ctx->root, pid, &stat) &&
           (nrg_proc_has_ended(&stat) || is_foreign(tree, &stat));
}

static void on_child(int32_t pid, void *arg)
{
    const struct adoption *adoption = arg;
    if (find_process(adoption->tree, pid) || pid == getpid() || pid == adoption->tree->left_out ||
        must_stay_out(adoption->tree, pid))
        return;
    struct nrg_tree_process *p =
        add_process(adoption->tree, pid, adoption->parent_pid, adoption->is_new);
    if (p)
        adopt_children(adoption->tree, p, adoption->is_new);
}

/* A new process was started by this one. */
static int read_root(const struct nrg_proctree *tree, int32_t pid, bool is_new,
                     struct nrg_proc_stat *stat)
{
    int64_t cpu_ns;
    if (!tree->table.blind)
        return nrg_proc_read_stat(&tree->table.ctx->root, pid, stat);
    *stat = (struct nrg_proc_stat){.parent_pid = is_new ? getpid() : 0};
    return nrg_proc_cpu_ns(&tree->table.ctx->root, pid, NULL, &cpu_ns);
}

void nrg_proctree_leave_out(struct nrg_proctree *tree, int32_t pid)
{
    tree->left_out = pid;
}

int nrg_proctree_add_root(struct nrg_proctree *tree, int32_t pid, bool is_new)
{
    struct nrg_proc_stat stat;
    if (find_process(tree, pid))
        return 0;
    int rc = read_root(tree, pid, is_new, &stat);
    if (rc)
        return rc;
    struct nrg_tree_process *p = add_process(tree, pid, stat.parent_pid, is_new);
    if (!p)
        return -ENOMEM;
    if (tree->loadavg_fd >= 0) /* adopt_children is a scan, too */
        tree->last_pid = nrg_proc_last_pid(tree->loadavg_fd);
    if (!tree->polled_ns)
        tree->polled_ns = p->info.first_ns;
    if (stat.parent_pid == getpid() && !tree->own_children) {
        tree->own_children = true;
        tree->root_ticks = stat.start_ticks;
    }
    adopt_children(tree, p, is_new);
    return 0;
}

int nrg_proctree_fd(const struct nrg_proctree *tree)
{
    return tree->connector;
}

void nrg_proctree_drain(struct nrg_proctree *tree)
{
    const struct nrg_connector_events events = {on_forked, on_executed, on_exited, on_lost, tree};
    if (tree->connector >= 0)
        nrg_connector_drain(tree->connector, &events);
}

static void scan_system(struct nrg_proctree *tree)
{
    struct nrg_names names;
    if (nrg_root_list(&tree->table.ctx->root, "/proc", &names))
        return;
    for (size_t i = 0; i < names.n; i++) {
        int64_t pid;
        if (nrg_parse_i64(names.items[i], strlen(names.items[i]), &pid) || pid < 1 ||
            pid > INT32_MAX || find_process(tree, (int32_t)pid) ||
            must_stay_out(tree, (int32_t)pid))
            continue;
        add_process(tree, (int32_t)pid, 0, tree->generation > 1);
    }
    nrg_names_release(&names);
}

static int64_t waited_by_living_ns(const struct nrg_proctree *tree)
{
    int64_t ticks = 0;
    const struct nrg_process_table *table = &tree->table;
    for (const struct nrg_tree_process *p = NULL; (p = nrg_process_table_next(table, p));)
        if (p->has_stat)
            ticks += p->stat.child_user_ticks + p->stat.child_system_ticks - p->child_ticks_before;
    return ticks * table->tick_ns;
}

/* CPU time that wait(2) reported to living processes for children never seen: see proctree.h. */
static int64_t short_lived_ns(const struct nrg_proctree *tree)
{
    return waited_by_living_ns(tree) + tree->table.waited_ns + tree->unreported_ns -
           tree->table.ended_own_ns;
}

/*
 * Call it when every process was read after the last end was noticed. Then the ends have been
 * reported, and what is still lacking for long was reported to nobody (a parent that ignores
 * SIGCHLD): it must not hide the short-lived ones to come. Not at once, because a busy machine may
 * stop a parent in the middle of its wait, when the child is gone and not in its sums yet. The
 * kernel shows each parent's two sums in whole ticks.
 */
static void settle(struct nrg_proctree *tree)
{
    int64_t now_ns = nrg_now_ns(), lacking_ns = tree->short_lived.cpu_ns - short_lived_ns(tree);
    if (tree->waiting || lacking_ns <= 2 * tree->table.tick_ns * (int64_t)tree->table.n) {
        tree->lacking_since_ns = 0;
        return;
    }
    if (!tree->lacking_since_ns || lacking_ns < tree->lacking_ns)
        tree->lacking_ns = lacking_ns;
    if (!tree->lacking_since_ns)
        tree->lacking_since_ns = now_ns;
    if (now_ns - tree->lacking_since_ns < SETTLE_AFTER_NS)
        return;
    tree->unreported_ns += tree->lacking_ns;
    tree->lacking_since_ns = 0;
}

static void report_short_lived(struct nrg_proctree *tree, bool last)
{
    struct nrg_process_info *s = &tree->short_lived;
    int64_t cpu_ns = short_lived_ns(tree);
    if (tree->whole_system)
        return;
    if (cpu_ns < (last ? NRG_NS_PER_MS : SHORT_LIVED_MIN_NS) || cpu_ns <= s->cpu_ns)
        return;
    int64_t now = nrg_now_ns();
    /* They used it since the previous poll: neither in an instant nor in a quiet time before. */
    int64_t since[NRG_P_COLUMNS] = {1, s->cpu_ns, NRG_MISSING, NRG_MISSING};
    if (!s->first_ns)
        s->first_ns = tree->polled_ns;
    if (tree->polled_ns > s->last_ns)
        tree->table.events.sample(tree->table.events.arg, tree->polled_ns, since);
    s->cpu_ns = cpu_ns;
    s->last_ns = now;
    int64_t row[NRG_P_COLUMNS] = {1, cpu_ns, NRG_MISSING, NRG_MISSING};
    tree->table.events.sample(tree->table.events.arg, now, row);
    tree->table.events.process(tree->table.events.arg, s);
}

/* A child of our own that has ended: our wait will report exactly what its subtree used. */
static bool awaits_us(const struct nrg_proctree *tree, const struct nrg_tree_process *p)
{
    return tree->own_children && p->has_stat && nrg_proc_has_ended(&p->stat) &&
           p->stat.parent_pid == getpid();
}

/*
 * Reads every process, and ends those that are gone. A child is read after its parent: when the
 * parent's sums have it already, it is seen to be gone, and never counts twice. True when none was
 * gone.
 */
static bool update_all(struct nrg_proctree *tree)
{
    bool none_gone = true;
    struct nrg_process_table *table = &tree->table;
    for (struct nrg_tree_process *p = NULL; (p = nrg_process_table_next(table, p));) {
        int rc = nrg_process_table_update(table, p);
        p->gone = rc == -ENOENT || rc == -ESRCH;
        none_gone &= !p->gone;
        if (!rc && nrg_proc_has_ended(&p->stat) && !awaits_us(tree, p))
            nrg_process_table_say_ended(table, p);
    }
    if (!none_gone)
        nrg_process_table_end_gone(table);
    return none_gone;
}

/* Once more after an end: whoever waited for it has been read before. */
static void update_and_settle(struct nrg_proctree *tree)
{
    if (update_all(tree) || update_all(tree))
        settle(tree);
}

static bool any_awaits_us(const struct nrg_proctree *tree)
{
    const struct nrg_tree_process *p = NULL;
    while ((p = nrg_process_table_next(&tree->table, p)) && !awaits_us(tree, p))
        ;
    return p != NULL;
}

/*
 * False when no process can have forked since the last scan. The kernel assigns a pid a moment
 * before the child is in its parent's list, so one more scan follows the last change.
 */
static bool may_have_forked(struct nrg_proctree *tree)
{
    int64_t pid = tree->loadavg_fd < 0 ? -1 : nrg_proc_last_pid(tree->loadavg_fd);
    tree->polls_same_pid = pid >= 0 && pid == tree->last_pid ? tree->polls_same_pid + 1 : 0;
    tree->last_pid = pid;
    if (tree->polls_same_pid > 1 && ++tree->polls_since_scan < SCAN_EVERY)
        return false;
    tree->polls_since_scan = 0;
    return true;
}

static void find_new_processes(struct nrg_proctree *tree)
{
    bool first = tree->whole_system && tree->generation == 0, lost = tree->lost;
    if (tree->table.blind)
        return;
    if (!tree->poll_children && !lost && !first)
        return;
    tree->lost = false;
    if (tree->whole_system) {
        tree->generation++;
        scan_system(tree);
        return;
    }
    if (!lost && !may_have_forked(tree))
        return;
    for (struct nrg_tree_process *p = NULL; (p = nrg_process_table_next(&tree->table, p));)
        adopt_children(tree, p, true);
    if (tree->own_children) {
        struct adoption orphans = {tree, getpid(), true};
        nrg_proc_children(&tree->table.ctx->root, getpid(), 2, on_child, &orphans);
    }
}

void nrg_proctree_poll(struct nrg_proctree *tree)
{
    nrg_proctree_drain(tree);
    int64_t now_ns = nrg_now_ns();
    update_and_settle(tree);
    find_new_processes(tree);
    if (tree->table
            .blind) /* descendants are known when they are waited for, for all the time before */
        return;
    if (any_awaits_us(tree)) /* the wait that follows reports more, for the same time */
        return;
    report_short_lived(tree, false);
    tree->polled_ns = now_ns;
}

size_t nrg_proctree_active(struct nrg_proctree *tree, struct nrg_active **active)
{
    size_t n = 0;
    struct nrg_tree_process *p = NULL;
    *active = calloc(tree->table.n + 1, sizeof **active);
    while (*active && !tree->table.blind && (p = nrg_process_table_next(&tree->table, p))) {
        if (p->info.cpu_ns == p->looked_ns)
            continue;
        p->looked_ns = p->info.cpu_ns;
        (*active)[n++] = (struct nrg_active){p->info.id, p->info.pid};
    }
    return n;
}

void nrg_proctree_exiting(struct nrg_proctree *tree, int32_t pid)
{
    struct nrg_proc_stat stat;
    struct nrg_tree_process *p = find_process(tree, pid);
    tree->waiting = true;
    tree->waiting_foreign = !tree->table.blind &&
                            !nrg_proc_read_stat(&tree->table.ctx->root, pid, &stat) &&
                            is_foreign(tree, &stat);
    if (p && p->has_stat)
        p->stat.parent_pid = getpid();
    on_exited(tree, pid);
}

void nrg_proctree_waited(struct nrg_proctree *tree, int64_t cpu_ns)
{
    tree->waiting = false;
    if (tree->waiting_foreign)
        return;
    update_all(tree); /* it and those that it waited for are gone */
    tree->table.waited_ns += cpu_ns;
    report_short_lived(tree, true);
    if (tree->table.blind)
        tree->polled_ns = nrg_now_ns();
}

void nrg_proctree_finish(struct nrg_proctree *tree)
{
    nrg_proctree_drain(tree);
    update_and_settle(tree);
    report_short_lived(tree, true);
    for (struct nrg_tree_process *p = NULL; (p = nrg_process_table_next(&tree->table, p));)
        tree->table.events.process(tree->table.events.arg, &p->info);
}

const char *nrg_proctree_method(const struct nrg_proctree *tree)
{
    return tree->connector >= 0 ? "connector" : "polling";
}

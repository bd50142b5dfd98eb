/*
 * See proctree.h. Living processes hang in buckets by pid; one that has ended is told and
 * forgotten, so memory follows the number of living ones. The first MAX_FDS keep their
 * /proc/PID/stat open: that is cheaper, and such a descriptor can never show another process
 * that got the same pid; for the rest the start time tells.
 *
 * Polling is made cheap for those who do nothing, which most processes do most of the time. A
 * process whose CPU clock stands still has not run, so its stat file is not read again. While the
 * kernel has given out no new pid nobody has forked, so nobody's children are looked up.
 */
#include "record/sampler/proctree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "record/sampler/procfs.h"
#include "sensors/channel.h"
#include "sensors/machine/connector.h"

#define BUCKETS 1024u
#define MAX_FDS 128
/* Children are looked up this often (in polls) even if no pid was given out: clone3 can pick one.
 */
#define SCAN_EVERY 32
/* Waited-for CPU time comes in ticks of 10 ms: less than this is rounding. */
#define SHORT_LIVED_MIN_NS (20 * NRG_NS_PER_MS)

struct proc {
    struct proc *next;
    struct nrg_process_info info;
    struct nrg_proc_stat stat;
    int64_t child_ticks_before;  /* waited for before we came */
    int64_t told[NRG_P_COLUMNS]; /* last row, to leave out what did not change */
    int64_t unchanged_ns;        /* last time that it was left out, 0: not since the last row */
    int64_t clock_ns;            /* CPU clock just before stat was read, -1: unknown */
    int64_t looked_ns;           /* info.cpu_ns at the last nrg_proctree_active, -1: never */
    int fd;
    bool has_stat;
    uint32_t seen; /* system mode: generation of the last scan */
};

struct nrg_proctree {
    const struct nrg_context *ctx;
    struct nrg_proctree_events events;
    struct proc *buckets[BUCKETS];
    int64_t next_id;
    size_t n_fds, n_living;
    int connector;
    int loadavg_fd;   /* ends in the pid given out last; -1: not here */
    int64_t last_pid; /* as it said */
    unsigned polls_since_scan, polls_same_pid;
    bool whole_system, poll_children, lost;
    bool own_children;    /* a root is our own child: its orphans become ours */
    bool waiting_foreign; /* the child that is about to be waited for is not of the workload */
    int64_t root_ticks;   /* start time of that root: whatever child of ours is older is foreign */
    uint32_t generation;
    int64_t tick_ns, page_bytes;
    int64_t ended_own_ns; /* what a wait for the ended processes tells that we know already */
    int64_t waited_ns;    /* CPU time that our own wait(2) told */
    int64_t polled_ns;    /* the poll before this one, the first root's coming before all */
    struct nrg_process_info short_lived;
};

static struct proc **bucket_of(struct nrg_proctree *tree, int32_t pid)
{
    return &tree->buckets[(uint32_t)pid % BUCKETS];
}

static struct proc *find(struct nrg_proctree *tree, int32_t pid)
{
    struct proc *p = *bucket_of(tree, pid);
    while (p && p->info.pid != pid)
        p = p->next;
    return p;
}

static void tell(struct nrg_proctree *tree, struct proc *p, int64_t t_ns)
{
    int64_t row[NRG_P_COLUMNS] = {
        [NRG_P_PROCESS] = p->info.id,
        [NRG_P_CPU_NS] = p->info.cpu_ns,
        [NRG_P_RSS_BYTES] = p->has_stat ? p->stat.rss_pages * tree->page_bytes : NRG_MISSING,
        [NRG_P_THREADS] = p->has_stat ? p->stat.threads : NRG_MISSING,
    };
    if (!memcmp(row, p->told, sizeof row)) {
        p->unchanged_ns = t_ns;
        return;
    }
    /* Close the quiet stretch, so that a reader does not spread new work over it. */
    if (p->unchanged_ns)
        tree->events.sample(tree->events.arg, p->unchanged_ns, p->told);
    p->unchanged_ns = 0;
    memcpy(p->told, row, sizeof row);
    tree->events.sample(tree->events.arg, t_ns, row);
}

static int read_stat(struct nrg_proctree *tree, struct proc *p)
{
    struct nrg_proc_stat stat;
    char buf[1024];
    int rc;
    if (p->fd >= 0) {
        ssize_t len = nrg_pread_text(p->fd, buf, sizeof buf);
        rc = len < 0 ? (int)len : len == 0 ? -ESRCH : nrg_proc_parse_stat(buf, (size_t)len, &stat);
    } else {
        rc = nrg_proc_read_stat(&tree->ctx->root, p->info.pid, &stat);
        if (!rc && p->has_stat && stat.start_ticks != p->info.start_ticks)
            rc = -ESRCH;
    }
    if (rc)
        return rc;
    p->stat = stat;
    p->has_stat = true;
    return 0;
}

static int read_cpu(struct nrg_proctree *tree, int32_t pid, const struct nrg_proc_stat *stat,
                    int64_t *cpu_ns)
{
    int rc = nrg_proc_cpu_ns(&tree->ctx->root, pid, stat, cpu_ns);
    if (!rc && tree->events.not_theirs_ns)
        *cpu_ns -= tree->events.not_theirs_ns(tree->events.arg, pid);
    return rc;
}

static int update(struct nrg_proctree *tree, struct proc *p)
{
    int64_t cpu_ns = -1, now = nrg_now_ns();
    bool live = nrg_root_is_live(&tree->ctx->root) && !read_cpu(tree, p->info.pid, NULL, &cpu_ns);
    if (live && p->has_stat && cpu_ns == p->clock_ns) {
        p->info.last_ns = now;
        tell(tree, p, now);
        return 0;
    }
    /* The clock comes first: then stat is at least as new, and valid as long as it stands. */
    p->clock_ns = cpu_ns;
    int rc = read_stat(tree, p);
    if (rc)
        return rc;
    if (!live && read_cpu(tree, p->info.pid, &p->stat, &cpu_ns))
        cpu_ns = -1;
    if (cpu_ns > p->info.cpu_ns)
        p->info.cpu_ns = cpu_ns;
    int64_t rss = p->stat.rss_pages * tree->page_bytes;
    if (rss > p->info.peak_rss_bytes)
        p->info.peak_rss_bytes = rss;
    p->info.last_ns = now;
    tell(tree, p, now);
    return 0;
}

/*
 * One that a poll found was born after the poll before, and after its parent. What it used until
 * now belongs to all of that time: in this instant no machine could have done it.
 */
static int64_t birth_ns(const struct nrg_proctree *tree, const struct proc *parent, int64_t now_ns)
{
    bool polled = tree->connector < 0 && (parent || tree->whole_system);
    if (!polled || !tree->polled_ns)
        return now_ns;
    return parent && parent->info.first_ns > tree->polled_ns ? parent->info.first_ns
                                                             : tree->polled_ns;
}

static struct proc *add(struct nrg_proctree *tree, int32_t pid, int32_t parent_pid, bool is_new)
{
    char path[48];
    const struct proc *parent = find(tree, parent_pid);
    struct proc *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->info = (struct nrg_process_info){
        .id = tree->next_id++, .pid = pid, .parent_pid = parent_pid, .uid = -1};
    p->info.last_ns = nrg_now_ns();
    p->info.first_ns = is_new ? birth_ns(tree, parent, p->info.last_ns) : p->info.last_ns;
    p->fd = -1;
    p->clock_ns = p->looked_ns = -1;
    p->seen = tree->generation;
    if (tree->n_fds < MAX_FDS) {
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        p->fd = nrg_root_open(&tree->ctx->root, path, O_RDONLY);
        tree->n_fds += p->fd >= 0;
    }
    if (!read_stat(tree, p)) {
        p->info.start_ticks = p->stat.start_ticks;
        p->info.parent_pid = p->stat.parent_pid;
        if (!is_new) {
            read_cpu(tree, pid, &p->stat, &p->info.cpu_before_ns);
            p->info.cpu_ns = p->info.cpu_before_ns;
            p->child_ticks_before = p->stat.child_user_ticks + p->stat.child_system_ticks;
        }
    }
    /* Until it executes something of its own, a child is what its parent is. */
    if (parent) {
        memcpy(p->info.name, parent->info.name, sizeof p->info.name);
        memcpy(p->info.command, parent->info.command, sizeof p->info.command);
    }
    nrg_proc_describe(&tree->ctx->root, pid, p->has_stat ? &p->stat : NULL, &p->info);
    struct proc **bucket = bucket_of(tree, pid);
    p->next = *bucket;
    *bucket = p;
    tree->n_living++;
    tree->events.process(tree->events.arg, &p->info);
    /* The row at birth anchors the process in time: what it uses from here on is the workload's. */
    tell(tree, p, p->info.first_ns);
    return p;
}

/*
 * Whoever waits for a process is told all of its life, also what was before we came. When that
 * is nobody of the tree, nor ourselves, we take what would have been told from its last reading.
 */
static void account_for_end(struct nrg_proctree *tree, const struct proc *p)
{
    tree->ended_own_ns += p->info.cpu_ns + p->child_ticks_before * tree->tick_ns;
    if (p->has_stat && p->stat.parent_pid != getpid() && !find(tree, p->stat.parent_pid))
        tree->waited_ns += p->info.cpu_ns +
                           (p->stat.child_user_ticks + p->stat.child_system_ticks) * tree->tick_ns;
}

/* Unlinks *at, tells the end, frees it. */
static void end_process(struct nrg_proctree *tree, struct proc **at)
{
    struct proc *p = *at;
    *at = p->next;
    p->info.ended = 1;
    account_for_end(tree, p);
    tree->events.process(tree->events.arg, &p->info);
    if (p->fd >= 0) {
        close(p->fd);
        tree->n_fds--;
    }
    tree->n_living--;
    free(p);
}

static void on_forked(void *arg, int64_t t_ns, int32_t parent_pid, int32_t child_pid)
{
    struct nrg_proctree *tree = arg;
    struct proc *stale = find(tree, child_pid);
    if (!tree->whole_system && !find(tree, parent_pid))
        return;
    if (stale && t_ns <= stale->info.first_ns) /* found as a child before its event came */
        return;
    if (stale) { /* the pid was used again: the old one's end was lost */
        struct proc **at = bucket_of(tree, child_pid);
        while (*at != stale)
            at = &(*at)->next;
        end_process(tree, at);
    }
    add(tree, child_pid, parent_pid, true);
}

static void on_executed(void *arg, int32_t pid)
{
    struct nrg_proctree *tree = arg;
    struct proc *p = find(tree, pid);
    if (!p)
        return;
    nrg_proc_describe(&tree->ctx->root, pid, NULL, &p->info);
    tree->events.process(tree->events.arg, &p->info);
}

/* The process still answers while its parent has not waited for it: take its last word. */
static void on_exited(void *arg, int32_t pid)
{
    struct nrg_proctree *tree = arg;
    struct proc *p = find(tree, pid);
    int64_t cpu_ns;
    if (!p || read_cpu(tree, pid, NULL, &cpu_ns))
        return;
    if (cpu_ns > p->info.cpu_ns)
        p->info.cpu_ns = cpu_ns;
    p->info.last_ns = nrg_now_ns();
    tell(tree, p, p->info.last_ns);
}

static void on_lost(void *arg)
{
    struct nrg_proctree *tree = arg;
    tree->lost = true;
}

static void note_polling(const struct nrg_proctree *tree)
{
    char text[192];
    snprintf(text, sizeof text,
             "processes are found by polling (%s): those that live shorter than a poll are counted "
             "%s",
             tree->connector == -EXDEV ? "pid namespace or captured root"
                                       : "no permission for the proc connector",
             tree->whole_system ? "with the other processes of this machine" : "together");
    tree->events.note(tree->events.arg, text);
}

struct nrg_proctree *nrg_proctree_new(const struct nrg_context *ctx, bool whole_system,
                                      const struct nrg_proctree_events *events)
{
    struct nrg_proctree *tree = calloc(1, sizeof *tree);
    if (!tree)
        return NULL;
    tree->ctx = ctx;
    tree->events = *events;
    tree->whole_system = whole_system;
    tree->next_id = 2; /* 1 is the short-lived remainder */
    tree->tick_ns = NRG_NS_PER_S / sysconf(_SC_CLK_TCK);
    tree->page_bytes = sysconf(_SC_PAGESIZE);
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
    for (size_t b = 0; b < BUCKETS; b++) {
        for (struct proc *p = tree->buckets[b], *next; p; p = next) {
            next = p->next;
            if (p->fd >= 0)
                close(p->fd);
            free(p);
        }
    }
    if (tree->connector >= 0)
        close(tree->connector);
    if (tree->loadavg_fd >= 0)
        close(tree->loadavg_fd);
    free(tree);
}

static void found_child(int32_t pid, void *arg);

struct adoption {
    struct nrg_proctree *tree;
    int32_t parent_pid;
    bool is_new;
};

/* Adds the children of p that are not known yet, and theirs. */
static void adopt(struct nrg_proctree *tree, struct proc *p, bool is_new)
{
    struct adoption adoption = {tree, p->info.pid, is_new};
    nrg_proc_children(&tree->ctx->root, p->info.pid, p->has_stat ? p->stat.threads : 1, found_child,
                      &adoption);
}

/* Ended, and nobody has waited for it yet; a first thread may end long before the others. */
static bool is_zombie(const struct nrg_proc_stat *stat)
{
    return stat->state == 'Z' && stat->threads <= 1;
}

/* Children that we had before we became nrg (sh -c 'server & exec nrg run ...'). */
static bool is_foreign(const struct nrg_proctree *tree, const struct nrg_proc_stat *stat)
{
    return stat->parent_pid == getpid() && stat->start_ticks < tree->root_ticks;
}

/*
 * True for who must not be taken in: who is foreign, or has ended. The end of a known one has been
 * told already, and one that nobody knew is in what its parent's wait will tell: taken in, both
 * would count twice.
 */
static bool is_unwanted(const struct nrg_proctree *tree, int32_t pid)
{
    struct nrg_proc_stat stat;
    return !nrg_proc_read_stat(&tree->ctx->root, pid, &stat) &&
           (is_zombie(&stat) || is_foreign(tree, &stat));
}

static void found_child(int32_t pid, void *arg)
{
    const struct adoption *adoption = arg;
    if (find(adoption->tree, pid) || pid == getpid() || is_unwanted(adoption->tree, pid))
        return;
    struct proc *p = add(adoption->tree, pid, adoption->parent_pid, adoption->is_new);
    if (p)
        adopt(adoption->tree, p, adoption->is_new);
}

int nrg_proctree_add_root(struct nrg_proctree *tree, int32_t pid, bool is_new)
{
    struct nrg_proc_stat stat;
    if (find(tree, pid))
        return 0;
    int rc = nrg_proc_read_stat(&tree->ctx->root, pid, &stat);
    if (rc)
        return rc;
    struct proc *p = add(tree, pid, stat.parent_pid, is_new);
    if (!p)
        return -ENOMEM;
    if (tree->loadavg_fd >= 0) /* adopt is a scan too */
        tree->last_pid = nrg_proc_last_pid(tree->loadavg_fd);
    if (!tree->polled_ns)
        tree->polled_ns = p->info.first_ns;
    if (stat.parent_pid == getpid() && !tree->own_children) {
        tree->own_children = true;
        tree->root_ticks = stat.start_ticks;
    }
    adopt(tree, p, is_new);
    return 0;
}

int nrg_proctree_fd(const struct nrg_proctree *tree)
{
    return tree->connector;
}

void nrg_proctree_drain(struct nrg_proctree *tree)
{
    const struct nrg_connector_events events = {on_forked, on_executed, on_exited, on_lost, tree};
    nrg_connector_drain(tree->connector, &events);
}

static void scan_system(struct nrg_proctree *tree)
{
    struct nrg_names names;
    if (nrg_root_list(&tree->ctx->root, "/proc", &names))
        return;
    for (size_t i = 0; i < names.n; i++) {
        int64_t pid;
        if (nrg_parse_i64(names.items[i], strlen(names.items[i]), &pid) || pid < 1 ||
            pid > INT32_MAX || find(tree, (int32_t)pid) || is_unwanted(tree, (int32_t)pid))
            continue;
        add(tree, (int32_t)pid, 0, tree->generation > 1);
    }
    nrg_names_release(&names);
}

static int64_t waited_by_living_ns(const struct nrg_proctree *tree)
{
    int64_t ticks = 0;
    for (size_t b = 0; b < BUCKETS; b++)
        for (const struct proc *p = tree->buckets[b]; p; p = p->next)
            if (p->has_stat)
                ticks +=
                    p->stat.child_user_ticks + p->stat.child_system_ticks - p->child_ticks_before;
    return ticks * tree->tick_ns;
}

/* What the living were told by wait(2) of children that we never saw; see proctree.h. */
static void tell_short_lived(struct nrg_proctree *tree, bool last)
{
    struct nrg_process_info *s = &tree->short_lived;
    int64_t cpu_ns = waited_by_living_ns(tree) + tree->waited_ns - tree->ended_own_ns;
    if (tree->whole_system)
        return;
    if (cpu_ns < (last ? NRG_NS_PER_MS : SHORT_LIVED_MIN_NS) || cpu_ns <= s->cpu_ns)
        return;
    int64_t now = nrg_now_ns();
    /* They used it since the poll before, not in an instant and not while all was quiet. */
    int64_t since[NRG_P_COLUMNS] = {1, s->cpu_ns, NRG_MISSING, NRG_MISSING};
    if (!s->first_ns)
        s->first_ns = tree->polled_ns;
    if (tree->polled_ns > s->last_ns)
        tree->events.sample(tree->events.arg, tree->polled_ns, since);
    s->cpu_ns = cpu_ns;
    s->last_ns = now;
    int64_t row[NRG_P_COLUMNS] = {1, cpu_ns, NRG_MISSING, NRG_MISSING};
    tree->events.sample(tree->events.arg, now, row);
    tree->events.process(tree->events.arg, s);
}

/* True when one of our own has ended and our wait will tell exactly what it and its own used. */
static bool update_all(struct nrg_proctree *tree)
{
    bool own_zombie = false;
    for (size_t b = 0; b < BUCKETS; b++) {
        for (struct proc **at = &tree->buckets[b]; *at;) {
            struct proc *p = *at;
            int rc = update(tree, p);
            bool zombie = !rc && is_zombie(&p->stat);
            bool own = zombie && tree->own_children && p->stat.parent_pid == getpid();
            own_zombie |= own;
            if (rc == -ENOENT || rc == -ESRCH || (zombie && !own))
                end_process(tree, at);
            else
                at = &p->next;
        }
    }
    return own_zombie;
}

/*
 * False when nobody can have forked since the last scan. A pid is given out a moment before the
 * child stands in its parent's list, so one more scan follows the last change.
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

static void find_new(struct nrg_proctree *tree)
{
    bool first = tree->whole_system && tree->generation == 0, lost = tree->lost;
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
    for (size_t b = 0; b < BUCKETS; b++)
        for (struct proc *p = tree->buckets[b]; p; p = p->next)
            adopt(tree, p, true);
    if (tree->own_children) {
        struct adoption orphans = {tree, getpid(), true};
        nrg_proc_children(&tree->ctx->root, getpid(), 2, found_child, &orphans);
    }
}

void nrg_proctree_poll(struct nrg_proctree *tree)
{
    if (tree->connector >= 0)
        nrg_proctree_drain(tree);
    int64_t now_ns = nrg_now_ns();
    bool own_zombie = update_all(tree);
    find_new(tree);
    if (own_zombie) /* the wait that follows tells more, and of the same time */
        return;
    tell_short_lived(tree, false);
    tree->polled_ns = now_ns;
}

size_t nrg_proctree_active(struct nrg_proctree *tree, struct nrg_active **active)
{
    size_t n = 0;
    *active = calloc(tree->n_living + 1, sizeof **active);
    for (size_t b = 0; *active && b < BUCKETS; b++) {
        for (struct proc *p = tree->buckets[b]; p; p = p->next) {
            if (p->info.cpu_ns == p->looked_ns)
                continue;
            p->looked_ns = p->info.cpu_ns;
            (*active)[n++] = (struct nrg_active){p->info.id, p->info.pid};
        }
    }
    return n;
}

void nrg_proctree_exiting(struct nrg_proctree *tree, int32_t pid)
{
    struct nrg_proc_stat stat;
    tree->waiting_foreign =
        !nrg_proc_read_stat(&tree->ctx->root, pid, &stat) && is_foreign(tree, &stat);
    on_exited(tree, pid);
}

void nrg_proctree_waited(struct nrg_proctree *tree, int32_t pid, int64_t cpu_ns)
{
    if (tree->waiting_foreign)
        return;
    tree->waited_ns += cpu_ns;
    struct proc *p = find(tree, pid);
    if (p) {
        struct proc **at = bucket_of(tree, pid);
        while (*at != p)
            at = &(*at)->next;
        end_process(tree, at);
    }
    tell_short_lived(tree, true);
}

void nrg_proctree_finish(struct nrg_proctree *tree)
{
    if (tree->connector >= 0)
        nrg_proctree_drain(tree);
    update_all(tree);
    tell_short_lived(tree, true);
    for (size_t b = 0; b < BUCKETS; b++)
        for (struct proc *p = tree->buckets[b]; p; p = p->next)
            tree->events.process(tree->events.arg, &p->info);
}

const char *nrg_proctree_method(const struct nrg_proctree *tree)
{
    return tree->connector >= 0 ? "connector" : "polling";
}

/*
 * See busy.h. Groups below the v2 root come and go seldom: the number of links of the directory
 * tells, and a group that can't be read any more. What an ended group had used stays in the sum.
 */
#include "sensors/machine/busy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define CPU_STAT_BYTES 512 /* the fields that are wanted are its first three lines */
#define MAX_GROUPS     256

/* How far a sum since boot may be from the ticks: they sample, and early boot is in no group. */
#define AGREE_SHARE 0.05
#define AGREE_S     1.0

enum kind { CPUACCT, GROUPS, ROOT };

struct source {
    enum kind kind;
    const char *dir;
    const char *file; /* what is shown as the channel's source, below dir */
};

static const struct source sources[] = {
    {CPUACCT, "/sys/fs/cgroup/cpuacct", "/cpuacct.usage"},
    {CPUACCT, "/sys/fs/cgroup/cpu,cpuacct", "/cpuacct.usage"},
    {GROUPS, "/sys/fs/cgroup", "/*/cpu.stat"},
    {GROUPS, "/sys/fs/cgroup/unified", "/*/cpu.stat"},
    {ROOT, "/sys/fs/cgroup", "/cpu.stat"},
    {ROOT, "/sys/fs/cgroup/unified", "/cpu.stat"},
};

struct group {
    char name[256];
    int fd;
    int64_t used_us;
};

struct nrg_busy {
    const struct nrg_root *root;
    const struct source *source;
    int fd; /* the file; of groups the directory */
    struct group *groups;
    size_t n_groups, cap_groups;
    nlink_t links;    /* of the directory when it was listed */
    int64_t ended_us; /* of groups that have ended */
};

static bool has_file(const struct nrg_root *root, const char *dir, const char *file)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    return nrg_root_exists(root, path);
}

/* Only the root has these files in v1, and all but the root this one in v2. */
static bool is_machine_wide(const struct nrg_root *root, const struct source *s)
{
    if (s->kind == CPUACCT)
        return has_file(root, s->dir, "release_agent") ||
               has_file(root, s->dir, "cgroup.sane_behavior");
    return has_file(root, s->dir, "cgroup.procs") && !has_file(root, s->dir, "cgroup.events");
}

static int read_cpu_stat(int fd, enum kind kind, int64_t *us)
{
    char text[CPU_STAT_BYTES];
    struct nrg_cpu_stat stat;
    ssize_t len = nrg_pread_text(fd, text, sizeof text);
    int rc = len < 0 ? (int)len : nrg_cgroup_cpu_stat(text, (size_t)len, &stat);
    if (!rc) /* the root's usage has steal time in it on some kernels */
        *us = kind == ROOT ? stat.user_us + stat.system_us : stat.usage_us;
    return rc;
}

static bool knows_group(const struct nrg_busy *b, const char *name)
{
    for (size_t i = 0; i < b->n_groups; i++)
        if (!strcmp(b->groups[i].name, name))
            return true;
    return false;
}

static int add_group(struct nrg_busy *b, const char *name)
{
    char path[512];
    if (knows_group(b, name) || strlen(name) >= sizeof b->groups->name)
        return 0;
    snprintf(path, sizeof path, "%s/%s/cpu.stat", b->source->dir, name);
    int fd = nrg_root_open(b->root, path, O_RDONLY);
    if (fd < 0)
        return 0; /* a file of the root, or a group that has just ended */
    if (b->n_groups >= MAX_GROUPS ||
        nrg_reserve(&b->groups, &b->cap_groups, b->n_groups + 1, sizeof *b->groups)) {
        close(fd);
        return -ENOMEM;
    }
    struct group *g = &b->groups[b->n_groups++];
    *g = (struct group){.fd = fd};
    nrg_copy(g->name, sizeof g->name, name);
    return 0;
}

static int list_groups(struct nrg_busy *b)
{
    struct nrg_names names;
    struct stat st;
    if (!fstat(b->fd, &st))
        b->links = st.st_nlink;
    int rc = nrg_root_list(b->root, b->source->dir, &names);
    if (rc)
        return rc;
    for (size_t i = 0; !rc && i < names.n; i++)
        rc = add_group(b, names.items[i]);
    nrg_names_release(&names);
    return rc;
}

static bool groups_changed(const struct nrg_busy *b)
{
    struct stat st;
    return !fstat(b->fd, &st) && st.st_nlink != b->links;
}

/* True when one has ended: another of its name may be there now. */
static bool update_groups(struct nrg_busy *b)
{
    bool ended = false;
    for (size_t i = 0; i < b->n_groups;) {
        struct group *g = &b->groups[i];
        int64_t us = g->used_us;
        int rc = read_cpu_stat(g->fd, GROUPS, &us);
        if (rc != -ENODEV) { /* a reading that failed is made up for by the next one */
            g->used_us = !rc && us > g->used_us ? us : g->used_us;
            i++;
            continue;
        }
        ended = true;
        close(g->fd);
        b->ended_us += g->used_us;
        *g = b->groups[--b->n_groups];
    }
    return ended;
}

static int read_groups(struct nrg_busy *b, int64_t *us)
{
    bool ended = update_groups(b); /* a group may have ended and come back under its name */
    if (groups_changed(b) || ended) {
        int rc = list_groups(b);
        if (rc)
            return rc;
        update_groups(b);
    }
    *us = b->ended_us;
    for (size_t i = 0; i < b->n_groups; i++)
        *us += b->groups[i].used_us;
    return 0;
}

int nrg_busy_read(struct nrg_busy *b, int64_t *raw)
{
    if (b->source->kind == CPUACCT) {
        int rc = nrg_pread_i64(b->fd, raw);
        return rc ? rc : *raw < 0 ? -ERANGE : 0;
    }
    return b->source->kind == GROUPS ? read_groups(b, raw) : read_cpu_stat(b->fd, ROOT, raw);
}

void nrg_busy_close(struct nrg_busy *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->n_groups; i++)
        close(b->groups[i].fd);
    if (b->fd >= 0)
        close(b->fd);
    free(b->groups);
    free(b);
}

static int open_source(const struct nrg_root *root, const struct source *s, struct nrg_busy **out)
{
    char path[128];
    struct nrg_busy *b = calloc(1, sizeof *b);
    if (!b)
        return -ENOMEM;
    b->root = root;
    b->source = s;
    snprintf(path, sizeof path, "%s%s", s->dir, s->kind == GROUPS ? "" : s->file);
    b->fd = nrg_root_open(root, path, O_RDONLY | (s->kind == GROUPS ? O_DIRECTORY : 0));
    int rc = b->fd < 0 ? b->fd : s->kind == GROUPS ? list_groups(b) : 0;
    if (rc)
        nrg_busy_close(b);
    else
        *out = b;
    return rc;
}

static double scale_of(const struct source *s)
{
    return s->kind == CPUACCT ? 1e-9 : 1e-6;
}

static bool agrees(const struct nrg_root *root, const struct source *s,
                   const struct nrg_cpu_ticks *ticks, double tick_s)
{
    struct nrg_busy *b;
    int64_t raw;
    if (!is_machine_wide(root, s) || open_source(root, s, &b))
        return false;
    int rc = nrg_busy_read(b, &raw);
    nrg_busy_close(b);
    if (rc)
        return false;
    double fine_s = (double)raw * scale_of(s), busy_s = (double)ticks->busy * tick_s;
    /* Without paravirtual time accounting, run times have the steal time in them. */
    double most_s = busy_s + (ticks->steal == NRG_MISSING ? 0 : (double)ticks->steal * tick_s);
    return fine_s >= busy_s * (1 - AGREE_SHARE) - AGREE_S &&
           fine_s <= most_s * (1 + AGREE_SHARE) + AGREE_S;
}

/* The kernel's own tick: what its coarse clock advances by. */
static int64_t kernel_tick_ns(void)
{
    struct timespec ts;
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &ts))
        return 10 * NRG_NS_PER_MS;
    return (int64_t)ts.tv_sec * NRG_NS_PER_S + ts.tv_nsec;
}

bool nrg_busy_describe(const struct nrg_root *root, const struct nrg_cpu_ticks *ticks,
                       struct nrg_channel *channel)
{
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        const struct source *s = &sources[i];
        if (!agrees(root, s, ticks, channel->scale))
            continue;
        channel->update_ns = kernel_tick_ns();
        channel->scale = scale_of(s);
        channel->resolution = s->kind == ROOT ? (double)channel->update_ns / 1e9 : scale_of(s);
        snprintf(channel->source, sizeof channel->source, "%s%s", s->dir, s->file);
        return true;
    }
    return false;
}

int nrg_busy_open(const struct nrg_root *root, const struct nrg_channel *channel,
                  struct nrg_busy **out)
{
    char text[128];
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        snprintf(text, sizeof text, "%s%s", sources[i].dir, sources[i].file);
        if (!strcmp(text, channel->source))
            return open_source(root, &sources[i], out);
    }
    return -ENOENT;
}

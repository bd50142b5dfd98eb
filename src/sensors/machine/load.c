/*
 * The machine as the kernel accounts for it. Two sensors, so that slow things are read slowly:
 *   "machine"              /proc/stat (group 0), /proc/meminfo (group 1) and busy time (group 2)
 *   "machine environment"  pressure, clock, temperatures: see machine/environment.c
 *
 * Busy time comes from a finer source than /proc/stat where there is one (busy.h), and is then a
 * group of its own, read first: the moment of its reading is known to microseconds. Without one, it
 * is a channel of /proc/stat like idle and steal time.
 *
 * The recorder's own CPU time stands beside these: where busy time is made of ticks that ask who
 * runs, one who wakes up by a timer may be in none of them. Not where the recorder is a part of the
 * measured program (its time is the program's), nor for a captured machine.
 *
 * CPU time is kept as the kernel's counters (busy, idle, steal): a reader takes differences over
 * any interval, where a percentage would be tied to ours. Steal is neither busy nor idle: the
 * host ran another guest. Idle counters may step back a little; they are passed on unchanged.
 *
 * The aggregate is the first line of /proc/stat, so a read is one pread of 512 bytes; with one
 * channel per CPU (on request) all cpu lines are read. The kernel formats the whole file for
 * either (about 8 us on a small machine).
 *
 * A CPU that goes offline loses its line: its channel is missing until it returns. CPUs that
 * appear after the start have no channel.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/drivers.h"
#include "sensors/machine/busy.h"
#include "sensors/machine/files.h"
#include "sensors/machine/internal.h"

#define STAT         "/proc/stat"
#define MEMINFO      "/proc/meminfo"
#define MACHINE      "machine"
#define MEMINFO_HEAD 1024 /* the fields we want are its first five lines */
#define CPU_LINE     232  /* "cpu65535" and ten numbers of 20 digits */
#define MAX_CPUS     8192
#define STAT_MAX     ((size_t)16 << 20)
#define TICK_NS      (10 * NRG_NS_PER_MS) /* USER_HZ is 100 everywhere in practice */

enum { GROUP_STAT, GROUP_MEMORY, GROUP_BUSY };

enum field { BUSY, IDLE, STEAL, RECORDER, USED, TOTAL, ONE_CPU };

static const char *const names[] = {"cpu.busy",     "cpu.idle",    "cpu.steal",
                                    "cpu.recorder", "memory.used", "memory.total"};

static double tick_s(void)
{
    long hz = sysconf(_SC_CLK_TCK);
    return 1.0 / (double)(hz > 0 ? hz : 100);
}

static int add_load_channel(struct nrg_found *found, const char *name, unsigned group)
{
    bool time = group != GROUP_MEMORY;
    struct nrg_channel *c = nrg_found_channel(found, name, time ? NRG_SECONDS : NRG_BYTES,
                                              time ? NRG_COUNTER : NRG_GAUGE);
    if (!c)
        return -ENOMEM;
    c->group = group;
    c->scale = c->resolution = time ? tick_s() : 1024;
    c->update_ns = TICK_NS;
    nrg_copy(c->source, sizeof c->source, time ? STAT : MEMINFO);
    return 0;
}

static int add_recorder(const struct nrg_root *root, struct nrg_found *found)
{
    if (!nrg_root_is_live(root) || nrg_root_is_inside(root))
        return 0;
    int rc = add_load_channel(found, names[RECORDER], GROUP_STAT);
    if (rc)
        return rc;
    struct nrg_channel *c = &found->channels[found->n_channels - 1];
    c->scale = c->resolution = 1e-9;
    c->update_ns = 0; /* it is exact whenever it is read */
    nrg_copy(c->source, sizeof c->source, "CLOCK_PROCESS_CPUTIME_ID");
    return 0;
}

static int add_each_cpu(struct nrg_found *found, const char *text, const char *end)
{
    struct nrg_cpu_ticks ticks;
    char name[32];
    int cpu, rc = 0;
    size_t n = 0;
    while (!rc && text < end && n < MAX_CPUS) {
        int line = nrg_proc_stat_line(&text, end, &cpu, &ticks);
        if (line == -ENOENT)
            break;
        if (line || cpu == NRG_CPU_ALL)
            continue;
        snprintf(name, sizeof name, "cpu.%d.busy", cpu);
        rc = add_load_channel(found, name, GROUP_STAT);
        n++;
    }
    return rc;
}

/* *fine: cpu.busy, for the caller to add, when it comes from another source than /proc/stat. */
static int probe_stat(struct nrg_probe *probe, struct nrg_found *found, struct nrg_channel *fine)
{
    struct nrg_cpu_ticks ticks;
    char *text;
    ssize_t len = nrg_root_read_all(&probe->ctx->root, STAT, STAT_MAX, &text);
    int rc = len < 0 ? (int)len : nrg_proc_stat_total(text, (size_t)len, &ticks);
    if (rc) {
        free(text);
        return rc == -ENOMEM
                   ? rc
                   : nrg_probe_unavailable(probe, "CPU time", NULL, STAT ": %s", strerror(-rc));
    }
    fine->scale = tick_s();
    if (!nrg_busy_describe(&probe->ctx->root, &ticks, fine))
        rc = add_load_channel(found, names[BUSY], GROUP_STAT);
    for (int i = IDLE; !rc && i <= (ticks.steal == NRG_MISSING ? IDLE : STEAL); i++)
        rc = add_load_channel(found, names[i], GROUP_STAT);
    if (!rc)
        rc = add_recorder(&probe->ctx->root, found);
    if (!rc && probe->options->per_cpu)
        rc = add_each_cpu(found, text, text + len);
    free(text);
    return rc;
}

static int probe_memory(struct nrg_probe *probe, struct nrg_found *found)
{
    struct nrg_proc_memory memory;
    char text[MEMINFO_HEAD];
    ssize_t len = nrg_root_read_head(&probe->ctx->root, MEMINFO, text, sizeof text);
    int rc = len < 0 ? (int)len : nrg_proc_meminfo(text, (size_t)len, &memory);
    if (rc)
        return nrg_probe_unavailable(probe, "memory in use", NULL, MEMINFO ": %s", strerror(-rc));
    rc = add_load_channel(found, names[USED], GROUP_MEMORY);
    return rc ? rc : add_load_channel(found, names[TOTAL], GROUP_MEMORY);
}

static int add_fine_busy(struct nrg_found *found, const struct nrg_channel *fine)
{
    int rc = add_load_channel(found, names[BUSY], GROUP_BUSY);
    if (rc)
        return rc;
    struct nrg_channel *c = &found->channels[found->n_channels - 1];
    c->scale = fine->scale;
    c->resolution = fine->resolution;
    c->update_ns = fine->update_ns;
    nrg_copy(c->source, sizeof c->source, fine->source);
    return 0;
}

static int probe_machine(struct nrg_probe *probe, struct nrg_error *err)
{
    struct nrg_channel fine = {0};
    struct nrg_found *found = nrg_probe_found(probe, MACHINE);
    int rc = found ? probe_stat(probe, found, &fine) : -ENOMEM;
    if (!rc)
        rc = probe_memory(probe, found);
    if (!rc && fine.source[0])
        rc = add_fine_busy(found, &fine);
    if (!rc && !found->n_channels)
        probe->n_found--;
    return rc ? rc : nrg_environment_probe(probe);
}

/* What a channel shows. */
struct slot {
    enum field field;
    int cpu; /* of ONE_CPU */
    bool wanted;
    int fault;
};

struct machine {
    struct nrg_environment *environment; /* set: this is the other sensor, the rest is unused */
    int stat_fd, memory_fd;              /* -1: not wanted */
    struct nrg_busy *busy;               /* NULL: not wanted, or a channel of /proc/stat */
    size_t n_stat, n_memory, n_slots;    /* slots: of /proc/stat, of /proc/meminfo, of busy */
    struct slot *slots;
    int64_t *raw;         /* as many */
    size_t *slot_of_cpu;  /* n_slots: none */
    size_t n_slot_of_cpu; /* 0: no channel of a single CPU is wanted */
    char *text;
    size_t text_size;
};

static void machine_close(void *state)
{
    struct machine *m = state;
    nrg_environment_close(m->environment);
    nrg_busy_close(m->busy);
    if (m->stat_fd >= 0)
        close(m->stat_fd);
    if (m->memory_fd >= 0)
        close(m->memory_fd);
    free(m->slots);
    free(m->raw);
    free(m->slot_of_cpu);
    free(m->text);
    free(m);
}

static struct slot slot_of(const char *name, bool wanted)
{
    struct slot slot = {.field = ONE_CPU, .cpu = 0, .wanted = wanted};
    for (int i = BUSY; i <= TOTAL; i++)
        if (!strcmp(names[i], name))
            slot.field = (enum field)i;
    if (slot.field == ONE_CPU)
        slot.cpu = atoi(name + strlen("cpu."));
    return slot;
}

static int index_cpus(struct machine *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_stat; i++)
        if (m->slots[i].field == ONE_CPU && m->slots[i].wanted && (size_t)m->slots[i].cpu >= n)
            n = (size_t)m->slots[i].cpu + 1;
    /* Room for every line up to the last one wanted; those before it are read in any case. */
    m->text_size = NRG_PROC_STAT_HEAD + MEMINFO_HEAD + n * CPU_LINE;
    m->text = malloc(m->text_size);
    m->slot_of_cpu = calloc(n + 1, sizeof *m->slot_of_cpu);
    if (!m->text || !m->slot_of_cpu)
        return -ENOMEM;
    m->n_slot_of_cpu = n;
    for (size_t cpu = 0; cpu < n; cpu++)
        m->slot_of_cpu[cpu] = m->n_slots;
    for (size_t i = 0; i < m->n_stat; i++)
        if (m->slots[i].field == ONE_CPU && m->slots[i].wanted)
            m->slot_of_cpu[m->slots[i].cpu] = i;
    return 0;
}

static int map_channels(struct machine *m, const struct nrg_found *found)
{
    m->n_slots = found->n_channels;
    m->slots = calloc(m->n_slots + 1, sizeof *m->slots);
    m->raw = calloc(m->n_slots + 1, sizeof *m->raw);
    if (!m->slots || !m->raw)
        return -ENOMEM;
    for (size_t c = 0; c < m->n_slots; c++) {
        m->slots[c] = slot_of(found->channels[c].name, found->wanted[c]);
        m->n_stat += found->channels[c].group == GROUP_STAT;
        m->n_memory += found->channels[c].group == GROUP_MEMORY;
    }
    return index_cpus(m);
}

/* Opens the file if any channel of [from, to) is wanted. */
static int open_file(const struct nrg_root *root, const char *path, const struct machine *m,
                     size_t from, size_t to, int *fd)
{
    for (size_t i = from; i < to; i++) {
        if (m->slots[i].wanted) {
            *fd = nrg_root_open(root, path, O_RDONLY);
            return *fd < 0 ? *fd : 0;
        }
    }
    return 0;
}

static int open_files(struct machine *m, const struct nrg_context *ctx,
                      const struct nrg_found *found)
{
    size_t busy = m->n_stat + m->n_memory;
    int rc = open_file(&ctx->root, STAT, m, 0, m->n_stat, &m->stat_fd);
    if (!rc)
        rc = open_file(&ctx->root, MEMINFO, m, m->n_stat, busy, &m->memory_fd);
    if (!rc && busy < m->n_slots && m->slots[busy].wanted)
        rc = nrg_busy_open(&ctx->root, &found->channels[busy], &m->busy);
    return rc;
}

static int machine_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                        struct nrg_error *err)
{
    struct machine *m = calloc(1, sizeof *m);
    if (!m)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    m->stat_fd = m->memory_fd = -1;
    int rc;
    if (!strcmp(found->sensor, NRG_ENVIRONMENT_SENSOR)) {
        rc = nrg_environment_open(ctx, found, &m->environment, err);
    } else {
        rc = map_channels(m, found);
        if (!rc)
            rc = open_files(m, ctx, found);
        if (rc)
            nrg_fail(err, rc, found->sensor, "cannot open: %s", strerror(-rc));
    }
    if (rc)
        machine_close(m);
    else
        *state = m;
    return rc;
}

static void set_value(struct machine *m, size_t i, int64_t raw)
{
    if (!m->slots[i].wanted)
        return;
    m->raw[i] = raw;
    m->slots[i].fault = raw == NRG_MISSING ? -ENODATA : 0;
}

static void clear_values(struct machine *m, size_t from, size_t to, int fault)
{
    for (size_t i = from; i < to; i++) {
        m->raw[i] = NRG_MISSING;
        m->slots[i].fault = m->slots[i].wanted ? fault : 0;
    }
}

static void emit_group(struct machine *m, struct nrg_sink *sink, unsigned group, int64_t before,
                       int64_t after)
{
    const size_t edges[] = {0, m->n_stat, m->n_stat + m->n_memory, m->n_slots};
    size_t from = edges[group], to = edges[group + 1];
    nrg_sink_row(sink, group, before + (after - before) / 2, after - before, m->raw + from);
    for (size_t i = from; i < to; i++)
        nrg_sink_fault(sink, (unsigned)i, m->slots[i].fault);
}

static void set_cpu(struct machine *m, int cpu, const struct nrg_cpu_ticks *ticks)
{
    if (cpu >= 0 && (size_t)cpu < m->n_slot_of_cpu && m->slot_of_cpu[cpu] < m->n_slots)
        set_value(m, m->slot_of_cpu[cpu], ticks->busy);
}

/* All threads of this process, up to now. */
static int64_t own_cpu_ns(void)
{
    struct timespec ts;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts)
               ? NRG_MISSING
               : (int64_t)ts.tv_sec * NRG_NS_PER_S + ts.tv_nsec;
}

static void set_total(struct machine *m, const struct nrg_cpu_ticks *ticks)
{
    const int64_t values[] = {ticks->busy, ticks->idle, ticks->steal, own_cpu_ns()};
    for (size_t i = 0; i < m->n_stat && m->slots[i].field <= RECORDER; i++)
        set_value(m, i, values[m->slots[i].field]);
}

static void read_stat(struct machine *m, struct nrg_sink *sink)
{
    struct nrg_cpu_ticks ticks;
    int cpu;
    size_t size = m->n_slot_of_cpu ? m->text_size : NRG_PROC_STAT_HEAD;
    int64_t before = nrg_now_ns();
    ssize_t len = nrg_pread_text(m->stat_fd, m->text, size);
    int64_t after = nrg_now_ns();
    int rc = len < 0 ? (int)len : nrg_proc_stat_total(m->text, (size_t)len, &ticks);
    /* A CPU without a line is offline, perhaps only for a while. */
    clear_values(m, 0, m->n_stat, rc ? rc : -ENODEV);
    if (!rc)
        set_total(m, &ticks);
    const char *p = m->text, *end = m->text + (rc ? 0 : len);
    while (m->n_slot_of_cpu && p < end) {
        int line = nrg_proc_stat_line(&p, end, &cpu, &ticks);
        if (line == -ENOENT)
            break;
        if (!line && (p[-1] == '\n' || (size_t)len < size - 1)) /* else the buffer cut it */
            set_cpu(m, cpu, &ticks);
    }
    emit_group(m, sink, GROUP_STAT, before, after);
}

static void read_meminfo(struct machine *m, struct nrg_sink *sink)
{
    struct nrg_proc_memory memory;
    int64_t before = nrg_now_ns();
    ssize_t len = nrg_pread_text(m->memory_fd, m->text, MEMINFO_HEAD);
    int64_t after = nrg_now_ns();
    int rc = len < 0 ? (int)len : nrg_proc_meminfo(m->text, (size_t)len, &memory);
    clear_values(m, m->n_stat, m->n_stat + m->n_memory, rc);
    for (size_t i = m->n_stat; !rc && i < m->n_stat + m->n_memory; i++)
        set_value(m, i,
                  m->slots[i].field == TOTAL ? memory.total_kib
                                             : memory.total_kib - memory.available_kib);
    emit_group(m, sink, GROUP_MEMORY, before, after);
}

static void read_busy(struct machine *m, struct nrg_sink *sink)
{
    int64_t raw, before = nrg_now_ns();
    int rc = nrg_busy_read(m->busy, &raw);
    int64_t after = nrg_now_ns();
    clear_values(m, m->n_slots - 1, m->n_slots, rc);
    if (!rc)
        set_value(m, m->n_slots - 1, raw);
    emit_group(m, sink, GROUP_BUSY, before, after);
}

static int machine_read(void *state, struct nrg_sink *sink)
{
    struct machine *m = state;
    if (m->environment) {
        nrg_environment_read(m->environment, sink);
        return 0;
    }
    if (m->busy)
        read_busy(m, sink);
    if (m->stat_fd >= 0)
        read_stat(m, sink);
    if (m->memory_fd >= 0)
        read_meminfo(m, sink);
    return 0;
}

const struct nrg_driver nrg_driver_machine = {
    .name = "machine",
    .summary = "CPU time, memory, pressure, clock and temperatures of the whole machine",
    .flags = NRG_WITH_PROCESSES,
    .probe = probe_machine,
    .open = machine_open,
    .read = machine_read,
    .close = machine_close,
};

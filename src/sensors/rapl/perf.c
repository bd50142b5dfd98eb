/*
 * RAPL through perf: the kernel's "power" PMU in /sys/bus/event_source/devices/power. The best of
 * the three ways: 64-bit counts (the kernel follows the 32-bit hardware and hides its wraps), no
 * file permissions to change, and a capability (CAP_PERFMON) that gives nothing else away.
 *
 * `type` and events/energy-X ("event=0x02") say what to open, .scale what a count is worth,
 * `cpumask` on which CPU: one per package, or per die on the Intel servers that count so. Some
 * kernels list several dies of an AMD package too, all with the package's one counter: only the
 * first is taken. psys is one for the board and opened once. AMD's per-core PMU (power_core) is
 * left alone: a hundred counters for what energy-pkg contains.
 *
 * From Sapphire Rapids on the kernel lists energy-psys unseen, where it asks all other registers
 * whether they count. A virtual machine on such a processor thus has psys alone, and it stands
 * still. What has the platform's register has the package's, too: psys without it is used only when
 * the user names this driver.
 *
 * Only opening an event tells whether nrg has permission, so probe opens every event once. A PMU
 * description in a captured tree is read but its events are never opened: perf_event_open always
 * refers to the machine that nrg runs on.
 *
 * Refuses: events whose unit is not Joules, whose scale or config does not parse.
 */
#include "sensors/rapl/perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "sensors/drivers.h"
#include "sensors/fixes.h"
#include "sensors/machine/cpu_model.h"
#include "sensors/rapl/common.h"

#define PMU_DIR "/sys/bus/event_source/devices/power"

static const struct {
    const char *name, *domain;
} known_events[] = {
    {"energy-pkg", "package"}, {"energy-cores", "core"}, {"energy-gpu", "uncore"},
    {"energy-ram", "dram"},    {"energy-psys", "psys"},
};
#define N_EVENTS (sizeof known_events / sizeof *known_events)

int nrg_perf_config_parse(const char *text, uint64_t *config)
{
    char *end;
    const char *number = !strncmp(text, "event=", 6)    ? text + 6
                         : !strncmp(text, "config=", 7) ? text + 7
                                                        : NULL;
    if (!number || *number < '0' || *number > '9')
        return -EINVAL;
    errno = 0;
    *config = strtoull(number, &end, 0);
    return errno || *end ? -EINVAL : 0;
}

static int read_event_file(const struct nrg_root *root, const char *event, const char *suffix,
                           char *text, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, PMU_DIR "/events/%s%s", event, suffix);
    return nrg_root_read_label(root, path, text, size);
}

/* 0 when the event exists and is usable; -ENOENT when it does not exist. */
static int read_event(const struct nrg_root *root, struct nrg_perf_event *event)
{
    char text[64];
    int rc = read_event_file(root, event->name, "", text, sizeof text);
    if (rc || (rc = nrg_perf_config_parse(text, &event->config)))
        return rc;
    if (read_event_file(root, event->name, ".unit", text, sizeof text) || strcmp(text, "Joules"))
        return -EINVAL;
    if (read_event_file(root, event->name, ".scale", text, sizeof text) ||
        nrg_parse_double(text, strlen(text), &event->scale_j) || !(event->scale_j > 0))
        return -EINVAL;
    return 0;
}

static void read_events(const struct nrg_root *root, struct nrg_perf_pmu *pmu)
{
    for (size_t i = 0; i < N_EVENTS; i++) {
        struct nrg_perf_event event = {known_events[i].name, known_events[i].domain, 0, 0};
        int rc = read_event(root, &event);
        if (!rc)
            pmu->events[pmu->n_events++] = event;
        else if (rc != -ENOENT)
            snprintf(pmu->refused, sizeof pmu->refused,
                     PMU_DIR "/events/%s: event, .unit or .scale is not what the kernel writes",
                     event.name);
    }
}

static int add_cpu(unsigned cpu, void *arg)
{
    struct nrg_cpus *cpus = arg;
    return nrg_append(&cpus->items, &cpus->n, &cpus->cap, &(struct nrg_cpu){.cpu = cpu, .core = -1},
                      sizeof *cpus->items);
}

/* The CPUs of cpumask with package and die. Without topology: one package each, in order. */
static int read_cpumask(const struct nrg_root *root, struct nrg_cpus *cpus)
{
    char text[4096];
    struct nrg_cpus all;
    struct nrg_cpu_model model;
    if (nrg_root_read_label(root, PMU_DIR "/cpumask", text, sizeof text))
        return -EINVAL;
    int rc = nrg_parse_cpulist(text, add_cpu, cpus);
    if (rc || !cpus->n)
        return rc == -ENOMEM ? rc : -EINVAL;
    if (nrg_cpus_read(root, &all))
        all = (struct nrg_cpus){0};
    for (size_t i = 0; i < cpus->n; i++) {
        const struct nrg_cpu *place = nrg_cpus_find(&all, cpus->items[i].cpu);
        if (place)
            cpus->items[i] = *place;
        else
            cpus->items[i].package = (int64_t)i;
    }
    nrg_cpus_release(&all);
    nrg_cpu_model_identify(root, &model);
    nrg_cpus_one_per_package(cpus, nrg_cpu_vendor_of(&model) != NRG_VENDOR_AMD);
    return 0;
}

int nrg_perf_pmu_read(const struct nrg_root *root, struct nrg_perf_pmu *pmu, struct nrg_error *err)
{
    int64_t type;
    *pmu = (struct nrg_perf_pmu){0};
    if (!nrg_root_exists(root, PMU_DIR))
        return nrg_fail(err, -ENOENT, PMU_DIR, "not there (no RAPL, or a virtual machine)");
    int rc = nrg_root_read_i64(root, PMU_DIR "/type", &type);
    if (rc || type < 0 || type > UINT32_MAX)
        return nrg_fail(err, -EINVAL, PMU_DIR "/type", "holds no PMU number");
    pmu->type = (uint32_t)type;
    read_events(root, pmu);
    if (!pmu->n_events)
        return nrg_fail(err, -ENODATA, PMU_DIR "/events", "%s",
                        pmu->refused[0] ? pmu->refused
                                        : "the PMU is there but has no energy event (a virtual "
                                          "machine, or a processor without RAPL)");
    rc = read_cpumask(root, &pmu->cpus);
    if (rc) {
        nrg_perf_pmu_release(pmu);
        return nrg_fail(err, rc, PMU_DIR "/cpumask", "holds no list of CPUs");
    }
    return 0;
}

void nrg_perf_pmu_release(struct nrg_perf_pmu *pmu)
{
    nrg_cpus_release(&pmu->cpus);
}

bool nrg_perf_psys_is_alone(const struct nrg_perf_pmu *pmu)
{
    return pmu->n_events == 1 && !strcmp(pmu->events[0].domain, "psys");
}

static int open_counter(uint32_t type, uint64_t config, unsigned cpu)
{
    struct perf_event_attr attr = {.type = type, .size = sizeof attr, .config = config};
    int fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, (long)PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int add_event(struct nrg_found *found, const struct nrg_perf_event *event,
                     const struct nrg_cpu *cpu, const char *suffix)
{
    struct nrg_channel *channel = nrg_rapl_channel(found, event->domain, suffix);
    if (!channel)
        return -ENOMEM;
    channel->scale = event->scale_j;
    channel->resolution = 61e-6; /* of the register behind it; counts are finer than that */
    snprintf(channel->source, sizeof channel->source, "perf power/%s/ on CPU %u", event->name,
             cpu->cpu);
    size_t len = strlen(found->locator);
    snprintf(found->locator + len, sizeof found->locator - len, " %#llx",
             (unsigned long long)event->config);
    return 0;
}

/* Events of one package. -EACCES or -EPERM: no permission to open them. */
static int add_package(struct nrg_probe *probe, const struct nrg_perf_pmu *pmu, size_t index)
{
    const struct nrg_cpu *cpu = &pmu->cpus.items[index];
    char sensor[64], suffix[32];
    int rc = 0;
    nrg_cpu_suffix(&pmu->cpus, cpu, suffix, sizeof suffix);
    snprintf(sensor, sizeof sensor, "power PMU, package %s", suffix);
    struct nrg_found *found = nrg_probe_found(probe, sensor);
    if (!found)
        return -ENOMEM;
    snprintf(found->locator, sizeof found->locator, "%u %u", pmu->type, cpu->cpu);
    for (size_t i = 0; !rc && i < pmu->n_events; i++) {
        const struct nrg_perf_event *event = &pmu->events[i];
        if (index && !strcmp(event->domain, "psys"))
            continue;
        int fd = open_counter(pmu->type, event->config, cpu->cpu);
        if (fd >= 0) {
            close(fd);
            rc = add_event(found, event, cpu, suffix);
        } else if (fd == -EACCES || fd == -EPERM) {
            rc = fd;
        } else {
            rc = nrg_probe_unavailable(probe, event->name, NULL, "perf_event_open on CPU %u: %s",
                                       cpu->cpu, strerror(-fd));
        }
    }
    if (!found->n_channels)
        probe->n_found--;
    return rc;
}

static int probe_perf(struct nrg_probe *probe, struct nrg_error *err)
{
    static const char what[] = "RAPL through perf";
    struct nrg_perf_pmu pmu;
    struct nrg_error why;
    char fix[NRG_FIX_BYTES];
    size_t first = probe->n_found;
    int rc = nrg_perf_pmu_read(&probe->ctx->root, &pmu, &why);
    if (rc)
        return nrg_probe_unavailable(
            probe, what, rc == -ENOENT ? nrg_fixes(&probe->ctx->root, NRG_PMU_ABSENT, fix) : NULL,
            "%s: %s", why.where, why.what);
    if (!nrg_root_is_live(&probe->ctx->root)) {
        rc = nrg_probe_unavailable(probe, what, NULL,
                                   PMU_DIR " belongs to another machine: perf counters can only "
                                           "be opened where they count");
        nrg_perf_pmu_release(&pmu);
        return rc;
    }
    bool unlikely = nrg_perf_psys_is_alone(&pmu) && !probe->options->only;
    if (unlikely)
        rc = nrg_probe_unavailable(probe, what, nrg_fixes(&probe->ctx->root, NRG_PMU_ABSENT, fix),
                                   "energy-psys is listed without energy-pkg, as in virtual "
                                   "machines where neither counts (--sensor rapl-perf reads it)");
    for (size_t i = 0; !rc && !unlikely && i < pmu.cpus.n; i++)
        rc = add_package(probe, &pmu, i);
    if (rc == -EACCES || rc == -EPERM)
        rc = nrg_probe_unavailable(probe, what, nrg_fixes(&probe->ctx->root, NRG_PERF_DENIED, fix),
                                   "perf_event_open: %s", strerror(-rc));
    if (!rc && pmu.refused[0])
        rc = nrg_probe_unavailable(probe, what, NULL, "%s", pmu.refused);
    nrg_rapl_fix_parents(probe, first);
    nrg_perf_pmu_release(&pmu);
    return rc;
}

struct perf {
    size_t n;
    int fd[N_EVENTS];  /* -1: not wanted */
    size_t n_ended;    /* of the last reading */
    int64_t opened_ns; /* an event counts from then on */
};

static void perf_close(void *state)
{
    struct perf *p = state;
    for (size_t i = 0; i < p->n; i++)
        if (p->fd[i] >= 0)
            close(p->fd[i]);
    free(p);
}

/* The locator is "TYPE CPU CONFIG...", one config per channel. */
static int perf_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                     struct nrg_error *err)
{
    char *at;
    uint32_t type = (uint32_t)strtoul(found->locator, &at, 10);
    unsigned cpu = (unsigned)strtoul(at, &at, 10);
    if (found->n_channels > N_EVENTS)
        return nrg_fail(err, -EINVAL, found->sensor, "more channels than events");
    struct perf *p = calloc(1, sizeof *p);
    if (!p)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    p->opened_ns = nrg_now_ns();
    for (size_t c = 0; c < found->n_channels; c++) {
        uint64_t config = strtoull(at, &at, 0);
        int fd = found->wanted[c] ? open_counter(type, config, cpu) : -1;
        fd = nrg_root_lift(&ctx->root, fd);
        p->fd[p->n++] = fd < 0 ? -1 : fd;
        if (found->wanted[c] && fd < 0) {
            perf_close(p);
            return nrg_fail(err, fd, found->channels[c].source, "perf_event_open: %s",
                            strerror(-fd));
        }
    }
    *state = p;
    return 0;
}

/* A perf descriptor ends (0 bytes) when the event is in error, for example its CPU went away. */
static int read_counter(void *state, size_t i, int64_t *raw)
{
    struct perf *p = state;
    uint64_t count;
    if (p->fd[i] < 0)
        return 0;
    ssize_t n = read(p->fd[i], &count, sizeof count);
    p->n_ended += n == 0;
    if (n != (ssize_t)sizeof count)
        return n < 0 ? -errno : -ENODATA;
    *raw = (int64_t)(count & INT64_MAX);
    return 0;
}

static int perf_read(void *state, struct nrg_sink *sink)
{
    struct perf *p = state;
    size_t wanted = 0;
    p->n_ended = 0;
    nrg_sink_epoch(sink, p->opened_ns);
    nrg_sink_poll(sink, 0, 0, p->n, read_counter, state);
    for (size_t i = 0; i < p->n; i++)
        wanted += p->fd[i] >= 0;
    return wanted && p->n_ended == wanted ? -ENODEV : 0;
}

/* Whoever holds an event can also stop it: events are shared with one process each. */
static int perf_share(void *state, enum nrg_share *how, int fds[NRG_SHARE_MAX])
{
    const struct perf *p = state;
    int n = 0;
    *how = NRG_SHARE_COUNT;
    for (size_t i = 0; i < p->n; i++)
        if (p->fd[i] >= 0)
            fds[n++] = p->fd[i];
    return n;
}

const struct nrg_driver nrg_driver_rapl_perf = {
    .name = "rapl-perf",
    .summary = "CPU package, core, uncore, DRAM and platform energy through perf events",
    .probe = probe_perf,
    .open = perf_open,
    .read = perf_read,
    .share = perf_share,
    .close = perf_close,
};

/*
 * RAPL through the model specific registers, /dev/cpu/N/msr: a pread of 8 bytes at the register's
 * number. The last resort of the three ways (it needs CAP_SYS_RAWIO, which opens the machine), for
 * kernels whose powercap and perf drivers do not know the processor.
 *
 * The unit register gives joules per count as 2^-ESU (bits 12:8), counters are 32 bits wide and
 * wrap; the reader unwraps. Exceptions by model are rows of a table. Which registers exist is
 * found by asking: EIO, or a counter that reads 0, means no such domain (the kernel's own drivers
 * decide the same way). A virtual machine may answer every register with 0 *and success*: then
 * the unit is 0 too, and that is "no RAPL", not one-joule units.
 *
 * AMD counts cores one by one: register 29A holds the energy of the core that the CPU belongs to,
 * so one CPU's value is not `core-0`. The channel of that name is the sum over one CPU per core,
 * each unwrapped by itself. As every read interrupts every core, even sleeping ones, that sensor is
 * hidden: it runs only when the user asks for rapl-msr. The package contains it anyway.
 *
 * Refuses: processors other than Intel and AMD 17h+, a unit register that reads 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "sensors/cpus.h"
#include "sensors/drivers.h"
#include "sensors/fixes.h"
#include "sensors/machine/cpu_model.h"
#include "sensors/rapl/common.h"

#define MSR_WRAP       (UINT64_C(1) << 32)
#define MAX_DOMAINS    5
#define AMD_CORE       0xC001029A
#define WHAT           "RAPL through MSR"
#define SERVER_DRAM_UJ 15.3 /* as the kernel's powercap driver; the datasheet's rounded 2^-16 J */

struct domain {
    const char *name;
    uint32_t reg;
};

static const struct vendor {
    uint32_t unit_reg;
    struct domain domains[MAX_DOMAINS + 1];
} vendors[] = {
    [NRG_VENDOR_INTEL] = {0x606,
                          {{"package", 0x611},
                           {"core", 0x639},
                           {"uncore", 0x641},
                           {"dram", 0x619},
                           {"psys", 0x64d},
                           {NULL, 0}}},
    [NRG_VENDOR_AMD] = {0xC0010299, {{"package", 0xC001029B}, {NULL, 0}}},
};

/* Intel models (family 6) whose units are not what the unit register says. */
static const struct quirk {
    int64_t model;
    bool server_dram; /* dram counts 15.3 uJ */
    bool joule_psys;  /* psys counts whole joules */
    bool microjoule;  /* the unit is 2^ESU uJ, not 2^-ESU J */
} quirks[] = {
    {0x3f, .server_dram = true}, /* Haswell-X */
    {0x4f, .server_dram = true}, /* Broadwell-X */
    {0x56, .server_dram = true}, /* Broadwell-D */
    {0x55, .server_dram = true}, /* Skylake-X, Cascade Lake, Cooper Lake */
    {0x6a, .server_dram = true}, /* Ice Lake-X */
    {0x6c, .server_dram = true}, /* Ice Lake-D */
    {0x57, .server_dram = true}, /* Knights Landing */
    {0x85, .server_dram = true}, /* Knights Mill */
    {0x8f, .joule_psys = true},  /* Sapphire Rapids */
    {0xcf, .joule_psys = true},  /* Emerald Rapids */
    {0x37, .microjoule = true},  /* Silvermont and Airmont */
    {0x4a, .microjoule = true},
    {0x4c, .microjoule = true},
    {0x4d, .microjoule = true},
    {0x5a, .microjoule = true},
    {0x5d, .microjoule = true},
    {0x75, .microjoule = true},
    {0},
};

static const struct quirk *find_quirk(const struct nrg_cpu_model *model)
{
    const struct quirk *quirk = quirks;
    if (nrg_cpu_vendor_of(model) != NRG_VENDOR_INTEL || model->family != 6)
        return &quirks[sizeof quirks / sizeof *quirks - 1];
    while (quirk->model && quirk->model != model->model)
        quirk++;
    return quirk;
}

static double unit_j(const struct quirk *quirk, const char *domain, uint64_t unit_register)
{
    int esu = (int)(unit_register >> 8 & 0x1f);
    if (quirk->server_dram && !strcmp(domain, "dram"))
        return SERVER_DRAM_UJ * 1e-6;
    if (quirk->joule_psys && !strcmp(domain, "psys"))
        return 1;
    return quirk->microjoule ? ldexp(1e-6, esu) : ldexp(1, -esu);
}

static int read_msr(int fd, uint32_t reg, uint64_t *value)
{
    ssize_t n = pread(fd, value, sizeof *value, (off_t)reg);
    if (n == (ssize_t)sizeof *value)
        return 0;
    return n < 0 ? -errno : -EIO; /* a captured file ends where its registers end */
}

static int open_msr(const struct nrg_root *root, unsigned cpu)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/cpu/%u/msr", cpu);
    return nrg_root_open(root, path, O_RDONLY);
}

static int add_domain(struct nrg_found *found, const struct domain *domain, double unit,
                      unsigned cpu, const char *suffix)
{
    struct nrg_channel *channel = nrg_rapl_channel(found, domain->name, suffix);
    if (!channel)
        return -ENOMEM;
    channel->scale = unit;
    channel->resolution = unit;
    channel->wrap = MSR_WRAP;
    snprintf(channel->source, sizeof channel->source, "/dev/cpu/%u/msr register %#x", cpu,
             domain->reg);
    size_t len = strlen(found->locator);
    snprintf(found->locator + len, sizeof found->locator - len, " %#x", domain->reg);
    return 0;
}

/* The counters of one package that exist and count, through an open descriptor of its CPU. */
static int add_domains(struct nrg_probe *probe, const struct nrg_cpu_model *model, int fd,
                       const struct nrg_cpu *cpu, const char *suffix, bool *psys)
{
    const struct vendor *vendor = &vendors[nrg_cpu_vendor_of(model)];
    const struct quirk *quirk = find_quirk(model);
    char sensor[64];
    uint64_t units, value;
    snprintf(sensor, sizeof sensor, "MSR, package %s", suffix);
    int rc = read_msr(fd, vendor->unit_reg, &units);
    if (rc)
        return nrg_probe_unavailable(probe, sensor, NULL,
                                     "unit register %#x: %s: this processor has no RAPL",
                                     vendor->unit_reg, strerror(-rc));
    if (!units)
        return nrg_probe_unavailable(probe, sensor, NULL,
                                     "unit register %#x reads 0: a virtual machine that answers "
                                     "for registers it does not have; only the host can measure",
                                     vendor->unit_reg);
    struct nrg_found *found = nrg_probe_found(probe, sensor);
    if (!found)
        return -ENOMEM;
    snprintf(found->locator, sizeof found->locator, "%u", cpu->cpu);
    for (const struct domain *d = vendor->domains; !rc && d->name; d++) {
        bool is_psys = !strcmp(d->name, "psys");
        if ((is_psys && *psys) || read_msr(fd, d->reg, &value) || !(value & (MSR_WRAP - 1)))
            continue;
        *psys |= is_psys;
        rc = add_domain(found, d, unit_j(quirk, d->name, units), cpu->cpu, suffix);
    }
    if (rc || found->n_channels)
        return rc;
    probe->n_found--;
    return nrg_probe_unavailable(probe, sensor, NULL,
                                 "every energy register is absent or stands at 0");
}

/* The sum over the cores of an AMD package: see the head of the file. */
static int add_cores(struct nrg_probe *probe, int fd, const struct nrg_cpu *cpu, const char *suffix)
{
    char sensor[64];
    uint64_t units, value;
    if (read_msr(fd, vendors[NRG_VENDOR_AMD].unit_reg, &units) || !units ||
        read_msr(fd, AMD_CORE, &value) || !(value & (MSR_WRAP - 1)))
        return 0;
    snprintf(sensor, sizeof sensor, "MSR, cores of package %s", suffix);
    struct nrg_found *found = nrg_probe_found(probe, sensor);
    struct nrg_channel *channel = found ? nrg_rapl_channel(found, "core", suffix) : NULL;
    if (!channel)
        return -ENOMEM;
    found->hidden = true;
    snprintf(found->locator, sizeof found->locator, "cores %lld", (long long)cpu->package);
    channel->scale = ldexp(1, -(int)(units >> 8 & 0x1f));
    channel->resolution = channel->scale;
    channel->provenance = NRG_DERIVED;
    snprintf(channel->source, sizeof channel->source,
             "/dev/cpu/*/msr register %#x, sum over the cores", (unsigned)AMD_CORE);
    return 0;
}

static int add_package(struct nrg_probe *probe, const struct nrg_cpu_model *model,
                       const struct nrg_cpus *cpus, const struct nrg_cpu *cpu, bool *psys)
{
    char suffix[32], sensor[64];
    nrg_cpu_suffix(cpus, cpu, suffix, sizeof suffix);
    int fd = open_msr(&probe->ctx->root, cpu->cpu);
    if (fd < 0) {
        bool denied = fd == -EACCES || fd == -EPERM, absent = fd == -ENOENT || fd == -ENXIO;
        char fix[NRG_FIX_BYTES] = "";
        snprintf(sensor, sizeof sensor, WHAT ", package %s", suffix);
        if (denied || absent)
            nrg_fixes(&probe->ctx->root, denied ? NRG_MSR_DENIED : NRG_MSR_ABSENT, fix);
        return nrg_probe_unavailable(probe, sensor, fix, "/dev/cpu/%u/msr: %s", cpu->cpu,
                                     fd == -ENOENT ? "not there (module msr is not loaded)"
                                                   : strerror(-fd));
    }
    int rc = add_domains(probe, model, fd, cpu, suffix, psys);
    if (!rc && nrg_cpu_vendor_of(model) == NRG_VENDOR_AMD)
        rc = add_cores(probe, fd, cpu, suffix);
    close(fd);
    return rc;
}

static int probe_msr(struct nrg_probe *probe, struct nrg_error *err)
{
    const struct nrg_root *root = &probe->ctx->root;
    struct nrg_cpu only = {.core = -1};
    struct nrg_cpu_model model;
    struct nrg_cpus cpus;
    size_t first = probe->n_found;
    bool psys = false;
    int rc = nrg_cpu_model_identify(root, &model);
    enum nrg_cpu_vendor vendor = nrg_cpu_vendor_of(&model);
    if (rc)
        return nrg_probe_unavailable(probe, WHAT, NULL, "/proc/cpuinfo: %s", strerror(-rc));
    if (vendor == NRG_VENDOR_OTHER)
        return nrg_probe_unavailable(probe, WHAT, NULL, "the processor is neither Intel nor AMD");
    if (vendor == NRG_VENDOR_AMD && model.family < 0x17)
        return nrg_probe_unavailable(probe, WHAT, NULL,
                                     "AMD processors have RAPL since family 23 (Zen); this is %u",
                                     model.family);
    /* Without the module, three files per CPU would be read to say so once per package. */
    cpus = (struct nrg_cpus){0};
    rc = nrg_root_exists(root, "/dev/cpu") ? nrg_cpus_read(root, &cpus) : 0;
    if (rc == -ENOMEM)
        return rc;
    nrg_cpus_one_per_package(&cpus, vendor == NRG_VENDOR_INTEL);
    struct nrg_cpus one = {.items = &only, .n = 1};
    const struct nrg_cpus *list = cpus.n ? &cpus : &one; /* no topology: CPU 0, package 0 */
    rc = 0;
    for (size_t i = 0; !rc && i < list->n; i++)
        rc = add_package(probe, &model, list, &list->items[i], &psys);
    nrg_cpus_release(&cpus);
    nrg_rapl_fix_parents(probe, first);
    return rc;
}

/* Counters of one package, or (cores) the sum of one register over several CPUs. */
struct msr {
    bool cores;
    size_t n;
    int *fd; /* one for a package, one per core for the sum */
    size_t n_fd;
    uint32_t reg[MAX_DOMAINS]; /* 0: not wanted */
    uint32_t *last, *now;
    uint64_t sum;
    bool primed;
};

static void msr_close(void *state)
{
    struct msr *m = state;
    for (size_t i = 0; i < m->n_fd; i++)
        close(m->fd[i]);
    free(m->fd);
    free(m->last);
    free(m->now);
    free(m);
}

static int open_one(struct msr *m, const struct nrg_root *root, unsigned cpu)
{
    int fd = open_msr(root, cpu);
    if (fd < 0)
        return fd;
    m->fd[m->n_fd++] = fd;
    return 0;
}

/* One descriptor per core of the package: hardware threads of a core share its register. */
static int open_cores(struct msr *m, const struct nrg_root *root, int64_t package)
{
    struct nrg_cpus cpus;
    int rc = nrg_cpus_read(root, &cpus);
    if (rc)
        return rc;
    m->fd = calloc(cpus.n + 1, sizeof *m->fd);
    m->last = calloc(cpus.n + 1, sizeof *m->last);
    m->now = calloc(cpus.n + 1, sizeof *m->now);
    if (!m->fd || !m->last || !m->now)
        rc = -ENOMEM;
    for (size_t i = 0; !rc && i < cpus.n; i++) {
        const struct nrg_cpu *cpu = &cpus.items[i];
        bool seen = cpu->package != package;
        for (size_t k = 0; k < i && !seen; k++)
            seen = cpu->core >= 0 && cpus.items[k].package == package &&
                   cpus.items[k].die == cpu->die && cpus.items[k].core == cpu->core;
        if (!seen)
            rc = open_one(m, root, cpu->cpu);
    }
    nrg_cpus_release(&cpus);
    return rc ? rc : m->n_fd ? 0 : -ENODEV;
}

/* The locator is "CPU REGISTER..." with a register per channel. */
static int open_package(struct msr *m, const struct nrg_root *root, const struct nrg_found *found)
{
    char *at;
    unsigned cpu = (unsigned)strtoul(found->locator, &at, 10);
    m->fd = calloc(1, sizeof *m->fd);
    if (!m->fd)
        return -ENOMEM;
    for (m->n = 0; m->n < found->n_channels && m->n < MAX_DOMAINS; m->n++) {
        uint32_t reg = (uint32_t)strtoul(at, &at, 0);
        m->reg[m->n] = found->wanted[m->n] ? reg : 0;
    }
    return open_one(m, root, cpu);
}

static int msr_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                    struct nrg_error *err)
{
    struct msr *m = calloc(1, sizeof *m);
    if (!m)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    m->cores = !strncmp(found->locator, "cores ", 6);
    int rc = m->cores ? open_cores(m, &ctx->root, strtoll(found->locator + 6, NULL, 10))
                      : open_package(m, &ctx->root, found);
    if (rc) {
        msr_close(m);
        return nrg_fail(err, rc, found->sensor, "cannot open /dev/cpu/*/msr: %s", strerror(-rc));
    }
    *state = m;
    return 0;
}

/* All cores or none: a sum that lacks a core would look like a counter that went back. */
static int read_cores(struct msr *m, int64_t *raw)
{
    for (size_t i = 0; i < m->n_fd; i++) {
        uint64_t value;
        int rc = read_msr(m->fd[i], AMD_CORE, &value);
        if (rc)
            return rc;
        m->now[i] = (uint32_t)value;
    }
    for (size_t i = 0; i < m->n_fd; i++) {
        m->sum += m->primed ? (uint32_t)(m->now[i] - m->last[i]) : m->now[i];
        m->last[i] = m->now[i];
    }
    m->primed = true;
    *raw = (int64_t)(m->sum & INT64_MAX);
    return 0;
}

static int read_channel(void *state, size_t i, int64_t *raw)
{
    struct msr *m = state;
    uint64_t value;
    if (m->cores)
        return read_cores(m, raw);
    if (!m->reg[i])
        return 0;
    int rc = read_msr(m->fd[0], m->reg[i], &value);
    if (!rc)
        *raw = (int64_t)(value & (MSR_WRAP - 1));
    return rc;
}

static int msr_read(void *state, struct nrg_sink *sink)
{
    const struct msr *m = state;
    nrg_sink_poll(sink, 0, 0, m->cores ? 1 : m->n, read_channel, state);
    return 0;
}

const struct nrg_driver nrg_driver_rapl_msr = {
    .name = "rapl-msr",
    .summary = "CPU package, core, uncore, DRAM and platform energy from the processor's registers",
    .probe = probe_msr,
    .open = msr_open,
    .read = msr_read,
    .close = msr_close,
};

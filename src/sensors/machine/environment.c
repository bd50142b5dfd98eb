/*
 * See internal.h. The state of the machine around the workload, read once a second:
 *   pressure.cpu|memory|io   time in which some task waited, "some total=" of /proc/pressure, us
 *   cpu.clock                mean of scaling_cur_freq over CPUs, kHz
 *   temperature.CHIP.LABEL   hwmon temp*_input, m°C; thermal zones where hwmon has none
 *
 * Clocks are read per cpufreq policy and weighted by the CPUs it governs; of more than 64
 * policies an even selection is taken. Absent in most virtual machines: "cpu MHz" of
 * /proc/cpuinfo is a constant there, and half a MB of text on a large machine.
 *
 * At most 16 temperatures: packages, boards and devices before single cores. Disks are left out:
 * reading an NVMe or SATA drive's temperature sends it a command, which keeps it from sleeping, and
 * a profiler must not change what it measures.
 */
#include "sensors/machine/internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"

#define PRESSURE         "/proc/pressure/"
#define CPUS             "/sys/devices/system/cpu"
#define HWMON            "/sys/class/hwmon"
#define THERMAL          "/sys/class/thermal"
#define MAX_PRESSURES    3
#define MAX_TEMPERATURES 16
#define MAX_POLICIES     64
#define MAX_CHANNELS     (MAX_PRESSURES + 1 + MAX_TEMPERATURES)

_Static_assert(MAX_CHANNELS <= NRG_POLL_MAX, "a group is one row");

enum { GROUP_PRESSURE, GROUP_PHYSICAL };

/* --- probe --- */

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=10033409" */
static int parse_pressure(const char *text, size_t len, int64_t *total_us)
{
    const char *end = memchr(text, '\n', len), *field;
    size_t n;
    end = end ? end : text + len;
    if (len < 5 || memcmp(text, "some ", 5))
        return -EINVAL;
    while ((field = nrg_next_field(&text, end, &n)))
        if (n > 6 && !memcmp(field, "total=", 6))
            return nrg_parse_i64(field + 6, n - 6, total_us);
    return -EINVAL;
}

static int add_environment_channel(struct nrg_found *found, const char *name,
                                   enum nrg_quantity quantity, double scale, const char *source)
{
    bool pressure = quantity == NRG_SECONDS;
    struct nrg_channel *c =
        nrg_found_channel(found, name, quantity, pressure ? NRG_COUNTER : NRG_GAUGE);
    if (!c)
        return -ENOMEM;
    nrg_copy(c->source, sizeof c->source, source);
    c->group = pressure ? GROUP_PRESSURE : GROUP_PHYSICAL;
    c->scale = c->resolution = scale;
    /* The kernel sums the pressures of its CPUs every 2 s. */
    c->update_ns = (pressure ? 2 : 1) * NRG_NS_PER_S;
    return 0;
}

static int add_pressure(struct nrg_probe *probe, struct nrg_found *found, const char *what)
{
    char path[64], name[48], text[256];
    int64_t total_us;
    snprintf(path, sizeof path, PRESSURE "%s", what);
    snprintf(name, sizeof name, "pressure.%s", what);
    ssize_t len = nrg_root_read(&probe->ctx->root, path, text, sizeof text);
    int rc = len < 0 ? (int)len : parse_pressure(text, (size_t)len, &total_us);
    if (rc == -EOPNOTSUPP)
        return nrg_probe_unavailable(probe, name, "boot with psi=1 on the kernel's command line",
                                     "%s: the kernel keeps no pressure statistics (psi=0)", path);
    return rc ? 0 : add_environment_channel(found, name, NRG_SECONDS, 1e-6, path);
}

/* Where scaling_cur_freq is: in policies, or in CPUs where a captured tree has no policies. */
struct clock_layout {
    const char *dir, *prefix, *below;
};

static const struct clock_layout layouts[] = {
    {CPUS "/cpufreq", "policy", ""},
    {CPUS, "cpu", "/cpufreq"},
};

struct clocks {
    size_t n;
    int fd[MAX_POLICIES];
    int64_t cpus[MAX_POLICIES]; /* how many it governs */
};

static void close_clocks(struct clocks *clocks)
{
    for (size_t i = 0; i < clocks->n; i++)
        close(clocks->fd[i]);
    clocks->n = 0;
}

static int64_t count_fields(const char *text)
{
    const char *end = text + strlen(text);
    size_t len;
    int64_t n = 0;
    while (nrg_next_field(&text, end, &len))
        n++;
    return n;
}

static void open_clock(const struct nrg_root *root, const struct clock_layout *layout,
                       const char *name, struct clocks *clocks)
{
    char path[128], text[4096];
    int64_t khz, cpus = 1;
    snprintf(path, sizeof path, "%s/%.40s%s/scaling_cur_freq", layout->dir, name, layout->below);
    int fd = nrg_root_open(root, path, O_RDONLY);
    if (fd < 0)
        return;
    if (nrg_pread_i64(fd, &khz)) { /* offline, or "<unknown>" */
        close(fd);
        return;
    }
    snprintf(path, sizeof path, "%s/%.40s/affected_cpus", layout->dir, name);
    if (!*layout->below && nrg_root_read(root, path, text, sizeof text) > 0 && count_fields(text))
        cpus = count_fields(text);
    clocks->fd[clocks->n] = fd;
    clocks->cpus[clocks->n++] = cpus;
}

static bool is_numbered(const char *name, const char *prefix)
{
    size_t len = strlen(prefix);
    return !strncmp(name, prefix, len) && isdigit((unsigned char)name[len]);
}

static void open_layout(const struct nrg_root *root, const struct clock_layout *layout,
                        struct clocks *clocks)
{
    struct nrg_names names;
    size_t n = 0, seen = 0;
    if (nrg_root_list(root, layout->dir, &names))
        return;
    for (size_t i = 0; i < names.n; i++)
        n += is_numbered(names.items[i], layout->prefix);
    size_t step = n ? (n + MAX_POLICIES - 1) / MAX_POLICIES : 1;
    for (size_t i = 0; i < names.n; i++)
        if (is_numbered(names.items[i], layout->prefix) && seen++ % step == 0)
            open_clock(root, layout, names.items[i], clocks);
    nrg_names_release(&names);
}

static void open_clocks(const struct nrg_root *root, struct clocks *clocks)
{
    clocks->n = 0;
    for (size_t i = 0; !clocks->n && i < sizeof layouts / sizeof *layouts; i++)
        open_layout(root, &layouts[i], clocks);
}

static int add_clock(struct nrg_probe *probe, struct nrg_found *found)
{
    struct clocks clocks;
    open_clocks(&probe->ctx->root, &clocks);
    size_t n = clocks.n;
    close_clocks(&clocks);
    return n ? add_environment_channel(found, "cpu.clock", NRG_CLOCK, 1e3,
                                       CPUS "/cpufreq/policy*/scaling_cur_freq")
             : 0;
}

/* "Package id 0" -> "package-id-0": names are typed on command lines. */
static void plain_word(char *text)
{
    for (char *p = text; *p; p++)
        *p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p)
                                        : (char)(*p == '_' || *p == '.' ? '_' : '-');
}

static bool name_taken(const struct nrg_found *found, const char *name)
{
    for (size_t c = 0; c < found->n_channels; c++)
        if (!strcmp(found->channels[c].name, name))
            return true;
    return false;
}

static int add_temperature(struct nrg_found *found, char *chip, char *label, const char *path)
{
    char name[48];
    plain_word(chip);
    plain_word(label);
    snprintf(name, sizeof name, "temperature.%.14s.%.18s", chip, label);
    for (unsigned i = 2; name_taken(found, name); i++) /* a second chip of the same kind */
        snprintf(name, sizeof name, "temperature.%.12s-%u.%.18s", chip, i % 100, label);
    return add_environment_channel(found, name, NRG_TEMPERATURE, 1e-3, path);
}

static size_t n_temperatures(const struct nrg_found *found)
{
    size_t n = 0;
    for (size_t c = 0; c < found->n_channels; c++)
        n += found->channels[c].quantity == NRG_TEMPERATURE;
    return n;
}

/* tempN_input of one chip. `cores`: only those of single cores, or only the others. */
static int add_chip(const struct nrg_root *root, struct nrg_found *found, const char *dir,
                    const char *chip_name, bool cores)
{
    struct nrg_names files;
    int rc = 0;
    if (nrg_root_list(root, dir, &files))
        return 0;
    for (size_t i = 0; !rc && i < files.n && n_temperatures(found) < MAX_TEMPERATURES; i++) {
        char path[128], chip[32], label[64];
        int64_t mc;
        int number, used = 0;
        if (sscanf(files.items[i], "temp%4d_input%n", &number, &used) != 1 || !used ||
            files.items[i][used])
            continue;
        snprintf(path, sizeof path, "%.90s/temp%d_label", dir, number);
        if (nrg_root_read_label(root, path, label, sizeof label))
            snprintf(label, sizeof label, "temp%d", number);
        snprintf(path, sizeof path, "%.90s/temp%d_input", dir, number);
        if (!strncmp(label, "Core ", 5) != cores || nrg_root_read_i64(root, path, &mc))
            continue;
        nrg_copy(chip, sizeof chip, chip_name);
        rc = add_temperature(found, chip, label, path);
    }
    nrg_names_release(&files);
    return rc;
}

static int add_hwmon(const struct nrg_root *root, struct nrg_found *found, bool cores)
{
    struct nrg_names chips;
    int rc = 0;
    if (nrg_root_list(root, HWMON, &chips))
        return 0;
    for (size_t i = 0; !rc && i < chips.n; i++) {
        char dir[80], path[128], name[32];
        snprintf(dir, sizeof dir, HWMON "/%.40s", chips.items[i]);
        snprintf(path, sizeof path, "%s/name", dir);
        if (nrg_root_read_label(root, path, name, sizeof name))
            nrg_copy(name, sizeof name, chips.items[i]);
        if (strcmp(name, "nvme") && strcmp(name, "drivetemp"))
            rc = add_chip(root, found, dir, name, cores);
    }
    nrg_names_release(&chips);
    return rc;
}

static int add_zones(const struct nrg_root *root, struct nrg_found *found)
{
    struct nrg_names zones;
    int rc = 0;
    if (nrg_root_list(root, THERMAL, &zones))
        return 0;
    for (size_t i = 0; !rc && i < zones.n && n_temperatures(found) < MAX_TEMPERATURES; i++) {
        char path[128], type[64], chip[] = "zone";
        int64_t mc;
        if (!is_numbered(zones.items[i], "thermal_zone"))
            continue;
        snprintf(path, sizeof path, THERMAL "/%.40s/type", zones.items[i]);
        if (nrg_root_read_label(root, path, type, sizeof type))
            nrg_copy(type, sizeof type, zones.items[i] + strlen("thermal_zone"));
        snprintf(path, sizeof path, THERMAL "/%.40s/temp", zones.items[i]);
        if (!nrg_root_read_i64(root, path, &mc))
            rc = add_temperature(found, chip, type, path);
    }
    nrg_names_release(&zones);
    return rc;
}

int nrg_environment_probe(struct nrg_probe *probe)
{
    const struct nrg_root *root = &probe->ctx->root;
    struct nrg_found *found = nrg_probe_found(probe, NRG_ENVIRONMENT_SENSOR);
    static const char *const pressures[MAX_PRESSURES] = {"cpu", "memory", "io"};
    int rc = found ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < MAX_PRESSURES; i++)
        rc = add_pressure(probe, found, pressures[i]);
    if (!rc)
        rc = add_clock(probe, found);
    for (int cores = 0; !rc && cores < 2; cores++)
        rc = add_hwmon(root, found, cores);
    if (!rc && !n_temperatures(found))
        rc = add_zones(root, found);
    if (!rc && !found->n_channels)
        probe->n_found--;
    return rc;
}

/* --- open, read, close --- */

struct nrg_environment {
    size_t n_pressure, n; /* channels; pressures come first */
    int fd[MAX_CHANNELS]; /* -1: not wanted, or the clock */
    size_t clock;         /* channel of it; n when not wanted */
    struct clocks clocks;
};

void nrg_environment_close(struct nrg_environment *env)
{
    if (!env)
        return;
    for (size_t i = 0; i < env->n; i++)
        if (env->fd[i] >= 0)
            close(env->fd[i]);
    close_clocks(&env->clocks);
    free(env);
}

int nrg_environment_open(const struct nrg_context *ctx, const struct nrg_found *found,
                         struct nrg_environment **out, struct nrg_error *err)
{
    struct nrg_environment *env = calloc(1, sizeof *env);
    if (!env)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    env->clock = SIZE_MAX;
    for (size_t c = 0; c < found->n_channels && c < MAX_CHANNELS; c++) {
        const struct nrg_channel *channel = &found->channels[c];
        env->fd[env->n++] = -1;
        env->n_pressure += channel->group == GROUP_PRESSURE;
        if (!found->wanted[c])
            continue;
        if (channel->quantity == NRG_CLOCK) {
            env->clock = c;
            open_clocks(&ctx->root, &env->clocks);
            continue;
        }
        env->fd[c] = nrg_root_open(&ctx->root, channel->source, O_RDONLY);
        if (env->fd[c] < 0) {
            int rc = nrg_fail(err, env->fd[c], channel->source, "cannot open: %s",
                              strerror(-env->fd[c]));
            nrg_environment_close(env);
            return rc;
        }
    }
    *out = env;
    return 0;
}

static int read_pressure(int fd, int64_t *total_us)
{
    char text[256];
    ssize_t len = nrg_pread_text(fd, text, sizeof text);
    return len < 0 ? (int)len : parse_pressure(text, (size_t)len, total_us);
}

/* CPUs that went offline drop out of the mean. */
static int read_clocks(const struct clocks *clocks, int64_t *mean_khz)
{
    int64_t sum = 0, cpus = 0, khz;
    int rc = -ENODEV;
    for (size_t i = 0; i < clocks->n; i++) {
        int failed = nrg_pread_i64(clocks->fd[i], &khz);
        if (!failed && (khz < 0 || khz > INT64_C(1000000000)))
            failed = -ERANGE;
        if (failed) {
            rc = failed;
            continue;
        }
        sum += khz * clocks->cpus[i];
        cpus += clocks->cpus[i];
    }
    if (!cpus)
        return rc;
    *mean_khz = sum / cpus;
    return 0;
}

static int read_channel(void *state, size_t c, int64_t *raw)
{
    const struct nrg_environment *env = state;
    if (c == env->clock)
        return read_clocks(&env->clocks, raw);
    if (env->fd[c] < 0)
        return 0;
    return c < env->n_pressure ? read_pressure(env->fd[c], raw) : nrg_pread_i64(env->fd[c], raw);
}

void nrg_environment_read(struct nrg_environment *env, struct nrg_sink *sink)
{
    size_t n = env->n_pressure;
    if (n)
        nrg_sink_poll(sink, GROUP_PRESSURE, 0, n, read_channel, env);
    if (env->n > n)
        nrg_sink_poll(sink, GROUP_PHYSICAL, n, env->n - n, read_channel, env);
}

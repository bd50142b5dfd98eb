/*
 * simulate: a machine with known true power, from a scenario file (scenario.h, docs/simulate.md).
 * Only when asked for, --sensor simulate:FILE. It behaves like a real sensor: a read gives what the
 * simulated device (sim_meter.h) shows at that moment, stamped with the real clock; the scenario's
 * time 0 is the first read. So recorder, attribution and reports are tested end to end against a
 * truth in closed form, and a bug report can describe its hardware in ten lines.
 *
 * All domains are one sensor and one group. The file is parsed by probe, for the channels, and
 * again by open, for the state; it is the user's file, so it is not looked up under --root, nor is
 * one that a domain follows (joules-from), but /proc/stat, which per-busy-cpu follows, is.
 *
 * Refuses: no file, a file that does not parse (with its line), one that changed in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/domain.h"
#include "sensors/drivers.h"
#include "sensors/rapl/common.h"
#include "sensors/virtual/internal.h"
#include "sensors/virtual/sim_meter.h"

#define FOLLOWED_BYTES 64

static int add_simulated_channel(struct nrg_found *found, const struct nrg_scenario_domain *d,
                                 const char *path)
{
    struct nrg_channel *channel = nrg_found_channel(
        found, d->name, d->gauge ? NRG_POWER : NRG_ENERGY, d->gauge ? NRG_GAUGE : NRG_COUNTER);
    if (!channel)
        return -ENOMEM;
    nrg_copy(channel->parent, sizeof channel->parent, d->parent);
    channel->wide = d->wide;
    channel->covers_cpu = d->covers_cpu;
    nrg_domain_describe(channel);
    snprintf(channel->source, sizeof channel->source, "%.100s:%d", path, d->line);
    channel->scale = d->quantum;
    channel->resolution = d->quantum;
    channel->wrap = nrg_sim_meter_wrap(d);
    channel->update_ns = d->update_ns;
    channel->lag_ns = d->lag_ns;
    channel->limit_w = d->limit_w;
    return 0;
}

static int probe_simulate(struct nrg_probe *probe, struct nrg_error *err)
{
    struct nrg_scenario scenario;
    size_t first = probe->n_found;
    const char *path = probe->argument;
    if (!path || !*path)
        return nrg_fail(err, -EINVAL, "--sensor",
                        "simulate wants a scenario file: --sensor simulate:FILE");
    if (strlen(path) >= sizeof((struct nrg_found *)0)->locator)
        return nrg_fail(err, -ENAMETOOLONG, "--sensor", "the scenario's path is too long");
    int rc = nrg_scenario_load(&scenario, path, err);
    if (rc)
        return rc;
    char sensor[64];
    const char *slash = strrchr(path, '/');
    snprintf(sensor, sizeof sensor, "simulation %.48s", slash ? slash + 1 : path);
    struct nrg_found *found = nrg_probe_found(probe, sensor);
    rc = found ? 0 : -ENOMEM;
    if (found)
        nrg_copy(found->locator, sizeof found->locator, path);
    for (size_t i = 0; !rc && i < scenario.n_domains; i++)
        rc = add_simulated_channel(found, &scenario.domains[i], path);
    nrg_scenario_release(&scenario);
    if (rc)
        return nrg_fail(err, rc, path, "out of memory");
    nrg_rapl_fix_parents(probe, first);
    return 0;
}

struct simulate {
    struct nrg_scenario scenario;
    int stat_fd;                         /* /proc/stat, -1: not needed */
    int follow_fd[NRG_SCENARIO_DOMAINS]; /* what a domain follows, -1: nothing */
    bool started;
    int64_t zero_ns;
    bool wanted[NRG_SCENARIO_DOMAINS];
    struct nrg_sim_meter meters[NRG_SCENARIO_DOMAINS];
};

static void simulate_close(void *state)
{
    struct simulate *s = state;
    if (s->stat_fd >= 0)
        close(s->stat_fd);
    for (size_t i = 0; i < NRG_SCENARIO_DOMAINS; i++)
        if (s->follow_fd[i] >= 0)
            close(s->follow_fd[i]);
    nrg_scenario_release(&s->scenario);
    free(s);
}

static int same_channels(const struct nrg_scenario *scenario, const struct nrg_found *found,
                         struct nrg_error *err)
{
    bool same = scenario->n_domains == found->n_channels;
    for (size_t i = 0; same && i < found->n_channels; i++)
        same = !strcmp(scenario->domains[i].name, found->channels[i].name) &&
               scenario->domains[i].quantum == found->channels[i].scale &&
               nrg_sim_meter_wrap(&scenario->domains[i]) == found->channels[i].wrap;
    return same ? 0 : nrg_fail(err, -ESTALE, found->locator, "changed while it was being opened");
}

/* Joules so far: a number at the begin of the file, which its writer overwrites in place. A reading
 * that a write came between is seen by the next one, which differs. */
static int read_followed(int fd, double *joules)
{
    char text[FOLLOWED_BYTES], again[FOLLOWED_BYTES];
    for (int tries = 0; tries < 8; tries++) {
        ssize_t n = nrg_pread_text(fd, text, sizeof text);
        if (n >= 0)
            n = nrg_pread_text(fd, again, sizeof again);
        if (n < 0)
            return (int)n;
        text[strcspn(text, " \n")] = again[strcspn(again, " \n")] = '\0';
        if (!strcmp(text, again))
            return nrg_word_number(text, nrg_units_j, joules);
    }
    return -EAGAIN;
}

static int open_followed(struct simulate *s, size_t i, const char *scenario, struct nrg_error *err)
{
    char path[4096];
    double joules;
    const char *slash = strrchr(scenario, '/');
    snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash + 1 - scenario) : 0, scenario,
             s->scenario.domains[i].follows);
    s->follow_fd[i] = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int rc = s->follow_fd[i] < 0 ? -errno : read_followed(s->follow_fd[i], &joules);
    if (rc == -EINVAL)
        return nrg_fail(err, rc, path, "joules-from wants a number of joules in it");
    return rc ? nrg_fail(err, rc, path, "joules-from cannot read it: %s", strerror(-rc)) : 0;
}

static int simulate_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                         struct nrg_error *err)
{
    struct simulate *s = calloc(1, sizeof *s);
    if (!s)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    s->stat_fd = -1;
    for (size_t i = 0; i < NRG_SCENARIO_DOMAINS; i++)
        s->follow_fd[i] = -1;
    int rc = nrg_scenario_load(&s->scenario, found->locator, err);
    if (!rc)
        rc = same_channels(&s->scenario, found, err);
    if (!rc && nrg_scenario_needs_busy_cpu(&s->scenario)) {
        s->stat_fd = nrg_root_open(&ctx->root, "/proc/stat", O_RDONLY);
        if (s->stat_fd < 0)
            rc = nrg_fail(err, s->stat_fd, "/proc/stat", "per-busy-cpu cannot read it: %s",
                          strerror(-s->stat_fd));
    }
    for (size_t i = 0; !rc && i < s->scenario.n_domains; i++)
        if (s->scenario.domains[i].follows[0])
            rc = open_followed(s, i, found->locator, err);
    if (rc) {
        simulate_close(s);
        return rc;
    }
    memcpy(s->wanted, found->wanted, found->n_channels * sizeof *s->wanted);
    *state = s;
    return 0;
}

static void start_meters(struct simulate *s, int64_t t_ns, const double *live)
{
    s->started = true;
    s->zero_ns = t_ns;
    for (size_t i = 0; i < s->scenario.n_domains; i++)
        nrg_sim_meter_init(&s->meters[i], &s->scenario, i, live[i]);
}

/* What the domains follow; the first error of the CPUs' time, or of a file in faults. */
static int read_live(struct simulate *s, double *live, int *faults)
{
    double busy_s = 0;
    int rc = s->stat_fd < 0 ? 0 : nrg_sim_busy_cpu_s(s->stat_fd, &busy_s);
    for (size_t i = 0; i < s->scenario.n_domains; i++) {
        live[i] = busy_s;
        faults[i] = rc && s->scenario.domains[i].per_busy_cpu_w > 0 ? rc : 0;
        if (s->follow_fd[i] >= 0)
            faults[i] = read_followed(s->follow_fd[i], &live[i]);
    }
    for (size_t i = 0; !rc && i < s->scenario.n_domains; i++)
        rc = faults[i];
    return rc;
}

static int simulate_read(void *state, struct nrg_sink *sink)
{
    struct simulate *s = state;
    int64_t raw[NRG_SCENARIO_DOMAINS];
    int faults[NRG_SCENARIO_DOMAINS] = {0};
    double live[NRG_SCENARIO_DOMAINS];
    int64_t before = nrg_now_ns();
    int live_rc = read_live(s, live, faults);
    int64_t after = nrg_now_ns();
    int64_t t_ns = before + (after - before) / 2;
    if (!s->started && live_rc)
        return live_rc; /* the meters need a first value */
    if (!s->started)
        start_meters(s, t_ns, live);
    if (nrg_scenario_gone(&s->scenario, t_ns - s->zero_ns))
        return -ENODEV;
    for (size_t i = 0; i < s->scenario.n_domains; i++) {
        struct nrg_sim_meter *meter = &s->meters[i];
        raw[i] = NRG_MISSING;
        if (!s->wanted[i])
            continue;
        if (!faults[i])
            faults[i] = nrg_sim_meter_read(meter, t_ns - s->zero_ns, live[i], &raw[i]);
    }
    nrg_sink_row(sink, 0, t_ns, after - before, raw);
    for (size_t i = 0; i < s->scenario.n_domains; i++)
        if (faults[i])
            nrg_sink_fault(sink, (unsigned)i, faults[i]);
    return 0;
}

const struct nrg_driver nrg_driver_simulate = {
    .name = "simulate",
    .summary = "a machine with known power from a scenario file (simulate:FILE), for tests",
    .flags = NRG_ON_REQUEST,
    .probe = probe_simulate,
    .open = simulate_open,
    .read = simulate_read,
    .close = simulate_close,
};

/*
 * Energy where nothing can be measured: power from CPU utilisation and a table of processors.
 * Offered only when no driver before this one found a channel that covers the CPU (or when asked
 * for by name), always as `estimated`, always with its band. docs/estimate.md is for users.
 *
 *   P = idle + (full - idle) * share
 *
 * share: how far between idle and full, from the CPUs' utilisation (core_load.h); concave because
 * machines are. The table's watts are those of whole machines per hardware thread, so the result is
 * the share of a machine that these threads make up: `machine`. A virtual machine thus gets threads
 * x W/thread and not a whole server. `machine.low` and `machine.high` integrate the ends of the
 * band, which is wider at idle than at full load; the channel's error_low and
 * error_high are those at full load. `machine.idle` is what the threads would draw doing
 * nothing, so that a workload can be charged for the rest only. `dram` is a part of machine, never
 * added to it. It goes by the modules that are plugged in, so that a virtual machine, whose memory
 * is a slice of them, has none.
 *
 * Channels are cumulative energy. Utilisation needs some ticks of 10 ms to mean anything, and
 * because P is concave a window that is too short is biased towards the straight line. Energy
 * is therefore settled per window of about 100 ms, whatever the rate of reads; in between, the
 * counters go on at the last known utilisation, and never go back. Before the first window is full,
 * few ticks or none have come: what they do not tell is filled up with one busy CPU, the measured
 * command's, and the band with none to all. A command of 3 ms would use nothing, exactly,
 * otherwise.
 *
 * Refuses to guess when /proc/stat stands still: the reading is then missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/drivers.h"
#include "sensors/files.h"
#include "sensors/machine/core_load.h"
#include "sensors/machine/cpu_power.h"
#include "sensors/machine/files.h"

#define STAT              "/proc/stat"
#define MACHINE           "machine"
#define WINDOW_NS         (100 * NRG_NS_PER_MS)
#define WINDOW_TICKS      10 /* the same in ticks of one thread */
#define LONG_WINDOW_NS    (500 * NRG_NS_PER_MS)
#define STANDSTILL_NS     (2 * NRG_NS_PER_S)
#define GIVEN_BAND        0.1 /* assumed for watts that the user gives: read off a plug-in meter */
#define DRAM_W_PER_GIB    0.25
#define DRAM_LOW_PER_GIB  0.1
#define DRAM_HIGH_PER_GIB 0.4

enum { MEDIAN, LOW, HIGH, IDLE, DRAM, CHANNELS };

static const char *const names[] = {MACHINE, MACHINE NRG_LOW_SUFFIX, MACHINE NRG_HIGH_SUFFIX,
                                    MACHINE NRG_IDLE_SUFFIX, "dram"};

/* Power of the machine as seen: idle and full of MEDIAN, LOW, HIGH; IDLE and DRAM have one value.
 */
struct watts {
    double idle_w[CHANNELS], full_w[CHANNELS];
};

/* --- probe --- */

static void watts_of_family(struct watts *w, const struct nrg_cpu_model *m,
                            const struct nrg_cpu_family *family)
{
    struct nrg_cpu_power power = nrg_cpu_power_of(m, family);
    double threads = (double)m->threads * nrg_cpu_threads_per_cpu(m, family);
    w->idle_w[MEDIAN] = threads * power.idle.typical_w;
    w->full_w[MEDIAN] = threads * power.full.typical_w;
    w->idle_w[LOW] = threads * power.idle.low_w;
    w->full_w[LOW] = threads * power.full.low_w;
    double most = (double)m->threads * nrg_cpu_most_threads_per_cpu(m, family);
    w->idle_w[HIGH] = most * power.idle.high_w;
    w->full_w[HIGH] = most * power.full.high_w;
}

/* "3.83 W", "1234 W": three digits, no exponent. */
static const char *range_text(char buf[48], double from_w, double to_w)
{
    snprintf(buf, 48, from_w < 999 ? "%.3g to " : "%.0f to ", from_w);
    size_t n = strlen(buf);
    snprintf(buf + n, 48 - n, to_w < 999 ? "%.3g W" : "%.0f W", to_w);
    return buf;
}

/* "EPYC Milan (7003), 28 servers", "Raspberry Pi 5, 500 (Cortex-A76), 4 machines" */
static int describe_row(char *buf, size_t size, const struct nrg_cpu_family *family, bool known)
{
    const char *intro = known ? "" : "processor not in the table: ";
    unsigned n = family->servers ? family->servers : family->machines;
    return snprintf(buf, size, "%s%s, %u %s, ", intro, family->name, n,
                    family->servers ? "servers" : "machines");
}

static void describe_family(char *buf, size_t size, const struct watts *w,
                            const struct nrg_cpu_model *m, const struct nrg_cpu_family *family,
                            bool known)
{
    const char *cpus = nrg_cpu_threads_per_cpu(m, family) > 1 ? "whole cores"
                       : m->threads == 1                      ? "hardware thread"
                                                              : "hardware threads";
    char range[48], clock[24] = "";
    int n = describe_row(buf, size, family, known);
    if (n < 0 || (size_t)n >= size)
        return;
    if (m->clock_mhz && family->clock_mhz)
        snprintf(clock, sizeof clock, " at %.3g GHz", m->clock_mhz * 1e-3);
    snprintf(buf + n, size - (size_t)n, "%u %s%s%s, %s", m->threads, cpus, clock,
             m->virtual_machine ? " of a virtual machine" : "",
             range_text(range, w->idle_w[MEDIAN], w->full_w[MEDIAN]));
}

static int watts_given(struct watts *w, const struct nrg_sensor_options *options,
                       struct nrg_error *err)
{
    double idle_w = options->cpu_idle_w, full_w = options->cpu_full_w;
    if (!(idle_w >= 0) || !(full_w >= idle_w) || !(full_w > 0) || full_w > 1e6)
        return nrg_fail(err, -EINVAL, "--cpu-watts",
                        "wants IDLE:FULL in watts, idle not above full, not %g:%g", idle_w, full_w);
    for (int i = MEDIAN; i <= HIGH; i++) {
        double factor = i == LOW ? 1 - GIVEN_BAND : i == HIGH ? 1 + GIVEN_BAND : 1;
        w->idle_w[i] = idle_w * factor;
        w->full_w[i] = full_w * factor;
    }
    return 0;
}

static struct nrg_channel *add_estimate_channel(struct nrg_found *found, int which,
                                                const struct watts *w)
{
    struct nrg_channel *c = nrg_found_channel(found, names[which], NRG_ENERGY, NRG_COUNTER);
    if (!c)
        return NULL;
    if (which != MEDIAN)
        nrg_copy(c->parent, sizeof c->parent, MACHINE);
    c->provenance = NRG_ESTIMATED;
    c->scale = 1e-6;
    c->update_ns = WINDOW_NS;
    c->limit_w = w->full_w[which];
    return c;
}

static int add_machine(struct nrg_found *found, struct watts *w, const char *source,
                       const char *band)
{
    char range[48];
    w->idle_w[IDLE] = w->full_w[IDLE] = w->idle_w[MEDIAN];
    for (int i = MEDIAN; i <= IDLE; i++) {
        struct nrg_channel *c = add_estimate_channel(found, i, w);
        if (!c)
            return -ENOMEM;
        if (i == MEDIAN) {
            c->covers_cpu = true;
            c->error_low = 1 - w->full_w[LOW] / w->full_w[MEDIAN];
            c->error_high = w->full_w[HIGH] / w->full_w[MEDIAN] - 1;
            nrg_copy(c->source, sizeof c->source, source);
        } else if (i == IDLE) {
            nrg_copy(c->source, sizeof c->source, "what machine would draw without any load");
        } else {
            snprintf(c->source, sizeof c->source, "%s end of the band of machine (%s), %s",
                     i == LOW ? "lower" : "upper", band,
                     range_text(range, w->idle_w[i], w->full_w[i]));
        }
    }
    return 0;
}

static int add_dram(const struct nrg_context *ctx, struct nrg_found *found, struct watts *w)
{
    struct nrg_proc_memory memory;
    char text[1024];
    ssize_t len = nrg_root_read_head(&ctx->root, "/proc/meminfo", text, sizeof text);
    if (len < 0 || nrg_proc_meminfo(text, (size_t)len, &memory))
        return 0;
    double gib = (double)memory.total_kib / (1024 * 1024);
    if (gib * DRAM_W_PER_GIB > w->idle_w[MEDIAN])
        return 0; /* more than all of the idle machine: one of the two is wrong here */
    w->idle_w[DRAM] = w->full_w[DRAM] = gib * DRAM_W_PER_GIB;
    struct nrg_channel *c = add_estimate_channel(found, DRAM, w);
    if (!c)
        return -ENOMEM;
    c->error_low = 1 - DRAM_LOW_PER_GIB / DRAM_W_PER_GIB;
    c->error_high = DRAM_HIGH_PER_GIB / DRAM_W_PER_GIB - 1;
    snprintf(c->source, sizeof c->source, "part of machine: %.3g GiB x %g W (%g to %g)", gib,
             DRAM_W_PER_GIB, DRAM_LOW_PER_GIB, DRAM_HIGH_PER_GIB);
    return 0;
}

/* All that open gets: threads, then idle and full power of each channel in uW. */
static void write_locator(char *buf, size_t size, const struct watts *w, unsigned threads)
{
    int n = snprintf(buf, size, "%u", threads);
    for (int i = 0; i < CHANNELS && n > 0 && (size_t)n < size; i++)
        n += snprintf(buf + n, size - (size_t)n, " %" PRId64 " %" PRId64,
                      (int64_t)llround(w->idle_w[i] * 1e6), (int64_t)llround(w->full_w[i] * 1e6));
}

static int add_estimate(struct nrg_probe *probe, const struct nrg_cpu_model *m,
                        struct nrg_error *err)
{
    struct watts w = {0};
    char source[128], sensor[64], range[48];
    const char *band = "10 % assumed";
    if (probe->options->cpu_full_w != 0 || probe->options->cpu_idle_w != 0) {
        int rc = watts_given(&w, probe->options, err);
        if (rc)
            return rc;
        nrg_copy(sensor, sizeof sensor, "watts given by --cpu-watts");
        snprintf(source, sizeof source, "--cpu-watts, %s as given",
                 range_text(range, w.idle_w[MEDIAN], w.full_w[MEDIAN]));
    } else {
        bool known;
        const struct nrg_cpu_family *family = nrg_cpu_family_of(m, &known);
        watts_of_family(&w, m, family);
        nrg_copy(sensor, sizeof sensor, family->name);
        describe_family(source, sizeof source, &w, m, family, known);
        bool unsure = nrg_cpu_most_threads_per_cpu(m, family) > nrg_cpu_threads_per_cpu(m, family);
        band = unsure ? "80 % of machines, CPUs as threads or as whole cores" : "80 % of machines";
    }
    struct nrg_found *found = nrg_probe_found(probe, sensor);
    int rc = found ? add_machine(found, &w, source, band) : -ENOMEM;
    if (!rc && !m->virtual_machine)
        rc = add_dram(probe->ctx, found, &w);
    if (!rc)
        write_locator(found->locator, sizeof found->locator, &w, m->threads);
    return rc;
}

static int probe_estimate(struct nrg_probe *probe, struct nrg_error *err)
{
    struct nrg_cpu_model m;
    struct nrg_cpu_ticks ticks;
    char text[NRG_PROC_STAT_HEAD];
    if (probe->argument && *probe->argument)
        return nrg_fail(err, -EINVAL, "--sensor", "estimate takes no argument: see --cpu-watts");
    if (!probe->options->only && nrg_cpu_is_covered(probe))
        return 0;
    /* Without utilisation there is nothing to estimate from; the machine driver says why. */
    ssize_t len = nrg_root_read_head(&probe->ctx->root, STAT, text, sizeof text);
    if (len < 0 || nrg_proc_stat_total(text, (size_t)len, &ticks))
        return 0;
    nrg_cpu_model_read(&probe->ctx->root, &m);
    if (!m.threads)
        m.threads = 1; /* there is at least one */
    return add_estimate(probe, &m, err);
}

/* --- open, read, close --- */

struct estimate {
    int stat_fd;
    char *stat; /* what was read of it */
    size_t stat_size;
    struct nrg_core_load *cores; /* NULL: who shares a core is not known */
    unsigned threads;
    size_t n; /* channels: CHANNELS, or one less without dram */
    bool wanted[CHANNELS];
    struct watts watts;
    bool started;
    struct nrg_cpu_ticks ticks; /* at the start of the window */
    int64_t start_ns;
    double share; /* of the range between idle and full: the last known */
    double known; /* how much the share is worth: 0 before the first tick, 1 after a whole window */
    bool settled; /* a window is over */
    double settled_uj[CHANNELS];
    int64_t shown_uj[CHANNELS];
};

static bool read_locator(struct estimate *e, const char *text)
{
    char *end;
    e->threads = (unsigned)strtoul(text, &end, 10);
    for (int i = 0; i < CHANNELS; i++) {
        if (*end != ' ')
            return false;
        e->watts.idle_w[i] = (double)strtoll(end, &end, 10) * 1e-6;
        if (*end != ' ')
            return false;
        e->watts.full_w[i] = (double)strtoll(end, &end, 10) * 1e-6;
    }
    return e->threads > 0 && !*end;
}

static void estimate_close(void *state)
{
    struct estimate *e = state;
    if (e->stat_fd >= 0)
        close(e->stat_fd);
    nrg_core_load_free(e->cores);
    free(e->stat);
    free(e);
}

static int estimate_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                         struct nrg_error *err)
{
    struct estimate *e = calloc(1, sizeof *e);
    if (!e)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    e->n = found->n_channels < CHANNELS ? found->n_channels : CHANNELS;
    for (size_t c = 0; c < e->n; c++)
        e->wanted[c] = found->wanted[c];
    e->cores = nrg_core_load_new(&ctx->root);
    e->stat_size = e->cores ? nrg_core_load_stat_size(e->cores) : NRG_PROC_STAT_HEAD;
    e->stat = malloc(e->stat_size);
    bool good = e->stat && read_locator(e, found->locator);
    e->stat_fd = good ? nrg_root_open(&ctx->root, STAT, O_RDONLY) : -EINVAL;
    if (e->stat_fd < 0) {
        int rc = nrg_fail(err, e->stat_fd, STAT, "cannot open: %s", strerror(-e->stat_fd));
        estimate_close(e);
        return rc;
    }
    *state = e;
    return 0;
}

static double power_w(const struct estimate *e, int channel)
{
    double idle_w = e->watts.idle_w[channel];
    double unknown = channel == LOW    ? 0
                     : channel == HIGH ? 1
                                       : nrg_load_share(1.0 / (double)e->threads);
    double share = e->known * e->share + (1 - e->known) * unknown;
    return idle_w + (e->watts.full_w[channel] - idle_w) * share;
}

/* What was read of /proc/stat. */
struct reading {
    const char *text;
    size_t len;
    struct nrg_cpu_ticks ticks; /* of the whole machine */
    int64_t t_ns;
};

static double share_of(struct estimate *e, const struct reading *now, int64_t busy, int64_t total,
                       bool settle)
{
    double share = e->cores ? nrg_core_load_share(e->cores, now->text, now->len, settle) : -1;
    return share >= 0 ? share : nrg_load_share((double)busy / (double)total);
}

static void begin_window(struct estimate *e, const struct reading *now)
{
    e->ticks = now->ticks;
    e->start_ns = now->t_ns;
}

/*
 * Brings the counters to now. 0, or -ENODATA when the CPU time has not moved for so long that
 * the utilisation is unknown.
 */
static int integrate_energy(struct estimate *e, const struct reading *now)
{
    int64_t busy = nrg_cpu_ticks_between(e->ticks.busy, now->ticks.busy);
    int64_t total = busy + nrg_cpu_ticks_between(e->ticks.idle, now->ticks.idle) +
                    nrg_cpu_ticks_between(e->ticks.steal, now->ticks.steal);
    int64_t dt_ns = now->t_ns - e->start_ns;
    bool settle = total >= (int64_t)e->threads * WINDOW_TICKS || (total && dt_ns >= LONG_WINDOW_NS);
    if (!total && dt_ns > STANDSTILL_NS)
        return -ENODATA;
    if (settle || total >= e->threads)
        e->share = share_of(e, now, busy, total, settle);
    if (!e->settled)
        e->known = settle                ? 1
                   : total >= e->threads ? (double)total / (double)(total + e->threads)
                                         : 0;
    for (size_t c = 0; c < e->n; c++) {
        double energy_uj = e->settled_uj[c] + power_w(e, (int)c) * (double)dt_ns * 1e-3;
        if (settle)
            e->settled_uj[c] = energy_uj;
        if ((int64_t)energy_uj > e->shown_uj[c])
            e->shown_uj[c] = (int64_t)energy_uj;
    }
    if (settle)
        begin_window(e, now);
    e->settled |= settle;
    return 0;
}

static int read_stat(struct estimate *e, struct reading *now, int64_t *width_ns)
{
    int64_t before = nrg_now_ns();
    ssize_t len = nrg_pread_text(e->stat_fd, e->stat, e->stat_size);
    int64_t after = nrg_now_ns();
    *width_ns = after - before;
    now->t_ns = before + (after - before) / 2;
    if (len < 0)
        return (int)len;
    now->text = e->stat;
    now->len = (size_t)len;
    return nrg_proc_stat_total(now->text, now->len, &now->ticks);
}

static int estimate_read(void *state, struct nrg_sink *sink)
{
    struct estimate *e = state;
    struct reading now;
    int64_t raw[CHANNELS], width_ns;
    int rc = read_stat(e, &now, &width_ns);
    if (!rc && !e->started) {
        begin_window(e, &now);
        if (e->cores)
            nrg_core_load_share(e->cores, now.text, now.len, true);
        e->started = true;
    }
    if (!rc)
        rc = integrate_energy(e, &now);
    for (size_t c = 0; c < e->n; c++)
        raw[c] = rc || !e->wanted[c] ? NRG_MISSING : e->shown_uj[c];
    nrg_sink_row(sink, 0, now.t_ns, width_ns, raw);
    for (size_t c = 0; rc && c < e->n; c++)
        if (e->wanted[c])
            nrg_sink_fault(sink, (unsigned)c, rc);
    return 0;
}

const struct nrg_driver nrg_driver_estimate = {
    .name = "estimate",
    .summary = "energy from CPU use and a table of processors, where nothing can be measured",
    .probe = probe_estimate,
    .open = estimate_open,
    .read = estimate_read,
    .close = estimate_close,
};

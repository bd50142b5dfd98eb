/*
 * Energy where nothing can be measured: power from CPU utilisation and a table of processors.
 * Offered only when no driver before this one found a channel that covers the CPU (or when asked
 * for by name), always as `estimated`, always with its band. docs/estimate.md is for users.
 *
 *   P(u) = idle + (full - idle) * (1.6 u - 0.6 u^2)     u: mean utilisation since the last read
 *
 * concave because servers are: at half load they are about 65 % of the way from idle to full.
 * The table's watts are wall power of whole servers per hardware thread, so the result is the
 * share of a machine that these threads are: `machine`. A virtual machine thus gets threads x
 * W/thread and not a whole server. `machine.low` and `machine.high` integrate the ends of the
 * family's band, which is wider at idle than at full load; the channel's error_low and
 * error_high are those at full load. `machine.idle` is what the threads would draw doing
 * nothing, so that a workload can be charged for the rest only. `dram` is a part of machine, never
 * added to it, and not more than machine draws when idle.
 *
 * Channels are cumulative energy. Utilisation needs some ticks of 10 ms to mean anything, and
 * because P is concave a window that is too short is biased towards the straight line. Energy
 * is therefore settled per window of about 100 ms, whatever the rate of reads; between, the
 * counters go on at the best value at hand, and never go back.
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
#include "sensors/cpu_model.h"
#include "sensors/drivers.h"
#include "sensors/machine/files.h"

#define STAT              "/proc/stat"
#define MACHINE           "machine"
#define WINDOW_NS         (100 * NRG_NS_PER_MS)
#define WINDOW_TICKS      10 /* the same in ticks of one thread */
#define LONG_WINDOW_NS    (500 * NRG_NS_PER_MS)
#define STANDSTILL_NS     (2 * NRG_NS_PER_S)
#define GIVEN_BAND        0.1 /* of the user's own watts: what a plug-in meter and a hand make */
#define DRAM_W_PER_GIB    0.25
#define DRAM_LOW_PER_GIB  0.1
#define DRAM_HIGH_PER_GIB 0.4

enum { MEDIAN, LOW, HIGH, IDLE, DRAM, CHANNELS };

static const char *const names[] = {MACHINE, MACHINE ".low", MACHINE ".high", MACHINE ".idle",
                                    "dram"};

/* Power of the machine as seen: idle and full of MEDIAN, LOW, HIGH; IDLE and DRAM have one value.
 */
struct watts {
    double idle_w[CHANNELS], full_w[CHANNELS];
};

/* --- probe --- */

static bool cpu_is_covered(const struct nrg_probe *probe)
{
    for (size_t f = 0; f < probe->n_found; f++) {
        const struct nrg_found *found = &probe->found[f];
        for (size_t c = 0; !found->hidden && c < found->n_channels; c++)
            if (found->channels[c].covers_cpu && found->channels[c].provenance != NRG_ESTIMATED)
                return true;
    }
    return false;
}

/*
 * The table counts threads with SMT on. On bare metal without SMT each CPU that we see is a
 * whole core, which is as many threads of the table as the family has per core. In a virtual
 * machine the topology is made up, and a CPU is one thread of the host.
 */
static unsigned threads_per_cpu(const struct nrg_cpu_model *m, const struct nrg_cpu_family *family)
{
    bool no_smt = m->cores && m->siblings == m->cores && !m->virtual_machine;
    return no_smt ? family->smt : 1;
}

static void watts_of_family(struct watts *w, const struct nrg_cpu_model *m,
                            const struct nrg_cpu_family *family)
{
    double threads = (double)m->threads * threads_per_cpu(m, family);
    w->idle_w[MEDIAN] = threads * family->idle_w;
    w->full_w[MEDIAN] = threads * family->full_w;
    w->idle_w[LOW] = threads * family->idle_low_w;
    w->full_w[LOW] = threads * family->full_low_w;
    w->idle_w[HIGH] = threads * family->idle_high_w;
    w->full_w[HIGH] = threads * family->full_high_w;
}

/* "3.83 W", "1234 W": three digits, no exponent. */
static const char *range_text(char buf[48], double from_w, double to_w)
{
    snprintf(buf, 48, from_w < 999 ? "%.3g to " : "%.0f to ", from_w);
    size_t n = strlen(buf);
    snprintf(buf + n, 48 - n, to_w < 999 ? "%.3g W" : "%.0f W", to_w);
    return buf;
}

static void describe_family(char *buf, size_t size, const struct watts *w,
                            const struct nrg_cpu_model *m, const struct nrg_cpu_family *family,
                            bool known)
{
    const char *cpus = threads_per_cpu(m, family) > 1 ? "cores without SMT"
                       : m->threads == 1              ? "hardware thread"
                                                      : "hardware threads";
    char range[48];
    int n = known ? snprintf(buf, size, "%s family, %u servers, ", family->name, family->servers)
                  : snprintf(buf, size, "processor not in the table: %u %s, ", family->servers,
                             family->name);
    if (n < 0 || (size_t)n >= size)
        return;
    snprintf(buf + n, size - (size_t)n, "%u %s%s, %s", m->threads, cpus,
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

static struct nrg_channel *add_channel(struct nrg_found *found, int which, const struct watts *w)
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

static int add_machine(struct nrg_found *found, const struct watts *w, const char *source,
                       const char *band)
{
    char range[48];
    for (int i = MEDIAN; i <= HIGH; i++) {
        struct nrg_channel *c = add_channel(found, i, w);
        if (!c)
            return -ENOMEM;
        if (i == MEDIAN) {
            c->covers_cpu = true;
            c->error_low = 1 - w->full_w[LOW] / w->full_w[MEDIAN];
            c->error_high = w->full_w[HIGH] / w->full_w[MEDIAN] - 1;
            nrg_copy(c->source, sizeof c->source, source);
        } else {
            snprintf(c->source, sizeof c->source, "%s end of the band of machine (%s), %s",
                     i == LOW ? "lower" : "upper", band,
                     range_text(range, w->idle_w[i], w->full_w[i]));
        }
    }
    return 0;
}

static int add_idle(struct nrg_found *found, struct watts *w)
{
    w->idle_w[IDLE] = w->full_w[IDLE] = w->idle_w[MEDIAN];
    struct nrg_channel *c = add_channel(found, IDLE, w);
    if (!c)
        return -ENOMEM;
    nrg_copy(c->source, sizeof c->source, "what machine would draw without any load");
    return 0;
}

static int add_dram(const struct nrg_context *ctx, struct nrg_found *found, struct watts *w)
{
    struct nrg_proc_memory memory;
    char text[1024];
    ssize_t len = nrg_root_read(&ctx->root, "/proc/meminfo", text, sizeof text);
    if (len == -EFBIG)
        len = sizeof text - 1;
    if (len < 0 || nrg_proc_meminfo(text, (size_t)len, &memory))
        return 0;
    double gib = (double)memory.total_kib / (1024 * 1024);
    bool capped = gib * DRAM_W_PER_GIB > w->idle_w[MEDIAN];
    w->idle_w[DRAM] = w->full_w[DRAM] = capped ? w->idle_w[MEDIAN] : gib * DRAM_W_PER_GIB;
    struct nrg_channel *c = add_channel(found, DRAM, w);
    if (!c)
        return -ENOMEM;
    c->error_low = 1 - DRAM_LOW_PER_GIB / DRAM_W_PER_GIB;
    c->error_high = DRAM_HIGH_PER_GIB / DRAM_W_PER_GIB - 1;
    snprintf(c->source, sizeof c->source, "part of machine: %.3g GiB x %g W (%g to %g)%s", gib,
             DRAM_W_PER_GIB, DRAM_LOW_PER_GIB, DRAM_HIGH_PER_GIB,
             capped ? ", cut to what machine draws when idle" : "");
    return 0;
}

/* For open, which gets nothing else: uW, idle then full. */
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
        band = family->servers < NRG_CPU_FEW ? "lowest to highest" : "10th to 90th percentile";
    }
    struct nrg_found *found = nrg_probe_found(probe, sensor);
    int rc = found ? add_machine(found, &w, source, band) : -ENOMEM;
    if (!rc)
        rc = add_idle(found, &w);
    if (!rc)
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
    if (!probe->options->only && cpu_is_covered(probe))
        return 0;
    /* Without utilisation there is nothing to estimate from; the machine driver says why. */
    ssize_t len = nrg_root_read(&probe->ctx->root, STAT, text, sizeof text);
    if (len == -EFBIG)
        len = sizeof text - 1;
    if (len < 0 || nrg_proc_stat_total(text, (size_t)len, &ticks))
        return 0;
    nrg_cpu_model_read(&probe->ctx->root, &m);
    if (!m.threads)
        m.threads = 1; /* a machine that runs has one */
    return add_estimate(probe, &m, err);
}

/* --- open, read, close --- */

struct estimate {
    int stat_fd;
    unsigned threads;
    size_t n; /* channels: CHANNELS, or one less without dram */
    bool wanted[CHANNELS];
    struct watts watts;
    bool started;
    struct nrg_cpu_ticks ticks; /* at the start of the window */
    int64_t start_ns;
    double utilisation; /* last known; < 0: never */
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

static int estimate_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                         struct nrg_error *err)
{
    struct estimate *e = calloc(1, sizeof *e);
    if (!e)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    e->n = found->n_channels < CHANNELS ? found->n_channels : CHANNELS;
    e->utilisation = -1;
    for (size_t c = 0; c < e->n; c++)
        e->wanted[c] = found->wanted[c];
    bool good = read_locator(e, found->locator);
    e->stat_fd = good ? nrg_root_open(&ctx->root, STAT, O_RDONLY) : -EINVAL;
    if (e->stat_fd < 0) {
        int rc = nrg_fail(err, e->stat_fd, STAT, "cannot open: %s", strerror(-e->stat_fd));
        free(e);
        return rc;
    }
    *state = e;
    return 0;
}

static void estimate_close(void *state)
{
    struct estimate *e = state;
    close(e->stat_fd);
    free(e);
}

static double power_w(const struct estimate *e, int channel, double u)
{
    double idle_w = e->watts.idle_w[channel];
    return idle_w + (e->watts.full_w[channel] - idle_w) * (1.6 * u - 0.6 * u * u);
}

/* Idle time may step back a little, and a narrowed /proc may start anew: that is no time. */
static int64_t advance(int64_t from, int64_t to)
{
    return from == NRG_MISSING || to <= from ? 0 : to - from;
}

/*
 * Brings the counters to t_ns. 0, or -ENODATA when the CPU time has not moved for so long that
 * the utilisation is unknown.
 */
static int integrate(struct estimate *e, const struct nrg_cpu_ticks *now, int64_t t_ns)
{
    int64_t busy = advance(e->ticks.busy, now->busy);
    int64_t total = busy + advance(e->ticks.idle, now->idle) + advance(e->ticks.steal, now->steal);
    int64_t dt_ns = t_ns - e->start_ns;
    bool settle = total >= (int64_t)e->threads * WINDOW_TICKS || (total && dt_ns >= LONG_WINDOW_NS);
    if (!total && dt_ns > STANDSTILL_NS)
        return -ENODATA;
    if (settle || total >= e->threads)
        e->utilisation = (double)busy / (double)total;
    double u = e->utilisation < 0 ? 0 : e->utilisation;
    for (size_t c = 0; c < e->n; c++) {
        double energy_uj = e->settled_uj[c] + power_w(e, (int)c, u) * (double)dt_ns * 1e-3;
        if (settle)
            e->settled_uj[c] = energy_uj;
        if ((int64_t)energy_uj > e->shown_uj[c])
            e->shown_uj[c] = (int64_t)energy_uj;
    }
    if (settle) {
        e->ticks = *now;
        e->start_ns = t_ns;
    }
    return 0;
}

static int estimate_read(void *state, struct nrg_sink *sink)
{
    struct estimate *e = state;
    struct nrg_cpu_ticks ticks;
    char text[NRG_PROC_STAT_HEAD];
    int64_t raw[CHANNELS];
    int64_t before = nrg_now_ns();
    ssize_t len = nrg_pread_text(e->stat_fd, text, sizeof text);
    int64_t after = nrg_now_ns();
    int64_t t_ns = before + (after - before) / 2;
    int rc = len < 0 ? (int)len : nrg_proc_stat_total(text, (size_t)len, &ticks);
    if (!rc && !e->started) {
        e->ticks = ticks;
        e->start_ns = t_ns;
        e->started = true;
    }
    if (!rc)
        rc = integrate(e, &ticks, t_ns);
    for (size_t c = 0; c < e->n; c++)
        raw[c] = rc || !e->wanted[c] ? NRG_MISSING : e->shown_uj[c];
    nrg_sink_row(sink, 0, t_ns, after - before, raw);
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

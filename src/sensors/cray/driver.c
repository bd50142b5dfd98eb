/*
 * The power management counters of HPE Cray nodes, /sys/cray/pm_counters: energy (J) and power (W)
 * of the node, its processors, its memory and each accelerator, as the blade's controller measures
 * them, ten times a second (raw_scan_hz), each with the controller's time stamp.
 *
 *   machine   the node. It contains all others and what nobody else sees: wide.
 *   cpu       all processors together: RAPL's packages are the same watts, finer, so that this is
 *             a part only where nothing else covers the processors.
 *   memory    a part, unless RAPL has dram-N.
 *   accel-N   a part, unless another driver sees GPUs: an MI250X is one accelerator here and two
 *             GPUs there, and nothing says which.
 * What is not a part is wide: shown beside the total, never added.
 *
 * `freshness` counts the scans. A read looks at it first, and when it is the one of the last read
 * there is nothing new and no row. It is looked at again after the counters: if it has changed they
 * may be of two scans, and are read again. Each counter is a group of its own, because each has its
 * own stamp (stamps.h).
 *
 * Refuses: accelerators that say 0 (there is none), lines of another form.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/cray/counter.h"
#include "sensors/drivers.h"
#include "sensors/files.h"
#include "sensors/fixes.h"
#include "sensors/stamps.h"

#define DIR_NAME       "/sys/cray/pm_counters"
#define MOST_FILES     64
#define MOST_ATTEMPTS  4
#define STAMP_WIDTH_NS 1000 /* stamps are whole microseconds */
#define SILENT_NS      (5 * NRG_NS_PER_S)
#define LINE_BYTES     96
#define USUAL_HZ       10

struct counter {
    int fd; /* -1: not wanted */
    bool energy;
    struct nrg_stamps stamps;
    int64_t value, stamp_us, seen_ns;
    int fault;
};

struct cray {
    int freshness_fd, generation_fd; /* -1: there is none */
    int64_t freshness, generation;   /* NRG_MISSING: not read yet */
    int64_t fresh_ns;                /* when the last new scan was seen */
    bool told_silent;
    size_t n;
    struct counter counters[MOST_FILES];
};

static void close_cray(void *state)
{
    struct cray *cray = state;
    for (size_t i = 0; i < cray->n; i++)
        if (cray->counters[i].fd >= 0)
            close(cray->counters[i].fd);
    if (cray->freshness_fd >= 0)
        close(cray->freshness_fd);
    if (cray->generation_fd >= 0)
        close(cray->generation_fd);
    free(cray);
}

static int open_cray(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                     struct nrg_error *err)
{
    struct cray *cray = nrg_calloc(1, sizeof *cray);
    if (!cray)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    cray->freshness = cray->generation = NRG_MISSING;
    cray->freshness_fd = nrg_root_open(&ctx->root, DIR_NAME "/freshness", O_RDONLY);
    cray->generation_fd = nrg_root_open(&ctx->root, DIR_NAME "/generation", O_RDONLY);
    cray->fresh_ns = nrg_now_ns();
    int rc = 0;
    for (size_t c = 0; !rc && c < found->n_channels && c < MOST_FILES; c++) {
        const struct nrg_channel *channel = &found->channels[c];
        struct counter *counter = &cray->counters[cray->n++];
        *counter = (struct counter){.fd = -1, .energy = channel->quantity == NRG_ENERGY};
        counter->stamps.most_delay_ns = NRG_NS_PER_S + 4 * channel->update_ns;
        if (!found->wanted[c])
            continue;
        counter->fd = nrg_root_open(&ctx->root, channel->source, O_RDONLY);
        if (counter->fd < 0)
            rc = nrg_fail(err, counter->fd, channel->source, "cannot open: %s",
                          strerror(-counter->fd));
    }
    if (rc)
        close_cray(cray);
    else
        *state = cray;
    return rc;
}

static int64_t read_count(int fd)
{
    char text[LINE_BYTES];
    ssize_t len = fd < 0 ? -1 : nrg_pread_text(fd, text, sizeof text);
    return len < 0 ? NRG_MISSING : nrg_cray_count(text, (size_t)len);
}

static void read_counter(struct counter *counter)
{
    char text[LINE_BYTES];
    ssize_t len = nrg_pread_text(counter->fd, text, sizeof text);
    counter->seen_ns = nrg_now_ns();
    counter->fault = len < 0 ? (int)len
                             : nrg_cray_parse(text, (size_t)len, counter->energy, &counter->value,
                                              &counter->stamp_us);
}

/* All counters, of one scan as far as `freshness` can tell. */
static void read_scan(struct cray *cray, int64_t freshness)
{
    for (int attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
        cray->freshness = freshness;
        for (size_t i = 0; i < cray->n; i++)
            if (cray->counters[i].fd >= 0)
                read_counter(&cray->counters[i]);
        freshness = read_count(cray->freshness_fd);
        if (freshness == cray->freshness)
            return;
    }
}

static void emit_counter(struct counter *counter, unsigned channel, struct nrg_sink *sink)
{
    struct nrg_stamped rows[2] = {
        {.t_ns = counter->seen_ns, .raw = counter->fault ? NRG_MISSING : counter->value}};
    size_t n = 1;
    if (!counter->fault && counter->stamp_us != NRG_MISSING)
        n = nrg_stamps_place(&counter->stamps, counter->stamp_us * 1000, counter->value,
                             counter->seen_ns, rows);
    for (size_t i = 0; i < n; i++)
        nrg_sink_row(sink, channel, rows[i].t_ns, STAMP_WIDTH_NS, &rows[i].raw);
    nrg_sink_fault(sink, channel, counter->fault);
}

static void emit(struct cray *cray, struct nrg_sink *sink)
{
    for (size_t i = 0; i < cray->n; i++)
        if (cray->counters[i].fd >= 0)
            emit_counter(&cray->counters[i], (unsigned)i, sink);
}

/* The file system says ENODEV for all counters when the kernel's module was removed. */
static bool is_gone(const struct cray *cray)
{
    size_t n = 0, gone = 0;
    for (size_t i = 0; i < cray->n; i++) {
        n += cray->counters[i].fd >= 0;
        gone += cray->counters[i].fd >= 0 && cray->counters[i].fault == -ENODEV;
    }
    return n && gone == n;
}

static void watch_scans(struct cray *cray, bool fresh, struct nrg_sink *sink)
{
    int64_t now = nrg_now_ns();
    if (fresh) {
        cray->fresh_ns = now;
        cray->told_silent = false;
    } else if (now - cray->fresh_ns > SILENT_NS && !cray->told_silent) {
        cray->told_silent = true;
        nrg_sink_note(sink, "silent", "the controller has made no new scan for 5 s");
    }
}

/* The controller counts changes of the node's power cap: runs before and after do not compare. */
static void watch_cap(struct cray *cray, struct nrg_sink *sink)
{
    int64_t generation = read_count(cray->generation_fd);
    if (cray->generation != NRG_MISSING && generation != NRG_MISSING &&
        generation != cray->generation)
        nrg_sink_note(sink, "capped", "the node's power cap was changed during the run");
    if (generation != NRG_MISSING)
        cray->generation = generation;
}

static int read_cray(void *state, struct nrg_sink *sink)
{
    struct cray *cray = state;
    int64_t freshness = read_count(cray->freshness_fd);
    bool fresh = freshness == NRG_MISSING || freshness != cray->freshness;
    watch_scans(cray, fresh, sink);
    if (!fresh)
        return 0;
    read_scan(cray, freshness);
    if (is_gone(cray))
        return -ENODEV;
    emit(cray, sink);
    watch_cap(cray, sink);
    return 0;
}

/* --- probe --- */

static bool has_name(const struct nrg_probe *probe, const char *prefix)
{
    for (size_t f = 0; f < probe->n_found; f++)
        for (size_t c = 0; c < probe->found[f].n_channels; c++)
            if (!probe->found[f].hidden &&
                !strncmp(probe->found[f].channels[c].name, prefix, strlen(prefix)))
                return true;
    return false;
}

/* What other drivers have found: see the head of the file. */
struct others {
    bool cpu, memory, gpus;
    char machine[48]; /* the node's name here */
};

/* A wide meter of the whole machine does not make a part superfluous. */
static bool cpu_is_a_part(const struct nrg_probe *probe)
{
    for (size_t f = 0; f < probe->n_found; f++)
        for (size_t c = 0; c < probe->found[f].n_channels; c++) {
            const struct nrg_channel *channel = &probe->found[f].channels[c];
            if (!probe->found[f].hidden && channel->covers_cpu && !channel->wide &&
                channel->provenance != NRG_ESTIMATED)
                return true;
        }
    return false;
}

static struct others survey(const struct nrg_probe *probe)
{
    struct others others = {.cpu = cpu_is_a_part(probe),
                            .memory = has_name(probe, "dram-"),
                            .gpus = has_name(probe, "gpu-"),
                            .machine = "machine"};
    if (nrg_find_channel(probe, "machine", NRG_QUANTITIES))
        nrg_copy(others.machine, sizeof others.machine, "machine-2");
    return others;
}

static void name_domain(const struct nrg_cray_file *file, const struct others *others, char *name,
                        size_t size)
{
    static const char *const names[] = {
        [NRG_CRAY_CPU] = "cpu", [NRG_CRAY_MEMORY] = "memory", [NRG_CRAY_ACCEL] = "accel"};
    if (file->domain == NRG_CRAY_NODE)
        nrg_copy(name, size, others->machine);
    else if (file->domain == NRG_CRAY_ACCEL || file->number >= 0)
        snprintf(name, size, "%s-%d", names[file->domain], file->number < 0 ? 0 : file->number);
    else
        nrg_copy(name, size, names[file->domain]);
}

static int add_counter(struct nrg_found *found, const char *path, const struct nrg_cray_file *file,
                       const struct others *others)
{
    const bool wide[] = {[NRG_CRAY_NODE] = true,
                         [NRG_CRAY_CPU] = others->cpu,
                         [NRG_CRAY_MEMORY] = others->memory,
                         [NRG_CRAY_ACCEL] = others->gpus};
    char name[48];
    name_domain(file, others, name, sizeof name);
    struct nrg_channel *channel = nrg_found_channel(
        found, name, file->energy ? NRG_ENERGY : NRG_POWER, file->energy ? NRG_COUNTER : NRG_GAUGE);
    if (!channel)
        return -ENOMEM;
    nrg_copy(channel->source, sizeof channel->source, path);
    channel->group = (unsigned)found->n_channels - 1;
    channel->scale = channel->resolution = 1;
    channel->wide = wide[file->domain];
    channel->covers_cpu = file->domain == NRG_CRAY_NODE || file->domain == NRG_CRAY_CPU;
    if (file->domain != NRG_CRAY_NODE)
        nrg_copy(channel->parent, sizeof channel->parent, others->machine);
    return 0;
}

/* cpu0 is in cpu, where both are there. */
static void nest_numbered(struct nrg_found *found)
{
    for (size_t c = 0; c < found->n_channels; c++)
        for (size_t k = 0; k < found->n_channels; k++) {
            const char *part = found->channels[c].name, *whole = found->channels[k].name;
            size_t len = strlen(whole);
            if (!strncmp(part, whole, len) && part[len] == '-' && strncmp(whole, "machine", 7) != 0)
                nrg_copy(found->channels[c].parent, sizeof found->channels[c].parent, whole);
        }
}

/* One file of the folder, if it is a counter that can be read. */
static int probe_file(struct nrg_probe *probe, size_t sensor, const char *name,
                      const struct others *others)
{
    struct nrg_cray_file file;
    char path[128], text[LINE_BYTES], fix[NRG_FIX_BYTES] = "";
    int64_t value = 0, stamp_us;
    if (strlen(name) > 40 || !nrg_cray_file(name, &file))
        return 0;
    snprintf(path, sizeof path, DIR_NAME "/%s", name);
    ssize_t len = nrg_root_read(&probe->ctx->root, path, text, sizeof text);
    int rc = len < 0 ? (int)len : nrg_cray_parse(text, (size_t)len, file.energy, &value, &stamp_us);
    if (!rc && !value && file.domain != NRG_CRAY_MEMORY)
        return 0;
    if (!rc)
        return add_counter(&probe->found[sensor], path, &file, others);
    if (rc == -EACCES)
        nrg_fix_file(path, fix);
    bool odd = rc == -EPROTO || rc == -ERANGE;
    return nrg_probe_unavailable(probe, name, fix, "%s: %s", path,
                                 odd ? "this is no reading of a counter" : strerror(-rc));
}

static int64_t update_ns(const struct nrg_root *root)
{
    char text[LINE_BYTES];
    ssize_t len = nrg_root_read(root, DIR_NAME "/raw_scan_hz", text, sizeof text);
    int64_t hz = len < 0 ? NRG_MISSING : nrg_cray_count(text, (size_t)len);
    return NRG_NS_PER_S / (hz >= 1 && hz <= 10000 ? hz : USUAL_HZ);
}

static int probe_cray(struct nrg_probe *probe, struct nrg_error *err)
{
    struct nrg_names names;
    (void)err;
    if (nrg_root_list(&probe->ctx->root, DIR_NAME, &names))
        return 0; /* no Cray: nothing that anybody would miss */
    struct others others = survey(probe);
    size_t sensor = probe->n_found;
    int rc = nrg_probe_found(probe, "Cray pm_counters") ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < names.n && probe->found[sensor].n_channels < MOST_FILES; i++)
        rc = probe_file(probe, sensor, names.items[i], &others);
    nrg_names_release(&names);
    if (rc)
        return rc;
    struct nrg_found *found = &probe->found[sensor];
    nest_numbered(found);
    for (size_t c = 0; c < found->n_channels; c++)
        found->channels[c].update_ns = update_ns(&probe->ctx->root);
    if (!found->n_channels)
        probe->n_found--; /* it owns nothing yet */
    return 0;
}

const struct nrg_driver nrg_driver_cray = {
    .name = "cray",
    .summary = "HPE Cray nodes: node, processors, memory and accelerators (pm_counters)",
    .probe = probe_cray,
    .open = open_cray,
    .read = read_cray,
    .close = close_cray,
};

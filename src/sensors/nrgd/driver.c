/*
 * Sensors that the system lets nrg not open, through nrgd (docs/nrgd.md). nrgd opens them and hands
 * over descriptors, which are then read here, with the calls that the sensor's own driver makes and
 * at their cost; nrgd is not asked again. What can't be handed over (a processor's registers, or
 * anything to a user outside of group nrg) nrgd reads, and is asked for the reading.
 *
 * It stands behind the drivers that read RAPL themselves, so that nrgd is used where these may not,
 * and before hwmon, whose chips mean different things where the processors are covered already.
 *
 * Sensors keep the names and channels that nrgd's drivers gave them; each is described as
 * "... (through nrgd)". Two structs: readings that are asked for may take long, descriptors do not.
 * Where nrgd has none to hand over just now it sends readings, and these are waited for only as
 * long as the other sensors can wait, and taken at the next call.
 *
 * Refuses: everything from a daemon of another version, with what to do; packets that make no
 * sense.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/drivers.h"
#include "sensors/fixes.h"
#include "sensors/nrgd/link.h"
#include "sensors/probe.h"

static const struct nrg_driver asked;

static int add_sensor(struct nrg_probe *probe, const struct nrg_wire_sensor *sensor)
{
    struct nrg_found *found = nrg_probe_found(probe, sensor->name);
    if (!found)
        return -ENOMEM;
    if (sensor->how == NRG_HOW_ASK)
        found->driver = &asked;
    nrg_copy(found->locator, sizeof found->locator, sensor->name);
    nrg_copy_clean(found->sensor, sizeof found->sensor, sensor->name, strlen(sensor->name));
    for (size_t c = 0; c < sensor->n_channels; c++) {
        struct nrg_channel *channel = nrg_found_channel(found, "", NRG_ENERGY, NRG_COUNTER);
        if (!channel)
            return -ENOMEM;
        nrg_wire_get_channel(&sensor->channels[c], channel);
        char source[sizeof channel->source];
        snprintf(source, sizeof source, "%.100s (through nrgd)", channel->source);
        nrg_copy(channel->source, sizeof channel->source, source);
    }
    return 0;
}

static int ask_sensor(struct nrg_nrgd_link *link, uint32_t index, union nrg_wire_packet *answer,
                      struct nrg_error *err)
{
    int rc =
        nrg_nrgd_ask(link, NRG_WIRE_SENSOR, index, 0, NRG_WIRE_SENSOR, answer, NULL, NULL, err);
    if (!rc && (rc = nrg_wire_check_sensor(&answer->sensor)))
        nrg_fail(err, rc, NULL, "nrgd describes a sensor in a way that makes no sense");
    return rc;
}

static int list_sensors(struct nrg_probe *probe, struct nrg_nrgd_link *link, struct nrg_error *why)
{
    union nrg_wire_packet answer;
    int rc = 0;
    for (uint32_t i = 0; !rc && i < link->welcome.n_sensors; i++) {
        rc = ask_sensor(link, i, &answer, why);
        if (!rc)
            rc = add_sensor(probe, &answer.sensor);
    }
    return rc;
}

/*
 * Opening each sensor is a conversation of its own. Together they may take what the first one has
 * left of the time for all, so each is told its part; it stands before the sensor's number and
 * name.
 */
static void share_patience(struct nrg_probe *probe, size_t first, const struct nrg_nrgd_link *link)
{
    int64_t left_ns = link->deadline_ns - nrg_now_ns();
    for (size_t f = first; f < probe->n_found; f++) {
        struct nrg_found *found = &probe->found[f];
        char name[sizeof((struct nrg_wire_sensor *)NULL)->name];
        nrg_copy(name, sizeof name, found->locator);
        snprintf(found->locator, sizeof found->locator, "%" PRId64 " %zu %s",
                 left_ns / (int64_t)(probe->n_found - first), f - first, name);
    }
}

static int probe_nrgd(struct nrg_probe *probe, struct nrg_error *err)
{
    const char *path = nrg_nrgd_socket();
    char fix[NRG_FIX_BYTES];
    struct nrg_nrgd_link link;
    struct nrg_error why;
    if (!path[0] || !nrg_root_is_live(&probe->ctx->root))
        return 0; /* it shows this machine, not a captured one */
    int rc = nrg_nrgd_connect(&link, path, NRG_NRGD_PATIENCE_NS, &why);
    if (rc == -ENOENT)
        return 0;
    if (rc)
        return nrg_probe_unavailable(
            probe, "nrgd",
            rc == -EPROTONOSUPPORT ? NULL : nrg_fixes(&probe->ctx->root, NRG_DAEMON_SILENT, fix),
            "%s: %s", path, why.what);
    bool coarse = link.welcome.view == NRG_VIEW_COARSE;
    size_t first = probe->n_found;
    rc = list_sensors(probe, &link, &why);
    nrg_nrgd_close(&link);
    share_patience(probe, first, &link);
    if (rc == -ENOMEM)
        return rc;
    if (rc) { /* all or nothing: what can't be opened later must not stand in an estimate's place */
        nrg_probe_forget(probe, first);
        return nrg_probe_unavailable(probe, "nrgd", NULL, "%s: %s", path, why.what);
    }
    if (!coarse || first == probe->n_found)
        return 0;
    return nrg_probe_unavailable(probe, "nrgd at full rate",
                                 nrg_fixes(&probe->ctx->root, NRG_DAEMON_COARSE, fix),
                                 "you are not in group nrg: one reading a second, in whole joules");
}

/* An opened sensor: descriptors, or a connection on which readings are asked for. */
struct remote {
    struct nrg_nrgd_link link; /* fd -1: descriptors are read */
    enum nrg_wire_how how;
    size_t n;
    int fd[NRG_WIRE_CHANNELS]; /* -1: not wanted */
    size_t n_ended;            /* of the last reading */
    int64_t last_t_ns;         /* of the last row: nrgd may answer with the same one again */
    int64_t epoch;             /* of counters that began when they were opened; 0: they did not */
    int64_t asked_ns;          /* when the reading that is waited for was asked for; 0: none is */
};

static void remote_close(void *state)
{
    struct remote *r = state;
    for (size_t c = 0; c < r->n; c++)
        if (r->fd[c] >= 0)
            close(r->fd[c]);
    nrg_nrgd_close(&r->link);
    free(r);
}

/* Its numbers mean what they did when it was probed: the views have different steps. */
static bool is_same_view(const struct nrg_wire_sensor *sensor, const struct nrg_found *found)
{
    bool same = sensor->n_channels == found->n_channels;
    for (size_t c = 0; same && c < found->n_channels; c++)
        same = !memcmp(&sensor->channels[c].scale, &found->channels[c].scale, sizeof(double));
    return same;
}

/* The number that the sensor has on this connection: most likely that which it had. */
static int find_sensor(struct remote *r, const struct nrg_found *found, uint32_t *index,
                       struct nrg_error *err)
{
    union nrg_wire_packet answer;
    char *name;
    strtoll(found->locator, &name, 10);
    uint32_t likely = (uint32_t)strtoul(name, &name, 10), n = r->link.welcome.n_sensors;
    for (uint32_t i = 0; i < n; i++) {
        *index = likely >= n || i > likely ? i : i == 0 ? likely : i - 1;
        int rc = ask_sensor(&r->link, *index, &answer, err);
        if (rc)
            return rc;
        if (*name && !strcmp(answer.sensor.name, name + 1))
            return is_same_view(&answer.sensor, found)
                       ? 0
                       : nrg_fail(err, -ENODEV, found->sensor,
                                  "nrgd gives another view than a moment ago");
    }
    return nrg_fail(err, -ENODEV, found->sensor, "nrgd does not have it any more");
}

/* Only what is read like a counter's file may stand for one. */
static bool can_be_read(enum nrg_wire_how how, int fd)
{
    struct stat st;
    return !fstat(fd, &st) && (how == NRG_HOW_NUMBER ? S_ISREG(st.st_mode) : !S_ISFIFO(st.st_mode));
}

static int take_opened(struct remote *r, const struct nrg_context *ctx,
                       const struct nrg_found *found, const struct nrg_wire_opened *opened,
                       const int *fds, size_t n_fds, struct nrg_error *err)
{
    size_t wanted = 0, next = 0;
    bool sane = opened->how <= NRG_HOW_COUNT && opened->n == n_fds;
    r->how = opened->how;
    for (size_t c = 0; c < found->n_channels; c++)
        wanted += found->wanted[c];
    sane &= n_fds == (opened->how == NRG_HOW_ASK ? 0 : wanted);
    for (size_t i = 0; i < n_fds; i++)
        sane = sane && can_be_read(r->how, fds[i]);
    for (size_t c = 0; sane && n_fds && c < found->n_channels; c++)
        if (found->wanted[c])
            r->fd[c] = nrg_root_lift(&ctx->root, fds[next++]);
    for (size_t i = next; i < n_fds; i++)
        close(fds[i]);
    if (!sane)
        return nrg_fail(err, -EPROTO, found->sensor, "nrgd hands over something else than asked");
    if (r->how != NRG_HOW_ASK)
        nrg_nrgd_close(&r->link); /* nothing more to ask */
    return 0;
}

static int open_remote(struct remote *r, const struct nrg_context *ctx,
                       const struct nrg_found *found, struct nrg_error *err)
{
    union nrg_wire_packet answer;
    int fds[NRG_WIRE_CHANNELS];
    size_t n_fds = 0;
    uint32_t wanted = 0, index = 0;
    for (size_t c = 0; c < found->n_channels; c++)
        wanted |= (uint32_t)found->wanted[c] << c;
    int rc = find_sensor(r, found, &index, err);
    if (!rc)
        rc = nrg_nrgd_ask(&r->link, NRG_WIRE_OPEN, index, wanted, NRG_WIRE_OPENED, &answer, fds,
                          &n_fds, err);
    return rc ? rc : take_opened(r, ctx, found, &answer.opened, fds, n_fds, err);
}

/* A perf event counts from its opening on. So may an old nrgd's coarse view, which does not say. */
static int64_t own_epoch(const struct remote *r)
{
    bool unsaid = r->link.version < 2 && r->link.welcome.view == NRG_VIEW_COARSE;
    bool begins = r->how == NRG_HOW_COUNT || (r->how == NRG_HOW_ASK && unsaid);
    return begins ? nrg_now_ns() : 0;
}

static int remote_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                       struct nrg_error *err)
{
    if (found->n_channels > NRG_WIRE_CHANNELS)
        return nrg_fail(err, -EINVAL, found->sensor, "more channels than nrgd can have");
    struct remote *r = calloc(1, sizeof *r);
    if (!r)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    r->n = found->n_channels;
    for (size_t c = 0; c < r->n; c++)
        r->fd[c] = -1;
    int64_t patience_ns = strtoll(found->locator, NULL, 10);
    int rc = nrg_nrgd_connect(&r->link, nrg_nrgd_socket(), patience_ns, err);
    if (!rc)
        rc = open_remote(r, ctx, found, err);
    if (rc) {
        remote_close(r);
        return rc;
    }
    r->epoch = own_epoch(r);
    *state = r;
    return 0;
}

static int read_descriptor(void *state, size_t c, int64_t *raw)
{
    struct remote *r = state;
    if (r->fd[c] < 0)
        return 0;
    if (r->how == NRG_HOW_NUMBER) {
        int rc = nrg_pread_i64(r->fd[c], raw);
        r->n_ended += rc == -ENODEV;
        return rc;
    }
    uint64_t count;
    ssize_t n = read(r->fd[c], &count, sizeof count);
    r->n_ended += n == 0; /* the event's CPU went away */
    if (n != (ssize_t)sizeof count)
        return n < 0 ? -errno : -ENODATA;
    *raw = (int64_t)(count & INT64_MAX);
    return 0;
}

static int read_descriptors(struct remote *r, struct nrg_sink *sink)
{
    size_t wanted = 0;
    r->n_ended = 0;
    nrg_sink_epoch(sink, r->epoch);
    nrg_sink_poll(sink, 0, 0, r->n, read_descriptor, r);
    for (size_t c = 0; c < r->n; c++)
        wanted += r->fd[c] >= 0;
    return wanted && r->n_ended == wanted ? -ENODEV : 0;
}

/* A reading that is late is waited for at the next call, not asked for again. */
static int await_row(struct remote *r, int64_t wait_ns, union nrg_wire_packet *answer)
{
    int64_t now_ns = nrg_now_ns();
    if (!r->asked_ns && nrg_nrgd_request(&r->link, NRG_WIRE_READ, 0, 0, NULL))
        return -ENODEV;
    if (!r->asked_ns)
        r->asked_ns = now_ns;
    r->link.deadline_ns = now_ns + wait_ns;
    int rc = nrg_nrgd_answer(&r->link, NRG_WIRE_ROW, answer, NULL, NULL, NULL);
    if (rc == -ETIMEDOUT && now_ns - r->asked_ns < NRG_NRGD_PATIENCE_NS)
        return rc;
    r->asked_ns = 0;
    return rc ? -ENODEV : 0;
}

static int read_by_asking(struct remote *r, struct nrg_sink *sink, int64_t wait_ns)
{
    union nrg_wire_packet answer;
    int rc = await_row(r, wait_ns, &answer);
    if (rc)
        return rc;
    const struct nrg_wire_row *row = &answer.row;
    if (row->t_ns <= r->last_t_ns || row->width_ns < 0)
        return 0;
    r->last_t_ns = row->t_ns;
    nrg_sink_epoch(sink, r->epoch ? r->epoch : row->epoch);
    nrg_sink_row(sink, 0, row->t_ns, row->width_ns, row->raw);
    for (size_t c = 0; c < r->n; c++)
        nrg_sink_fault(sink, (unsigned)c, row->error[c] < 0 ? row->error[c] : 0);
    return 0;
}

/* nrgd may send readings where it hands over descriptors at other times, and the reverse. */
static int read_remote(struct remote *r, struct nrg_sink *sink, int64_t wait_ns)
{
    return r->how == NRG_HOW_ASK ? read_by_asking(r, sink, wait_ns) : read_descriptors(r, sink);
}

/* The thread has other sensors to read. */
static int read_among_others(void *state, struct nrg_sink *sink)
{
    return read_remote(state, sink, 20 * NRG_NS_PER_MS);
}

static int read_alone(void *state, struct nrg_sink *sink)
{
    return read_remote(state, sink, NRG_NS_PER_S);
}

#define COMMON                                                                                     \
    .name = "nrgd",                                                                                \
    .summary = "what nrgd may read and nrg may not: RAPL, registers, closed files",                \
    .probe = probe_nrgd, .open = remote_open, .close = remote_close

const struct nrg_driver nrg_driver_nrgd = {COMMON, .read = read_among_others};
static const struct nrg_driver asked = {COMMON, .read = read_alone,
                                        .flags = NRG_MAY_BLOCK | NRG_MAY_BE_SILENT};

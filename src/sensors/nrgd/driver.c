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
 *
 * Refuses: everything from a daemon of another version, with what to do; packets that make no
 * sense.
 */
#include <errno.h>
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

static int probe_nrgd(struct nrg_probe *probe, struct nrg_error *err)
{
    const char *path = nrg_nrgd_socket();
    char fix[NRG_FIX_BYTES];
    struct nrg_nrgd_link link;
    struct nrg_error why;
    if (!path[0] || !nrg_root_is_live(&probe->ctx->root))
        return 0; /* it shows this machine, not a captured one */
    int rc = nrg_nrgd_connect(&link, path, &why);
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
    if (rc == -ENOMEM)
        return rc;
    if (rc)
        return nrg_probe_unavailable(probe, "nrgd", NULL, "%s: %s", path, why.what);
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

/* The number that the sensor has on this connection. */
static int find_sensor(struct remote *r, const struct nrg_found *found, uint32_t *index,
                       struct nrg_error *err)
{
    union nrg_wire_packet answer;
    for (uint32_t i = 0; i < r->link.welcome.n_sensors; i++) {
        int rc = ask_sensor(&r->link, i, &answer, err);
        if (rc)
            return rc;
        if (!strcmp(answer.sensor.name, found->locator) &&
            answer.sensor.n_channels == found->n_channels) {
            *index = i;
            return 0;
        }
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
    int rc = nrg_nrgd_connect(&r->link, nrg_nrgd_socket(), err);
    if (!rc)
        rc = open_remote(r, ctx, found, err);
    if (!rc && (r->how == NRG_HOW_ASK) != (found->driver == &asked))
        rc = nrg_fail(err, -ENODEV, found->sensor, "nrgd gives another view than a moment ago");
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

static int read_descriptors(void *state, struct nrg_sink *sink)
{
    struct remote *r = state;
    size_t wanted = 0;
    r->n_ended = 0;
    nrg_sink_epoch(sink, r->epoch);
    nrg_sink_poll(sink, 0, 0, r->n, read_descriptor, r);
    for (size_t c = 0; c < r->n; c++)
        wanted += r->fd[c] >= 0;
    return wanted && r->n_ended == wanted ? -ENODEV : 0;
}

static int read_by_asking(void *state, struct nrg_sink *sink)
{
    struct remote *r = state;
    union nrg_wire_packet answer;
    int rc = nrg_nrgd_ask(&r->link, NRG_WIRE_READ, 0, 0, NRG_WIRE_ROW, &answer, NULL, NULL, NULL);
    if (rc) /* also when it is late: its answer would be taken for that to the next request */
        return -ENODEV;
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

#define COMMON                                                                                     \
    .name = "nrgd",                                                                                \
    .summary = "what nrgd may read and nrg may not: RAPL, registers, closed files",                \
    .probe = probe_nrgd, .open = remote_open, .close = remote_close

const struct nrg_driver nrg_driver_nrgd = {COMMON, .read = read_descriptors};
static const struct nrg_driver asked = {COMMON, .read = read_by_asking,
                                        .flags = NRG_MAY_BLOCK | NRG_MAY_BE_SILENT};

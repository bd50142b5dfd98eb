/*
 * What a whole machine draws, as its management controller (BMC) measures it, over the network by
 * Redfish. Asked for by name: --meter redfish://user@bmc?password-file=FILE. One channel,
 * `machine`, wide, as with dcmi, which is the same figure from inside.
 *
 * Probe walks from the service's root to the first chassis that can be a server and has a power,
 * and from there to the Sensor behind it, if there is one: only Sensors have the controller's time
 * stamp. Or the user names the resource. The reader asks that one resource, at its own pace, on a
 * thread of its own (NRG_MAY_BLOCK): a controller that hangs holds up nobody else.
 *
 * The time of a reading is its stamp (stamps.h), or the middle of the exchange where there is none,
 * or where the stamp stands still while the value changes.
 *
 * Refuses: certificates that don't verify, redirections, what is no JSON, documents of more than
 * MOST_BYTES. Basic authentication, over TLS alone. Nothing of user and password is kept.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/fetch.h"
#include "sensors/drivers.h"
#include "sensors/redfish/document.h"
#include "sensors/redfish/settings.h"
#include "sensors/stamps.h"

#define MOST_BYTES   (256 * 1024)
#define TIMEOUT_MS   4000
#define CONNECT_MS   2000
#define MOST_STEPS   4    /* root, collection, chassis, reading */
#define SCALE_W      1e-3 /* raw values are mW */
#define PAUSE_NS     (10 * NRG_NS_PER_S)
#define FEW_FAILURES 3 /* after these in a row it is asked less often */

struct redfish {
    struct nrg_redfish_settings settings;
    struct nrg_fetch *fetch;
    struct nrg_redfish_document document; /* the last one */
    char url[512];
    int64_t next_ns;
    struct nrg_stamps stamps;
    bool no_stamps; /* they stand still */
    int64_t last_raw;
    unsigned failures;
};

static void close_redfish(void *state)
{
    struct redfish *r = state;
    if (!r)
        return;
    nrg_fetch_free(r->fetch);
    explicit_bzero(r->settings.user, sizeof r->settings.user);
    explicit_bzero(r->settings.password, sizeof r->settings.password);
    free(r);
}

static int refuse(const struct redfish *r, long status, struct nrg_error *err)
{
    if (status == 401 || status == 403)
        return nrg_fail(
            err, -EACCES, r->url, "the BMC refuses %s%s (%ld): password-file= names a file",
            r->settings.user[0] ? "user " : "access without a user", r->settings.user, status);
    if (status >= 300 && status < 400)
        return nrg_fail(err, -EPROTO, r->url, "sends us elsewhere (%ld), which is not followed",
                        status);
    return nrg_fail(err, status == 404 ? -ENOENT : -EPROTO, r->url, "answers %ld", status);
}

/* One document into r->document. */
static int get(struct redfish *r, const char *path, struct nrg_error *err)
{
    static const char *const headers[] = {"Accept: application/json", "OData-Version: 4.0", NULL};
    struct nrg_fetch_answer answer;
    snprintf(r->url, sizeof r->url, "%s%s", r->settings.base, path);
    int rc = nrg_fetch_get(r->fetch, r->url, headers, &answer, err);
    if (rc)
        return rc;
    if (answer.status != 200)
        return refuse(r, answer.status, err);
    rc = nrg_redfish_parse(answer.body, answer.len, &r->document);
    return rc ? nrg_fail(err, rc, r->url, "%s",
                         rc == -ENOMEM ? "out of memory" : "this is no document of Redfish")
              : 0;
}

static int start(struct redfish **out, const char *text, struct nrg_error *err)
{
    struct redfish *r = *out = nrg_calloc(1, sizeof *r);
    struct nrg_uri *uri = nrg_calloc(1, sizeof *uri);
    int rc =
        r && uri ? nrg_uri_parse(uri, text, err) : nrg_fail(err, -ENOMEM, NULL, "out of memory");
    if (!rc)
        rc = nrg_redfish_settings_read(uri, &r->settings, err);
    free(uri);
    if (rc)
        return rc;
    struct nrg_redfish_settings *s = &r->settings;
    const struct nrg_fetch_options options = {.max_bytes = MOST_BYTES,
                                              .timeout_ms = TIMEOUT_MS,
                                              .connect_ms = CONNECT_MS,
                                              .ca_file = s->cafile[0] ? s->cafile : NULL,
                                              .user = s->user[0] ? s->user : NULL,
                                              .password = s->password};
    return nrg_fetch_new(&options, &r->fetch, err);
}

/* Goes from a chassis to its power. 0 with `path` of it and r->document; -ENOENT: it has none. */
static int find_power(struct redfish *r, char *path, struct nrg_error *err)
{
    char ways[2][NRG_REDFISH_PATH];
    nrg_copy(ways[0], sizeof ways[0], r->document.environment);
    nrg_copy(ways[1], sizeof ways[1], r->document.power);
    for (size_t i = 0; i < 2; i++) {
        if (!ways[i][0])
            continue;
        int rc = get(r, ways[i], err);
        if (rc && rc != -ENOENT)
            return rc;
        if (!rc && r->document.error != -ENOENT) {
            nrg_copy(path, NRG_REDFISH_PATH, ways[i]);
            return 0;
        }
    }
    return -ENOENT;
}

/* The first chassis that can be a server and has a power. */
static int find_machine(struct redfish *r, char *path, struct nrg_error *err)
{
    struct nrg_redfish_document *list = nrg_calloc(1, sizeof *list);
    if (!list)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    *list = r->document;
    int rc = -ENOENT;
    for (size_t i = 0; rc == -ENOENT && i < list->n_members; i++) {
        rc = get(r, list->members[i], err);
        if (!rc)
            rc = r->document.is_machine ? find_power(r, path, err) : -ENOENT;
    }
    free(list);
    return rc == -ENOENT ? nrg_fail(err, rc, r->settings.base,
                                    "no chassis of it has a power: name the resource, as "
                                    "redfish://host/redfish/v1/Chassis/1/Power")
                         : rc;
}

/* From what the user named to the resource with the power, whose path is then in `path`. */
static int walk(struct redfish *r, char *path, struct nrg_error *err)
{
    int rc = get(r, path, err);
    for (int step = 0; !rc && r->document.error == -ENOENT && step < MOST_STEPS; step++) {
        const struct nrg_redfish_document *d = &r->document;
        if (d->n_members)
            return find_machine(r, path, err);
        if (d->environment[0] || d->power[0]) {
            rc = find_power(r, path, err);
            return rc == -ENOENT ? nrg_fail(err, rc, r->settings.base, "this chassis has no power")
                                 : rc;
        }
        if (!d->chassis[0])
            return nrg_fail(err, -ENOENT, r->url, "neither a power nor a chassis is there");
        nrg_copy(path, NRG_REDFISH_PATH, d->chassis);
        rc = get(r, path, err);
    }
    return rc;
}

/* A Sensor behind a power has a time stamp; one that can't be read is not needed. */
static int prefer_sensor(struct redfish *r, char *path, struct nrg_error *err)
{
    struct nrg_error why;
    char source[NRG_REDFISH_PATH];
    nrg_copy(source, sizeof source, r->document.source);
    if (source[0] && !get(r, source, &why) && !r->document.error &&
        r->document.stamp_ns != NRG_MISSING) {
        nrg_copy(path, NRG_REDFISH_PATH, source);
        return 0;
    }
    return source[0] ? get(r, path, err) : 0;
}

static const char *reason(int error)
{
    return error == -ENODATA  ? "the BMC does not measure power now, or says 0 W"
           : error == -ERANGE ? "the BMC's power is impossible"
                              : "the document has no power";
}

static int add_machine(struct nrg_probe *probe, const struct redfish *r, const char *path)
{
    char sensor[64];
    snprintf(sensor, sizeof sensor, "Redfish %.50s", r->settings.base + strlen("https://"));
    struct nrg_found *found = nrg_probe_found(probe, sensor);
    struct nrg_channel *channel =
        found ? nrg_found_channel(found, "machine", NRG_POWER, NRG_GAUGE) : NULL;
    if (!channel)
        return -ENOMEM;
    /* The resource that was found, then the user's own text: opening walks no more. */
    snprintf(found->locator, sizeof found->locator, "%s redfish:%.700s", path, probe->argument);
    snprintf(channel->source, sizeof channel->source, "%.60s%.60s", r->settings.base, path);
    found->required = true;
    channel->scale = SCALE_W;
    channel->update_ns = r->settings.period_ns;
    channel->wide = channel->covers_cpu = true;
    return 0;
}

static int probe_redfish(struct nrg_probe *probe, struct nrg_error *err)
{
    char text[NRG_URI_TEXT], path[NRG_REDFISH_PATH];
    struct redfish *r = NULL;
    int length = snprintf(text, sizeof text, "redfish:%s", probe->argument ? probe->argument : "");
    if (length >= 700)
        return nrg_fail(err, -EINVAL, "redfish", "the URI is too long");
    int rc = start(&r, text, err);
    if (!rc) {
        nrg_copy(path, sizeof path, r->settings.path);
        rc = walk(r, path, err);
    }
    if (!rc)
        rc = prefer_sensor(r, path, err);
    if (!rc && r->document.error)
        rc = nrg_fail(err, r->document.error, r->url, "%s", reason(r->document.error));
    if (!rc && add_machine(probe, r, path))
        rc = nrg_fail(err, -ENOMEM, NULL, "out of memory");
    close_redfish(r);
    return rc;
}

static int open_redfish(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                        struct nrg_error *err)
{
    struct redfish *r = NULL;
    const char *blank = strchr(found->locator, ' ');
    (void)ctx;
    if (!blank)
        return nrg_fail(err, -EINVAL, found->sensor, "bad locator");
    int rc = start(&r, blank + 1, err);
    if (rc) {
        close_redfish(r);
        return rc;
    }
    snprintf(r->settings.path, sizeof r->settings.path, "%.*s", (int)(blank - found->locator),
             found->locator);
    r->stamps.most_delay_ns = PAUSE_NS + 2 * r->settings.period_ns;
    r->last_raw = NRG_MISSING;
    *state = r;
    return 0;
}

/* Rows of a reading that was seen at t_ns. */
static void emit(struct redfish *r, int64_t raw, int64_t t_ns, int64_t width_ns,
                 struct nrg_sink *sink)
{
    const struct nrg_redfish_document *d = &r->document;
    struct nrg_stamped rows[2] = {{.t_ns = t_ns, .raw = raw}};
    size_t n = 1;
    r->no_stamps |= r->stamps.n && d->stamp_ns == r->stamps.last.stamp_ns && raw != r->last_raw;
    r->last_raw = raw;
    if (d->stamp_ns != NRG_MISSING && !r->no_stamps)
        n = nrg_stamps_place(&r->stamps, d->stamp_ns, raw, t_ns + width_ns / 2, rows);
    for (size_t i = 0; i < n; i++)
        nrg_sink_row(sink, 0, rows[i].t_ns, width_ns, &rows[i].raw);
}

/* The first failure is said, and the first reading after it. */
static void note_state(struct redfish *r, int rc, const struct nrg_error *err,
                       struct nrg_sink *sink)
{
    if (rc && !r->failures++)
        nrg_sink_note(sink, "gone", err->what);
    if (!rc && r->failures) {
        r->failures = 0;
        nrg_sink_note(sink, "back", "the BMC answers again");
    }
}

static int read_redfish(void *state, struct nrg_sink *sink)
{
    struct redfish *r = state;
    struct nrg_error err = {0};
    int64_t before = nrg_now_ns();
    if (before < r->next_ns)
        return 0;
    int rc = get(r, r->settings.path, &err);
    if (!rc && r->document.error)
        rc = nrg_fail(&err, r->document.error, r->url, "%s", reason(r->document.error));
    int64_t after = nrg_now_ns(), missing = NRG_MISSING, t_ns = before + (after - before) / 2;
    note_state(r, rc, &err, sink);
    r->next_ns = after + (r->failures > FEW_FAILURES ? PAUSE_NS : r->settings.period_ns);
    if (rc)
        nrg_sink_row(sink, 0, t_ns, after - before, &missing);
    else
        emit(r, llround(r->document.watts / SCALE_W), t_ns, after - before, sink);
    nrg_sink_fault(sink, 0, rc);
    return 0;
}

const struct nrg_driver nrg_driver_redfish = {
    .name = "redfish",
    .summary = "a machine's power as its management controller (BMC) says it over the network",
    .flags = NRG_MAY_BLOCK | NRG_ON_REQUEST,
    .probe = probe_redfish,
    .open = open_redfish,
    .read = read_redfish,
    .close = close_redfish,
};

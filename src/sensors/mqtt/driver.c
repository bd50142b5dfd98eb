/*
 * Driver of meters that speak MQTT: plugs (Tasmota, Shelly), emonhub, anything with a number.
 *
 *   mqtt://[user@]host[:port]/topic?...      mqtts:// the same over TLS
 *
 * Messages are decoded on the library's thread (mqtt/payload.h) and come here through a pipe. One
 * message fits PIPE_BUF, so the kernel writes it as a whole or, when the pipe is full, not at all:
 * then it is dropped and counted, and neither side ever waits for the other. The time of a reading
 * is its arrival, because plugs tell whole seconds at best. A message that the broker retained from
 * earlier counts only when its own time says that it is new.
 *
 * The library connects again by itself; a lost connection is noted once, and leaves a gap.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/drivers.h"
#include "sensors/mqtt/payload.h"
#include "sensors/mqtt/settings.h"

#define WAIT_NS       (5 * NRG_NS_PER_S)  /* for the broker's answer */
#define FIRST_WAIT_NS (30 * NRG_NS_PER_S) /* for the first message, with no period given */
#define LEAST_WAIT_NS (5 * NRG_NS_PER_S)
#define PIPE_BYTES    (256 * 1024) /* room for some hundred messages */
#define MAX_MESSAGES  256          /* that a read takes at most */
#define SHOWN_BYTES   200          /* of a message, for people */

/* What the library's thread sends to the one that reads. */
struct event {
    enum { READING, REFUSED, LOST, CONNECTED } kind;
    int64_t arrived_ns;
    size_t bytes;
    struct nrg_mqtt_reading reading;
    char text[SHOWN_BYTES]; /* "topic payload", or why a connection was lost */
};
_Static_assert(sizeof(struct event) <= PIPE_BUF, "written as a whole");

struct mqtt {
    struct nrg_meter_monitor monitor; /* first, as meter/driver.h says */
    const struct nrg_found *found;
    struct nrg_mqtt_settings settings;
    struct nrg_mqtt_session *session;
    int events[2]; /* the pipe: the end to read, the end to write */
    atomic_uint_fast64_t dropped;
    int poll_fd, timer_fd;
    struct nrg_sink *sink;             /* during read */
    double together[NRG_METER_FIELDS]; /* powers that are added up, until all have come */
    bool sums, silent, gone;           /* silent, gone: noted, and not over yet */
    int64_t heard_ns, last_t_ns, alarm_ns;
    uint64_t retained;
};

/* Learns the topics while we listen, on the library's thread. */
static void on_topic(void *arg, const char *topic, const void *payload, size_t len, bool retained,
                     int64_t arrived_ns)
{
    nrg_mqtt_plan_learn(arg, topic);
}

static int listen_for_topics(struct nrg_mqtt_settings *s, struct nrg_error *err)
{
    const struct nrg_mqtt_calls calls = {.message = on_topic, .arg = &s->plan};
    struct nrg_mqtt_session *session;
    int rc = nrg_mqtt_start(&session, &s->connection, &calls, WAIT_NS, err);
    if (rc)
        return rc;
    struct timespec t = {s->listen_ns / NRG_NS_PER_S, s->listen_ns % NRG_NS_PER_S};
    nanosleep(&t, NULL);
    nrg_mqtt_stop(session);
    if (!s->plan.n_fields)
        return nrg_fail(err, -ENODATA, s->connection.topic,
                        "nothing with a unit was heard in %.3g s: name what is wanted, such as "
                        "fields=power1:W,Vrms:V (or wait longer, listen=60s)",
                        (double)s->listen_ns / 1e9);
    return 0;
}

/* Makes the learnt fields part of the URI, so that open finds the same ones. */
static int set_locator(struct nrg_found *found, const struct nrg_uri *uri,
                       const struct nrg_mqtt_settings *s, bool learnt, struct nrg_error *err)
{
    char fields[512] = "";
    const char *key = !learnt ? "" : uri->n_query ? "&fields=" : "?fields=";
    if (learnt)
        nrg_mqtt_plan_text(&s->plan, fields, sizeof fields);
    int n = snprintf(found->locator, sizeof found->locator, "%s%s%s", uri->given, key, fields);
    return n < (int)sizeof found->locator
               ? 0
               : nrg_fail(err, -EINVAL, "--meter", "longer than %zu bytes with its fields",
                          sizeof found->locator - 1);
}

static int add_found(struct nrg_probe *probe, struct nrg_uri *uri, struct nrg_mqtt_settings *s,
                     struct nrg_error *err)
{
    char sensor[64];
    bool learnt = !s->plan.n_fields;
    int rc = nrg_uri_finish(uri, err);
    if (!rc)
        rc = nrg_mqtt_available(err);
    if (!rc && learnt)
        rc = listen_for_topics(s, err);
    if (rc)
        return rc;
    snprintf(sensor, sizeof sensor, "%.16s/%.44s", s->connection.host, s->connection.topic);
    struct nrg_found *found = nrg_probe_found(probe, sensor);
    if (!found)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    found->required = true;
    rc = set_locator(found, uri, s, learnt, err);
    return rc ? rc
              : nrg_meter_channels(found, uri, s->plan.fields, s->plan.n_fields, s->period_ns, err);
}

static int probe_mqtt(struct nrg_probe *probe, struct nrg_error *err)
{
    struct nrg_uri *uri = malloc(sizeof *uri);
    struct nrg_mqtt_settings *s = malloc(sizeof *s);
    int rc = uri && s ? nrg_uri_join(uri, probe->driver->name, probe->argument, err)
                      : nrg_fail(err, -ENOMEM, NULL, "out of memory");
    if (!rc)
        rc = nrg_mqtt_settings_read(uri, s, err);
    if (!rc)
        nrg_uri_text(uri, "covers"); /* nrg_meter_channels reads it later */
    if (!rc)
        rc = add_found(probe, uri, s, err);
    free(uri);
    free(s);
    return rc;
}

static void send_event(struct mqtt *m, const struct event *event)
{
    if (write(m->events[1], event, sizeof *event) < 0)
        atomic_fetch_add(&m->dropped, 1);
}

/* This one and the next two run on the library's thread. */
static void on_message(void *arg, const char *topic, const void *payload, size_t len, bool retained,
                       int64_t arrived_ns)
{
    struct mqtt *m = arg;
    struct event event = {.arrived_ns = arrived_ns, .bytes = len};
    const struct nrg_mqtt_message message = {topic, payload, len, retained, arrived_ns};
    event.kind = nrg_mqtt_decode(&m->settings.plan, &message, &event.reading) ? READING : REFUSED;
    snprintf(event.text, sizeof event.text, "%s ", topic);
    size_t used = strlen(event.text);
    nrg_copy_clean(event.text + used, sizeof event.text - used, payload,
                   len < sizeof event.text ? len : sizeof event.text);
    send_event(m, &event);
}

static void on_lost(void *arg, const char *why)
{
    struct event event = {.kind = LOST};
    nrg_copy(event.text, sizeof event.text, why);
    send_event(arg, &event);
}

static void on_connected(void *arg)
{
    send_event(arg, &(const struct event){.kind = CONNECTED});
}

static void send_note(struct mqtt *m, const char *kind, const char *text)
{
    if (m->sink)
        nrg_sink_note(m->sink, kind, text);
}

static void set_alarm(struct mqtt *m)
{
    m->alarm_ns = m->heard_ns + nrg_meter_patience_ns(&m->monitor.stats, m->settings.period_ns,
                                                      LEAST_WAIT_NS, FIRST_WAIT_NS);
    const struct itimerspec at = {
        .it_value = {m->alarm_ns / NRG_NS_PER_S, m->alarm_ns % NRG_NS_PER_S}};
    timerfd_settime(m->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void on_alarm(struct mqtt *m)
{
    char text[160];
    uint64_t count;
    if (read(m->timer_fd, &count, sizeof count) < 0 || m->gone || m->silent)
        return;
    if (nrg_now_ns() < m->alarm_ns)
        return;
    snprintf(text, sizeof text, "silent: no message for %.3g s%s",
             (double)(nrg_now_ns() - m->heard_ns) / 1e9,
             m->retained && !m->monitor.stats.readings ? ", only what the broker had retained"
             : m->monitor.stats.readings               ? ""
                                         : ": is the topic right? See nrg meter watch");
    m->silent = true;
    send_note(m, "silent", text);
}

/* True when all powers that are added up have come: then `values` has them. */
static bool collect_powers(struct mqtt *m, double *values)
{
    const struct nrg_mqtt_plan *plan = &m->settings.plan;
    bool all = true;
    for (size_t i = 0; i < plan->n_fields; i++) {
        if (!isnan(values[i]))
            m->together[i] = values[i];
        all &= plan->fields[i].quantity != NRG_POWER || !isnan(m->together[i]);
    }
    for (size_t i = 0; all && i < plan->n_fields; i++) {
        values[i] = m->together[i];
        m->together[i] = NAN;
    }
    return all;
}

static void emit_reading(struct mqtt *m, const struct nrg_meter_reading *said)
{
    int64_t raw[NRG_METER_RAW];
    double values[NRG_METER_FIELDS];
    struct nrg_meter_reading reading;
    nrg_meter_adjust_apply(&m->settings.adjust, m->found, said, values, &reading);
    int64_t t_ns = reading.sent_ns - m->settings.average_ns / 2;
    if (t_ns <= m->last_t_ns)
        t_ns = m->last_t_ns + 1;
    m->last_t_ns = t_ns;
    nrg_meter_raw(m->found, &reading, raw);
    if (m->sink)
        nrg_sink_row(m->sink, 0, t_ns, 0, raw);
    if (m->monitor.watch && m->monitor.watch->reading)
        m->monitor.watch->reading(m->monitor.watch, &reading);
}

static void on_reading(struct mqtt *m, struct event *event)
{
    struct nrg_meter_reading reading = {.sent_ns = event->reading.t_ns,
                                        .values = event->reading.values,
                                        .n_values = m->settings.plan.n_fields,
                                        .rssi_dbm = NAN};
    bool again = m->silent || m->gone;
    if (m->monitor.stats.readings && !again)
        nrg_meter_learn_period(&m->monitor.stats, event->arrived_ns - m->heard_ns);
    if (again)
        send_note(m, "back", "readings are back");
    m->silent = m->gone = false;
    m->monitor.stats.readings++;
    m->heard_ns = event->arrived_ns;
    set_alarm(m);
    if (!m->sums || collect_powers(m, event->reading.values))
        emit_reading(m, &reading);
}

static void on_refused(struct mqtt *m, const struct event *event)
{
    const struct nrg_mqtt_reading *r = &event->reading;
    m->retained += !strncmp(r->why, "retained", 8);
    *(r->harmless ? &m->monitor.stats.harmless : &m->monitor.stats.refused) += 1;
    if (!r->harmless)
        m->monitor.stats.refused_bytes += event->bytes;
    if (!r->harmless && m->monitor.stats.refused == 1)
        send_note(m, "garbage", r->why);
    if (m->monitor.watch && m->monitor.watch->refused)
        m->monitor.watch->refused(m->monitor.watch, event->text, strlen(event->text), r->why,
                                  r->harmless);
}

static void on_event(struct mqtt *m, struct event *event)
{
    char text[280];
    m->monitor.stats.bytes += event->bytes;
    if (m->monitor.watch && m->monitor.watch->raw && event->kind <= REFUSED)
        m->monitor.watch->raw(m->monitor.watch, event->text, strlen(event->text));
    switch (event->kind) {
    case READING:
        on_reading(m, event);
        break;
    case REFUSED:
        on_refused(m, event);
        break;
    case LOST:
        snprintf(text, sizeof text, "gone (%s): tried again every second", event->text);
        if (!m->gone)
            send_note(m, "gone", text);
        m->gone = true;
        break;
    case CONNECTED:
        m->monitor.stats.opened++;
    }
}

static int read_mqtt(void *state, struct nrg_sink *sink)
{
    struct mqtt *m = state;
    struct event event;
    char text[96];
    m->sink = sink;
    for (size_t i = 0; i < MAX_MESSAGES && read(m->events[0], &event, sizeof event) > 0; i++)
        on_event(m, &event);
    uint64_t dropped = atomic_exchange(&m->dropped, 0);
    if (dropped) {
        snprintf(text, sizeof text, "%llu messages came faster than they could be read",
                 (unsigned long long)dropped);
        m->monitor.stats.refused += dropped;
        send_note(m, "flood", text);
    }
    on_alarm(m);
    m->sink = NULL;
    return 0;
}

static int fd_mqtt(void *state)
{
    return ((struct mqtt *)state)->poll_fd;
}

static void close_mqtt(void *state)
{
    struct mqtt *m = state;
    if (!m)
        return;
    nrg_mqtt_stop(m->session); /* first: its thread writes into the pipe */
    const int fds[] = {m->events[0], m->events[1], m->timer_fd, m->poll_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    explicit_bzero(&m->settings.connection.password, sizeof m->settings.connection.password);
    free(m);
}

static int make_fds(struct mqtt *m, struct nrg_error *err)
{
    struct epoll_event event = {.events = EPOLLIN};
    if (pipe2(m->events, O_CLOEXEC | O_NONBLOCK))
        return nrg_fail(err, -errno, m->found->sensor, "cannot make a pipe: %s", strerror(errno));
    fcntl(m->events[1], F_SETPIPE_SZ, PIPE_BYTES); /* where it is refused, a flood drops sooner */
    m->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    m->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (m->timer_fd < 0 || m->poll_fd < 0 ||
        epoll_ctl(m->poll_fd, EPOLL_CTL_ADD, m->timer_fd, &event) ||
        epoll_ctl(m->poll_fd, EPOLL_CTL_ADD, m->events[0], &event))
        return nrg_fail(err, -ENOMEM, m->found->sensor, "out of memory or descriptors");
    return 0;
}

static int connect_mqtt(struct mqtt *m, struct nrg_error *err)
{
    const struct nrg_mqtt_calls calls = {
        .message = on_message, .connected = on_connected, .lost = on_lost, .arg = m};
    struct nrg_uri *uri = malloc(sizeof *uri);
    int rc = uri ? nrg_uri_parse(uri, m->found->locator, err)
                 : nrg_fail(err, -ENOMEM, NULL, "out of memory");
    if (!rc)
        rc = nrg_mqtt_settings_read(uri, &m->settings, err);
    free(uri);
    if (!rc && m->found->n_channels < m->settings.plan.n_fields)
        rc = nrg_fail(err, -ESTALE, m->found->sensor, "changed while it was being opened");
    if (rc)
        return rc;
    m->sums = m->found->n_channels > m->settings.plan.n_fields;
    m->heard_ns = nrg_now_ns();
    set_alarm(m);
    return nrg_mqtt_start(&m->session, &m->settings.connection, &calls, WAIT_NS, err);
}

static int open_mqtt(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                     struct nrg_error *err)
{
    struct mqtt *m = calloc(1, sizeof *m);
    if (!m)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    m->found = found;
    m->poll_fd = m->timer_fd = m->events[0] = m->events[1] = -1;
    m->monitor.stats.rssi_dbm = NAN;
    for (size_t i = 0; i < NRG_METER_FIELDS; i++)
        m->together[i] = NAN;
    int rc = make_fds(m, err);
    if (!rc)
        rc = connect_mqtt(m, err);
    if (rc)
        close_mqtt(m);
    else
        *state = m;
    return rc;
}

/* clang-format off */
#define MQTT_DRIVER(scheme, text)                                                                  \
    {.name = (scheme), .summary = (text), .flags = NRG_ON_REQUEST, .probe = probe_mqtt,             \
     .open = open_mqtt, .read = read_mqtt, .fd = fd_mqtt, .close = close_mqtt}
/* clang-format on */

const struct nrg_driver nrg_driver_mqtt =
    MQTT_DRIVER("mqtt", "meters and plugs that publish to an MQTT broker");

const struct nrg_driver nrg_driver_mqtts = MQTT_DRIVER("mqtts", "the same over TLS");

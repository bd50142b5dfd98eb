/*
 * Driver of meters that speak MQTT: plugs (Tasmota, Shelly), emonhub, anything with a number.
 *
 *   mqtt://[user@]host[:port]/topic?...      mqtts:// the same over TLS
 *
 * Messages are decoded on the library's thread (mqtt_plan.h) and come here through a ring. The
 * time of a reading is its arrival: plugs tell whole seconds at best. What the broker had
 * retained from before counts only when its own time says that it is new.
 *
 * A lost connection is said once and made again by the library; until then there is a gap.
 */
#include "sensors/mqtt.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/drivers.h"
#include "sensors/mqtt_ring.h"
#include "sensors/mqtt/settings.h"

#define WAIT_NS        (5 * NRG_NS_PER_S)  /* for the broker's answer */
#define FIRST_WAIT_NS  (30 * NRG_NS_PER_S) /* for the first message, with no period given */
#define LEAST_WAIT_NS  (5 * NRG_NS_PER_S)
#define SILENT_PERIODS 4

struct mqtt {
    const struct nrg_found *found;
    struct nrg_mqtt_settings settings;
    struct nrg_mqtt_session *session;
    struct nrg_mqtt_ring *ring;
    int poll_fd, timer_fd;
    struct nrg_sink *sink; /* during read */
    struct nrg_meter_out *watch;
    struct nrg_meter_stats stats;
    double together[NRG_METER_FIELDS]; /* powers that are added up, until all have come */
    bool sums, silent, gone;           /* silent, gone: said, and not over */
    int64_t heard_ns, last_t_ns, alarm_ns;
    uint64_t retained;
};

/* Topics that are heard while we listen; only the library's thread writes. */
static void on_topic(void *arg, const char *topic, const void *payload, size_t len, bool retained,
                     int64_t arrived_ns)
{
    (void)payload;
    (void)len;
    (void)retained;
    (void)arrived_ns;
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

/* What was heard becomes part of the URI, so that open finds the same fields. */
static int locate(struct nrg_found *found, const struct nrg_uri *uri,
                  const struct nrg_mqtt_settings *s, bool learnt, struct nrg_error *err)
{
    char fields[512] = "";
    if (learnt)
        nrg_mqtt_plan_text(&s->plan, fields, sizeof fields);
    int n = snprintf(found->locator, sizeof found->locator, "%s%s%s%s", uri->text,
                     !learnt        ? ""
                     : uri->n_query ? "&"
                                    : "?",
                     learnt ? "fields=" : "", fields);
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
    rc = locate(found, uri, s, learnt, err);
    return rc ? rc
              : nrg_meter_channels(found, uri, s->plan.fields, s->plan.n_fields, s->period_ns, err);
}

static int probe_mqtt(struct nrg_probe *probe, struct nrg_error *err)
{
    char text[NRG_URI_TEXT];
    struct nrg_uri *uri = malloc(sizeof *uri);
    struct nrg_mqtt_settings *s = malloc(sizeof *s);
    int rc = -ENOMEM;
    if (!uri || !s)
        nrg_fail(err, rc, NULL, "out of memory");
    else if (snprintf(text, sizeof text, "%s:%s", probe->driver->name,
                      probe->argument ? probe->argument : "") >= (int)sizeof text)
        rc = nrg_fail(err, -EINVAL, "--meter", "longer than %zu bytes", sizeof text - 1);
    else
        rc = nrg_uri_parse(uri, text, err);
    if (!rc)
        rc = nrg_mqtt_settings_read(uri, s, err);
    if (!rc)
        nrg_uri_text(uri, "covers"); /* asked for again when channels are made */
    if (!rc)
        rc = add_found(probe, uri, s, err);
    free(uri);
    free(s);
    return rc;
}

/* On the library's thread. */
static void on_message(void *arg, const char *topic, const void *payload, size_t len, bool retained,
                       int64_t arrived_ns)
{
    struct mqtt *m = arg;
    struct nrg_mqtt_slot slot = {.arrived_ns = arrived_ns, .bytes = len};
    const struct nrg_mqtt_message message = {topic, payload, len, retained, arrived_ns};
    slot.kind = nrg_mqtt_decode(&m->settings.plan, &message, &slot.reading) ? NRG_MQTT_READING
                                                                            : NRG_MQTT_REFUSED;
    snprintf(slot.text, sizeof slot.text, "%s ", topic);
    size_t used = strlen(slot.text);
    nrg_copy_clean(slot.text + used, sizeof slot.text - used, payload,
                   len < sizeof slot.text ? len : sizeof slot.text);
    nrg_mqtt_ring_push(m->ring, &slot);
}

static void on_lost(void *arg, const char *why)
{
    struct mqtt *m = arg;
    struct nrg_mqtt_slot slot = {.kind = NRG_MQTT_LOST};
    nrg_copy(slot.text, sizeof slot.text, why);
    nrg_mqtt_ring_push(m->ring, &slot);
}

static void on_connected(void *arg)
{
    struct mqtt *m = arg;
    const struct nrg_mqtt_slot slot = {.kind = NRG_MQTT_UP};
    nrg_mqtt_ring_push(m->ring, &slot);
}

static void note(struct mqtt *m, const char *kind, const char *text)
{
    if (m->sink)
        nrg_sink_note(m->sink, kind, text);
}

static void set_alarm(struct mqtt *m)
{
    int64_t period = m->settings.period_ns ? m->settings.period_ns : m->stats.period_ns;
    int64_t wait = SILENT_PERIODS * period;
    if (!m->stats.readings && wait < FIRST_WAIT_NS)
        wait = FIRST_WAIT_NS;
    if (wait < LEAST_WAIT_NS)
        wait = LEAST_WAIT_NS;
    m->alarm_ns = m->heard_ns + wait;
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
             m->retained && !m->stats.readings ? ", only what the broker had retained"
             : m->stats.readings               ? ""
                                               : ": is the topic right? See nrg meter watch");
    m->silent = true;
    note(m, "silent", text);
}

/* All powers that are added up, or nothing yet. */
static bool collect(struct mqtt *m, double *values)
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

static void emit(struct mqtt *m, const struct nrg_meter_reading *said)
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
    if (m->watch && m->watch->reading)
        m->watch->reading(m->watch, &reading);
}

static void on_reading(struct mqtt *m, struct nrg_mqtt_slot *slot)
{
    struct nrg_meter_reading reading = {.sent_ns = slot->reading.t_ns,
                                        .values = slot->reading.values,
                                        .n_values = m->settings.plan.n_fields,
                                        .rssi_dbm = NAN};
    int64_t interval = slot->arrived_ns - m->heard_ns;
    bool again = m->silent || m->gone;
    if (m->stats.readings && !again && interval >= 0)
        m->stats.period_ns += (interval - m->stats.period_ns) / (m->stats.readings > 1 ? 4 : 1);
    if (again)
        note(m, "back", "readings are back");
    m->silent = m->gone = false;
    m->stats.readings++;
    m->heard_ns = slot->arrived_ns;
    set_alarm(m);
    if (!m->sums || collect(m, slot->reading.values))
        emit(m, &reading);
}

static void on_refused(struct mqtt *m, const struct nrg_mqtt_slot *slot)
{
    const struct nrg_mqtt_reading *r = &slot->reading;
    m->retained += !strncmp(r->why, "retained", 8);
    *(r->harmless ? &m->stats.harmless : &m->stats.refused) += 1;
    if (!r->harmless)
        m->stats.refused_bytes += slot->bytes;
    if (m->watch && m->watch->refused)
        m->watch->refused(m->watch, slot->text, strlen(slot->text), r->why, r->harmless);
}

static void on_slot(struct mqtt *m, struct nrg_mqtt_slot *slot)
{
    char text[280];
    m->stats.bytes += slot->bytes;
    if (m->watch && m->watch->raw && slot->kind <= NRG_MQTT_REFUSED)
        m->watch->raw(m->watch, slot->text, strlen(slot->text));
    switch (slot->kind) {
    case NRG_MQTT_READING:
        on_reading(m, slot);
        break;
    case NRG_MQTT_REFUSED:
        on_refused(m, slot);
        break;
    case NRG_MQTT_LOST:
        snprintf(text, sizeof text, "gone (%s): tried again every second", slot->text);
        if (!m->gone)
            note(m, "gone", text);
        m->gone = true;
        break;
    case NRG_MQTT_UP:
        m->stats.opened++;
    }
}

static int read_mqtt(void *state, struct nrg_sink *sink)
{
    struct mqtt *m = state;
    struct nrg_mqtt_slot slot;
    char text[96];
    m->sink = sink;
    for (size_t i = 0; i < NRG_MQTT_RING && nrg_mqtt_ring_pop(m->ring, &slot); i++)
        on_slot(m, &slot);
    uint64_t dropped = nrg_mqtt_ring_dropped(m->ring);
    if (dropped) {
        snprintf(text, sizeof text, "%llu messages came faster than they could be read",
                 (unsigned long long)dropped);
        m->stats.refused += dropped;
        note(m, "flood", text);
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
    nrg_mqtt_stop(m->session); /* first: its thread pushes into the ring */
    nrg_mqtt_ring_free(m->ring);
    if (m->timer_fd >= 0)
        close(m->timer_fd);
    if (m->poll_fd >= 0)
        close(m->poll_fd);
    explicit_bzero(&m->settings.connection.password, sizeof m->settings.connection.password);
    free(m);
}

static int make_fds(struct mqtt *m, struct nrg_error *err)
{
    struct epoll_event event = {.events = EPOLLIN};
    m->ring = nrg_mqtt_ring_new();
    m->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    m->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!m->ring || m->timer_fd < 0 || m->poll_fd < 0 ||
        epoll_ctl(m->poll_fd, EPOLL_CTL_ADD, m->timer_fd, &event) ||
        epoll_ctl(m->poll_fd, EPOLL_CTL_ADD, nrg_mqtt_ring_fd(m->ring), &event))
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
    (void)ctx;
    if (!m)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    m->found = found;
    m->poll_fd = m->timer_fd = -1;
    m->stats.rssi_dbm = NAN;
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

void nrg_mqtt_watch(void *state, struct nrg_meter_out *watch)
{
    ((struct mqtt *)state)->watch = watch;
}

const struct nrg_meter_stats *nrg_mqtt_statistics(void *state)
{
    return &((struct mqtt *)state)->stats;
}

const struct nrg_driver nrg_driver_mqtt = {
    .name = "mqtt",
    .summary = "meters and plugs that publish to an MQTT broker",
    .flags = NRG_ON_REQUEST,
    .probe = probe_mqtt,
    .open = open_mqtt,
    .read = read_mqtt,
    .fd = fd_mqtt,
    .close = close_mqtt,
};

const struct nrg_driver nrg_driver_mqtts = {
    .name = "mqtts",
    .summary = "the same over TLS",
    .flags = NRG_ON_REQUEST,
    .probe = probe_mqtt,
    .open = open_mqtt,
    .read = read_mqtt,
    .fd = fd_mqtt,
    .close = close_mqtt,
};

/*
 * See meter/driver.h. Reading is bounded: a call takes at most a few buffers, and a device that has
 * more is left alone for a millisecond. So a flood of data takes no core away from the workload or
 * from the other sensors.
 *
 * Notes: `gone` at once, `silent` after a few periods without a reading (the period is given or
 * learnt from the readings), `garbage` after many bytes that are not readings, `back` with the
 * first reading after any of these. Each comes once until it is over, and `silent` and `garbage`
 * not again within a minute: on a noisy line they begin and end with every few readings.
 */
#include "sensors/meter/driver.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/meter/internal.h"

#define BUFFERS_PER_READ 4
#define MAX_PENDING      64 /* readings of one buffer whose times are spread together */
#define FIRST_WAIT_NS    (10 * NRG_NS_PER_S) /* for the first reading, with no period given */
#define SILENT_PERIODS   4
#define SILENT_LEAST_NS  NRG_NS_PER_S
#define SAY_AGAIN_NS     (60 * NRG_NS_PER_S)
#define GARBAGE_FIRST    64   /* refused bytes before any reading */
#define GARBAGE_LATER    1024 /* since the last reading: noise spoils a line now and then */

/* A note that is not repeated all the time. */
struct rare_note {
    int64_t last_ns; /* 0: never */
    unsigned left_out;
};

struct meter {
    struct nrg_meter_monitor monitor; /* first, as meter/driver.h says */
    struct nrg_meter_out out;
    const struct nrg_found *found;
    struct nrg_meter_settings settings;
    struct nrg_uri uri;
    void *decoder;
    struct nrg_port *port;
    struct nrg_sink *sink;        /* during read */
    int64_t last_t_ns;            /* of the last row */
    int64_t heard_ns;             /* when the last reading was decoded, or the port opened */
    int64_t alarm_ns;             /* 0: none is set */
    int64_t arrived_ns;           /* end of the bytes that are being decoded */
    uint64_t refused_bytes_since; /* since the last reading, without harmless ones */
    char why[80];                 /* the reason for the last of them */
    size_t n_pending;
    struct {
        int64_t t_ns, raw[NRG_METER_RAW];
    } pending[MAX_PENDING];
    bool silent, gone, garbage, ended; /* not over yet */
    bool told;                         /* one of these was noted: its end is, too */
    struct rare_note told_silent, told_garbage;
    bool paused; /* the next interval does not count for the period */
    uint8_t bytes[4096];
};

/* Faults of a key tell the key and the character; with several meters the URI must be told, too. */
static void name_the_uri(struct nrg_error *err, const struct nrg_uri *uri)
{
    struct nrg_error fault = *err;
    if (!strncmp(fault.where, uri->text, sizeof fault.where - 1)) /* which cuts it */
        return;
    if (fault.offset >= 0)
        nrg_fail(err, fault.code, uri->text, "%s character %lld: %.300s", fault.where, fault.offset,
                 fault.what);
    else
        nrg_fail(err, fault.code, uri->text, "%.80s: %.300s", fault.where, fault.what);
}

int nrg_meter_decoder_new(const struct nrg_meter_decoder *decoder, struct nrg_uri *uri,
                          struct nrg_meter_field *fields, size_t *n_fields, void **state,
                          struct nrg_error *err)
{
    void *made = calloc(1, decoder->state_size);
    *n_fields = 0;
    int rc = made ? decoder->init(made, uri, fields, n_fields, err)
                  : nrg_fail(err, -ENOMEM, uri->text, "out of memory");
    if (rc && err && err->where[0])
        name_the_uri(err, uri);
    if (rc)
        free(made);
    else
        *state = made;
    return rc;
}

static void send_note(struct meter *m, const char *kind, const char *text)
{
    if (m->sink)
        nrg_sink_note(m->sink, kind, text);
}

static int64_t usual_period(const struct meter *m)
{
    return m->settings.period_ns ? m->settings.period_ns : m->monitor.stats.period_ns;
}

int64_t nrg_meter_patience_ns(const struct nrg_meter_stats *stats, int64_t period_ns,
                              int64_t least_ns, int64_t first_ns)
{
    int64_t wait_ns = SILENT_PERIODS * (period_ns ? period_ns : stats->period_ns);
    int64_t bound_ns = stats->readings ? least_ns : first_ns;
    return wait_ns < bound_ns ? bound_ns : wait_ns;
}

static int64_t patience_ns(const struct meter *m)
{
    return nrg_meter_patience_ns(&m->monitor.stats, m->settings.period_ns, SILENT_LEAST_NS,
                                 FIRST_WAIT_NS);
}

/* Moves the alarm only when it would come too late, to save a system call per reading. */
static void expect_more(struct meter *m)
{
    int64_t at_ns = m->heard_ns + patience_ns(m);
    if (m->alarm_ns && m->alarm_ns <= at_ns)
        return;
    m->alarm_ns = at_ns;
    nrg_port_alarm(m->port, at_ns);
}

static void say_rarely(struct meter *m, struct rare_note *note, const char *kind, const char *text)
{
    char more[320];
    int64_t now = nrg_now_ns();
    if (note->last_ns && now - note->last_ns < SAY_AGAIN_NS) {
        note->left_out++;
        return;
    }
    snprintf(more, sizeof more, "%.230s (and %u times more since this was last said)", text,
             note->left_out);
    send_note(m, kind, note->left_out ? more : text);
    *note = (struct rare_note){.last_ns = now};
    m->told = true;
}

static void say_garbage(struct meter *m)
{
    char text[240];
    if (m->garbage || !m->refused_bytes_since)
        return;
    snprintf(text, sizeof text, "garbage: %llu bytes that are not readings (%s)%s",
             (unsigned long long)m->refused_bytes_since, m->why,
             nrg_port_is_serial(m->port) ? ": is baud= right? See nrg meter watch"
                                         : ": see nrg meter watch");
    m->garbage = true;
    say_rarely(m, &m->told_garbage, "garbage", text);
}

/* True when silence begins. */
static bool on_alarm(struct meter *m)
{
    char text[128];
    int64_t now = nrg_now_ns();
    m->alarm_ns = 0;
    if (m->gone || m->silent || m->ended)
        return false;
    int64_t quiet_ns = now - m->heard_ns;
    if (quiet_ns < patience_ns(m)) {
        expect_more(m);
        return false;
    }
    m->silent = true;
    say_garbage(m);
    if (m->garbage)
        return true;
    if (m->monitor.stats.readings)
        snprintf(text, sizeof text, "silent: no reading for %.3g s, usually one every %.3g s",
                 (double)quiet_ns / 1e9, (double)usual_period(m) / 1e9);
    else
        snprintf(text, sizeof text, "silent: no reading in the first %.3g s%s",
                 (double)quiet_ns / 1e9,
                 m->monitor.stats.bytes ? ", only other text: see nrg meter watch"
                                        : ": is it connected?");
    say_rarely(m, &m->told_silent, "silent", text);
    return true;
}

static void say_back(struct meter *m)
{
    if (m->told)
        send_note(m, "back", "readings are back");
    m->paused |= m->silent || m->gone || m->garbage;
    m->silent = m->gone = m->garbage = m->told = false;
}

/* Exponential smoothing with weight 1/4: follows a change within a few readings. */
void nrg_meter_learn_period(struct nrg_meter_stats *stats, int64_t interval_ns)
{
    int64_t *period = &stats->period_ns;
    if (interval_ns > 0)
        *period = *period ? *period + (interval_ns - *period) / 4 : interval_ns;
}

/*
 * Several readings in one buffer were sent apart, and either read late (the machine was busy) or
 * handed over together (a program that buffers its output). They are moved back to when they were
 * due. On a line that is never idle, the bytes give the times already.
 */
static void spread_pending(struct meter *m)
{
    int64_t n = (int64_t)m->n_pending, period = usual_period(m);
    int64_t last = m->pending[n - 1].t_ns, span = last - m->pending[0].t_ns;
    int64_t even = m->last_t_ns ? (last - m->last_t_ns) / n : 0;
    if (n < 2 || !period || even < period / 2 || span > (n - 1) * even / 2)
        return;
    if (even > 2 * period) /* there was a pause before them */
        even = period;
    for (int64_t i = 0; i < n; i++)
        m->pending[i].t_ns = last - (n - 1 - i) * even;
}

static void emit_pending(struct meter *m)
{
    if (m->n_pending)
        spread_pending(m);
    for (size_t i = 0; i < m->n_pending; i++) {
        int64_t t_ns = m->pending[i].t_ns;
        if (t_ns <= m->last_t_ns)
            t_ns = m->last_t_ns + 1;
        if (m->last_t_ns && !m->paused)
            nrg_meter_learn_period(&m->monitor.stats, t_ns - m->last_t_ns);
        m->paused = false;
        m->last_t_ns = t_ns;
        if (m->sink)
            nrg_sink_row(m->sink, 0, t_ns, 0, m->pending[i].raw);
    }
    m->n_pending = 0;
}

static struct meter *meter_of(struct nrg_meter_out *out)
{
    return (struct meter *)((char *)out - offsetof(struct meter, out));
}

static void on_reading(struct nrg_meter_out *out, const struct nrg_meter_reading *said)
{
    struct meter *m = meter_of(out);
    double values[NRG_METER_FIELDS];
    struct nrg_meter_reading adjusted;
    nrg_meter_adjust_apply(&m->settings.adjust, m->found, said, values, &adjusted);
    const struct nrg_meter_reading *reading = &adjusted;
    int64_t average_ns = reading->average_ns ? reading->average_ns : m->settings.average_ns;
    say_back(m);
    m->monitor.stats.readings++;
    m->heard_ns = m->arrived_ns;
    m->refused_bytes_since = 0;
    if (!isnan(reading->rssi_dbm))
        m->monitor.stats.rssi_dbm = reading->rssi_dbm;
    if (m->n_pending == MAX_PENDING)
        emit_pending(m);
    m->pending[m->n_pending].t_ns = reading->sent_ns - average_ns / 2;
    nrg_meter_raw(m->found, reading, m->pending[m->n_pending++].raw);
    if (m->monitor.watch && m->monitor.watch->reading)
        m->monitor.watch->reading(m->monitor.watch, reading);
}

static void on_refused(struct nrg_meter_out *out, const void *bytes, size_t n, const char *why,
                       bool harmless)
{
    struct meter *m = meter_of(out);
    if (harmless) {
        m->monitor.stats.harmless++;
    } else {
        m->monitor.stats.refused++;
        m->monitor.stats.refused_bytes += n;
        m->refused_bytes_since += n;
        nrg_copy(m->why, sizeof m->why, why);
    }
    if (m->monitor.watch && m->monitor.watch->refused)
        m->monitor.watch->refused(m->monitor.watch, bytes, n, why, harmless);
    if (m->refused_bytes_since >= (m->monitor.stats.readings ? GARBAGE_LATER : GARBAGE_FIRST))
        say_garbage(m);
}

static bool keeps_channels(const struct nrg_found *found, const struct nrg_meter_field *fields,
                           size_t n_fields)
{
    if (found->n_channels < n_fields)
        return false;
    for (size_t i = 0; i < n_fields; i++)
        if (found->channels[i].quantity != fields[i].quantity)
            return false;
    return true;
}

static int open_meter(struct meter *m, const struct nrg_context *ctx, struct nrg_error *err)
{
    struct nrg_meter_field fields[NRG_METER_FIELDS] = {0};
    size_t n_fields;
    int rc = nrg_uri_parse(&m->uri, m->found->locator, err);
    if (!rc)
        rc = nrg_meter_read_uri(&m->uri, &m->settings, fields, &n_fields, &m->decoder, err);
    if (!rc && !keeps_channels(m->found, fields, n_fields))
        rc = nrg_fail(err, -ESTALE, m->found->sensor, "changed while it was being opened");
    if (!rc)
        rc = nrg_port_open(ctx, &m->settings.port, &m->port, err);
    if (rc)
        return rc;
    m->monitor.stats.opened = 1;
    m->heard_ns = nrg_now_ns();
    expect_more(m);
    return 0;
}

int nrg_meter_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                   struct nrg_error *err)
{
    struct meter *m = calloc(1, sizeof *m);
    if (!m)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    m->out = (struct nrg_meter_out){.reading = on_reading, .refused = on_refused};
    m->found = found;
    m->monitor.stats.rssi_dbm = NAN;
    int rc = open_meter(m, ctx, err);
    if (rc)
        nrg_meter_close(m);
    else
        *state = m;
    return rc;
}

static void on_bytes(struct meter *m, const struct nrg_port_event *event)
{
    int64_t byte_ns = nrg_port_is_serial(m->port) ? nrg_serial_byte_ns(m->settings.port.baud) : 0;
    m->monitor.stats.bytes += event->n;
    if (m->monitor.watch && m->monitor.watch->raw)
        m->monitor.watch->raw(m->monitor.watch, m->bytes, event->n);
    m->arrived_ns = event->end_ns;
    m->settings.kind->decoder->feed(m->decoder, m->bytes, event->n, event->end_ns, byte_ns,
                                    &m->out);
    emit_pending(m);
    if (m->monitor.stats.readings && !m->silent)
        expect_more(m);
}

static void on_gone(struct meter *m, const struct nrg_port_event *event)
{
    char text[192];
    m->settings.kind->decoder->reset(m->decoder);
    if (!m->gone) {
        snprintf(text, sizeof text, "gone (%s): tried again every second", event->why);
        send_note(m, "gone", text);
        m->told = true;
    }
    m->gone = true;
}

static void on_end(struct meter *m, const struct nrg_port_event *event)
{
    const struct nrg_meter_decoder *decoder = m->settings.kind->decoder;
    m->arrived_ns = event->end_ns;
    if (decoder->end)
        decoder->end(m->decoder, event->end_ns, &m->out);
    emit_pending(m);
    decoder->reset(m->decoder);
    m->ended = m->settings.kind->port == NRG_PORT_PROGRAM;
    if (!m->gone)
        send_note(m, "gone", event->why);
    m->told = true;
    m->gone = true;
}

/* What the decoder has left belongs to the time before the silence. */
static void on_silence(struct meter *m)
{
    const struct nrg_meter_decoder *decoder = m->settings.kind->decoder;
    if (!decoder->pause)
        return;
    bool told = m->told;
    m->silent = m->told = false;
    decoder->pause(m->decoder, &m->out);
    emit_pending(m);
    m->silent = true;
    m->told = told;
}

static void on_event(struct meter *m, const struct nrg_port_event *event)
{
    switch (event->kind) {
    case NRG_PORT_BYTES:
        on_bytes(m, event);
        break;
    case NRG_PORT_GONE:
        on_gone(m, event);
        break;
    case NRG_PORT_ENDED:
        on_end(m, event);
        break;
    case NRG_PORT_BACK:
        m->monitor.stats.opened++;
        break;
    case NRG_PORT_CUT:
        m->settings.kind->decoder->reset(m->decoder);
        break;
    case NRG_PORT_ALARM:
        if (on_alarm(m))
            on_silence(m);
        break;
    case NRG_PORT_NOTHING:
        break;
    }
}

int nrg_meter_read(void *state, struct nrg_sink *sink)
{
    struct meter *m = state;
    struct nrg_port_event event;
    size_t buffers = 0, events = 0;
    m->sink = sink;
    do {
        nrg_port_next(m->port, m->bytes, sizeof m->bytes, &event);
        on_event(m, &event);
        buffers += event.kind == NRG_PORT_BYTES;
    } while (event.kind != NRG_PORT_NOTHING && buffers < BUFFERS_PER_READ && ++events < 16);
    if (buffers == BUFFERS_PER_READ)
        nrg_port_breathe(m->port);
    m->sink = NULL;
    return 0;
}

int nrg_meter_fd(void *state)
{
    return nrg_port_fd(((struct meter *)state)->port);
}

void nrg_meter_close(void *state)
{
    struct meter *m = state;
    if (!m)
        return;
    nrg_port_close(m->port);
    free(m->decoder);
    free(m);
}

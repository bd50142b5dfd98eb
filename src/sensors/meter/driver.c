/*
 * See meter.h. Reading is bounded: a call takes at most a few buffers, and a device that has more
 * than that is left alone for a millisecond, so that a flood costs a core neither to the workload
 * nor to the other sensors.
 *
 * What is said, and when: `gone` at once, `silent` after a few periods without a reading (the
 * period is given or learnt from the readings), `garbage` when a good deal came that was no
 * reading, `back` with the first reading after any of these. Each once, until it is over.
 */
#include "sensors/meter/driver.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/drivers.h"
#include "sensors/files.h"
#include "sensors/meter/config.h"
#include "sensors/meter/decoders.h"
#include "sensors/meter/port.h"

#define BUFFERS_PER_READ 4
#define MAX_PENDING      64 /* readings of one buffer whose times are looked at together */
#define FIRST_WAIT_NS    (10 * NRG_NS_PER_S) /* for the first reading, with no period given */
#define SILENT_PERIODS   4
#define SILENT_LEAST_NS  NRG_NS_PER_S
#define GARBAGE_FIRST    64   /* refused bytes before any reading */
#define GARBAGE_LATER    1024 /* since the last one: noise alone breaks some lines */

/* One line each, so that branches that add one do not conflict. */
/* clang-format off */
static const struct nrg_meter_kind kinds[] = {
    {&nrg_driver_emonpi, &nrg_decoder_emonpi, NRG_PORT_SERIAL, 38400, 0, 0, true},
    {&nrg_driver_exec, &nrg_decoder_text, NRG_PORT_PROGRAM, 0, 0, 0, true},
    {&nrg_driver_file, &nrg_decoder_text, NRG_PORT_FILE, 0, 0, 0, false},
    {&nrg_driver_lines, &nrg_decoder_text, NRG_PORT_SERIAL, 9600, 0, 0, true},
    {&nrg_driver_rpict, &nrg_decoder_rpict, NRG_PORT_SERIAL, 38400, 0, 0, true},
    {&nrg_driver_omegawatt, &nrg_decoder_omegawatt, NRG_PORT_SERIAL, 921600, 0, 0, true},
    {&nrg_driver_waveform, &nrg_decoder_waveform, NRG_PORT_FILE, 0, 0, 0, true},
    {&nrg_driver_waveform_exec, &nrg_decoder_waveform, NRG_PORT_PROGRAM, 0, 0, 0, true},
};
/* clang-format on */

struct settings {
    const struct nrg_meter_kind *kind;
    struct nrg_port_options port;
    int64_t period_ns, average_ns;
    struct nrg_meter_adjust adjust;
};

struct meter {
    struct nrg_meter_out out; /* first: callbacks cast back */
    const struct nrg_found *found;
    struct settings settings;
    struct nrg_uri uri;
    void *decoder;
    struct nrg_port *port;
    struct nrg_sink *sink; /* during read */
    struct nrg_meter_out *watch;
    struct nrg_meter_stats stats;
    int64_t last_t_ns;            /* of the last row */
    int64_t heard_ns;             /* when the last reading was decoded, or the port opened */
    int64_t alarm_ns;             /* 0: none is set */
    int64_t arrived_ns;           /* end of the bytes that are being decoded */
    uint64_t refused_bytes_since; /* the last reading, harmless ones not counted */
    char why[80];                 /* the last of them */
    size_t n_pending;
    struct {
        int64_t t_ns, raw[NRG_METER_RAW];
    } pending[MAX_PENDING];
    bool silent, gone, garbage, ended; /* has been said and is not over */
    bool paused;                       /* the next interval says nothing about the period */
    uint8_t bytes[4096];
};

static const struct nrg_meter_kind *find_kind(const char *scheme)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].driver->name, scheme))
            return &kinds[i];
    return NULL;
}

static int read_from(struct settings *s, struct nrg_uri *uri, struct nrg_error *err)
{
    const char *from = s->kind->port == NRG_PORT_PROGRAM ? NULL : nrg_uri_text(uri, "from");
    s->port.from_start = from ? !strcmp(from, "start") : s->kind->from_start;
    if (from && strcmp(from, "start") && strcmp(from, "end"))
        return nrg_fail(err, -EINVAL, uri->text, "from= wants start or end, not '%s'", from);
    return 0;
}

static int read_settings(struct settings *s, struct nrg_uri *uri, struct nrg_error *err)
{
    *s = (struct settings){.kind = find_kind(uri->scheme)};
    if (!s->kind)
        return nrg_fail(err, -EINVAL, uri->text, "no meter is called '%s'", uri->scheme);
    double baud = s->kind->baud;
    s->period_ns = s->kind->period_ns;
    s->average_ns = s->kind->average_ns;
    int rc = 0;
    if (s->kind->port == NRG_PORT_SERIAL)
        rc = nrg_uri_number(uri, "baud", 1, 4e6, &baud, err);
    s->port = (struct nrg_port_options){
        .kind = s->kind->port, .place = uri->place, .baud = (unsigned)baud};
    if (!rc && s->kind->port == NRG_PORT_SERIAL && !nrg_port_baud_known(s->port.baud))
        rc = nrg_fail(err, -EINVAL, uri->text, "baud=%g is no speed of a serial line", baud);
    if (!rc)
        rc = nrg_uri_duration(uri, "period", &s->period_ns, err);
    if (!rc)
        rc = nrg_uri_duration(uri, "average", &s->average_ns, err);
    if (!rc)
        rc = nrg_meter_adjust_read(&s->adjust, uri, err);
    return rc ? rc : read_from(s, uri, err);
}

/* Everything that the URI says; the caller destroys *decoder. */
static int prepare(struct nrg_uri *uri, struct settings *s, struct nrg_meter_field *fields,
                   size_t *n_fields, void **decoder, struct nrg_error *err)
{
    *n_fields = 0;
    *decoder = NULL;
    int rc = read_settings(s, uri, err);
    if (!rc)
        rc = s->kind->decoder->create(uri, fields, n_fields, decoder, err);
    return rc;
}

/* Two readers of one line would each get half of its bytes. */
static int check_shared(const struct nrg_probe *probe, size_t before, const struct settings *s,
                        struct nrg_error *err)
{
    struct stat mine, other;
    struct nrg_uri uri;
    if (s->kind->port == NRG_PORT_PROGRAM ||
        nrg_root_stat(&probe->ctx->root, s->port.place, &mine) || S_ISREG(mine.st_mode))
        return 0;
    for (size_t f = 0; f < before; f++) {
        const struct nrg_meter_kind *kind = find_kind(probe->found[f].driver->name);
        if (!kind || kind->port == NRG_PORT_PROGRAM ||
            nrg_uri_parse(&uri, probe->found[f].locator, NULL) ||
            nrg_root_stat(&probe->ctx->root, uri.place, &other))
            continue;
        if (other.st_dev == mine.st_dev && other.st_ino == mine.st_ino)
            return nrg_fail(err, -EBUSY, s->port.place,
                            "is read by another --meter already: give one --meter with all of "
                            "its nodes (node=5,8)");
    }
    return 0;
}

static void name_sensor(char *sensor, size_t size, const struct nrg_uri *uri)
{
    size_t scheme = strlen(uri->scheme), len = strlen(uri->place);
    size_t room = size - scheme - 6;
    nrg_copy(sensor, size, uri->scheme);
    snprintf(sensor + scheme, size - scheme, ":%s%s", len > room ? "..." : "",
             uri->place + (len > room ? len - room : 0));
}

static int add_found(struct nrg_probe *probe, struct nrg_uri *uri, const struct settings *s,
                     const struct nrg_meter_field *fields, size_t n_fields, struct nrg_error *err)
{
    char sensor[sizeof probe->found->sensor];
    name_sensor(sensor, sizeof sensor, uri);
    struct nrg_found *found = nrg_probe_found(probe, sensor);
    if (!found)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    nrg_copy(found->locator, sizeof found->locator, uri->text);
    found->required = true;
    int rc = nrg_meter_channels(found, uri, fields, n_fields, s->period_ns, err);
    if (!rc)
        rc = nrg_uri_finish(uri, err);
    if (!rc)
        rc = nrg_port_check(probe->ctx, &s->port, err);
    return rc ? rc : check_shared(probe, probe->n_found - 1, s, err);
}

int nrg_meter_probe(struct nrg_probe *probe, struct nrg_error *err)
{
    char text[NRG_URI_TEXT];
    struct nrg_meter_field fields[NRG_METER_FIELDS] = {0};
    struct nrg_uri *uri = malloc(sizeof *uri);
    struct settings settings;
    size_t n_fields;
    void *decoder = NULL;
    if (!uri)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    int rc = snprintf(text, sizeof text, "%s:%s", probe->driver->name,
                      probe->argument ? probe->argument : "") < (int)sizeof text
                 ? nrg_uri_parse(uri, text, err)
                 : nrg_fail(err, -EINVAL, "--meter", "longer than %zu bytes", sizeof text - 1);
    if (!rc)
        rc = nrg_meter_expand(uri, probe->options->config, err);
    if (!rc)
        rc = prepare(uri, &settings, fields, &n_fields, &decoder, err);
    if (decoder)
        settings.kind->decoder->destroy(decoder);
    if (!rc)
        rc = add_found(probe, uri, &settings, fields, n_fields, err);
    free(uri);
    return rc;
}

static void note(struct meter *m, const char *kind, const char *text)
{
    if (m->sink)
        nrg_sink_note(m->sink, kind, text);
}

static int64_t usual_period(const struct meter *m)
{
    return m->settings.period_ns ? m->settings.period_ns : m->stats.period_ns;
}

/* The alarm only moves when it would come too late: not a system call for every reading. */
static void expect_more(struct meter *m)
{
    int64_t period = usual_period(m), wait = SILENT_PERIODS * period;
    if (!m->stats.readings && wait < FIRST_WAIT_NS)
        wait = FIRST_WAIT_NS;
    else if (wait < SILENT_LEAST_NS)
        wait = SILENT_LEAST_NS;
    int64_t at_ns = m->heard_ns + wait;
    if (m->alarm_ns && m->alarm_ns <= at_ns)
        return;
    m->alarm_ns = at_ns;
    nrg_port_alarm(m->port, at_ns);
}

static void say_garbage(struct meter *m)
{
    char text[240];
    if (m->garbage || !m->refused_bytes_since)
        return;
    snprintf(text, sizeof text, "garbage: %llu bytes that are no reading (%s)%s",
             (unsigned long long)m->refused_bytes_since, m->why,
             nrg_port_is_serial(m->port) ? ": is baud= right? See nrg meter watch"
                                         : ": see nrg meter watch");
    m->garbage = true;
    note(m, "garbage", text);
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
    int64_t least = m->stats.readings ? SILENT_PERIODS * usual_period(m) : FIRST_WAIT_NS;
    if (quiet_ns < least || quiet_ns < SILENT_LEAST_NS) {
        expect_more(m);
        return false;
    }
    m->silent = true;
    say_garbage(m);
    if (m->garbage)
        return true;
    if (m->stats.readings)
        snprintf(text, sizeof text, "silent: no reading for %.3g s, usually one every %.3g s",
                 (double)quiet_ns / 1e9, (double)usual_period(m) / 1e9);
    else
        snprintf(text, sizeof text, "silent: no reading in the first %.3g s%s",
                 (double)quiet_ns / 1e9,
                 m->stats.bytes ? ", only other text: see nrg meter watch" : ": is it connected?");
    note(m, "silent", text);
    return true;
}

static void say_back(struct meter *m)
{
    if (m->silent || m->gone || m->garbage)
        note(m, "back", "readings are back");
    m->paused |= m->silent || m->gone || m->garbage;
    m->silent = m->gone = m->garbage = false;
}

/* A quarter of each new interval: follows a change within a few readings. */
static void learn_period(struct meter *m, int64_t interval_ns)
{
    int64_t *period = &m->stats.period_ns;
    if (interval_ns > 0)
        *period = *period ? *period + (interval_ns - *period) / 4 : interval_ns;
}

/*
 * Several readings in one buffer were sent apart and read late (the machine was busy) or handed
 * over together (a program that buffers its output): they are put back to where they would have
 * come. A line that is busy without a pause has its times from the bytes already.
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
            learn_period(m, t_ns - m->last_t_ns);
        m->paused = false;
        m->last_t_ns = t_ns;
        if (m->sink)
            nrg_sink_row(m->sink, 0, t_ns, 0, m->pending[i].raw);
    }
    m->n_pending = 0;
}

static void on_reading(struct nrg_meter_out *out, const struct nrg_meter_reading *said)
{
    struct meter *m = (struct meter *)out;
    double values[NRG_METER_FIELDS];
    struct nrg_meter_reading adjusted;
    nrg_meter_adjust_apply(&m->settings.adjust, m->found, said, values, &adjusted);
    const struct nrg_meter_reading *reading = &adjusted;
    int64_t average_ns = reading->average_ns ? reading->average_ns : m->settings.average_ns;
    say_back(m);
    m->stats.readings++;
    m->heard_ns = m->arrived_ns;
    m->refused_bytes_since = 0;
    if (!isnan(reading->rssi_dbm))
        m->stats.rssi_dbm = reading->rssi_dbm;
    if (m->n_pending == MAX_PENDING)
        emit_pending(m);
    m->pending[m->n_pending].t_ns = reading->sent_ns - average_ns / 2;
    nrg_meter_raw(m->found, reading, m->pending[m->n_pending++].raw);
    if (m->watch && m->watch->reading)
        m->watch->reading(m->watch, reading);
}

static void on_refused(struct nrg_meter_out *out, const void *bytes, size_t n, const char *why,
                       bool harmless)
{
    struct meter *m = (struct meter *)out;
    if (harmless) {
        m->stats.harmless++;
    } else {
        m->stats.refused++;
        m->stats.refused_bytes += n;
        m->refused_bytes_since += n;
        nrg_copy(m->why, sizeof m->why, why);
    }
    if (m->watch && m->watch->refused)
        m->watch->refused(m->watch, bytes, n, why, harmless);
    if (m->refused_bytes_since >= (m->stats.readings ? GARBAGE_LATER : GARBAGE_FIRST))
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
        rc = prepare(&m->uri, &m->settings, fields, &n_fields, &m->decoder, err);
    if (!rc && !keeps_channels(m->found, fields, n_fields))
        rc = nrg_fail(err, -ESTALE, m->found->sensor, "changed while it was being opened");
    if (!rc)
        rc = nrg_port_open(ctx, &m->settings.port, &m->port, err);
    if (rc)
        return rc;
    m->stats.opened = 1;
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
    m->stats.rssi_dbm = NAN;
    int rc = open_meter(m, ctx, err);
    if (rc)
        nrg_meter_close(m);
    else
        *state = m;
    return rc;
}

static void on_bytes(struct meter *m, const struct nrg_port_news *news)
{
    int64_t byte_ns = nrg_port_is_serial(m->port) ? nrg_port_byte_ns(m->settings.port.baud) : 0;
    m->stats.bytes += news->n;
    if (m->watch && m->watch->raw)
        m->watch->raw(m->watch, m->bytes, news->n);
    m->arrived_ns = news->end_ns;
    m->settings.kind->decoder->feed(m->decoder, m->bytes, news->n, news->end_ns, byte_ns, &m->out);
    emit_pending(m);
    if (m->stats.readings && !m->silent)
        expect_more(m);
}

static void on_gone(struct meter *m, const struct nrg_port_news *news)
{
    char text[192];
    m->settings.kind->decoder->reset(m->decoder);
    if (!m->gone) {
        snprintf(text, sizeof text, "gone (%s): tried again every second", news->why);
        note(m, "gone", text);
    }
    m->gone = true;
}

static void on_end(struct meter *m, const struct nrg_port_news *news)
{
    const struct nrg_meter_decoder *decoder = m->settings.kind->decoder;
    m->arrived_ns = news->end_ns;
    if (decoder->end)
        decoder->end(m->decoder, news->end_ns, &m->out);
    emit_pending(m);
    decoder->reset(m->decoder);
    m->ended = m->settings.kind->port == NRG_PORT_PROGRAM;
    if (!m->gone)
        note(m, "gone", news->why);
    m->gone = true;
}

/* What the decoder has left belongs to the time before the silence. */
static void on_silence(struct meter *m)
{
    const struct nrg_meter_decoder *decoder = m->settings.kind->decoder;
    if (!decoder->pause)
        return;
    m->silent = false;
    decoder->pause(m->decoder, &m->out);
    emit_pending(m);
    m->silent = true;
}

static void on_news(struct meter *m, const struct nrg_port_news *news)
{
    switch (news->event) {
    case NRG_PORT_BYTES:
        on_bytes(m, news);
        break;
    case NRG_PORT_GONE:
        on_gone(m, news);
        break;
    case NRG_PORT_ENDED:
        on_end(m, news);
        break;
    case NRG_PORT_BACK:
        m->stats.opened++;
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
    struct nrg_port_news news;
    size_t buffers = 0, events = 0;
    m->sink = sink;
    do {
        nrg_port_next(m->port, m->bytes, sizeof m->bytes, &news);
        on_news(m, &news);
        buffers += news.event == NRG_PORT_BYTES;
    } while (news.event != NRG_PORT_NOTHING && buffers < BUFFERS_PER_READ && ++events < 16);
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
    if (m->decoder)
        m->settings.kind->decoder->destroy(m->decoder);
    free(m);
}

void nrg_meter_watch(void *state, struct nrg_meter_out *watch)
{
    ((struct meter *)state)->watch = watch;
}

const struct nrg_meter_stats *nrg_meter_statistics(void *state)
{
    return &((struct meter *)state)->stats;
}

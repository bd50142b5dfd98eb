/*
 * nrg meter watch: a meter without a recorder. Shows readings, what was not understood and why, and
 * the meter's notes; then a summary. Text for people, or one JSON object per line.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json/memory.h"
#include "base/json/set.h"
#include "base/mem.h"
#include "cli/meter/actions.h"
#include "cli/stop.h"
#include "sensors/meter/channels.h"
#include "sensors/registry.h"

#define SHOWN 160 /* bytes of a line that was not understood */

struct range {
    double least, most, sum;
    uint64_t n;
};

struct watch {
    struct nrg_meter_out out; /* first: callbacks cast back */
    struct nrg_sink sink;
    const struct nrg_meter_values *values;
    const struct nrg_found *found;
    struct range ranges[NRG_METER_RAW];
    uint64_t readings;
    int64_t first_ns, last_ns;
    bool over; /* the program has ended: nothing more will come */
};

static struct watch *of_sink(struct nrg_sink *sink)
{
    return (struct watch *)((char *)sink - offsetof(struct watch, sink));
}

static double unix_s(int64_t mono_ns)
{
    return (double)(nrg_realtime_ns() - nrg_now_ns() + mono_ns) / 1e9;
}

static void print_line(json_t *o)
{
    o = nrg_json_whole(o);
    char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(12));
    if (text)
        puts(text);
    nrg_json_free(text);
    json_decref(o);
}

static void print_time(int64_t t_ns)
{
    double at_s = unix_s(t_ns);
    time_t s = (time_t)at_s;
    struct tm tm;
    char text[32] = "";
    if (localtime_r(&s, &tm))
        strftime(text, sizeof text, "%H:%M:%S", &tm);
    printf("%s.%03d", text, (int)((at_s - (double)s) * 1000));
}

static json_t *value_json(const struct nrg_channel *c, double value)
{
    json_t *o = json_pack("{s:s, s:s, s:f}", "name", c->name, "quantity",
                          nrg_quantity_name(c->quantity), "value", value);
    nrg_json_text(o, "unit", nrg_quantity_unit(c->quantity));
    return o;
}

static void note_value(struct range *r, double value)
{
    r->least = r->n && r->least < value ? r->least : value;
    r->most = r->n && r->most > value ? r->most : value;
    r->sum += value;
    r->n++;
}

/* One read of a port may bring many readings: the first ones are those that were asked for. */
static bool has_enough(const struct watch *w)
{
    return w->values->count > 0 && w->readings >= (uint64_t)w->values->count;
}

static void on_reading(struct nrg_meter_out *out, const struct nrg_meter_reading *reading)
{
    struct watch *w = (struct watch *)out;
    int64_t raw[NRG_METER_RAW];
    if (has_enough(w))
        return;
    json_t *list = json_array();
    nrg_meter_raw(w->found, reading, raw);
    if (!w->readings++)
        w->first_ns = reading->sent_ns;
    w->last_ns = reading->sent_ns;
    if (!w->values->json)
        print_time(reading->sent_ns);
    for (size_t i = 0; i < w->found->n_channels; i++) {
        const struct nrg_channel *c = &w->found->channels[i];
        double value = (double)raw[i] * c->scale;
        if (raw[i] == NRG_MISSING)
            continue;
        note_value(&w->ranges[i], value);
        json_array_append_new(list, value_json(c, value));
        if (!w->values->json)
            printf("  %s %.6g %s", c->name, value, nrg_quantity_unit(c->quantity));
    }
    if (!w->values->json && !isnan(reading->rssi_dbm))
        printf("  %g dBm", reading->rssi_dbm);
    if (!w->values->json) {
        putchar('\n');
        json_decref(list);
        return;
    }
    json_t *o = json_pack("{s:s, s:f, s:o}", "event", "reading", "time_s", unix_s(reading->sent_ns),
                          "values", list);
    nrg_json_real(o, "rssi_dbm", reading->rssi_dbm);
    print_line(o);
}

/* Any bytes as readable text: those that are not printable become \xNN. */
static const char *make_readable(const void *bytes, size_t n, char *buf, size_t size)
{
    const unsigned char *p = bytes;
    size_t len = 0;
    for (size_t i = 0; i < n && len + 5 < size; i++) {
        if (p[i] >= 32 && p[i] < 127)
            buf[len++] = (char)p[i];
        else
            len += (size_t)snprintf(buf + len, size - len, "\\x%02x", p[i]);
    }
    buf[len] = '\0';
    return buf;
}

static void on_refused(struct nrg_meter_out *out, const void *bytes, size_t n, const char *why,
                       bool harmless)
{
    struct watch *w = (struct watch *)out;
    char text[SHOWN * 2];
    if (has_enough(w))
        return;
    make_readable(bytes, n, text, sizeof text);
    if (w->values->json)
        print_line(json_pack("{s:s, s:s, s:s, s:b}", "event", "refused", "text", text, "why", why,
                             "harmless", (int)harmless));
    else
        printf("%s %s   (%s)\n", harmless ? "-" : "?", text, why);
}

static void on_raw(struct nrg_meter_out *out, const void *bytes, size_t n)
{
    struct watch *w = (struct watch *)out;
    char text[4 * 4096 + 8];
    make_readable(bytes, n, text, sizeof text);
    if (w->values->json)
        print_line(json_pack("{s:s, s:s}", "event", "raw", "text", text));
    else
        printf("< %s\n", text);
}

static void on_row(struct nrg_sink *sink, unsigned group, int64_t t_ns, int64_t width_ns,
                   const int64_t *raw)
{
}

static void on_note(struct nrg_sink *sink, const char *kind, const char *text)
{
    struct watch *w = of_sink(sink);
    bool program =
        !strcmp(w->found->driver->name, "exec") || !strcmp(w->found->driver->name, "waveform-exec");
    w->over |= program && !strcmp(kind, "gone");
    if (has_enough(w))
        return;
    if (w->values->json)
        print_line(json_pack("{s:s, s:s, s:s}", "event", "note", "kind", kind, "text", text));
    else
        printf("! %s\n", text);
}

static json_t *ranges_json(const struct watch *w)
{
    json_t *list = json_array();
    for (size_t i = 0; i < w->found->n_channels; i++) {
        const struct range *r = &w->ranges[i];
        if (r->n)
            json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:f, s:f, s:f}", "name",
                                                  w->found->channels[i].name, "quantity",
                                                  nrg_quantity_name(w->found->channels[i].quantity),
                                                  "n", (json_int_t)r->n, "least", r->least, "mean",
                                                  r->sum / (double)r->n, "most", r->most));
    }
    return list;
}

static void print_summary_json(const struct watch *w, const struct nrg_meter_stats *stats)
{
    json_t *o =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "event", "end", "readings",
                  (json_int_t)w->readings, "refused", (json_int_t)stats->refused, "refused_bytes",
                  (json_int_t)stats->refused_bytes, "harmless", (json_int_t)stats->harmless,
                  "bytes", (json_int_t)stats->bytes, "values", ranges_json(w));
    nrg_json_real(o, "period_s", stats->period_ns ? (double)stats->period_ns / 1e9 : NAN);
    nrg_json_real(o, "rssi_dbm", stats->rssi_dbm);
    print_line(o);
}

static void print_summary(const struct watch *w, const struct nrg_meter_stats *stats)
{
    if (w->values->json) {
        print_summary_json(w, stats);
        return;
    }
    printf("\n%llu readings", (unsigned long long)w->readings);
    if (w->readings > 1 && w->last_ns > w->first_ns)
        printf(", one every %.3g s",
               (double)(w->last_ns - w->first_ns) / 1e9 / (double)(w->readings - 1));
    printf("; %llu bytes; not understood %llu, harmless %llu\n", (unsigned long long)stats->bytes,
           (unsigned long long)stats->refused, (unsigned long long)stats->harmless);
    for (size_t i = 0; i < w->found->n_channels; i++) {
        const struct nrg_channel *c = &w->found->channels[i];
        const struct range *r = &w->ranges[i];
        if (r->n)
            printf("%-20s %-12s %.6g .. %.6g %s, mean %.6g\n", c->name,
                   nrg_quantity_name(c->quantity), r->least, r->most,
                   nrg_quantity_unit(c->quantity), r->sum / (double)r->n);
        else
            printf("%-20s %-12s no value came\n", c->name, nrg_quantity_name(c->quantity));
    }
}

static void follow_meter(struct watch *w, const struct nrg_driver *driver, void *state)
{
    int64_t until_ns = w->values->for_ns ? nrg_now_ns() + w->values->for_ns : INT64_MAX;
    while (!nrg_stop_asked() && !w->over && !ferror(stdout)) {
        struct pollfd p = {.fd = driver->fd(state), .events = POLLIN};
        int64_t left_ms = (until_ns - nrg_now_ns()) / NRG_NS_PER_MS + 1;
        if (until_ns <= nrg_now_ns() || has_enough(w))
            break;
        if (poll(&p, 1, left_ms < 500 ? (int)left_ms : 500) > 0)
            driver->read(state, &w->sink);
    }
}

static int watch_found(struct nrg_cli *cli, const struct nrg_meter_values *values,
                       const struct nrg_found *found)
{
    const struct nrg_driver *driver = found->driver;
    struct nrg_error err;
    void *state;
    if (driver->read != nrg_meter_read && strcmp(driver->name, "mqtt") != 0 &&
        strcmp(driver->name, "mqtts") != 0)
        return nrg_usage(cli, "%s is not a meter: see nrg meter list", driver->name);
    if (driver->open(&cli->ctx, found, &state, &err))
        return nrg_complain(&err, 1);
    struct watch w = {.out = {.reading = on_reading, .refused = on_refused},
                      .sink = {.row = on_row, .note = on_note},
                      .values = values,
                      .found = found};
    if (values->raw)
        w.out.raw = on_raw;
    struct nrg_meter_monitor *monitor = state;
    monitor->watch = &w.out;
    nrg_stop_catch();
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0); /* readings show when they come, also in a pipe */
    if (!cli->quiet && !values->json)
        fprintf(stderr, "%s: waiting for readings; Ctrl-C ends\n", found->sensor);
    follow_meter(&w, driver, state);
    print_summary(&w, &monitor->stats);
    driver->close(state);
    return w.readings || nrg_stop_asked() ? 0 : 1;
}

int nrg_meter_cmd_watch(struct nrg_cli *cli, struct nrg_meter_values *values, const char *uri)
{
    static const char *const nothing[] = {NULL};
    const char *meters[] = {uri, NULL};
    struct nrg_sensor_options options = {0};
    struct nrg_probe probe;
    struct nrg_error err;
    if (nrg_desk_read(&values->desk, cli, &options, &err))
        return nrg_complain(&err, 1);
    const struct nrg_meter_config *config = &values->desk.config;
    if (!uri && !config->n_meters)
        return nrg_usage(cli, NRG_METER_NO_URI);
    char *own = uri ? NULL : strdup(config->meters[0].text);
    if (!uri && !(meters[0] = own))
        return nrg_out_of_memory();
    nrg_meter_config_drop_meters(&values->desk.config);
    nrg_root_complete(&cli->ctx.root, NRG_PART_DEV);
    options.meters = meters;
    options.only = nothing;
    int code = 2;
    if (nrg_probe_all(&probe, &cli->ctx, &options, &err)) {
        nrg_complain(&err, code);
    } else {
        code = probe.n_found ? watch_found(cli, values, &probe.found[0]) : 1;
        nrg_probe_release(&probe);
    }
    free(own);
    return code;
}

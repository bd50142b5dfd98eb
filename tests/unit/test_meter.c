/*
 * meter and its port: files that grow, are cut and replaced; pipes; programs and how they end;
 * channels and covers=; settings files. Serial lines are tested from outside (cli/test_meters.py).
 */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "sensors/meter/channels.h"
#include "sensors/meter/config.h"
#include "sensors/meter/decoders.h"
#include "sensors/meter/driver.h"
#include "sensors/meter/port.h"

#define LIMIT_MS 60000 /* ends a hang; never a measure of speed */

struct noted {
    struct keep_sink keep; /* first: callbacks cast back */
    char notes[16][160];
    size_t n_notes;
};

static void on_note(struct nrg_sink *sink, const char *kind, const char *text)
{
    struct noted *n = (struct noted *)sink;
    if (n->n_notes < 16)
        snprintf(n->notes[n->n_notes++], sizeof *n->notes, "%s: %s", kind, text);
}

static bool noted(const struct noted *n, const char *kind)
{
    for (size_t i = 0; i < n->n_notes; i++)
        if (!strncmp(n->notes[i], kind, strlen(kind)))
            return true;
    return false;
}

struct run {
    struct tree tree;
    struct nrg_probe probe;
    struct noted *sink;
    void *meter;
};

static void begin(struct run *r, const char *uri)
{
    const char *const meters[] = {uri, NULL};
    struct nrg_sensor_options options = {.meters = meters};
    struct nrg_error err;
    if (nrg_probe_all(&r->probe, &r->tree.ctx, &options, &err))
        fail_msg("%s", err.what);
    r->sink = calloc(1, sizeof *r->sink);
    keep_sink_init(&r->sink->keep, &r->probe.found[0]);
    r->sink->keep.sink.note = on_note;
    if (nrg_meter_open(&r->tree.ctx, &r->probe.found[0], &r->meter, &err))
        fail_msg("%s", err.what);
}

/* As the recorder does: reads whenever the descriptor says so. */
static void read_until(struct run *r, size_t rows)
{
    struct pollfd fd = {.fd = nrg_meter_fd(r->meter), .events = POLLIN};
    while (r->sink->keep.n_rows < rows) {
        assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
        assert_int_equal(nrg_meter_read(r->meter, &r->sink->keep.sink), 0);
    }
    assert_int_equal(r->sink->keep.n_rows, rows);
}

static void read_until_note(struct run *r, const char *kind)
{
    struct pollfd fd = {.fd = nrg_meter_fd(r->meter), .events = POLLIN};
    while (!noted(r->sink, kind)) {
        assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
        nrg_meter_read(r->meter, &r->sink->keep.sink);
    }
}

static void end(struct run *r)
{
    nrg_meter_close(r->meter);
    nrg_probe_release(&r->probe);
    tree_release(&r->tree);
    free(r->sink);
}

static double watts(const struct run *r, size_t row, size_t channel)
{
    return (double)r->sink->keep.rows[row].raw[channel] * r->probe.found[0].channels[channel].scale;
}

static void append(struct run *r, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s%s", r->tree.path, name);
    FILE *f = fopen(path, "ae");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void growing_file(void **state)
{
    struct run r = {0};
    char from[300], to[300];
    (void)state;
    tree_init(&r.tree);
    tree_write(&r.tree, "/log", "OK 5 1 0\nOK 5 2 0\n");
    begin(&r, "emonpi:/log?layout=power1");
    assert_string_equal(r.probe.found[0].channels[0].name, "wall");
    read_until(&r, 2);
    assert_true(watts(&r, 1, 0) == 2);
    append(&r, "/log", "OK 5 3");
    append(&r, "/log", " 0\n");
    read_until(&r, 3);
    assert_true(watts(&r, 2, 0) == 3);
    assert_true(r.sink->keep.rows[2].t_ns > r.sink->keep.rows[1].t_ns);

    tree_write(&r.tree, "/log", "OK 5 4 0\n"); /* cut, as copytruncate does */
    read_until(&r, 4);
    snprintf(from, sizeof from, "%s/log", r.tree.path);
    snprintf(to, sizeof to, "%s/log.1", r.tree.path);
    assert_int_equal(rename(from, to), 0);
    tree_write(&r.tree, "/log", "OK 5 5 0\n");
    read_until(&r, 5);
    assert_true(watts(&r, 4, 0) == 5);
    assert_int_equal(((const struct nrg_meter_monitor *)r.meter)->stats.readings, 5);
    end(&r);
}

static void file_from_its_end(void **state)
{
    struct run r = {0};
    (void)state;
    tree_init(&r.tree);
    tree_write(&r.tree, "/log", "OK 5 1 0\n");
    begin(&r, "emonpi:/log?layout=power1&from=end");
    append(&r, "/log", "OK 5 2 0\n");
    read_until(&r, 1);
    assert_true(watts(&r, 0, 0) == 2);
    end(&r);
}

/* More than is read at once: all of it comes, a piece at a time. */
static void long_file(void **state)
{
    struct run r = {0};
    struct nrg_str text = {0};
    (void)state;
    tree_init(&r.tree);
    for (int i = 0; i < 4000; i++)
        nrg_str_addf(&text, "OK 5 %d 0 (-%d)\r\n", i & 255, i & 63);
    tree_write_bytes(&r.tree, "/log", text.text, text.len);
    nrg_str_release(&text);
    begin(&r, "emonpi:/log?layout=power1");
    nrg_meter_read(r.meter, &r.sink->keep.sink);
    assert_true(r.sink->keep.n_rows < 4000);
    read_until(&r, 4000);
    for (size_t i = 1; i < 4000; i++)
        assert_true(r.sink->keep.rows[i].t_ns > r.sink->keep.rows[i - 1].t_ns);
    end(&r);
}

static void named_pipe(void **state)
{
    struct run r = {0};
    char path[300];
    (void)state;
    tree_init(&r.tree);
    tree_write(&r.tree, "/x", "x");
    snprintf(path, sizeof path, "%s/pipe", r.tree.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    begin(&r, "emonpi:/pipe?layout=power1");
    nrg_meter_read(r.meter, &r.sink->keep.sink); /* without a writer the pipe has not ended */
    assert_int_equal(r.sink->n_notes, 0);
    append(&r, "/pipe", "OK 5 1 0\nOK 5 2 0"); /* the last line has no end */
    read_until_note(&r, "gone");
    assert_int_equal(r.sink->keep.n_rows, 2);
    append(&r, "/pipe", "OK 5 3 0\n");
    read_until(&r, 3);
    assert_true(noted(r.sink, "back"));
    end(&r);
}

static size_t read_program(struct nrg_port *port, char *text, size_t size,
                           struct nrg_port_event *event)
{
    struct pollfd fd = {.fd = nrg_port_fd(port), .events = POLLIN};
    size_t len = 0;
    do {
        assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
        nrg_port_next(port, (uint8_t *)text + len, size - 1 - len, event);
        len += event->kind == NRG_PORT_BYTES ? event->n : 0;
    } while (event->kind != NRG_PORT_ENDED);
    text[len] = '\0';
    return len;
}

static void program(void **state)
{
    const struct nrg_context ctx = {.root = {.fd = -1}};
    struct nrg_port_options options = {.kind = NRG_PORT_PROGRAM,
                                       .place = "read x; echo \"<$x>\"; exit 3"};
    struct nrg_port *port;
    struct nrg_port_event event;
    char text[64];
    (void)state;
    assert_int_equal(nrg_port_open(&ctx, &options, &port, NULL), 0);
    read_program(port, text, sizeof text, &event);
    assert_string_equal(text, "<>\n"); /* it has no input to take from the workload */
    assert_non_null(strstr(event.why, "ended"));
    nrg_port_close(port);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* reaped */
    assert_int_equal(errno, ECHILD);
}

/* A program with helpers that would go on: all of them end with the port. */
static void stubborn_program(void **state)
{
    const struct nrg_context ctx = {.root = {.fd = -1}};
    struct nrg_port_options options = {
        .kind = NRG_PORT_PROGRAM,
        .place = "trap '' TERM; sleep 1000 & echo $! $$; while :; do sleep 1000; done"};
    struct nrg_port *port;
    struct nrg_port_event event = {0};
    char text[64] = "";
    int helper, leader;
    (void)state;
    assert_int_equal(nrg_port_open(&ctx, &options, &port, NULL), 0);
    struct pollfd fd = {.fd = nrg_port_fd(port), .events = POLLIN};
    while (event.kind != NRG_PORT_BYTES) {
        assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
        nrg_port_next(port, (uint8_t *)text, sizeof text - 1, &event);
    }
    assert_int_equal(sscanf(text, "%d %d", &helper, &leader), 2);
    assert_int_equal(getpgid(helper), leader);
    assert_int_not_equal(getpgid(0), leader);
    nrg_port_close(port);
    assert_int_equal(kill(leader, 0), -1);
    for (int i = 0; i < LIMIT_MS && !kill(helper, 0); i++) {
        char path[64], stat[256] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", helper);
        FILE *f = fopen(path, "re");
        if (!f || !fgets(stat, sizeof stat, f) || strstr(stat, ") Z"))
            i = LIMIT_MS; /* ended; who adopted it may not have looked yet */
        if (f)
            fclose(f);
        usleep(1000);
    }
}

static void places(void **state)
{
    static const struct nrg_meter_field one[] = {
        {"load", NRG_POWER, NRG_GAUGE, 1, 0},
        {"load", NRG_ENERGY, NRG_COUNTER, 3600, 1000},
        {"mains", NRG_VOLTAGE, NRG_GAUGE, 0.01, 0},
    };
    static const struct nrg_meter_field two[] = {
        {"a", NRG_POWER, NRG_GAUGE, 1, 0},
        {"b", NRG_POWER, NRG_GAUGE, 1, 0},
        {"b", NRG_ENERGY, NRG_COUNTER, 1, 0},
    };
    static const struct {
        const struct nrg_meter_field *fields;
        const char *uri, *names; /* in order; '!' behind those that cover the processors */
    } cases[] = {
        {one, "x:/y", "wall! wall! mains "},
        {one, "x:/y?covers=machine", "wall! wall! mains "},
        {one, "x:/y?covers=none", "load load mains "},
        {two, "x:/y", "a b b "},
        {two, "x:/y?covers=b:machine", "a wall! wall! "},
        {two, "x:/y?covers=machine", "a b b wall! "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nrg_found found = {0};
        struct nrg_uri uri;
        char names[64] = "";
        assert_int_equal(nrg_uri_parse(&uri, cases[i].uri, NULL), 0);
        assert_int_equal(nrg_meter_channels(&found, &uri, cases[i].fields, 3, 0, NULL), 0);
        for (size_t c = 0; c < found.n_channels; c++) {
            const struct nrg_channel *ch = &found.channels[c];
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s ", ch->name,
                     ch->covers_cpu ? "!" : "");
            assert_int_equal(ch->wide, ch->quantity == NRG_POWER || ch->quantity == NRG_ENERGY);
        }
        assert_string_equal(names, cases[i].names);
        free(found.channels);
    }
}

static void raw_values(void **state)
{
    static const struct nrg_meter_field fields[] = {
        {"a", NRG_POWER, NRG_GAUGE, 1, 0},
        {"b", NRG_POWER, NRG_GAUGE, 0, 0},
        {"e", NRG_ENERGY, NRG_COUNTER, 3600, 0},
    };
    struct nrg_found found = {0};
    struct nrg_uri uri;
    int64_t raw[NRG_METER_RAW];
    double values[] = {100.5, -0.25, 7200};
    struct nrg_meter_reading reading = {.values = values, .n_values = 3};
    (void)state;
    nrg_uri_parse(&uri, "x:/y?covers=machine", NULL);
    assert_int_equal(nrg_meter_channels(&found, &uri, fields, 3, 0, NULL), 0);
    nrg_meter_raw(&found, &reading, raw);
    assert_true(raw[0] == 100500000 && raw[1] == -250000 && raw[2] == 2 && raw[3] == 100250000);
    values[1] = NAN;
    values[0] = 1e300;
    nrg_meter_raw(&found, &reading, raw);
    assert_true(raw[0] == NRG_MISSING && raw[1] == NRG_MISSING && raw[3] == NRG_MISSING);
    free(found.channels);
}

static void settings(void **state)
{
    static const char text[] = "# desk\n\n meter = emonpi:/dev/x?layout=mine\r\n"
                               "layout mine = power1, Vrms*0.01V\nlayout mine = power2\n";
    struct nrg_meter_config config = {0};
    struct nrg_error err;
    struct nrg_uri uri;
    (void)state;
    assert_int_equal(nrg_meter_config_parse(&config, "f", text, sizeof text - 1, &err), 0);
    assert_int_equal(config.n_meters, 1);
    assert_string_equal(config.meters[0].where, "f:3");
    assert_string_equal(nrg_meter_config_layout(&config, "mine"), "power1, Vrms*0.01V");
    assert_int_equal(nrg_uri_parse(&uri, config.meters[0].text, NULL), 0);
    assert_int_equal(nrg_meter_expand(&uri, &config, NULL), 0);
    assert_string_equal(nrg_uri_text(&uri, "layout"), "power1, Vrms*0.01V");
    assert_int_equal(nrg_meter_config_parse(&config, "f", "\nmeter\n", 7, &err), -EINVAL);
    assert_string_equal(err.where, "f:2");
    nrg_meter_config_release(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growing_file), cmocka_unit_test(file_from_its_end),
        cmocka_unit_test(long_file),    cmocka_unit_test(named_pipe),
        cmocka_unit_test(program),      cmocka_unit_test(stubborn_program),
        cmocka_unit_test(places),       cmocka_unit_test(raw_values),
        cmocka_unit_test(settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

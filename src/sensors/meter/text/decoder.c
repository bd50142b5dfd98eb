/*
 * Meters that print lines: the way out for every meter that nrg does not know.
 *
 *   exec:PROGRAM ARGUMENTS   its standard output
 *   file:PATH                a file that grows, a pipe
 *   lines:DEVICE             a serial line
 *
 * Keys: pattern= (meter_pattern.h) or columns=, separator= (meter_table.h); comment= the
 * character that begins a comment (default '#'); time=arrival leaves the meter's own times aside.
 * Without any, a number per line is power in W.
 *
 * A time that the meter tells is taken as the moment of the reading when it goes forward and is
 * not in the future: a clock that is ahead would put power where it was not.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/drivers.h"
#include "sensors/meter/decoders.h"
#include "sensors/meter/line.h"
#include "sensors/meter/text/pattern.h"
#include "sensors/meter/text/table.h"

#define AHEAD_NS (2 * NRG_NS_PER_S) /* what clocks of two machines may differ by */

struct text {
    struct nrg_meter_lines lines;
    struct nrg_meter_field fields[NRG_METER_FIELDS];
    size_t n_fields;
    struct nrg_pattern pattern;
    struct nrg_table table;
    struct nrg_meter_times times;
    bool by_pattern, own_times, from_start;
    char comment;
    int64_t last_ns;
};

static int read_keys(struct text *t, struct nrg_uri *uri, struct nrg_error *err)
{
    const char *pattern = nrg_uri_text(uri, "pattern"), *columns = nrg_uri_text(uri, "columns");
    const char *separator = nrg_uri_text(uri, "separator"), *time = nrg_uri_text(uri, "time");
    const char *comment = nrg_uri_text(uri, "comment");
    if (pattern && (columns || separator))
        return nrg_fail(err, -EINVAL, uri->text, "pattern= and columns= exclude each other");
    if (time && strcmp(time, "arrival") && strcmp(time, "own"))
        return nrg_fail(err, -EINVAL, uri->text, "time= wants own or arrival, not '%.20s'", time);
    if (comment && (!comment[0] || comment[1]))
        return nrg_fail(err, -EINVAL, uri->text, "comment= wants one character");
    t->comment = comment ? comment[0] : '#';
    t->own_times = !time || !strcmp(time, "own");
    t->by_pattern = pattern != NULL;
    t->n_fields = 0;
    return pattern ? nrg_pattern_compile(&t->pattern, pattern, t->fields, &t->n_fields, err)
                   : nrg_table_init(&t->table, columns, separator, t->fields, &t->n_fields, err);
}

static int create(struct nrg_uri *uri, struct nrg_meter_field *fields, size_t *n_fields,
                  void **state, struct nrg_error *err)
{
    struct text *t = calloc(1, sizeof *t);
    if (!t)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    int rc = read_keys(t, uri, err);
    if (rc) {
        free(t);
        return rc;
    }
    nrg_meter_times_init(&t->times);
    t->last_ns = INT64_MIN;
    t->lines.any_byte = true;
    t->from_start = !strcmp(uri->scheme, "exec");
    if (!t->from_start) { /* the port reads and checks it too */
        const char *from = nrg_uri_text(uri, "from");
        t->from_start = from && !strcmp(from, "start");
    }
    t->lines.whole = t->from_start;
    memcpy(fields, t->fields, t->n_fields * sizeof *fields);
    *n_fields = t->n_fields;
    *state = t;
    return 0;
}

/* NULL, or what is wrong with the line's own time. */
static const char *place(struct text *t, const char *time, size_t len, int64_t *sent_ns)
{
    int64_t own_ns;
    if (!time || !t->own_times)
        return NULL;
    if (nrg_meter_time(&t->times, time, len, *sent_ns, &own_ns))
        return "its time is none that is understood (seconds or ms since 1970, or a date)";
    if (own_ns > *sent_ns + AHEAD_NS)
        return "its time is in the future: set the clocks, or give time=arrival";
    if (own_ns <= t->last_ns)
        return "its time does not go forward";
    *sent_ns = t->last_ns = own_ns;
    return NULL;
}

static void emit(struct text *t, const struct nrg_meter_line *line, const double *values,
                 const char *time, size_t time_len, struct nrg_meter_out *out)
{
    struct nrg_meter_reading reading = {
        .sent_ns = line->sent_ns, .values = values, .n_values = t->n_fields, .rssi_dbm = NAN};
    const char *why = place(t, time, time_len, &reading.sent_ns);
    if (why)
        nrg_meter_refuse(out, line, why, false);
    else
        out->reading(out, &reading);
}

static void read_pattern(struct text *t, const struct nrg_meter_line *line,
                         struct nrg_meter_out *out)
{
    double values[NRG_METER_FIELDS];
    struct nrg_pattern_match match = {.values = values};
    if (nrg_pattern_match(&t->pattern, line->text, line->len, t->n_fields, &match))
        emit(t, line, values, match.time, match.time_len, out);
    else
        nrg_meter_refuse(out, line, "does not match the pattern", true);
}

/* The line of names may be the first one seen. */
static void read_partial(struct text *t, const struct nrg_meter_line *line,
                         struct nrg_meter_out *out)
{
    double values[NRG_METER_FIELDS];
    struct nrg_table_row row = {.values = values};
    bool names = !t->by_pattern && nrg_table_read(&t->table, line->text, line->len, t->fields,
                                                  t->n_fields, &row) == NRG_TABLE_NAMES;
    nrg_meter_refuse(out, line,
                     names ? "names of the columns" : "the first line may have lost its beginning",
                     true);
}

static void read_columns(struct text *t, const struct nrg_meter_line *line,
                         struct nrg_meter_out *out)
{
    double values[NRG_METER_FIELDS];
    struct nrg_table_row row = {.values = values};
    switch (nrg_table_read(&t->table, line->text, line->len, t->fields, t->n_fields, &row)) {
    case NRG_TABLE_ROW:
        emit(t, line, values, row.time, row.time_len, out);
        break;
    case NRG_TABLE_NAMES:
        nrg_meter_refuse(out, line, "names of the columns", true);
        break;
    case NRG_TABLE_REFUSED:
        nrg_meter_refuse(out, line, row.why, false);
    }
}

static void on_line(void *arg, const struct nrg_meter_line *line, struct nrg_meter_out *out)
{
    struct text *t = arg;
    const char *first = line->text + strspn(line->text, " \t");
    if (*first == t->comment)
        nrg_meter_refuse(out, line, "a comment", true);
    else if (line->partial)
        read_partial(t, line, out);
    else if (t->by_pattern)
        read_pattern(t, line, out);
    else if (*first)
        read_columns(t, line, out);
}

static void feed(void *state, const uint8_t *bytes, size_t n, int64_t end_ns, int64_t byte_ns,
                 struct nrg_meter_out *out)
{
    struct text *t = state;
    nrg_meter_lines_feed(&t->lines, bytes, n, end_ns, byte_ns, on_line, t, out);
}

static void reset(void *state)
{
    struct text *t = state;
    nrg_meter_lines_reset(&t->lines);
    t->lines.whole = t->from_start;
    t->times.first_ns = NRG_MISSING; /* a program that starts again counts from its new start */
}

static void end(void *state, int64_t end_ns, struct nrg_meter_out *out)
{
    struct text *t = state;
    (void)end_ns;
    nrg_meter_lines_end(&t->lines, on_line, t, out);
    t->lines.whole = t->from_start;
}

const struct nrg_meter_decoder nrg_decoder_text = {
    .create = create, .feed = feed, .reset = reset, .end = end, .destroy = free};

const struct nrg_driver nrg_driver_exec = {
    .name = "exec",
    .summary = "lines that a program prints",
    .probe = nrg_meter_probe,
    NRG_METER_FUNCTIONS,
};

const struct nrg_driver nrg_driver_file = {
    .name = "file",
    .summary = "lines of a file that grows, or of a pipe",
    .probe = nrg_meter_probe,
    NRG_METER_FUNCTIONS,
};

const struct nrg_driver nrg_driver_lines = {
    .name = "lines",
    .summary = "lines from a serial port",
    .probe = nrg_meter_probe,
    NRG_METER_FUNCTIONS,
};

/*
 * Meters that print lines: for every meter that nrg does not know.
 *
 *   exec:PROGRAM ARGUMENTS   its standard output
 *   file:PATH                a file that grows, a pipe
 *   lines:DEVICE             a serial line
 *
 * Keys: pattern= (text/pattern.h) or columns=, rows=, separator= (text/table.h); comment= the
 * character that begins a comment (default '#'); time=arrival ignores the meter's own times.
 * Without keys, a number per line is power in W.
 *
 * The meter's own time is the time of the reading if it goes forward and is not in the future: a
 * clock that is ahead would move power to a time when it was not there.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/drivers.h"
#include "sensors/meter/decoders.h"
#include "sensors/meter/line.h"
#include "sensors/meter/text/pattern.h"
#include "sensors/meter/text/table.h"
#include "sensors/meter/time.h"

#define AHEAD_NS (2 * NRG_NS_PER_S) /* accepted difference between the clocks of two machines */

struct text {
    struct nrg_meter_lines lines;
    struct nrg_meter_field fields[NRG_METER_FIELDS];
    size_t n_fields;
    struct nrg_pattern pattern;
    struct nrg_table table;
    struct nrg_meter_times times;
    bool by_pattern, by_arrival;
    char comment;
    int64_t last_ns[NRG_TABLE_DEVICES];
};

/* The port reads from=, too. */
static const struct nrg_uri_key file_keys[] = {
    NRG_URI_WORD("from", struct text, lines.from_start, "end", "start"), {0}};
static const struct nrg_uri_key keys[] = {
    NRG_URI_WORD("time", struct text, by_arrival, "own", "arrival"), {0}};

static int read_keys(struct text *t, struct nrg_uri *uri, struct nrg_error *err)
{
    const char *pattern = nrg_uri_text(uri, "pattern"), *columns = nrg_uri_text(uri, "columns");
    const char *separator = nrg_uri_text(uri, "separator"), *rows = nrg_uri_text(uri, "rows");
    const char *comment = nrg_uri_text(uri, "comment");
    if (pattern && (columns || separator || rows))
        return nrg_fail(err, -EINVAL, uri->text, "pattern= and columns= exclude each other");
    const char *covers = nrg_uri_text(uri, "covers");
    if (rows && covers && !strcmp(covers, "machine"))
        return nrg_fail(err, -EINVAL, uri->text,
                        "rows= are not added up: covers=power-0:machine, or none");
    int rc = nrg_uri_read(uri, keys, t, err);
    if (rc)
        return rc;
    if (comment && (!comment[0] || comment[1]))
        return nrg_fail(err, -EINVAL, uri->text, "comment= wants one character");
    t->comment = comment ? comment[0] : '#';
    t->by_pattern = pattern != NULL;
    t->n_fields = 0;
    t->lines.from_start = !strcmp(uri->scheme, "exec");
    if (!t->lines.from_start && (rc = nrg_uri_read(uri, file_keys, t, err)))
        return rc;
    return pattern
               ? nrg_pattern_compile(&t->pattern, pattern, t->fields, &t->n_fields, err)
               : nrg_table_init(&t->table, columns, rows, separator, t->fields, &t->n_fields, err);
}

/* Takes the line's own time over, if it has one. NULL, or what is wrong with it. */
static const char *use_own_time(struct text *t, const char *time, size_t len, int64_t *last_ns,
                                int64_t *sent_ns)
{
    int64_t own_ns;
    if (!time || t->by_arrival)
        return NULL;
    if (nrg_meter_time(&t->times, time, len, *sent_ns, &own_ns))
        return "its time is not understood (seconds or ms since 1970, or a date)";
    if (own_ns > *sent_ns + AHEAD_NS)
        return "its time is in the future: set the clocks, or give time=arrival";
    if (own_ns <= *last_ns)
        return "its time does not go forward";
    *sent_ns = *last_ns = own_ns;
    return NULL;
}

static void emit_reading(struct text *t, const struct nrg_meter_line *line,
                         const struct nrg_table_row *row, struct nrg_meter_out *out)
{
    struct nrg_meter_reading reading = {
        .sent_ns = line->sent_ns, .values = row->values, .n_values = t->n_fields, .rssi_dbm = NAN};
    const char *why =
        use_own_time(t, row->time, row->time_len, &t->last_ns[row->device], &reading.sent_ns);
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
        emit_reading(t, line,
                     &(const struct nrg_table_row){
                         .values = values, .time = match.time, .time_len = match.time_len},
                     out);
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
        emit_reading(t, line, &row, out);
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

static int init_text(void *state, struct nrg_uri *uri, struct nrg_meter_field *fields,
                     size_t *n_fields, struct nrg_error *err)
{
    struct text *t = state;
    int rc = read_keys(t, uri, err);
    if (rc)
        return rc;
    nrg_meter_times_init(&t->times);
    for (size_t i = 0; i < NRG_TABLE_DEVICES; i++)
        t->last_ns[i] = INT64_MIN;
    t->lines.any_byte = true;
    t->lines.on_line = on_line;
    memcpy(fields, t->fields, t->n_fields * sizeof *fields);
    *n_fields = t->n_fields;
    return 0;
}

static void reset_text(void *state)
{
    struct text *t = state;
    nrg_meter_lines_reset(t);
    t->times.first_ns = NRG_MISSING; /* a program that starts again counts from its new start */
}

const struct nrg_meter_decoder nrg_decoder_text = {
    .state_size = sizeof(struct text),
    .init = init_text,
    .feed = nrg_meter_lines_feed,
    .reset = reset_text,
    .end = nrg_meter_lines_end,
};

const struct nrg_driver nrg_driver_exec =
    NRG_METER_DRIVER("exec", "lines that a program prints", nrg_meter_probe);

const struct nrg_driver nrg_driver_file =
    NRG_METER_DRIVER("file", "lines of a file that grows, or of a pipe", nrg_meter_probe);

const struct nrg_driver nrg_driver_lines =
    NRG_METER_DRIVER("lines", "lines from a serial port", nrg_meter_probe);

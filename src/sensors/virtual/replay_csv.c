/*
 * CSV as a source for replay (replay_source.h). The header names the columns,
 *
 *     time_s,package-0:energy_j,gpu-0:power_w        or time_ns, or time (ISO date and time)
 *
 * and every further line is a row; empty cells (and "nan") are gaps, '#' lines and blank lines
 * are skipped. A cell may have double quotes; a comma inside them is not supported, because no
 * name or number has one.
 *
 * The file is streamed through one buffer with read(2), so a log of days costs 64 kB. A line must
 * fit into half of it. Refused at open, with the line: no header, unknown columns, the same column
 * twice. Each later line that does not parse is an error and is skipped.
 */
#include "sensors/virtual/replay_csv.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/csv.h"
#include "base/input.h"
#include "base/mem.h"
#include "base/parse.h"
#include "sensors/virtual/replay_time.h"

#define BUFFER_BYTES 65536
#define MAX_LINE     (BUFFER_BYTES / 2)
#define MAX_RAW      4e18 /* differences fit int64 */

enum time_form { TIME_S, TIME_NS, TIME_ISO };

struct csv {
    struct nrg_replay_source source; /* first: the functions cast back */
    int fd;
    enum time_form time_form;
    bool have_time;
    int64_t last_ns;
    size_t begin, end; /* unread bytes in buffer */
    bool at_end;       /* of the file */
    struct nrg_channel channels[NRG_REPLAY_CHANNELS];
    char buffer[BUFFER_BYTES];
};

static const struct column_unit {
    const char *suffix;
    enum nrg_quantity quantity;
    double scale;
} units[] = {
    {"j", NRG_ENERGY, 1e-6},
    {"w", NRG_POWER, 1e-6},
    {"v", NRG_VOLTAGE, 1e-6},
    {"a", NRG_CURRENT, 1e-6},
    {"bytes", NRG_BYTES, 1},
    {"hz", NRG_CLOCK, 1},
    {"c", NRG_TEMPERATURE, 1e-3},
    {"util", NRG_UTILISATION, 1e-6},
    {"utilisation", NRG_UTILISATION, 1e-6},
};

/* Next cell of [*p, end) without blanks and quotes; false when the line is used up. */
static bool next_cell(const char **p, const char *end, struct nrg_cell *cell)
{
    if (!*p)
        return false;
    const char *comma = memchr(*p, ',', (size_t)(end - *p));
    *cell = (struct nrg_cell){*p, (size_t)((comma ? comma : end) - *p)};
    *p = comma ? comma + 1 : NULL;
    nrg_trim(&cell->text, &cell->len);
    if (cell->len >= 2 && *cell->text == '"' && cell->text[cell->len - 1] == '"') {
        cell->text++;
        cell->len -= 2;
    }
    return true;
}

static ssize_t refill_buffer(struct csv *csv)
{
    memmove(csv->buffer, csv->buffer + csv->begin, csv->end - csv->begin);
    csv->end -= csv->begin;
    csv->begin = 0;
    ssize_t n;
    do
        n = read(csv->fd, csv->buffer + csv->end, sizeof csv->buffer - csv->end);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    csv->at_end = n == 0;
    csv->end += (size_t)n;
    return n;
}

/* Skips the rest of a line that is too long. */
static int skip_line(struct csv *csv)
{
    for (;;) {
        char *from = csv->buffer + csv->begin;
        char *stop = memchr(from, '\n', csv->end - csv->begin);
        csv->begin = stop ? (size_t)(stop + 1 - csv->buffer) : csv->end;
        if (stop || csv->at_end)
            return -EMSGSIZE;
        ssize_t n = refill_buffer(csv);
        if (n < 0)
            return (int)n;
    }
}

/* 1: *line is the next line, valid until the next call; 0: the end; -EMSGSIZE: it is too long. */
static int next_line(struct csv *csv, struct nrg_cell *line)
{
    for (;;) {
        char *from = csv->buffer + csv->begin;
        size_t have = csv->end - csv->begin;
        char *stop = memchr(from, '\n', have);
        if (stop || (csv->at_end && have)) {
            *line = (struct nrg_cell){from, stop ? (size_t)(stop - from) : have};
            csv->begin += line->len + (stop ? 1 : 0);
            csv->source.line++;
            return line->len > MAX_LINE ? -EMSGSIZE : 1;
        }
        if (csv->at_end)
            return 0;
        if (have > MAX_LINE) {
            csv->source.line++;
            return skip_line(csv);
        }
        ssize_t n = refill_buffer(csv);
        if (n < 0)
            return (int)n;
    }
}

static bool has_content(const struct nrg_cell *line)
{
    struct nrg_cell content = *line;
    nrg_trim(&content.text, &content.len);
    return content.len && *content.text != '#';
}

static int next_content(struct csv *csv, struct nrg_cell *line)
{
    int rc;
    do
        rc = next_line(csv, line);
    while (rc > 0 && !has_content(line));
    return rc;
}

static int parse_time(const struct csv *csv, const struct nrg_cell *cell, int64_t *t_ns)
{
    if (csv->time_form == TIME_S)
        return nrg_time_from_seconds(cell->text, cell->len, t_ns);
    if (csv->time_form == TIME_ISO)
        return nrg_time_from_iso(cell->text, cell->len, t_ns);
    int rc = nrg_parse_i64(cell->text, cell->len, t_ns);
    /* Half of the range, so that differences fit. */
    return rc ? rc : *t_ns > INT64_MAX / 2 || *t_ns < -(INT64_MAX / 2) ? -ERANGE : 0;
}

static int parse_value(const struct nrg_cell *cell, double scale, int64_t *raw)
{
    double number;
    *raw = NRG_MISSING;
    if (!cell->len || (cell->len == 3 && !strncasecmp(cell->text, "nan", 3)))
        return 0;
    int rc = nrg_parse_double(cell->text, cell->len, &number);
    if (rc)
        return rc;
    if (!(fabs(number / scale) < MAX_RAW))
        return -ERANGE;
    *raw = (int64_t)llround(number / scale);
    return 0;
}

static int parse_row(struct csv *csv, const struct nrg_cell *line, struct nrg_replay_row *row)
{
    struct nrg_cell cell;
    const char *p = line->text, *end = line->text + line->len;
    row->group = 0;
    if (!next_cell(&p, end, &cell) || parse_time(csv, &cell, &row->t_ns) ||
        (csv->have_time && row->t_ns < csv->last_ns))
        return -EINVAL;
    for (size_t i = 0; i < csv->source.n_channels; i++) {
        csv->source.bad_channel = (unsigned)i;
        if (!next_cell(&p, end, &cell))
            return -EINVAL;
        int rc = parse_value(&cell, csv->channels[i].scale, &row->raw[i]);
        if (rc)
            return rc;
    }
    if (p)
        return -EINVAL; /* more cells than columns */
    csv->have_time = true;
    csv->last_ns = row->t_ns;
    return 1;
}

static int csv_next(struct nrg_replay_source *source, struct nrg_replay_row *row)
{
    struct csv *csv = (struct csv *)source;
    struct nrg_cell line;
    source->bad_channel = 0;
    int rc = next_content(csv, &line);
    if (rc < 0 && rc != -EMSGSIZE) {
        source->failed = true;
        return rc;
    }
    if (rc > 0)
        rc = parse_row(csv, &line, row);
    if (rc < 0)
        source->bad_lines++;
    return rc;
}

static const struct column_unit *find_unit(const char *text, size_t len)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t n = strlen(units[i].suffix);
        if (len >= n && !strncmp(text + len - n, units[i].suffix, n) &&
            (len == n || text[len - n - 1] == '_'))
            return &units[i];
    }
    return NULL;
}

static int add_column(struct csv *csv, const char *path, const struct nrg_cell *cell,
                      struct nrg_error *err)
{
    char shown[80];
    nrg_copy_clean(shown, sizeof shown, cell->text, cell->len);
    const char *colon = memrchr(cell->text, ':', cell->len);
    size_t name_len = colon ? (size_t)(colon - cell->text) : 0;
    const struct column_unit *unit = colon ? find_unit(colon + 1, cell->len - name_len - 1) : NULL;
    if (!unit || !name_len || name_len >= sizeof csv->channels->name)
        return nrg_fail_at(err, -EINVAL, path, csv->source.line,
                           "column '%s' is not NAME:QUANTITY_UNIT, such as package-0:energy_j "
                           "(units _j _w _v _a _bytes _hz _c, or util)",
                           shown);
    if (csv->source.n_channels == NRG_REPLAY_CHANNELS)
        return nrg_fail_at(err, -E2BIG, path, csv->source.line, "more than %d columns",
                           NRG_REPLAY_CHANNELS);
    struct nrg_channel *channel = &csv->channels[csv->source.n_channels];
    *channel = (struct nrg_channel){.quantity = unit->quantity,
                                    .kind = unit->quantity == NRG_ENERGY ? NRG_COUNTER : NRG_GAUGE,
                                    .scale = unit->scale,
                                    .resolution = unit->scale};
    nrg_copy_clean(channel->name, sizeof channel->name, cell->text, name_len);
    for (size_t i = 0; i < csv->source.n_channels; i++)
        if (csv->channels[i].quantity == channel->quantity &&
            !strcmp(csv->channels[i].name, channel->name))
            return nrg_fail_at(err, -EINVAL, path, csv->source.line, "column '%s' is there twice",
                               shown);
    csv->source.n_channels++;
    return 0;
}

static bool cell_is(const struct nrg_cell *cell, const char *text)
{
    return cell->len == strlen(text) && !memcmp(cell->text, text, cell->len);
}

static int time_column(struct csv *csv, const char *path, const struct nrg_cell *cell,
                       struct nrg_error *err)
{
    static const char *const iso[] = {"time", "timestamp", "date_time", "datetime", NULL};
    char shown[80];
    csv->time_form = cell_is(cell, "time_ns") ? TIME_NS : TIME_S;
    if (cell_is(cell, "time_s") || cell_is(cell, "time_ns"))
        return 0;
    csv->time_form = TIME_ISO;
    for (size_t i = 0; iso[i]; i++)
        if (cell_is(cell, iso[i]))
            return 0;
    nrg_copy_clean(shown, sizeof shown, cell->text, cell->len);
    return nrg_fail_at(err, -EINVAL, path, csv->source.line,
                       "the first column is time_s, time_ns or time (ISO 8601), not '%s'", shown);
}

static int read_header(struct csv *csv, const char *path, struct nrg_error *err)
{
    struct nrg_cell line, cell;
    int rc = next_content(csv, &line);
    if (rc <= 0)
        return nrg_fail_at(err, rc ? rc : -ENODATA, path, csv->source.line, "no header line: %s",
                           rc ? strerror(-rc) : "the file is empty");
    const char *p = line.text, *end = line.text + line.len;
    if (line.len >= 3 && !memcmp(p, "\xef\xbb\xbf", 3))
        p += 3; /* byte order mark of spreadsheets */
    next_cell(&p, end, &cell);
    rc = time_column(csv, path, &cell, err);
    while (!rc && next_cell(&p, end, &cell))
        rc = add_column(csv, path, &cell, err);
    if (!rc && !csv->source.n_channels)
        return nrg_fail_at(err, -EINVAL, path, csv->source.line, "no column beside the time");
    return rc;
}

static int csv_rewind(struct nrg_replay_source *source)
{
    struct csv *csv = (struct csv *)source;
    struct nrg_cell header;
    if (lseek(csv->fd, 0, SEEK_SET) < 0)
        return -errno;
    csv->begin = csv->end = 0;
    csv->at_end = csv->have_time = false;
    csv->source.line = 0;
    int rc = next_content(csv, &header);
    return rc > 0 ? 0 : rc ? rc : -ENODATA;
}

static void csv_close(struct nrg_replay_source *source)
{
    struct csv *csv = (struct csv *)source;
    if (csv->fd >= 0)
        close(csv->fd);
    free(csv);
}

int nrg_replay_csv_open(struct nrg_replay_source **source, const char *path, struct nrg_error *err)
{
    struct stat st;
    int fd = nrg_open_regular(path, &st, err);
    if (fd < 0)
        return fd;
    struct csv *csv = calloc(1, sizeof *csv);
    if (!csv) {
        close(fd);
        return nrg_fail(err, -ENOMEM, path, "out of memory");
    }
    csv->fd = fd;
    csv->source.next = csv_next;
    csv->source.rewind = csv_rewind;
    csv->source.close = csv_close;
    csv->source.channels = csv->channels;
    int rc = read_header(csv, path, err);
    if (rc)
        csv_close(&csv->source);
    else
        *source = &csv->source;
    return rc;
}

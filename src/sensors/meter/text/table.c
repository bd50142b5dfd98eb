/* See text/table.h. A line without any number may be a line of names; all others are rows. */
#include "sensors/meter/text/table.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"

struct cells {
    struct {
        const char *text;
        size_t len;
    } cell[NRG_TABLE_COLUMNS];
    size_t n;
    char separator;
};

static int add_column(struct nrg_table *t, const char *all, const char *spec, size_t len,
                      struct nrg_meter_field *fields, size_t *n_fields, struct nrg_error *err)
{
    if (t->n_columns == NRG_TABLE_COLUMNS || *n_fields == NRG_METER_FIELDS)
        return nrg_fail(err, -EINVAL, "columns=", "too many columns");
    short *field = &t->fields[t->n_columns++];
    *field = NRG_TABLE_SKIP;
    if (!len || (len == 1 && *spec == '-'))
        return 0;
    if (t->key[0] && nrg_meter_same_name(spec, len, t->key, strlen(t->key))) {
        *field = NRG_TABLE_DEVICE;
        return 0;
    }
    if (len == 4 && !memcmp(spec, "time", 4)) {
        if (t->has_time)
            return nrg_fail(err, -EINVAL, "columns=", "time is given twice");
        t->has_time = true;
        *field = NRG_TABLE_TIME;
        return 0;
    }
    int rc = nrg_meter_spec_field(spec, len, all, "columns=", &fields[*n_fields],
                                  &t->factors[*n_fields], err);
    for (size_t i = 0; !rc && i < *n_fields; i++)
        if (!strcmp(fields[i].name, fields[*n_fields].name))
            rc = nrg_fail(err, -EINVAL, "columns=", "'%s' is given twice", fields[i].name);
    if (!rc)
        *field = (short)(*n_fields)++;
    return rc;
}

static int set_separator(struct nrg_table *t, const char *text, struct nrg_error *err)
{
    static const struct {
        const char *name;
        char c;
    } names[] = {{"comma", ','}, {"semicolon", ';'}, {"tab", '\t'}, {"blank", ' '}, {"bar", '|'}};
    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].name, text))
            t->separator = names[i].c;
    if (text && !t->separator && text[0] && !text[1] && !isalnum((unsigned char)text[0]))
        t->separator = text[0];
    if (text && !t->separator)
        return nrg_fail(err, -EINVAL, "separator=",
                        "wants one character, or comma, semicolon, tab, blank, bar; not '%.20s'",
                        text);
    return 0;
}

/* "index:0,1" */
static int set_devices(struct nrg_table *t, const char *rows, struct nrg_error *err)
{
    const char *colon = rows ? strchr(rows, ':') : NULL, *rest = colon ? colon + 1 : NULL, *at;
    size_t len;
    if (!rows)
        return 0;
    if (!colon || colon == rows || colon - rows >= NRG_TABLE_KEY_BYTES)
        return nrg_fail(err, -EINVAL, "rows=", "wants a column and what stands in it: index:0,1");
    memcpy(t->key, rows, (size_t)(colon - rows));
    while ((at = nrg_next_item(&rest, &len))) {
        if (t->n_devices == NRG_TABLE_DEVICES || !len || len >= NRG_TABLE_KEY_BYTES)
            return nrg_fail(err, -EINVAL, "rows=", "wants 1 to %d names of at most %d bytes",
                            NRG_TABLE_DEVICES, NRG_TABLE_KEY_BYTES - 1);
        memcpy(t->devices[t->n_devices++], at, len);
    }
    return t->n_devices ? 0
                        : nrg_fail(err, -EINVAL, "rows=", "names no device after '%s:'", t->key);
}

/* The fields of one device again for each: power-0, power-1. */
static int repeat_fields(const struct nrg_table *t, struct nrg_meter_field *fields,
                         size_t *n_fields, struct nrg_error *err)
{
    struct nrg_meter_field one[NRG_METER_FIELDS];
    size_t n = *n_fields;
    if (!t->n_devices)
        return 0;
    if (n * t->n_devices > NRG_METER_FIELDS)
        return nrg_fail(err, -EINVAL, "rows=", "more than %d values in all", NRG_METER_FIELDS);
    memcpy(one, fields, n * sizeof *one);
    for (*n_fields = 0; *n_fields < n * t->n_devices; ++*n_fields) {
        char name[96];
        struct nrg_meter_field *field = &fields[*n_fields];
        *field = one[*n_fields % n];
        snprintf(name, sizeof name, "%s-%s", field->name, t->devices[*n_fields / n]);
        nrg_copy_clean(field->name, sizeof field->name, name, strlen(name));
        for (size_t i = 0; i < *n_fields; i++)
            if (!strcmp(fields[i].name, field->name))
                return nrg_fail(err, -EINVAL, "rows=", "'%s' is there twice, cut to %zu bytes",
                                name, sizeof field->name - 1);
    }
    return 0;
}

int nrg_table_init(struct nrg_table *t, const char *columns, const char *rows,
                   const char *separator, struct nrg_meter_field *fields, size_t *n_fields,
                   struct nrg_error *err)
{
    *t = (struct nrg_table){.given = columns != NULL};
    int rc = set_separator(t, separator, err);
    rc = rc ? rc : set_devices(t, rows, err);
    const char *all = columns ? columns : "power:W";
    size_t len;
    for (const char *rest = all, *at; !rc && (at = nrg_next_item(&rest, &len));)
        rc = add_column(t, all, at, len, fields, n_fields, err);
    if (!rc && !*n_fields)
        rc = nrg_fail(err, -EINVAL, "columns=", "names no value");
    t->n_values = *n_fields;
    for (size_t i = 0; !rc && i < *n_fields; i++)
        memcpy(t->names[i], fields[i].name, sizeof t->names[i]);
    return rc ? rc : repeat_fields(t, fields, n_fields, err);
}

static char guess_separator(const char *line, size_t len)
{
    static const char candidates[] = "\t;|,";
    for (const char *c = candidates; *c; c++)
        if (memchr(line, *c, len))
            return *c;
    return ' ';
}

static void add_cell(struct cells *c, const char *text, size_t len)
{
    nrg_trim(&text, &len);
    if (len > 1 && *text == '"' && text[len - 1] == '"') {
        text++;
        len -= 2;
    }
    if (c->n < NRG_TABLE_COLUMNS) {
        c->cell[c->n].text = text;
        c->cell[c->n++].len = len;
    }
}

static void split_cells(const struct nrg_table *t, const char *line, size_t len, struct cells *c)
{
    const char *end = line + len, *at = line;
    c->n = 0;
    c->separator = t->separator ? t->separator : guess_separator(line, len);
    while (at <= end && c->n < NRG_TABLE_COLUMNS) {
        while (c->separator == ' ' && at < end && isspace((unsigned char)*at))
            at++;
        if (c->separator == ' ' && at == end)
            break;
        const char *stop = at;
        while (stop < end &&
               (c->separator == ' ' ? !isspace((unsigned char)*stop) : *stop != c->separator))
            stop++;
        add_cell(c, at, (size_t)(stop - at));
        at = stop + 1;
    }
}

static bool any_number(const struct cells *c)
{
    double value;
    for (size_t i = 0; i < c->n; i++)
        if (nrg_meter_scan(c->cell[i].text, c->cell[i].len, true, &value))
            return true;
    return false;
}

static bool is_time_name(const char *text, size_t len)
{
    static const char *const names[] = {"time",     "timestamp", "date",
                                        "datetime", "unixtime",  "epoch"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (nrg_meter_same_name(text, len, names[i], strlen(names[i])))
            return true;
    return false;
}

/* Watts that nothing draws: "power.limit [W]", "max power". */
static bool is_limit(const char *name, size_t len)
{
    static const char *const words[] = {"limit", "max", "min", "default", "rated"};
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)len, name);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(text, words[i]))
            return true;
    return false;
}

/* The field that a column's name means, or NRG_TABLE_SKIP. */
static short field_of(const struct nrg_table *t, const char *name, size_t len,
                      const struct nrg_meter_field *fields)
{
    const struct nrg_meter_unit *unit = nrg_meter_unit_of_name(name, len);
    for (size_t i = 0; t->given && i < t->n_values; i++)
        if (nrg_meter_same_name(name, len, t->names[i], strlen(t->names[i])))
            return (short)i;
    /* No columns= was given: the first power is meant. */
    if (!t->given && unit && unit->quantity == fields[0].quantity && !is_limit(name, len))
        return 0;
    return NRG_TABLE_SKIP;
}

/* Which column says what device a line is about: that of rows=, else the best of known ones. */
static size_t find_device_column(struct nrg_table *t, const struct cells *c)
{
    static const char *const names[] = {"index",  "uuid",       "gpu_uuid", "pci.bus_id",
                                        "serial", "gpu_serial", "gpu",      "device"};
    for (size_t k = 0; k < (t->n_devices ? 1 : sizeof names / sizeof *names); k++) {
        const char *name = t->n_devices ? t->key : names[k];
        for (size_t i = 0; i < c->n; i++)
            if (nrg_meter_same_name(c->cell[i].text, c->cell[i].len, name, strlen(name))) {
                snprintf(t->key, sizeof t->key, "%s", name);
                return i;
            }
    }
    return c->n;
}

/* True when the names are those of our columns: then their order and units apply from here on. */
static bool take_names(struct nrg_table *t, const struct cells *c,
                       const struct nrg_meter_field *fields)
{
    short order[NRG_TABLE_COLUMNS];
    bool seen[NRG_METER_FIELDS] = {false};
    size_t found = 0, device = find_device_column(t, c);
    bool time = false;
    for (size_t i = 0; i < c->n; i++) {
        const char *name = c->cell[i].text;
        size_t len = c->cell[i].len;
        order[i] = NRG_TABLE_SKIP;
        if (!time && is_time_name(name, len)) {
            order[i] = NRG_TABLE_TIME;
            time = true;
            continue;
        }
        if (i == device) {
            order[i] = NRG_TABLE_DEVICE;
            continue;
        }
        short field = field_of(t, name, len, fields);
        if (field < 0 || seen[field])
            continue;
        const struct nrg_meter_unit *unit = nrg_meter_unit_of_name(name, len);
        if (unit && unit->quantity == fields[field].quantity &&
            (memchr(name, '(', len) || memchr(name, '[', len) || !t->given))
            t->factors[field] = unit->factor;
        order[i] = field;
        seen[field] = true;
        found++;
    }
    if (!found)
        return false;
    memcpy(t->fields, order, c->n * sizeof *order);
    t->n_columns = c->n;
    t->has_time |= time;
    return true;
}

__attribute__((format(printf, 2, 3))) static enum nrg_table_line refuse_row(
    struct nrg_table_row *row, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(row->why, sizeof row->why, format, args);
    va_end(args);
    return NRG_TABLE_REFUSED;
}

static size_t device_column(const struct nrg_table *t)
{
    size_t at = 0;
    while (at < t->n_columns && t->fields[at] != NRG_TABLE_DEVICE)
        at++;
    return at;
}

/* The device that a line is about. */
static enum nrg_table_line find_device(struct nrg_table *t, const struct cells *c,
                                       struct nrg_table_row *row)
{
    size_t at = device_column(t), n = t->n_devices ? t->n_devices : 1;
    char name[NRG_TABLE_KEY_BYTES];
    row->device = 0;
    if (at == t->n_columns)
        return t->n_devices ? refuse_row(row, "no column is called '%s' (rows=)", t->key)
                            : NRG_TABLE_ROW;
    if (at >= c->n)
        return refuse_row(row, "has %zu columns where %zu are wanted", c->n, t->n_columns);
    snprintf(name, sizeof name, "%.*s", (int)c->cell[at].len, c->cell[at].text);
    if (!t->n_devices && !t->devices[0][0])
        memcpy(t->devices[0], name, sizeof name);
    while (row->device < n && strcmp(t->devices[row->device], name))
        row->device++;
    if (row->device < n)
        return NRG_TABLE_ROW;
    return t->n_devices ? refuse_row(row, "rows= does not name %s %.20s", t->key, name)
                        : refuse_row(row, "a second device: rows=%.12s:%.20s,%.20s makes channels",
                                     t->key, t->devices[0], name);
}

static enum nrg_table_line read_row(struct nrg_table *t, const struct cells *c,
                                    const struct nrg_meter_field *fields, struct nrg_table_row *row)
{
    bool comma = c->separator != ',', any = false;
    if (find_device(t, c, row) == NRG_TABLE_REFUSED)
        return NRG_TABLE_REFUSED;
    for (size_t i = 0; i < t->n_columns; i++) {
        short field = t->fields[i];
        if (field == NRG_TABLE_SKIP || field == NRG_TABLE_DEVICE)
            continue;
        if (i >= c->n)
            return refuse_row(row, "has %zu columns where %zu are wanted", c->n, t->n_columns);
        if (field == NRG_TABLE_TIME) {
            row->time = c->cell[i].text;
            row->time_len = c->cell[i].len;
            continue;
        }
        double *value = &row->values[row->device * t->n_values + (size_t)field];
        if (c->cell[i].len && *c->cell[i].text == '[') /* nvidia-smi: [N/A], [Not Supported] */
            continue;
        if (nrg_meter_value(c->cell[i].text, c->cell[i].len, comma, &fields[field],
                            t->factors[field], value))
            return refuse_row(row, "column %zu (%s) is not a usable number", i + 1,
                              fields[field].name);
        any |= !isnan(*value);
    }
    return any ? NRG_TABLE_ROW : refuse_row(row, "has no value");
}

enum nrg_table_line nrg_table_read(struct nrg_table *t, const char *line, size_t len,
                                   const struct nrg_meter_field *fields, size_t n_fields,
                                   struct nrg_table_row *row)
{
    struct cells c;
    row->time = NULL;
    row->why[0] = '\0';
    for (size_t i = 0; i < n_fields; i++)
        row->values[i] = NAN;
    split_cells(t, line, len, &c);
    if (!any_number(&c))
        return take_names(t, &c, fields)
                   ? NRG_TABLE_NAMES
                   : refuse_row(row, "has no number, and no name of a column that is wanted");
    return read_row(t, &c, fields, row);
}

bool nrg_table_device(struct nrg_table *t, const char *line, size_t len,
                      const struct nrg_meter_field *fields, char *device, size_t size)
{
    struct cells c;
    split_cells(t, line, len, &c);
    if (!any_number(&c)) {
        take_names(t, &c, fields);
        return false;
    }
    size_t at = device_column(t);
    if (at >= t->n_columns || at >= c.n || !c.cell[at].len)
        return false;
    snprintf(device, size, "%.*s", (int)c.cell[at].len, c.cell[at].text);
    return true;
}

/* See text/table.h. A line without any number may be a line of names; all others are rows. */
#include "sensors/meter/text/table.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

int nrg_table_init(struct nrg_table *t, const char *columns, const char *separator,
                   struct nrg_meter_field *fields, size_t *n_fields, struct nrg_error *err)
{
    *t = (struct nrg_table){.given = columns != NULL};
    int rc = set_separator(t, separator, err);
    const char *all = columns ? columns : "power:W";
    size_t len;
    for (const char *rest = all, *at; !rc && (at = nrg_next_item(&rest, &len));)
        rc = add_column(t, all, at, len, fields, n_fields, err);
    if (!rc && !*n_fields)
        rc = nrg_fail(err, -EINVAL, "columns=", "names no value");
    return rc;
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

/* The field that a column's name means, or NRG_TABLE_SKIP. */
static short field_of(const struct nrg_table *t, const char *name, size_t len,
                      const struct nrg_meter_field *fields, size_t n_fields)
{
    const struct nrg_meter_unit *unit = nrg_meter_unit_of_name(name, len);
    for (size_t i = 0; i < n_fields; i++)
        if (nrg_meter_same_name(name, len, fields[i].name, strlen(fields[i].name)))
            return (short)i;
    /* No columns= was given: the first power is meant. */
    if (!t->given && unit && unit->quantity == NRG_POWER)
        return 0;
    return NRG_TABLE_SKIP;
}

/* True when the names are those of our columns: then their order and units apply from here on. */
static bool take_names(struct nrg_table *t, const struct cells *c,
                       const struct nrg_meter_field *fields, size_t n_fields)
{
    short order[NRG_TABLE_COLUMNS];
    bool seen[NRG_METER_FIELDS] = {false};
    size_t found = 0;
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
        short field = field_of(t, name, len, fields, n_fields);
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

static enum nrg_table_line read_row(const struct nrg_table *t, const struct cells *c,
                                    const struct nrg_meter_field *fields, struct nrg_table_row *row)
{
    bool comma = c->separator != ',', any = false;
    for (size_t i = 0; i < t->n_columns; i++) {
        short field = t->fields[i];
        if (field == NRG_TABLE_SKIP)
            continue;
        if (i >= c->n)
            return refuse_row(row, "has %zu columns where %zu are wanted", c->n, t->n_columns);
        if (field == NRG_TABLE_TIME) {
            row->time = c->cell[i].text;
            row->time_len = c->cell[i].len;
            continue;
        }
        double *value = &row->values[field];
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
        return take_names(t, &c, fields, n_fields)
                   ? NRG_TABLE_NAMES
                   : refuse_row(row, "has no number, and no name of a column that is wanted");
    return read_row(t, &c, fields, row);
}

/*
 * RPICT boards (lechacal): a line per reading, the node and then values separated by blanks or
 * commas, "11 46.23 52.25 126.56". What the columns are depends on the board and on how its owner
 * configured it: board= stands for the factory's columns, layout= names others (meter/layout.h;
 * types mean nothing here).
 *
 * The full-output firmware prints lines of several kinds, each beginning with the coordinates of
 * its sensors: line.COORDINATES=layout, once per kind, such as line.1.0=RP1,Irms1*1mA for lines
 * that begin with "1 0 ".
 *
 * There is no checksum: a line with another number of columns is refused, and so is the first
 * line, which may have lost its beginning. When noise spoils a column or two, the others are used.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/parse.h"
#include "sensors/drivers.h"
#include "sensors/meter/decoders.h"
#include "sensors/meter/layout.h"
#include "sensors/meter/line.h"

#define MAX_KINDS   16
#define MAX_COLUMNS (NRG_LAYOUT_ITEMS + 9)
#define SEPARATORS  " \t,;"
#define NUMBER      "0123456789.+-eE"
#define MAX_FAULTS  2
#define ANY_NODE    (-1)

static const struct {
    const char *name, *layout;
} boards[] = {
    {"rpict3t1", "P1,P2,P3,T1"},
    {"rpict3v1", "RP1,RP2,RP3,Irms1*1mA,Irms2*1mA,Irms3*1mA,Vrms"},
    {"rpict4t4", "P1,P2,P3,P4,T1,T2,T3,T4"},
    {"rpict4v3", "RP1,RP2,RP3,RP4,Irms1*1mA,Irms2*1mA,Irms3*1mA,Irms4*1mA,Vrms1,Vrms2,Vrms3"},
    {"rpict7v1", "RP1,RP2,RP3,RP4,RP5,RP6,RP7,Irms1*1mA,Irms2*1mA,Irms3*1mA,Irms4*1mA,Irms5*1mA,"
                 "Irms6*1mA,Irms7*1mA,Vrms"},
    {"rpict8", "P1,P2,P3,P4,P5,P6,P7,P8"},
};

/* One kind of line: the columns that it begins with, and what follows them. */
struct kind {
    char begin[32]; /* "1.0": the first columns are 1 and 0; "": the first column is the node */
    size_t n_begin;
    struct nrg_layout layout;
    size_t first; /* index of its first value */
};

struct rpict {
    struct nrg_meter_lines lines;
    struct kind kinds[MAX_KINDS];
    size_t n_kinds, n_values;
    int64_t node; /* ANY_NODE until one is known */
    bool without_node;
    double values[NRG_METER_FIELDS];
    char why[80];
};

struct columns {
    const char *text[MAX_COLUMNS];
    size_t len[MAX_COLUMNS], n;
};

static const char *board_layout(const char *board)
{
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i++)
        if (!strcasecmp(boards[i].name, board))
            return boards[i].layout;
    return NULL;
}

static int add_kind(struct rpict *r, const char *begin, const char *text, struct nrg_uri *uri,
                    struct nrg_meter_field *fields, size_t *n_fields, struct nrg_error *err)
{
    if (r->n_kinds == MAX_KINDS || strlen(begin) >= sizeof r->kinds->begin)
        return nrg_fail(err, -EINVAL, uri->text,
                        "line.%s=: at most %d kinds, each beginning with at most %zu bytes", begin,
                        MAX_KINDS, sizeof r->kinds->begin - 1);
    struct kind *kind = &r->kinds[r->n_kinds++];
    nrg_copy(kind->begin, sizeof kind->begin, begin);
    kind->n_begin = *begin != '\0';
    for (const char *p = begin; *p; p++)
        kind->n_begin += *p == '.';
    kind->first = *n_fields;
    int rc = nrg_layout_parse(&kind->layout, text, err);
    if (!rc && nrg_layout_fields(&kind->layout, "", false, fields, n_fields))
        rc = nrg_fail(err, -E2BIG, uri->text, "more than %d values", NRG_METER_FIELDS);
    return rc;
}

/* Lines of the full-output firmware, as many as the URI describes. */
static int add_kinds(struct rpict *r, struct nrg_uri *uri, struct nrg_meter_field *fields,
                     size_t *n_fields, struct nrg_error *err)
{
    int rc = 0;
    for (unsigned i = 0; !rc && i < uri->n_query; i++) {
        const char *key = uri->query[i].key;
        if (!strncmp(key, "line.", 5))
            rc = add_kind(r, key + 5, nrg_uri_text(uri, key), uri, fields, n_fields, err);
    }
    return rc;
}

static int choose_layout(struct rpict *r, struct nrg_uri *uri, struct nrg_meter_field *fields,
                         size_t *n_fields, struct nrg_error *err)
{
    const char *board = nrg_uri_text(uri, "board"), *layout = nrg_uri_text(uri, "layout");
    if (board && !board_layout(board))
        return nrg_fail(err, -EINVAL, uri->text,
                        "board=%s is not known: rpict3t1, rpict3v1, rpict4t4, rpict4v3, rpict7v1, "
                        "rpict8, or layout= with the columns",
                        board);
    if (!layout)
        layout = board;
    if (layout && board_layout(layout))
        layout = board_layout(layout);
    int rc = layout ? add_kind(r, "", layout, uri, fields, n_fields, err) : 0;
    if (!rc)
        rc = add_kinds(r, uri, fields, n_fields, err);
    if (!rc && !r->n_kinds)
        rc = nrg_fail(err, -EINVAL, uri->text,
                      "which board is it? board=rpict7v1, or layout= with the columns");
    if (!rc && !*n_fields)
        rc = nrg_fail(err, -EINVAL, uri->text, "no value of the layout has a unit");
    return rc;
}

/* `by_numbers`: noise hit a separator, so everything but numbers separates. */
static bool split_columns(const char *text, bool by_numbers, struct columns *c)
{
    for (c->n = 0;; c->n++) {
        text += by_numbers ? strcspn(text, NUMBER) : strspn(text, SEPARATORS);
        if (!*text)
            return true;
        if (c->n == MAX_COLUMNS)
            return false;
        c->text[c->n] = text;
        c->len[c->n] = by_numbers ? strspn(text, NUMBER) : strcspn(text, SEPARATORS);
        text += c->len[c->n];
    }
}

static bool begins_with(const struct columns *c, const struct kind *kind)
{
    const char *at = kind->begin;
    for (size_t i = 0; i < kind->n_begin; i++) {
        size_t len = strcspn(at, ".");
        if (i >= c->n || c->len[i] != len || memcmp(c->text[i], at, len))
            return false;
        at += len + (at[len] == '.');
    }
    return true;
}

/* The most specific kind: coordinates go before the plain line. */
static const struct kind *find_kind(const struct rpict *r, const struct columns *c)
{
    const struct kind *best = NULL;
    for (size_t i = 0; i < r->n_kinds; i++)
        if (begins_with(c, &r->kinds[i]) && (!best || r->kinds[i].n_begin > best->n_begin))
            best = &r->kinds[i];
    return best;
}

static bool parse_number(const char *text, size_t len, double *value)
{
    *value = NAN;
    if (len == 3 && !strncasecmp(text, "nan", 3))
        return true;
    double number;
    if (text[0] == 'i' || text[0] == 'n' || nrg_parse_double(text, len, &number))
        return false;
    *value = number;
    return true;
}

static const char *read_values(struct rpict *r, const struct kind *kind, const struct columns *c,
                               size_t from)
{
    double *out = r->values + kind->first;
    size_t faults = 0;
    for (size_t i = 0; i < r->n_values; i++)
        r->values[i] = NAN;
    for (size_t i = 0; i < kind->layout.n; i++) {
        const struct nrg_layout_item *item = &kind->layout.items[i];
        double value;
        faults += !parse_number(c->text[from + i], c->len[from + i], &value);
        if (item->recorded)
            *out++ = nrg_layout_value(item, value);
    }
    return faults > MAX_FAULTS || faults == kind->layout.n ? "columns that are not numbers" : NULL;
}

static const char *check_node(const struct rpict *r, const struct columns *c, int64_t *node,
                              bool *harmless)
{
    if (nrg_parse_i64(c->text[0], c->len[0], node) || *node < 0 || *node > 65535)
        return "the first column is not a node";
    *harmless = r->node != ANY_NODE && *node != r->node;
    return *harmless ? "a line of another node: node= chooses" : NULL;
}

static bool columns_fit(const struct kind *kind, const struct columns *c, size_t from)
{
    return c->n >= from + kind->layout.n &&
           (c->n == from + kind->layout.n || kind->layout.open_end);
}

static const char *parse_columns(struct rpict *r, const struct nrg_meter_line *line,
                                 struct columns *c, bool *harmless, struct nrg_meter_out *out)
{
    int64_t node = r->node;
    const struct kind *kind = find_kind(r, c);
    *harmless = !kind;
    if (!kind)
        return "a kind of line that no layout describes";
    size_t from = kind->n_begin;
    if (!from && !r->without_node) {
        const char *why = check_node(r, c, &node, harmless);
        if (why)
            return why;
        from = 1;
    }
    size_t seen = c->n > from ? c->n - from : 0;
    if (!columns_fit(kind, c, from) &&
        (!split_columns(line->text, true, c) || !columns_fit(kind, c, from))) {
        snprintf(r->why, sizeof r->why, "%zu values, but the layout has %zu: is board= right?",
                 seen, kind->layout.n);
        return r->why;
    }
    const char *why = read_values(r, kind, c, from);
    if (why)
        return why;
    r->node = node;
    const struct nrg_meter_reading reading = {
        .sent_ns = line->sent_ns, .values = r->values, .n_values = r->n_values, .rssi_dbm = NAN};
    out->reading(out, &reading);
    return NULL;
}

static const char *parse_line(struct rpict *r, const struct nrg_meter_line *line, bool *harmless,
                              struct nrg_meter_out *out)
{
    struct columns c;
    if (!split_columns(line->text, false, &c))
        return "more columns than any board has";
    *harmless = !c.n || !strchr("0123456789-", c.text[0][0]);
    return *harmless ? "text, no reading" : parse_columns(r, line, &c, harmless, out);
}

static void on_line(void *arg, const struct nrg_meter_line *line, struct nrg_meter_out *out)
{
    bool harmless = true;
    const char *why = line->partial ? "the first line: its beginning may be missing"
                                    : parse_line(arg, line, &harmless, out);
    if (why)
        nrg_meter_refuse(out, line, why, harmless);
}

static int init_rpict(void *state, struct nrg_uri *uri, struct nrg_meter_field *fields,
                      size_t *n_fields, struct nrg_error *err)
{
    struct rpict *r = state;
    const char *node = nrg_uri_text(uri, "node");
    int rc = 0;
    r->node = ANY_NODE;
    r->lines.mends = true;
    r->lines.on_line = on_line;
    r->without_node = node && !strcmp(node, "none");
    if (node && !r->without_node &&
        (nrg_parse_i64(node, strlen(node), &r->node) || r->node < 0 || r->node > 65535))
        rc = nrg_fail(err, -EINVAL, uri->text,
                      "node= wants a number, or none for lines that begin with a value");
    if (!rc)
        rc = choose_layout(r, uri, fields, n_fields, err);
    r->n_values = *n_fields;
    return rc;
}

const struct nrg_meter_decoder nrg_decoder_rpict = {
    .state_size = sizeof(struct rpict),
    .init = init_rpict,
    .feed = nrg_meter_lines_feed,
    .reset = nrg_meter_lines_reset,
    .end = nrg_meter_lines_end,
};

const struct nrg_driver nrg_driver_rpict =
    NRG_METER_DRIVER("rpict", "RPICT current and power boards on a serial line", nrg_meter_probe);

/* See fit.h. A line is seen as columns, each with the bytes of its character. */
#include "report/fit.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { GAP = 2, ROW_CELLS = 4, ROW_LEAD = 8, LEAST_CELL = 12, LEAST_TEXT = 10, BAR_COLUMNS = 11 };

struct column {
    const char *text; /* colours before it included */
    size_t len;
};

struct line {
    struct column *columns;
    size_t n, cap;
    bool row; /* of a table */
};

struct lines {
    struct line *items;
    size_t n, cap;
};

/* The bytes of an escape sequence, 0 when there is none. */
static size_t escape_length(const char *text, size_t len)
{
    size_t n = 2;
    if (len < 2 || text[0] != '\033' || text[1] != '[')
        return 0;
    while (n < len && !isalpha((unsigned char)text[n]))
        n++;
    return n < len ? n + 1 : len;
}

/* Where the character of a column begins, behind colours. */
static size_t char_at(const struct column *c)
{
    size_t at = 0, skip;
    while ((skip = escape_length(c->text + at, c->len - at)))
        at += skip;
    return at;
}

static bool is_blank(const struct line *line, size_t i)
{
    if (i >= line->n)
        return true;
    size_t at = char_at(&line->columns[i]);
    return at == line->columns[i].len || line->columns[i].text[at] == ' ';
}

static size_t count_cells(const struct line *line)
{
    size_t cells = 0, blanks = GAP;
    for (size_t i = 0; i < line->n; i++) {
        bool blank = is_blank(line, i);
        cells += !blank && blanks >= GAP;
        blanks = blank ? blanks + 1 : 0;
    }
    return cells;
}

/* Rows have several cells, or begin in a later column. */
static bool is_row(const struct line *line)
{
    size_t lead = 0, cells = count_cells(line);
    while (lead < line->n && is_blank(line, lead))
        lead++;
    return cells >= ROW_CELLS || (cells >= 2 && lead >= ROW_LEAD);
}

/* Splits a line into columns. */
static int read_line(struct line *line, const char *text, size_t len)
{
    size_t at = 0, start = 0;
    int rc = 0;
    *line = (struct line){0};
    while (!rc && at < len) {
        size_t skip = escape_length(text + at, len - at);
        at += skip;
        if (skip)
            continue;
        for (at++; at < len && ((unsigned char)text[at] & 0xc0) == 0x80;)
            at++;
        const struct column c = {text + start, at - start};
        rc = nrg_append(&line->columns, &line->n, &line->cap, &c, sizeof c);
        start = at;
    }
    if (!rc && line->n) /* a colour that ends with the line belongs to the last column */
        line->columns[line->n - 1].len += len - start;
    line->row = !rc && is_row(line);
    return rc;
}

static void release(struct lines *lines)
{
    for (size_t i = 0; i < lines->n; i++)
        free(lines->items[i].columns);
    free(lines->items);
}

static size_t widest_row(const struct lines *lines)
{
    size_t widest = 0;
    for (size_t i = 0; i < lines->n; i++)
        if (lines->items[i].row && lines->items[i].n > widest)
            widest = lines->items[i].n;
    return widest;
}

static bool blank_in_all_rows(const struct lines *lines, size_t column)
{
    for (size_t i = 0; i < lines->n; i++)
        if (lines->items[i].row && !is_blank(&lines->items[i], column))
            return false;
    return true;
}

/* The line without the columns that were dropped. */
static int rebuild(struct line *line, const bool *dropped, struct nrg_str *out)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < line->n; i++) {
        const struct column *c = &line->columns[i];
        /* Of a dropped column the character goes; colours stay. */
        size_t before = dropped && dropped[i] ? char_at(c) : c->len;
        const char *after = memchr(c->text + before, '\033', c->len - before);
        rc = nrg_str_add(out, c->text, before);
        if (!rc && after)
            rc = nrg_str_add(out, after, c->len - (size_t)(after - c->text));
    }
    return rc;
}

/* Marks the columns that may go: blank in all rows, beyond the `gap` that part cells. */
static void mark_blanks(const struct lines *lines, bool *dropped, size_t widest, size_t gap)
{
    size_t run = 0;
    bool leading = true;
    for (size_t i = 0; i < widest; i++) {
        bool blank = blank_in_all_rows(lines, i);
        run = blank ? run + 1 : 0;
        leading &= blank;
        dropped[i] = blank && (leading || run > gap);
    }
}

static size_t width_left(const bool *dropped, size_t widest)
{
    size_t left = 0;
    for (size_t i = 0; i < widest; i++)
        left += !dropped[i];
    return left;
}

/* ---- bars: the first thing to go, since their number stands beside them ---- */

/* True for a block that bars are made of, U+2588 to U+258F. */
static bool is_block(const struct line *line, size_t i)
{
    const char *at = line->columns[i].text;
    size_t len = line->columns[i].len;
    return len >= 3 && !memcmp(at, "\xe2\x96", 2) && (unsigned char)at[2] >= 0x88 &&
           (unsigned char)at[2] <= 0x8f;
}

/* The column where bars begin; SIZE_MAX: there are none. */
static size_t find_bars(const struct lines *lines)
{
    size_t first = SIZE_MAX;
    for (size_t k = 0; k < lines->n; k++)
        for (size_t i = 0; lines->items[k].row && i < lines->items[k].n && i < first; i++)
            if (is_block(&lines->items[k], i))
                first = i;
    return first;
}

/* Takes the bars' columns out of a row; of the heading, as many blanks behind its word. */
static void drop_bars(struct line *line, size_t bars, bool heading)
{
    size_t from = bars, n = BAR_COLUMNS;
    while (heading && from < line->n && !(is_blank(line, from) && is_blank(line, from + 1)))
        from++;
    if (from >= line->n)
        return;
    n = from + n > line->n ? line->n - from : n;
    memmove(line->columns + from, line->columns + from + n,
            (line->n - from - n) * sizeof *line->columns);
    line->n -= n;
}

/* Where the last cell of a line begins; 0: it has one only. */
static size_t last_cell(const struct line *line)
{
    size_t last = 0, blanks = 0;
    for (size_t i = 0; i < line->n; i++) {
        bool blank = is_blank(line, i);
        if (!blank && blanks >= GAP && i > blanks)
            last = i;
        blanks = blank ? blanks + 1 : 0;
    }
    return last;
}

/* Where a wrapped line goes on: below its table's last cell, or a little below its beginning. */
static size_t hanging_indent(const struct line *line, size_t last, size_t width)
{
    size_t lead = 0;
    while (lead < line->n && is_blank(line, lead))
        lead++;
    return line->row && last && last + LEAST_CELL <= width ? last : lead + GAP;
}

/* The column after which to break, so that [from, it) fits; n when the rest fits or can't break. */
static size_t break_at(const struct line *line, size_t from, size_t room)
{
    if (line->n - from <= room)
        return line->n;
    size_t at = from + room;
    while (at > from && !is_blank(line, at))
        at--;
    size_t first = from;
    while (first < at && is_blank(line, first))
        first++;
    if (at > first)
        return at;
    for (at = from + room; at < line->n && !is_blank(line, at);)
        at++;
    return at;
}

/* A word that is too long for its cell begins further to the left. */
static size_t indent_for(const struct line *line, size_t from, size_t indent, size_t width)
{
    size_t n = 0;
    while (from + n < line->n && !is_blank(line, from + n))
        n++;
    return n + indent <= width ? indent : n < width ? width - n : 0;
}

static void print_wrapped(FILE *out, const struct line *line, size_t last, size_t width)
{
    size_t indent = hanging_indent(line, last, width), from = 0;
    while (from < line->n) {
        size_t here = from ? indent_for(line, from, indent, width) : 0;
        size_t to = break_at(line, from, width - here);
        if (from)
            fprintf(out, "\n%*s", (int)here, "");
        for (; from < to; from++)
            fwrite(line->columns[from].text, 1, line->columns[from].len, out);
        while (from < line->n && is_blank(line, from))
            from++;
    }
    fputc('\n', out);
}

static bool ends_cell(const char *text, size_t len)
{
    return !len || *text == '\033' || *text == '\n' || !strncmp(text, "  ", len < 2 ? len : 2) ||
           !strncmp(text, " ..", len < 3 ? len : 3) || !strncmp(text, " …", len < 4 ? len : 4) ||
           *text == ')' || *text == ',';
}

/* Whether the u at `at` is the unit of a number that is a cell, or half of one. */
static bool is_micro(const char *text, size_t len, size_t at)
{
    size_t i = at;
    if (at < 2 || at + 1 >= len || text[at - 1] != ' ' || !strchr("Js", text[at + 1]) ||
        !ends_cell(text + at + 2, len - at - 2))
        return false;
    for (i = at - 1; i > 0 && (isdigit((unsigned char)text[i - 1]) || text[i - 1] == '.');)
        i--;
    if (i == at - 1)
        return false;
    return i < 2 || text[i - 1] == '\n' || !memcmp(text + i - 2, "  ", 2) ||
           !memcmp(text + i - 2, "\xb1 ", 2) || !memcmp(text + i - 2, ". ", 2) ||
           (i >= 4 && !memcmp(text + i - 4, "… ", 4)) || text[i - 1] == 'm';
}

static int write_micro(struct nrg_str *out, const char *text, size_t len)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < len; i++)
        rc = text[i] == 'u' && is_micro(text, len, i) ? nrg_str_add(out, "µ", 2)
                                                      : nrg_str_add(out, text + i, 1);
    return rc;
}

static int print_line(FILE *out, struct line *line, const bool *dropped, size_t last_column,
                      const struct nrg_fit *fit)
{
    struct nrg_str made = {0};
    struct line again = {0};
    int rc = rebuild(line, line->row ? dropped : NULL, &made);
    if (!rc)
        rc = read_line(&again, made.text ? made.text : "", made.len);
    again.row = line->row;
    if (!rc && fit->wrap && fit->width && again.n > fit->width)
        print_wrapped(out, &again, last_column, fit->width);
    else if (!rc)
        fprintf(out, "%.*s\n", (int)made.len, made.text ? made.text : "");
    free(again.columns);
    nrg_str_release(&made);
    return rc;
}

/* ---- texts that are cut ---- */

/* Ends the row's text before column `from`, if something of it was cut: columns [from, to). */
static void end_cut_text(struct line *line, size_t from, size_t to, bool unicode)
{
    bool cut = false;
    for (size_t i = from; i < to; i++)
        cut |= !is_blank(line, i);
    if (cut && from)
        line->columns[from - 1] =
            unicode ? (struct column){"…", strlen("…")} : (struct column){".", 1};
}

/* Cuts `over` columns off the texts that begin in column `from`, but leaves LEAST_TEXT. */
static size_t cut_cell(struct lines *lines, bool *dropped, size_t from, size_t over, bool unicode)
{
    size_t to = from;
    while (!blank_in_all_rows(lines, to))
        to++;
    size_t width = to - from, cut = width > LEAST_TEXT ? width - LEAST_TEXT : 0;
    cut = cut < over ? cut : over;
    for (size_t i = to - cut; i < to; i++)
        dropped[i] = true;
    for (size_t i = 0; i < lines->n; i++)
        if (lines->items[i].row)
            end_cut_text(&lines->items[i], to - cut, to, unicode);
    return over - cut;
}

/* Cuts the texts of the second cell, then of the third: class and shape, kind and shape. */
static void cut_texts(struct lines *lines, bool *dropped, const struct line *heading, size_t over,
                      bool unicode)
{
    size_t starts[4] = {0}, n = 0, blanks = GAP;
    for (size_t i = 0; i < heading->n && n < 4; i++) {
        bool blank = is_blank(heading, i);
        if (!blank && blanks >= GAP)
            starts[n++] = i;
        blanks = blank ? blanks + 1 : 0;
    }
    for (size_t k = 1; k + 1 < n && over; k++)
        over = cut_cell(lines, dropped, starts[k], over, unicode);
}

static void drop_all_bars(struct lines *lines, size_t bars)
{
    bool heading = true;
    for (size_t i = 0; i < lines->n; i++)
        if (lines->items[i].row) {
            drop_bars(&lines->items[i], bars, heading);
            heading = false;
        }
}

/* The heading; there are rows. */
static const struct line *first_row(const struct lines *lines)
{
    size_t i = 0;
    while (i + 1 < lines->n && !lines->items[i].row)
        i++;
    return &lines->items[i];
}

/* The width that a table needs before its last cell, which may be wrapped, plus a little of that.
 */
static size_t numbers_end(const struct lines *lines, const bool *dropped)
{
    return width_left(dropped, last_cell(first_row(lines))) + LEAST_CELL;
}

/* Makes rows as narrow as they have to be, by what is missed least. */
static void narrow(struct lines *lines, bool *dropped, const struct nrg_fit *fit)
{
    size_t width = fit->width;
    const struct line *heading = first_row(lines);
    size_t widest = widest_row(lines), bars = find_bars(lines);
    mark_blanks(lines, dropped, widest, GAP);
    if (bars != SIZE_MAX && width_left(dropped, widest) > width) {
        drop_all_bars(lines, bars);
        widest = widest_row(lines);
        mark_blanks(lines, dropped, widest, GAP);
    }
    if (width_left(dropped, widest) > width)
        mark_blanks(lines, dropped, widest, 1);
    size_t left = width_left(dropped, widest), heading_left = width_left(dropped, heading->n);
    /* Long texts of the last cell are wrapped; a heading that is too long shows what is not. */
    size_t numbers = numbers_end(lines, dropped);
    left = left < numbers ? left : numbers;
    left = left > heading_left ? left : heading_left;
    if (fit->wrap && left > width)
        cut_texts(lines, dropped, heading, left - width, fit->unicode);
}

static int print_block(FILE *out, struct lines *lines, const struct nrg_fit *fit)
{
    size_t widest = widest_row(lines), last;
    bool *dropped = NULL;
    int rc = 0;
    if (fit->width && widest > fit->width) {
        dropped = nrg_calloc(widest + 1, sizeof *dropped);
        if (!dropped)
            return -ENOMEM;
        narrow(lines, dropped, fit);
    }
    last = widest ? last_cell(first_row(lines)) : 0;
    last = dropped ? width_left(dropped, last) : last;
    for (size_t i = 0; !rc && i < lines->n; i++)
        rc = print_line(out, &lines->items[i], dropped, last, fit);
    free(dropped);
    return rc;
}

static int print_text(FILE *out, const char *text, size_t len, const struct nrg_fit *fit)
{
    const char *end = text + len;
    struct lines block = {0};
    int rc = 0;
    while (!rc && text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        stop = stop ? stop : end;
        struct line line;
        rc = read_line(&line, text, (size_t)(stop - text));
        if (!rc)
            rc = nrg_append(&block.items, &block.n, &block.cap, &line, sizeof line);
        if (rc)
            free(line.columns);
        if (!rc && (!line.n || stop + 1 >= end)) {
            rc = print_block(out, &block, fit);
            release(&block);
            block = (struct lines){0};
        }
        text = stop + 1;
    }
    release(&block);
    return rc;
}

int nrg_fit_print(FILE *out, const char *text, size_t len, const struct nrg_fit *fit)
{
    struct nrg_str shown = {0};
    int rc = fit->unicode ? write_micro(&shown, text, len) : 0;
    if (!rc)
        rc = fit->unicode && len ? print_text(out, shown.text, shown.len, fit)
                                 : print_text(out, text, len, fit);
    nrg_str_release(&shown);
    return rc;
}

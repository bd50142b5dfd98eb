/* See csv.h. One pass over the text; nothing is allocated but the list of cells. */
#include "base/csv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/parse.h"

void nrg_csv_init(struct nrg_csv *csv, char *text, size_t size, const char *name)
{
    static const char mark[] = "\xef\xbb\xbf"; /* byte order mark of some programs */
    *csv = (struct nrg_csv){.at = text, .end = text + size, .name = name};
    if (size >= 3 && !memcmp(text, mark, 3))
        csv->at += 3;
}

void nrg_csv_release(struct nrg_csv *csv)
{
    free(csv->cells);
    csv->cells = NULL;
    csv->n = csv->cap = 0;
}

/* True for = + - @ tab and line end, behind any apostrophes. */
static bool is_formula(const char *text, size_t len)
{
    while (len && *text == '\'') {
        text++;
        len--;
    }
    return len && memchr("=+-@\t\r", *text, 6);
}

static int add_cell(struct nrg_csv *csv, const char *text, size_t len, struct nrg_error *err)
{
    if (len > 1 && *text == '\'' && is_formula(text, len)) {
        text++;
        len--;
    }
    if (csv->n == NRG_CSV_MAX_CELLS)
        return nrg_fail_at(err, -EBADMSG, csv->name, csv->line, "has more than %d columns",
                           NRG_CSV_MAX_CELLS);
    if (nrg_append(&csv->cells, &csv->n, &csv->cap, &(struct nrg_cell){text, len},
                   sizeof *csv->cells))
        return nrg_fail(err, -ENOMEM, csv->name, "out of memory");
    return 0;
}

/* Starts after the opening quote; leaves `at` after the closing one. */
static int read_quoted_cell(struct nrg_csv *csv, struct nrg_error *err)
{
    char *from = csv->at, *to = csv->at, *start = csv->at;
    for (; from < csv->end; from++) {
        if (*from == '"') {
            if (from + 1 == csv->end || from[1] != '"')
                break;
            from++;
        }
        csv->lines += *from == '\n';
        *to++ = *from;
    }
    if (from == csv->end)
        return nrg_fail_at(err, -EBADMSG, csv->name, csv->line, "a quote is not closed");
    csv->at = from + 1;
    if (csv->at < csv->end && !strchr(",\r\n", *csv->at))
        return nrg_fail_at(err, -EBADMSG, csv->name, csv->line, "text follows a closing quote");
    return add_cell(csv, start, (size_t)(to - start), err);
}

static int read_plain_cell(struct nrg_csv *csv, struct nrg_error *err)
{
    char *start = csv->at;
    while (csv->at < csv->end && *csv->at != ',' && *csv->at != '\n')
        csv->at++;
    size_t len = (size_t)(csv->at - start);
    bool last = csv->at == csv->end || *csv->at == '\n';
    if (len && last && start[len - 1] == '\r')
        len--;
    return add_cell(csv, start, len, err);
}

static void skip_blank_lines(struct nrg_csv *csv)
{
    for (;;) {
        char *p = csv->at;
        while (p < csv->end && (*p == ' ' || *p == '\t' || *p == '\r'))
            p++;
        if (p == csv->end)
            csv->at = p;
        if (p == csv->end || *p != '\n')
            return;
        csv->at = p + 1;
        csv->lines++;
    }
}

int nrg_csv_next(struct nrg_csv *csv, struct nrg_error *err)
{
    skip_blank_lines(csv);
    csv->n = 0;
    csv->line = csv->lines + 1;
    if (csv->at == csv->end)
        return 0;
    for (;;) {
        bool has_quote = csv->at < csv->end && *csv->at == '"';
        csv->at += has_quote;
        int rc = has_quote ? read_quoted_cell(csv, err) : read_plain_cell(csv, err);
        if (rc)
            return rc;
        if (csv->at < csv->end && *csv->at == '\r' &&
            (csv->at + 1 == csv->end || csv->at[1] == '\n'))
            csv->at++;
        if (csv->at == csv->end)
            return 1;
        if (*csv->at++ == '\n') {
            csv->lines++;
            return 1;
        }
    }
}

int nrg_csv_find(const struct nrg_csv *csv, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < csv->n; i++) {
        struct nrg_cell cell = csv->cells[i];
        nrg_trim(&cell.text, &cell.len);
        if (cell.len == len && !memcmp(cell.text, name, len))
            return (int)i;
    }
    return -1;
}

int nrg_cell_number(struct nrg_cell cell, double *out)
{
    nrg_trim(&cell.text, &cell.len);
    *out = NAN;
    if (!cell.len || (cell.len == 3 && !strncasecmp(cell.text, "nan", 3)))
        return 0;
    return nrg_parse_double(cell.text, cell.len, out);
}

void nrg_csv_cell(FILE *out, const char *text)
{
    size_t len = text ? strlen(text) : 0;
    if (!len)
        return;
    double number;
    const char *mark = is_formula(text, len) && nrg_parse_double(text, len, &number) ? "'" : "";
    /* Some readers strip blanks at the ends unless the cell is quoted. */
    if (!strpbrk(text, ",\"\r\n") && text[0] != ' ' && text[len - 1] != ' ') {
        fprintf(out, "%s%s", mark, text);
        return;
    }
    fprintf(out, "\"%s", mark);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

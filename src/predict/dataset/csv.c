/*
 * Our own CSV: a header of names with units, then a row per measurement. Columns may stand in any
 * order; those that nrg does not know are noted and not used. Parts are "ID:COUNT ID:COUNT…".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "predict/dataset/form.h"
#include "predict/dataset/internal.h"

/* What a column of the file holds: a text, a number with a unit, the parts, or nothing we use. */
struct column {
    enum { TEXT, NUMBER, PARTS, UNUSED } what;
    int at; /* enum nrg_form_text, or a number */
    double unit;
};

struct table {
    struct nrg_form form;
    struct column *columns;
};

static struct column column_of(struct nrg_cell name)
{
    struct column c = {.what = UNUSED};
    while (name.len && (name.text[name.len - 1] == ' ' || name.text[name.len - 1] == '\t'))
        name.len--;
    c.at = nrg_name_find(nrg_form_texts, NRG_FORM_TEXTS, name.text, name.len);
    if (c.at >= 0)
        return (struct column){.what = TEXT, .at = c.at};
    if (name.len == 5 && !memcmp(name.text, "parts", 5))
        return (struct column){.what = PARTS};
    c.at = nrg_form_number(name.text, name.len, &c.unit);
    c.what = c.at >= 0 ? NUMBER : UNUSED;
    return c;
}

static bool same_column(const struct column *a, const struct column *b)
{
    return a->what == b->what && a->what != UNUSED && (a->what == PARTS || a->at == b->at);
}

static int note_unused(struct nrg_form *form, const struct nrg_csv *csv, size_t i)
{
    char text[120];
    struct nrg_cell cell = csv->cells[i];
    snprintf(text, sizeof text, "column '%.*s' is not used", (int)(cell.len < 60 ? cell.len : 60),
             cell.text ? cell.text : "");
    return nrg_dataset_note(form->set, form->name, csv->line, text);
}

static int read_header(void *arg, const struct nrg_csv *csv, struct nrg_error *err)
{
    static const char *const needed[] = {"model", "kind", "level", "device"};
    struct table *t = arg;
    struct column *columns = t->columns = nrg_calloc(csv->n + 1, sizeof *columns);
    bool energy = false;
    if (!columns)
        return nrg_fail(err, -ENOMEM, csv->name, "out of memory");
    for (size_t i = 0; i < csv->n; i++) {
        columns[i] = column_of(csv->cells[i]);
        energy |= columns[i].what == NUMBER && columns[i].at == NRG_FORM_ENERGY;
        for (size_t j = 0; j < i; j++)
            if (same_column(&columns[i], &columns[j]))
                return nrg_fail_at(err, -EBADMSG, csv->name, csv->line,
                                   "columns %zu and %zu are the same quantity", j + 1, i + 1);
        if (columns[i].what == UNUSED && note_unused(&t->form, csv, i))
            return nrg_fail(err, -ENOMEM, csv->name, "out of memory");
    }
    for (size_t i = 0; i < (t->form.options->device ? 3u : 4u); i++)
        if (nrg_csv_find(csv, needed[i]) < 0)
            return nrg_fail_at(err, -EBADMSG, csv->name, csv->line, "misses the column '%s'",
                               needed[i]);
    return energy ? 0
                  : nrg_fail_at(err, -EBADMSG, csv->name, csv->line,
                                "misses the column 'energy_j' (or energy_mj, energy_uj, …)");
}

static int read_parts(struct nrg_form *form, struct nrg_cell cell, long long line,
                      struct nrg_error *err)
{
    const char *p = cell.text, *end = cell.text + cell.len, *word;
    size_t len;
    int rc = 0;
    while (!rc && cell.len && (word = nrg_next_field(&p, end, &len))) {
        const char *colon = memrchr(word, ':', len);
        struct nrg_cell id = {word, colon ? (size_t)(colon - word) : len};
        double count = 1;
        if (colon && nrg_parse_double(colon + 1, len - id.len - 1, &count))
            count = 0;
        rc = nrg_form_part(form, id, count, line, err);
    }
    return rc;
}

static int read_row(void *arg, const struct nrg_csv *csv, struct nrg_error *err)
{
    struct table *t = arg;
    const struct column *columns = t->columns;
    struct nrg_form *form = &t->form;
    struct nrg_record record;
    int rc = 0;
    nrg_form_clear(form, &record);
    for (size_t i = 0; !rc && i < csv->n; i++) {
        struct nrg_cell cell = csv->cells[i];
        if (columns[i].what == TEXT)
            record.texts[columns[i].at] = cell;
        else if (columns[i].what == PARTS)
            rc = read_parts(form, cell, csv->line, err);
        if (columns[i].what != NUMBER)
            continue;
        double *number = &record.numbers[columns[i].at];
        if (nrg_cell_number(cell, number))
            rc = nrg_fail_at(err, -EBADMSG, csv->name, csv->line, "%s is not a number",
                             nrg_form_number_name(columns[i].at));
        *number *= columns[i].unit;
    }
    return rc ? rc : nrg_form_add(form, &record, csv->line, err);
}

int nrg_dataset_read_csv(struct nrg_dataset *set, char *text, size_t size, const char *name,
                         const struct nrg_read_options *options, struct nrg_error *err)
{
    struct table table = {0};
    nrg_form_init(&table.form, set, name, options);
    int rc = nrg_csv_read((struct nrg_text){text, size, name}, &table, read_header, read_row, err);
    free(table.columns);
    nrg_form_release(&table.form);
    return rc;
}

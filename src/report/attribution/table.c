/*
 * See attribution/internal.h. Every line of the table, of the tree or not (total, idle, "n more",
 * unattributed), is a struct line, so that columns are chosen and printed in one way. The first
 * line is the total, the last one is unattributed; between them are the parts of the total.
 *
 * Lines are made twice, once to measure and once to print: names of up to 16 kB times thousands of
 * rows are not kept.
 */
#include "report/attribution/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/units.h"

#define MIN_NAME     18 /* columns for names before others are left out */
#define LEAST_NAME   14
#define MAX_NAME     64 /* where the terminal's width is not known */
#define MAX_INDENTED 16 /* levels */

struct line {
    unsigned depth;
    double calls, time_s, self_j, energy_j, low_j, high_j;
    double pj_per_mac, j_per_byte;
    const char *method;
    bool bold, warn;
};

enum column { CALLS, TIME, SELF, ENERGY, BAND, PER_CALL, SHARE, PJ_MAC, J_BYTE, METHOD, COLUMNS };

static const struct {
    const char *head;
    int width;
    int leave_out; /* when there is no room: highest first; 0: never */
} columns[COLUMNS] = {
    [CALLS] = {"CALLS", 9, 4},    [TIME] = {"TIME", 11, 3},    [SELF] = {"SELF", 11, 6},
    [ENERGY] = {"ENERGY", 11, 0}, [BAND] = {"+-", 13, 1},      [PER_CALL] = {"PER CALL", 11, 5},
    [SHARE] = {"SHARE", 9, 2},    [PJ_MAC] = {"PJ/MAC", 9, 7}, [J_BYTE] = {"PER BYTE", 11, 9},
    [METHOD] = {"METHOD", 10, 8},
};

struct table {
    const struct nrg_attribution_report *report;
    const struct nrg_attribution *a;
    const struct nrg_attribution_view *view;
    struct nrg_text_style style;
    FILE *out;
    bool *shown;
    bool use[COLUMNS];
    size_t name_width, note_width, band_width;
    bool measuring;
    struct nrg_str name, note; /* of the line in hand */
};

static struct nrg_shown show_small(double value, const char *unit)
{
    static const struct {
        double from;
        const char *prefix;
    } scales[] = {{1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}, {0, "p"}};
    struct nrg_shown shown;
    size_t i = 0;
    while (fabs(value) < scales[i].from)
        i++;
    double v = value / (scales[i].from > 0 ? scales[i].from : 1e-12);
    snprintf(shown.text, sizeof shown.text, "%.3g %s%s", v, scales[i].prefix, unit);
    return shown;
}

static struct nrg_shown show_band(const struct table *t, const struct line *l)
{
    bool known = !isnan(l->low_j) && !isnan(l->high_j), wanted = !isnan(l->energy_j) && l->method;
    return known || wanted
               ? nrg_show_band(l->energy_j, l->low_j, l->high_j, t->view->unicode ? "±" : "+-")
               : (struct nrg_shown){""};
}

/* Empty where a number is not known, except for energy itself. */
static struct nrg_shown show_cell(const struct table *t, const struct line *l, enum column c)
{
    struct nrg_shown shown = {""};
    double share = l->energy_j / t->a->total_j;
    if (c == ENERGY)
        return nrg_show_energy(l->energy_j);
    if (c == BAND)
        return show_band(t, l);
    if (c == TIME && !isnan(l->time_s))
        return nrg_show_seconds(l->time_s);
    if (c == SELF && !isnan(l->self_j))
        return nrg_show_energy(l->self_j);
    if (c == PER_CALL && l->calls > 0)
        return nrg_show_energy(l->energy_j / l->calls);
    if (c == J_BYTE && !isnan(l->j_per_byte))
        return show_small(l->j_per_byte, "J");
    if (c == CALLS && l->calls > 0)
        snprintf(shown.text, sizeof shown.text, "%.0f", l->calls);
    else if (c == SHARE && !isnan(share))
        snprintf(shown.text, sizeof shown.text, "%.2f %%", 100 * share);
    else if (c == PJ_MAC && !isnan(l->pj_per_mac))
        snprintf(shown.text, sizeof shown.text, "%.3g", l->pj_per_mac);
    else if (c == METHOD && l->method)
        nrg_copy(shown.text, sizeof shown.text, l->method);
    return shown;
}

/* Both ends of an interval need more room than ±. */
static int column_width(const struct table *t, enum column c)
{
    return c == BAND && (int)t->band_width > columns[c].width ? (int)t->band_width
                                                              : columns[c].width;
}

static int emit_line(struct table *t, const struct line *l)
{
    size_t levels = l->depth < MAX_INDENTED ? l->depth : MAX_INDENTED, indent = 2 * levels;
    int rc = 0;
    if (t->measuring) {
        size_t width = indent + (size_t)nrg_text_width(t->name.text);
        size_t note = (size_t)nrg_text_width(t->note.text);
        t->name_width = width > t->name_width ? width : t->name_width;
        size_t band = (size_t)nrg_text_width(show_band(t, l).text) + 2;
        t->note_width = note > t->note_width ? note : t->note_width;
        t->band_width = band > t->band_width ? band : t->band_width;
        return 0;
    }
    if (indent > t->name_width / 2)
        indent = t->name_width / 2;
    rc = nrg_fit_text(&t->name, t->name_width - indent, true, t->view->unicode);
    if (!rc && t->view->width)
        rc = nrg_fit_text(&t->note, t->note_width, false, t->view->unicode);
    if (rc)
        return rc;
    fprintf(t->out, "%s%*s", l->bold ? t->style.bold : "", (int)indent, "");
    nrg_text_pad(t->out, t->name.text, (int)(t->name_width - indent));
    enum column end = COLUMNS; /* no blanks at the end of a line */
    while (!t->note.len && end && (!t->use[end - 1] || !show_cell(t, l, end - 1).text[0]))
        end--;
    for (enum column c = 0; c < end; c++)
        if (t->use[c])
            nrg_text_right(t->out, show_cell(t, l, c).text, column_width(t, c));
    if (t->note.len)
        fprintf(t->out, "  %s%s%s", l->warn ? t->style.warn : t->style.dim, t->note.text,
                t->style.off);
    fprintf(t->out, "%s\n", l->bold ? t->style.off : "");
    return 0;
}

/* ---- the lines ---- */

static struct line empty_line(void)
{
    return (struct line){.calls = NAN,
                         .time_s = NAN,
                         .self_j = NAN,
                         .energy_j = NAN,
                         .low_j = NAN,
                         .high_j = NAN,
                         .pj_per_mac = NAN,
                         .j_per_byte = NAN};
}

static int set_text(struct nrg_str *s, const char *text)
{
    s->len = 0;
    return nrg_str_add(s, text, strlen(text));
}

/* "not resolved, together with conv2" */
static int row_note(struct table *t, size_t i)
{
    const struct nrg_attribution_row *row = &t->a->rows[i];
    struct nrg_str other = {0};
    int rc = set_text(&t->note, "");
    for (size_t w = 0; !rc && w < NRG_ROW_FLAG_WORDS; w++) {
        const char *word = nrg_attribution_flag(row->flags, w);
        if (!word[0])
            continue;
        rc = nrg_str_addf(&t->note, "%s%s", t->note.len ? ", " : "", word);
        if (rc || strcmp(word, "together"))
            continue;
        if (row->merged_with < t->a->n_rows && row->merged_with != i) {
            rc = nrg_attribution_label(t->a, row->merged_with, true, &other);
            if (!rc)
                rc = nrg_fit_text(&other, 24, true, t->view->unicode);
            if (!rc)
                rc = nrg_str_addf(&t->note, " with %s", other.text);
        } else {
            rc = nrg_str_addf(&t->note, " with others");
        }
    }
    nrg_str_release(&other);
    return rc;
}

/* "conv1 (Conv2d)", "conv1 (Conv2d, backward)" */
static int row_name(struct table *t, size_t i)
{
    static const char backward[] = " (backward)";
    const struct nrg_attribution_row *row = &t->a->rows[i];
    bool is_backward = !strcmp(row->kind, NRG_KIND_BACKWARD);
    int rc = nrg_attribution_label(t->a, i, true, &t->name);
    bool told = rc || !row->detail[0] || !strcmp(row->detail, row->name) || !row->name[0];
    char detail[128];
    if (told)
        return rc;
    nrg_copy_clean(detail, sizeof detail, row->detail, strlen(row->detail));
    if (is_backward && t->name.len >= sizeof backward)
        t->name.len -= sizeof backward - 1;
    return nrg_str_addf(&t->name, " (%s%s)", detail, is_backward ? ", backward" : "");
}

static int emit_row(struct table *t, size_t i)
{
    const struct nrg_attribution_row *row = &t->a->rows[i];
    struct line l = {.depth = row->depth + 1,
                     .calls = (double)row->calls,
                     .time_s = row->time_s,
                     .self_j = row->energy_self_j,
                     .energy_j = row->energy_j,
                     .low_j = row->low_j,
                     .high_j = row->high_j,
                     .pj_per_mac = nrg_row_pj_per_mac(row),
                     .j_per_byte = nrg_row_j_per_byte(row),
                     .method = nrg_method_name(row->method),
                     .warn = row->flags & NRG_ROW_UNRESOLVED};
    int rc = row_name(t, i);
    if (!rc)
        rc = row_note(t, i);
    return rc ? rc : emit_line(t, &l);
}

static int emit_other(struct table *t, const char *name, const char *note, const struct line *l)
{
    int rc = set_text(&t->name, name);
    if (!rc)
        rc = set_text(&t->note, note);
    return rc ? rc : emit_line(t, l);
}

/* What is folded below one parent. */
struct folded {
    size_t rows, known; /* known: with a known energy */
    double time_s, energy_j;
};

static void fold_row(struct folded *folded, const struct nrg_attribution_row *row)
{
    bool known = !isnan(row->energy_j);
    folded->rows++;
    folded->known += known ? 1 : 0;
    folded->time_s += row->time_s;
    folded->energy_j += known ? row->energy_j : 0;
}

static int emit_folded(struct table *t, unsigned depth, const struct folded *folded)
{
    struct line l = empty_line();
    char name[48];
    if (!folded->rows)
        return 0;
    l.depth = depth;
    l.time_s = folded->time_s;
    l.energy_j = folded->known ? folded->energy_j : NAN;
    snprintf(name, sizeof name, "%s %zu more", t->view->unicode ? "…" : "...", folded->rows);
    return emit_other(t, name, "", &l);
}

/* Closes levels that are deeper than `depth`: what was folded there stands after its siblings. */
static int close_levels(struct table *t, struct folded *folded, unsigned *open, unsigned depth)
{
    int rc = 0;
    for (; !rc && *open > depth; (*open)--) {
        rc = emit_folded(t, *open, &folded[*open]);
        folded[*open] = (struct folded){0};
    }
    return rc;
}

static int emit_tree(struct table *t)
{
    unsigned deepest = 0, open = 0;
    for (size_t i = 0; i < t->a->n_rows; i++)
        deepest = t->a->rows[i].depth > deepest ? t->a->rows[i].depth : deepest;
    struct folded *folded = nrg_calloc((size_t)deepest + 3, sizeof *folded);
    int rc = folded ? 0 : -ENOMEM;
    size_t hidden_in = SIZE_MAX; /* level + 1 of the folded row that we are below */
    for (size_t i = 0; !rc && i < t->a->n_rows; i++) {
        const struct nrg_attribution_row *row = &t->a->rows[i];
        if (hidden_in != SIZE_MAX && row->depth + 1 > hidden_in) {
            folded[hidden_in].rows++;
            continue;
        }
        hidden_in = SIZE_MAX;
        rc = close_levels(t, folded, &open, row->depth + 1);
        open = row->depth + 1;
        if (t->shown[i]) {
            rc = rc ? rc : emit_row(t, i);
            continue;
        }
        hidden_in = row->depth + 1;
        fold_row(&folded[hidden_in], row);
    }
    if (!rc)
        rc = close_levels(t, folded, &open, 0);
    free(folded);
    return rc;
}

static int emit_total(struct table *t)
{
    struct line l = empty_line();
    l.bold = true;
    l.time_s = t->a->duration_s;
    l.energy_j = t->a->total_j;
    l.low_j = t->a->total_low_j;
    l.high_j = t->a->total_high_j;
    return emit_other(t, "total", isnan(t->a->scale.low) ? "" : "with the scale", &l);
}

static int emit_rest(struct table *t)
{
    const struct {
        const char *name;
        double energy_j;
    } rest[] = {{"idle", t->a->idle == NRG_IDLE_APART ? t->a->idle_j : NAN},
                {"other processes", t->a->other_processes_j},
                {"unattributed", t->a->unattributed_j}};
    int rc = 0;
    for (size_t i = 0; !rc && i < 3; i++) {
        struct line l = empty_line();
        l.depth = 1;
        l.energy_j = rest[i].energy_j;
        if (i == 2 || (!isnan(l.energy_j) && (l.energy_j > 0 || l.energy_j < 0)))
            rc = emit_other(t, rest[i].name, "", &l);
    }
    return rc;
}

static int emit_all(struct table *t)
{
    int rc = emit_total(t);
    if (!rc)
        rc = emit_tree(t);
    return rc ? rc : emit_rest(t);
}

/* ---- what fits ---- */

static void find_used(struct table *t)
{
    for (enum column c = 0; c < COLUMNS; c++)
        t->use[c] = c != PJ_MAC && c != J_BYTE;
    for (size_t i = 0; i < t->a->n_rows; i++) {
        t->use[PJ_MAC] |= t->shown[i] && !isnan(nrg_row_pj_per_mac(&t->a->rows[i]));
        t->use[J_BYTE] |= t->shown[i] && !isnan(nrg_row_j_per_byte(&t->a->rows[i]));
    }
}

static size_t columns_width(const struct table *t)
{
    size_t width = t->note_width ? t->note_width + 2 : 0;
    for (enum column c = 0; c < COLUMNS; c++)
        width += t->use[c] ? (size_t)column_width(t, c) : 0;
    return width;
}

/* Leaves out what is wanted least until names have room; then the notes are cut. */
static void fit_columns(struct table *t)
{
    size_t least = t->name_width < MIN_NAME ? t->name_width : MIN_NAME, width = t->view->width;
    if (!width) {
        t->name_width = t->name_width < MAX_NAME ? t->name_width : MAX_NAME;
        return;
    }
    for (int rank = 9; rank > 2 && columns_width(t) + least > width; rank--)
        for (enum column c = 0; c < COLUMNS; c++)
            if (columns[c].leave_out == rank)
                t->use[c] = false;
    if (columns_width(t) + least > width && t->note_width > 14)
        t->note_width = 14;
    t->use[SHARE] = columns_width(t) + LEAST_NAME <= width;
    size_t room = width > columns_width(t) + LEAST_NAME ? width - columns_width(t) : LEAST_NAME;
    t->name_width = t->name_width < room ? t->name_width : room;
}

static void print_table_head(struct table *t)
{
    fprintf(t->out, "%s%-*s", t->style.dim, (int)t->name_width, "SPAN");
    for (enum column c = 0; c < COLUMNS; c++)
        if (t->use[c])
            nrg_text_right(t->out, c == BAND && t->view->unicode ? "±" : columns[c].head,
                           column_width(t, c));
    fprintf(t->out, "%s\n", t->style.off);
}

int nrg_attribution_table(const struct nrg_attribution_report *report,
                          const struct nrg_attribution_view *view, FILE *out)
{
    const struct nrg_attribution *a = report->attribution;
    struct table t = {.report = report,
                      .a = a,
                      .view = view,
                      .style = nrg_text_style(view->colour),
                      .out = out,
                      .shown = nrg_calloc(a->n_rows + 1, sizeof(bool)),
                      .name_width = 4,
                      .measuring = true};
    int rc = t.shown ? nrg_attribution_select(a, view, t.shown) : -ENOMEM;
    if (!rc)
        rc = emit_all(&t);
    if (!rc) {
        find_used(&t);
        fit_columns(&t);
        print_table_head(&t);
        t.measuring = false;
        rc = emit_all(&t);
    }
    free(t.shown);
    nrg_str_release(&t.name);
    nrg_str_release(&t.note);
    return rc;
}

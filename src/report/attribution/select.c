/*
 * Which rows of an attribution are shown, and texts cut to a width. A model has thousands of
 * places; a reader wants the largest. What is left out is never lost: attribution_table.c adds it
 * up in a row of its own.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/attribution/internal.h"

struct nrg_text_style nrg_text_style(bool colour)
{
    return colour ? (struct nrg_text_style){"\033[1m", "\033[2m", "\033[33m", "\033[0m"}
                  : (struct nrg_text_style){"", "", "", ""};
}

struct ranked {
    double energy_j, time_s;
    size_t row;
};

/* Largest first; rows without a number last, longest first; else as they stand. */
static int compare(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (isnan(a->energy_j) != isnan(b->energy_j))
        return isnan(a->energy_j) ? 1 : -1;
    if (a->energy_j > b->energy_j || b->energy_j > a->energy_j)
        return a->energy_j > b->energy_j ? -1 : 1;
    if (a->time_s > b->time_s || b->time_s > a->time_s)
        return a->time_s > b->time_s ? -1 : 1;
    return a->row < b->row ? -1 : 1;
}

static void show_with_ancestors(const struct nrg_attribution *a, size_t row, bool *shown)
{
    for (; row < a->n_rows && !shown[row]; row = a->rows[row].parent)
        shown[row] = true;
}

/* By its time where its energy is not known. */
static bool is_small(const struct nrg_attribution_row *row, double least_j, double least_s)
{
    return isnan(row->energy_j) ? row->time_s < least_s : row->energy_j < least_j;
}

int nrg_attribution_select(const struct nrg_attribution *a, const struct nrg_attribution_view *view,
                           bool *shown)
{
    struct ranked *ranked = calloc(a->n_rows + 1, sizeof *ranked);
    double least_j = 0;
    size_t n = 0;
    if (!ranked)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_rows; i++)
        if (a->rows[i].energy_self_j > 0) /* of what the spans have: idle may be most of it */
            least_j += view->min_share * a->rows[i].energy_self_j;
    for (size_t i = 0; i < a->n_rows; i++)
        if (!is_small(&a->rows[i], least_j, view->min_share * a->duration_s))
            ranked[n++] = (struct ranked){a->rows[i].energy_j, a->rows[i].time_s, i};
    qsort(ranked, n, sizeof *ranked, compare);
    memset(shown, 0, a->n_rows * sizeof *shown);
    for (size_t i = 0; i < n && (!view->top || i < view->top); i++)
        show_with_ancestors(a, ranked[i].row, shown);
    free(ranked);
    return 0;
}

size_t nrg_text_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

/* Bytes of the first `width` columns. */
static size_t bytes_of(const char *text, size_t width)
{
    size_t at = 0;
    for (size_t seen = 0; text[at]; at++)
        if ((text[at] & 0xc0) != 0x80 && seen++ == width)
            break;
    return at;
}

int nrg_fit_text(struct nrg_str *text, size_t width, bool middle, bool unicode)
{
    size_t columns = text->len ? nrg_text_width(text->text) : 0;
    const char *dots = unicode ? "…" : "..";
    size_t dots_width = unicode ? 1 : 2;
    if (!unicode)
        for (size_t i = 0; i < text->len; i++)
            if ((unsigned char)text->text[i] >= 0x80) {
                columns = text->len; /* seen as bytes: one each */
                text->text[i] = '?';
            }
    if (columns <= width)
        return 0;
    size_t room = width > dots_width ? width - dots_width : 0, tail = middle ? room / 2 : 0;
    size_t head_bytes = bytes_of(text->text, room - tail);
    size_t tail_at = bytes_of(text->text, columns - tail);
    struct nrg_str cut = {0};
    int rc = nrg_str_add(&cut, text->text, head_bytes);
    if (!rc)
        rc = nrg_str_add(&cut, dots, strlen(dots));
    if (!rc)
        rc = nrg_str_add(&cut, text->text + tail_at, text->len - tail_at);
    if (rc) {
        nrg_str_release(&cut);
        return rc;
    }
    nrg_str_release(text);
    *text = cut;
    return 0;
}

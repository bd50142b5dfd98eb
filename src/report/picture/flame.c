/*
 * The flame graph: width is joules. A box fades as its interval grows and is hatched where it is
 * not resolved. What belongs to no span is drawn too, so that the width is the machine's; where
 * the parts exceed it, because what is idle or others' was found to be more than what is left, it
 * is theirs.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/attribution/report.h"
#include "report/picture/pen.h"
#include "report/units.h"

#define LEVEL       20.0
#define TOP         24.0
#define MOST_LEVELS 60
#define LEAST_PX    0.4
#define REST        "#d9dee6"

struct flame {
    const struct nrg_attribution *a;
    FILE *out;
    double scale; /* pixels per joule */
};

static double level_y(size_t depth)
{
    return TOP + (double)depth * LEVEL;
}

static void put_box(const struct flame *f, struct nrg_box box, const char *fill, double doubt,
                    const char *label, double energy_j)
{
    struct nrg_str text = {0};
    double opacity = isnan(doubt) ? 1 : 1 - 0.65 * fmin(1, doubt);
    box.w = fmax(LEAST_PX, box.w - 0.5);
    nrg_pen_rect(f->out, box, fill, opacity);
    if (doubt >= 0.5 && box.w > 3)
        nrg_pen_hatch(f->out, box);
    const char *ink = opacity < 0.6 || !strcmp(fill, REST) ? NRG_INK : "#ffffff";
    if (box.w > 28 &&
        !nrg_str_addf(&text, box.w > 160 ? "%s  %s" : "%s", label, nrg_show_energy(energy_j).text))
        nrg_pen_text(f->out, box.x + 4, box.y + 14, "start", ink, text.text, box.w - 6);
    nrg_str_release(&text);
}

/* Half of the interval over the energy; NAN: not known. */
static double doubt_of(double energy_j, double low_j, double high_j)
{
    return energy_j > 0 ? (high_j - low_j) / 2 / energy_j : NAN;
}

static int put_row(const struct flame *f, size_t i, double x)
{
    const struct nrg_attribution_row *row = &f->a->rows[i];
    struct nrg_str label = {0};
    int rc = nrg_attribution_label(f->a, i, true, &label);
    double w = row->energy_j * f->scale;
    if (!rc && w >= LEAST_PX && row->depth + 1 < MOST_LEVELS)
        put_box(f, (struct nrg_box){x, level_y(row->depth + 1), w, LEVEL - 1},
                nrg_pen_colour(row->kind, row->detail[0] ? row->detail : row->name),
                row->flags & NRG_ROW_UNRESOLVED
                    ? fmax(0.5, doubt_of(row->energy_j, row->low_j, row->high_j))
                    : doubt_of(row->energy_j, row->low_j, row->high_j),
                label.text, row->energy_j);
    nrg_str_release(&label);
    return rc;
}

/* Rows stand behind their parents: each begins where the last one of its parent ended. */
static int put_rows(const struct flame *f, double *next, double *x)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < f->a->n_rows; i++) {
        const struct nrg_attribution_row *row = &f->a->rows[i];
        double *at = row->parent < i ? &next[row->parent] : x;
        next[i] = *at;
        if (!(row->energy_j > 0) || isinf(row->energy_j))
            continue;
        rc = put_row(f, i, *at);
        *at += row->energy_j * f->scale;
    }
    return rc;
}

static unsigned deepest(const struct nrg_attribution *a)
{
    unsigned depth = 0;
    for (size_t i = 0; i < a->n_rows; i++)
        if (a->rows[i].energy_j > 0 && a->rows[i].depth + 2 > depth)
            depth = a->rows[i].depth + 2;
    return depth < 2 ? 2 : depth < MOST_LEVELS ? depth : MOST_LEVELS;
}

static double positive(double x)
{
    return x > 0 && isfinite(x) ? x : 0;
}

int nrg_picture_flame(const struct nrg_picture *p, FILE *out, struct nrg_error *err)
{
    const struct nrg_attribution *a = p->attribution;
    const struct {
        const char *name;
        double energy_j;
    } rests[] = {{"idle", positive(a->idle_j)},
                 {"other processes", positive(a->other_processes_j)},
                 {"unattributed", positive(a->unattributed_j)}};
    double parts_j = 0, x = 0;
    for (size_t i = 0; i < a->n_rows; i++)
        parts_j += a->rows[i].parent < i ? 0 : positive(a->rows[i].energy_j);
    for (size_t i = 0; i < 3; i++)
        parts_j += rests[i].energy_j;
    double whole_j = fmax(parts_j, positive(a->total_j));
    if (!(whole_j > 0))
        return nrg_fail(err, -ENODATA, nrg_recording_path(p->recording),
                        "has no energy to draw: nrg sensors says what could be measured");
    double *next = nrg_calloc(a->n_rows + 1, sizeof *next);
    if (!next)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    const struct flame f = {a, out, NRG_PEN_WIDTH / whole_j};
    nrg_pen_begin(out, level_y(deepest(a)) + 8);
    nrg_pen_caption(out, a, "Where the joules went", 16);
    put_box(&f, (struct nrg_box){0, level_y(0), NRG_PEN_WIDTH, LEVEL - 1}, REST, NAN, "machine",
            a->total_j);
    int rc = put_rows(&f, next, &x);
    for (size_t i = 0; i < 3; i++) {
        double w = rests[i].energy_j * f.scale;
        if (w >= LEAST_PX)
            put_box(&f, (struct nrg_box){x, level_y(1), w, LEVEL - 1}, REST, NAN, rests[i].name,
                    rests[i].energy_j);
        x += w;
    }
    nrg_pen_end(out);
    free(next);
    return rc ? nrg_fail(err, rc, NULL, "out of memory") : 0;
}

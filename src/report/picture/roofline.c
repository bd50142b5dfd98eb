/*
 * The roofline in joules: energy per MAC against MACs per byte of memory traffic, both logarithmic.
 * Operators, kernels and layers of one name are one point; modules are points of their own. The
 * line is what the machine charges, at best or as fitted (predict/machine_price.h).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/format.h"
#include "report/attribution/report.h"
#include "report/picture/pen.h"
#include "report/units.h"

#define LEFT   80.0
#define RIGHT  16.0
#define TOP    44.0
#define HEIGHT 420.0
#define BOTTOM (HEIGHT - 44.0)
#define CURVE  60

enum { MOST_NAMES = 60 };

struct point {
    const struct nrg_attribution_row *row; /* the first of that name */
    size_t number;
    double energy_j, macs, bytes;
    bool is_module;
};

struct roofline {
    const struct nrg_picture *p;
    FILE *out;
    struct point *points;
    size_t n, cap;
    double x0, x1, y0, y1; /* logarithms of the axes' ends */
};

static bool is_operator(const char *kind)
{
    return !strcmp(kind, NRG_KIND_OPERATOR) || !strcmp(kind, NRG_KIND_KERNEL) ||
           !strcmp(kind, NRG_KIND_LAYER);
}

static struct point *find(const struct roofline *r, const struct nrg_attribution_row *row)
{
    for (size_t i = 0; i < r->n; i++)
        if (!r->points[i].is_module && !strcmp(r->points[i].row->kind, row->kind) &&
            !strcmp(r->points[i].row->name, row->name))
            return &r->points[i];
    return NULL;
}

/* What a logarithmic axis has a place for. */
static bool is_drawn(double x)
{
    return x > 1e-100 && x < 1e100;
}

/* An operator uses energy itself, a module that of all inside of it: so are their counts. */
static int add_row(struct roofline *r, size_t i)
{
    const struct nrg_attribution_row *row = &r->p->attribution->rows[i];
    bool module = !strcmp(row->kind, NRG_KIND_MODULE);
    double energy_j = module ? row->energy_j : row->energy_self_j, calls = (double)row->calls;
    double macs = row->macs * calls, bytes = (row->read_bytes + row->written_bytes) * calls;
    if ((!module && !is_operator(row->kind)) || !is_drawn(energy_j) || !is_drawn(macs) ||
        !is_drawn(bytes))
        return 0;
    struct point *known = module ? NULL : find(r, row);
    if (known) {
        known->energy_j += energy_j;
        known->macs += macs;
        known->bytes += bytes;
        return 0;
    }
    struct point point = {row, i, energy_j, macs, bytes, module};
    return nrg_append(&r->points, &r->n, &r->cap, &point, sizeof point);
}

static double point_x(const struct point *p)
{
    return log10(p->macs / p->bytes);
}

static double point_y(const struct point *p)
{
    return log10(p->energy_j / p->macs);
}

/* Logarithm of the machine's joules per MAC at an intensity; NAN: not known. */
static double line_y(const struct roofline *r, double x)
{
    const struct nrg_machine_price *price = r->p->price;
    double y = price ? log10(price->j_per_mac + price->j_per_byte / pow(10, x)) : NAN;
    return isfinite(y) ? y : NAN;
}

static void set_axes(struct roofline *r)
{
    r->x0 = r->y0 = INFINITY;
    r->x1 = r->y1 = -INFINITY;
    for (size_t i = 0; i < r->n; i++) {
        r->x0 = fmin(r->x0, point_x(&r->points[i]) - 0.35);
        r->x1 = fmax(r->x1, point_x(&r->points[i]) + 0.6);
        r->y0 = fmin(r->y0, point_y(&r->points[i]) - 0.3);
        r->y1 = fmax(r->y1, point_y(&r->points[i]) + 0.3);
    }
    for (int k = 0; k < 2; k++) { /* fmin and fmax leave NAN out */
        r->y0 = fmin(r->y0, line_y(r, k ? r->x1 : r->x0) - 0.3);
        r->y1 = fmax(r->y1, line_y(r, k ? r->x1 : r->x0) + 0.3);
    }
}

static double px(const struct roofline *r, double x)
{
    return LEFT + (x - r->x0) / (r->x1 - r->x0) * (NRG_PEN_WIDTH - LEFT - RIGHT);
}

static double py(const struct roofline *r, double y)
{
    return BOTTOM - (y - r->y0) / (r->y1 - r->y0) * (BOTTOM - TOP);
}

static void put_grid(const struct roofline *r)
{
    char text[32];
    for (int d = (int)floor(r->x0); d <= r->x1; d++)
        for (int k = 1; k < 10; k++) {
            double at = d + log10(k);
            if (at < r->x0 || at > r->x1)
                continue;
            nrg_pen_line(r->out, px(r, at), TOP, px(r, at), BOTTOM, NRG_GRID, k == 1 ? 1 : 0.4);
            snprintf(text, sizeof text, "%g", pow(10, d) * k);
            if (k == 1 || k == 2 || k == 5)
                nrg_pen_text(r->out, px(r, at), BOTTOM + 15, "middle", NRG_DIM, text, 0);
        }
    for (int d = (int)floor(r->y0); d <= r->y1; d++)
        for (int k = 1; k < 10; k++) {
            double at = d + log10(k);
            if (at < r->y0 || at > r->y1)
                continue;
            nrg_pen_line(r->out, LEFT, py(r, at), NRG_PEN_WIDTH - RIGHT, py(r, at), NRG_GRID,
                         k == 1 ? 1 : 0.4);
            snprintf(text, sizeof text, "%g pJ", pow(10, d + 12) * k);
            if (k == 1 || (r->y1 - r->y0 < 2 && (k == 2 || k == 5)))
                nrg_pen_text(r->out, LEFT - 6, py(r, at) + 4, "end", NRG_DIM, text, 0);
        }
    nrg_pen_text(r->out, LEFT + (NRG_PEN_WIDTH - LEFT - RIGHT) / 2, HEIGHT - 8, "middle", NRG_INK,
                 "MACs per byte of memory traffic", 0);
    nrg_pen_text(r->out, 6, 36, "start", NRG_INK, "energy per MAC", 0);
}

static void put_line(const struct roofline *r)
{
    char text[256];
    if (isnan(line_y(r, r->x0)))
        return;
    fputs("<polyline fill=\"none\" stroke=\"" NRG_INK "\" stroke-width=\"2\" points=\"", r->out);
    for (int k = 0; k <= CURVE; k++) {
        double x = r->x0 + (r->x1 - r->x0) * k / CURVE;
        fprintf(r->out, "%.2f %.2f ", px(r, x), py(r, line_y(r, x)));
    }
    fputs("\"/>\n", r->out);
    const struct nrg_machine_price *price = r->p->price;
    snprintf(text, sizeof text, "%s %s (%s, %s)", price->device[0] ? price->device : "machine",
             price->is_fitted ? "as fitted" : "at best", price->provenance, price->source);
    nrg_pen_text(r->out, NRG_PEN_WIDTH - RIGHT - 4, py(r, line_y(r, r->x1)) - 8, "end", NRG_INK,
                 text, 0);
}

static int compare_points(const void *x, const void *y)
{
    const struct point *a = x, *b = y;
    return a->energy_j > b->energy_j ? -1 : a->energy_j < b->energy_j;
}

/* Largest first; a name is written where none is near. */
static int put_points(const struct roofline *r)
{
    struct nrg_str label = {0};
    int rc = 0;
    for (size_t i = 0; !rc && i < r->n; i++) {
        const struct point *p = &r->points[i];
        double radius = 4 + 10 * sqrt(p->energy_j / r->points[0].energy_j);
        double x = px(r, point_x(p)), y = py(r, point_y(p));
        const char *colour =
            nrg_pen_colour(p->row->kind, p->row->detail[0] ? p->row->detail : p->row->name);
        fprintf(r->out,
                "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\" fill=\"%s\" fill-opacity=\"%.2f\" "
                "stroke=\"%s\"/>\n",
                x, y, radius, colour, p->is_module ? 0.25 : 0.8, p->is_module ? colour : "#ffffff");
        bool near = i >= MOST_NAMES;
        for (size_t k = 0; !near && k < i; k++)
            near = fabs(py(r, point_y(&r->points[k])) - y) < 14 &&
                   fabs(px(r, point_x(&r->points[k])) - x) < 130;
        if (near)
            continue;
        rc = nrg_attribution_label(r->p->attribution, p->number, true, &label);
        if (!rc)
            nrg_pen_text(r->out, x + radius + 4, y + 4, "start", NRG_INK, label.text, 150);
    }
    nrg_str_release(&label);
    return rc;
}

int nrg_picture_roofline(const struct nrg_picture *p, FILE *out, struct nrg_error *err)
{
    struct roofline r = {.p = p, .out = out};
    int rc = 0;
    for (size_t i = 0; !rc && i < p->attribution->n_rows; i++)
        rc = add_row(&r, i);
    if (!rc && !r.n)
        rc = nrg_fail(err, -ENODATA, nrg_recording_path(p->recording),
                      "no row has energy, MACs and bytes: keep the model's graph (nrg run --graph, "
                      "or nrg.torch.trace)");
    else if (!rc) {
        qsort(r.points, r.n, sizeof *r.points, compare_points);
        set_axes(&r);
        nrg_pen_begin(out, HEIGHT);
        nrg_pen_caption(out, p->attribution, "Why: joules per MAC", 16);
        put_grid(&r);
        put_line(&r);
        rc = put_points(&r);
        nrg_pen_end(out);
    }
    free(r.points);
    return rc == -ENOMEM ? nrg_fail(err, rc, NULL, "out of memory") : rc;
}

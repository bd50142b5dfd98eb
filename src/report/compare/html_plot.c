/*
 * The pictures of a comparison's page, as SVG in its text: intervals as whiskers around no change,
 * and the energy of all runs over time, where a drift, an outlier and sides that were not run in
 * turn can be seen. What lies beyond an axis ends at its edge.
 */
#include <math.h>
#include <stdlib.h>

#include "report/compare/html.h"
#include "report/units.h"
#include "sensors/channel.h"

#define WHISKER_WIDTH 180.0
#define WIDTH         760.0
#define HEIGHT        180.0
#define LEFT          80.0
#define TOP           14.0

static double at(double relative, double widest)
{
    double x = fmax(-1, fmin(1, relative / widest));
    return WHISKER_WIDTH / 2 * (1 + 0.96 * x);
}

void nrg_html_whisker(FILE *out, const struct nrg_effect *e, const char *verdict, double widest)
{
    fprintf(out,
            "<svg width=\"%.0f\" height=\"16\" viewBox=\"0 0 %.0f 16\" aria-hidden=\"true\" "
            "class=\"%s\"><line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"16\"/><line "
            "class=\"span %s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"8\" y2=\"8\"/><circle class=\"dot %s\" "
            "cx=\"%.1f\" cy=\"8\" r=\"3.5\"/></svg>",
            WHISKER_WIDTH, WHISKER_WIDTH, verdict, WHISKER_WIDTH / 2, WHISKER_WIDTH / 2, verdict,
            at(e->low - 1, widest), at(e->high - 1, widest), verdict, at(e->ratio - 1, widest));
}

/* ---- runs over time ---- */

struct frame {
    double least_j, most_j;
    int64_t first_ns, last_ns;
    size_t n;
};

static bool can_be_drawn(const struct nrg_compare_run *run)
{
    return isfinite(run->energy_j) && run->begin_ns != NRG_MISSING;
}

static struct frame frame_of(const struct nrg_comparison *c)
{
    struct frame f = {INFINITY, -INFINITY, INT64_MAX, INT64_MIN, 0};
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < c->sides[s].n_runs; i++) {
            const struct nrg_compare_run *run = &c->sides[s].runs[i];
            if (!can_be_drawn(run))
                continue;
            f.least_j = fmin(f.least_j, run->energy_j);
            f.most_j = fmax(f.most_j, run->energy_j);
            f.first_ns = run->begin_ns < f.first_ns ? run->begin_ns : f.first_ns;
            f.last_ns = run->begin_ns > f.last_ns ? run->begin_ns : f.last_ns;
            f.n++;
        }
    return f;
}

static double x_of(const struct frame *f, int64_t t_ns)
{
    double span = (double)f->last_ns - (double)f->first_ns;
    double part = span > 0 ? ((double)t_ns - (double)f->first_ns) / span : 0.5;
    return LEFT + 10 + part * (WIDTH - LEFT - 30);
}

static double y_of(const struct frame *f, double energy_j)
{
    double span = f->most_j - f->least_j;
    double part = span > 0 ? (energy_j - f->least_j) / span : 0.5;
    return TOP + (1 - part) * (HEIGHT - 2 * TOP);
}

static void print_level(FILE *out, const struct frame *f, double energy_j)
{
    double y = y_of(f, energy_j);
    fprintf(out,
            "<line class=\"axis\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/><text "
            "x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
            LEFT, WIDTH, y, y, LEFT - 6, y + 4, nrg_show_energy(energy_j).text);
}

static void print_run(FILE *out, const struct frame *f, const struct nrg_compare_run *run, int side)
{
    double x = x_of(f, run->begin_ns), y = y_of(f, run->energy_j);
    if (side)
        fprintf(out, "<rect class=\"b\" x=\"%.1f\" y=\"%.1f\" width=\"7\" height=\"7\">", x - 3.5,
                y - 3.5);
    else
        fprintf(out, "<circle class=\"a\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\">", x, y);
    fprintf(out, "<title>");
    nrg_html_text(out, run->file);
    fprintf(out, ": %s in %s</title></%s>\n", nrg_show_energy(run->energy_j).text,
            nrg_show_seconds(run->duration_s).text, side ? "rect" : "circle");
}

void nrg_html_runs(const struct nrg_compare_report *r, FILE *out)
{
    const struct nrg_comparison *c = r->comparison;
    struct frame f = frame_of(c);
    if (f.n < 2)
        return;
    fprintf(out,
            "<h2>Energy of every run, in the order of time</h2>\n<svg width=\"%.0f\" "
            "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"Energy of %zu "
            "runs between %s and %s\">\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT, f.n, nrg_show_energy(f.least_j).text,
            nrg_show_energy(f.most_j).text);
    print_level(out, &f, f.least_j);
    if (f.most_j > f.least_j)
        print_level(out, &f, f.most_j);
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < c->sides[s].n_runs; i++)
            if (can_be_drawn(&c->sides[s].runs[i]))
                print_run(out, &f, &c->sides[s].runs[i], s);
    fprintf(out, "</svg>\n<p class=\"dim\">circles: ");
    nrg_html_text(out, nrg_compare_side_name(r->comparison->sides, 0));
    fprintf(out, ", squares: ");
    nrg_html_text(out, nrg_compare_side_name(r->comparison->sides, 1));
    fprintf(out, "</p>\n");
}

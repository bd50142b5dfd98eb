/* See pen.h. The colours are seen apart by people who see few of them; the page has the same. */
#include "report/picture/pen.h"

#include <math.h>
#include <string.h>

#include "report/style.h"
#include "report/units.h"

#define CHAR_WIDTH 6.6 /* about that of the font */
#define HATCH      7.0

static const char *const colours[] = {"#4477aa", "#ee7733", "#228833", "#aa3377",
                                      "#66ccee", "#ccbb44", "#8866cc", "#bb5544"};
enum { N_COLOURS = sizeof colours / sizeof *colours };

const char *nrg_pen_colour_of(size_t number)
{
    return colours[number % N_COLOURS];
}

const char *nrg_pen_colour(const char *kind, const char *name)
{
    uint32_t hash = 0;
    for (const char *c = kind; *c; c++)
        hash = hash * 31 + (unsigned char)*c;
    for (const char *c = name; *c; c++)
        hash = hash * 31 + (unsigned char)*c;
    return nrg_pen_colour_of(hash);
}

static void put_escaped(FILE *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (strchr("&<>\"'", c))
            fprintf(out, "&#%u;", c);
        else
            fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
    }
}

void nrg_pen_begin(FILE *out, double height)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n"
            "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
            NRG_PEN_WIDTH, height, NRG_PEN_WIDTH, height, NRG_PEN_WIDTH, height);
}

void nrg_pen_caption(FILE *out, const struct nrg_attribution *a, const char *what, double y)
{
    struct nrg_str text = {0};
    if (isnan(a->total_j))
        nrg_str_addf(&text, "%s; the energy is not known", what);
    else
        nrg_str_addf(&text, "%s; in all %s (95 %%: %s), %s, by %s; %s", what,
                     nrg_show_energy(a->total_j).text,
                     nrg_show_interval(a->total_low_j, a->total_high_j).text,
                     nrg_provenance_name(a->provenance), nrg_method_name(a->method),
                     nrg_show_seconds(a->duration_s).text);
    nrg_pen_text(out, 4, y, "start", NRG_DIM, text.text ? text.text : what, NRG_PEN_WIDTH - 8);
    nrg_str_release(&text);
}

void nrg_pen_end(FILE *out)
{
    fputs("</svg>\n", out);
}

void nrg_pen_rect(FILE *out, struct nrg_box b, const char *fill, double opacity)
{
    fprintf(out,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" "
            "opacity=\"%.2f\"/>\n",
            b.x, b.y, b.w, b.h, fill, opacity);
}

void nrg_pen_hatch(FILE *out, struct nrg_box b)
{
    for (double k = b.x - b.h + HATCH; k < b.x + b.w; k += HATCH) {
        double from = fmax(k, b.x), to = fmin(k + b.h, b.x + b.w);
        if (to > from)
            nrg_pen_line(out, from, b.y + b.h - (from - k), to, b.y + b.h - (to - k), "#ffffff", 1);
    }
}

void nrg_pen_line(FILE *out, double x1, double y1, double x2, double y2, const char *colour,
                  double width)
{
    fprintf(out,
            "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"%s\" "
            "stroke-width=\"%.1f\"/>\n",
            x1, y1, x2, y2, colour, width);
}

void nrg_pen_text(FILE *out, double x, double y, const char *anchor, const char *colour,
                  const char *text, double room)
{
    size_t columns = room > 0 ? (size_t)(room / CHAR_WIDTH) : SIZE_MAX;
    bool cut = room > 0 && (size_t)nrg_text_width(text) > columns;
    if (cut && columns < 3)
        return;
    fprintf(out, "<text x=\"%.2f\" y=\"%.2f\" fill=\"%s\" text-anchor=\"%s\">", x, y, colour,
            anchor);
    put_escaped(out, text, cut ? nrg_text_bytes(text, columns - 1) : strlen(text));
    fputs(cut ? "…</text>\n" : "</text>\n", out);
}

double nrg_pen_step(double length, double most)
{
    static const double steps[] = {1, 2, 5, 10};
    double least = length / most, power = pow(10, floor(log10(least)));
    size_t i = 0;
    while (i < 3 && steps[i] * power < least)
        i++;
    return steps[i] * power;
}

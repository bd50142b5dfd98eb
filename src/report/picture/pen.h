/*
 * Private to picture/: what pictures are drawn with. SVG is written as it is drawn. Texts of
 * recordings are escaped here and nowhere else.
 */
#ifndef NRG_REPORT_PICTURE_PEN_H
#define NRG_REPORT_PICTURE_PEN_H

#include "report/picture/picture.h"

#define NRG_PEN_WIDTH 1000.0
#define NRG_INK       "#1c2430"
#define NRG_DIM       "#566072"
#define NRG_GRID      "#d9dee6"

struct nrg_box {
    double x, y, w, h;
};

void nrg_pen_begin(FILE *out, double height);
/* What the picture shows: total energy with interval, provenance, method; below it ends. */
void nrg_pen_caption(FILE *out, const struct nrg_attribution *attribution, const char *what,
                     double y);
void nrg_pen_end(FILE *out);

void nrg_pen_rect(FILE *out, struct nrg_box box, const char *fill, double opacity);
/* Lines across a box that is not certain. */
void nrg_pen_hatch(FILE *out, struct nrg_box box);
void nrg_pen_line(FILE *out, double x1, double y1, double x2, double y2, const char *colour,
                  double width);
/* anchor: "start", "middle", "end". Cut to `room`; 0: not cut. */
void nrg_pen_text(FILE *out, double x, double y, const char *anchor, const char *colour,
                  const char *text, double room);

/* A colour for a text, always the same. */
const char *nrg_pen_colour(const char *kind, const char *name);
const char *nrg_pen_colour_of(size_t number);

/* The step of 1, 2 or 5 times a power of ten that divides a length into at most so many. */
double nrg_pen_step(double length, double most);

#endif

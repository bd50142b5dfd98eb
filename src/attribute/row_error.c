/* See row_error.h. */
#include "attribute/row_error.h"

#include <math.h>

void nrg_row_error_settle(struct nrg_row_error *e, double ceiling_w)
{
    double width = (double)e->width_s, all = (double)e->active_j;
    double part = fmin((double)e->part_s, width);
    if (e->interval && width > 0 && all > 0) {
        double own = all * part / width;
        double most = fmin(all, ceiling_w * part);
        double least = fmax(0, all - ceiling_w * (width - part));
        e->above_j += fmax(0, most - own);
        e->below_j += fmax(0, own - least);
    }
    e->interval = 0;
    e->part_s = 0;
}

void nrg_row_error_part(struct nrg_row_error *e, const struct nrg_interval *interval, double part_s,
                        double ceiling_w)
{
    if (!(part_s > 0))
        return;
    if (e->interval != interval->index) {
        if (e->interval)
            nrg_row_error_settle(e, ceiling_w);
        e->interval = interval->index;
        e->width_s = (float)interval->width_s;
        e->active_j = (float)interval->active_j;
        e->part_s = 0;
    }
    e->part_s += (float)part_s;
}

double nrg_normal_half(double confidence)
{
    double z = 1;
    if (!(confidence > 0))
        confidence = 0.95;
    confidence = fmin(confidence, 1 - 1e-12);
    for (int i = 0; i < 60; i++) { /* Newton on erf(z / sqrt 2) = confidence */
        double density = sqrt(2 / 3.14159265358979323846) * exp(-z * z / 2);
        double step = (erf(z / sqrt(2)) - confidence) / density;
        z -= fmax(-0.5, fmin(0.5, step));
    }
    return z;
}

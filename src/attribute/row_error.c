/* See row_error.h. An interval is settled when the row goes on to the next one. */
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

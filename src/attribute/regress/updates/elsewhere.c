/* A sensor that looks part of the time: whether it looked where it was taken to. */
#include <math.h>

#include "attribute/regress/internal.h"

#define IMPOSSIBLE 6.0 /* deviations */
#define MISPLACED  4.0 /* times as much */

double nrg_solver_shape_mean(const struct nrg_solver *s, size_t p)
{
    size_t column = s->index[p];
    return column >= NRG_COLUMN_IDLE_SHAPES && column <= NRG_COLUMN_IDLE_SHAPES_LAST
               ? nrg_idle_shape_mean(&s->r->options.course, column - NRG_COLUMN_IDLE_SHAPES)
               : 0;
}

/* Of idle power's mean, what is beyond where a baseline saw it: along the shapes of a drift. */
struct course {
    double w, variance;
};

static struct course course_of(const struct nrg_solver *s)
{
    struct course all = {0, 0};
    for (size_t p = s->n_bound; p < s->m; p++) {
        double part = nrg_solver_shape_mean(s, p);
        all.w += part * s->free_beta[p] * s->scale[p];
        for (size_t q = s->n_bound; part != 0 && q < s->m; q++)
            all.variance += part * nrg_solver_shape_mean(s, q) * nrg_solver_covariance(s, p, q);
    }
    return all;
}

/*
 * A window that was sought in the wrong place shows by an idle power that can't be, after what the
 * baseline says: powers of classes are then off by more than that. A drift of which readings know
 * the course as well as the baseline knows where it began is one: windows in a wrong place make
 * courses of no shape.
 */
double nrg_solver_looked_elsewhere_w(const struct nrg_solver *s,
                                     const struct nrg_regress_result *result)
{
    double known_w = s->r->options.idle_error_w;
    struct course course = course_of(s);
    bool drifts = course.variance < known_w * known_w;
    double off_w = fabs(result->idle_off_w - (drifts ? course.w : 0));
    return result->window && known_w > 0 && off_w > IMPOSSIBLE * known_w ? MISPLACED * off_w : 0;
}

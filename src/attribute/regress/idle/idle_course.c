/* See idle_course.h. */
#include "attribute/regress/idle/idle_course.h"

#include <math.h>

#define STEPS   256  /* of a mean */
#define SLOWEST 0.32 /* of a run: time constant of the slowest warm-up */

/* Between readings along a line, beyond them as the nearest. */
static double heat_at(const struct nrg_heat *heat, int64_t t_ns)
{
    size_t low = 0, high = heat->n;
    while (low < high) { /* the first reading after t_ns */
        size_t middle = low + (high - low) / 2;
        if (heat->t_ns[middle] > t_ns)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == 0 || low == heat->n)
        return heat->part[low ? heat->n - 1 : 0];
    double width_ns = (double)(heat->t_ns[low] - heat->t_ns[low - 1]);
    double at = width_ns > 0 ? (double)(t_ns - heat->t_ns[low - 1]) / width_ns : 0;
    return heat->part[low - 1] + at * (heat->part[low] - heat->part[low - 1]);
}

static double part_of_run(const struct nrg_idle_course *c, int64_t t_ns)
{
    return (double)(t_ns - c->begin_ns) / fmax((double)(c->end_ns - c->begin_ns), 1);
}

double nrg_idle_line(const struct nrg_idle_course *c, int64_t t_ns)
{
    double at = part_of_run(c, t_ns);
    return c->seen == NRG_IDLE_BEFORE ? at : c->seen == NRG_IDLE_AFTER ? at - 1 : at - 0.5;
}

double nrg_idle_heat(const struct nrg_idle_course *c, int64_t t_ns)
{
    return c->heat && c->heat->n ? heat_at(c->heat, t_ns) : 0;
}

void nrg_idle_shapes(const struct nrg_idle_course *c, int64_t t_ns, double shapes[NRG_IDLE_SHAPES])
{
    double at = fmax(part_of_run(c, t_ns), 0), left = exp(-at / SLOWEST), least = exp(-1 / SLOWEST);
    shapes[NRG_IDLE_LINE] = nrg_idle_line(c, t_ns);
    shapes[NRG_IDLE_BEND] = 4 * at * (1 - at);
    for (size_t i = NRG_IDLE_WARM; i < NRG_IDLE_HEAT; i++) { /* each twice as fast */
        shapes[i] = (1 - left) / (1 - least) - at;
        left *= left;
        least *= least;
    }
    shapes[NRG_IDLE_HEAT] = nrg_idle_heat(c, t_ns);
}

double nrg_idle_shape(const struct nrg_idle_course *c, size_t shape, int64_t t_ns)
{
    double shapes[NRG_IDLE_SHAPES];
    nrg_idle_shapes(c, t_ns, shapes);
    return shapes[shape];
}

double nrg_idle_shape_mean(const struct nrg_idle_course *c, size_t shape)
{
    double sum = 0, step_ns = (double)(c->end_ns - c->begin_ns) / STEPS;
    for (size_t i = 0; i < STEPS; i++)
        sum += nrg_idle_shape(c, shape, c->begin_ns + (int64_t)(((double)i + 0.5) * step_ns));
    return sum / STEPS;
}

double nrg_idle_walk_mean_w(const struct nrg_idle_walk *walk)
{
    double sum = 0;
    for (size_t i = 1; i < walk->n; i++)
        sum += (walk->w[i - 1] + walk->w[i]) / 2 * (walk->at[i] - walk->at[i - 1]);
    return sum;
}

double nrg_idle_walk_w(const struct nrg_idle_walk *walk, const struct nrg_idle_course *c,
                       int64_t t_ns)
{
    double at = fmin(fmax(part_of_run(c, t_ns), 0), 1);
    size_t i = 1;
    if (walk->n < 2)
        return 0;
    while (i + 1 < walk->n && walk->at[i] < at)
        i++;
    double within = (at - walk->at[i - 1]) / (walk->at[i] - walk->at[i - 1]);
    return walk->w[i - 1] + within * (walk->w[i] - walk->w[i - 1]);
}

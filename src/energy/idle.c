/* See idle.h. Sums are enough: no cell has to be kept. */
#include "energy/idle.h"

#include <math.h>

#define MIN_CELLS  20
#define MIN_SPREAD 0.25 /* busy CPUs */
/* How much power rises over the whole spread of utilisation, as a part of the mean power: below
 * FLAT it is constant; below MAYBE_FLAT it is when the rise is within its error. */
#define FLAT       0.03
#define MAYBE_FLAT 0.1

void nrg_idle_init(struct nrg_idle_fit *f)
{
    *f = (struct nrg_idle_fit){.min_x = INFINITY, .min_y = INFINITY};
}

void nrg_idle_add(struct nrg_idle_fit *f, double x, double y)
{
    f->n++, f->sx += x, f->sy += y, f->sxx += x * x, f->sxy += x * y, f->syy += y * y;
    f->min_x = fmin(f->min_x, x);
    f->max_x = fmax(f->max_x, x);
    f->min_y = fmin(f->min_y, y);
}

static double spread_of(const struct nrg_idle_fit *f)
{
    return f->n * f->sxx - f->sx * f->sx;
}

static bool can_tell(const struct nrg_idle_fit *f)
{
    return f->n >= MIN_CELLS && f->max_x - f->min_x >= MIN_SPREAD && spread_of(f) > 0;
}

static double slope_of(const struct nrg_idle_fit *f)
{
    return (f->n * f->sxy - f->sx * f->sy) / spread_of(f);
}

/* Variance of what the line does not explain. */
static double residual(const struct nrg_idle_fit *f)
{
    double explained = slope_of(f) * (f->sxy - f->sx * f->sy / f->n);
    return fmax(0, f->syy - f->sy * f->sy / f->n - explained) / (f->n - 2);
}

double nrg_idle_solve(const struct nrg_idle_fit *f)
{
    if (!can_tell(f))
        return NAN;
    double slope = slope_of(f), intercept = (f->sy - slope * f->sx) / f->n;
    return slope <= 0 ? NAN : fmax(0, fmin(intercept, f->min_y));
}

double nrg_idle_error(const struct nrg_idle_fit *f)
{
    return can_tell(f) ? sqrt(residual(f) * f->sxx / spread_of(f)) : NAN;
}

bool nrg_idle_flat(const struct nrg_idle_fit *f)
{
    if (!can_tell(f))
        return false;
    double slope = slope_of(f), error = sqrt(residual(f) * f->n / spread_of(f));
    double spread = f->max_x - f->min_x, mean_w = f->sy / f->n;
    return slope * spread < FLAT * mean_w ||
           (slope < 2 * error && (slope + 2 * error) * spread < MAYBE_FLAT * mean_w);
}

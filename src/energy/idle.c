/* See idle.h. Sums are enough: no cell has to be kept. */
#include "energy/idle.h"

#include <math.h>

#define MIN_CELLS  20
#define MIN_CELL_S 0.05
#define UPDATES    3    /* of the sensor, in a cell */
#define MIN_SPREAD 0.25 /* busy CPUs */
/* How much power rises over the whole spread of utilisation, as a part of the mean power: below
 * FLAT it is constant; below MAYBE_FLAT it is when the rise is within its error. A program of one
 * thread on a large server is some % of what that draws at idle, and no error. */
#define FLAT       0.001
#define MAYBE_FLAT 0.1
#define LEAST      0.05 /* quantile that stands for the least: one cell may be an outlier */
#define MOST_DRIFT 2    /* times what idle power may change by in a run */
#define MOST_S     2.0  /* average of a gauge that does not say it */

double nrg_idle_memory_s(double width_s, double said_s)
{
    return fmax(width_s, said_s > 0 ? said_s : MOST_S);
}

void nrg_idle_init(struct nrg_idle_fit *f, double width_s)
{
    *f = (struct nrg_idle_fit){
        .min_x = INFINITY, .min_y = INFINITY, .least_s = fmax(MIN_CELL_S, UPDATES * width_s)};
}

static void add_point(struct nrg_idle_fit *f, double x, double y)
{
    f->n++, f->sx += x, f->sy += y, f->sxx += x * x, f->sxy += x * y, f->syy += y * y;
    f->min_x = fmin(f->min_x, x);
    f->max_x = fmax(f->max_x, x);
    f->min_y = fmin(f->min_y, y);
}

void nrg_idle_add(struct nrg_idle_fit *f, double length_s, double busy_s, double energy_j)
{
    bool told = length_s >= MIN_CELL_S && !isnan(busy_s) && !isnan(energy_j);
    f->length_s += length_s, f->busy_s += busy_s, f->energy_j += energy_j;
    if (told && f->length_s < f->least_s)
        return;
    if (told)
        add_point(f, f->busy_s / f->length_s, f->energy_j / f->length_s);
    f->length_s = f->busy_s = f->energy_j = 0;
}

static double spread_of(const struct nrg_idle_fit *f)
{
    return f->n * f->sxx - f->sx * f->sx;
}

bool nrg_idle_can_tell(const struct nrg_idle_fit *f)
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
    if (!nrg_idle_can_tell(f))
        return NAN;
    double slope = slope_of(f), intercept = (f->sy - slope * f->sx) / f->n;
    return slope <= 0 ? NAN : fmax(0, fmin(intercept, f->min_y));
}

double nrg_idle_always(const struct nrg_idle_fit *f)
{
    return f->n > 0 && f->sx > 0 ? fmax(0, f->min_x) * f->n / f->sx : 0;
}

/* Where nothing was near 0 the line is carried on to there, by the watts of CPUs that were always
 * busy: these may differ, so that idle power may be anything up to the least that was seen. */
double nrg_idle_error(const struct nrg_idle_fit *f, double always)
{
    double idle_w = nrg_idle_solve(f);
    if (isnan(idle_w))
        return NAN;
    double range_w = fmax(idle_w, f->min_y - idle_w);
    return hypot(sqrt(residual(f) * f->sxx / spread_of(f)), always * range_w / 2);
}

bool nrg_idle_flat(const struct nrg_idle_fit *f)
{
    if (!nrg_idle_can_tell(f))
        return false;
    double slope = fabs(slope_of(f)), error = sqrt(residual(f) * f->n / spread_of(f));
    double spread = f->max_x - f->min_x, mean_w = f->sy / f->n;
    return slope * spread < FLAT * mean_w ||
           (slope < 2 * error && (slope + 2 * error) * spread < MAYBE_FLAT * mean_w);
}

double nrg_idle_least_w(const double *sorted_w, size_t n)
{
    return n ? sorted_w[(size_t)((double)n * LEAST)] : NAN;
}

bool nrg_idle_was_busy(double baseline_w, double least_w, double error_w)
{
    return baseline_w > least_w + MOST_DRIFT * (NRG_IDLE_DRIFT * least_w + error_w);
}

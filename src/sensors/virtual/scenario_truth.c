/*
 * See scenario_truth.h. Every shape is a sequence of linear
 * pieces, so energy is a sum of exact trapezoids over the pieces cut to the interval; it is never
 * a difference of two large cumulative sums, which would lose digits late in a long run.
 *
 * A burst may have any number of pieces between two reads. Its on-time is counted in whole ns
 * instead, and its lag response over n whole periods is the n-th power of one period's affine
 * map, so that both cost the same for a microsecond as for a year.
 */
#include "sensors/virtual/scenario_truth.h"

#include <math.h>

#include "base/clock.h"
#include "base/search.h"

struct piece {
    double power_w, slope_w_per_s; /* from the asked instant on */
    int64_t end_ns;                /* exclusive; INT64_MAX: for ever */
};

static double in_seconds(int64_t ns)
{
    return (double)ns / (double)NRG_NS_PER_S;
}

static struct piece burst_piece(const struct nrg_scenario_domain *d, int64_t t_ns)
{
    int64_t phase_ns = t_ns % d->burst_period_ns;
    int64_t begin_ns = t_ns - phase_ns;
    if (phase_ns < d->burst_on_ns)
        return (struct piece){d->burst_high_w, 0, begin_ns + d->burst_on_ns};
    return (struct piece){d->burst_low_w, 0, begin_ns + d->burst_period_ns};
}

static struct piece piece_at(const struct nrg_scenario_domain *d, int64_t t_ns)
{
    if (d->shape == NRG_SHAPE_NONE)
        return (struct piece){0, 0, INT64_MAX};
    if (d->shape == NRG_SHAPE_BURST)
        return burst_piece(d, t_ns);
    size_t n = nrg_count_up_to(&d->points->t_ns, d->n_points, sizeof *d->points, t_ns);
    const struct nrg_scenario_point *from = &d->points[n ? n - 1 : 0];
    struct piece piece = {from->power_w, 0, n < d->n_points ? d->points[n].t_ns : INT64_MAX};
    if (d->shape == NRG_SHAPE_RAMP && n && n < d->n_points) {
        double rise_w = from[1].power_w - from->power_w;
        piece.slope_w_per_s = rise_w / in_seconds(from[1].t_ns - from->t_ns);
        piece.power_w += piece.slope_w_per_s * in_seconds(t_ns - from->t_ns);
    }
    return piece;
}

static int64_t burst_on_until_ns(const struct nrg_scenario_domain *d, int64_t t_ns)
{
    int64_t phase_ns = t_ns % d->burst_period_ns;
    return t_ns / d->burst_period_ns * d->burst_on_ns +
           (phase_ns < d->burst_on_ns ? phase_ns : d->burst_on_ns);
}

double nrg_scenario_true_j(const struct nrg_scenario_domain *d, int64_t t0_ns, int64_t t1_ns)
{
    double energy_j = 0;
    int64_t t_ns = t0_ns < 0 ? 0 : t0_ns;
    if (t1_ns <= t_ns)
        return 0;
    if (d->shape == NRG_SHAPE_BURST) {
        int64_t on_ns = burst_on_until_ns(d, t1_ns) - burst_on_until_ns(d, t_ns);
        return d->burst_high_w * in_seconds(on_ns) +
               d->burst_low_w * in_seconds(t1_ns - t_ns - on_ns);
    }
    while (t_ns < t1_ns) {
        struct piece piece = piece_at(d, t_ns);
        int64_t end_ns = piece.end_ns < t1_ns ? piece.end_ns : t1_ns;
        double h_s = in_seconds(end_ns - t_ns);
        energy_j += (piece.power_w + piece.slope_w_per_s * h_s / 2) * h_s;
        t_ns = end_ns;
    }
    return energy_j;
}

double nrg_scenario_true_w(const struct nrg_scenario_domain *d, int64_t t_ns)
{
    return t_ns < 0 ? 0 : piece_at(d, t_ns).power_w;
}

double nrg_lag_step_w(double shown_w, double power_w, double slope_w_per_s, double h_s,
                      double tau_s)
{
    double lead_w = slope_w_per_s * tau_s; /* the filter follows a ramp tau late: this far below */
    return power_w + slope_w_per_s * h_s - lead_w +
           (shown_w - power_w + lead_w) * exp(-h_s / tau_s);
}

static double follow_pieces(const struct nrg_scenario_domain *d, int64_t t_ns, double shown_w,
                            int64_t t1_ns)
{
    while (t_ns < t1_ns) {
        struct piece piece = piece_at(d, t_ns);
        int64_t end_ns = piece.end_ns < t1_ns ? piece.end_ns : t1_ns;
        shown_w = nrg_lag_step_w(shown_w, piece.power_w, piece.slope_w_per_s,
                                 in_seconds(end_ns - t_ns), in_seconds(d->lag_ns));
        t_ns = end_ns;
    }
    return shown_w;
}

/* shown -> a^n * shown + b * (1 - a^n) / (1 - a), where b is the response of one period to 0 W. */
static double follow_periods(const struct nrg_scenario_domain *d, double shown_w, int64_t n)
{
    double ratio = in_seconds(d->burst_period_ns) / in_seconds(d->lag_ns);
    double from_zero_w = follow_pieces(d, 0, 0, d->burst_period_ns);
    return shown_w * exp(-ratio * (double)n) +
           from_zero_w * expm1(-ratio * (double)n) / expm1(-ratio);
}

double nrg_scenario_lagged_w(const struct nrg_scenario_domain *d, int64_t t0_ns, double shown_w,
                             int64_t t1_ns)
{
    if (!d->lag_ns)
        return nrg_scenario_true_w(d, t1_ns);
    if (d->shape != NRG_SHAPE_BURST)
        return follow_pieces(d, t0_ns, shown_w, t1_ns);
    int64_t period_ns = d->burst_period_ns;
    int64_t whole_ns = (t0_ns + period_ns - 1) / period_ns * period_ns;
    if (whole_ns >= t1_ns)
        return follow_pieces(d, t0_ns, shown_w, t1_ns);
    int64_t n = (t1_ns - whole_ns) / period_ns;
    shown_w = follow_pieces(d, t0_ns, shown_w, whole_ns);
    if (n)
        shown_w = follow_periods(d, shown_w, n);
    return follow_pieces(d, whole_ns + n * period_ns, shown_w, t1_ns);
}

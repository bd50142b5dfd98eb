/*
 * See running_mean.h. A reading at t is the mean of W up to the last update, which is up to U old.
 * Let H = W + U, S(t) the sum of readings up to t, r(t) the reading there, E(t) the energy. Where
 * power was steady for H before t, or is for H after it, whatever the phase of the updates:
 *
 *   E(t) = S(t) + r(t) H/2             before
 *   E(t) = S(t + H) - r(t + H) H/2     after
 *
 * Neither is known of power itself. But what one second has and the second before it had not makes
 * readings move while it goes through the window: where power differed by d for a part f of H, they
 * moved by f d, and E(t) is off by f (1 - f) d H/2. So it is at most half of H times how far
 * readings moved, from t - H to t, or from t + H to t + 2 H; the steadier side counts. A load
 * that comes back after just W does not show at all: one that is off for half of W and has twice
 * the mean for the rest makes E(t) off by a quarter of H times the mean. Outside of a run there is
 * none.
 */
#include "energy/updates/running_mean.h"

#include <math.h>

#define HIDDEN 0.25 /* of H: see above */

int64_t nrg_running_mean_reach_ns(const struct nrg_timeline *tl)
{
    return tl->mean_ns > 0 ? tl->mean_ns + tl->update_ns : 0;
}

/* How far readings moved within [begin, end]; INFINITY where they do not reach from one to the
 * other. */
static double moved_w(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns)
{
    struct nrg_power_range range = nrg_timeline_gauge_range(tl, begin_ns, end_ns);
    bool reach = tl->n && nrg_point_ns(tl, 0) <= begin_ns + tl->period_ns &&
                 nrg_point_ns(tl, tl->n - 1) >= end_ns - tl->period_ns;
    return reach && !isnan(range.low_w) ? range.high_w - range.low_w : INFINITY;
}

/* E(t) - S(t), by what was before t. */
static struct nrg_mean_ends by_before(const struct nrg_timeline *tl, int64_t t_ns)
{
    int64_t reach_ns = nrg_running_mean_reach_ns(tl);
    double half_s = (double)reach_ns / 2e9;
    return (struct nrg_mean_ends){nrg_timeline_gauge_at(tl, t_ns) * half_s,
                                  moved_w(tl, t_ns - reach_ns, t_ns) * half_s};
}

/* The same by what was after it. */
static struct nrg_mean_ends by_after(const struct nrg_timeline *tl, int64_t t_ns)
{
    int64_t reach_ns = nrg_running_mean_reach_ns(tl), covered_ns;
    double half_s = (double)reach_ns / 2e9, next_j, doubt_w;
    next_j = nrg_timeline_between(tl, t_ns, t_ns + reach_ns, &covered_ns);
    doubt_w = moved_w(tl, t_ns + reach_ns, t_ns + 2 * reach_ns);
    return (struct nrg_mean_ends){next_j - nrg_timeline_gauge_at(tl, t_ns + reach_ns) * half_s,
                                  covered_ns == reach_ns ? doubt_w * half_s : INFINITY};
}

/* The better of two: what was outside of the run, or within it, where a load that comes back with
 * the window may hide. */
static struct nrg_mean_ends end_at(const struct nrg_timeline *tl, int64_t t_ns,
                                   struct nrg_mean_ends outside, struct nrg_mean_ends within)
{
    int64_t reach_ns = nrg_running_mean_reach_ns(tl);
    struct nrg_power_range around = nrg_timeline_gauge_range(tl, t_ns - reach_ns, t_ns + reach_ns);
    if (isnan(around.high_w)) /* read more seldom than that: what it showed last */
        around.low_w = around.high_w = nrg_timeline_gauge_at(tl, t_ns);
    double hidden_j = fabs(around.high_w) * (double)reach_ns * HIDDEN / 1e9;
    within.doubt_j += hidden_j;
    struct nrg_mean_ends best = within.doubt_j < outside.doubt_j ? within : outside;
    if (isfinite(best.doubt_j))
        return best;
    best = by_before(tl, t_ns);
    best.doubt_j = (around.high_w - around.low_w) * (double)reach_ns / 2e9 + hidden_j;
    return best;
}

struct nrg_mean_ends nrg_running_mean_ends(const struct nrg_timeline *tl, int64_t begin_ns,
                                           int64_t end_ns)
{
    struct nrg_mean_ends begin =
        end_at(tl, begin_ns, by_before(tl, begin_ns), by_after(tl, begin_ns));
    struct nrg_mean_ends end = end_at(tl, end_ns, by_after(tl, end_ns), by_before(tl, end_ns));
    return (struct nrg_mean_ends){end.more_j - begin.more_j, end.doubt_j + begin.doubt_j};
}

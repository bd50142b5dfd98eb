/* See integrate.h. */
#include "sensors/integrate.h"

#include <errno.h>
#include <math.h>

#include "base/clock.h"
#include "base/stats.h"

#define GAP_LEAST_NS (250 * NRG_NS_PER_MS)
#define FEW_READINGS 20 /* fewer can't tell a pause from the period: use their median */

int nrg_counter_difference(const struct nrg_channel *c, int64_t last_raw, int64_t raw,
                           int64_t *step)
{
    /* Any two numbers can stand in a damaged file. */
    if (__builtin_sub_overflow(raw, last_raw, step))
        return -EOVERFLOW;
    if (*step < 0 && c->wrap && c->wrap <= INT64_MAX)
        *step += (int64_t)c->wrap;
    return 0;
}

/*
 * The counter's own update period blurs when the energy was used, so it widens the time that the
 * power limit applies to.
 */
double nrg_counter_step(const struct nrg_channel *c, int64_t last_raw, int64_t raw, int64_t dt_ns,
                        bool *wrapped)
{
    int64_t step;
    double most = c->limit_w > 0 && c->quantity == NRG_ENERGY
                      ? c->limit_w * (double)(dt_ns + 2 * c->update_ns) / 1e9 / c->scale
                      : INFINITY;
    bool known = !nrg_counter_difference(c, last_raw, raw, &step) && step >= 0 &&
                 (double)step <= most; /* no power explains more: reset or garbage */
    if (wrapped)
        *wrapped = known && raw < last_raw;
    if (!known)
        return NRG_STEP_BACKWARDS;
    if (c->wrap && isfinite(most) && (double)step + (double)c->wrap <= most)
        return NRG_STEP_AMBIGUOUS;
    return (double)step;
}

bool nrg_counter_is_lost(bool was_lost, double step)
{
    return step == NRG_STEP_BACKWARDS || (was_lost && !(step > 0));
}

/* A damaged file may hold any period. */
static int64_t usual_gap_ns(int64_t period_ns)
{
    return period_ns < INT64_MAX / NRG_GAUGE_GAP ? NRG_GAUGE_GAP * period_ns : INT64_MAX;
}

int64_t nrg_gauge_gap_ns(int64_t period_ns)
{
    int64_t usual_ns = usual_gap_ns(period_ns);
    return usual_ns > GAP_LEAST_NS ? usual_ns : GAP_LEAST_NS;
}

bool nrg_gauge_is_late(int64_t dt_ns, int64_t period_ns)
{
    return dt_ns > usual_gap_ns(period_ns) && dt_ns <= nrg_gauge_gap_ns(period_ns);
}

int64_t nrg_gauge_update_ns(int64_t *spacings_ns, size_t n, int64_t reading_period_ns)
{
    if (!n)
        return 0;
    nrg_sort_i64(spacings_ns, n);
    int64_t usual = spacings_ns[n < FEW_READINGS ? n / 2 : n * 9 / 10];
    return usual > reading_period_ns + reading_period_ns / 2 ? usual : 0;
}

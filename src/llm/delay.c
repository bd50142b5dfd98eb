/* See delay.h. */
#include "llm/delay.h"

#include <math.h>

#define FROM_S   (-0.4)
#define TO_S     2.4
#define STEP_S   0.2
#define FINEST_S 0.02

static double law_power(const struct nrg_serving_slot *slot, const struct nrg_serving_fit *law)
{
    double sum = 0;
    for (size_t c = 0; c < NRG_SERVING_TERMS; c++)
        sum += law->unbound[c] * slot->amount[c];
    return sum / slot->amount[NRG_SERVING_IDLE];
}

/* Correlation of power and law, slot by slot. */
static double follows_law(const struct nrg_delay_search *s, const double *energy_j,
                          const struct nrg_serving_fit *law)
{
    double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < s->n; i++) {
        double law_w = law_power(&s->slots[i], law);
        double power_w = energy_j[i] / s->slots[i].amount[NRG_SERVING_IDLE];
        if (isnan(power_w))
            continue;
        n++;
        x += law_w;
        y += power_w;
        xx += law_w * law_w;
        yy += power_w * power_w;
        xy += law_w * power_w;
    }
    double both = (xx - x * x / n) * (yy - y * y / n);
    return both > 0 ? (xy - x * y / n) / sqrt(both) : 0;
}

/* Between two steps, by the law of the better one. */
static void refine(const struct nrg_delay_search *s, double *energy_j,
                   const struct nrg_serving_fit *law, double most, double *late_s)
{
    for (double step_s = STEP_S / 2; step_s > FINEST_S; step_s /= 2) {
        double middle_s = *late_s;
        for (int side = -1; side <= 1; side += 2) {
            s->energies(s->arg, middle_s + side * step_s, energy_j);
            double follows = follows_law(s, energy_j, law);
            if (follows > most) {
                most = follows;
                *late_s = middle_s + side * step_s;
            }
        }
    }
}

int nrg_delay_find(const struct nrg_delay_search *s, double *energy_j, double *late_s)
{
    struct nrg_serving_fit fit, best = {0};
    double most = 0;
    int rc = 0;
    *late_s = 0;
    for (int i = 0; !rc && FROM_S + i * STEP_S < TO_S; i++) {
        s->energies(s->arg, FROM_S + i * STEP_S, energy_j);
        rc = s->fit(s->arg, energy_j, &fit);
        double follows = rc || fit.why ? 0 : follows_law(s, energy_j, &fit);
        if (!(follows > most))
            continue;
        most = follows;
        best = fit;
        *late_s = FROM_S + i * STEP_S;
    }
    if (most > 0)
        refine(s, energy_j, &best, most, late_s);
    return rc;
}

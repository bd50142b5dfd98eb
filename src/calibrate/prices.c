/* See prices.h. */
#include "calibrate/prices.h"

#include <math.h>
#include <string.h>

static const char *const levels[NRG_MEMORY_LEVELS] = {"L1", "L2", "L3", "L4", "memory"};

double nrg_point_bytes(const struct nrg_point *p)
{
    return p->read_bytes + p->written_bytes;
}

struct nrg_level_price nrg_level_price(const struct nrg_calibration *c, size_t level)
{
    struct nrg_level_price out = {.level = levels[level]};
    double low = INFINITY, high = 0, worst = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct nrg_point_result *r = &c->results[i];
        if (r->point->family != NRG_POINT_STREAM || strcmp(r->point->level, out.level) ||
            isnan(r->above_j))
            continue;
        double cost = r->above_j / nrg_point_bytes(r->point);
        out.n++;
        out.j_per_byte += cost;
        out.gb_per_s = fmax(out.gb_per_s, nrg_point_bytes(r->point) / r->time_s / 1e9);
        low = fmin(low, cost);
        high = fmax(high, cost);
        worst = fmax(worst, r->above_uncertainty_j / nrg_point_bytes(r->point));
    }
    if (out.n) {
        out.j_per_byte /= (double)out.n;
        out.uncertainty = fmax(worst, (high - low) / 2);
    }
    return out;
}

/* Noise makes some points look cheap, so compare the upper ends of their intervals. */
static double surely_per_mac(const struct nrg_point_result *r)
{
    return (r->above_j + r->above_uncertainty_j) / r->point->macs;
}

const struct nrg_point_result *nrg_cheapest_mac(const struct nrg_calibration *c)
{
    const struct nrg_point_result *best = NULL;
    for (size_t i = 0; i < c->n; i++)
        if (c->results[i].point->macs > 0 && !isnan(c->results[i].above_j) &&
            (!best || surely_per_mac(&c->results[i]) < surely_per_mac(best)))
            best = &c->results[i];
    return best;
}

/*
 * When a gauge updates, from the moments at which its readings changed: a device publishes on a
 * clock of its own, whose period is never exactly the one in the books. Pure.
 */
#ifndef NRG_ENERGY_UPDATE_GRID_H
#define NRG_ENERGY_UPDATE_GRID_H

#include "energy/timeline.h"

struct nrg_update_grid {
    double origin_ns, period_ns; /* updates are at begin + origin + k * period */
    double spacing_ns;           /* mean time between readings: they show updates that much late */
    size_t changes;
};

/*
 * A straight line through the changes in [begin, end]; update_ns is about their distance. False:
 * there are fewer than 16, or fewer readings than `per_update` in an update, which hides when it
 * was.
 */
bool nrg_update_grid_fit(const struct nrg_timeline *timeline, int64_t begin_ns, int64_t end_ns,
                         double update_ns, double per_update, struct nrg_update_grid *grid);

#endif

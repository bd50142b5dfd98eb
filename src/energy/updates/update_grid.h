/*
 * When a sensor updates, from the moments at which its readings changed: a device publishes on a
 * clock of its own, whose phase nobody knows and whose period is never exactly the one in the
 * books. An update lies between the last reading of the old value and the first of the new one.
 * Pure but for nrg_update_grid_fit, which needs memory for a while.
 */
#ifndef NRG_ENERGY_UPDATE_GRID_H
#define NRG_ENERGY_UPDATE_GRID_H

#include "energy/timeline.h"

/* A new value: between which readings it came, in s, and which update of the grid it is. */
struct nrg_update {
    double low_s, high_s, number;
};

/* Updates are at origin_s + number * period_s. */
struct nrg_update_grid {
    double origin_s, period_s;
    double half_origin_s, half_period_s; /* how far from there they may be */
    bool
        regular; /* false: no grid puts all updates where readings say, not even with some jitter */
};

/* True when reading i, which is not the first, shows another value than the one before it. */
bool nrg_update_is_news(const struct nrg_timeline *timeline, size_t i);
/* Sets the numbers, from 0 on: as many periods of about_s as the distance is nearest to. */
void nrg_updates_number(struct nrg_update *updates, size_t n, double about_s);
/* The middle of what all of them allow; else a straight line through the middles of each. False:
 * fewer than two numbers. */
bool nrg_update_grid_find(const struct nrg_update *updates, size_t n, struct nrg_update_grid *grid);

/*
 * The same of the changes in [begin, end], since begin; update_ns is about their distance. False:
 * there are fewer than 16, or fewer readings than `per_update` in an update, which hides when it
 * was, or there is no memory.
 */
bool nrg_update_grid_fit(const struct nrg_timeline *timeline, int64_t begin_ns, int64_t end_ns,
                         double update_ns, double per_update, struct nrg_update_grid *grid);

#endif

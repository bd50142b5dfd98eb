/*
 * What the two edges of a time cost its energy. Where one lies between two readings, how much of
 * the energy between these lies on which side is known only by how much power there can be. A
 * program goes from idle to full power at the very edge, so interpolating says too much or too
 * little, always in the same direction. Where it lies beyond the readings of a counter, which is
 * held there (nrg_timeline_end), that time may have had any power. One rule for runs, ranges, and
 * whatever else is cut out of readings.
 *
 * Pure functions on their arguments.
 */
#ifndef NRG_ENERGY_EDGES_H
#define NRG_ENERGY_EDGES_H

#include "energy/timeline.h"

/* What an energy may be too high (below) or too low (above) by. */
struct nrg_edge_doubt {
    double below_j, above_j;
};

/*
 * Of the energy that nrg_timeline_between gives for [begin, end]. `seen_w`: the highest power that
 * the caller knows of; what readings around the edges show is looked at here. What the age of a
 * counter's value costs is not in it, nor is time without readings.
 */
struct nrg_edge_doubt nrg_timeline_edges(const struct nrg_timeline *timeline, int64_t begin_ns,
                                         int64_t end_ns, double seen_w);

#endif

/*
 * Joules of a range of time, and what they may be off by. The one rule, which the page has again
 * in web/src/range.ts; tests compare the two.
 *
 * A range's interval is not the sum of its buckets' intervals. Errors that are the same all through
 * the run (calibration, the power of a class of a regression, an estimate's band) add up linearly:
 * they are in proportion to the energy. Errors that differ from reading to reading or from call to
 * call add up as squares: the square grows with the time, or with the energy of a row. The two
 * edges of the range cost once what two edges of a sensor's readings cost. Time without readings
 * has no energy, but it is in the interval.
 *
 *   domain: low  = E·factor_low (or the band's sum) − edges − noise
 *           high = E·factor_high (or the band's sum) + edges + noise + unread time · most power
 *           edges = fixed + update · E / covered time + rounding · time,  noise = √(noise² ·
 * covered) row:    low  = e − (E − low_E − random_E)·e/E − random_E·√(e/E), likewise high
 *
 * with E of the domain in the range; for a row e in the range, E in the run. Plain functions of
 * their arguments.
 */
#ifndef NRG_ATTRIBUTE_RANGE_H
#define NRG_ATTRIBUTE_RANGE_H

#include "attribute/buckets.h"

struct nrg_range_sum {
    double energy_j, low_j, high_j;
    double idle_j, other_processes_j, covered_s;
};

/* A domain's energy in the buckets [first, last). */
struct nrg_range_sum nrg_range_domain(const struct nrg_attribution_buckets *buckets, size_t domain,
                                      size_t first, size_t last);

/* low or high of a part `part_j` of a row whose whole energy is energy_j and whose end is `end_j`,
 * of which random_j is random. */
double nrg_range_row_end(double energy_j, double end_j, double random_j, double part_j);

/* Makes all sums of an attribution with one bucket those of that bucket. 0 or -ENOMEM. */
int nrg_range_restrict(struct nrg_attribution *attribution, struct nrg_arena *arena);

#endif

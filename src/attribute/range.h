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
 *           edges = fixed + update · E / covered time + rounding · time
 *           noise = √(noise² · covered)
 *   row:    low  = e − (E − low_E − random_E)·share − random_E·√share, likewise high
 *
 * with E of the domain in the range; for a row e in the range, E in the run, and as its share e/E.
 * Where the row's estimate is 0, in the range or in all of the run, the share is that of its time:
 * an energy that may be 0 still has a high end, and a part of its time has a part of that.
 * Plain functions of their arguments.
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

/* A row in all of the run; random_j: what of its interval is random. */
struct nrg_range_whole {
    double energy_j, random_j, time_s;
};

/* low or high of a part of a row, part_j in part_s, where the whole's is end_j. */
double nrg_range_row_end(const struct nrg_range_whole *whole, double end_j, double part_j,
                         double part_s);

/* Makes all sums of an attribution with one bucket those of that bucket. 0 or -ENOMEM. */
int nrg_range_restrict(struct nrg_attribution *attribution, struct nrg_arena *arena);

#endif

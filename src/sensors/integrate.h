/*
 * From two readings of a channel to energy: the one place that unwraps counters, and the limits
 * within which a gauge's readings are joined. What is not known is a gap, never a guess: a counter
 * that went backwards or may have wrapped more than once, and readings of a gauge that are further
 * apart than NRG_GAUGE_GAP of its periods.
 *
 * Pure functions on their arguments; any thread.
 */
#ifndef NRG_SENSORS_INTEGRATE_H
#define NRG_SENSORS_INTEGRATE_H

#include "sensors/channel.h"

#define NRG_GAUGE_GAP 3

#define NRG_STEP_BACKWARDS (-1.0) /* jumped without a wrap */
#define NRG_STEP_AMBIGUOUS (-2.0) /* may have wrapped more than once */

/*
 * Difference of two raw counts, modulo the counter's range. Negative: the counter went back, and
 * no range explains that. -EOVERFLOW: the difference does not fit into an int64.
 */
int nrg_counter_difference(const struct nrg_channel *channel, int64_t last_raw, int64_t raw,
                           int64_t *step);

/*
 * Step of a counter between two readings, unwrapped and checked against the power that the domain
 * can't exceed, in raw units. Negative: not known. `wrapped` may be NULL.
 */
double nrg_counter_step(const struct nrg_channel *channel, int64_t last_raw, int64_t raw,
                        int64_t dt_ns, bool *wrapped);

/*
 * The update period of a gauge whose driver does not know it (a meter that sends at its own rate,
 * over a line that loses some messages). It is the 90th percentile of the distances between its
 * first readings, which this function sorts. 0: they came at the reader's own sampling period and
 * so tell nothing.
 */
#define NRG_FIRST_SPACINGS 257
int64_t nrg_gauge_update_ns(int64_t *spacings_ns, size_t n, int64_t reading_period_ns);

#endif

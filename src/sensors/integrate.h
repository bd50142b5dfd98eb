/*
 * From two readings of a channel to energy: the one place that unwraps counters, and the limits
 * within which a gauge's readings are joined. What is not known is a gap, never a guess: a counter
 * that went backwards or may have wrapped more than once, and readings of a gauge that are further
 * apart than nrg_gauge_gap_ns.
 *
 * Pure functions on their arguments; any thread.
 */
#ifndef NRG_SENSORS_INTEGRATE_H
#define NRG_SENSORS_INTEGRATE_H

#include "sensors/channel.h"

/*
 * Readings of a gauge that are further apart than this are not joined: NRG_GAUGE_GAP periods, and
 * never less than a busy machine may keep the reader waiting. A reading that is late by that is
 * still a reading; what the power did meanwhile is in the interval (energy/domains.c).
 */
#define NRG_GAUGE_GAP 3
int64_t nrg_gauge_gap_ns(int64_t period_ns);

/* Whether readings so far apart are joined although some should have come between them. */
bool nrg_gauge_is_late(int64_t dt_ns, int64_t period_ns);

#define NRG_STEP_BACKWARDS (-1.0) /* jumped without a wrap */
#define NRG_STEP_AMBIGUOUS (-2.0) /* may have wrapped more than once */
#define NRG_STEP_STILL     (-3.0) /* it did not count (still.h) */

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
 * A register that can't be read shows as a jump and then stands still (perf reads 0 for it), until
 * a second jump brings it back. Given the step that nrg_counter_step returned and whether the time
 * before it was lost: is this time lost, too?
 */
bool nrg_counter_is_lost(bool was_lost, double step);

/*
 * The update period of a gauge whose driver does not know it (a meter that sends at its own rate,
 * over a line that loses some messages). It is the 90th percentile of the distances between its
 * first readings, which this function sorts. 0: they came at the reader's own sampling period and
 * so tell nothing.
 */
#define NRG_FIRST_SPACINGS 257
int64_t nrg_gauge_update_ns(int64_t *spacings_ns, size_t n, int64_t reading_period_ns);

#endif

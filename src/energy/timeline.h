/*
 * Energy over time of one channel, whatever it was recorded as: a non-decreasing sum of joules at
 * the instants of its readings. Counters are unwrapped, gauges integrated (trapezoid); time of
 * which nothing is known is a gap (sensors/integrate.h). A missing reading of a counter is no gap:
 * the next one has its energy.
 *
 * Load, release. 0 or -errno. One thread at a time.
 */
#ifndef NRG_ENERGY_TIMELINE_H
#define NRG_ENERGY_TIMELINE_H

#include "record/read/recording.h"
#include "sensors/integrate.h"

struct nrg_timeline {
    size_t n, cap;
    int64_t *t_ns;
    double *sum_j;     /* cumulative; in the channel's unit * s for gauges other than power */
    uint8_t *gap;      /* gap[i]: nothing is known between i and i+1 */
    double *gauge;     /* the readings themselves, NULL for counters */
    int64_t period_ns; /* of reading or updating, whichever is slower */
    int64_t update_ns; /* the channel's, or learnt from the readings where it is not known */
    size_t wraps, backwards, ambiguous, damaged;
    int64_t stuck_ns; /* longest time that a counter stood still */
    double noise_j2;  /* sum of squares of possible integration errors */
};

/* A channel's update period: as the driver said, or else as its readings show; 0: not known. */
int64_t nrg_channel_update_ns(struct nrg_recording *recording,
                              const struct nrg_recorded_channel *channel);

/* Reads the whole channel. 0 or -errno. */
int nrg_timeline_load(struct nrg_timeline *timeline, struct nrg_recording *recording,
                      const struct nrg_recorded_channel *channel);
void nrg_timeline_release(struct nrg_timeline *timeline);

/*
 * Sum between two instants, interpolating between readings. *covered_ns (may be NULL) is the
 * part of the time that is known; a gauge is held for at most one period beyond its readings.
 */
double nrg_timeline_between(const struct nrg_timeline *timeline, int64_t begin_ns, int64_t end_ns,
                            int64_t *covered_ns);

/* Highest mean power over windows of `window_ns` inside [begin, end]; negative: unknown. */
double nrg_timeline_peak(const struct nrg_timeline *timeline, int64_t begin_ns, int64_t end_ns,
                         int64_t window_ns);

/* Lowest and highest reading of a gauge within [begin, end]; NAN without any. */
struct nrg_power_range {
    double low_w, high_w;
};
struct nrg_power_range nrg_timeline_gauge_range(const struct nrg_timeline *timeline,
                                                int64_t begin_ns, int64_t end_ns);

/* The energy of times in [begin, end] that a late reading of a gauge ended (nrg_gauge_is_late). */
double nrg_timeline_late(const struct nrg_timeline *timeline, int64_t begin_ns, int64_t end_ns,
                         int64_t *late_ns);

/* Standard deviation of a gauge's readings within [begin, end]; 0 for fewer than two. */
double nrg_timeline_gauge_sd(const struct nrg_timeline *timeline, int64_t begin_ns, int64_t end_ns);

/* A gauge's value at an instant (held); NAN where it is not known. */
double nrg_timeline_gauge_at(const struct nrg_timeline *timeline, int64_t t_ns);

#endif

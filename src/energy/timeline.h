/*
 * Energy over time of one channel, whatever it was recorded as: a non-decreasing sum of joules at
 * the instants of its readings. Counters are unwrapped, gauges integrated (trapezoid); time of
 * which nothing is known is a gap (sensors/integrate.h). A missing reading of a counter is no gap:
 * the next one has its energy.
 *
 * What was loaded is packed (packed.h). Who makes a timeline of his own, from another one, has
 * arrays: of all that differs.
 *
 * Load, look at points, release. 0 or -errno. One thread at a time.
 */
#ifndef NRG_ENERGY_TIMELINE_H
#define NRG_ENERGY_TIMELINE_H

#include "energy/packed.h"
#include "record/read/recording.h"
#include "sensors/integrate.h"

/* A gauge that does not say of how long it shows the mean is taken to show none of longer. NVML's
 * are of 1 s. */
#define NRG_LONGEST_MEAN_NS (2 * NRG_NS_PER_S)

/* From that time on, until the next one of them. */
struct nrg_took {
    int64_t first_ns, took_ns;
};

struct nrg_timeline {
    size_t n;
    bool is_gauge;
    struct nrg_packed *packed; /* NULL: all is in arrays */
    /* in place of what is packed, if they are there */
    int64_t *t_ns;
    double *sum_j;
    uint8_t *gap;
    double *own_gauge;
    int64_t period_ns; /* of reading or updating, whichever is slower */
    int64_t update_ns; /* the channel's, or learnt from the readings where it is not known */
    int64_t held_ns;   /* how long a gauge holds values whose driver does not say it; 0: not seen */
    double held_w;     /* readings of one value differ by no more from one to the next */
    int64_t mean_ns; /* a gauge's: each value is, or may be, the mean of so long, which is more than
                        an update; 0: of no more */
    size_t wraps, backwards, ambiguous, damaged;
    size_t stood;          /* gaps in which a counter stood still (record/read/still.h) */
    int64_t stuck_ns;      /* longest time that a counter stood still by right */
    double noise_j2;       /* sum of squares of possible integration errors */
    struct nrg_took *took; /* the longest that readings took */
    size_t n_took, cap_took;
};

/* Of point i: when it was read, the sum up to it (in the channel's unit * s for gauges other than
 * power), whether nothing is known between it and the next one, and what a gauge showed. */
static inline int64_t nrg_point_ns(const struct nrg_timeline *tl, size_t i)
{
    return tl->t_ns ? tl->t_ns[i] : nrg_packed_at(tl->packed, i)->t_ns[i % NRG_POINT_BLOCK];
}

static inline double nrg_point_j(const struct nrg_timeline *tl, size_t i)
{
    return tl->sum_j ? tl->sum_j[i] : nrg_packed_at(tl->packed, i)->sum_j[i % NRG_POINT_BLOCK];
}

static inline bool nrg_point_gap(const struct nrg_timeline *tl, size_t i)
{
    return tl->gap ? tl->gap[i] : nrg_packed_at(tl->packed, i)->gap[i % NRG_POINT_BLOCK];
}

static inline double nrg_point_gauge(const struct nrg_timeline *tl, size_t i)
{
    return tl->own_gauge ? tl->own_gauge[i]
                         : nrg_packed_at(tl->packed, i)->gauge[i % NRG_POINT_BLOCK];
}

/* All of a point at once: faster, where several are wanted. */
struct nrg_reading_point {
    int64_t t_ns;
    double sum_j, gauge;
    bool gap;
};

static inline struct nrg_reading_point nrg_point_at(const struct nrg_timeline *tl, size_t i)
{
    if (tl->sum_j)
        return (struct nrg_reading_point){nrg_point_ns(tl, i), tl->sum_j[i],
                                          tl->own_gauge ? tl->own_gauge[i] : 0, tl->gap[i]};
    const struct nrg_point_view *v = nrg_packed_at(tl->packed, i);
    size_t at = i % NRG_POINT_BLOCK;
    return (struct nrg_reading_point){v->t_ns[at], v->sum_j[at], v->gauge[at], v->gap[at]};
}

/* How many points are at most t_ns, and how many are before it. */
size_t nrg_timeline_up_to(const struct nrg_timeline *timeline, int64_t t_ns);
size_t nrg_timeline_below(const struct nrg_timeline *timeline, int64_t t_ns);

/* How long the readings at that time took, at most: when they were taken is known to half of it. */
int64_t nrg_timeline_took_ns(const struct nrg_timeline *timeline, int64_t t_ns);

/* A channel's update period: as the driver said, or else as its readings show; 0: not known. */
int64_t nrg_channel_update_ns(struct nrg_recording *recording,
                              const struct nrg_recorded_channel *channel);

/* Reads whole channels of one series in one pass: timelines[i] of channels[i]. 0 or -errno. */
int nrg_timelines_load(struct nrg_timeline *const *timelines, struct nrg_recording *recording,
                       const struct nrg_recorded_channel *const *channels, size_t n);
int nrg_timeline_load(struct nrg_timeline *timeline, struct nrg_recording *recording,
                      const struct nrg_recorded_channel *channel);
void nrg_timeline_release(struct nrg_timeline *timeline);

/*
 * What a channel is taken to go on with before its first reading, or after its last one, and for
 * how long. A gauge's reading, for a period. Of a counter that updates no faster than it is read,
 * so that there is no later reading to be had (nrgd's coarse view), the mean of the readings there:
 * over an update and, because steps may be large, two steps. It is held for an update at most, and
 * for no longer than it was seen. NAN, 0: nothing is known.
 */
struct nrg_held_end {
    double power_w;
    int64_t reach_ns;
};
struct nrg_held_end nrg_timeline_end(const struct nrg_timeline *timeline, bool first);

/* What of [begin, end] is held so, of a counter. */
double nrg_timeline_counter_held(const struct nrg_timeline *timeline, int64_t begin_ns,
                                 int64_t end_ns, int64_t *held_ns);

/*
 * Sum between two instants, interpolating between readings. *covered_ns (may be NULL) is the
 * part of the time that is known; beyond the readings as nrg_timeline_end says.
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

/*
 * What the ends of [begin, end] may cost a gauge's energy: it shows what was up to an update ago,
 * as a mean of window_ns (0: not known, up to an update), so a sum of readings is that of a time
 * which is earlier by half of both. At one end that misses the power there, at the other one it has
 * the power from before; and how much either is off by scatters.
 */
double nrg_timeline_gauge_ends_j(const struct nrg_timeline *timeline, int64_t begin_ns,
                                 int64_t end_ns, int64_t window_ns);

/* A gauge's value at an instant (held); NAN where it is not known. */
double nrg_timeline_gauge_at(const struct nrg_timeline *timeline, int64_t t_ns);
/* The same on the line between two readings, as its energy is. */
double nrg_timeline_gauge_line(const struct nrg_timeline *timeline, int64_t t_ns);

#endif

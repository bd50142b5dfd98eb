/*
 * Counters that stand still. What a domain draws at least moves its counter: one that shows the
 * same value for longer than that needs for a step does not count any more (the processors' socket
 * is off-line, a perf event died with its CPU, a driver hangs and repeats itself), and what was
 * used meanwhile is not known. How little that may be is known of few domains. Where it is not, a
 * counter may stand still: a graphics unit, a module of memory, a GPU that sleeps draw nothing.
 *
 * The one rule, for recordings (record/read/still.c, where a power gauge of the same name tells
 * more), and for a recorder that opens dead counters again (record/sampler/feed.c). Pure functions
 * on their arguments; any thread.
 */
#ifndef NRG_SENSORS_STILL_H
#define NRG_SENSORS_STILL_H

#include "sensors/channel.h"

/* What the domain of a counter draws at least while the machine runs, in W. 0: not known. */
double nrg_least_w(const struct nrg_channel *channel);

/* For how long a counter that is updated every update_ns, in steps of step_j (0: not known), may
 * show one value while its domain draws least_w or more. INT64_MAX: for ever. */
int64_t nrg_longest_still_ns(int64_t update_ns, double step_j, double least_w);

/* The value that a counter shows. */
struct nrg_standing {
    bool seen;
    int64_t raw;
    int64_t before_ns, since_ns, last_ns; /* of the reading before its first one (that one, where
                                             there is none), of its first and of its last one */
};

/* Takes a reading. True: it is another value than before, or the first. */
bool nrg_standing_add(struct nrg_standing *standing, int64_t t_ns, int64_t raw);

#endif

/*
 * When the counters of a recording did not count (sensors/still.h): found once for each series, and
 * kept with the recording. Readings of such a time are none. Either the next value has the energy
 * of all of it, because its own interval can't have used so much (a driver that hung and caught
 * up): then they are as readings that failed. Or that energy is lost: then the time is a gap, from
 * the reading before the counter's last step on, which may have been cut short, to the one that
 * sees it move again.
 *
 * Find, ask. 0 or -errno. One thread at a time.
 */
#ifndef NRG_RECORD_READ_STILL_H
#define NRG_RECORD_READ_STILL_H

#include "record/read/recording.h"

/* The readings at both ends are good (to_ns INT64_MAX: it never moved again). */
struct nrg_still {
    int64_t from_ns, to_ns;
    bool gap;
};

/* For all counters of a series; does nothing the second time. */
int nrg_stills_find(struct nrg_recording *recording, int series);
/* Those of a channel, in order of time, as far as its series was looked at. */
const struct nrg_still *nrg_stills_of(const struct nrg_recording *recording,
                                      const struct nrg_recorded_channel *channel, size_t *n);
/* Whether a reading at t_ns is inside of one. */
bool nrg_is_still(const struct nrg_recording *recording, const struct nrg_recorded_channel *channel,
                  int64_t t_ns);
/* nrg_recorded_step between two readings that are in none, or NRG_STEP_STILL: it is lost by one. */
double nrg_counted_step(const struct nrg_recording *recording,
                        const struct nrg_recorded_channel *channel, int64_t last_raw, int64_t raw,
                        int64_t last_ns, int64_t t_ns, bool *wrapped);

/* The recording's own; NULL: none yet. */
struct nrg_stills;
void nrg_stills_free(struct nrg_stills *stills);

#endif

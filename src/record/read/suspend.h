/*
 * Counters across a suspend. A register that lost its power begins anew, and unwrapping it would
 * make up to a whole range of energy of that; one that went on holds what was used meanwhile. So
 * where the recording says that the machine slept, a counter that went back, or drew more than any
 * machine over both times, is not known.
 *
 * Pure functions on a recording; any thread.
 */
#ifndef NRG_RECORD_READ_SUSPEND_H
#define NRG_RECORD_READ_SUSPEND_H

#include "record/read/recording.h"

/* As nrg_counter_step, of two readings of a recording. */
double nrg_recorded_step(const struct nrg_recording *recording, const struct nrg_channel *channel,
                         int64_t last_raw, int64_t raw, int64_t last_ns, int64_t t_ns,
                         bool *wrapped);

#endif

/*
 * A sensor that left (module unloaded, device unplugged or reset) and may come back, perhaps under
 * another number: its driver is asked again for what there is, and the sensor of the same name with
 * the same channels is opened. What the user named with an argument looks after itself. The
 * same for one whose counters are dead though they are read (sensors/pulse.h).
 *
 * Errors: a negative errno. Threads: the caller's, which is the one that reads the sensor.
 */
#ifndef NRG_RECORD_SAMPLER_REOPEN_H
#define NRG_RECORD_SAMPLER_REOPEN_H

#include "sensors/driver.h"

bool nrg_can_reopen(const struct nrg_found *found);

/*
 * `lost` as it was found first. On success *state is open, and *probe must be kept for as long as
 * it is (nrg_probe_release). -ENODEV: it is not back.
 */
int nrg_reopen(const struct nrg_context *ctx, const struct nrg_found *lost, struct nrg_probe *probe,
               void **state);

#endif

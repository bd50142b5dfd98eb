/*
 * What the user says that a rail measures: --covers RAIL=WHAT, and `covers RAIL = WHAT` of
 * nrg.conf. hwmon and INA3221 chips say how many watts, not whose; what is not known to be
 * disjoint from the rest is shown beside the total, not added, until somebody says it.
 *
 *   machine  all of it: like a meter at the plug, no estimate is needed
 *   cpu      the processors: added, and no estimate is needed
 *   part     something that no other sensor sees: added
 *   none     not this machine, or seen by others already: shown only
 *
 * Applied while probing: after every driver, so that those that come later (the estimate) know.
 * 0, or -errno with err. One thread.
 */
#ifndef NRG_SENSORS_COVERS_H
#define NRG_SENSORS_COVERS_H

#include "sensors/driver.h"

/* To the channels of found sensors from `first` on. */
int nrg_covers_apply(struct nrg_probe *probe, size_t first, struct nrg_error *err);

/* At the end: a rail that does not exist is an error of the command line; one of nrg.conf, which
 * may be for another machine, is listed as unavailable. */
int nrg_covers_check(struct nrg_probe *probe, struct nrg_error *err);

#endif

/*
 * Asking drivers, and the choice among what they found: name and quantity identify a channel, and
 * the first channel of a name is used; later ones only when the user asks for their driver
 * (--sensor DRIVER), in which case nothing is hidden either.
 *
 * Apart from the registry, so that a program which needs a few drivers (the daemon) does not
 * carry all of them. The probe is the caller's (nrg_probe_release). Negative errno, with the reason
 * in err. One thread.
 */
#ifndef NRG_SENSORS_PROBE_H
#define NRG_SENSORS_PROBE_H

#include "sensors/driver.h"

/* Asks all drivers of a NULL-terminated table and chooses. */
int nrg_probe_drivers(struct nrg_probe *probe, const struct nrg_context *ctx,
                      const struct nrg_driver *const *drivers, struct nrg_error *err);
void nrg_probe_release(struct nrg_probe *probe);

/* Its steps: asks probe->driver; forgets what was found from `first` on; sets `wanted`. */
int nrg_probe_driver(struct nrg_probe *probe, struct nrg_error *err);
void nrg_probe_forget(struct nrg_probe *probe, size_t first);
int nrg_probe_choose(struct nrg_probe *probe);

#endif

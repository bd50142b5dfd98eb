/*
 * All drivers, and the choice among them. nrg_probe_all asks every driver and then decides which
 * channel of which driver is used: one path per domain.
 *
 * The probe is the caller's (nrg_probe_release). Negative errno with the reason in err. One thread.
 */
#ifndef NRG_SENSORS_REGISTRY_H
#define NRG_SENSORS_REGISTRY_H

#include "sensors/probe.h"

/* NULL-terminated, in order of preference: of two drivers with a channel of the same name the
 * first one that can be read wins. */
extern const struct nrg_driver *const nrg_drivers[];

/*
 * Probes (all, or those in options->only) and selects. Fails only for a driver that does not
 * exist or an argument that is wrong; a machine without any sensor is a success.
 */
int nrg_probe_all(struct nrg_probe *probe, const struct nrg_context *ctx,
                  const struct nrg_sensor_options *options, struct nrg_error *err);

#endif

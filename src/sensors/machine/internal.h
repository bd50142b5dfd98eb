/*
 * The slow half of the machine driver: pressure, clock and temperatures (see
 * machine_environment.c). Same contracts as in driver.h; machine.c calls these.
 */
#ifndef NRG_SENSORS_MACHINE_ENVIRONMENT_H
#define NRG_SENSORS_MACHINE_ENVIRONMENT_H

#include "sensors/driver.h"

#define NRG_ENVIRONMENT_SENSOR "machine environment"

struct nrg_environment;

/* Adds the sensor if there is anything to read. 0 or -ENOMEM. */
int nrg_environment_probe(struct nrg_probe *probe);
int nrg_environment_open(const struct nrg_context *ctx, const struct nrg_found *found,
                         struct nrg_environment **out, struct nrg_error *err);
void nrg_environment_read(struct nrg_environment *env, struct nrg_sink *sink);
void nrg_environment_close(struct nrg_environment *env);

#endif

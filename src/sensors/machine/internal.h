/*
 * The slow half of the machine driver (environment.c), which load.c calls. It follows the contracts
 * of driver.h.
 */
#ifndef NRG_SENSORS_MACHINE_INTERNAL_H
#define NRG_SENSORS_MACHINE_INTERNAL_H

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

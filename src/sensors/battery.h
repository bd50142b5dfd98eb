/*
 * The batteries of /sys/class/power_supply as one channel, `battery`: what the machine draws while
 * it runs on them. Part of the hwmon driver.
 */
#ifndef NRG_SENSORS_BATTERY_H
#define NRG_SENSORS_BATTERY_H

#include "sensors/driver.h"

#define NRG_BATTERY_LOCATOR "battery" /* found->locator of the sensor */

int nrg_battery_probe(struct nrg_probe *probe);
int nrg_battery_open(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                     struct nrg_error *err);
int nrg_battery_read(void *state, struct nrg_sink *sink);
void nrg_battery_close(void *state);

#endif
